//! Planning: assigns waiting jobs to workers. It runs in the transaction of the change that made it possible (a submit,
//! an opened stream, a worker that became free), once per group commit, and on a slow timer as a fallback.

use std::sync::Arc;

use app::domain::ids::AttemptNumber;
use app::domain::job::{AttemptLoss, Job};
use app::domain::plan;
use app::domain::time::{Millis, Timestamp};
use app::domain::unassigned_run::start_timed_out;
use app::protocol::topic::Topic;

use crate::metrics::dispatch::DispatchStep;
use crate::service::ServiceContext;
use crate::service::error::ServiceError;
use crate::service::jobs::JobService;
use crate::service::secrets::record_hub_token;
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::cache::state::FleetState;
use crate::store::commit_group::GroupHooks;
use crate::store::jobs::attempts::StoredAttempt;
use crate::store::workers::StoredWorker;
use crate::store::{StoreError, TransactionWork};
use crate::tokens;

pub fn store_hooks(context: &Arc<ServiceContext>) -> GroupHooks {
    let (plan_context, notify_context, observe_context) =
        (Arc::downgrade(context), Arc::downgrade(context), Arc::downgrade(context));
    let plan: TransactionWork = Box::new(move |tx| {
        let context = plan_context.upgrade();
        Box::pin(async move {
            let Some(context) = context else { return Ok(()) };
            let caller = Caller::system();
            let mut unit = UnitOfWork::new(tx, &context, &caller);
            match plan(&mut unit).await {
                Ok(()) => {
                    unit.publish();
                    Ok(())
                }
                Err(ServiceError::Store(error)) => Err(error),
                Err(error) => Err(StoreError::Unavailable(format!("planning failed: {error:?}"))),
            }
        })
    });
    let notify = move |topics: &[String]| {
        if let Some(context) = notify_context.upgrade() {
            context.notifier.notify(topics.iter().filter_map(|topic| Topic::parse(topic)));
        }
    };
    let observe = move |result| {
        if let Some(context) = observe_context.upgrade() {
            context.record_commit(result);
        }
    };
    GroupHooks { plan, notify: Box::new(notify), observe: Box::new(observe) }
}

/// Offers waiting jobs to free workers.
async fn plan(unit: &mut UnitOfWork<'_>) -> Result<(), ServiceError> {
    let (policy, now) = (unit.context.policy, unit.now);
    let plan_offers = |fleet_state: &FleetState| -> Vec<PlannedOffer> {
        let assignments = fleet_state.assign_jobs(policy.planner_fleet(fleet_state, now), now);
        assignments.into_iter().filter_map(|assignment| PlannedOffer::new(fleet_state, assignment)).collect()
    };
    for offer in unit.tx.with_state(plan_offers).await? {
        make_offer(unit, offer).await?;
    }
    Ok(())
}

struct PlannedOffer {
    job: Arc<Job>,
    worker: Arc<StoredWorker>,
    gpus: Vec<String>,
}

impl PlannedOffer {
    fn new(fleet_state: &FleetState, assignment: plan::Assignment) -> Option<Self> {
        let (job, worker) = (fleet_state.job(&assignment.job)?, fleet_state.worker(&assignment.worker)?);
        Some(Self { job: Arc::clone(job), worker: Arc::clone(worker), gpus: assignment.gpus })
    }
}

async fn make_offer(unit: &mut UnitOfWork<'_>, offer: PlannedOffer) -> Result<(), ServiceError> {
    let (before, worker) = (&*offer.job, &offer.worker.worker);
    let until = unit.now + unit.context.policy.offer_timeout;
    let gpus = u32::try_from(offer.gpus.len()).unwrap_or(u32::MAX);
    let after = before.clone().offered(unit.now, worker.id.clone(), offer.gpus, until)?;
    unit.save_job(before, &after).await?;
    let attempt = StoredAttempt {
        job: after.id.clone(),
        attempt: after.attempt,
        worker: worker.id.clone(),
        worker_name: worker.name.clone(),
        gpus,
        offered_at: unit.now,
        started_at: None,
        ended_at: None,
        outcome: None,
        error: None,
        loss_code: None,
        exit_code: None,
        error_line: None,
        resumed_from_step: None,
        progress: None,
    };
    let token = tokens::job_token(&unit.context.token_signing_key, &after.id, after.attempt);
    unit.tx.insert_attempt(&attempt, &tokens::digest(&token)).await?;
    if worker.has_older_agent() {
        record_hub_token(unit, &after, &worker.id).await?;
    }
    if after.attempt == AttemptNumber(1) {
        unit.context.metrics.dispatch.record(DispatchStep::Offered, after.submitted_at);
    }
    Ok(())
}

impl JobService {
    /// Withdraws unanswered offers, releases older agents that have finished, and plans jobs that are due.
    ///
    /// Returns the number of changed jobs.
    pub async fn sweep_offers(self: &Arc<Self>) -> Result<usize, ServiceError> {
        // Most passes find nothing, and a read is cheaper than an empty commit.
        let now = self.context.now();
        let has_changes = |fleet_state: &FleetState| {
            fleet_state.queued_jobs().next().is_some()
                || fleet_state.jobs_with_lease().any(|job| expire_or_requeue(fleet_state, job, now, Millis(0)) != *job)
                || finishing_workers(fleet_state)
                    .any(|stored| stored.worker.clone().clear_finishing(now) != stored.worker)
        };
        if !self.context.read_recent().await?.with_state(has_changes).await? {
            return Ok(0);
        }
        self.context.change(Caller::system(), |unit| Box::pin(sweep_in(unit))).await
    }
}

/// The workers whose older agent may still be busy after the end of a job.
fn finishing_workers(fleet_state: &FleetState) -> impl Iterator<Item = &Arc<StoredWorker>> {
    fleet_state.workers().map(|row| &row.stored).filter(|stored| stored.worker.finishing_since.is_some())
}

/// Expires an offer or requeues a job whose time has come.
fn expire_or_requeue(fleet_state: &FleetState, job: &Job, now: Timestamp, lease: Millis) -> Job {
    let worker = job.active_lease().and_then(|lease| fleet_state.worker(&lease.worker));
    if worker.is_some_and(|stored| start_timed_out(now, &stored.worker, job)) {
        return job.clone().lost(now, AttemptLoss::NeverStarted, lease);
    }
    job.clone().offer_expired(now)
}

async fn sweep_in(unit: &mut UnitOfWork<'_>) -> Result<usize, ServiceError> {
    let now = unit.now;
    let context = unit.context;
    let changes = |fleet_state: &FleetState| -> (Vec<(Job, Job)>, Vec<Arc<StoredWorker>>) {
        let lease = |job: &Job| {
            let holder = job.active_lease().and_then(|lease| fleet_state.worker(&lease.worker));
            context.policy.worker_lease(holder.map(|stored| &stored.worker))
        };
        let jobs = fleet_state
            .jobs_with_lease()
            .map(|job| (job.clone(), expire_or_requeue(fleet_state, job, now, lease(job))));
        let workers = finishing_workers(fleet_state).map(Arc::clone);
        (jobs.filter(|(before, after)| before != after).collect(), workers.collect())
    };
    let (jobs, workers) = unit.tx.with_state(changes).await?;
    for (before, after) in &jobs {
        unit.save_job(before, after).await?;
    }
    for stored in workers {
        let after = stored.worker.clone().clear_finishing(now);
        unit.save_worker_unrecorded(&stored.worker, &after).await?;
    }
    unit.request_planning();
    Ok(jobs.len())
}
