//! What workers say of the attempts they run.

use std::net::IpAddr;
use std::sync::Arc;

use app::domain::astray::{Word, older_report};
use app::domain::audit::Action;
use app::domain::ids::{Attempt, JobId, WorkerId};
use app::domain::job::{Job, Refused, Report, State};
use app::domain::reconcile::displaced;
use app::domain::text::{escaped, escaped_lines};
use app::domain::worker::credential::may_come_from;
use app::protocol::topic::Topic;
use app::protocol::worker::{ProgressPoint, ProgressReport, StatusReport};
use serde_json::{Map, json};

use super::Core;
use super::astray::spoke;
use super::refusal::{Invalid, Refusal};
use super::unit::{Caller, Unit};
use crate::store::attempts::StoredPoint;
use crate::store::configs::StoredConfig;
use crate::tokens;

/// The most points in one report.
const MAX_POINTS: usize = 500;
/// The longest name of a metric, and what a trainer says it is doing, in characters.
const MAX_WORDS: usize = 100;
/// The most metrics in one point.
const MAX_METRICS: usize = 64;
/// The longest error that is kept, in characters; the log has the rest.
const MAX_ERROR: usize = 4_000;

/// The field that says from which step an attempt goes on.
const RESUMED: &str = "resumed_from_step";

/// An attempt as a worker names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The worker that reports.
    pub worker: WorkerId,
    /// The job.
    pub job: JobId,
    /// The attempt; none means the one that this worker holds.
    pub attempt: Option<Attempt>,
}

