use std::collections::HashMap;

use app::domain::audit::AuditAction;
use app::domain::gpu::Gpu;
use app::domain::ids::WorkerId;
use app::domain::job::{Job, Lease};
use app::domain::time::Timestamp;
use app::domain::worker::status_timeline::{CONNECTION_ACTIONS, DRAIN_ACTIONS, status_timeline};
use app::domain::worker::{TokenConflict, Worker, WorkerKind, WorkerState};
use app::protocol::gpu::GpuInfo;
use app::protocol::status::{WorkerStatus, WorkerType};
use app::protocol::workers::history::StatusSpanView;
use app::protocol::workers::{GpuModel, TokenConflictView, WorkerJobView, WorkerSettings, WorkerView};

use crate::service::access::Principal;
use crate::service::audit::entries::newest_entry;
use crate::service::audit::rejections::last_rejection;
use crate::service::context::presence::last_contact;
use crate::service::error::ServiceError;
use crate::service::jobs::views::progress_view;
use crate::service::workers::WorkerService;
use crate::service::workers::gpu_views::gpu_views;
use crate::service::workers::history::DAY;
use crate::service::workers::liveness::offline_at;
use crate::service::workers::revision;
use crate::store::Tx;
use crate::store::cache::fleet_worker::FleetWorker;
use crate::store::jobs::attempts::StoredAttempt;
use crate::store::workers::StoredWorker;

/// The maximum number of audit entries of a kind, and of attempts, read for a worker's last day.
const MAX_ENTRIES_READ: u32 = 300;

/// Jobs by their worker.
pub(in crate::service) type HeldJobs = HashMap<WorkerId, Vec<WorkerJobView>>;

impl WorkerService {
    /// Returns a worker, with what the user may see.
    pub async fn worker_for(&self, principal: &Principal, id: &WorkerId) -> Result<WorkerView, ServiceError> {
        let mut tx = self.context.read().await?;
        let stored = tx.worker(id).await?.ok_or_else(|| ServiceError::WorkerNotFound(id.clone()))?;
        let readings = self.readings.view_worker(id, self.context.now());
        let leased = tx.leased_jobs(Some(id)).await?;
        let leased: Vec<&Job> = leased.iter().collect();
        let gpus = gpu_views(&stored.worker, &leased, readings);
        let mut held = load_held_jobs(&mut *tx, &leased).await?;
        let settings = Some(settings_view(&stored.worker));
        let last_rejection = last_rejection(&mut *tx, &stored).await?;
        let registered_at =
            newest_entry(&mut *tx, AuditAction::WorkerRegistered, id.as_str(), None).await?.map(|entry| entry.at);
        let last_day = last_day_timeline(&mut *tx, &stored.worker, self.context.now()).await?;
        let view = self.worker_view(&stored, held.remove(id).unwrap_or_default());
        Ok(principal.redact_worker(WorkerView { gpus, settings, last_rejection, registered_at, last_day, ..view }))
    }

