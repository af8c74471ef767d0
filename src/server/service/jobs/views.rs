use std::collections::{HashMap, HashSet};

use app::domain::access::Permission;
use app::domain::explain::{Feasibility, FeasibilityCache};
use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{AttemptLoss, Job, JobState};
use app::protocol::agents::ProgressPoint;
use app::protocol::jobs::explain::FitSummaryView;
use app::protocol::jobs::submit::SubmitJobResponse;
use app::protocol::jobs::{JobView, ProgressView, SeriesQuery};
use app::protocol::status::JobStatus;

use crate::service::access::Principal;
use crate::service::error::ServiceError;
use crate::service::jobs::JobService;
use crate::service::jobs::attempts::{attempt_times, attempt_view, cancelled_by};
use crate::service::jobs::family::family_of;
use crate::service::jobs::fields::submitted_view;
use crate::service::jobs::match_summary;
use crate::service::jobs::overrides::to_diff;
use crate::service::jobs::resume_points::resumable_checkpoints;
use crate::service::unit_of_work::{describe_failure, describe_loss};
use crate::store::Tx;
use crate::store::cache::state::FleetState;
use crate::store::jobs::attempts::StoredAttempt;

/// The maximum number of checkpoints in a job's view.
const MAX_RESUMABLE: usize = 20;
/// The maximum number of job-worker comparisons per response: enough for a thousand different requirements and a
/// hundred workers.
const MAX_COMPARISONS: usize = 100_000;

/// Shared by the views of several jobs.
struct JobsContext {
    queue_positions: HashMap<JobId, u64>,
    worker_names: HashMap<WorkerId, String>,
    attempts: HashMap<JobId, StoredAttempt>,
    /// Waiting jobs that match no worker.
    unmatched: HashSet<JobId>,
}

/// Why no worker matches a job that was submitted.
pub enum SubmitWarning {
    Unsatisfiable(FitSummaryView),
    /// The job is for the server's own GPUs, and it runs no jobs.
    NoLocalWorker,
}

impl JobService {
    pub async fn job_view(&self, id: &JobId) -> Result<JobView, ServiceError> {
        let mut tx = self.context.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| ServiceError::JobNotFound(id.clone()))?;
        Ok(self.view_jobs(tx, &[job]).await?.remove(0))
    }

    /// Describes jobs that were read in this transaction.
    pub(super) async fn view_jobs(&self, mut tx: Box<dyn Tx>, jobs: &[Job]) -> Result<Vec<JobView>, ServiceError> {
        let context = JobsContext::load(&mut *tx, jobs).await?;
        drop(tx);
        let (unmatched, queue_positions) = self.waiting_jobs(jobs).await?;
        let context = JobsContext { queue_positions, unmatched, ..context };
        Ok(jobs.iter().map(|job| context.view(job)).collect())
    }

    /// Returns those of these jobs that a user may see, from one snapshot.
    pub async fn jobs_by_id(&self, principal: &Principal, ids: &[JobId]) -> Result<Vec<JobView>, ServiceError> {
        let mut tx = self.context.read().await?;
        let jobs = visible_jobs_by_id(&mut *tx, principal, ids).await?;
        self.view_jobs(tx, &jobs).await
    }

    /// Returns the response to a submit: the job after planning. The caller turns the warning into a sentence.
    pub async fn submit_response(
        &self,
        id: &JobId,
    ) -> Result<(SubmitJobResponse, Option<SubmitWarning>), ServiceError> {
        let found = self.context.read_recent().await?.job(id).await?;
        let job = found.ok_or_else(|| ServiceError::JobNotFound(id.clone()))?;
        let is_waiting = job.is_queued();
        let (warning, queue_position) = if is_waiting {
            let now = self.context.now();
            let waits = |fleet_state: &FleetState| {
                (self.warning(fleet_state, &job), fleet_state.queue_positions(&[&job], now).remove(&job.id))
            };
            self.context.read_recent().await?.with_state(waits).await?
        } else {
            (None, None)
        };
        let response = SubmitJobResponse {
            success: true,
            job_id: job.id.clone(),
            status: job.state.status(),
            queue_position,
            allocated_worker_id: job.last_lease().filter(|_| !is_waiting).map(|lease| lease.worker.clone()),
            warning: None,
        };
        Ok((response, warning))
    }

    /// Returns a job as in a list, with the step since which its loss is NaN.
    pub async fn job_with_loss(&self, id: &JobId) -> Result<JobView, ServiceError> {
        let mut job = self.job_view(id).await?;
        if let Some(progress) = job.progress.as_mut().filter(|progress| progress.loss_nan_since.is_some()) {
            progress.loss_nan_since = self
                .job_metrics(id, SeriesQuery { attempt: Some(job.attempt.0), ..SeriesQuery::default() })
                .await?
                .loss_nan_since;
        }
        Ok(job)
    }

    /// Returns a job with its attempts. Overrides are only shown to users who may read configurations.
    pub async fn job_detail(&self, principal: &Principal, id: &JobId) -> Result<JobView, ServiceError> {
        let mut job = self.job_with_loss(id).await?;
        let mut tx = self.context.read().await?;
        let (stored, entries) = (tx.attempts(id).await?, tx.audit_of_target(id.as_str()).await?);
        let times = attempt_times(&entries);
        if matches!(job.status, JobStatus::Cancelling | JobStatus::Cancelled) {
            job.cancelled_by = cancelled_by(&entries);
        }
        if let Some(worker) = &job.worker_id {
            job.older_agent = tx.worker(worker).await?.is_some_and(|stored| stored.worker.has_older_agent());
        }
        let stored_job = tx.job(id).await?.ok_or_else(|| ServiceError::JobNotFound(id.clone()))?;
        job.notes.clone_from(&stored_job.description.notes);
        if principal.permissions.contains(Permission::ConfigView) {
            job.overrides = to_diff(&stored_job.spec.overrides);
        }
        job.resumable = resumable_checkpoints(&mut *tx, &stored_job, MAX_RESUMABLE).await?;
        job.family = family_of(&mut *tx, principal, &stored_job).await?;
        if job.status == JobStatus::Failed {
            let owner = principal.visible_owner();
            job.last_completed = tx.last_completed_job(&job.config_name, owner.as_deref()).await?;
        }
        drop(tx);
        let mut attempts = Vec::new();
        for stored in stored {
            let (log_bytes, log) = self.logs.facts(id, stored.attempt).await?;
            let times = times.get(&stored.attempt).copied().unwrap_or_default();
            attempts.push(attempt_view(stored, times, log_bytes, &log));
        }
        job.attempts = Some(attempts);
        Ok(job)
    }

    /// Caches whether jobs are feasible on the current fleet.
    pub(in crate::service) fn feasibility_cache<'j, 'k>(
        &self,
        fleet_state: &'k FleetState,
    ) -> FeasibilityCache<'j, 'k> {
        FeasibilityCache::with_budget(
            self.context.policy.planner_fleet(fleet_state, self.context.now()),
            MAX_COMPARISONS,
        )
    }

    /// Returns why a waiting job matches no worker; `None` if one does.
    fn warning(&self, fleet_state: &FleetState, job: &Job) -> Option<SubmitWarning> {
        let mut feasibility_cache = self.feasibility_cache(fleet_state);
        match feasibility_cache.feasibility(job)? {
            Feasibility::Busy | Feasibility::WorkerUnavailable | Feasibility::NoWorkers => None,
            Feasibility::Unsatisfiable => {
                Some(SubmitWarning::Unsatisfiable(match_summary::fit_summary_view(&feasibility_cache.summary(job)?)))
            }
            Feasibility::NoLocalWorker => Some(SubmitWarning::NoLocalWorker),
        }
    }

    /// Returns which of these jobs wait and match no worker, and the positions of those that wait. Call it while no other
    /// snapshot is open: it may need one.
    async fn waiting_jobs(&self, jobs: &[Job]) -> Result<(HashSet<JobId>, HashMap<JobId, u64>), ServiceError> {
        let waiting: Vec<&Job> = jobs.iter().filter(|job| job.is_queued()).collect();
        if waiting.is_empty() {
            return Ok((HashSet::new(), HashMap::new()));
        }
        let now = self.context.now();
        let find = |fleet_state: &FleetState| {
            let positions = fleet_state.queue_positions(&waiting, now);
            let mut feasibility_cache = self.feasibility_cache(fleet_state);
            let fits_none = |job| {
                feasibility_cache.feasibility(job).is_some_and(Feasibility::is_unsatisfiable).then(|| job.id.clone())
            };
            (waiting.into_iter().filter_map(fits_none).collect(), positions)
        };
        Ok(self.context.read_recent().await?.with_state(find).await?)
    }
}

