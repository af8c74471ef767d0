//! Use cases of jobs: submit, cancel, retry, priority.

pub(super) mod attempts;
pub mod dispatch;
pub(super) mod explain;
pub(super) mod fencing_delay;
mod files;
mod live;
pub(super) mod match_summary;
mod metrics;
pub mod overrides;
pub mod retention;
pub(super) mod retries;
pub mod views;

use std::sync::Arc;

use app::domain::access::{Permission, Permissions};
use app::domain::audit::AuditAction;
use app::domain::ids::JobId;
use app::domain::job::{CheckpointUploads, Demand, Job, JobSpec, JobTarget, JobTransitionError, StartPoint};
use app::domain::priority::{DEFAULT_PRIORITY, MAX_PRIORITY};
use app::domain::secret::variable_name;
use app::domain::time::{Millis, Timestamp};
use app::protocol::agents::dispatch::CheckpointPolicy;
use app::protocol::jobs::submit::SubmitJob;
use app::protocol::status::Target as TargetWord;
use app::protocol::topic::Topic;
use serde_json::{Value, json};

use super::ServiceContext;
use super::access::Principal;
use super::error::{InvalidField, InvalidInput, ResourceLimit, ServiceError, require_valid};
use super::unit_of_work::{Caller, UnitOfWork};
use crate::files::artifacts::ArtifactStore;
use crate::files::logs::LogStore;
use crate::files::uploads::UploadStore;
use crate::store::configs::StoredConfig;
use crate::tokens;

const MAX_GPUS: u32 = 64;
const MAX_RETRIES: u32 = 100;
/// The longest maximum run time of an attempt, in seconds: a year.
const MAX_RUNTIME_SECONDS: u32 = 31_536_000;
/// The maximum number of secrets of a job.
const MAX_SECRETS: usize = 64;
/// The maximum length of an `Idempotency-Key`, in bytes.
const MAX_KEY: usize = 255;
/// How long a key is stored.
const KEY_TTL: Millis = Millis::from_secs(86_400);

/// Jobs and their attempts.
pub struct JobService {
    pub(super) logs: Arc<LogStore>,
    pub(super) artifacts: Arc<ArtifactStore>,
    pub(super) uploads: Arc<UploadStore>,
    pub(super) context: Arc<ServiceContext>,
}

impl JobService {
    /// Submits a job. A job that matches no worker waits, with that reason.
    ///
    /// With a `key` (the `Idempotency-Key` header) repeated submits create one job.
    pub async fn submit(
        self: &Arc<Self>,
        caller: Caller,
        submit: SubmitJob,
        key: Option<String>,
    ) -> Result<Job, ServiceError> {
        require_valid(invalid_fields(&submit))?;
        check_key(key.as_deref())?;
        let id = self.context.next_job_id();
        let input = Arc::new((id, submit, key));
        self.context
            .change(caller, move |unit| {
                let input = Arc::clone(&input);
                Box::pin(async move {
                    let (id, submit, key) = &*input;
                    let asked = serde_json::to_string(submit).expect("fields that can be serialized");
                    if let Some(job) = find_by_key(unit, key.as_deref(), &asked).await? {
                        return Ok(job);
                    }
                    let job = submit_in(unit, id, submit).await?;
                    remember_key(unit, key.as_deref(), &asked, job).await
                })
            })
            .await
    }

    /// Builds the job that a submit would create, for a preview.
    pub async fn draft_job(&self, principal: &Principal, submit: &SubmitJob) -> Result<Job, ServiceError> {
        require_valid(invalid_fields(submit))?;
        let (by, mut tx) = (principal.name.clone(), self.context.read().await?);
        let config = super::configs::resolve_revision(&mut *tx, &by, &submit.config_name, submit.config_revision).await;
        let config = config
            .map_err(|refusal| redact_config_error(refusal, principal.permissions.contains(Permission::ConfigView)))?;
        super::secrets::check_secret_names(&mut *tx, &by, submit.secrets.as_deref()).await?;
        let id = self.context.next_job_id();
        Ok(new_job(
            id,
            build_spec(submit, &config, self.context.policy.allow_code)?,
            submit.priority,
            self.context.now(),
            by,
        ))
    }

    /// Changes the priority of a job; returns the previous one.
    pub async fn set_priority(self: &Arc<Self>, caller: Caller, id: JobId, priority: u8) -> Result<u8, ServiceError> {
        check_priority(priority)?;
        self.context
            .change(caller, move |unit| {
                let id = id.clone();
                Box::pin(async move {
                    let before = unit.job(&id).await?;
                    let after = before.clone().prioritized(priority)?;
                    if after != before {
                        unit.tx.update_job(&before, &after).await?;
                        let detail = json!({"before": before.priority, "after": priority});
                        unit.record(AuditAction::JobPrioritized, id.as_str(), &detail).await?;
                        unit.notify(Topic::Jobs);
                        unit.notify(Topic::Job(id));
                        unit.request_planning();
                    }
                    Ok(before.priority)
                })
            })
            .await
    }

