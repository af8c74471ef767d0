//! Whether this host can run jobs: its trainer starts, and jobs do not fail one after the other.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use app::domain::host_failure_guard::{AttemptEvidence, HostFailureGuard};
use app::domain::time::Timestamp;
use app::threads;
use tokio::sync::{Notify, mpsc};

use crate::worker::clock;
use crate::worker::state::AgentInput;
use crate::worker::trainer_program::{MissingTrainer, find_missing};

/// How often a missing trainer is searched.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct HostHealth {
    trainer: Vec<String>,
    state: Mutex<HealthState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct HealthState {
    missing: Option<MissingTrainer>,
    host_failure_guard: HostFailureGuard,
}

impl HealthState {
    fn unhealthy_reason(&self, now: Timestamp) -> Option<String> {
        let advice = "install it on this host, or set another with --trainer";
        let missing = self.missing.as_ref();
        let missing = missing.map(|missing| format!("the trainer is missing: {missing} ({advice})"));
        missing.or_else(|| self.host_failure_guard.block_reason(now))
    }
}

impl HostHealth {
    /// Checks the trainer once, which takes as long as its Python takes to start.
    pub async fn examine(trainer: &[String]) -> Self {
        let host_health = Self::unchecked(trainer);
        host_health.recheck().await;
        host_health
    }

    /// For a trainer that is assumed to start.
    pub fn unchecked(trainer: &[String]) -> Self {
        Self { trainer: trainer.to_vec(), state: Mutex::default(), changed: Notify::new() }
    }

    /// Checks the trainer periodically while it is missing. Once it is found, the agent must restart, because the
    /// sandbox needs to know its files.
    pub async fn watch(&self, inbox: mpsc::Sender<AgentInput>) {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let is_installed = self.state().missing.is_some() && self.find_missing().await.is_none();
            if is_installed && inbox.send(AgentInput::TrainerAdded).await.is_err() {
                return;
            }
        }
    }

    /// Checks the trainer now.
    pub async fn recheck(&self) {
        let found = self.find_missing().await;
        self.update(|state| state.missing = found);
    }

    async fn find_missing(&self) -> Option<MissingTrainer> {
        let trainer = self.trainer.clone();
        // If the check cannot run, the result is unknown.
        threads::run_blocking(move || find_missing(&trainer)).await.unwrap_or_default()
    }

    /// Records the end of an attempt.
    pub fn record_exit(&self, evidence: AttemptEvidence<'_>) {
        self.update(|state| {
            state.host_failure_guard = std::mem::take(&mut state.host_failure_guard).record(clock::now(), evidence);
        });
    }

    /// Resets the failures after a user has checked the host.
    pub fn reset(&self) {
        self.update(|state| state.host_failure_guard = HostFailureGuard::default());
    }

    /// Why no new jobs are accepted, if so.
    pub fn unhealthy_reason(&self) -> Option<String> {
        self.state().unhealthy_reason(clock::now())
    }

    /// Waits until the reason has changed since the last call.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut HealthState)) {
        let mut state = self.state();
        let now = clock::now();
        let before = state.unhealthy_reason(now);
        change(&mut state);
        let after = state.unhealthy_reason(now);
        if after == before {
            return;
        }
        if let Some(reason) = after {
            tracing::error!("accepting no new jobs: {reason}");
        } else {
            tracing::info!("the host can run jobs again: accepting jobs");
        }
        self.changed.notify_one();
    }
}
