//! The fleet overview, from memory: only few rows are read from the database, however large the fleet is.

use std::collections::HashMap;

use app::domain::alerts::{self, Alert, AlertKind, AlertSubject, Severity, WorkerContext};
use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{AttemptLoss, Job};
use app::domain::time::Timestamp;
use app::domain::worker::WorkerState;
use app::protocol::gpus::GpuCounts;
use app::protocol::overview::{self, AlertCode, AlertView, JobTotals, OverviewView, WaitingJob};
use app::protocol::status::{JobPhase, JobStatus};
use app::protocol::workers::WorkerCounts;
use itertools::Itertools;

use crate::service::access::Principal;
use crate::service::audit::rejections::RecentRejections;
use crate::service::error::ServiceError;
use crate::service::jobs::match_summary;
use crate::service::system::SystemService;
use crate::service::workers::gpu_views::gpu_counts;
use crate::service::workers::history::{DAY, failure_streak};
use crate::service::workers::views::{load_jobs_of_workers, worker_status};
use crate::store::cache::fleet_worker::FleetWorker;
use crate::store::cache::state::FleetState;
use crate::store::usage::FailingWorker;

/// The maximum number of listed workers.
const MAX_FLEET_WORKERS: usize = 12;
/// The number of such failures in a row that raises an alert.
const MIN_FAILURE_STREAK: u64 = 3;

/// The state of the fleet in one snapshot.
struct FleetSurvey {
    workers: WorkerCounts,
    gpus: GpuCounts,
    gpus_measured: u64,
    jobs: JobTotals,
    alerts: Vec<Alert>,
    fleet: Vec<FleetWorker>,
}

impl SystemService {
    /// Returns the overview, with the jobs that the user may see.
    pub async fn overview(&self, principal: &Principal) -> Result<OverviewView, ServiceError> {
        let now = self.context.now();
        let (since, visible_owner) = (Timestamp(now.0 - DAY.0), principal.visible_owner());
        let mut tx = self.context.read_recent().await?;
        let failing = tx.failing_workers(failure_streak(now, MIN_FAILURE_STREAK), None).await?;
        let ended = tx.ended_since(since, visible_owner.as_deref()).await?;
        let rejections = RecentRejections::load(&mut *tx, since).await?;
        drop(tx);
        let mut tx = self.context.read_recent().await?;
        let survey = tx
            .with_state(|fleet_state| self.survey(fleet_state, failing, &rejections, visible_owner.as_deref()))
            .await?;
        let mut held = load_jobs_of_workers(&mut *tx, &survey.fleet).await?;
        drop(tx);
        let view = |row| self.workers.worker_row_view(row, &mut held);
        let recent_count =
            |status: JobStatus| ended.iter().find(|(name, _)| name == status.as_str()).map_or(0, |(_, number)| *number);
        let attention = alerts::build_list(survey.alerts);
        Ok(OverviewView {
            workers: survey.workers,
            gpus: survey.gpus,
            gpus_measured: survey.gpus_measured,
            jobs: JobTotals {
                completed_in_24h: recent_count(JobStatus::Completed),
                failed_in_24h: recent_count(JobStatus::Failed),
                ..survey.jobs
            },
            disk_full: self.context.disk_space.is_full(),
            attention: attention.alerts.into_iter().map(alert_view).collect(),
            more_attention: attention.more,
            fleet: survey.fleet.iter().map(view).collect(),
            server_time: now,
        })
    }

    fn survey(
        &self,
        fleet_state: &FleetState,
        failing_workers: Vec<FailingWorker>,
        rejections: &RecentRejections,
        visible_owner: Option<&str>,
    ) -> FleetSurvey {
        let now = self.context.now();
        let findings = WorkerFindings {
            failing: failing_workers.into_iter().map(|failing| (failing.worker.clone(), failing)).collect(),
            lost_jobs: lost_jobs_that_wait(fleet_state),
            rejections,
        };
        let (mut workers, mut gpus, mut entries) = (WorkerCounts::default(), GpuCounts::default(), Vec::new());
        let mut gpus_measured = 0;
        let ranked = fleet_state.workers().map(|row| {
            let worker = row.worker();
            workers.add(worker_status(row.state));
            let before = gpus.connected();
            gpus.add_all(gpu_counts(row.gpus));
            let connected = gpus.connected() - before;
            if connected > 0 {
                gpus_measured += self.readings.measured_count(&worker.id).min(connected);
            }
            let mut own_alerts = findings.alerts(row, now);
            let worst = own_alerts.iter().map(|entry| entry.kind.severity()).min();
            entries.append(&mut own_alerts);
            ((worst.is_none(), worst, status_priority(row.state), &worker.name), row)
        });
        let first = ranked.k_smallest_by(MAX_FLEET_WORKERS, |(left, _), (right, _)| left.cmp(right));
        let fleet = first.map(|(_, row)| row.clone()).collect();
        entries.extend(self.stuck_jobs(fleet_state, visible_owner));
        let full_since = self.context.disk_space.full_since();
        entries.extend(full_since.map(|since| Alert {
            kind: AlertKind::DiskFull,
            subject: AlertSubject::Server,
            since: Some(since),
        }));
        let unshipped_since = self.context.metrics.shipping.failing_since();
        entries.extend(unshipped_since.map(|since| Alert {
            kind: AlertKind::AuditNotShipped,
            subject: AlertSubject::Server,
            since: Some(since),
        }));
        FleetSurvey {
            workers,
            gpus,
            gpus_measured,
            jobs: job_totals(fleet_state, visible_owner),
            alerts: entries,
            fleet,
        }
    }