impl Core {
    /// A status report.
    pub async fn report_status(
        self: &Arc<Self>,
        caller: Caller,
        subject: Subject,
        report: StatusReport,
    ) -> Result<Job, Refusal> {
        let attempt = subject.attempt.or(report.attempt);
        let resumed = resumed_from(&report)?;
        // It is only where to look.
        let line = report.error_line.and_then(|line| i64::try_from(line).ok()).filter(|line| *line > 0);
        let points = report.progress.as_ref().map(|point| points_of(std::slice::from_ref(point))).transpose()?;
        let report = parsed(&report)?;
        let (worker, word, who) = (subject.worker.clone(), Word::of(&subject.job, &report), caller.clone());
        let input =
            Arc::new((Subject { attempt, ..subject }, report, word.clone(), resumed, line, points.unwrap_or_default()));
        let reported = self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (subject, report, word, resumed, line, points) = &*input;
                let (before, attempt) = current(unit, subject).await?;
                let report = judged(unit, subject, &before, report.clone()).await?;
                let line = line.filter(|_| matches!(report, Report::Failed { .. }));
                let after = before.clone().reported(unit.now, &subject.worker, attempt, report)?;
                check_place(unit, subject, &before, &after).await?;
                let resumed = resumed.filter(|_| matches!(after.state, State::Running { .. }));
                let particulars =
                    resumed.map_or_else(Map::new, |step| Map::from_iter([(RESUMED.to_owned(), step.into())]));
                unit.save_job_noting(&before, &after, particulars).await?;
                if let Some(step) = resumed {
                    unit.tx.note_resumed(&after.id, attempt, step).await?;
                }
                if let Some(line) = line.filter(|_| before != after) {
                    unit.tx.note_error_line(&after.id, attempt, line).await?;
                }
                add_points(unit, &after, attempt, points).await?;
                if after.has_ended() && !before.has_ended() {
                    spend(unit, &subject.worker).await?;
                }
                if before.live_lease().is_some() && after.live_lease().is_none() {
                    release(unit, &subject.worker).await?;
                    unit.plan_after();
                }
                spoke(unit, &subject.worker, word).await?;
                Ok(after)
            })
        });
        let reported = reported.await;
        // Older agents read no answer: their stream tells them.
        if let Err(Refusal::Job(_) | Refusal::NoJob(_)) = &reported {
            self.refused_to(who, worker, word).await;
        }
        reported
    }

    /// Points of progress. They count for the attempt that has the job, also while it waits to be taken back.
    pub async fn report_progress(
        self: &Arc<Self>,
        caller: Caller,
        subject: Subject,
        report: ProgressReport,
    ) -> Result<(), Refusal> {
        let points = Arc::new(points_of(&report.points)?);
        self.need_room_to_run()?;
        let subject = Arc::new(Subject { attempt: Some(report.attempt), ..subject });
        self.change(caller, move |unit| {
            let (subject, points) = (Arc::clone(&subject), Arc::clone(&points));
            Box::pin(async move {
                let (job, attempt) = current(unit, &subject).await?;
                job.clone().reported(unit.now, &subject.worker, attempt, Report::Running)?;
                unit.answers(&job).await?;
                add_points(unit, &job, attempt, &points).await
            })
        })
        .await
    }

    /// Which attempt a job token belongs to. Its worker was heard of, as long as the attempt is in force: the token of one
    /// that has ended must not keep a dead worker alive.
    pub async fn authenticate_job(&self, token: &str, peer: Option<IpAddr>) -> Result<Subject, Refusal> {
        let token = token.trim();
        if !tokens::is_whole("jt_", token) {
            return Err(Refusal::WrongToken);
        }
        let mut tx = self.read().await?;
        let found = tx.attempt_by_token(&tokens::digest(token)).await?;
        let (job, attempt, worker) = found.ok_or(Refusal::WrongToken)?;
        let networks = tx.worker(&worker).await?.map(|stored| stored.worker.networks).unwrap_or_default();
        may_come_from(&networks, peer).map_err(|closed| Refusal::WorkerKey(closed, worker.clone()))?;
        let found = tx.job(&job).await?;
        let in_force =
            |job: &Job| job.live_lease().is_some_and(|lease| lease.worker == worker && job.attempt == attempt);
        if found.as_ref().is_some_and(in_force) {
            self.heard_of(&worker, peer);
        }
        Ok(Subject { worker, job, attempt: Some(attempt) })
    }

    /// The configuration's files for an attempt.
    pub async fn bundle(self: &Arc<Self>, subject: &Subject) -> Result<Arc<StoredConfig>, Refusal> {
        self.check_attempt(subject).await?;
        let mut tx = self.read().await?;
        let job = tx.job(&subject.job).await?.ok_or_else(|| Refusal::NoJob(subject.job.clone()))?;
        let config = tx.config_revision(&job.spec.config_name, job.spec.config_revision).await?;
        let config = config.ok_or(Refusal::NoConfig(job.spec.config_name))?;
        Ok(super::overrides::ran(config, &job.spec.overrides))
    }

    /// Checks that an attempt may still send files: its own job has not gone to somebody else, and is not over.
    pub async fn check_attempt(self: &Arc<Self>, subject: &Subject) -> Result<Attempt, Refusal> {
        let job = self.read().await?.job(&subject.job).await?.ok_or_else(|| Refusal::NoJob(subject.job.clone()))?;
        let attempt = subject.attempt.unwrap_or(job.attempt);
        job.clone().reported(self.now(), &subject.worker, attempt, Report::Running)?;
        self.answers(subject, &job, attempt).await?;
        Ok(attempt)
    }
}

/// Points as they are stored, if they are not too many.
fn points_of(points: &[ProgressPoint]) -> Result<Vec<StoredPoint>, Refusal> {
    if points.len() > MAX_POINTS {
        return Err(Invalid::TooMuch { what: "points", limit: MAX_POINTS as u64 }.into());
    }
    if points.iter().any(|point| point.metrics.len() > MAX_METRICS) {
        return Err(Invalid::TooMuch { what: "metrics", limit: MAX_METRICS as u64 }.into());
    }
    Ok(points.iter().map(stored).collect())
}

async fn add_points(unit: &mut Unit<'_>, job: &Job, attempt: Attempt, points: &[StoredPoint]) -> Result<(), Refusal> {
    if !points.is_empty() {
        unit.tx.add_points(&job.id, attempt, points, unit.core.policy.bounds.points).await?;
        unit.touch(Topic::Job(job.id.clone()));
    }
    Ok(())
}

