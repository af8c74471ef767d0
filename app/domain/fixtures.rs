//! Fixtures for the tests of the rules.

use super::capability::Capability;
use super::causes::OfflineCause;
use super::gpu::{Gpu, GpuReport, Unavailable, UnavailableReason};
use super::ids::{JobId, WorkerId};
use super::job::{AttemptLoss, Demand, Job, JobSpec};
use super::labels::Labels;
use super::time::{Millis, Timestamp};
use super::worker::{Worker, WorkerKind};

/// The current time in tests.
pub(crate) const NOW: Timestamp = Timestamp(1_000_000_000);

/// The lease duration in tests.
pub(crate) const LEASE_DURATION: Millis = Millis::from_secs(120);

/// The loss of an attempt whose worker fell silent.
pub(crate) const WORKER_SILENT: AttemptLoss = AttemptLoss::WorkerOffline(OfflineCause::HeartbeatTimeout);

/// A spec with this demand and no other special settings.
pub(crate) fn spec(demand: Demand) -> JobSpec {
    JobSpec { demand, ..JobSpec::new("digits", 1) }
}

/// The `n`-th job, of user `ada`; jobs with a smaller `n` are older.
pub(crate) fn job(n: u16, demand: Demand) -> Job {
    Job::submitted(job_id(n), spec(demand), Timestamp(NOW.0 - 60_000 + i64::from(n)), "ada".to_owned())
}

pub(crate) fn job_id(n: u16) -> JobId {
    JobId::new(NOW, entropy(n))
}

pub(crate) fn worker_id(n: u16) -> WorkerId {
    WorkerId::new(NOW, entropy(n))
}

fn entropy(n: u16) -> [u8; 10] {
    let [high, low] = n.to_be_bytes();
    [0, 0, 0, 0, 0, 0, 0, 0, high, low]
}

/// GPUs of one model with these memory sizes in GB; 0 for a GPU that does not report its memory.
pub(crate) fn gpus(owner: u16, sizes: &[u32]) -> Vec<Gpu> {
    let gpu = |(index, gb): (usize, &u32)| Gpu {
        index: u32::try_from(index).expect("few"),
        uuid: format!("GPU-{owner}-{index}"),
        name: format!("A{gb}"),
        vram_gb: (*gb > 0).then(|| f64::from(*gb)),
        ..Gpu::default()
    };
    sizes.iter().enumerate().map(gpu).collect()
}

/// A quarantined GPU's reason.
pub(crate) fn unavailable(detail: &str) -> Unavailable {
    Unavailable { reason: UnavailableReason::Quarantined, detail: detail.to_owned() }
}

/// The worker with the GPUs of these indexes quarantined.
pub(crate) fn with_unavailable_gpus(worker: Worker, numbers: &[u32]) -> Worker {
    let gpus = worker.capability().expect("registered").gpus.iter();
    let reports = gpus.filter(|gpu| numbers.contains(&gpu.index));
    let reports = reports.map(|gpu| GpuReport { uuid: gpu.uuid.clone(), unavailable: Some(unavailable("XID 79")) });
    let reports: Vec<GpuReport> = reports.collect();
    worker.gpus_reported(&reports)
}

/// The `n`-th worker: online, with GPUs of these sizes.
pub(crate) fn worker(n: u16, sizes: &[u32], max_jobs: u32) -> Worker {
    let accelerator = if sizes.is_empty() { "cpu" } else { "cuda" }.to_owned();
    let capability =
        Capability { gpus: gpus(n, sizes), accelerator, max_jobs, protocol: Some(1), ..Capability::default() };
    unseen_worker(n).registered(NOW, capability, WorkerKind::Persistent).stream_opened(NOW, "s").expect("registered")
}

/// The `n`-th worker, which has never connected.
pub(crate) fn unseen_worker(n: u16) -> Worker {
    Worker::new(worker_id(n), format!("w{n}"), NOW)
}

pub(crate) fn label(key: &str, value: &str) -> Labels {
    Labels([(key.to_owned(), value.to_owned())].into())
}

pub(crate) fn gpu_demand(gpu_count: u32) -> Demand {
    Demand { gpu_count: Some(gpu_count), ..Demand::default() }
}
