//! Settings of the server that use cases follow.

pub mod accounts;
pub mod job_retention;
pub mod rate_quotas;
pub mod usage_limits;

use app::domain::matching::Candidate;
use app::domain::plan::{ConcurrencyLimits, PlannerFleet};
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::Worker;

use self::accounts::AccountPolicy;
use self::job_retention::JobRetention;
use self::rate_quotas::RateQuotas;
use self::usage_limits::UsageLimits;
use crate::store::cache::state::FleetState;

#[derive(Debug, Clone, Copy)]
pub struct ServerPolicy {
    /// A worker that was silent for this time counts as offline (`SIMPLETUNER_HEARTBEAT_TIMEOUT`).
    pub heartbeat_timeout: Millis,
    /// How long a worker may take to answer an offer.
    pub offer_timeout: Millis,
    /// Limits of concurrent jobs.
    pub limits: ConcurrencyLimits,
    /// Whether labels that agents report are ignored.
    pub ignore_reported_labels: bool,
    /// Whether configurations may contain code.
    pub allow_code: bool,
    /// The maximum number of open worker streams on this server.
    pub max_streams: usize,
    /// A leader that does not renew within this time loses the leadership.
    pub leader_term: Millis,
    /// A server that was silent for this time counts as stopped, and its streams as closed.
    pub server_life: Millis,
    /// How long audit entries are kept; `None`: forever.
    pub audit_retention: Option<Millis>,
    /// Rate limits.
    pub quotas: RateQuotas,
    /// How long jobs and their files are kept.
    pub retention: JobRetention,
    /// The maximum size of an artifact, in bytes.
    pub artifact_limit: u64,
    /// The maximum length of an attempt's log, in bytes, including what its worker had to drop.
    pub log_limit: u64,
    /// The maximum number of files per job.
    pub max_artifacts: u64,
    /// Usage limits of users, jobs and workers.
    pub usage_limits: UsageLimits,
    /// Lifetimes of sessions and tokens.
    pub accounts: AccountPolicy,
}

impl Default for ServerPolicy {
    fn default() -> Self {
        Self {
            heartbeat_timeout: Millis::from_secs(120),
            offer_timeout: Millis::from_secs(30),
            limits: ConcurrencyLimits::default(),
            ignore_reported_labels: false,
            allow_code: false,
            max_streams: 20_000,
            leader_term: Millis::from_secs(6),
            server_life: Millis::from_secs(8),
            audit_retention: None,
            quotas: RateQuotas::default(),
            retention: JobRetention::default(),
            artifact_limit: 64 << 30,
            log_limit: 64 << 30,
            max_artifacts: 100_000,
            usage_limits: UsageLimits::default(),
            accounts: AccountPolicy::default(),
        }
    }
}

impl ServerPolicy {
    /// Returns the fleet for planning and explanations.
    pub fn planner_fleet<'k>(&self, fleet_state: &'k FleetState, now: Timestamp) -> PlannerFleet<'k> {
        let fleet = fleet_state.planner_fleet(self.limits, now);
        if self.ignore_reported_labels { fleet.ignoring_reported_labels() } else { fleet }
    }

    /// Returns the workers that have jobs, for preemption.
    pub fn workers_with_jobs<'k>(&self, fleet_state: &'k FleetState) -> Vec<Candidate<'k>> {
        let use_reported_labels = !self.ignore_reported_labels;
        fleet_state.workers_with_jobs().map(|candidate| candidate.restricted(use_reported_labels)).collect()
    }

    /// The heartbeat interval that agents are told: the smaller of 30 s and a quarter of the timeout.
    pub fn heartbeat_interval_seconds(&self) -> u64 {
        (self.heartbeat_timeout.0 / 4_000).clamp(1, 30).unsigned_abs()
    }

    /// The lease that this agent was told, maybe by a server with another setting.
    pub fn worker_lease(&self, worker: Option<&Worker>) -> Millis {
        let lease = worker.and_then(|worker| worker.lease_duration);
        lease.map_or(self.heartbeat_timeout, |lease| lease.max(self.heartbeat_timeout))
    }
}
