//! Reasons to stop. Orders are `stop.json`, announced by a signal, and looked for each second in case the signal was lost;
//! the lease of an exclusive job is the other.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::guard::Guard;
use super::lease::{self, Verdict, Watch};
use super::usage::Usage;
use crate::files::{AttemptDir, Spec, StopCause, StopOrder};

/// Between two looks for an order that nobody announced.
const LOOK: Duration = Duration::from_secs(1);

/// What the trainer has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// Why.
    pub cause: StopCause,
    /// How long it has, counted from the first notice that it got.
    pub grace: Duration,
}

impl From<StopOrder> for Notice {
    fn from(order: StopOrder) -> Self {
        // No clock gets further, and who writes such a number means for ever.
        let grace_seconds = order.grace_seconds.min(crate::cli::LONGEST_GRACE);
        Self { cause: order.cause, grace: Duration::from_secs(grace_seconds) }
    }
}

/// Where they come from.
pub struct Orders {
    dir: AttemptDir,
    announced: Signal,
    terminated: Signal,
    lease: Option<Watch>,
    usage: Option<Usage>,
    /// If somebody else than the agent ends the supervisor.
    grace: Duration,
    seen: Option<StopOrder>,
    given: Option<Notice>,
}

impl Orders {
    /// Listens.
    pub fn new(dir: &AttemptDir, spec: &Spec) -> io::Result<Self> {
        Ok(Self {
            dir: dir.clone(),
            announced: signal(SignalKind::user_defined1())?,
            terminated: signal(SignalKind::terminate())?,
            lease: Watch::of(dir, spec)?,
            usage: spec.disk.as_ref().map(|disk| Usage::watch(dir, disk)).transpose()?,
            grace: Duration::from_secs(spec.limits.stop_grace_seconds),
            seen: None,
            given: None,
        })
    }

    /// Why the trainer may not even begin.
    pub fn forbids(&self) -> Option<StopCause> {
        if let Some(order) = self.order() {
            return Some(order.cause);
        }
        let holds = self.verdict().is_none_or(|verdict| matches!(verdict, Verdict::Holds { .. }));
        (!holds).then_some(StopCause::Lease)
    }

    /// Who ends the trainer with its lease when everything else here stands still.
    pub fn guard(&self) -> io::Result<Guard> {
        self.lease.as_ref().map_or(Ok(Guard::none()), |watch| Guard::of(watch.known()))
    }

    fn verdict(&self) -> Option<Verdict> {
        self.lease.as_ref().map(|watch| watch.known().verdict())
    }

    fn order(&self) -> Option<StopOrder> {
        self.dir.read("stop.json").ok().flatten()
    }

    /// How long what a trainer left behind has, if it may have this long.
    pub fn at_most(&self, wanted: Duration) -> Duration {
        match self.verdict() {
            None => wanted,
            Some(Verdict::Holds { left_ms: left } | Verdict::Ending { grace_ms: left }) => {
                wanted.min(Duration::from_millis(left))
            }
            Some(Verdict::Over) => Duration::ZERO,
        }
    }

    /// The next one that changes anything.
    pub async fn next(&mut self) -> Notice {
        loop {
            let fresh = self.order().filter(|order| self.seen.replace(*order) != Some(*order)).map(Notice::from);
            if let Some(notice) = fresh.or_else(|| self.of_lease()).or_else(|| self.of_disk()) {
                self.given = Some(notice);
                return notice;
            }
            let look = if self.lease.is_some() { lease::LOOK } else { LOOK };
            tokio::select! {
                _ = self.announced.recv() => {}
                _ = self.terminated.recv() => if self.given.is_none() {
                    // The host goes down, most likely: not the job's fault.
                    let notice = Notice { cause: StopCause::Requeue, grace: self.grace };
                    self.given = Some(notice);
                    return notice;
                },
                () = tokio::time::sleep(look) => {}
            }
        }
    }

    /// Why it was stopped for what it takes of the disk.
    pub fn too_much(&self) -> Option<String> {
        self.usage.as_ref()?.too_much()
    }

    fn of_disk(&self) -> Option<Notice> {
        let first = self.given.is_none() && self.too_much().is_some();
        first.then_some(Notice { cause: StopCause::Disk, grace: self.grace })
    }

    fn of_lease(&self) -> Option<Notice> {
        due(self.verdict()?, self.given)
    }
}

/// What the lease adds to what the trainer was told. It ends all patience, but not why it was asked before.
fn due(verdict: Verdict, given: Option<Notice>) -> Option<Notice> {
    let cause = given.map_or(StopCause::Lease, |notice| notice.cause);
    let notice = match verdict {
        Verdict::Holds { .. } => return None,
        Verdict::Ending { .. } if given.is_some() => return None,
        Verdict::Ending { grace_ms } => Notice { cause, grace: Duration::from_millis(grace_ms) },
        Verdict::Over => Notice { cause, grace: Duration::ZERO },
    };
    (given != Some(notice)).then_some(notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lease_adds() {
        let seconds = Duration::from_secs;
        let notice = |cause, grace| Some(Notice { cause, grace });
        let (cancelled, lease) = (StopCause::Cancelled, StopCause::Lease);
        let (holds, ending) = (Verdict::Holds { left_ms: 9_000 }, Verdict::Ending { grace_ms: 5_000 });
        for (verdict, given, expected) in [
            (holds, None, None),
            (holds, notice(cancelled, seconds(30)), None),
            (ending, None, notice(lease, seconds(5))),
            (ending, notice(cancelled, seconds(30)), None),
            (ending, notice(lease, seconds(6)), None),
            (Verdict::Over, None, notice(lease, Duration::ZERO)),
            (Verdict::Over, notice(lease, seconds(5)), notice(lease, Duration::ZERO)),
            (Verdict::Over, notice(cancelled, seconds(30)), notice(cancelled, Duration::ZERO)),
            (Verdict::Over, notice(lease, Duration::ZERO), None),
        ] {
            assert_eq!(due(verdict, given), expected, "{verdict:?} after {given:?}");
        }
    }
}
