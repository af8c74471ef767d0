//! What the agent's loop reports in each iteration. Nothing else notifies the service manager, so a hung loop is
//! noticed.

use std::sync::Arc;
use std::time::Duration;

use app::protocol::agents::RunningAttempt;
use tokio::sync::watch;
use tokio::time::Instant;

use super::idle_timer::IdleTimer;
use super::sd_notify::ServiceNotifier;
use super::status_line::StatusLine;
use crate::worker::context::AgentContext;
use crate::worker::files::AttemptKey;
use crate::worker::session::OrchestratorReach;
use crate::worker::state::AgentInput;
use crate::worker::terminal;

/// Update interval in a terminal.
const LIVE_INTERVAL: Duration = Duration::from_secs(1);
/// Update interval for a service manager without a watchdog.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct StatusReporter {
    context: Arc<AgentContext>,
    orchestrator_reach: watch::Receiver<OrchestratorReach>,
    manager: Option<ServiceNotifier>,
    idle: Option<IdleTimer>,
    /// Update interval; `None` if there is no recipient.
    period: Option<Duration>,
    last_update: Instant,
    ready: bool,
    is_stopping: bool,
    status: String,
    /// Whether the log says that the orchestrator considers this worker offline.
    reported_offline: bool,
}

impl StatusReporter {
    /// Reports nothing yet.
    pub fn new(context: Arc<AgentContext>, reach: watch::Receiver<OrchestratorReach>) -> Self {
        let now = Instant::now();
        let manager = ServiceNotifier::from_environment();
        // Twice within the watchdog's timeout.
        let watchdog = manager.as_ref().and_then(|manager| manager.watchdog).map(|limit| limit / 3);
        let idle_interval = manager.as_ref().map(|_| IDLE_INTERVAL);
        let live = terminal::is_enabled().then_some(LIVE_INTERVAL);
        Self {
            idle: context.config.shutdown.max_idle.map(|limit| IdleTimer::new(limit, now)),
            context,
            orchestrator_reach: reach,
            manager,
            period: [watchdog, idle_interval, live].into_iter().flatten().min(),
            last_update: now,
            ready: false,
            is_stopping: false,
            status: String::new(),
            reported_offline: false,
        }
    }

    /// Waits until [`Self::update`] has something to do. Cancel-safe.
    pub async fn wait_until_due(&mut self) {
        let next = self.period.map(|period| self.last_update + period);
        let idle_end = self.idle.as_ref().map(IdleTimer::expires_at).filter(|idle_end| *idle_end > Instant::now());
        let offline_at = self.offline_deadline();
        let wake_at = [next, idle_end, offline_at].into_iter().flatten().min();
        let wait = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wait => {}
            changed = self.orchestrator_reach.changed() => if changed.is_err() {
                // The connection task has ended; the process exits for another reason.
                std::future::pending::<()>().await;
            },
        }
    }

    /// Reports the state. Returns an input for the agent itself, if there is one.
    pub fn update(&mut self, running: &[RunningAttempt]) -> Option<AgentInput> {
        let now = Instant::now();
        self.last_update = now;
        if self.context.status.host_termination_reason().is_some() {
            self.set_stopping();
        }
        let reach = self.orchestrator_reach.borrow_and_update().clone();
        let keys: Vec<AttemptKey> = running.iter().map(AttemptKey::from).collect();
        self.context.status.retain(|key| keys.contains(key));
        let status_line = StatusLine {
            unreachable_since: reach.unreachable_since.map(|(_, at)| at),
            registered: reach.registered,
            is_stopping: self.is_stopping,
            running: keys.iter().map(|key| (key.clone(), self.context.status.progress(key))).collect(),
        };
        terminal::set_status(&status_line.render(true));
        self.notify_manager(&status_line);
        self.report_offline(now);
        let idle = self.idle.as_mut()?;
        if !idle.update(!running.is_empty(), now) || self.is_stopping {
            return None;
        }
        tracing::info!("no job for {} s (--max-idle): exiting", idle.limit().as_secs());
        Some(AgentInput::Idle)
    }

    fn notify_manager(&mut self, status_line: &StatusLine) {
        let Some(manager) = &self.manager else { return };
        let mut lines = Vec::new();
        if status_line.registered && !self.ready {
            self.ready = true;
            lines.push("READY=1".to_owned());
        }
        if !self.ready || self.is_stopping {
            // An unreachable orchestrator, or trainers that save their work, are no reason to be killed.
            let micros = self.period.unwrap_or(IDLE_INTERVAL).max(IDLE_INTERVAL).as_micros() * 3;
            lines.push(format!("EXTEND_TIMEOUT_USEC={micros}"));
        }
        if manager.watchdog.is_some() {
            lines.push("WATCHDOG=1".to_owned());
        }
        let status = status_line.render(false);
        if status != self.status {
            lines.push(format!("STATUS={status}"));
            self.status = status;
        }
        if !lines.is_empty() {
            manager.send(&lines.join("\n"));
        }
    }

    /// The agent was asked to stop, or stops by itself.
    pub fn set_stopping(&mut self) {
        if !self.is_stopping {
            self.is_stopping = true;
            if let Some(manager) = &self.manager {
                manager.send("STOPPING=1");
            }
        }
    }

    fn offline_deadline(&self) -> Option<Instant> {
        let reach = self.orchestrator_reach.borrow();
        let (since, _) = reach.unreachable_since.filter(|_| reach.registered && !self.reported_offline)?;
        Some(since + reach.offline_timeout)
    }

    fn report_offline(&mut self, now: Instant) {
        let Some(offline_at) = self.offline_deadline() else {
            self.reported_offline &= self.orchestrator_reach.borrow().unreachable_since.is_some();
            return;
        };
        if offline_at <= now {
            self.reported_offline = true;
            tracing::warn!(
                "Heartbeat timeout ({}s): the orchestrator considers this worker offline by now. Running jobs \
                continue. Check the network to the orchestrator, and whether this host is short of CPU or memory; \
                on an unreliable network raise SIMPLETUNER_HEARTBEAT_TIMEOUT on the orchestrator",
                self.orchestrator_reach.borrow().offline_timeout.as_secs()
            );
        }
    }
}

/// Removes the status line.
impl Drop for StatusReporter {
    fn drop(&mut self) {
        terminal::clear();
    }
}
