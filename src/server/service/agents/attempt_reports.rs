//! Reports of workers on their attempts, and the requests of an attempt: authentication, configuration, uploads.

use std::net::IpAddr;
use std::sync::Arc;

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::audit::AuditAction;
use app::domain::best_metrics::{BestMetrics, MAX_METRICS};
use app::domain::ids::{AttemptNumber, WorkerId};
use app::domain::job::{AttemptReport, Job, JobState, JobTransitionError};
use app::domain::reconcile::resources_are_taken;
use app::domain::text::{escape, escape_lines};
use app::domain::unassigned_run::{OlderAgentClaim, normalize_older_report};
use app::domain::worker::credential::check_network;
use app::protocol::agents::{ProgressPoint, ProgressReport, StatusReport};
use app::protocol::topic::Topic;
use serde_json::{Map, json};

use super::host_health::{apply_host_health, checked_reason};
use super::unassigned_runs::apply_claim;
use crate::service::agents::AgentService;
use crate::service::attempt_ref::AttemptRef;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::configs::StoredConfig;
use crate::store::jobs::attempts::StoredPoint;
use crate::tokens;

/// The maximum number of points per report.
const MAX_POINTS: usize = 500;
/// The maximum length of a metric's name and of a trainer's activity, in characters.
const MAX_NAME_CHARS: usize = 100;
/// The maximum length of a stored error, in characters; the log has the rest.
const MAX_ERROR_CHARS: usize = 4_000;

/// The field with the step from which an attempt resumes.
const RESUMED_FIELD: &str = "resumed_from_step";

/// A parsed status report.
struct StatusInput {
    attempt_ref: AttemptRef,
    report: AttemptReport,
    older_claim: OlderAgentClaim,
    /// The step from which the attempt resumed.
    resumed_step: Option<i64>,
    /// The line of the log with the error.
    error_line: Option<i64>,
    points: CheckedPoints,
    unhealthy_reason: Option<String>,
}

