//! `jobs` rows, and the states of jobs in SQL.

use std::collections::BTreeMap;

use app::domain::causes::OfflineCause;
use app::domain::ids::{AttemptNumber, JobId, WorkerId};
use app::domain::job::{
    AttemptLoss, CheckpointUploads, Demand, Job, JobDescription, JobFailure, JobOverrides, JobSpec, JobState,
    JobTarget, Lease, OverriddenValue, PreemptedAttempt, Preemption, PreemptionReason, PreviousAttempt, StartPoint,
    Waiting,
};
use app::domain::job_share::{DEFAULT_TEAM, JobClass};
use app::domain::job_status::JobStatus;
use app::domain::plan::urgency;
use app::domain::sandbox::SandboxLevel;
use app::domain::time::{Millis, Timestamp};
use app::domain::trace_context::TraceContext;
use serde::{Deserialize, Serialize};

use super::super::SqlRow;
use super::super::statement::SqlValue;
use super::{NamedRow, to_json};
use crate::store::Result;

/// The states of jobs that have not ended, as an SQL list.
macro_rules! live_states {
    () => {
        "('queued', 'offered', 'starting', 'running', 'cancelling')"
    };
}

/// The states of jobs that have ended, as an SQL list; the partial index `jobs_ended` has the same condition.
macro_rules! ended_states {
    () => {
        "('completed', 'failed', 'cancelled')"
    };
}

/// The states in which an attempt has the lease of a job, as an SQL list.
macro_rules! leased_states {
    () => {
        "('offered', 'starting', 'running', 'cancelling')"
    };
}

pub(in crate::store::sql) use ended_states;
pub(in crate::store::sql) use leased_states;
pub(in crate::store::sql) use live_states;

/// A failure as stored.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum FailureJson {
    Trainer { exit_code: Option<i32>, error: String },
    AgentForgot,
    WorkerOffline { cause: Option<OfflineCause> },
    Requeued { error: String },
    Evicted,
    Preempted { by: JobId, lost_ms: i64, step: Option<u64> },
    StoppedByAgent,
    NeverStarted,
    RetriesUsed { exit_code: Option<i32>, error: String },
    OverTime { allowed_ms: i64 },
}

/// A preemption as stored.
#[derive(Serialize, Deserialize)]
struct PreemptionJson {
    worker: WorkerId,
    reason: String,
    decided_at: i64,
    attempts: Vec<(JobId, AttemptNumber, i64)>,
}

impl From<&Preemption> for PreemptionJson {
    fn from(preemption: &Preemption) -> Self {
        let attempt = |stop: &PreemptedAttempt| (stop.job.clone(), stop.attempt, stop.stop_at.0);
        Self {
            worker: preemption.worker.clone(),
            reason: preemption.reason.as_str().to_owned(),
            decided_at: preemption.decided_at.0,
            attempts: preemption.attempts.iter().map(attempt).collect(),
        }
    }
}

/// When a job was stopped for others, as JSON; none if it never was.
fn preempted_text(job: &Job) -> Option<String> {
    let times: Vec<i64> = job.preempted_at.iter().map(|at| at.0).collect();
    (!times.is_empty()).then(|| to_json(&times))
}

/// The cause of earlier rows, which have none: an attempt is lost only after its worker was silent for the timeout.
const EARLIER_CAUSE: OfflineCause = OfflineCause::HeartbeatTimeout;

