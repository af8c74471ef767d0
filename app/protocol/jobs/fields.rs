//! The fields of a job: as a user submits it, and as the API shows it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::family::JobFamily;
use super::overrides::{self, OverrideDiff, OverrideValues};
use super::{AttemptView, ProgressView};
use crate::domain::allowed_values::AllowedValues;
use crate::domain::causes::LossCode;
use crate::domain::ids::{AttemptNumber, JobId, WorkerId};
use crate::domain::job_share::{DEFAULT_TEAM, JobClass};
use crate::domain::labels::Labels;
use crate::domain::priority::{DEFAULT_PRIORITY, MAX_PRIORITY};
use crate::domain::sandbox::SandboxLevel;
use crate::domain::time::Timestamp;
use crate::protocol::agents::dispatch::CheckpointPolicy;
use crate::protocol::artifacts::ResumePointView;
use crate::protocol::status::{JobStatus, Target};

/// `POST /api/queue/submit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubmitJob {
    /// The configuration to run.
    pub config_name: String,
    /// Where it may run.
    #[serde(default = "default_target")]
    pub target: Target,
    /// Labels that the worker must have; values can be globs.
    #[serde(default)]
    pub worker_labels: Labels,
    /// Number of GPUs; if omitted, the configuration's `num_processes` if it is greater than 1, else one slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// Minimum memory of each GPU in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_vram_gb: Option<f64>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator_type: Option<String>,
    /// How many times a lost attempt is retried.
    #[serde(default = "default_max_retries")]
    pub max_retries: u32,
    /// Whether the job is also retried when the trainer fails.
    #[serde(default)]
    pub retry_on_failure: bool,
    /// Time limit of an attempt in seconds: the trainer is then stopped and the job fails. If omitted, there is no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_seconds: Option<u32>,
    /// Names of the secrets that the job gets; if omitted, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
    /// Whether two trainers of the job must never run at the same time: an agent that loses contact stops its trainer
    /// before its lease expires, and no other attempt starts before that. Older agents cannot do that and are not
    /// offered the job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// The minimum sandbox level of the trainer. A higher level of the worker takes precedence.
    #[serde(default, skip_serializing_if = "SandboxLevel::is_none")]
    pub sandbox: SandboxLevel,
    /// Which checkpoints are uploaded, so that an attempt on another worker can resume.
    #[serde(default)]
    pub checkpoints: CheckpointPolicy,
    /// The priority, 0 to 50.
    #[serde(default = "default_priority")]
    pub priority: u8,
    /// The team that it counts for; if omitted, the one that you joined first, else `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// `urgent` (before all others; requires `job.urgent`), `normal` or `idle` (only on GPUs that no other job can use).
    #[serde(default, skip_serializing_if = "JobClass::is_normal")]
    pub class: JobClass,
    /// The revision to run; if omitted, the newest. Required if another user has changed the configuration since your
    /// last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_revision: Option<u32>,
    /// Values of `config.json` to override for this job, by key; `null` removes a key.
    #[serde(default, skip_serializing_if = "OverrideValues::is_empty")]
    pub overrides: OverrideValues,
    /// A name, not necessarily unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tags, by which the job can be found.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Validates the request and explains its scheduling without submitting.
    #[serde(default)]
    pub dry_run: bool,
}

fn default_priority() -> u8 {
    DEFAULT_PRIORITY
}

fn default_team() -> String {
    DEFAULT_TEAM.to_owned()
}

fn default_target() -> Target {
    Target::Auto
}

fn default_max_retries() -> u32 {
    3
}

impl SubmitJob {
    /// The allowed numbers of GPUs.
    pub const GPU_COUNTS: AllowedValues = AllowedValues::OptionalNumber { min: 1, max: 64 };
    /// The allowed priorities.
    pub const PRIORITIES: AllowedValues = AllowedValues::Number { min: 0, max: MAX_PRIORITY as u64 };
    /// The allowed numbers of retries.
    pub const RETRIES: AllowedValues = AllowedValues::Number { min: 0, max: 100 };

    /// Creates a submit with all defaults.
    pub fn new(config_name: &str) -> Self {
        Self {
            config_name: config_name.to_owned(),
            target: default_target(),
            worker_labels: Labels::default(),
            gpu_count: None,
            min_vram_gb: None,
            accelerator_type: None,
            max_retries: default_max_retries(),
            retry_on_failure: false,
            max_runtime_seconds: None,
            secrets: None,
            exclusive: false,
            sandbox: SandboxLevel::None,
            checkpoints: CheckpointPolicy::Last,
            priority: default_priority(),
            team: None,
            class: JobClass::Normal,
            config_revision: None,
            overrides: OverrideValues::new(),
            name: None,
            tags: BTreeSet::new(),
            notes: None,
            dry_run: false,
        }
    }

