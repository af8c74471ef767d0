//! Jobs as clients see them.

use std::collections::{HashMap, HashSet};

use app::domain::access::Permission;
use app::domain::explain::{Outlook, Outlooks};
use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Job, Previous, Start, State, Target as DomainTarget};
use app::domain::time::Timestamp;
use app::protocol::overrides::Diff;
use app::protocol::queue::{JobCounts, JobView, JobsPage, JobsQuery, ProgressView};
use app::protocol::status::{JobStatus, Phase, Target};
use app::protocol::submit::Submitted;
use app::protocol::worker::ProgressPoint;

use super::attempts::{attempt_view, moments};
use super::explain::NO_LOCAL_WORKER;
use super::summary;
use crate::service::Core;
use crate::service::access::Person;
use crate::service::checkpoints::resumable;
use crate::service::desired::policy;
use crate::service::overrides::told;
use crate::service::refusal::{Invalid, Refusal, moment};
use crate::service::unit::{failure_words, loss_words};
use crate::store::Tx;
use crate::store::attempts::StoredAttempt;
use crate::store::jobs::{JobFilter, Order, Turn};
use crate::store::known::Known;

/// Jobs on a page if nothing else was asked for.
const PAGE: u32 = 100;
/// Jobs on a page at most.
const LONGEST_PAGE: u32 = 1_000;
/// How many checkpoints a job's view lists.
const RESUMABLE: usize = 20;
/// So often a job is held against a worker for one answer: enough for a thousand different demands and a hundred workers.
const COMPARISONS: usize = 100_000;

/// What the views of several jobs share.
struct Around {
    places: HashMap<JobId, u64>,
    names: HashMap<WorkerId, String>,
    attempts: HashMap<JobId, StoredAttempt>,
    /// The jobs that wait and that no worker can take.
    fit_none: HashSet<JobId>,
}

impl Core {
    /// A page of the jobs that somebody may see.
    pub async fn jobs_page(&self, person: &Person, query: &JobsQuery) -> Result<JobsPage, Refusal> {
        let mut tx = self.read().await?;
        let limit = query.limit.unwrap_or(PAGE).clamp(1, LONGEST_PAGE);
        let filter = JobFilter { limit: limit + 1, ..filter(person, query)? };
        let mut jobs = tx.jobs(&filter).await?;
        let more = jobs.len() > limit as usize;
        jobs.truncate(limit as usize);
        let of_filter = tx.count_jobs(&filter).await?;
        let counted = |(word, _): &&(String, u64)| filter.states.is_empty() || filter.states.contains(&word.as_str());
        let total = of_filter.iter().filter(counted).map(|(_, number)| number).sum();
        let around = Around::load(&mut *tx, &jobs).await?;
        drop(tx);
        let around = Around { fit_none: self.fit_none(&jobs).await?, ..around };
        Ok(JobsPage {
            next_cursor: jobs.last().filter(|_| more).map(|last| cursor(&filter.order, last)),
            jobs: jobs.iter().map(|job| around.view(job)).collect(),
            total,
            counts: counts(&of_filter),
            disk_full: self.room.is_full(),
            server_time: self.now(),
        })
    }

    /// How many jobs that somebody may see there are in each status.
    pub async fn job_counts(&self, person: &Person) -> Result<JobCounts, Refusal> {
        let only = JobFilter { user: person.sees_only(), ..JobFilter::default() };
        Ok(counts(&self.read().await?.count_jobs(&only).await?))
    }

    /// One job.
    pub async fn job_view(&self, id: &JobId) -> Result<JobView, Refusal> {
        let mut tx = self.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?;
        let jobs = [job];
        let around = Around::load(&mut *tx, &jobs).await?;
        drop(tx);
        let around = Around { fit_none: self.fit_none(&jobs).await?, ..around };
        Ok(around.view(&jobs[0]))
    }

