//! `jobs` rows.

use std::collections::BTreeMap;

use app::domain::ids::{Attempt, JobId};
use app::domain::job::{
    Checkpoints, Demand, Failure, Job, Lease, Loss, Override, Overrides, Previous, Spec, Start, State, Target,
};
use app::domain::plan::urgency;
use app::domain::sandbox::SandboxLevel;
use app::domain::time::Millis;
use app::domain::trace::Trace;
use serde::{Deserialize, Serialize};

use super::super::Row;
use super::super::statement::Value;
use super::{Named, to_json};
use crate::store::Result;

/// A failure as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum FailureJson {
    Trainer { exit_code: Option<i32>, error: String },
    AgentForgot,
    WorkerOffline,
    Requeued { error: String },
    Evicted,
    RetriesUsed { exit_code: Option<i32>, error: String },
    OverTime { allowed_ms: i64 },
}

/// The columns of a job that never change, in the order of [`pinned_values`].
pub const PINNED: [&str; 24] = [
    "config_name",
    "config_revision",
    "target",
    "labels",
    "gpu_count",
    "min_vram_gb",
    "accelerator",
    "sandbox",
    "num_processes",
    "max_retries",
    "retry_on_failure",
    "max_runtime",
    "exclusive",
    "checkpoints",
    "secrets",
    "shared_secrets_only",
    "files",
    "paths",
    "overrides",
    "start",
    "submitted_at",
    "submitted_by",
    "retry_of",
    "traceparent",
];
/// The columns of a job that change, after its id, in the order of [`changed_values`].
pub const CHANGED: [&str; 13] = [
    "id",
    "priority",
    "urgency",
    "attempt",
    "losses",
    "state",
    "state_since",
    "worker_id",
    "gpus",
    "offer_until",
    "not_before",
    "kept_back_until",
    "failure",
];

/// What never changes of a job.
pub fn pinned_values(job: &Job) -> Vec<Value> {
    let (spec, demand) = (&job.spec, &job.spec.demand);
    vec![
        (&spec.config_name).into(),
        spec.config_revision.into(),
        spec.target.as_str().into(),
        to_json(&demand.labels).into(),
        demand.gpu_count.into(),
        demand.min_vram_gb.into(),
        demand.accelerator.clone().into(),
        demand.sandbox.as_str().into(),
        spec.num_processes.into(),
        spec.max_retries.into(),
        spec.retry_on_failure.into(),
        spec.max_runtime.map(|allowed| allowed.0).into(),
        spec.exclusive.into(),
        spec.checkpoints.as_str().into(),
        spec.secrets.as_ref().map(to_json).into(),
        spec.shared_secrets_only.into(),
        to_json(&spec.files).into(),
        to_json(&spec.paths).into(),
        overrides_text(&spec.overrides).into(),
        (spec.start != Start::Newest).then(|| spec.start.to_string()).into(),
        job.submitted_at.0.into(),
        (&job.submitted_by).into(),
        job.retry_of.as_ref().map(JobId::as_str).into(),
        job.trace.as_ref().map(ToString::to_string).into(),
    ]
}

/// What the job changes of its configuration: keys with their values before and after.
type Changes<T> = BTreeMap<T, (Option<T>, Option<T>)>;

fn overrides_text(overrides: &Overrides) -> Option<String> {
    let changes = overrides.iter().map(|(key, Override { from, to })| (key.as_str(), (from.as_deref(), to.as_deref())));
    let changes: Changes<&str> = changes.collect();
    (!changes.is_empty()).then(|| to_json(&changes))
}

fn overrides(row: &Named<'_>) -> Result<Overrides> {
    let changes = row.optional_json::<Changes<String>>("overrides")?.unwrap_or_default();
    Ok(changes.into_iter().map(|(key, (from, to))| (key, Override { from, to })).collect())
}

/// What changes of a job, and its id.
pub fn changed_values(job: &Job) -> Vec<Value> {
    let state = state_columns(job);
    vec![
        job.id.as_str().into(),
        job.priority.into(),
        urgency(job).into(),
        job.attempt.0.into(),
        job.losses.into(),
        state.word.into(),
        state.since.into(),
        state.worker_id.into(),
        state.gpus.into(),
        state.offer_until.into(),
        state.not_before.into(),
        job.kept_back.map(|until| until.0).into(),
        state.failure.into(),
    ]
}

/// A state as columns.
struct StateColumns {
    word: &'static str,
    since: i64,
    worker_id: Option<String>,
    gpus: Option<String>,
    offer_until: Option<i64>,
    not_before: Option<i64>,
    failure: Option<String>,
}

/// A job's state as columns.
fn state_columns(job: &Job) -> StateColumns {
    let lease = job.last_lease();
    let (offer_until, not_before, failure) = match &job.state {
        State::Offered { until, .. } => (Some(until.0), None, None),
        State::Queued { not_before, previous, .. } => {
            let loss = previous.as_ref().and_then(|previous| previous.loss.clone());
            let failure = loss.map(|loss| failure_text(&Failure::Lost(loss)));
            (None, not_before.map(|moment| moment.0), failure)
        }
        State::Failed { failure, .. } => (None, None, Some(failure_text(failure))),
        _ => (None, None, None),
    };
    StateColumns {
        word: job.state.as_str(),
        since: job.since().0,
        worker_id: lease.map(|lease| lease.worker.to_string()),
        gpus: lease.map(|lease| to_json(&lease.gpus)),
        offer_until,
        not_before,
        failure,
    }
}

