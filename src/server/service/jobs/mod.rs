//! Use cases of jobs: submit, cancel, retry, priority.

pub(super) mod attempts;
mod compare;
mod config_values;
pub mod dispatch;
pub(super) mod explain;
mod family;
pub(super) mod fencing_delay;
pub mod fields;
mod files;
pub mod index;
pub mod list;
mod live;
pub(super) mod match_summary;
mod metrics;
pub mod overrides;
pub(super) mod preemption;
pub(super) mod resume_points;
pub mod retention;
pub(super) mod retries;
mod sample_votes;
mod saved_views;
pub mod views;

use std::sync::Arc;

use app::domain::access::{Permission, Permissions};
use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::audit::AuditAction;
use app::domain::ids::JobId;
use app::domain::job::{DescriptionChange, Job, JobDescription, JobSpec, JobTransitionError};
use app::domain::priority::{DEFAULT_PRIORITY, MAX_PRIORITY};
use app::domain::time::{Millis, Timestamp};
use app::protocol::jobs::SubmitJob;
use app::protocol::jobs::submit::DescribeJob;
use app::protocol::topic::Topic;
use serde_json::{Value, json};

use self::fields::{build_spec, check_priority, description, invalid_fields};
use self::index::JobIndexCache;
use self::preemption::FruitlessPass;
use super::ServiceContext;
use super::access::Principal;
use super::error::{InvalidInput, ResourceLimit, ServiceError, require_valid};
use super::shares::{check_class, check_waiting_jobs, resolve_team};
use super::unit_of_work::{Caller, UnitOfWork};
use crate::files::artifacts::ArtifactStore;
use crate::files::logs::LogStore;
use crate::files::uploads::UploadStore;
use crate::store::cache::state::FleetState;
use crate::tokens;

/// The maximum length of an `Idempotency-Key`, in bytes.
const MAX_KEY: usize = 255;
/// The maximum number of users who star a job.
const MAX_STARS: usize = 1_000;
/// How long a key is stored.
const KEY_TTL: Millis = Millis::from_secs(86_400);

/// Jobs and their attempts.
pub struct JobService {
    pub(super) logs: Arc<LogStore>,
    pub(super) artifacts: Arc<ArtifactStore>,
    pub(super) uploads: Arc<UploadStore>,
    pub(super) index: JobIndexCache,
    pub(super) fruitless_pass: FruitlessPass,
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
                    let request = serde_json::to_string(submit).expect("fields that can be serialized");
                    if let Some(job) = find_by_key(unit, key.as_deref(), &request).await? {
                        return Ok(job);
                    }
                    let job = submit_in(unit, id, submit).await?;
                    remember_key(unit, key.as_deref(), &request, job).await
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
            .map_err(|error| redact_config_error(error, principal.permissions.contains(Permission::ConfigView)))?;
        super::secrets::check_secret_names(&mut *tx, &by, submit.secrets.as_deref()).await?;
        check_class(submit.class, |permission| principal.permissions.contains(permission))?;
        let team = tx.with_state(|state| resolve_team(state.shares().teams(), &by, submit.team.as_deref())).await??;
        let id = self.context.next_job_id();
        let spec = JobSpec { team, ..build_spec(submit, &config, self.context.policy.allow_code)? };
        new_job(id, spec, submit, self.context.now(), by)
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