    /// Returns the submit that creates the same job again. Overrides are known only if the job was requested alone.
    pub fn from_job(job: &JobView) -> Self {
        Self {
            config_name: job.config_name.clone(),
            target: job.target,
            worker_labels: job.worker_labels.clone(),
            gpu_count: job.gpu_count,
            min_vram_gb: job.min_vram_gb,
            accelerator_type: job.accelerator_type.clone(),
            max_retries: job.max_attempts.saturating_sub(1),
            retry_on_failure: job.retry_on_failure,
            max_runtime_seconds: job.max_runtime_seconds.and_then(|seconds| u32::try_from(seconds).ok()),
            secrets: job.secrets.clone().filter(|names| !names.is_empty()),
            exclusive: job.exclusive,
            sandbox: job.sandbox,
            checkpoints: job.checkpoints,
            priority: job.priority,
            team: Some(job.team.clone()),
            class: job.class,
            config_revision: Some(job.config_revision),
            overrides: overrides::to_values(&job.overrides),
            name: job.name.clone(),
            tags: job.tags.clone(),
            // They are about the result of that job, and may be too long for an address.
            notes: None,
            dry_run: false,
        }
    }

    /// A submit with no field at its default, for tests.
    #[cfg(any(test, feature = "native"))]
    pub fn example() -> Self {
        Self {
            config_name: "digits".to_owned(),
            target: Target::Worker,
            worker_labels: Labels([("gpu_type".to_owned(), "a100*".to_owned())].into()),
            gpu_count: Some(2),
            min_vram_gb: Some(39.5),
            accelerator_type: Some("cuda".to_owned()),
            max_retries: 1,
            retry_on_failure: true,
            max_runtime_seconds: Some(5_400),
            secrets: Some(vec!["HF_TOKEN".to_owned(), "WANDB_API_KEY".to_owned()]),
            exclusive: true,
            sandbox: SandboxLevel::Full,
            checkpoints: CheckpointPolicy::None,
            priority: 7,
            team: Some("vision".to_owned()),
            class: JobClass::Idle,
            config_revision: Some(3),
            overrides: [("learning_rate".to_owned(), 0.1.into())].into(),
            name: Some("rank 16".to_owned()),
            tags: ["ablation".to_owned(), "night".to_owned()].into(),
            notes: Some("Compare with Monday.".to_owned()),
            dry_run: true,
        }
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub struct JobView {
    /// The job's ID.
    pub job_id: JobId,
    /// Its status.
    pub status: JobStatus,
    /// Since when it has this status.
    pub status_since: Timestamp,
    /// The configuration it runs.
    pub config_name: String,
    /// The configuration's revision, pinned at submit.
    pub config_revision: u32,
    /// Its number among the jobs of its configuration, from 1; null if a version without numbers created it.
    #[serde(default)]
    pub number: Option<u32>,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeSet<String>,
    /// The users who have starred it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub starred_by: BTreeSet<String>,
    /// Its notes: only if a single job is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Where the job may run.
    pub target: Target,
    /// The worker labels that it requires.
    pub worker_labels: Labels,
    /// Number of GPUs that it requires.
    pub gpu_count: Option<u32>,
    /// Minimum memory of each GPU in GB.
    pub min_vram_gb: Option<f64>,
    /// The kind of accelerator that it requires.
    pub accelerator_type: Option<String>,
    /// Whether the job is also retried when the trainer fails.
    #[serde(default)]
    pub retry_on_failure: bool,
    /// Time limit of an attempt's trainer, in seconds.
    pub max_runtime_seconds: Option<u64>,
    /// Names of the secrets that the job gets; null for a job of an earlier version, which gets all that its owner can
    /// use.
    #[serde(default)]
    pub secrets: Option<Vec<String>>,
    /// Whether the job gets shared secrets only: another user retried it without naming secrets.
    #[serde(default)]
    pub shared_secrets_only: bool,
    /// Whether two trainers of the job must never run at the same time.
    #[serde(default)]
    pub exclusive: bool,
    /// The minimum sandbox level of its trainer.
    #[serde(default)]
    pub sandbox: SandboxLevel,
    /// Which checkpoints are uploaded.
    #[serde(default)]
    pub checkpoints: CheckpointPolicy,
    /// The priority, 0 to 50.
    pub priority: u8,
    /// The team that it counts for.
    #[serde(default = "default_team")]
    pub team: String,
    /// Its class: `urgent`, `normal` or `idle`.
    #[serde(default)]
    pub class: JobClass,
    /// The job that this one retries.
    pub retry_of: Option<JobId>,
    /// Where a retry starts: `scratch`, `newest`, or a checkpoint's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<String>,
    /// Values of the configuration that this job overrides: only if a single job is requested.
    #[serde(default, skip_serializing_if = "OverrideDiff::is_empty")]
    pub overrides: OverrideDiff,
    /// The checkpoints that it can be resumed or forked from, newest first: only if a single job is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumable: Vec<ResumePointView>,
    /// The newest completed job of the same configuration, to compare a failed one with: only if a single job is
    /// requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completed: Option<JobId>,
    /// The job with the jobs that it comes from and those that come from it; only if a single job is requested, and it
    /// has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<JobFamily>,
    /// The newest attempt; 0 before the first.
    pub attempt: AttemptNumber,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// The worker that has the job, or had it last.
    pub worker_id: Option<WorkerId>,
    /// That worker's name.
    pub worker_name: Option<String>,
    /// Whether that worker's agent is an older one, which sends no progress, samples or log: only if a single job is
    /// requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub older_agent: bool,
    /// When it was submitted.
    pub submitted_at: Timestamp,
    /// Who submitted it.
    pub submitted_by: String,
    /// When the worker accepted the newest attempt.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When a job whose attempt was lost is offered again, at the earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The user who cancelled it, if the audit log still has the entry: only if a single job is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
    /// Its position in the queue, from 1.
    pub queue_position: Option<u64>,
    /// Whether it is pending and no worker meets its requirements.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fits_none: bool,
    /// Progress of the newest attempt.
    pub progress: Option<ProgressView>,
    /// The columns `metric.NAME`, numbers or `"NaN"`, and `config.KEY`, texts, with which a list was requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Value>,
    /// Why it failed or was requeued: the first line is the summary, further lines are details.
    pub error: Option<String>,
    /// Why its last attempt was lost, if it was requeued or failed because of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_code: Option<LossCode>,
    /// The line of the newest attempt's log with the error, from 1, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_line: Option<u64>,
    /// All attempts, oldest first: only if a single job is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<AttemptView>>,
}

impl JobView {
    /// Returns what users call a job that has no name: `flux-lora #42`.
    pub fn numbered_config(&self) -> String {
        match self.number {
            Some(number) => format!("{} #{number}", self.config_name),
            None => self.config_name.clone(),
        }
    }

    /// Returns its name, or what it is called without one.
    pub fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.numbered_config())
    }

