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
    /// How many workers are left after each thing that the job asks for; left out if it does not wait, or if there are no
    /// workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryView>,
    /// Every worker, the one that is nearest to taking it first.
    pub workers: Vec<WorkerAnswer>,
}

/// How many workers are left after each thing that a job asks for, in words and in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummaryView {
    /// In a sentence: `8 workers: 3 have site=graz, 0 of them have 16 GPUs.`
    pub text: String,
    /// How many workers there are.
    pub workers: u64,
    /// One thing after the other, until no worker is left.
    pub steps: Vec<SummaryStep>,
}

/// How many workers are left after one thing that a job asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummaryStep {
    /// What is asked of those that were left before.
    pub ask: AskCode,
    /// Which label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How much, or which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// On how many GPUs (`vram`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// How many of them have it.
    pub left: u64,
}

/// What is asked of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AskCode {
    /// To be a remote worker (`wanted` is `worker`), or the server's own (`local`).
    Target,
    /// To have a label.
    Label,
    /// To have connected at least once.
    HasConnected,
    /// To have this kind of accelerator.
    Accelerator,
    /// To have so many GPUs.
    GpuCount,
    /// To have so many GPUs with so much memory.
    Vram,
    /// To confine the trainer as closely.
    Sandbox,
    /// To have an agent that is not an older one.
    NewerAgent,
    /// To give jobs directories of these names.
    Paths,
    /// To be connected and to take new jobs.
    Ready,
    /// To be free.
    Free,
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
    /// No worker can take it as it was submitted, as far as it is known what they have.
    Never,
    /// It is for the server's own GPUs (`target: local`), and the server runs no jobs itself.
    NoLocalWorker,
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
    /// Whether it is what the job asks for, however it stands now. One that has never connected is not known to be.
    #[serde(default)]
    pub matches: bool,
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
    /// It has never connected, so its GPUs are not known.
    NeverConnected,
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
