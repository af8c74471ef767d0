//! Who is gone. The pass looks at every worker, and at each by itself: one that cannot be judged stops nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::health::{self, Verdict};
use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::worker::OfflineCause;
use app::protocol::topic::Topic;
use serde_json::json;

use super::Core;
use super::presence::last_seen;
use super::refusal::Refusal;
use super::unit::{Caller, Unit};
use super::workers::{lose_leases, remove};
use crate::store::known::Known;
use crate::store::workers::StoredWorker;

/// What one pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    /// Workers that were taken for gone, or that have not come back to what they left.
    pub silent: usize,
    /// Workers that were removed.
    pub removed: usize,
    /// Workers that could not be judged; the log says why.
    pub failed: usize,
}

/// What the leader thinks of a worker at a moment; who does not lead judges nobody.
pub fn verdict(core: &Core, stored: &StoredWorker, now: Timestamp) -> Option<Verdict> {
    let seen = last_seen(core, stored);
    let serving_since = core.leadership.held_since()?.max(core.clock.unbroken_since());
    health::judge(&stored.worker, seen, serving_since, core.policy.heartbeat_timeout, now)
}

impl Core {
    /// Finds workers that have been silent for too long, and acts on it; rings for those that have something to stop
    /// because its time has come.
    pub async fn check_health(self: &Arc<Self>) -> Result<Checked, Refusal> {
        let mut checked = Checked::default();
        let now = self.now();
        let matters = |known: &Known, stored: &StoredWorker| match verdict(self, stored, now) {
            None => false,
            Some(Verdict::Silent | Verdict::Removed) => true,
            // Who is gone and has left nothing stays as it is.
            Some(Verdict::Abandoned) => !known.leased(Some(&stored.worker.id)).is_empty(),
        };
        let find = |known: &Known| {
            let matter = known.workers().filter(|stored| matters(known, stored)).map(|stored| stored.worker.id.clone());
            (matter.collect::<Vec<_>>(), with_something_to_stop(known, now))
        };
        let (matter, stops) = self.recent().await?.see(find).await?;
        for worker in stops {
            self.ring(Topic::Worker(worker)).await?;
        }
        for worker in matter {
            let id = worker.clone();
            let acted = self.change(Caller::system(), move |unit| {
                let id = id.clone();
                Box::pin(async move { act(unit, &id).await })
            });
            match acted.await {
                Ok(Some(Verdict::Silent | Verdict::Abandoned)) => {
                    self.readings.forget(&worker);
                    checked.silent += 1;
                }
                Ok(Some(Verdict::Removed)) => {
                    self.presence.forget(&worker);
                    self.contention.forget(&worker);
                    self.readings.forget(&worker);
                    checked.removed += 1;
                }
                Ok(None) => {}
                Err(refusal) => {
                    tracing::error!(%worker, ?refusal, "a worker's health was not acted on");
                    checked.failed += 1;
                }
            }
        }
        Ok(checked)
    }

    /// Rings for a topic, on every server.
    pub(super) async fn ring(self: &Arc<Self>, topic: Topic) -> Result<(), Refusal> {
        let rung = self.change(Caller::system(), move |unit| {
            unit.touch(topic.clone());
            Box::pin(async { Ok(()) })
        });
        rung.await
    }
}

/// The workers whose drain has come to its deadline, or that run a job for longer than it may.
fn with_something_to_stop(known: &Known, now: Timestamp) -> BTreeSet<WorkerId> {
    let evicts = |id: &WorkerId| known.worker(id).is_some_and(|stored| stored.worker.evicts(now));
    let held = known.leases().filter_map(|job| Some((job, &job.live_lease()?.worker)));
    held.filter(|(job, worker)| job.overdue(now).is_some() || evicts(worker))
        .map(|(_, worker)| worker.clone())
        .collect()
}

/// Judges again, now that nobody can come between, and acts.
async fn act(unit: &mut Unit<'_>, id: &WorkerId) -> Result<Option<Verdict>, Refusal> {
    let Some(stored) = unit.tx.worker(id).await? else { return Ok(None) };
    let verdict = verdict(unit.core, &stored, unit.now);
    match verdict {
        None => {}
        Some(Verdict::Silent) => {
            let after = stored.worker.clone().gone(unit.now, OfflineCause::Silent);
            let detail = json!({"cause": "heartbeat timeout", "last_seen": last_seen(unit.core, &stored)});
            unit.save_worker(&stored.worker, &after, Action::WorkerOffline, &detail).await?;
            lose_leases(unit, id).await?;
            unit.plan_after();
        }
        Some(Verdict::Abandoned) => {
            lose_leases(unit, id).await?;
            unit.plan_after();
        }
        Some(Verdict::Removed) => remove(unit, &stored.worker, Action::WorkerRemoved).await?,
    }
    Ok(verdict)
}
