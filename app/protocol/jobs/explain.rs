//! Why a job is pending: `GET /api/queue/{id}/explain`, and a submit with `dry_run`.

use serde::{Deserialize, Serialize};

use crate::domain::ids::WorkerId;
use crate::domain::time::Timestamp;
use crate::protocol::gpu::Unavailable;
use crate::words::wire_words;

/// Why a job is pending, for each worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplanationView {
    /// The result, as a code.
    pub verdict: VerdictCode,
    /// The result, as a sentence.
    pub text: String,
    /// The worker that would run it now (`fits`), or where others are stopped for it (`preempting`).
    pub worker_id: Option<WorkerId>,
    /// When it becomes eligible again (`back_off`, `held`), or when the last job is stopped for it (`preempting`).
    pub until: Option<Timestamp>,
    /// The limit that is reached (`limited`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<ReachedLimitView>,
    /// Number of workers left after each requirement; omitted if the job is not pending, or if there are no workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<FitSummaryView>,
    /// The 50 closest workers; the closest match comes first.
    pub workers: Vec<WorkerExplanationView>,
    /// The number of other workers, by their most relevant blocker; the largest number comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<UnlistedWorkersView>,
}

impl ExplanationView {
    /// Returns the number of workers that are not listed.
    pub fn unlisted_count(&self) -> u64 {
        self.unlisted.iter().map(|unlisted| unlisted.workers).sum()
    }
}

/// Workers that are not listed in an explanation, with the same kind of most relevant blocker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnlistedWorkersView {
    /// The blocker; `null` if they would run the job now.
    pub code: Option<BlockerCode>,
    /// Their number.
    pub workers: u64,
}

/// Number of workers left after each requirement of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitSummaryView {
    /// As a sentence: `8 workers: 3 have site=graz, 0 of them have 16 GPUs.`
    pub text: String,
    /// Total number of workers.
    pub workers: u64,
    /// The requirements in order, until no worker is left.
    pub steps: Vec<FitStepView>,
}

/// Number of workers left after one requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitStepView {
    /// The requirement.
    pub requirement: JobRequirementCode,
    /// The label's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The required value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The number of GPUs (`vram`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Number of the remaining workers that meet it.
    pub remaining: u64,
}

/// A requirement on workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobRequirementCode {
    /// Remote worker (`wanted` is `worker`), or the server's own (`local`).
    Target,
    /// Has the label.
    Label,
    /// Has connected at least once.
    HasConnected,
    /// Has this kind of accelerator.
    Accelerator,
    /// Has this many GPUs.
    GpuCount,
    /// Has this many GPUs with this much memory.
    Vram,
    /// Supports the sandbox level.
    Sandbox,
    /// Has an agent that is not an older one.
    NewerAgent,
    /// Provides directories with these names.
    Paths,
    /// Is connected and accepts new jobs.
    Ready,
    /// Has free GPUs.
    Free,
}

/// The limit that is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReachedLimitView {
    /// The maximum number of jobs; 0 if it limits something else.
    pub jobs: u32,
    /// Whether the limit is per user; otherwise it is for all jobs, or for a team.
    pub per_user: bool,
    /// The limit of a team or of a member of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ReachedShareLimitView>,
}

/// The limit of a team or of a member of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReachedShareLimitView {
    /// The team.
    pub team: String,
    /// Whether it is the limit of the submitting user in the team, and not that of the team.
    pub is_member: bool,
    /// What is limited.
    pub kind: ShareLimitKind,
    /// The limit.
    pub max: u32,
}

/// What a limit of a share is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShareLimitKind {
    /// GPUs at a time.
    Gpus,
    /// GPU-hours of this month.
    GpuHours,
    /// Running jobs.
    RunningJobs,
}

/// Why a job is pending, as a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictCode {
    /// Not pending: the job was offered, is running or has ended.
    NotWaiting,
    /// A worker would run it now.
    Fits,
    /// Its last attempt was lost; it is retried at `until`.
    BackOff,
    /// Exclusive job: a trainer of an earlier attempt may still run until `until`.
    Held,
    /// Running jobs on the worker `worker_id` are stopped so that it can start, the last of them at `until`.
    Preempting,
    /// The limit on running jobs is reached.
    Limited,
    /// Matching workers are busy.
    Busy,
    /// A worker matches but needs the attention of an admin (for example, it is offline).
    WorkerUnavailable,
    /// No known worker meets the job's requirements.
    Unsatisfiable,
    /// Requires the server's own GPUs (`target: local`), but the server runs no jobs itself.
    NoLocalWorker,
    /// There are no workers.
    NoWorkers,
}

/// The scheduling result for one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerExplanationView {
    /// The worker.
    pub worker_id: WorkerId,
    /// Its name.
    pub name: String,
    /// Whether it would run the job now.
    pub fits: bool,
    /// Whether it meets the job's requirements, regardless of its current state. False if it has never connected.
    #[serde(default)]
    pub matches: bool,
    /// All blockers, the most relevant first.
    pub blockers: Vec<BlockerView>,
}

/// A reason why a job does not match a worker, as a code with parameters and as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockerView {
    /// The blocker.
    pub code: BlockerCode,
    /// The label's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What the job requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// What the worker has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Why the worker does not support more, as reported by its agent (`sandbox`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The number of GPUs (`vram`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// The GPUs that would match, and why each is unavailable (`gpus_unavailable`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<UnavailableGpuView>,
    /// The mismatch, as a sentence.
    pub text: String,
    /// The smallest change that would help, as a sentence.
    pub change: String,
}

/// An unavailable GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnavailableGpuView {
    /// Its index on the host.
    pub index: u32,
    /// The reason.
    #[serde(flatten)]
    pub why: Unavailable,
}

wire_words!(
    /// Why a job does not match a worker.
    BlockerCode {
        /// The job requires a remote worker and this is the orchestrator's own, or vice versa.
        WrongTarget = "wrong_target",
        /// A label is missing or has another value.
        Label = "label",
        /// A different kind of accelerator.
        Accelerator = "accelerator",
        /// Too few GPUs.
        GpuCount = "gpu_count",
        /// Too little GPU memory.
        Vram = "vram",
        /// The sandbox level is not supported.
        Sandbox = "sandbox",
        /// Too many of its GPUs are quarantined or in use.
        GpusUnavailable = "gpus_unavailable",
        /// An ephemeral worker that has run its job.
        Retired = "retired",
        /// The job is exclusive, but the worker's older agent cannot stop a trainer by itself.
        CannotStop = "cannot_stop",
        /// Its older agent would not receive all files of the configuration.
        LacksFiles = "lacks_files",
        /// A directory that the configuration needs is not provided.
        LacksPaths = "lacks_paths",
        /// Draining.
        Draining = "draining",
        /// Its agent reports that the host cannot run new jobs.
        HostUnhealthy = "host_unhealthy",
        /// Never connected, so its GPUs are not known.
        NeverConnected = "never_connected",
        /// Offline.
        Offline = "offline",
        /// Connecting.
        Connecting = "connecting",
        /// It runs a job that is not assigned to it.
        UnassignedRun = "unassigned_run",
        /// Its older agent has just reported the end of a job.
        Finishing = "finishing",
        /// It runs as many jobs as it accepts.
        Occupied = "occupied",
        /// Its GPUs are allocated to other jobs.
        GpusBusy = "gpus_busy",
        /// Reserved for a job that has waited longer.
        Reserved = "reserved",
    }
);
