//! What the rules are tested with.

use super::capability::Capability;
use super::gpu::{Gpu, Withheld, WithheldReason, Word};
use super::ids::{JobId, WorkerId};
use super::job::{Checkpoints, Demand, Job, Overrides, Spec, Start, Target};
use super::labels::Labels;
use super::time::{Millis, Timestamp};
use super::worker::{Kind, Worker};

/// The moment at which these stories are told.
pub(crate) const NOW: Timestamp = Timestamp(1_000_000_000);

/// How long an agent may be silent in these stories.
pub(crate) const LEASE: Millis = Millis::seconds(120);

/// A job's demands and nothing unusual besides.
pub(crate) fn spec(demand: Demand) -> Spec {
    Spec {
        config_name: "digits".to_owned(),
        config_revision: 1,
        target: Target::Auto,
        demand,
        num_processes: None,
        max_retries: 3,
        retry_on_failure: false,
        max_runtime: None,
        exclusive: false,
        checkpoints: Checkpoints::Last,
        secrets: None,
        shared_secrets_only: false,
        files: Vec::new(),
        paths: Vec::new(),
        overrides: Overrides::new(),
        start: Start::Newest,
    }
}

/// The `n`-th job, by Ada, submitted at `n` ms before [`NOW`] ends: a smaller `n` is older.
pub(crate) fn job(n: u16, demand: Demand) -> Job {
    Job::submitted(job_id(n), spec(demand), Timestamp(NOW.0 - 60_000 + i64::from(n)), "ada".to_owned())
}

/// The id of the `n`-th job.
pub(crate) fn job_id(n: u16) -> JobId {
    JobId::new(NOW, entropy(n))
}

/// The id of the `n`-th worker.
pub(crate) fn worker_id(n: u16) -> WorkerId {
    WorkerId::new(NOW, entropy(n))
}

fn entropy(n: u16) -> [u8; 10] {
    let [high, low] = n.to_be_bytes();
    [0, 0, 0, 0, 0, 0, 0, 0, high, low]
}

/// GPUs of these sizes in GB, all of one model; 0 for one that does not say.
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

/// An error of a GPU that keeps it from jobs.
pub(crate) fn withheld(detail: &str) -> Withheld {
    Withheld { reason: WithheldReason::Quarantined, detail: detail.to_owned() }
}

/// The worker, with its GPUs of these numbers withheld.
pub(crate) fn withholding(worker: Worker, numbers: &[u32]) -> Worker {
    let gpus = worker.capability().expect("registered").gpus.iter();
    let said = gpus.filter(|gpu| numbers.contains(&gpu.index));
    let said = said.map(|gpu| Word { uuid: gpu.uuid.clone(), withheld: Some(withheld("XID 79")) });
    let said: Vec<Word> = said.collect();
    worker.gpus_said(&said)
}

/// The `n`-th worker: it listens, and has GPUs of these sizes.
pub(crate) fn worker(n: u16, sizes: &[u32], max_jobs: u32) -> Worker {
    let accelerator = if sizes.is_empty() { "cpu" } else { "cuda" }.to_owned();
    let capability =
        Capability { gpus: gpus(n, sizes), accelerator, max_jobs, protocol: Some(1), ..Capability::default() };
    unseen(n).registered(NOW, capability, Kind::Persistent).listening(NOW, "s").expect("registered")
}

/// The `n`-th worker, which nobody has heard of.
pub(crate) fn unseen(n: u16) -> Worker {
    Worker::made(worker_id(n), format!("w{n}"), NOW)
}

/// One label.
pub(crate) fn label(key: &str, value: &str) -> Labels {
    Labels([(key.to_owned(), value.to_owned())].into())
}

/// A demand for so many GPUs.
pub(crate) fn wants(gpu_count: u32) -> Demand {
    Demand { gpu_count: Some(gpu_count), ..Demand::default() }
}
