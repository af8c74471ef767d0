//! Workers as clients see them.

use std::collections::HashMap;

use app::domain::audit::Action;
use app::domain::gpu::Gpu;
use app::domain::ids::WorkerId;
use app::domain::job::{Job, Lease};
use app::domain::time::Timestamp;
use app::domain::worker::course::{CONTACTS, DRAINS, course};
use app::domain::worker::{Conflict, Kind, Status, Worker};
use app::protocol::gpu::GpuInfo;
use app::protocol::status::{WorkerStatus, WorkerType};
use app::protocol::worker_history::Stood;
use app::protocol::workers::{GpuModel, HeldJob, TokenConflict, WorkerSettings, WorkerView};

use super::gpus::gpu_views;
use super::jobs::{progress, status as job_status};
use super::overview::DAY;
use crate::service::Core;
use crate::service::audit::refused::last_refusal;
use crate::service::audit::trail::newest;
use crate::service::presence::last_sight;
use crate::service::refusal::Refusal;
use crate::service::workers::revision;
use crate::store::Tx;
use crate::store::attempts::StoredAttempt;
use crate::store::workers::StoredWorker;

/// Of a worker's last day at most so many entries of a kind, and attempts, are looked at.
const TOLD: u32 = 300;

/// Jobs by who holds them.
pub(super) type Held = HashMap<WorkerId, Vec<HeldJob>>;

impl Core {
    /// One worker.
    pub async fn worker_page(&self, id: &WorkerId) -> Result<WorkerView, Refusal> {
        let mut tx = self.read().await?;
        let stored = tx.worker(id).await?.ok_or_else(|| Refusal::NoWorker(id.clone()))?;
        let readings = self.readings.look(id, self.now());
        let leased = tx.leased_jobs(Some(id)).await?;
        let leased: Vec<&Job> = leased.iter().collect();
        let gpus = gpu_views(&stored.worker, &leased, readings);
        let mut held = held(&mut *tx, &leased).await?;
        let settings = Some(settings(&stored.worker));
        let last_refusal = last_refusal(&mut *tx, &stored).await?;
        let registered_at = newest(&mut *tx, Action::WorkerRegistered, id.as_str(), None).await?.map(|entry| entry.at);
        let last_day = last_day(&mut *tx, &stored.worker, self.now()).await?;
        let view = self.worker_view(&stored, held.remove(id).unwrap_or_default());
        Ok(WorkerView { gpus, settings, last_refusal, registered_at, last_day, ..view })
    }