impl AgentService {
    /// Records a status report.
    pub async fn report_status(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
        report: StatusReport,
    ) -> Result<Job, ServiceError> {
        let attempt = attempt_ref.attempt.or(report.attempt);
        let resumed_step = parse_resumed_step(&report)?;
        // The line only points to the error in the log.
        let error_line = report.error_line.and_then(|line| i64::try_from(line).ok()).filter(|line| *line > 0);
        let points = report.progress.as_ref().map(|point| parse_points(std::slice::from_ref(point))).transpose()?;
        let unhealthy_reason =
            checked_reason(report.unhealthy_reason.as_deref()).filter(|_| report.status == "requeue");
        let report = parse_report(&report)?;
        let (worker, older_claim, agent_caller) =
            (attempt_ref.worker.clone(), OlderAgentClaim::from_report(&attempt_ref.job, &report), caller.clone());
        let input = Arc::new(StatusInput {
            attempt_ref: AttemptRef { attempt, ..attempt_ref },
            report,
            older_claim: older_claim.clone(),
            resumed_step,
            error_line,
            points: points.unwrap_or_default(),
            unhealthy_reason,
        });
        let reported = self.context.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let StatusInput {
                    attempt_ref,
                    report,
                    older_claim,
                    resumed_step,
                    error_line,
                    points,
                    unhealthy_reason,
                } = &*input;
                let (before, attempt) = load_job_and_attempt(unit, attempt_ref).await?;
                let report = classify_report(unit, attempt_ref, &before, report.clone()).await?;
                let error_line = error_line.filter(|_| matches!(report, AttemptReport::Failed { .. }));
                let after = before.clone().reported(unit.now, &attempt_ref.worker, attempt, report)?;
                check_resources_free(unit, attempt_ref, &before, &after).await?;
                let resumed_step = resumed_step.filter(|_| matches!(after.state, JobState::Running { .. }));
                let extra_detail = resumed_step
                    .map_or_else(Map::new, |step| Map::from_iter([(RESUMED_FIELD.to_owned(), step.into())]));
                unit.save_job_with_detail(&before, &after, extra_detail).await?;
                if let Some(step) = resumed_step {
                    unit.tx.set_resumed_from(&after.id, attempt, step).await?;
                }
                if let Some(line) = error_line.filter(|_| before != after) {
                    unit.tx.set_error_line(&after.id, attempt, line).await?;
                }
                add_points(unit, &after, attempt, points).await?;
                if after.has_ended() && !before.has_ended() {
                    retire_if_ephemeral(unit, &attempt_ref.worker).await?;
                }
                if unhealthy_reason.is_some() && unit.tx.worker(&attempt_ref.worker).await?.is_some() {
                    apply_host_health(unit, &attempt_ref.worker, unhealthy_reason.as_deref()).await?;
                }
                if before.active_lease().is_some() && after.active_lease().is_none() {
                    release_worker(unit, &attempt_ref.worker).await?;
                    unit.request_planning();
                }
                apply_claim(unit, &attempt_ref.worker, older_claim).await?;
                Ok(after)
            })
        });
        let reported = reported.await;
        // Older agents do not read the response; they receive the stop on their stream.
        if let Err(ServiceError::JobTransition(_) | ServiceError::JobNotFound(_)) = &reported {
            self.record_rejected_report(agent_caller, worker, older_claim).await;
        }
        reported
    }

    /// Records progress points. They count for the attempt that holds the job, also while a lost attempt waits to be
    /// recovered.
    pub async fn report_progress(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
        report: ProgressReport,
    ) -> Result<(), ServiceError> {
        let points = Arc::new(parse_points(&report.points)?);
        self.context.check_running_disk_space()?;
        let attempt_ref = Arc::new(AttemptRef { attempt: Some(report.attempt), ..attempt_ref });
        self.context
            .change(caller, move |unit| {
                let (attempt_ref, points) = (Arc::clone(&attempt_ref), Arc::clone(&points));
                Box::pin(async move {
                    let (job, attempt) = load_job_and_attempt(unit, &attempt_ref).await?;
                    job.check_current_attempt(&attempt_ref.worker, attempt)?;
                    unit.renew_fencing_delay(&job).await?;
                    add_points(unit, &job, attempt, &points).await
                })
            })
            .await
    }

    /// Authenticates a job token. The worker counts as seen while the attempt is active: the token of an ended attempt
    /// must not keep a dead worker online.
    pub async fn authenticate_job(&self, token: &str, peer: Option<IpAddr>) -> Result<AttemptRef, ServiceError> {
        let token = token.trim();
        if !tokens::has_valid_checksum("jt_", token) {
            return Err(ServiceError::WrongToken);
        }
        let mut tx = self.context.read().await?;
        let found = tx.attempt_by_token(&tokens::digest(token)).await?;
        let (job, attempt, worker) = found.ok_or(ServiceError::WrongToken)?;
        let networks = tx.worker(&worker).await?.map(|stored| stored.worker.networks).unwrap_or_default();
        check_network(&networks, peer)
            .map_err(|rejection| ServiceError::WorkerTokenRejected(rejection, worker.clone()))?;
        let found = tx.job(&job).await?;
        let is_active =
            |job: &Job| job.active_lease().is_some_and(|lease| lease.worker == worker && job.attempt == attempt);
        if found.as_ref().is_some_and(is_active) {
            self.workers.record_contact(&worker, peer);
        }
        Ok(AttemptRef { worker, job, attempt: Some(attempt) })
    }

    /// Returns the configuration's files for an attempt.
    pub async fn config_bundle(self: &Arc<Self>, attempt_ref: &AttemptRef) -> Result<Arc<StoredConfig>, ServiceError> {
        self.check_attempt(attempt_ref).await?;
        let mut tx = self.context.read().await?;
        let job = tx.job(&attempt_ref.job).await?.ok_or_else(|| ServiceError::JobNotFound(attempt_ref.job.clone()))?;
        let config = tx.config_revision(&job.spec.config_name, job.spec.config_revision).await?;
        let config = config.ok_or(ServiceError::ConfigNotFound(job.spec.config_name, Vec::new()))?;
        Ok(crate::service::jobs::overrides::applied_config(config, &job.spec.overrides))
    }

    /// Checks that an attempt may still upload files: its job has neither ended nor gone to another worker.
    pub async fn check_attempt(self: &Arc<Self>, attempt_ref: &AttemptRef) -> Result<AttemptNumber, ServiceError> {
        let job = self
            .context
            .read()
            .await?
            .job(&attempt_ref.job)
            .await?
            .ok_or_else(|| ServiceError::JobNotFound(attempt_ref.job.clone()))?;
        let attempt = attempt_ref.attempt.unwrap_or(job.attempt);
        job.check_current_attempt(&attempt_ref.worker, attempt)?;
        self.jobs.renew_fencing_delay(attempt_ref, &job, attempt).await?;
        Ok(attempt)
    }
}