    /// Returns those of these workers that exist, from one snapshot.
    pub async fn workers_by_id(&self, ids: &[WorkerId]) -> Result<Vec<WorkerView>, ServiceError> {
        let mut tx = self.context.read().await?;
        let leased = tx.leased_jobs(None).await?;
        let mut held =
            load_held_jobs(&mut *tx, &leased.iter().filter(|job| is_held_by_any(job, ids)).collect::<Vec<_>>()).await?;
        let mut views = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(stored) = tx.worker(id).await? {
                views.push(self.worker_view(&stored, held.remove(id).unwrap_or_default()));
            }
        }
        Ok(views)
    }

    /// Builds the view of a worker with its jobs.
    pub(in crate::service) fn worker_view(&self, stored: &StoredWorker, jobs: Vec<WorkerJobView>) -> WorkerView {
        let worker = &stored.worker;
        let capability = worker.capability();
        let gpu = capability.and_then(|capability| capability.gpus.first());
        let gpu_count = capability.map_or(0, |capability| u32::try_from(capability.gpus.len()).unwrap_or(u32::MAX));
        let ignores_reported = self.context.policy.ignore_reported_labels || worker.ignores_reported_labels;
        let reported_labels = capability.map(|capability| capability.labels.clone()).unwrap_or_default();
        let (contact, old_token_expires_at) =
            (last_contact(&self.context, stored), stored.credential.previous.as_ref().map(|old| old.expires_at));
        WorkerView {
            id: worker.id.clone(),
            worker_id: worker.id.clone(),
            name: worker.name.clone(),
            status: worker_status(worker.state(jobs.len())),
            status_since: status_since(worker),
            connection_lost: worker.connection.is_reconnecting(),
            offline_at: worker.connection.is_reconnecting().then(|| offline_at(&self.context, stored)),
            offline_cause: worker.offline_cause(),
            local: worker.local,
            draining: worker.drain.is_some(),
            drain_reason: worker.drain.as_ref().and_then(|drain| drain.reason.clone()),
            drain_deadline: worker.drain.as_ref().and_then(|drain| drain.deadline),
            max_jobs: capability.map_or(1, |capability| capability.max_jobs),
            worker_type: worker.kind.map(|kind| match kind {
                WorkerKind::Ephemeral => WorkerType::Ephemeral,
                WorkerKind::Persistent => WorkerType::Persistent,
            }),
            gpu_count,
            unhealthy_reason: capability.and_then(|capability| capability.unhealthy_reason.clone()),
            gpus_unavailable: capability
                .map_or(0, |capability| u32::try_from(capability.unavailable_gpu_count()).unwrap_or(u32::MAX)),
            gpus: Vec::new(),
            gpu_models: capability.map(|capability| gpu_models(&capability.gpus)).unwrap_or_default(),
            gpu_name: gpu.map(|gpu| gpu.name.clone()),
            gpu_vram_gb: gpu.and_then(|gpu| gpu.vram_gb),
            accelerator_type: capability.map(|capability| capability.accelerator.clone()),
            gpu_info: capability.map(|capability| GpuInfo {
                name: gpu.map(|gpu| gpu.name.clone()),
                vram_gb: gpu.and_then(|gpu| gpu.vram_gb),
                count: gpu_count,
                driver: capability.driver.clone(),
                runtime: capability.runtime.clone(),
                accelerator: Some(capability.accelerator.clone()),
            }),
            labels: if ignores_reported {
                worker.labels.clone()
            } else {
                worker.labels.with_fallback(&reported_labels)
            },
            reported_labels,
            ignore_reported_labels: ignores_reported,
            settings: None,
            last_heartbeat: contact.map(|contact| contact.at),
            last_used_from: contact.and_then(|contact| contact.from).map(|from| from.to_string()),
            allowed_networks: worker.networks.iter().map(ToString::to_string).collect(),
            token_created_at: stored.credential.issued_at,
            token_created_by: stored.credential.issued_by.clone(),
            token_expires_at: stored.credential.expires_at,
            token_unused_ends_at: stored.credential.expires_unused_at,
            old_token_ends_at: old_token_expires_at.filter(|end| *end > self.context.now()),
            token_conflict: worker.token_conflict.as_ref().map(conflict_view),
            last_rejection: None,
            registered_at: None,
            last_day: Vec::new(),
            created_at: worker.created_at,
            current_job_id: jobs.first().map(|job| job.job_id.clone()),
            jobs,
            hostname: capability.and_then(|capability| capability.hostname.clone()),
            agent_version: capability.and_then(|capability| capability.agent_version.clone()),
            tls_verify: capability.and_then(|capability| capability.tls_verify),
            sandbox: capability.and_then(|capability| capability.sandbox.clone()),
            revision: revision(worker),
        }
    }
}