    /// Those of these workers that there are, as of one moment.
    pub async fn workers_named(&self, ids: &[WorkerId]) -> Result<Vec<WorkerView>, Refusal> {
        let mut tx = self.read().await?;
        let leased = tx.leased_jobs(None).await?;
        let mut held = held(&mut *tx, &leased.iter().filter(|job| on_one_of(job, ids)).collect::<Vec<_>>()).await?;
        let mut views = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(stored) = tx.worker(id).await? {
                views.push(self.worker_view(&stored, held.remove(id).unwrap_or_default()));
            }
        }
        Ok(views)
    }

    /// A worker with the jobs that it holds.
    pub(super) fn worker_view(&self, stored: &StoredWorker, jobs: Vec<HeldJob>) -> WorkerView {
        let worker = &stored.worker;
        let capability = worker.capability();
        let gpu = capability.and_then(|capability| capability.gpus.first());
        let gpu_count = capability.map_or(0, |capability| u32::try_from(capability.gpus.len()).unwrap_or(u32::MAX));
        let ignores_reported = self.policy.ignore_reported_labels || worker.ignores_reported;
        let reported_labels = capability.map(|capability| capability.labels.clone()).unwrap_or_default();
        let (seen, old) = (last_sight(self, stored), stored.credential.old.as_ref().map(|old| old.ends_at));
        WorkerView {
            id: worker.id.clone(),
            worker_id: worker.id.clone(),
            name: worker.name.clone(),
            status: status(worker.status(jobs.len())),
            status_since: status_since(worker),
            local: worker.local,
            draining: worker.drain.is_some(),
            drain_reason: worker.drain.as_ref().and_then(|drain| drain.reason.clone()),
            drain_deadline: worker.drain.as_ref().and_then(|drain| drain.deadline),
            max_jobs: capability.map_or(1, |capability| capability.max_jobs),
            worker_type: worker.kind.map(|kind| match kind {
                Kind::Ephemeral => WorkerType::Ephemeral,
                Kind::Persistent => WorkerType::Persistent,
            }),
            gpu_count,
            unfit: capability.and_then(|capability| capability.unfit.clone()),
            gpus_withheld: capability.map_or(0, |capability| u32::try_from(capability.withheld()).unwrap_or(u32::MAX)),
            gpus: Vec::new(),
            gpu_models: capability.map(|capability| models(&capability.gpus)).unwrap_or_default(),
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
            labels: if ignores_reported { worker.labels.clone() } else { worker.labels.or(&reported_labels) },
            reported_labels,
            ignore_reported_labels: ignores_reported,
            settings: None,
            last_heartbeat: seen.map(|seen| seen.at),
            last_used_from: seen.and_then(|seen| seen.from).map(|from| from.to_string()),
            allowed_networks: worker.networks.iter().map(ToString::to_string).collect(),
            token_made_at: stored.credential.made_at,
            token_made_by: stored.credential.made_by.clone(),
            token_expires_at: stored.credential.expires_at,
            token_unused_ends_at: stored.credential.unused_ends_at,
            old_token_ends_at: old.filter(|end| *end > self.now()),
            token_conflict: worker.conflict.as_ref().map(conflict),
            last_refusal: None,
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

/// How it stood in the last day, as far back as that is known.
async fn last_day(tx: &mut dyn Tx, worker: &Worker, now: Timestamp) -> Result<Vec<Stood>, Refusal> {
    let since = Timestamp(now.0 - DAY.0);
    let mut told = Vec::new();
    for words in [&CONTACTS[..], &DRAINS[..]] {
        let as_text: Vec<_> = words.iter().map(|action| action.as_str()).collect();
        let seen = tx.sightings_of(&worker.id, &as_text, since, TOLD).await?;
        let action = |word: &str| words.iter().copied().find(|action| action.as_str() == word);
        told.extend(seen.iter().rev().filter_map(|seen| Some((seen.at, action(&seen.action)?))));
    }
    let attempts = tx.attempts_on(&worker.id, None, TOLD).await?;
    let known = attempts.last().filter(|_| attempts.len() == TOLD as usize).map(|(oldest, _)| oldest.offered_at);
    let held = attempts.iter().map(|(attempt, _)| (attempt.offered_at, attempt.ended_at));
    let since = known.map_or(since, |known| known.max(since));
    let told = course(worker, told, held, since).into_iter();
    Ok(told.map(|stood| Stood { since: stood.since, status: stood.status.map(status) }).collect())
}

/// Whether one of these workers holds it.
fn on_one_of(job: &Job, workers: &[WorkerId]) -> bool {
    job.live_lease().is_some_and(|lease| workers.contains(&lease.worker))
}

/// The jobs that workers hold, by worker.
pub(super) async fn held(tx: &mut dyn Tx, jobs: &[&Job]) -> Result<Held, Refusal> {
    let ids: Vec<_> = jobs.iter().map(|job| job.id.clone()).collect();
    let attempts = tx.newest_attempts(&ids).await?;
    let attempts: HashMap<_, _> = attempts.iter().map(|attempt| (&attempt.job, attempt)).collect();
    let mut held = Held::new();
    for job in jobs {
        if let Some(lease) = job.live_lease() {
            let attempt = attempts.get(&job.id).copied();
            held.entry(lease.worker.clone()).or_default().push(held_job(job, lease, attempt));
        }
    }
    Ok(held)
}

fn held_job(job: &Job, lease: &Lease, attempt: Option<&StoredAttempt>) -> HeldJob {
    HeldJob {
        job_id: job.id.clone(),
        config_name: job.spec.config_name.clone(),
        submitted_by: job.submitted_by.clone(),
        status: job_status(job),
        percent: attempt.and_then(progress).and_then(|progress| progress.percent),
        gpus: u32::try_from(lease.held().len()).unwrap_or(u32::MAX),
    }
}

/// Its word.
pub fn status(status: Status) -> WorkerStatus {
    match status {
        Status::Connecting => WorkerStatus::Connecting,
        Status::Idle => WorkerStatus::Idle,
        Status::Busy => WorkerStatus::Busy,
        Status::Draining => WorkerStatus::Draining,
        Status::Offline => WorkerStatus::Offline,
    }
}

/// How many there are of each model, in the order of the GPUs; nothing where all are of one.
fn models(gpus: &[Gpu]) -> Vec<GpuModel> {
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

fn settings(worker: &Worker) -> WorkerSettings {
    WorkerSettings {
        labels: worker.labels.clone(),
        ignore_reported_labels: worker.ignores_reported,
        refuse_older_agents: !worker.allows_older,
    }
}

fn conflict(conflict: &Conflict) -> TokenConflict {
    TokenConflict { at: conflict.at, host: conflict.host.clone() }
}

fn status_since(worker: &Worker) -> Timestamp {
    let drain = worker.drain.as_ref().map(|drain| drain.since);
    drain.map_or(worker.link_since(), |since| since.max(worker.link_since()))
}
