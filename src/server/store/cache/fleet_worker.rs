//! A worker in memory, with its leases.

use std::cmp::Reverse;
use std::sync::Arc;

use app::domain::alerts;
use app::domain::gpu::GpuTally;
use app::domain::ids::WorkerId;
use app::domain::job::{Job, Lease};
use app::domain::matching::{Candidate, has_capacity};
use app::domain::plan;
use app::domain::time::Timestamp;
use app::domain::worker::{Worker, WorkerState};

use crate::store::workers::StoredWorker;

/// A worker with its leases, and what lists and metrics need of all workers: without access to the worker itself,
/// because a large fleet exceeds the processor's caches.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetWorker {
    pub stored: Arc<StoredWorker>,
    /// The jobs with a lease on it, ordered by submit.
    pub jobs: Vec<Arc<Job>>,
    pub state: WorkerState,
    pub gpus: GpuTally,
    /// See [`alerts::no_alert_before`].
    pub no_alert_before: Timestamp,
}

impl FleetWorker {
    pub(super) fn new(stored: Arc<StoredWorker>, jobs: Vec<Arc<Job>>) -> Self {
        let worker = &stored.worker;
        let is_leased = |uuid: &str| jobs.iter().any(|job| job.holds_gpu(uuid));
        let (state, gpus) =
            (worker.state(jobs.len()), worker.gpu_availability(is_leased).map(|(_, gpu)| gpu).collect());
        Self { no_alert_before: no_alert_before(&stored), stored, jobs, state, gpus }
    }

    pub fn worker(&self) -> &Worker {
        &self.stored.worker
    }

    pub(super) fn has_capacity(&self) -> bool {
        has_capacity(self.worker(), self.jobs.len())
    }

    /// The worker in planning.
    pub(super) fn candidate(&self) -> Candidate<'_> {
        let leases = self.jobs.iter().filter_map(|job| job.active_lease());
        Candidate::new(self.worker(), leases.map(Lease::gpu_uuids).collect())
    }

    pub(super) fn order_key(&self) -> WorkerOrderKey {
        let (has_capacity, local, has_gpus, gpus, since, name) = plan::worker_sort_key(self.worker(), self.jobs.len());
        ((has_capacity, local, has_gpus, gpus, since, name.to_owned()), self.worker().id.clone())
    }
}

pub(super) fn no_alert_before(stored: &StoredWorker) -> Timestamp {
    alerts::no_alert_before(&stored.worker, &stored.credential, env!("CARGO_PKG_VERSION"))
}

/// The order in which planning tries workers; see [`plan::worker_sort_key`].
pub(super) type WorkerOrderKey = ((Reverse<bool>, bool, Reverse<bool>, usize, Timestamp, String), WorkerId);