/// Validates and converts points.
fn parse_points(points: &[ProgressPoint]) -> Result<CheckedPoints, ServiceError> {
    if points.len() > MAX_POINTS {
        return Err(InvalidInput::TooMuch { items: LimitedItems::Points, limit: MAX_POINTS as u64 }.into());
    }
    if points.iter().any(|point| point.metrics.len() > MAX_METRICS) {
        return Err(InvalidInput::TooMuch { items: LimitedItems::Metrics, limit: MAX_METRICS as u64 }.into());
    }
    let escaped: Vec<ProgressPoint> = points.iter().map(escaped_point).collect();
    let mut best = BestMetrics::default();
    for point in &escaped {
        for (metric, value) in point
            .metrics
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .chain(point.loss.map(|loss| ("loss", loss)))
        {
            best.add(metric, (value, point.step));
        }
    }
    Ok(CheckedPoints { stored: escaped.iter().map(stored_point).collect(), best })
}

/// Points of a report, and the best values among them.
#[derive(Default)]
struct CheckedPoints {
    stored: Vec<StoredPoint>,
    best: BestMetrics,
}

async fn add_points(
    unit: &mut UnitOfWork<'_>,
    job: &Job,
    attempt: AttemptNumber,
    points: &CheckedPoints,
) -> Result<(), ServiceError> {
    let CheckedPoints { stored, best } = points;
    if !stored.is_empty() {
        unit.tx.add_points(&job.id, attempt, stored, unit.context.policy.usage_limits.points).await?;
        improve_best_metrics(unit, job, attempt, best).await?;
        unit.notify(Topic::Progress(job.id.clone()));
    }
    Ok(())
}

async fn improve_best_metrics(
    unit: &mut UnitOfWork<'_>,
    job: &Job,
    attempt: AttemptNumber,
    best: &BestMetrics,
) -> Result<(), ServiceError> {
    let stored = unit.tx.best_metrics(&job.id, attempt).await?;
    let before = BestMetrics(stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default());
    let mut after = before.clone();
    after.add_all(best);
    if after != before {
        let best = serde_json::to_string(&after.0).expect("plain numbers and text");
        unit.tx.set_best_metrics(&job.id, attempt, &best).await?;
    }
    Ok(())
}

/// Fails for a lost attempt that cannot be recovered: its worker was removed, or its slot or a GPU was given to another
/// job.
async fn check_resources_free(
    unit: &mut UnitOfWork<'_>,
    attempt_ref: &AttemptRef,
    before: &Job,
    after: &Job,
) -> Result<(), ServiceError> {
    if before.active_lease().is_some() || after.active_lease().is_none() {
        return Ok(());
    }
    let worker = unit.tx.worker(&attempt_ref.worker).await?.map(|stored| stored.worker);
    let held = unit.tx.leased_jobs(Some(&attempt_ref.worker)).await?;
    if resources_are_taken(before, after, worker.as_ref(), &held) {
        Err(JobTransitionError::WrongWorker.into())
    } else {
        Ok(())
    }
}