/// A column and its value.
pub type Column = (&'static str, SqlValue);

/// The columns of a job that never change.
pub fn immutable_columns(job: &Job) -> Vec<Column> {
    let JobSpec {
        config_name,
        config_revision,
        target,
        demand: Demand { labels, gpu_count, min_vram_gb, accelerator, sandbox },
        num_processes,
        max_retries,
        retry_on_failure,
        max_runtime,
        exclusive,
        checkpoints,
        secrets,
        shared_secrets_only,
        files,
        paths,
        overrides,
        start,
        team,
        class,
    } = &job.spec;
    vec![
        ("config_name", config_name.into()),
        ("config_revision", (*config_revision).into()),
        ("target", target.as_str().into()),
        ("labels", to_json(labels).into()),
        ("gpu_count", (*gpu_count).into()),
        ("min_vram_gb", (*min_vram_gb).into()),
        ("accelerator", accelerator.clone().into()),
        ("sandbox", sandbox.as_str().into()),
        ("num_processes", (*num_processes).into()),
        ("max_retries", (*max_retries).into()),
        ("retry_on_failure", (*retry_on_failure).into()),
        ("max_runtime", max_runtime.map(|allowed| allowed.0).into()),
        ("exclusive", (*exclusive).into()),
        ("checkpoints", checkpoints.as_str().into()),
        ("secrets", secrets.as_ref().map(to_json).into()),
        ("shared_secrets_only", (*shared_secrets_only).into()),
        ("files", to_json(files).into()),
        ("paths", to_json(paths).into()),
        ("overrides", overrides_text(overrides).into()),
        ("start", (*start != StartPoint::NewestCheckpoint).then(|| start.to_string()).into()),
        ("team", team.into()),
        ("class", class.as_str().into()),
        ("submitted_at", job.submitted_at.0.into()),
        ("submitted_by", (&job.submitted_by).into()),
        ("retry_of", job.retry_of.as_ref().map(JobId::as_str).into()),
        ("traceparent", job.trace.as_ref().map(ToString::to_string).into()),
        ("number", job.number.into()),
        ("starred_by", stars_text(job).into()),
    ]
}

/// The columns of a job's description, which change rarely.
pub fn description_columns(description: &JobDescription) -> Vec<Column> {
    let JobDescription { name, tags, notes } = description;
    vec![
        ("job_name", name.clone().into()),
        ("tags", (!tags.is_empty()).then(|| to_json(tags)).into()),
        ("notes", notes.clone().into()),
    ]
}

/// The users who have starred a job, as JSON; none if there are none.
pub fn stars_text(job: &Job) -> Option<String> {
    (!job.starred_by.is_empty()).then(|| to_json(&job.starred_by))
}

/// Overrides of a job: keys with their values before and after.
type OverrideChanges<T> = BTreeMap<T, (Option<T>, Option<T>)>;

fn overrides_text(overrides: &JobOverrides) -> Option<String> {
    let changes =
        overrides.iter().map(|(key, OverriddenValue { from, to })| (key.as_str(), (from.as_deref(), to.as_deref())));
    let changes: OverrideChanges<&str> = changes.collect();
    (!changes.is_empty()).then(|| to_json(&changes))
}

pub fn overrides_from(row: &NamedRow<'_>) -> Result<JobOverrides> {
    let changes = row.optional_json::<OverrideChanges<String>>("overrides")?.unwrap_or_default();
    Ok(changes.into_iter().map(|(key, (from, to))| (key, OverriddenValue { from, to })).collect())
}

/// The job's id, and the columns that change.
pub fn mutable_columns(job: &Job) -> Vec<Column> {
    let state = state_columns(job);
    vec![
        ("id", job.id.as_str().into()),
        ("priority", job.priority.into()),
        ("urgency", urgency(job).into()),
        ("attempt", job.attempt.0.into()),
        ("losses", job.losses.into()),
        ("state", state.state.into()),
        ("state_since", state.since.into()),
        ("worker_id", state.worker_id.into()),
        ("gpus", state.gpus.into()),
        ("leased_at", state.leased_at.into()),
        ("offer_until", state.offer_until.into()),
        ("not_before", state.not_before.into()),
        ("hold_until", job.hold_until.map(|until| until.0).into()),
        ("failure", state.failure.into()),
        ("preemption", job.preemption().map(|preemption| to_json(&PreemptionJson::from(preemption))).into()),
        ("preempted_at", preempted_text(job).into()),
    ]
}

struct StateColumns {
    state: &'static str,
    since: i64,
    worker_id: Option<String>,
    gpus: Option<String>,
    leased_at: Option<i64>,
    offer_until: Option<i64>,
    not_before: Option<i64>,
    failure: Option<String>,
}

fn state_columns(job: &Job) -> StateColumns {
    let lease = job.last_lease();
    let (offer_until, not_before, failure) = match &job.state {
        JobState::Offered { until, .. } => (Some(until.0), None, None),
        JobState::Queued(waiting) => {
            let failure = waiting.loss().map(|loss| failure_text(&JobFailure::Lost(loss.clone())));
            (None, waiting.not_before.map(|at| at.0), failure)
        }
        JobState::Failed { failure, .. } => (None, None, Some(failure_text(failure))),
        JobState::Starting { .. }
        | JobState::Running { .. }
        | JobState::Cancelling { .. }
        | JobState::Completed { .. }
        | JobState::Cancelled { .. } => (None, None, None),
    };
    StateColumns {
        state: job.state.as_str(),
        since: job.state_since().0,
        worker_id: lease.map(|lease| lease.worker.to_string()),
        gpus: lease.map(|lease| to_json(&lease.gpus)),
        leased_at: lease.map(|lease| lease.since.0),
        offer_until,
        not_before,
        failure,
    }
}

pub fn job_from(row: &SqlRow) -> Result<Job> {
    let row = NamedRow::new(row, "jobs", "id")?;
    let attempt = AttemptNumber(row.number("attempt")?);
    Ok(Job {
        id: row.job_id("id")?,
        spec: spec_from(&row)?,
        submitted_at: row.timestamp("submitted_at")?,
        submitted_by: row.get("submitted_by")?,
        attempt,
        losses: row.number("losses")?,
        priority: row.number("priority")?,
        number: row.optional_number("number")?,
        description: JobDescription {
            name: row.get("job_name")?,
            tags: row.optional_json("tags")?.unwrap_or_default(),
            notes: row.get("notes")?,
        },
        starred_by: row.optional_json("starred_by")?.unwrap_or_default(),
        retry_of: row.optional_job_id("retry_of")?,
        // A trace that cannot be parsed is not needed to run the job.
        trace: row.get::<Option<String>>("traceparent")?.as_deref().and_then(TraceContext::parse),
        hold_until: row.optional_timestamp("hold_until")?,
        preempted_at: row
            .optional_json::<Vec<i64>>("preempted_at")?
            .unwrap_or_default()
            .into_iter()
            .map(Timestamp)
            .collect(),
        state: state_from(&row, attempt)?,
    })
}

fn spec_from(row: &NamedRow<'_>) -> Result<JobSpec> {
    let target: String = row.get("target")?;
    let target = match target.as_str() {
        "auto" => JobTarget::Auto,
        "worker" => JobTarget::Worker,
        "local" => JobTarget::Local,
        other => return Err(row.corrupt(format!("target is {other:?}"))),
    };
    let checkpoints: String = row.get("checkpoints")?;
    let checkpoints = match checkpoints.as_str() {
        "none" => CheckpointUploads::None,
        "last" => CheckpointUploads::Last,
        "all" => CheckpointUploads::All,
        other => return Err(row.corrupt(format!("checkpoints is {other:?}"))),
    };
    let sandbox: String = row.get("sandbox")?;
    let sandbox = SandboxLevel::parse(&sandbox).ok_or_else(|| row.corrupt(format!("sandbox is {sandbox:?}")))?;
    Ok(JobSpec {
        config_name: row.get("config_name")?,
        config_revision: row.number("config_revision")?,
        target,
        demand: Demand {
            labels: row.labels("labels")?,
            gpu_count: row.optional_number("gpu_count")?,
            min_vram_gb: row.get("min_vram_gb")?,
            accelerator: row.get("accelerator")?,
            sandbox,
        },
        num_processes: row.optional_number("num_processes")?,
        max_retries: row.number("max_retries")?,
        retry_on_failure: row.boolean("retry_on_failure")?,
        max_runtime: row.get::<Option<i64>>("max_runtime")?.map(Millis),
        exclusive: row.boolean("exclusive")?,
        checkpoints,
        secrets: row.optional_json("secrets")?,
        shared_secrets_only: row.boolean("shared_secrets_only")?,
        files: row.optional_json("files")?.unwrap_or_default(),
        paths: row.optional_json("paths")?.unwrap_or_default(),
        overrides: overrides_from(row)?,
        start: row.get::<Option<String>>("start")?.map_or(Ok(StartPoint::NewestCheckpoint), |text| {
            StartPoint::parse(&text).ok_or_else(|| row.corrupt(format!("start is {text:?}")))
        })?,
        team: row.get::<Option<String>>("team")?.unwrap_or_else(|| DEFAULT_TEAM.to_owned()),
        class: row.get::<Option<String>>("class")?.map_or(Ok(JobClass::Normal), |word| {
            JobClass::parse(&word).ok_or_else(|| row.corrupt(format!("class is {word:?}")))
        })?,
    })
}

fn state_from(row: &NamedRow<'_>, attempt: AttemptNumber) -> Result<JobState> {
    let since = row.timestamp("state_since")?;
    let lease = lease_from(row, attempt)?;
    let until = row.optional_timestamp("offer_until")?;
    let name: String = row.get("state")?;
    let status = JobStatus::parse(&name).ok_or_else(|| row.corrupt(format!("state is {name:?}")))?;
    let required_lease = || row.required("worker_id", lease.clone());
    Ok(match status {
        JobStatus::Queued => JobState::Queued(waiting_from(row, since, lease)?),
        JobStatus::Offered => {
            JobState::Offered { lease: required_lease()?, since, until: row.required("offer_until", until)? }
        }
        JobStatus::Starting => JobState::Starting { lease: required_lease()?, since },
        JobStatus::Running => JobState::Running { lease: required_lease()?, since },
        JobStatus::Cancelling => JobState::Cancelling { lease: required_lease()?, since },
        JobStatus::Completed => JobState::Completed { at: since, lease: required_lease()? },
        JobStatus::Failed => JobState::Failed { at: since, lease: required_lease()?, failure: failure_from(row)? },
        JobStatus::Cancelled => JobState::Cancelled { at: since, lease },
    })
}

fn waiting_from(row: &NamedRow<'_>, since: Timestamp, last_lease: Option<Lease>) -> Result<Waiting> {
    let loss = loss_from(row)?;
    let previous = last_lease.map(|lease| PreviousAttempt { lease, loss });
    let preemption = preemption_from(row)?.map(Box::new);
    Ok(Waiting { since, not_before: row.optional_timestamp("not_before")?, previous, preemption })
}

fn preemption_from(row: &NamedRow<'_>) -> Result<Option<Preemption>> {
    let Some(stored) = row.optional_json::<PreemptionJson>("preemption")? else { return Ok(None) };
    let reason = PreemptionReason::parse(&stored.reason);
    let attempt = |(job, attempt, stop_at)| PreemptedAttempt { job, attempt, stop_at: Timestamp(stop_at) };
    Ok(Some(Preemption {
        worker: stored.worker,
        reason: reason.ok_or_else(|| row.corrupt(format!("preemption has the reason {:?}", stored.reason)))?,
        decided_at: Timestamp(stored.decided_at),
        attempts: stored.attempts.into_iter().map(attempt).collect(),
    }))
}

fn lease_from(row: &NamedRow<'_>, attempt: AttemptNumber) -> Result<Option<Lease>> {
    let worker: Option<String> = row.get("worker_id")?;
    if worker.is_none() {
        return Ok(None);
    }
    // A version without it knew only since when the job had its state.
    let since = row.optional_timestamp("leased_at")?.map_or_else(|| row.timestamp("state_since"), Ok)?;
    Ok(Some(Lease { worker: row.worker_id("worker_id")?, attempt, gpus: row.json("gpus")?, since }))
}

fn loss_from(row: &NamedRow<'_>) -> Result<Option<AttemptLoss>> {
    let failure: Option<String> = row.get("failure")?;
    match failure.map(|_| failure_from(row)).transpose()? {
        None => Ok(None),
        Some(JobFailure::Lost(loss)) => Ok(Some(loss)),
        Some(JobFailure::Trainer { .. } | JobFailure::RuntimeExceeded { .. }) => {
            Err(row.corrupt("a waiting job has a failure".to_owned()))
        }
    }
}

fn failure_from(row: &NamedRow<'_>) -> Result<JobFailure> {
    Ok(match row.json("failure")? {
        FailureJson::Trainer { exit_code, error } => JobFailure::Trainer { exit_code, error },
        FailureJson::AgentForgot => JobFailure::Lost(AttemptLoss::UnknownToAgent),
        FailureJson::WorkerOffline { cause } => {
            JobFailure::Lost(AttemptLoss::WorkerOffline(cause.unwrap_or(EARLIER_CAUSE)))
        }
        FailureJson::Requeued { error } => JobFailure::Lost(AttemptLoss::Requeued(error)),
        FailureJson::Evicted => JobFailure::Lost(AttemptLoss::Evicted),
        FailureJson::Preempted { by, lost_ms, step } => {
            JobFailure::Lost(AttemptLoss::Preempted { by, lost: Millis(lost_ms), step })
        }
        FailureJson::StoppedByAgent => JobFailure::Lost(AttemptLoss::StoppedByAgent),
        FailureJson::NeverStarted => JobFailure::Lost(AttemptLoss::NeverStarted),
        FailureJson::RetriesUsed { exit_code, error } => {
            JobFailure::Lost(AttemptLoss::TrainerFailed { exit_code, error })
        }
        FailureJson::OverTime { allowed_ms } => JobFailure::RuntimeExceeded { allowed: Millis(allowed_ms) },
    })
}

fn failure_text(failure: &JobFailure) -> String {
    to_json(&match failure.clone() {
        JobFailure::Trainer { exit_code, error } => FailureJson::Trainer { exit_code, error },
        JobFailure::Lost(AttemptLoss::UnknownToAgent) => FailureJson::AgentForgot,
        JobFailure::Lost(AttemptLoss::WorkerOffline(cause)) => FailureJson::WorkerOffline { cause: Some(cause) },
        JobFailure::Lost(AttemptLoss::Requeued(error)) => FailureJson::Requeued { error },
        JobFailure::Lost(AttemptLoss::Evicted) => FailureJson::Evicted,
        JobFailure::Lost(AttemptLoss::Preempted { by, lost, step }) => {
            FailureJson::Preempted { by, lost_ms: lost.0, step }
        }
        JobFailure::Lost(AttemptLoss::StoppedByAgent) => FailureJson::StoppedByAgent,
        JobFailure::Lost(AttemptLoss::NeverStarted) => FailureJson::NeverStarted,
        JobFailure::Lost(AttemptLoss::TrainerFailed { exit_code, error }) => {
            FailureJson::RetriesUsed { exit_code, error }
        }
        JobFailure::RuntimeExceeded { allowed } => FailureJson::OverTime { allowed_ms: allowed.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_agree_with_the_facts_of_each_status() {
        for status in JobStatus::ALL {
            let is_in = |list: &str| list.contains(&format!("'{}'", status.as_str()));
            assert_eq!(is_in(live_states!()), !status.is_terminal(), "{status:?}");
            assert_eq!(is_in(ended_states!()), status.is_terminal(), "{status:?}");
            assert_eq!(is_in(leased_states!()), status.has_lease(), "{status:?}");
        }
    }

    #[test]
    fn earlier_loss_of_an_offline_worker_has_no_cause() {
        let earlier = serde_json::from_str::<FailureJson>(r#"{"kind":"worker_offline"}"#);
        assert!(matches!(earlier, Ok(FailureJson::WorkerOffline { cause: None })));
        let text = failure_text(&JobFailure::Lost(AttemptLoss::WorkerOffline(OfflineCause::Disconnected)));
        assert_eq!(text, r#"{"kind":"worker_offline","cause":"disconnected"}"#);
    }
}