    /// Alerts for jobs that wait until someone acts.
    fn stuck_jobs(&self, fleet_state: &FleetState, visible_owner: Option<&str>) -> Vec<Alert> {
        let mut feasibility_cache = self.jobs.feasibility_cache(fleet_state);
        alerts::stuck_job_alerts(
            fleet_state.queued_jobs().filter(|job| can_see(visible_owner, job)),
            &mut feasibility_cache,
            self.context.now(),
        )
    }
}

/// What alerts depend on besides the state of the worker.
struct WorkerFindings<'a> {
    failing: HashMap<WorkerId, FailingWorker>,
    lost_jobs: HashMap<WorkerId, Vec<JobId>>,
    rejections: &'a RecentRejections,
}

impl WorkerFindings<'_> {
    fn alerts(&self, row: &FleetWorker, now: Timestamp) -> Vec<Alert> {
        let worker = row.worker();
        let (failing, lost_jobs) = (self.failing.get(&worker.id), self.lost_jobs.get(&worker.id));
        let rejection = self.rejections.newest_for(worker);
        // Most workers. Their state is not read, because a large fleet exceeds the processor's caches.
        if now < row.no_alert_before && failing.is_none() && lost_jobs.is_none() && rejection.is_none() {
            return Vec::new();
        }
        let worker_context = WorkerContext {
            worker,
            credential: &row.stored.credential,
            job: row.jobs.first().map(|job| &job.id),
            waiting_jobs: lost_jobs.map(Vec::as_slice).unwrap_or_default(),
            rejection,
        };
        let own_alerts = alerts::worker_alerts(worker_context, env!("CARGO_PKG_VERSION"), now);
        let fast_failures = failing.map(|failing| Alert {
            kind: AlertKind::FastFailures { attempts: failing.attempts },
            subject: AlertSubject::Worker(worker.id.clone(), worker.name.clone()),
            since: Some(failing.since),
        });
        own_alerts.into_iter().chain(fast_failures).collect()
    }
}

fn can_see(visible_owner: Option<&str>, job: &Job) -> bool {
    visible_owner.is_none_or(|name| job.submitted_by == name)
}

/// The jobs that wait because their worker went offline, by worker: also those whose offer to another worker is
/// unanswered.
fn lost_jobs_that_wait(fleet_state: &FleetState) -> HashMap<WorkerId, Vec<JobId>> {
    let queued = fleet_state.queued_jobs().filter_map(|job| {
        let previous = job.state.waiting()?.previous.as_ref()?;
        matches!(previous.loss, Some(AttemptLoss::WorkerOffline(_))).then_some((&previous.lease.worker, &job.id))
    });
    let offline = fleet_state.workers().filter(|row| row.state == WorkerState::Offline).map(FleetWorker::worker);
    let offered = offline.flat_map(move |worker| {
        let lost = worker.lost_jobs().iter().filter_map(move |id| fleet_state.job(id));
        let waiting = lost.filter(|job| job.state.status().is_in_phase(JobPhase::Waiting));
        waiting.map(move |job| (&worker.id, &job.id))
    });
    let mut jobs_by_worker: HashMap<WorkerId, Vec<JobId>> = HashMap::new();
    for (worker, job) in queued.chain(offered) {
        let jobs = jobs_by_worker.entry(worker.clone()).or_default();
        if !jobs.contains(job) {
            jobs.push(job.clone());
        }
    }
    jobs_by_worker
}

/// The order of workers without alerts: busy ones first.
const fn status_priority(status: WorkerState) -> u8 {
    match status {
        WorkerState::Busy => 0,
        WorkerState::Draining => 1,
        WorkerState::Connecting => 2,
        WorkerState::Idle => 3,
        WorkerState::Offline => 4,
    }
}

