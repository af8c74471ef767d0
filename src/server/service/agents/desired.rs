//! The desired state of a worker's host: in responses to heartbeats and long polls, and as events of its stream.

use app::domain::config_files::CONFIG_FILE;
use app::domain::ids::AttemptNumber;
use app::domain::job::{AttemptOrder, Job, Lease, StopCause};
use app::protocol::agents::dispatch::{BundleRef, JobOffer, MAX_INLINE_BUNDLE};
use app::protocol::agents::{DesiredState, RunningAttempt, StopAttempt, StopReason};
use serde_json::Map;

use crate::service::ServiceContext;
use crate::service::configs::{bundle_bytes, data_loader_file, json_file, json_object};
use crate::service::error::ServiceError;
use crate::service::jobs::fields::checkpoint_policy;
use crate::service::jobs::overrides as job_overrides;
use crate::store::Tx;
use crate::store::cache::state::FleetState;
use crate::store::configs::StoredConfig;
use crate::store::workers::StoredWorker;
use crate::tokens;

/// Loads the desired state of a worker.
pub async fn load_desired(
    context: &ServiceContext,
    tx: &mut dyn Tx,
    worker: &StoredWorker,
) -> Result<DesiredState, ServiceError> {
    let id = &worker.worker.id;
    let (drain, retired) = (worker.worker.drain.is_some(), worker.worker.retired_at.is_some());
    let mut desired = DesiredState { drain, retired, ..DesiredState::default() };
    let held = tx.leased_jobs(Some(id)).await?;
    let now = context.now();
    let is_preempted = |state: &FleetState, job: &Job| {
        state.preempted_by(&job.id).is_some_and(|(_, stop)| stop.attempt == job.attempt && stop.stop_at <= now)
    };
    let preempted: Vec<bool> = if held.is_empty() {
        Vec::new()
    } else {
        tx.with_state(|state| held.iter().map(|job| is_preempted(state, job)).collect()).await?
    };
    for (job, is_preempted) in held.iter().zip(preempted) {
        match job.order(now, worker.worker.should_evict(now), is_preempted) {
            None => {}
            Some((lease, AttemptOrder::Accept)) => {
                desired.offers.push(job_offer(context, tx, worker, job, lease).await?);
            }
            Some((lease, AttemptOrder::Run)) => desired.run.push(running_attempt(job, lease)),
            Some((lease, AttemptOrder::Stop(cause))) => {
                desired.stop.push(stop_attempt(job, lease, stop_reason(cause)));
            }
        }
    }
    // An older agent stops whatever it runs on any stop event, so it gets one only if it holds no other job.
    if let Some(job) = worker.worker.unassigned_run.as_ref().filter(|_| held.is_empty()) {
        let attempt = tx.job(job).await?.map(|job| job.attempt).unwrap_or_default();
        desired.stop.push(StopAttempt { job_id: job.clone(), attempt, reason: StopReason::Superseded });
    }
    Ok(desired)
}

fn running_attempt(job: &Job, lease: &Lease) -> RunningAttempt {
    RunningAttempt { job_id: job.id.clone(), attempt: lease.attempt }
}

const fn stop_reason(cause: StopCause) -> StopReason {
    match cause {
        StopCause::Cancelled => StopReason::Cancelled,
        StopCause::RuntimeExceeded => StopReason::OverTime,
        // Agents return the attempt in both cases.
        StopCause::Drained | StopCause::Preempted => StopReason::Drained,
    }
}

fn stop_attempt(job: &Job, lease: &Lease, reason: StopReason) -> StopAttempt {
    StopAttempt { job_id: job.id.clone(), attempt: lease.attempt, reason }
}

async fn job_offer(
    context: &ServiceContext,
    tx: &mut dyn Tx,
    worker: &StoredWorker,
    job: &Job,
    lease: &Lease,
) -> Result<JobOffer, ServiceError> {
    let config = tx.config_revision(&job.spec.config_name, job.spec.config_revision).await?;
    let config = config.ok_or_else(|| ServiceError::ConfigNotFound(job.spec.config_name.clone(), Vec::new()))?;
    let config = job_overrides::applied_config(config, &job.spec.overrides);
    // Older agents take the configuration from the event; current ones take the bundle, or download it.
    let older = worker.worker.has_older_agent();
    let base = format!("/api/workers/job/{}", job.id);
    Ok(JobOffer {
        job_id: job.id.clone(),
        attempt: lease.attempt,
        config_name: job.spec.config_name.clone(),
        config: if older { json_object(&config, CONFIG_FILE) } else { Map::new() },
        dataloader: older.then(|| json_file(&config, &data_loader_file(&config)?)).flatten(),
        upload_endpoint: format!("{base}/artifacts"),
        upload_token: tokens::job_token(&context.token_signing_key, &job.id, lease.attempt),
        hf_token: if older { hub_token(context, tx, job).await } else { None },
        provider: older.then(|| "kubeflow".to_owned()),
        bundle: BundleRef {
            url: format!("{base}/bundle?attempt={}", lease.attempt),
            sha256: config.sha256.clone(),
            body: if older { None } else { small_bundle(&config) },
        },
        has_secrets: older || job.spec.secrets.as_ref().is_none_or(|names| !names.is_empty()),
        may_have_checkpoint: older || lease.attempt > AttemptNumber(1) || job.retry_of.is_some(),
        gpus: lease.gpus.clone(),
        num_processes: job.spec.num_processes,
        exclusive: job.spec.exclusive,
        checkpoints: checkpoint_policy(job.spec.checkpoints),
        max_runtime_seconds: job.spec.max_runtime.map(|time| (time.0 / 1_000).unsigned_abs()),
        submitted_by: Some(job.submitted_by.clone()),
        sandbox: job.spec.demand.sandbox,
        traceparent: job.trace.as_ref().map(ToString::to_string),
    })
}

/// The body of the bundle, if an offer can contain it.
fn small_bundle(config: &StoredConfig) -> Option<String> {
    let is_small = config.files.values().map(String::len).sum::<usize>() <= MAX_INLINE_BUNDLE;
    let body = is_small.then(|| bundle_bytes(&config.files))?;
    String::from_utf8(body).ok().filter(|body| body.len() <= MAX_INLINE_BUNDLE)
}

/// Older agents run without the token if it cannot be decrypted.
async fn hub_token(context: &ServiceContext, tx: &mut dyn Tx, job: &Job) -> Option<String> {
    crate::service::secrets::hub_token(context, tx, job).await.unwrap_or_else(|error| {
        tracing::error!(job = %job.id, ?error, "failed to pass the Hugging Face token to an older agent");
        None
    })
}