/// Returns the status timeline of the last day, as far back as it is known.
async fn last_day_timeline(
    tx: &mut dyn Tx,
    worker: &Worker,
    now: Timestamp,
) -> Result<Vec<StatusSpanView>, ServiceError> {
    let since = Timestamp(now.0 - DAY.0);
    let mut events = Vec::new();
    for actions in [&CONNECTION_ACTIONS[..], &DRAIN_ACTIONS[..]] {
        let action_names: Vec<_> = actions.iter().map(|action| action.as_str()).collect();
        let stored_events = tx.worker_presence_events(&worker.id, &action_names, since, MAX_ENTRIES_READ).await?;
        let action = |name: &str| actions.iter().copied().find(|action| action.as_str() == name);
        events.extend(
            stored_events
                .iter()
                .rev()
                .filter_map(|stored_events| Some((stored_events.at, action(&stored_events.action)?))),
        );
    }
    let attempts = tx.worker_attempts(&worker.id, None, MAX_ENTRIES_READ).await?;
    let known_since =
        attempts.last().filter(|_| attempts.len() == MAX_ENTRIES_READ as usize).map(|(oldest, _)| oldest.offered_at);
    let lease_spans = attempts.iter().map(|(attempt, _)| (attempt.offered_at, attempt.ended_at));
    let since = known_since.map_or(since, |known_since| known_since.max(since));
    let timeline = status_timeline(worker, events, lease_spans, since).into_iter();
    Ok(timeline.map(|span| StatusSpanView { since: span.since, status: span.status.map(worker_status) }).collect())
}

/// Whether one of these workers holds the job.
fn is_held_by_any(job: &Job, workers: &[WorkerId]) -> bool {
    job.active_lease().is_some_and(|lease| workers.contains(&lease.worker))
}

/// Loads the jobs of these workers.
pub(in crate::service) async fn load_jobs_of_workers(
    tx: &mut dyn Tx,
    workers: &[FleetWorker],
) -> Result<HeldJobs, ServiceError> {
    let jobs: Vec<&Job> = workers.iter().flat_map(|row| row.jobs.iter().map(AsRef::as_ref)).collect();
    load_held_jobs(tx, &jobs).await
}

async fn load_held_jobs(tx: &mut dyn Tx, jobs: &[&Job]) -> Result<HeldJobs, ServiceError> {
    let ids: Vec<_> = jobs.iter().map(|job| job.id.clone()).collect();
    let attempts = tx.newest_attempts(&ids).await?;
    let attempts: HashMap<_, _> = attempts.iter().map(|attempt| (&attempt.job, attempt)).collect();
    let mut held = HeldJobs::new();
    for job in jobs {
        if let Some(lease) = job.active_lease() {
            let attempt = attempts.get(&job.id).copied();
            held.entry(lease.worker.clone()).or_default().push(held_job(job, lease, attempt));
        }
    }
    Ok(held)
}

fn held_job(job: &Job, lease: &Lease, attempt: Option<&StoredAttempt>) -> WorkerJobView {
    WorkerJobView {
        job_id: job.id.clone(),
        config_name: job.spec.config_name.clone(),
        submitted_by: job.submitted_by.clone(),
        status: job.state.status(),
        percent: attempt.and_then(progress_view).and_then(|progress| progress.percent),
        gpus: u32::try_from(lease.gpu_uuids().len()).unwrap_or(u32::MAX),
    }
}

pub fn worker_status(status: WorkerState) -> WorkerStatus {
    match status {
        WorkerState::Connecting => WorkerStatus::Connecting,
        WorkerState::Idle => WorkerStatus::Idle,
        WorkerState::Busy => WorkerStatus::Busy,
        WorkerState::Draining => WorkerStatus::Draining,
        WorkerState::Offline => WorkerStatus::Offline,
    }
}

/// Counts GPUs per model, in the order of the GPUs; empty if all are of one model.
fn gpu_models(gpus: &[Gpu]) -> Vec<GpuModel> {
    if gpus.windows(2).all(|pair| pair[0].name == pair[1].name) {
        return Vec::new();
    }
    let mut models: Vec<GpuModel> = Vec::new();
    for gpu in gpus {
        match models.iter_mut().find(|model| model.name == gpu.name) {
            Some(model) => model.count += 1,
            None => models.push(GpuModel { name: gpu.name.clone(), count: 1 }),
        }
    }
    models
}

fn settings_view(worker: &Worker) -> WorkerSettings {
    WorkerSettings {
        labels: worker.labels.clone(),
        ignore_reported_labels: worker.ignores_reported_labels,
        reject_older_agents: !worker.allows_older_agents,
    }
}

fn conflict_view(conflict: &TokenConflict) -> TokenConflictView {
    TokenConflictView { at: conflict.at, host: conflict.host.clone() }
}

fn status_since(worker: &Worker) -> Timestamp {
    let drain = worker.drain.as_ref().map(|drain| drain.since);
    drain.map_or(worker.connection_since(), |since| since.max(worker.connection_since()))
}
