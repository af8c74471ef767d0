//! What should be true on a worker's host: the answer to a heartbeat, to a long poll, and the events of its stream.

use app::domain::config_files::CONFIG;
use app::domain::job::{Checkpoints, Job, Lease, State};
use app::domain::reconcile::{Claim, Verdict, judge};
use app::domain::worker::Worker;
use app::protocol::dispatch::{BundleRef, CheckpointPolicy, JobSubmit};
use app::protocol::worker::{Desired, RunningAttempt, StopAttempt, StopReason};
use serde_json::Map;

use super::configs::{data_loader_of, json_file, object};
use super::refusal::Refusal;
use super::{Core, overrides};
use crate::store::Tx;
use crate::store::workers::StoredWorker;
use crate::tokens;

/// The desired state of a worker as the database has it, and what of its claims has to stop.
pub async fn desired(
    core: &Core,
    tx: &mut dyn Tx,
    worker: &StoredWorker,
    claims: &[Claim],
) -> Result<Desired, Refusal> {
    let id = &worker.worker.id;
    let (drain, spent) = (worker.worker.drain.is_some(), worker.worker.spent.is_some());
    let mut desired = Desired { drain, spent, ..Desired::default() };
    let held = tx.leased_jobs(Some(id)).await?;
    for job in &held {
        match &job.state {
            State::Offered { lease, .. } => desired.offers.push(offer(core, tx, worker, job, lease).await?),
            State::Running { lease, .. } if job.overdue(core.now()).is_some() => {
                desired.stop.push(stop(job, lease, StopReason::OverTime));
            }
            State::Starting { lease, .. } | State::Running { lease, .. } if worker.worker.evicts(core.now()) => {
                desired.stop.push(stop(job, lease, StopReason::Drained));
            }
            State::Starting { lease, .. } | State::Running { lease, .. } => desired.run.push(attempt(job, lease)),
            State::Cancelling { lease, .. } => desired.stop.push(stop(job, lease, StopReason::Cancelled)),
            State::Queued { .. } | State::Completed { .. } | State::Failed { .. } | State::Cancelled { .. } => {}
        }
    }
    // An older agent stops whatever it runs when it is told to stop anything: what it holds must not be that.
    if let Some(job) = worker.worker.astray.as_ref().filter(|_| held.is_empty()) {
        let attempt = tx.job(job).await?.map(|job| job.attempt).unwrap_or_default();
        desired.stop.push(StopAttempt { job_id: job.clone(), attempt, reason: StopReason::Superseded });
    }
    for claim in claims {
        desired.stop.extend(superseded(core, tx, &worker.worker, &held, claim).await?);
    }
    Ok(desired)
}

async fn superseded(
    core: &Core,
    tx: &mut dyn Tx,
    worker: &Worker,
    held: &[Job],
    claim: &Claim,
) -> Result<Option<StopAttempt>, Refusal> {
    let job = tx.job(&claim.job).await?;
    let verdict = judge(core.now(), worker, held, claim, job.as_ref());
    // Who does not say which attempt it runs means its newest.
    let attempt = claim.attempt.or(job.map(|job| job.attempt)).unwrap_or_default();
    let stop = StopAttempt { job_id: claim.job.clone(), attempt, reason: StopReason::Superseded };
    Ok((verdict == Verdict::Stop).then_some(stop))
}

fn attempt(job: &Job, lease: &Lease) -> RunningAttempt {
    RunningAttempt { job_id: job.id.clone(), attempt: lease.attempt }
}

fn stop(job: &Job, lease: &Lease, reason: StopReason) -> StopAttempt {
    StopAttempt { job_id: job.id.clone(), attempt: lease.attempt, reason }
}

async fn offer(
    core: &Core,
    tx: &mut dyn Tx,
    worker: &StoredWorker,
    job: &Job,
    lease: &Lease,
) -> Result<JobSubmit, Refusal> {
    let config = tx.config_revision(&job.spec.config_name, job.spec.config_revision).await?;
    let config = config.ok_or_else(|| Refusal::NoConfig(job.spec.config_name.clone()))?;
    let config = overrides::ran(config, &job.spec.overrides);
    // Older agents take the configuration from the event; ours fetch the bundle.
    let older = worker.worker.is_older();
    let base = format!("/api/workers/job/{}", job.id);
    Ok(JobSubmit {
        job_id: job.id.clone(),
        attempt: lease.attempt,
        config_name: job.spec.config_name.clone(),
        config: if older { object(&config, CONFIG) } else { Map::new() },
        dataloader: older.then(|| json_file(&config, &data_loader_of(&config)?)).flatten(),
        upload_endpoint: format!("{base}/artifacts"),
        upload_token: tokens::job_token(&core.job_token_key, &job.id, lease.attempt),
        hf_token: if older { hub_token(core, tx, job).await } else { None },
        provider: older.then(|| "kubeflow".to_owned()),
        bundle: BundleRef { url: format!("{base}/bundle?attempt={}", lease.attempt), sha256: config.sha256.clone() },
        gpus: lease.gpus.clone(),
        num_processes: job.spec.num_processes,
        exclusive: job.spec.exclusive,
        checkpoints: policy(job.spec.checkpoints),
        max_runtime_seconds: job.spec.max_runtime.map(|time| (time.0 / 1_000).unsigned_abs()),
        submitted_by: Some(job.submitted_by.clone()),
        sandbox: job.spec.demand.sandbox,
        traceparent: job.trace.as_ref().map(ToString::to_string),
    })
}

/// As it is on the wire.
pub const fn policy(checkpoints: Checkpoints) -> CheckpointPolicy {
    match checkpoints {
        Checkpoints::None => CheckpointPolicy::None,
        Checkpoints::Last => CheckpointPolicy::Last,
        Checkpoints::All => CheckpointPolicy::All,
    }
}

/// Older agents run without it rather than never.
async fn hub_token(core: &Core, tx: &mut dyn Tx, job: &Job) -> Option<String> {
    core.hub_token(tx, job).await.unwrap_or_else(|refusal| {
        tracing::error!(job = %job.id, ?refusal, "the hub's token cannot be given");
        None
    })
}