    /// Those of these jobs that somebody may see, as of one moment.
    pub async fn jobs_named(&self, person: &Person, ids: &[JobId]) -> Result<Vec<JobView>, Refusal> {
        let mut tx = self.read().await?;
        let only = person.sees_only();
        let mut jobs = Vec::with_capacity(ids.len());
        for id in ids {
            let job = tx.job(id).await?;
            jobs.extend(job.filter(|job| only.as_ref().is_none_or(|only| *only == job.submitted_by)));
        }
        let around = Around::load(&mut *tx, &jobs).await?;
        drop(tx);
        let around = Around { fit_none: self.fit_none(&jobs).await?, ..around };
        Ok(jobs.iter().map(|job| around.view(job)).collect())
    }

    /// What became of a submit: how the job stands after planning.
    pub async fn submitted(&self, id: &JobId) -> Result<Submitted, Refusal> {
        let mut tx = self.recent().await?;
        let job = tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?;
        let waits = matches!(job.state, State::Queued { .. });
        let queue_position = if waits { Some(tx.place(&job).await?) } else { None };
        drop(tx);
        let warning = if waits { self.recent().await?.see(|known| self.warning(known, &job)).await? } else { None };
        Ok(Submitted {
            success: true,
            job_id: job.id.clone(),
            status: status(&job),
            queue_position,
            allocated_worker_id: job.last_lease().filter(|_| !waits).map(|lease| lease.worker.clone()),
            warning,
        })
    }

    /// One job with its attempts.
    pub async fn job_detail(&self, id: &JobId) -> Result<JobView, Refusal> {
        let mut job = self.job_view(id).await?;
        let mut tx = self.read().await?;
        let (stored, moments) = (tx.attempts(id).await?, moments(tx.audit_of(id.as_str()).await?));
        if let Some(worker) = &job.worker_id {
            job.older_agent = tx.worker(worker).await?.is_some_and(|stored| stored.worker.is_older());
        }
        let found = tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?;
        job.overrides = told(&found.spec.overrides);
        if found.has_ended() {
            job.resumable = resumable(&mut *tx, &found, RESUMABLE).await?;
        }
        drop(tx);
        let mut attempts = Vec::new();
        for stored in stored {
            let log_bytes = self.logs.size(id, stored.attempt).await?;
            let moments = moments.get(&stored.attempt).copied().unwrap_or_default();
            attempts.push(attempt_view(stored, moments, log_bytes));
        }
        job.attempts = Some(attempts);
        Ok(job)
    }

    /// What becomes of jobs on the fleet as it is.
    pub(super) fn outlooks<'j, 'k>(&self, known: &'k Known) -> Outlooks<'j, 'k> {
        Outlooks::within(self.policy.fleet(known), COMPARISONS)
    }

    /// Why no worker can take a job that waits; nothing if one can.
    fn warning(&self, known: &Known, job: &Job) -> Option<String> {
        let mut outlooks = self.outlooks(known);
        match outlooks.of(job)? {
            Outlook::Busy | Outlook::Away | Outlook::NoWorkers => None,
            Outlook::Never => Some(summary::view(&outlooks.summary(job)?).text),
            Outlook::NoLocalWorker => Some(NO_LOCAL_WORKER.to_owned()),
        }
    }

    /// Those of these jobs that wait and that no worker can take. Take it while no other view is open: it may need one.
    async fn fit_none(&self, jobs: &[Job]) -> Result<HashSet<JobId>, Refusal> {
        let waiting: Vec<&Job> = jobs.iter().filter(|job| matches!(job.state, State::Queued { .. })).collect();
        if waiting.is_empty() {
            return Ok(HashSet::new());
        }
        let fit_none = |known: &Known| {
            let mut outlooks = self.outlooks(known);
            let fits_none = |job| outlooks.of(job).is_some_and(Outlook::fits_none).then(|| job.id.clone());
            waiting.into_iter().filter_map(fits_none).collect()
        };
        Ok(self.recent().await?.see(fit_none).await?)
    }
}