/// Returns those of these jobs that a user may see.
pub(super) async fn visible_jobs_by_id(
    tx: &mut dyn Tx,
    principal: &Principal,
    ids: &[JobId],
) -> Result<Vec<Job>, ServiceError> {
    let (visible_owner, mut jobs) = (principal.visible_owner(), tx.jobs_by_id(ids).await?);
    jobs.retain(|job| visible_owner.as_ref().is_none_or(|owner| *owner == job.submitted_by));
    Ok(jobs)
}

impl JobsContext {
    async fn load(tx: &mut dyn Tx, jobs: &[Job]) -> Result<Self, ServiceError> {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
        let attempts = tx.newest_attempts(&ids).await?;
        Ok(Self {
            queue_positions: HashMap::new(),
            worker_names: attempts.iter().map(|a| (a.worker.clone(), a.worker_name.clone())).collect(),
            attempts: attempts.into_iter().map(|attempt| (attempt.job.clone(), attempt)).collect(),
            unmatched: HashSet::new(),
        })
    }

    fn view(&self, job: &Job) -> JobView {
        let attempt = self.attempts.get(&job.id);
        let worker_id = job.last_lease().map(|lease| lease.worker.clone());
        let error = error_text(job);
        let error_line = attempt.and_then(|attempt| attempt.error_line).filter(|_| error.is_some());
        JobView {
            worker_name: worker_id.as_ref().and_then(|id| self.worker_names.get(id).cloned()),
            worker_id,
            started_at: attempt.and_then(|attempt| attempt.started_at),
            queue_position: self.queue_positions.get(&job.id).copied(),
            fits_none: self.unmatched.contains(&job.id),
            progress: attempt.and_then(progress_view),
            error,
            loss_code: job.state.loss().map(AttemptLoss::code),
            error_line,
            ..submitted_view(job)
        }
    }
}

pub fn progress_view(attempt: &StoredAttempt) -> Option<ProgressView> {
    let point: ProgressPoint = serde_json::from_str(attempt.progress.as_deref()?).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "a percentage for display")]
    let percent =
        point.total_steps.filter(|total| *total > 0).map(|total| (point.step as f64 / total as f64 * 100.0).min(100.0));
    Some(ProgressView {
        step: point.step,
        total_steps: point.total_steps,
        percent,
        at: point.at,
        epoch: point.epoch,
        loss: point.loss,
        loss_nan_since: point.loss_is_nan.then_some(point.step),
        learning_rate: point.learning_rate,
        eta_seconds: point.eta_seconds,
        stage: point.stage,
    })
}

fn error_text(job: &Job) -> Option<String> {
    match &job.state {
        JobState::Failed { failure, .. } => Some(describe_failure(failure)),
        state => state.waiting()?.loss().map(describe_loss),
    }
}
