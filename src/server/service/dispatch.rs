//! Planning: waiting jobs meet workers that can take them. It runs inside the unit that made it possible (a submit, a
//! registration, a stream that opened, a worker that became free) and on a slow timer as a net.

use std::collections::HashMap;
use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::plan::{self, Fleet};
use app::domain::worker::Worker;

use super::Core;
use super::refusal::Refusal;
use super::unit::{Caller, Unit};
use crate::store::Tx;
use crate::store::attempts::StoredAttempt;
use crate::tokens;

/// Offers what can be offered now; returns how many offers were made.
pub async fn plan(unit: &mut Unit<'_>) -> Result<usize, Refusal> {
    let waiting = unit.tx.waiting_jobs().await?;
    if waiting.is_empty() {
        return Ok(0);
    }
    let workers = workers(unit.tx).await?;
    let leased = unit.tx.leased_jobs(None).await?;
    let fleet = Fleet::new(&workers, &leased, unit.core.policy.limits);
    let assignments = plan::plan(&waiting, fleet, unit.now).assignments;
    let jobs: HashMap<&JobId, &Job> = waiting.iter().map(|job| (&job.id, job)).collect();
    let names: HashMap<&WorkerId, &str> = workers.iter().map(|worker| (&worker.id, worker.name.as_str())).collect();
    for assignment in &assignments {
        let (Some(before), Some(name)) = (jobs.get(&assignment.job), names.get(&assignment.worker)) else { continue };
        offer(unit, before, name, assignment).await?;
    }
    Ok(assignments.len())
}

/// Every worker, as the planner takes them.
pub async fn workers(tx: &mut dyn Tx) -> Result<Vec<Worker>, Refusal> {
    Ok(tx.workers().await?.into_iter().map(|stored| stored.worker).collect())
}

async fn offer(unit: &mut Unit<'_>, before: &Job, name: &str, to: &plan::Assignment) -> Result<(), Refusal> {
    let until = unit.now + unit.core.policy.offer_timeout;
    let after = before.clone().offered(unit.now, to.worker.clone(), to.gpus.clone(), until)?;
    unit.save_job(before, &after).await?;
    let attempt = StoredAttempt {
        job: after.id.clone(),
        attempt: after.attempt,
        worker: to.worker.clone(),
        worker_name: name.to_owned(),
        offered_at: unit.now,
        started_at: None,
        ended_at: None,
        outcome: None,
        error: None,
        exit_code: None,
        progress: None,
    };
    let token = tokens::job_token(&unit.core.job_token_key, &after.id, after.attempt);
    unit.tx.insert_attempt(&attempt, &tokens::digest(&token)).await?;
    Ok(())
}

/// What one pass of the timer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Offers that nobody answered.
    pub expired: usize,
    /// Offers made.
    pub offered: usize,
}

impl Core {
    /// Takes back offers that nobody answered, and plans what is due meanwhile.
    pub async fn sweep_offers(self: &Arc<Self>) -> Result<Swept, Refusal> {
        // Most passes find nothing, and a look costs less than an empty commit.
        let mut tx = self.read().await?;
        let now = self.now();
        let leased = tx.leased_jobs(None).await?;
        let stale = leased.iter().any(|job| job.clone().offer_expired(now) != *job);
        if !stale && tx.waiting_jobs().await?.is_empty() {
            return Ok(Swept::default());
        }
        drop(tx);
        self.change(Caller::system(), |unit| Box::pin(sweep(unit))).await
    }
}

async fn sweep(unit: &mut Unit<'_>) -> Result<Swept, Refusal> {
    let mut swept = Swept::default();
    for before in unit.tx.leased_jobs(None).await? {
        let after = before.clone().offer_expired(unit.now);
        if after != before {
            unit.save_job(&before, &after).await?;
            swept.expired += 1;
        }
    }
    swept.offered = plan(unit).await?;
    Ok(swept)
}