    /// Removes idempotency keys after a day.
    pub async fn sweep_idempotency_keys(self: &Arc<Self>) -> Result<(), ServiceError> {
        self.context
            .change(Caller::system(), |unit| {
                Box::pin(async move { Ok(unit.tx.sweep_idempotency_keys(Timestamp(unit.now.0 - KEY_TTL.0)).await?) })
            })
            .await
    }

    /// Cancels a job; returns whether it was not cancelled before. A running trainer is stopped by its worker, which then
    /// confirms.
    pub async fn cancel(self: &Arc<Self>, caller: Caller, id: JobId) -> Result<bool, ServiceError> {
        self.change_state(caller, id, Job::cancelled).await
    }

    /// Applies a transition that a user requests; returns whether it changed the job.
    async fn change_state(
        self: &Arc<Self>,
        caller: Caller,
        id: JobId,
        transition: fn(Job, Timestamp) -> Result<Job, JobTransitionError>,
    ) -> Result<bool, ServiceError> {
        self.context
            .change(caller, move |unit| {
                let id = id.clone();
                Box::pin(async move {
                    let before = unit.job(&id).await?;
                    let after = transition(before.clone(), unit.now)?;
                    unit.save_job(&before, &after).await?;
                    unit.request_planning();
                    Ok(before != after)
                })
            })
            .await
    }
}

/// Hides names of configurations in an error from callers who may not read them.
fn redact_config_error(error: ServiceError, reads_configs: bool) -> ServiceError {
    if reads_configs { error } else { error.without_config_names() }
}

async fn submit_in(unit: &mut UnitOfWork<'_>, id: &JobId, submit: &SubmitJob) -> Result<Job, ServiceError> {
    let owner = unit.owner().to_owned();
    let config = super::configs::resolve_revision(unit.tx, &owner, &submit.config_name, submit.config_revision).await;
    let config = config.map_err(|refusal| redact_config_error(refusal, unit.has_permission(Permission::ConfigView)))?;
    super::secrets::check_secret_names(unit.tx, &owner, submit.secrets.as_deref()).await?;
    let spec = build_spec(submit, &config, unit.context.policy.allow_code)?;
    let job = new_job(id.clone(), spec, submit.priority, unit.now, owner);
    let job = Job { trace: Some(unit.trace()), ..job };
    let detail = json!({"config": config.name, "revision": config.revision, "target": submit.target});
    insert_job(unit, &job, detail).await
}

/// Returns the job that this key created, if the request is the same.
pub(super) async fn find_by_key(
    unit: &mut UnitOfWork<'_>,
    key: Option<&str>,
    request_digest: &str,
) -> Result<Option<Job>, ServiceError> {
    let Some(key) = key else { return Ok(None) };
    let actor = unit.actor().to_owned();
    let Some((made, earlier)) = unit.tx.idempotency_key(&actor, key).await? else { return Ok(None) };
    if earlier == tokens::digest(request_digest) {
        unit.job(&made).await.map(Some)
    } else {
        Err(ServiceError::IdempotencyKeyReused(key.to_owned()))
    }
}

/// Stores which job a key has created.
pub(super) async fn remember_key(
    unit: &mut UnitOfWork<'_>,
    key: Option<&str>,
    request_digest: &str,
    job: Job,
) -> Result<Job, ServiceError> {
    if let Some(key) = key {
        let actor = unit.actor().to_owned();
        unit.tx.insert_idempotency_key(&actor, key, &tokens::digest(request_digest), &job).await?;
    }
    Ok(job)
}

pub(super) fn check_key(key: Option<&str>) -> Result<(), ServiceError> {
    let usable = key.is_none_or(|key| (1..=MAX_KEY).contains(&key.len()));
    if usable {
        Ok(())
    } else {
        Err(InvalidInput::OutOfRange { field: "Idempotency-Key", allowed: "1 to 255 characters" }.into())
    }
}

/// Inserts a new job, and plans.
pub(super) async fn insert_job(unit: &mut UnitOfWork<'_>, job: &Job, mut detail: Value) -> Result<Job, ServiceError> {
    unit.context.check_disk_space()?;
    let most = unit.context.policy.usage_limits.waiting_jobs_per_user;
    let owner = job.submitted_by.clone();
    if unit.tx.with_state(|known| known.waiting_count(&owner)).await? >= most {
        return Err(ServiceError::LimitReached(ResourceLimit::WaitingJobs { max: most }));
    }
    unit.tx.insert_job(job).await?;
    if !job.spec.overrides.is_empty() {
        detail["overrides"] = json!(self::overrides::to_diff(&job.spec.overrides));
    }
    unit.record(AuditAction::JobSubmitted, job.id.as_str(), &detail).await?;
    unit.notify(Topic::Jobs);
    unit.notify(Topic::Job(job.id.clone()));
    unit.request_planning();
    Ok(job.clone())
}