impl Around {
    async fn load(tx: &mut dyn Tx, jobs: &[Job]) -> Result<Self, Refusal> {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
        let attempts = tx.newest_attempts(&ids).await?;
        let mut places = HashMap::new();
        for job in jobs.iter().filter(|job| matches!(job.state, State::Queued { .. })) {
            places.insert(job.id.clone(), tx.place(job).await?);
        }
        Ok(Self {
            places,
            names: attempts.iter().map(|a| (a.worker.clone(), a.worker_name.clone())).collect(),
            attempts: attempts.into_iter().map(|attempt| (attempt.job.clone(), attempt)).collect(),
            fit_none: HashSet::new(),
        })
    }

    fn view(&self, job: &Job) -> JobView {
        let attempt = self.attempts.get(&job.id);
        let worker_id = job.last_lease().map(|lease| lease.worker.clone());
        let error = error(job);
        let error_line = attempt.and_then(|attempt| attempt.error_line).filter(|_| error.is_some());
        JobView {
            job_id: job.id.clone(),
            status: status(job),
            status_since: job.since(),
            config_name: job.spec.config_name.clone(),
            config_revision: job.spec.config_revision,
            target: match job.spec.target {
                DomainTarget::Auto => Target::Auto,
                DomainTarget::Worker => Target::Worker,
                DomainTarget::Local => Target::Local,
            },
            worker_labels: job.spec.demand.labels.clone(),
            gpu_count: job.spec.demand.gpu_count,
            min_vram_gb: job.spec.demand.min_vram_gb,
            accelerator_type: job.spec.demand.accelerator.clone(),
            retry_on_failure: job.spec.retry_on_failure,
            max_runtime_seconds: job.spec.max_runtime.map(|allowed| allowed.0.unsigned_abs() / 1_000),
            secrets: job.spec.secrets.clone(),
            shared_secrets_only: job.spec.shared_secrets_only,
            exclusive: job.spec.exclusive,
            sandbox: job.spec.demand.sandbox,
            checkpoints: policy(job.spec.checkpoints),
            priority: job.priority,
            retry_of: job.retry_of.clone(),
            resume_from: job.retry_of.as_ref().map(|_| match &job.spec.start {
                Start::Checkpoint(saved) => saved.name.clone(),
                start => start.to_string(),
            }),
            overrides: Diff::new(),
            resumable: Vec::new(),
            attempt: job.attempt,
            max_attempts: job.spec.max_retries + 1,
            worker_name: worker_id.as_ref().and_then(|id| self.names.get(id).cloned()),
            worker_id,
            older_agent: false,
            submitted_at: job.submitted_at,
            submitted_by: job.submitted_by.clone(),
            started_at: attempt.and_then(|attempt| attempt.started_at),
            ended_at: job.has_ended().then(|| job.since()),
            queue_position: self.places.get(&job.id).copied(),
            fits_none: self.fit_none.contains(&job.id),
            progress: attempt.and_then(progress),
            error,
            error_line,
            attempts: None,
        }
    }
}

/// The word of a job's state.
pub fn status(job: &Job) -> JobStatus {
    match job.state {
        State::Queued { .. } => JobStatus::Queued,
        State::Offered { .. } => JobStatus::Offered,
        State::Starting { .. } => JobStatus::Starting,
        State::Running { .. } => JobStatus::Running,
        State::Cancelling { .. } => JobStatus::Cancelling,
        State::Completed { .. } => JobStatus::Completed,
        State::Failed { .. } => JobStatus::Failed,
        State::Cancelled { .. } => JobStatus::Cancelled,
    }
}

/// How far an attempt is.
pub fn progress(attempt: &StoredAttempt) -> Option<ProgressView> {
    let point: ProgressPoint = serde_json::from_str(attempt.progress.as_deref()?).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
    let percent =
        point.total_steps.filter(|total| *total > 0).map(|total| (point.step as f64 / total as f64 * 100.0).min(100.0));
    Some(ProgressView {
        step: point.step,
        total_steps: point.total_steps,
        percent,
        at: point.at,
        epoch: point.epoch,
        loss: point.loss,
        learning_rate: point.learning_rate,
        eta_seconds: point.eta_seconds,
        stage: point.stage,
    })
}

