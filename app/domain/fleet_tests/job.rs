//! The reference for one job.

use super::commands::{Ask, Newest};
use super::server::HEARTBEAT_TIMEOUT;
use crate::domain::ids::Attempt;
use crate::domain::job::Report;
use crate::domain::time::{Millis, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Completed,
    Failed,
    OverTime,
    Cancelled,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    Waiting { due: Timestamp },
    Offered { until: Timestamp },
    Starting,
    Running { since: Timestamp },
    Cancelling,
    Ended(How),
}

#[derive(Debug, Clone)]
pub(super) struct Job {
    pub ask: Ask,
    pub submitted_at: Timestamp,
    pub priority: u8,
    /// Worker and GPUs of each offer; the last is the newest attempt.
    pub offers: Vec<(usize, Vec<String>)>,
    pub losses: u32,
    pub stands: Stands,
    /// Not offered before, because a trainer of it may run that nobody hears of.
    pub kept_back: Option<Timestamp>,
    /// When an agent was last told that it may go on with it; none if it is known that nothing runs.
    pub renewed: Option<Timestamp>,
}

impl Job {
    pub fn new(ask: Ask, priority: u8, now: Timestamp) -> Self {
        let stands = Stands::Waiting { due: Timestamp(0) };
        let (offers, losses) = (Vec::new(), 0);
        Self { ask, submitted_at: now, priority, offers, losses, stands, kept_back: None, renewed: None }
    }

    /// When it may be offered, if it waits.
    pub fn due(&self) -> Option<Timestamp> {
        let Stands::Waiting { due } = self.stands else { return None };
        Some(due.max(self.kept_back.unwrap_or_default()))
    }

    /// The worker that it keeps from others.
    pub fn holder(&self) -> Option<usize> {
        let holds = !matches!(self.stands, Stands::Waiting { .. } | Stands::Ended(_));
        self.offers.last().filter(|_| holds).map(|(worker, _)| *worker)
    }

    /// The worker of the newest attempt, and its number.
    pub fn newest(&self) -> Newest {
        let number = u32::try_from(self.offers.len()).expect("few");
        self.offers.last().map(|(worker, _)| (*worker, Attempt(number)))
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.stands, Stands::Ended(_))
    }

    /// Its attempt is gone, and its agent has not said so: what it trains may go on for as long as agents may be silent.
    pub fn lose_unheard(&mut self, now: Timestamp) {
        if self.ask.exclusive && self.holder().is_some() {
            self.kept_back = self.kept_back.max(Some(now + HEARTBEAT_TIMEOUT));
        }
        self.lose(now);
    }

    /// Its attempt is gone, and not by its fault.
    fn lose(&mut self, now: Timestamp) {
        match self.stands {
            Stands::Ended(_) => {}
            Stands::Cancelling => self.stands = Stands::Ended(How::Cancelled),
            _ => {
                // While it waits, this attempt's loss was counted, or its offer was never answered.
                self.losses += u32::from(self.holder().is_some());
                let seconds = [10, 10, 20, 40, 80, 160].get(self.losses as usize).copied().unwrap_or(300);
                let due = now + Millis::seconds(seconds);
                let exhausted = self.losses > self.ask.max_retries;
                self.stands = if exhausted { Stands::Ended(How::Failed) } else { Stands::Waiting { due } };
            }
        }
    }

    /// Whether it has trained as long as it may, and is told to stop.
    pub fn overdue(&self, now: Timestamp) -> bool {
        let Stands::Running { since } = self.stands else { return false };
        self.ask.max_runtime.is_some_and(|seconds| now - since >= Millis::seconds(seconds))
    }

    pub fn cancel(&mut self) {
        let runs = matches!(self.stands, Stands::Starting | Stands::Running { .. } | Stands::Cancelling);
        self.stands = if runs { Stands::Cancelling } else { Stands::Ended(How::Cancelled) };
    }

    pub fn put_back(&mut self) {
        self.stands = Stands::Waiting { due: Timestamp(0) };
    }

    /// What the holder of the newest attempt says of it; false if it is refused.
    pub fn hear(&mut self, report: &Report, now: Timestamp) -> bool {
        self.stands = match (self.stands, report) {
            (Stands::Ended(how), said) => return says_the_same(how, said),
            (Stands::Cancelling, Report::Starting | Report::Running) => Stands::Cancelling,
            (Stands::Cancelling, _) => Stands::Ended(How::Cancelled),
            (Stands::Waiting { .. } | Stands::Offered { .. }, Report::Starting) => Stands::Starting,
            (stands, Report::Starting) => stands,
            (Stands::Running { since }, Report::Running) => Stands::Running { since },
            (_, Report::Running) => Stands::Running { since: now },
            (_, Report::Completed) => Stands::Ended(How::Completed),
            (_, Report::Cancelled | Report::Requeue { .. }) if self.overdue(now) => Stands::Ended(How::OverTime),
            (_, Report::Failed { .. }) if !self.ask.retry_on_failure => Stands::Ended(How::Failed),
            (Stands::Waiting { due }, Report::Evicted) => Stands::Waiting { due },
            (_, Report::Evicted) => Stands::Waiting { due: Timestamp(0) },
            (_, Report::Failed { .. } | Report::Cancelled | Report::Requeue { .. }) => {
                self.lose(now);
                self.stands
            }
        };
        true
    }
}

fn says_the_same(how: How, said: &Report) -> bool {
    matches!(
        (how, said),
        (How::OverTime, Report::Failed { .. } | Report::Cancelled | Report::Requeue { .. })
            | (How::Completed, Report::Completed)
            | (How::Failed, Report::Failed { .. })
            | (How::Cancelled, Report::Cancelled)
    )
}