/// A lost attempt does not come back to a place that is another's now.
async fn check_place(unit: &mut Unit<'_>, subject: &Subject, before: &Job, after: &Job) -> Result<(), Refusal> {
    if before.live_lease().is_some() || after.live_lease().is_none() {
        return Ok(());
    }
    let worker = unit.tx.worker(&subject.worker).await?.map(|stored| stored.worker);
    let held = unit.tx.leased_jobs(Some(&subject.worker)).await?;
    if displaced(before, after, worker.as_ref(), &held) { Err(Refused::NotYours.into()) } else { Ok(()) }
}

/// What a report means, given who sends it.
///
/// What a worker stops because its drain has come to its deadline goes back without counting, whichever word it uses.
/// What has trained as long as it may is stopped for that (see `desired`), also on such a worker. An older agent says
/// `failed` of a trainer that was killed.
async fn judged(unit: &mut Unit<'_>, subject: &Subject, job: &Job, report: Report) -> Result<Report, Refusal> {
    let Some(worker) = unit.tx.worker(&subject.worker).await?.map(|stored| stored.worker) else { return Ok(report) };
    let report = if worker.is_older() { older_report(report) } else { report };
    let stopped = matches!(report, Report::Cancelled | Report::Requeue { .. }) && job.overdue(unit.now).is_none();
    Ok(if stopped && worker.evicts(unit.now) { Report::Evicted } else { report })
}

/// A lease of a worker ended.
async fn release(unit: &mut Unit<'_>, worker: &WorkerId) -> Result<(), Refusal> {
    let Some(stored) = unit.tx.worker(worker).await? else { return Ok(()) };
    let after = stored.worker.clone().released(unit.now);
    unit.save_worker_unrecorded(&stored.worker, &after).await
}

/// An ephemeral worker's first job is its last.
async fn spend(unit: &mut Unit<'_>, worker: &WorkerId) -> Result<(), Refusal> {
    let Some(stored) = unit.tx.worker(worker).await? else { return Ok(()) };
    let after = stored.worker.clone().job_ended(unit.now);
    unit.save_worker(&stored.worker, &after, Action::WorkerSpent, &json!({})).await
}

async fn current(unit: &mut Unit<'_>, subject: &Subject) -> Result<(Job, Attempt), Refusal> {
    let job = unit.job(&subject.job).await?;
    let attempt = subject.attempt.unwrap_or(job.attempt);
    Ok((job, attempt))
}

/// The step from which an attempt says that it goes on.
fn resumed_from(report: &StatusReport) -> Result<Option<i64>, Refusal> {
    let step = report.resumed_from_step.map(i64::try_from).transpose();
    step.map_err(|_| Invalid::Range { field: RESUMED, allowed: "a step, or left out" }.into())
}

fn parsed(report: &StatusReport) -> Result<Report, Refusal> {
    let error = || escaped_lines(report.error.as_deref().unwrap_or_default()).chars().take(MAX_ERROR).collect();
    Ok(match report.status.as_str() {
        "starting" => Report::Starting,
        "running" | "training" => Report::Running,
        "completed" => Report::Completed,
        "failed" => Report::Failed { exit_code: report.exit_code, error: error() },
        "cancelled" => Report::Cancelled,
        "requeue" => Report::Requeue { error: error() },
        other => return Err(Invalid::Status(other.chars().take(40).collect()).into()),
    })
}

fn stored(point: &ProgressPoint) -> StoredPoint {
    let step = i64::try_from(point.step).unwrap_or(i64::MAX);
    let short = |text: &str| escaped(text).chars().take(MAX_WORDS).collect::<String>();
    let said = ProgressPoint {
        metrics: point.metrics.iter().map(|(name, value)| (short(name), *value)).collect(),
        stage: point.stage.as_deref().map(short),
        ..point.clone()
    };
    StoredPoint { step, point: serde_json::to_string(&said).expect("plain numbers and text") }
}
