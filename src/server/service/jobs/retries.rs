//! Retries of ended jobs, and forks of jobs from their checkpoints.

use std::sync::Arc;

use app::domain::allowed_values::AllowedValues;
use app::domain::ids::JobId;
use app::domain::job::{CheckpointRef, DescriptionChange, Job, JobDescription, JobSpec, StartPoint};
use app::domain::job_share::JobClass;
use app::domain::job_status::JobOutcome;
use app::protocol::jobs::overrides::to_values;
use app::protocol::jobs::submit::RetryJob;
use serde_json::json;

use crate::service::error::{InvalidInput, ServiceError};
use crate::service::jobs::JobService;
use crate::service::jobs::fields::{check_secret_count, secret_variables};
use crate::service::jobs::overrides as job_overrides;
use crate::service::jobs::resume_points::resumable_checkpoints;
use crate::service::jobs::{check_key, find_by_key, highest_priority, insert_job, remember_key};
use crate::service::shares::{check_class, resolve_team};
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::service::{configs, secrets};
use crate::store::cache::state::FleetState;

/// The maximum number of checkpoints that are searched for a name.
const MAX_CHECKPOINTS_SEARCHED: usize = 1_000;

impl JobService {
    /// Retries an ended job, or forks one from a checkpoint, as a new job: with the same requirements and the same revision unless the retry names
    /// others. `key` is an idempotency key. A retry of another user's job uses its submitter's own secrets only if it
    /// names them.
    pub async fn retry(
        self: &Arc<Self>,
        caller: Caller,
        id: JobId,
        retry: RetryJob,
        key: Option<String>,
    ) -> Result<Job, ServiceError> {
        check_key(key.as_deref())?;
        check_secret_count(retry.secrets.as_deref())?;
        let input = Arc::new((id, self.context.next_job_id(), retry, key));
        self.context
            .change(caller, move |unit| {
                let input = Arc::clone(&input);
                Box::pin(async move {
                    let (id, new_id, retry, key) = &*input;
                    let request = format!("retry {id} {}", json!(retry));
                    if let Some(job) = find_by_key(unit, key.as_deref(), &request).await? {
                        return Ok(job);
                    }
                    let ended = unit.job(id).await?;
                    let start = start_point(unit, &ended, retry.resume_from.as_deref()).await?;
                    let (by, max_priority) = (unit.owner().to_owned(), highest_priority(unit));
                    let retried = match &start {
                        StartPoint::Checkpoint(_) => ended.forked(new_id.clone(), unit.now, by, max_priority),
                        StartPoint::NewestCheckpoint | StartPoint::Scratch => {
                            ended.retried(new_id.clone(), unit.now, by, max_priority)?
                        }
                    };
                    let description = named(retried.description.clone(), retry.name.clone())?;
                    let spec = with_secrets(unit, &ended, retry.secrets.as_deref()).await?;
                    let spec = with_changes(unit, JobSpec { start, ..spec }, retry).await?;
                    let spec = with_share(unit, spec).await?;
                    let job = unit.inherit_fencing_delay(retried).await?;
                    let job = Job { trace: Some(unit.trace()), spec, description, ..job };
                    let start = job.spec.start.to_string();
                    let detail = json!({"retry_of": id, "secrets": job.spec.secrets, "start": start});
                    let job = insert_job(unit, &job, detail).await?;
                    remember_key(unit, key.as_deref(), &request, job).await
                })
            })
            .await
    }
}

fn named(description: JobDescription, name: Option<String>) -> Result<JobDescription, InvalidInput> {
    let change = DescriptionChange { name, ..DescriptionChange::default() };
    description.changed(&change).map_err(|(field, allowed)| InvalidInput::OutOfRange { field, allowed })
}

