//! Metrics of the fleet's current state, from memory, and counters of the writer.

use std::collections::BTreeMap;

use app::domain::audit::verify::ChainHead;
use app::domain::time::Millis;
use app::domain::worker::WorkerState;
use app::protocol::gpus::GpuCounts;
use app::protocol::status::{GpuState, JobStatus, WorkerStatus};

use crate::service::ServiceContext;
use crate::service::context::presence::{last_seen, written_contact};
use crate::service::error::ServiceError;
use crate::service::system::SystemService;
use crate::service::workers::gpu_views::gpu_counts;
use crate::service::workers::views::worker_status;
use crate::store::cache::fleet_worker::FleetWorker;
use crate::store::cache::state::FleetState;
use crate::store::commit_group::GroupResult;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetMetrics {
    /// The number of workers per state.
    pub workers: BTreeMap<WorkerStatus, u64>,
    /// The number of GPUs of connected workers per state; an unavailable GPU counts as unavailable, even if allocated.
    pub gpus: BTreeMap<GpuState, u64>,
    /// The number of jobs per state, without final states.
    pub jobs: BTreeMap<JobStatus, u64>,
    /// The age of the oldest queued job since its submit; zero if none is queued.
    pub oldest_queued_age: Millis,
    /// The number of workers whose agent does not verify this server's certificate.
    pub unverified_agents: u64,
    /// The longest silence of a connected worker.
    pub longest_silence: Millis,
    /// The number of entries of the audit log.
    pub audit_entries: u64,
}

impl ServiceContext {
    /// Counts the result of a group commit.
    pub fn record_commit(&self, result: GroupResult) {
        match result {
            GroupResult::Committed { duration, members, has_writes } => {
                let now = self.now();
                self.metrics.commits.record(duration, members, has_writes, now);
                self.metrics.dispatch.commit(now);
            }
            GroupResult::RolledBack => {
                self.metrics.commits.rolled_back.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                self.metrics.dispatch.discard();
            }
        }
    }
}

impl SystemService {
    /// Computes the fleet metrics.
    pub async fn fleet_metrics(&self) -> Result<FleetMetrics, ServiceError> {
        let mut tx = self.context.read_recent().await?;
        let metrics = tx.with_state(|fleet_state| self.compute_fleet_metrics(fleet_state)).await?;
        let heads = tx.audit_heads().await?;
        let length = |head: &ChainHead| (head.newest.seq - head.removed.seq).max(0).unsigned_abs();
        Ok(FleetMetrics { audit_entries: heads.values().map(length).sum(), ..metrics })
    }

    fn compute_fleet_metrics(&self, fleet_state: &FleetState) -> FleetMetrics {
        let now = self.context.now();
        let mut metrics = FleetMetrics::default();
        let open_statuses = JobStatus::ALL.iter().filter(|status| !status.is_terminal());
        metrics.jobs.extend(open_statuses.map(|status| (*status, 0)));
        metrics.workers.extend(WorkerStatus::ALL.iter().map(|status| (*status, 0)));
        let mut gpus = GpuCounts::default();
        for FleetWorker { stored, state, gpus: own_gpus, .. } in fleet_state.workers() {
            *metrics.workers.entry(worker_status(*state)).or_default() += 1;
            gpus.add_all(gpu_counts(*own_gpus));
            if *state == WorkerState::Offline {
                continue;
            }
            let unverified = stored.worker.capability().is_some_and(|capability| capability.tls_verify == Some(false));
            metrics.unverified_agents += u64::from(unverified);
            // The written contact is at most a few seconds old, so most workers need no look-up of a newer one.
            let written_at = written_contact(&self.context, stored);
            let may_be_longest = written_at.is_none_or(|written_at| now - written_at > metrics.longest_silence);
            if let Some(seen_at) = may_be_longest.then(|| last_seen(&self.context, stored)).flatten() {
                metrics.longest_silence = metrics.longest_silence.max(now - seen_at);
            }
        }
        let connected = |state: &&GpuState| **state != GpuState::NotConnected;
        metrics.gpus.extend(GpuState::ALL.iter().filter(connected).map(|state| (*state, gpus.count(*state))));
        for job in fleet_state.jobs() {
            *metrics.jobs.entry(job.state.status()).or_default() += 1;
            if job.is_queued() {
                metrics.oldest_queued_age = metrics.oldest_queued_age.max(now - job.submitted_at);
            }
        }
        metrics
    }
}
