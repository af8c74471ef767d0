//! Planning: waiting jobs meet workers that can take them. It runs in the transaction of whatever made it possible (a
//! submit, a stream that opened, a worker that became free), once for all that is committed together, and on a slow
//! timer as a net.

use std::sync::Arc;

use app::domain::astray::never_began;
use app::domain::ids::Attempt;
use app::domain::job::{Job, Loss};
use app::domain::plan;
use app::domain::time::{Millis, Timestamp};
use app::protocol::topic::Topic;

use super::Core;
use super::refusal::Refusal;
use super::secrets::record_hub_token;
use super::unit::{Caller, Unit};
use crate::metrics::dispatch::Step;
use crate::store::attempts::StoredAttempt;
use crate::store::group::Hooks;
use crate::store::known::Known;
use crate::store::workers::StoredWorker;
use crate::store::{StoreError, Work};
use crate::tokens;

/// The hooks of a server's store: planning, and the doorbell.
pub fn hooks(core: &Arc<Core>) -> Hooks {
    let (planning, ringing, counting) = (Arc::downgrade(core), Arc::downgrade(core), Arc::downgrade(core));
    let plan: Work = Box::new(move |tx| {
        let core = planning.upgrade();
        Box::pin(async move {
            let Some(core) = core else { return Ok(()) };
            let caller = Caller::system();
            let mut unit = Unit::new(tx, &core, &caller);
            match plan(&mut unit).await {
                Ok(()) => {
                    unit.announce();
                    Ok(())
                }
                Err(Refusal::Store(error)) => Err(error),
                Err(refusal) => Err(StoreError::Unavailable(format!("planning went wrong: {refusal:?}"))),
            }
        })
    });
    let bell = move |topics: &[String]| {
        if let Some(core) = ringing.upgrade() {
            core.hub.bump(topics.iter().filter_map(|topic| Topic::parse(topic)));
        }
    };
    let witness = move |ended| {
        if let Some(core) = counting.upgrade() {
            core.count(ended);
        }
    };
    Hooks { plan, bell: Box::new(bell), witness: Box::new(witness) }
}

/// Offers what can be offered now.
async fn plan(unit: &mut Unit<'_>) -> Result<(), Refusal> {
    let (policy, now) = (unit.core.policy, unit.now);
    let decide = |known: &Known| -> Vec<Offer> {
        let assignments = plan::plan(known.waiting(), policy.fleet(known), now).assignments;
        assignments.into_iter().filter_map(|to| Offer::new(known, to)).collect()
    };
    for offer in unit.tx.see(decide).await? {
        make(unit, offer).await?;
    }
    Ok(())
}

/// An offer to make.
struct Offer {
    job: Arc<Job>,
    worker: Arc<StoredWorker>,
    gpus: Vec<String>,
}

impl Offer {
    fn new(known: &Known, to: plan::Assignment) -> Option<Self> {
        let (job, worker) = (known.job(&to.job)?, known.worker(&to.worker)?);
        Some(Self { job: Arc::clone(job), worker: Arc::clone(worker), gpus: to.gpus })
    }
}

async fn make(unit: &mut Unit<'_>, offer: Offer) -> Result<(), Refusal> {
    let (before, worker) = (&*offer.job, &offer.worker.worker);
    let until = unit.now + unit.core.policy.offer_timeout;
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
        exit_code: None,
        error_line: None,
        resumed_from_step: None,
        progress: None,
    };
    let token = tokens::job_token(&unit.core.job_token_key, &after.id, after.attempt);
    unit.tx.insert_attempt(&attempt, &tokens::digest(&token)).await?;
    if worker.is_older() {
        record_hub_token(unit, &after, &worker.id).await?;
    }
    if after.attempt == Attempt(1) {
        unit.core.metrics.dispatch.decided(Step::Offered, after.submitted_at);
    }
    Ok(())
}

impl Core {
    /// Takes back offers that nobody answered, gives older agents that have finished back to planning, and plans what is due.
    ///
    /// Returns how many were taken back.
    pub async fn sweep_offers(self: &Arc<Self>) -> Result<usize, Refusal> {
        // Most passes find nothing, and a look costs less than an empty commit.
        let now = self.now();
        let due = |known: &Known| {
            known.waiting().next().is_some()
                || known.leases().any(|job| swept(known, job, now, Millis(0)) != *job)
                || known.workers().any(|stored| stored.worker.clone().settled(now) != stored.worker)
        };
        if !self.recent().await?.see(due).await? {
            return Ok(0);
        }
        self.change(Caller::system(), |unit| Box::pin(sweep(unit))).await
    }
}

/// A leased job after a look at the clock.
fn swept(known: &Known, job: &Job, now: Timestamp, lease: Millis) -> Job {
    let worker = job.live_lease().and_then(|lease| known.worker(&lease.worker));
    if worker.is_some_and(|stored| never_began(now, &stored.worker, job)) {
        let why = "The older agent took the job and never started the trainer; its own log may say why.";
        return job.clone().lost(now, Loss::Requeued(why.to_owned()), lease);
    }
    job.clone().offer_expired(now)
}

async fn sweep(unit: &mut Unit<'_>) -> Result<usize, Refusal> {
    let now = unit.now;
    let core = unit.core;
    let changes = |known: &Known| -> (Vec<(Job, Job)>, Vec<Arc<StoredWorker>>) {
        let lease = |job: &Job| {
            let holder = job.live_lease().and_then(|lease| known.worker(&lease.worker));
            core.lease_of(holder.map(|stored| &stored.worker))
        };
        let jobs = known.leases().map(|job| (job.clone(), swept(known, job, now, lease(job))));
        let workers = known.workers().filter(|stored| stored.worker.finishing.is_some()).map(Arc::clone);
        (jobs.filter(|(before, after)| before != after).collect(), workers.collect())
    };
    let (jobs, workers) = unit.tx.see(changes).await?;
    for (before, after) in &jobs {
        unit.save_job(before, after).await?;
    }
    for stored in workers {
        let after = stored.worker.clone().settled(now);
        unit.save_worker_unrecorded(&stored.worker, &after).await?;
    }
    unit.plan_after();
    Ok(jobs.len())
}