/// Returns the checkpoint to start from. A completed job starts from scratch: after its last checkpoint there is
/// nothing left to train.
async fn start_point(
    unit: &mut UnitOfWork<'_>,
    ended: &Job,
    requested: Option<&str>,
) -> Result<StartPoint, ServiceError> {
    let completed = ended.state.status().outcome() == JobOutcome::Completed;
    let name = match requested {
        None if completed => return Ok(StartPoint::Scratch),
        None | Some("newest") => return Ok(StartPoint::NewestCheckpoint),
        Some("scratch") => return Ok(StartPoint::Scratch),
        Some(name) => name,
    };
    let invalid = || InvalidInput::OutOfRange { field: "resume_from", allowed: AllowedValues::StartPoint };
    if ended.submitted_by != unit.owner() {
        return Err(invalid().into());
    }
    let points = resumable_checkpoints(unit.tx, ended, MAX_CHECKPOINTS_SEARCHED).await?;
    let point = points.into_iter().find(|point| point.name == name).ok_or_else(invalid)?;
    Ok(StartPoint::Checkpoint(CheckpointRef { job: point.job_id, attempt: point.attempt, name: point.name }))
}

/// Keeps the team and the class of the ended job, if this user may submit for them.
async fn with_share(unit: &mut UnitOfWork<'_>, spec: JobSpec) -> Result<JobSpec, ServiceError> {
    let owner = unit.owner().to_owned();
    let resolve = |state: &FleetState| {
        let teams = state.shares().teams();
        resolve_team(teams, &owner, Some(&spec.team)).or_else(|_| resolve_team(teams, &owner, None))
    };
    let team = unit.tx.with_state(resolve).await??;
    let is_allowed = check_class(spec.class, |permission| unit.has_permission(permission)).is_ok();
    let class = if is_allowed { spec.class } else { JobClass::Normal };
    Ok(JobSpec { team, class, ..spec })
}

/// Applies the requested revision and overrides.
async fn with_changes(unit: &mut UnitOfWork<'_>, spec: JobSpec, retry: &RetryJob) -> Result<JobSpec, ServiceError> {
    if retry.config_revision.is_none() && retry.overrides.is_none() {
        return Ok(spec);
    }
    let revision = retry.config_revision.unwrap_or(spec.config_revision);
    let config = unit.tx.config_revision(&spec.config_name, revision).await?;
    let config = config.ok_or_else(|| {
        ServiceError::ConfigNotFound(format!("{}, revision {revision}", spec.config_name), Vec::new())
    })?;
    let values = retry.overrides.clone().unwrap_or_else(|| to_values(&job_overrides::to_diff(&spec.overrides)));
    let (overrides, config) = job_overrides::apply(&config, &values, unit.context.policy.allow_code)?;
    let num_processes = configs::num_processes(&config);
    let mut demand = spec.demand;
    // A number that came from the configuration comes from the new one.
    if demand.gpu_count.is_none() || demand.gpu_count == spec.num_processes {
        demand.gpu_count = num_processes.filter(|number| *number > 1);
    }
    Ok(JobSpec {
        config_revision: revision,
        demand,
        num_processes,
        files: configs::named_files(&config),
        paths: configs::named_paths(&config),
        overrides,
        ..spec
    })
}

/// Returns what an ended job required, with the secrets for its new submit.
async fn with_secrets(
    unit: &mut UnitOfWork<'_>,
    ended: &Job,
    names: Option<&[String]>,
) -> Result<JobSpec, ServiceError> {
    let (owner, spec) = (unit.owner().to_owned(), ended.spec.clone());
    if let Some(names) = names {
        secrets::check_secret_names(unit.tx, &owner, Some(names)).await?;
        return Ok(JobSpec { secrets: Some(secret_variables(names)), shared_secrets_only: false, ..spec });
    }
    if ended.submitted_by == owner {
        return Ok(spec);
    }
    let secrets = secrets::shared_names(unit.tx, spec.secrets.as_deref()).await?;
    Ok(JobSpec { secrets: Some(secrets), shared_secrets_only: true, ..spec })
}