/// Interprets a report, given its worker's state.
///
/// An attempt that a worker stops at its drain deadline, or for another job, is requeued without using up a retry, whatever
/// status is reported. One that has reached its maximum run time is stopped for that (see `desired`), also on a draining worker.
/// An older agent reports `failed` for a trainer that was killed.
async fn classify_report(
    unit: &mut UnitOfWork<'_>,
    attempt_ref: &AttemptRef,
    job: &Job,
    report: AttemptReport,
) -> Result<AttemptReport, ServiceError> {
    let Some(worker) = unit.tx.worker(&attempt_ref.worker).await?.map(|stored| stored.worker) else {
        return Ok(report);
    };
    let report = if worker.has_older_agent() { normalize_older_report(report) } else { report };
    let stopped = matches!(report, AttemptReport::Cancelled | AttemptReport::Requeue { .. })
        && job.exceeded_runtime(unit.now).is_none();
    if stopped && worker.should_evict(unit.now) {
        return Ok(AttemptReport::Evicted);
    }
    let preempted = if stopped { unit.preempted_report(job).await? } else { None };
    Ok(preempted.unwrap_or(report))
}

/// Updates a worker after one of its leases has ended.
async fn release_worker(unit: &mut UnitOfWork<'_>, worker: &WorkerId) -> Result<(), ServiceError> {
    let Some(stored) = unit.tx.worker(worker).await? else { return Ok(()) };
    let after = stored.worker.clone().lease_released(unit.now);
    unit.save_worker_unrecorded(&stored.worker, &after).await
}

/// Retires an ephemeral worker after its first job.
async fn retire_if_ephemeral(unit: &mut UnitOfWork<'_>, worker: &WorkerId) -> Result<(), ServiceError> {
    let Some(stored) = unit.tx.worker(worker).await? else { return Ok(()) };
    let after = stored.worker.clone().job_ended(unit.now);
    unit.save_worker(&stored.worker, &after, AuditAction::WorkerRetired, &json!({})).await
}

async fn load_job_and_attempt(
    unit: &mut UnitOfWork<'_>,
    attempt_ref: &AttemptRef,
) -> Result<(Job, AttemptNumber), ServiceError> {
    let job = unit.job(&attempt_ref.job).await?;
    let attempt = attempt_ref.attempt.unwrap_or(job.attempt);
    Ok((job, attempt))
}

/// The step from which an attempt reports to resume.
fn parse_resumed_step(report: &StatusReport) -> Result<Option<i64>, ServiceError> {
    let step = report.resumed_from_step.map(i64::try_from).transpose();
    step.map_err(|_| InvalidInput::OutOfRange { field: RESUMED_FIELD, allowed: AllowedValues::Step }.into())
}

fn parse_report(report: &StatusReport) -> Result<AttemptReport, ServiceError> {
    let error = || escape_lines(report.error.as_deref().unwrap_or_default()).chars().take(MAX_ERROR_CHARS).collect();
    Ok(match report.status.as_str() {
        "starting" => AttemptReport::Starting,
        "running" | "training" => AttemptReport::Running,
        "completed" => AttemptReport::Completed,
        "failed" => AttemptReport::Failed { exit_code: report.exit_code, error: error() },
        "cancelled" => AttemptReport::Cancelled,
        "requeue" if report.unhealthy_reason.is_some() => AttemptReport::HostUnhealthy { error: error() },
        "requeue" => AttemptReport::Requeue { error: error() },
        other => return Err(InvalidInput::Status(other.chars().take(40).collect()).into()),
    })
}

fn stored_point(point: &ProgressPoint) -> StoredPoint {
    let step = i64::try_from(point.step).unwrap_or(i64::MAX);
    StoredPoint { step, point: serde_json::to_string(point).expect("plain numbers and text") }
}

/// Its names without control characters, and short.
fn escaped_point(point: &ProgressPoint) -> ProgressPoint {
    let short = |text: &str| escape(text).chars().take(MAX_NAME_CHARS).collect::<String>();
    ProgressPoint {
        metrics: point.metrics.iter().map(|(name, value)| (short(name), *value)).collect(),
        stage: point.stage.as_deref().map(short),
        ..point.clone()
    }
}