fn error(job: &Job) -> Option<String> {
    match &job.state {
        State::Failed { failure, .. } => Some(failure_words(failure)),
        State::Queued { previous: Some(Previous { loss: Some(loss), .. }), .. } => Some(loss_words(loss)),
        _ => None,
    }
}

/// What was asked for, checked.
fn filter(person: &Person, query: &JobsQuery) -> Result<JobFilter, Refusal> {
    let label = query.label.as_deref().map(|label| match label.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (label.to_owned(), None),
    });
    let only = person.sees_only();
    if only.is_some() && query.user.is_some() && only != query.user {
        return Err(Refusal::Denied(Permission::JobViewAll));
    }
    Ok(JobFilter {
        states: states(query),
        worker: query.worker.clone(),
        since: moment("since", query.since.as_deref())?,
        until: moment("until", query.until.as_deref())?,
        ended_since: moment("ended_since", query.ended_since.as_deref())?,
        user: query.user.clone().or(only),
        label,
        order: order(query)?,
        ..JobFilter::default()
    })
}

/// What waits is told in the order of its turns, and everything else with the newest first.
fn order(query: &JobsQuery) -> Result<Order, Refusal> {
    let read = |cursor: &str| match query.phase {
        Some(Phase::Waiting) => turn(cursor).map(|turn| Order::Next(Some(turn))),
        _ => JobId::parse(cursor).ok().map(|id| Order::Newest(Some(id.to_string()))),
    };
    match (query.cursor.as_deref(), query.phase) {
        (Some(cursor), _) => {
            Ok(read(cursor).ok_or(Invalid::Range { field: "cursor", allowed: "a next_cursor of this list" })?)
        }
        (None, Some(Phase::Waiting)) => Ok(Order::Next(None)),
        (None, _) => Ok(Order::Newest(None)),
    }
}

/// Where a list goes on after this job, whatever becomes of it meanwhile.
fn cursor(order: &Order, last: &Job) -> String {
    let Turn { urgency, submitted_at, id } = Turn::of(last);
    match order {
        Order::Newest(_) => id,
        Order::Next(_) => format!("{urgency}.{}.{id}", submitted_at.0),
    }
}

fn turn(cursor: &str) -> Option<Turn> {
    let mut parts = cursor.splitn(3, '.');
    let (urgency, at) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Turn { urgency, submitted_at: Timestamp(at), id: JobId::parse(parts.next()?).ok()?.to_string() })
}

fn states(query: &JobsQuery) -> Vec<&'static str> {
    let phase = |status: &&JobStatus| query.phase.is_none_or(|phase| status.is_in(phase));
    match (query.status, query.phase) {
        (None, None) => Vec::new(),
        (wanted, _) => {
            let fits = |status: &&JobStatus| phase(status) && wanted.is_none_or(|wanted| wanted == **status);
            let states: Vec<_> = JobStatus::ALL.iter().filter(fits).map(|status| status.as_str()).collect();
            // Contradictory filters mean none, not all.
            if states.is_empty() { vec!["none"] } else { states }
        }
    }
}

fn counts(by_state: &[(String, u64)]) -> JobCounts {
    let count = |counts: &dyn Fn(JobStatus) -> bool| {
        let counted = |(word, _): &&(String, u64)| JobStatus::parse(word).is_some_and(counts);
        by_state.iter().filter(counted).map(|(_, number)| number).sum()
    };
    JobCounts {
        waiting: count(&|status| status.is_in(Phase::Waiting)),
        running: count(&|status| status.is_in(Phase::Running)),
        completed: count(&|status| status == JobStatus::Completed),
        failed: count(&|status| status == JobStatus::Failed),
        cancelled: count(&|status| status == JobStatus::Cancelled),
    }
}