    /// Changes the name, the tags or the notes of a job.
    pub async fn describe(
        self: &Arc<Self>,
        caller: Caller,
        id: JobId,
        describe: DescribeJob,
    ) -> Result<(), ServiceError> {
        let change = Arc::new(description_change(describe));
        self.context
            .change(caller, move |unit| {
                let (id, change) = (id.clone(), Arc::clone(&change));
                Box::pin(async move {
                    let before = unit.job(&id).await?;
                    let description = before.description.clone().changed(&change);
                    let description =
                        description.map_err(|(field, allowed)| InvalidInput::OutOfRange { field, allowed })?;
                    if description != before.description {
                        let after = Job { description, ..before };
                        unit.tx.describe_job(&after).await?;
                        unit.record(AuditAction::JobDescribed, id.as_str(), &described_detail(&after)).await?;
                        unit.notify(Topic::Jobs);
                        unit.notify(Topic::Job(id));
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Adds or removes the user's star of a job.
    pub async fn star(
        self: &Arc<Self>,
        principal: &Principal,
        caller: Caller,
        id: JobId,
        is_starred: bool,
    ) -> Result<(), ServiceError> {
        let user = Arc::<str>::from(principal.name.as_str());
        self.context
            .change(caller, move |unit| {
                let (id, user) = (id.clone(), Arc::clone(&user));
                Box::pin(async move {
                    let mut job = unit.job(&id).await?;
                    let is_changed = if is_starred {
                        if job.starred_by.len() >= MAX_STARS && !job.starred_by.contains(user.as_ref()) {
                            let limit = MAX_STARS as u64;
                            return Err(InvalidInput::TooMuch { items: LimitedItems::Stars, limit }.into());
                        }
                        job.starred_by.insert(user.as_ref().to_owned())
                    } else {
                        job.starred_by.remove(user.as_ref())
                    };
                    if is_changed {
                        unit.tx.star_job(&job).await?;
                        unit.notify(Topic::Jobs);
                        unit.notify(Topic::Job(id));
                    }
                    Ok(())
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

    /// Cancels a job; returns whether it was not cancelled before. A running trainer is stopped by its worker, which
    /// then confirms.
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
    let config = config.map_err(|error| redact_config_error(error, unit.has_permission(Permission::ConfigView)))?;
    super::secrets::check_secret_names(unit.tx, &owner, submit.secrets.as_deref()).await?;
    check_class(submit.class, |permission| unit.has_permission(permission))?;
    let team =
        unit.tx.with_state(|state| resolve_team(state.shares().teams(), &owner, submit.team.as_deref())).await??;
    let spec = JobSpec { team, ..build_spec(submit, &config, unit.context.policy.allow_code)? };
    let job = new_job(id.clone(), spec, submit, unit.now, owner)?;
    let job = Job { trace: Some(unit.trace()), ..job };
    let JobSpec { team, class, .. } = &job.spec;
    let detail = json!({"config": config.name, "revision": config.revision, "target": submit.target, "team": team, "class": class});
    insert_job(unit, &job, detail).await
}

/// Returns the job that this key created, if the request is the same.
pub(super) async fn find_by_key(
    unit: &mut UnitOfWork<'_>,
    key: Option<&str>,
    request: &str,
) -> Result<Option<Job>, ServiceError> {
    let Some(key) = key else { return Ok(None) };
    let actor = unit.actor().to_owned();
    let Some((job_id, stored_digest)) = unit.tx.idempotency_key(&actor, key).await? else { return Ok(None) };
    if stored_digest == tokens::digest(request) {
        unit.job(&job_id).await.map(Some)
    } else {
        Err(ServiceError::IdempotencyKeyReused(key.to_owned()))
    }
}

/// Stores which job a key has created.
pub(super) async fn remember_key(
    unit: &mut UnitOfWork<'_>,
    key: Option<&str>,
    request: &str,
    job: Job,
) -> Result<Job, ServiceError> {
    if let Some(key) = key {
        let actor = unit.actor().to_owned();
        unit.tx.insert_idempotency_key(&actor, key, &tokens::digest(request), &job).await?;
    }
    Ok(job)
}

pub(super) fn check_key(key: Option<&str>) -> Result<(), ServiceError> {
    let is_valid = key.is_none_or(|key| (1..=MAX_KEY).contains(&key.len()));
    if is_valid {
        Ok(())
    } else {
        Err(InvalidInput::OutOfRange {
            field: "Idempotency-Key",
            allowed: AllowedValues::Characters { min: 1, max: MAX_KEY as u64 },
        }
        .into())
    }
}

/// Numbers and inserts a new job, and plans.
pub(super) async fn insert_job(unit: &mut UnitOfWork<'_>, job: &Job, mut detail: Value) -> Result<Job, ServiceError> {
    unit.context.check_disk_space()?;
    let max = unit.context.policy.usage_limits.waiting_jobs_per_user;
    let owner = job.submitted_by.clone();
    let check = |fleet_state: &FleetState| {
        if fleet_state.waiting_count(&owner) >= max {
            return Err(ServiceError::LimitReached(ResourceLimit::WaitingJobs { max }));
        }
        check_waiting_jobs(fleet_state, job)
    };
    unit.tx.with_state(check).await??;
    let number = unit.tx.last_job_number(&job.spec.config_name).await? + 1;
    let job = Job { number: Some(number), ..job.clone() };
    unit.tx.insert_job(&job).await?;
    if !job.spec.overrides.is_empty() {
        detail["overrides"] = json!(self::overrides::to_diff(&job.spec.overrides));
    }
    unit.record(AuditAction::JobSubmitted, job.id.as_str(), &detail).await?;
    unit.notify(Topic::Jobs);
    unit.notify(Topic::Job(job.id.clone()));
    unit.request_planning();
    Ok(job)
}

fn description_change(describe: DescribeJob) -> DescriptionChange {
    let DescribeJob { name, notes, tags, add_tags, remove_tags } = describe;
    DescriptionChange { name, notes, tags, add_tags, remove_tags }
}

/// What the audit log says of a description. Notes may be long, and may be deleted, which an entry cannot be.
fn described_detail(job: &Job) -> Value {
    let JobDescription { name, tags, notes } = &job.description;
    json!({"name": name, "tags": tags, "notes_chars": notes.as_ref().map_or(0, |notes| notes.chars().count())})
}

fn new_job(id: JobId, spec: JobSpec, submit: &SubmitJob, now: Timestamp, by: String) -> Result<Job, ServiceError> {
    let description = description(submit)?;
    Ok(Job { priority: submit.priority, description, ..Job::submitted(id, spec, now, by) })
}

/// The highest priority that the caller may set.
pub(super) fn highest_priority(unit: &UnitOfWork<'_>) -> u8 {
    let can_raise = unit.require_covered(Permissions::from_iter([Permission::QueueManage])).is_ok();
    if can_raise { MAX_PRIORITY } else { DEFAULT_PRIORITY }
}