fn new_job(id: JobId, spec: JobSpec, priority: u8, now: Timestamp, by: String) -> Job {
    Job { priority, ..Job::submitted(id, spec, now, by) }
}

pub(super) fn check_secret_count(secrets: Option<&[String]>) -> Result<(), InvalidInput> {
    if secrets.is_some_and(|names| names.len() > MAX_SECRETS) {
        return Err(InvalidInput::TooMuch { what: "secrets", limit: MAX_SECRETS as u64 });
    }
    Ok(())
}

/// The highest priority that the caller may set.
pub(super) fn highest_priority(unit: &UnitOfWork<'_>) -> u8 {
    let may_raise = unit.require_covered(Permissions::from_iter([Permission::QueueManage])).is_ok();
    if may_raise { MAX_PRIORITY } else { DEFAULT_PRIORITY }
}

fn check_priority(priority: u8) -> Result<(), InvalidInput> {
    let usable = priority <= MAX_PRIORITY;
    if usable { Ok(()) } else { Err(InvalidInput::OutOfRange { field: "priority", allowed: "0 to 50" }) }
}

/// Returns the invalid fields of a submit, independent of configurations and workers.
pub fn invalid_fields(submit: &SubmitJob) -> Vec<InvalidField> {
    let out_of = |wrong: bool, field, allowed| wrong.then(|| InvalidField::out_of_range(field, allowed));
    let gpus = submit.gpu_count.is_some_and(|count| !(1..=MAX_GPUS).contains(&count));
    let memory = submit.min_vram_gb.is_some_and(|gb| !(gb > 0.0 && gb < 100_000.0));
    let runtime = submit.max_runtime_seconds.is_some_and(|seconds| !(1..=MAX_RUNTIME_SECONDS).contains(&seconds));
    let known = |word: &String| ["cuda", "rocm", "mps", "xpu", "cpu"].contains(&word.as_str());
    let accelerator = submit.accelerator_type.as_ref().is_some_and(|word| !known(word));
    [
        submit.worker_labels.validate().err().map(|bad| InvalidField::new("worker_labels", bad)),
        check_priority(submit.priority).err().map(|invalid| InvalidField::new("priority", invalid)),
        out_of(gpus, "gpu_count", "1 to 64, or left out"),
        out_of(memory, "min_vram_gb", "more than 0, or left out"),
        out_of(runtime, "max_runtime_seconds", "1 to 31536000 (a year), or left out"),
        check_secret_count(submit.secrets.as_deref()).err().map(|invalid| InvalidField::new("secrets", invalid)),
        out_of(submit.max_retries > MAX_RETRIES, "max_retries", "0 to 100"),
        out_of(accelerator, "accelerator_type", "cuda, rocm, mps, xpu or cpu"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(super) fn secret_variables(names: &[String]) -> Vec<String> {
    names.iter().filter_map(|name| variable_name(name)).collect()
}

fn build_spec(submit: &SubmitJob, config: &Arc<StoredConfig>, allow_code: bool) -> Result<JobSpec, ServiceError> {
    let (overrides, config) = self::overrides::apply(config, &submit.overrides, allow_code)?;
    let num_processes = super::configs::num_processes(&config);
    Ok(JobSpec {
        config_name: config.name.clone(),
        config_revision: config.revision,
        target: match submit.target {
            TargetWord::Auto => JobTarget::Auto,
            TargetWord::Worker => JobTarget::Worker,
            TargetWord::Local => JobTarget::Local,
        },
        demand: Demand {
            labels: submit.worker_labels.clone(),
            gpu_count: submit.gpu_count.or(num_processes.filter(|number| *number > 1)),
            min_vram_gb: submit.min_vram_gb,
            accelerator: submit.accelerator_type.clone(),
            sandbox: submit.sandbox,
        },
        num_processes,
        max_retries: submit.max_retries,
        retry_on_failure: submit.retry_on_failure,
        max_runtime: submit.max_runtime_seconds.map(|seconds| Millis::from_secs(seconds.into())),
        exclusive: submit.exclusive,
        checkpoints: match submit.checkpoints {
            CheckpointPolicy::None => CheckpointUploads::None,
            CheckpointPolicy::Last => CheckpointUploads::Last,
            CheckpointPolicy::All => CheckpointUploads::All,
        },
        secrets: Some(secret_variables(submit.secrets.as_deref().unwrap_or_default())),
        shared_secrets_only: false,
        files: super::configs::named_files(&config),
        paths: super::configs::named_paths(&config),
        overrides,
        start: StartPoint::NewestCheckpoint,
    })
}