    /// A job with all fields, those of [`SubmitJob::example`] among them, for tests. No job has all of them at once.
    #[cfg(any(test, feature = "native"))]
    pub fn example() -> Self {
        let submit = SubmitJob::example();
        let change = |(key, to)| (key, overrides::OverrideChange { from: None, to: Some(to) });
        let job_id = JobId::new(Timestamp(1_705_314_600_000), [1; 10]);
        let worker_id = WorkerId::new(Timestamp(1_705_314_600_000), [3; 10]);
        let checkpoint =
            ResumePointView { job_id: job_id.clone(), attempt: AttemptNumber(2), name: "checkpoint-125".to_owned() };
        Self {
            job_id,
            status: JobStatus::Queued,
            status_since: Timestamp(1_705_314_600_000),
            config_name: submit.config_name,
            config_revision: 3,
            number: Some(42),
            name: submit.name,
            tags: submit.tags,
            starred_by: ["eve".to_owned()].into(),
            notes: submit.notes,
            target: submit.target,
            worker_labels: submit.worker_labels,
            gpu_count: submit.gpu_count,
            min_vram_gb: submit.min_vram_gb,
            accelerator_type: submit.accelerator_type,
            retry_on_failure: submit.retry_on_failure,
            max_runtime_seconds: submit.max_runtime_seconds.map(u64::from),
            secrets: submit.secrets,
            shared_secrets_only: true,
            exclusive: submit.exclusive,
            sandbox: submit.sandbox,
            checkpoints: submit.checkpoints,
            priority: submit.priority,
            team: submit.team.unwrap_or_default(),
            class: submit.class,
            retry_of: Some(JobId::new(Timestamp(1_705_310_000_000), [2; 10])),
            resume_from: Some("newest".to_owned()),
            overrides: submit.overrides.into_iter().map(change).collect(),
            resumable: vec![checkpoint],
            last_completed: Some(JobId::new(Timestamp(1_705_310_000_000), [3; 10])),
            family: Some(JobFamily::example()),
            attempt: AttemptNumber(2),
            max_attempts: submit.max_retries + 1,
            worker_id: Some(worker_id.clone()),
            worker_name: Some("gpu-1".to_owned()),
            older_agent: true,
            submitted_at: Timestamp(1_705_314_600_000),
            submitted_by: "ada".to_owned(),
            started_at: Some(Timestamp(1_705_314_720_000)),
            ended_at: Some(Timestamp(1_705_318_200_000)),
            retry_at: Some(Timestamp(1_705_318_260_000)),
            cancelled_by: Some("eve".to_owned()),
            queue_position: Some(1),
            fits_none: true,
            progress: Some(ProgressView::example()),
            values: [("metric.val/loss".to_owned(), 0.75.into())].into(),
            error: Some("ValueError: no images".to_owned()),
            loss_code: Some(LossCode::TrainerFailed),
            error_line: Some(17),
            attempts: Some(vec![AttemptView::example(worker_id)]),
        }
    }
}