fn job_totals(fleet_state: &FleetState, visible_owner: Option<&str>) -> JobTotals {
    let mut totals = JobTotals::default();
    let mut oldest: Option<&Job> = None;
    for job in fleet_state.jobs().map(std::sync::Arc::as_ref).filter(|job| can_see(visible_owner, job)) {
        let is_waiting = match job.state.status().phase() {
            JobPhase::Waiting => true,
            JobPhase::Running => false,
            JobPhase::Active | JobPhase::Ended => continue,
        };
        *(if is_waiting { &mut totals.waiting } else { &mut totals.running }) += 1;
        // Only these wait for a worker.
        let in_queue = is_waiting && (job.is_queued() || job.active_lease().is_some());
        if in_queue && oldest.is_none_or(|other| (job.submitted_at, &job.id) < (other.submitted_at, &other.id)) {
            oldest = Some(job);
        }
    }
    totals.oldest_waiting = oldest.map(|job| WaitingJob {
        job_id: job.id.clone(),
        config_name: job.spec.config_name.clone(),
        submitted_at: job.submitted_at,
    });
    totals
}

fn alert_view(entry: Alert) -> AlertView {
    let severity = match entry.kind.severity() {
        Severity::Critical => overview::Severity::Critical,
        Severity::Warning => overview::Severity::Warning,
        Severity::Info => overview::Severity::Info,
    };
    let (worker_id, job_id, name, worker_count) = match entry.subject {
        AlertSubject::Server => (None, None, None, None),
        AlertSubject::Worker(id, name) => (Some(id), None, Some(name), None),
        AlertSubject::Workers(number) => (None, None, None, Some(number)),
        AlertSubject::Job(id, name) => (None, Some(id), Some(name), None),
    };
    let plain = |kind| AlertView {
        kind,
        severity,
        since: entry.since,
        worker_id,
        job_id,
        name,
        count: worker_count,
        job_ids: Vec::new(),
        summary: None,
        detail: None,
        at: None,
    };
    let about_jobs = |mut jobs: Vec<JobId>, view: AlertView| {
        let count = Some(jobs.len() as u64);
        jobs.truncate(alerts::MAX_NAMED_JOBS);
        AlertView { job_id: jobs.first().cloned(), count, job_ids: jobs, ..view }
    };
    let non_empty = |detail: String| Some(detail).filter(|detail| !detail.is_empty());
    match entry.kind {
        AlertKind::DiskFull => plain(AlertCode::DiskFull),
        AlertKind::AuditNotShipped => plain(AlertCode::AuditNotShipped),
        AlertKind::TokenShared { host } => AlertView { detail: non_empty(host), ..plain(AlertCode::TokenShared) },
        AlertKind::TokenExpired => plain(AlertCode::TokenExpired),
        AlertKind::OfflineWithJob { jobs } => about_jobs(jobs, plain(AlertCode::OfflineWithJob)),
        AlertKind::Offline { jobs } => about_jobs(jobs, plain(AlertCode::Offline)),
        AlertKind::FastFailures { attempts } => AlertView { count: Some(attempts), ..plain(AlertCode::FastFailures) },
        AlertKind::Stuck { jobs, summary } => {
            let summary = summary.as_ref().map(match_summary::fit_summary_view);
            AlertView { count: Some(jobs), summary, ..plain(AlertCode::Stuck) }
        }
        AlertKind::MoreStuck { jobs } => AlertView { count: Some(jobs), ..plain(AlertCode::MoreStuck) },
        AlertKind::GpusUnavailable { gpus, first, detail } => {
            let detail = if detail.is_empty() { format!("GPU {first}") } else { format!("GPU {first}: {detail}") };
            AlertView { count: Some(gpus), detail: Some(detail), ..plain(AlertCode::GpusUnavailable) }
        }
        AlertKind::HostUnhealthy { why } => AlertView { detail: non_empty(why), ..plain(AlertCode::HostUnhealthy) },
        AlertKind::RegistrationRejected { reason } => {
            AlertView { detail: Some(reason), ..plain(AlertCode::RegistrationRejected) }
        }
        AlertKind::DrainOverdue => plain(AlertCode::DrainOverdue),
        AlertKind::TokenExpiring { at } => AlertView { at: Some(at), ..plain(AlertCode::TokenExpiring) },
        AlertKind::TlsUnverified => plain(AlertCode::TlsUnverified),
        AlertKind::DrainLong => plain(AlertCode::DrainLong),
        AlertKind::AgentOutdated { version } => {
            // The versions of several workers may differ.
            let detail = worker_count.is_none().then_some(version);
            AlertView { detail, ..plain(AlertCode::AgentOutdated) }
        }
        AlertKind::TokenOld => plain(AlertCode::TokenOld),
    }
}
