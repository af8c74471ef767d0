//! Hosts that are fit for no new job, because their disk is full: what their agents say of it, with registrations and
//! heartbeats. It decides who gets a job, so it is the worker's state, and is written when it is news.

use app::domain::audit::Action;
use app::domain::ids::WorkerId;
use app::domain::worker::Worker;
use serde_json::json;

use super::Core;
use super::gpus::shortened;
use super::refusal::Refusal;
use super::unit::Unit;

/// Why a host is unfit, as far as it makes sense.
pub fn said(unfit: Option<&str>) -> Option<String> {
    unfit.map(shortened)
}

/// Writes whether a worker's host is fit, if it is news, and looks who fits now.
pub async fn fitness_said(unit: &mut Unit<'_>, worker: &WorkerId, why: Option<&str>) -> Result<(), Refusal> {
    let before = unit.worker(worker).await?.worker;
    let after = before.clone().fitness_said(why.map(str::to_owned));
    unit.save_worker(&before, &after, Action::WorkerFitness, &json!({ "unfit": why })).await?;
    if before != after {
        unit.plan_after();
    }
    Ok(())
}

impl Core {
    /// Whether that is to be written. Where only the words are others, it can wait.
    pub(super) fn is_news_of_fitness(&self, worker: &Worker, unfit: Option<&str>) -> bool {
        let Some(capability) = worker.capability() else { return false };
        let known = capability.unfit.as_deref();
        if known.is_some() && unfit.is_none() {
            // It is written each time: a host that is now fit and now not stays unfit meanwhile.
            return self.worker_may_change(&worker.id).is_ok();
        }
        known.is_some() != unfit.is_some() || (known != unfit && self.readings.may_reword(&worker.id, self.now()))
    }
}
