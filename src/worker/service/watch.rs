//! What the agent's loop does at each turn for those who watch it. Nothing else tells the service manager that the loop
//! turns, so if it hangs, that is noticed.

use std::sync::Arc;
use std::time::Duration;

use app::protocol::worker::RunningAttempt;
use tokio::sync::watch;
use tokio::time::Instant;

use super::idle::Idle;
use super::notify::Notify;
use super::terminal;
use super::words::View;
use crate::files::Key;
use crate::session::{Context, Reach};
use crate::state::Input;

/// Between two looks where somebody looks all the time.
const LIVE: Duration = Duration::from_secs(1);
/// Between two looks of a service manager that has no watchdog.
const CALM: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub struct Watch {
    context: Arc<Context>,
    reach: watch::Receiver<Reach>,
    manager: Option<Notify>,
    idle: Option<Idle>,
    /// Between two looks; none where nobody looks.
    period: Option<Duration>,
    last: Instant,
    ready: bool,
    ending: bool,
    status: String,
    /// It was said that the orchestrator takes this worker for offline.
    given_up: bool,
}

impl Watch {
    /// Nothing was told yet.
    pub fn new(context: Arc<Context>, reach: watch::Receiver<Reach>) -> Self {
        let now = Instant::now();
        let manager = Notify::from_environment();
        // Twice in the time after which it takes a service for hung.
        let watchdog = manager.as_ref().and_then(|manager| manager.watchdog).map(|limit| limit / 3);
        let calm = manager.as_ref().map(|_| CALM);
        let live = terminal::is_open().then_some(LIVE);
        Self {
            idle: context.config.ops.max_idle.map(|limit| Idle::new(limit, now)),
            context,
            reach,
            manager,
            period: [watchdog, calm, live].into_iter().flatten().min(),
            last: now,
            ready: false,
            ending: false,
            status: String::new(),
            given_up: false,
        }
    }

    /// Waits for the next moment at which [`Self::turn`] has something to do. May be dropped and called again.
    pub async fn due(&mut self) {
        let next = self.period.map(|period| self.last + period);
        let end = self.idle.as_ref().map(Idle::end).filter(|end| *end > Instant::now());
        let timeout = self.silence_noticed_at();
        let wake = [next, end, timeout].into_iter().flatten().min();
        let wait = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wait => {}
            changed = self.reach.changed() => if changed.is_err() {
                // The connection is over; the process ends for another reason.
                std::future::pending::<()>().await;
            },
        }
    }

    /// Tells everybody how it stands. What it means for the agent itself, if anything.
    pub fn turn(&mut self, running: &[RunningAttempt]) -> Option<Input> {
        let now = Instant::now();
        self.last = now;
        if self.context.shared.end_in_words().is_some() {
            self.ending();
        }
        let reach = self.reach.borrow_and_update().clone();
        let keys: Vec<Key> = running.iter().map(Key::from).collect();
        self.context.shared.keep(|key| keys.contains(key));
        let view = View {
            away_since: reach.away.map(|(_, at)| at),
            registered: reach.registered,
            ending: self.ending,
            running: keys.iter().map(|key| (key.clone(), self.context.shared.progress(key))).collect(),
        };
        terminal::show(&view.words(true));
        self.tell_manager(&view);
        self.notice_silence(now);
        let idle = self.idle.as_mut()?;
        if !idle.look(!running.is_empty(), now) || self.ending {
            return None;
        }
        tracing::info!("no job for {} s (--max-idle): ending", idle.limit().as_secs());
        Some(Input::Idle)
    }

    fn tell_manager(&mut self, view: &View) {
        let Some(manager) = &self.manager else { return };
        let mut lines = Vec::new();
        if view.registered && !self.ready {
            self.ready = true;
            lines.push("READY=1".to_owned());
        }
        if !self.ready || self.ending {
            // An orchestrator that is away, or trainers that save their work, are no reason to be killed.
            let micros = self.period.unwrap_or(CALM).max(CALM).as_micros() * 3;
            lines.push(format!("EXTEND_TIMEOUT_USEC={micros}"));
        }
        if manager.watchdog.is_some() {
            lines.push("WATCHDOG=1".to_owned());
        }
        let status = view.words(false);
        if status != self.status {
            lines.push(format!("STATUS={status}"));
            self.status = status;
        }
        if !lines.is_empty() {
            manager.say(&lines.join("\n"));
        }
    }

    /// The agent was told to end, or does so by itself.
    pub fn ending(&mut self) {
        if !self.ending {
            self.ending = true;
            if let Some(manager) = &self.manager {
                manager.say("STOPPING=1");
            }
        }
    }

    fn silence_noticed_at(&self) -> Option<Instant> {
        let reach = self.reach.borrow();
        let (since, _) = reach.away.filter(|_| reach.registered && !self.given_up)?;
        Some(since + reach.timeout)
    }

    fn notice_silence(&mut self, now: Instant) {
        let Some(noticed) = self.silence_noticed_at() else {
            self.given_up &= self.reach.borrow().away.is_some();
            return;
        };
        if noticed <= now {
            self.given_up = true;
            tracing::warn!(
                "Heartbeat timeout ({}s): the orchestrator takes this worker for offline by now. What runs goes on. Check \
                 the network between here and there, and whether this host is short of CPU or memory; on an unreliable \
                 network raise SIMPLETUNER_HEARTBEAT_TIMEOUT on the orchestrator",
                self.reach.borrow().timeout.as_secs()
            );
        }
    }
}

/// No line stays behind.
impl Drop for Watch {
    fn drop(&mut self) {
        terminal::clear();
    }
}
