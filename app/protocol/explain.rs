//! Why a job waits: `GET /api/queue/{id}/explain`, and a submit with `dry_run`.

use serde::{Deserialize, Serialize};

use super::gpu::Withheld;
use crate::domain::ids::WorkerId;
use crate::domain::time::Timestamp;

/// Why a job waits, worker by worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplanationView {
    /// In one word.
    pub verdict: VerdictCode,
    /// In one sentence.
    pub text: String,
    /// The worker that takes it now (`fits`).
    pub worker_id: Option<WorkerId>,
    /// When it is tried again (`back_off`, `kept_back`).
    pub until: Option<Timestamp>,
    /// Which limit is reached (`limited`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<JobLimit>,
    /// Every worker, the one that is nearest to taking it first.
    pub workers: Vec<WorkerAnswer>,
}

/// How many jobs may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobLimit {
    /// So many.
    pub jobs: u32,
    /// Whether of one person, and not in all.
    pub per_user: bool,
}

/// Why a job waits, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictCode {
    /// It does not wait: it was offered, runs or has ended.
    NotWaiting,
    /// A worker takes it now.
    Fits,
    /// Its last attempt was lost; it is tried again at `until`.
    BackOff,
    /// It is exclusive, and a trainer of it may run until `until` that nobody hears of.
    KeptBack,
    /// As many jobs run as may.
    Limited,
    /// A worker takes it when it has time.
    Busy,
    /// A worker would take it if somebody saw to that worker.
    Away,
    /// No worker there is can ever take it.
    Never,
    /// There are no workers.
    NoWorkers,
}

/// What one worker says to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerAnswer {
    /// The worker.
    pub worker_id: WorkerId,
    /// Its name.
    pub name: String,
    /// Whether it would take the job now.
    pub fits: bool,
    /// Everything in the way, the most telling first.
    pub blockers: Vec<BlockerView>,
}

/// One thing that keeps a job from a worker, as a code with its parameters and in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockerView {
    /// What it is.
    pub code: BlockerCode,
    /// Which label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What the job asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// What the worker has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Why the worker has no more, in its agent's words (`sandbox`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// On how many GPUs (`vram`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// The GPUs that would do, and why each is not given out (`gpus_withheld`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<WithheldGpu>,
    /// What does not fit, as a sentence.
    pub text: String,
    /// The nearest change that would help, as a sentence.
    pub change: String,
}

/// A GPU that is not given out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WithheldGpu {
    /// Its number on the host.
    pub index: u32,
    /// Why.
    #[serde(flatten)]
    pub why: Withheld,
}

/// What keeps a job from a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BlockerCode {
    /// The job is for remote workers and this is the orchestrator's own, or the other way round.
    WrongTarget,
    /// A label is missing or different.
    Label,
    /// Another kind of accelerator.
    Accelerator,
    /// Fewer GPUs.
    GpuCount,
    /// Less memory.
    Vram,
    /// It cannot confine the trainer as closely.
    Sandbox,
    /// Too few of its GPUs are given out.
    GpusWithheld,
    /// An ephemeral worker that has run its job.
    Spent,
    /// The job is exclusive, and its older agent cannot stop by itself.
    CannotStop,
    /// Its older agent would not get all files of the configuration.
    LacksFiles,
    /// It gives jobs no directory of a name that the configuration needs.
    LacksPaths,
    /// It drains.
    Draining,
    /// Its agent says that the host is fit for no new job.
    Unfit,
    /// It is not connected.
    Offline,
    /// It is about to connect.
    Connecting,
    /// It runs a job that it does not hold.
    Astray,
    /// Its older agent has just reported the end of a job.
    Finishing,
    /// It has as many jobs as it takes.
    Occupied,
    /// Its GPUs are with other jobs.
    GpusBusy,
    /// It is kept free for a job that has waited longer.
    Reserved,
}