/// A job from its row.
pub fn job(row: &Row) -> Result<Job> {
    let row = Named::new(row, "jobs", "id")?;
    let attempt = Attempt(row.number("attempt")?);
    Ok(Job {
        id: row.job_id("id")?,
        spec: spec(&row)?,
        submitted_at: row.moment("submitted_at")?,
        submitted_by: row.get("submitted_by")?,
        attempt,
        losses: row.number("losses")?,
        priority: row.number("priority")?,
        retry_of: row.optional_job_id("retry_of")?,
        // What cannot be read was never needed to run the job.
        trace: row.get::<Option<String>>("traceparent")?.as_deref().and_then(Trace::parse),
        kept_back: row.optional_moment("kept_back_until")?,
        state: state(&row, attempt)?,
    })
}

fn spec(row: &Named<'_>) -> Result<Spec> {
    let target: String = row.get("target")?;
    let target = match target.as_str() {
        "auto" => Target::Auto,
        "worker" => Target::Worker,
        "local" => Target::Local,
        other => return Err(row.broken(format!("target is {other:?}"))),
    };
    let checkpoints: String = row.get("checkpoints")?;
    let checkpoints = match checkpoints.as_str() {
        "none" => Checkpoints::None,
        "last" => Checkpoints::Last,
        "all" => Checkpoints::All,
        other => return Err(row.broken(format!("checkpoints is {other:?}"))),
    };
    let sandbox: String = row.get("sandbox")?;
    let sandbox = SandboxLevel::parse(&sandbox).ok_or_else(|| row.broken(format!("sandbox is {sandbox:?}")))?;
    Ok(Spec {
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
        retry_on_failure: row.flag("retry_on_failure")?,
        max_runtime: row.get::<Option<i64>>("max_runtime")?.map(Millis),
        exclusive: row.flag("exclusive")?,
        checkpoints,
        secrets: row.optional_json("secrets")?,
        shared_secrets_only: row.flag("shared_secrets_only")?,
        files: row.optional_json("files")?.unwrap_or_default(),
        paths: row.optional_json("paths")?.unwrap_or_default(),
        overrides: overrides(row)?,
        start: row.get::<Option<String>>("start")?.map_or(Ok(Start::Newest), |text| {
            Start::parse(&text).ok_or_else(|| row.broken(format!("start is {text:?}")))
        })?,
    })
}

fn state(row: &Named<'_>, attempt: Attempt) -> Result<State> {
    let since = row.moment("state_since")?;
    let last = lease(row, attempt)?;
    let until = row.optional_moment("offer_until")?;
    let not_before = row.optional_moment("not_before")?;
    let word: String = row.get("state")?;
    let held = || row.required("worker_id", last.clone());
    Ok(match word.as_str() {
        "queued" => {
            let loss = loss(row)?;
            let previous = last.map(|lease| Previous { lease, loss });
            State::Queued { since, not_before, previous }
        }
        "offered" => State::Offered { lease: held()?, since, until: row.required("offer_until", until)? },
        "starting" => State::Starting { lease: held()?, since },
        "running" => State::Running { lease: held()?, since },
        "cancelling" => State::Cancelling { lease: held()?, since },
        "completed" => State::Completed { at: since, lease: held()? },
        "failed" => State::Failed { at: since, lease: held()?, failure: failure(row)? },
        "cancelled" => State::Cancelled { at: since, lease: last },
        other => return Err(row.broken(format!("state is {other:?}"))),
    })
}

fn lease(row: &Named<'_>, attempt: Attempt) -> Result<Option<Lease>> {
    let worker: Option<String> = row.get("worker_id")?;
    if worker.is_none() {
        return Ok(None);
    }
    Ok(Some(Lease { worker: row.worker_id("worker_id")?, attempt, gpus: row.json("gpus")? }))
}

fn loss(row: &Named<'_>) -> Result<Option<Loss>> {
    let kept: Option<String> = row.get("failure")?;
    match kept.map(|_| failure(row)).transpose()? {
        None => Ok(None),
        Some(Failure::Lost(loss)) => Ok(Some(loss)),
        Some(Failure::Trainer { .. } | Failure::OverTime { .. }) => {
            Err(row.broken("a waiting job has no failure of its own".to_owned()))
        }
    }
}

fn failure(row: &Named<'_>) -> Result<Failure> {
    Ok(match row.json("failure")? {
        FailureJson::Trainer { exit_code, error } => Failure::Trainer { exit_code, error },
        FailureJson::AgentForgot => Failure::Lost(Loss::AgentForgot),
        FailureJson::WorkerOffline => Failure::Lost(Loss::WorkerOffline),
        FailureJson::Requeued { error } => Failure::Lost(Loss::Requeued(error)),
        FailureJson::Evicted => Failure::Lost(Loss::Evicted),
        FailureJson::RetriesUsed { exit_code, error } => Failure::Lost(Loss::TrainerFailed { exit_code, error }),
        FailureJson::OverTime { allowed_ms } => Failure::OverTime { allowed: Millis(allowed_ms) },
    })
}

fn failure_text(failure: &Failure) -> String {
    to_json(&match failure.clone() {
        Failure::Trainer { exit_code, error } => FailureJson::Trainer { exit_code, error },
        Failure::Lost(Loss::AgentForgot) => FailureJson::AgentForgot,
        Failure::Lost(Loss::WorkerOffline) => FailureJson::WorkerOffline,
        Failure::Lost(Loss::Requeued(error)) => FailureJson::Requeued { error },
        Failure::Lost(Loss::Evicted) => FailureJson::Evicted,
        Failure::Lost(Loss::TrainerFailed { exit_code, error }) => FailureJson::RetriesUsed { exit_code, error },
        Failure::OverTime { allowed } => FailureJson::OverTime { allowed_ms: allowed.0 },
    })
}
