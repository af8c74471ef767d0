//! Exclusive jobs. Their agents count from the last request of theirs that was answered; so whoever is answered about an
//! attempt that was lost keeps its job back for as long again.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::Attempt;
use app::domain::job::{Job, Report};
use app::domain::time::Millis;
use app::domain::worker::Worker;
use app::protocol::topic::Topic;
use serde_json::json;

use super::Core;
use super::refusal::Refusal;
use super::reports::Subject;
use super::unit::{Caller, Unit};
use crate::store::known::Known;

impl Core {
    /// How long agents may be silent.
    pub const fn lease(&self) -> Millis {
        self.policy.heartbeat_timeout
    }

    /// How long this one may, as it was told: maybe by a server with another setting.
    pub fn lease_of(&self, worker: Option<&Worker>) -> Millis {
        worker.and_then(|worker| worker.lease).map_or(self.lease(), |told| told.max(self.lease()))
    }

    /// Nobody knows what was offered since: what waits may run.
    pub async fn keep_all_back(self: &Arc<Self>) -> Result<(), Refusal> {
        self.change(Caller::system(), |unit| {
            Box::pin(async move {
                let waiting = |known: &Known| known.waiting().filter(|job| job.spec.exclusive).cloned().collect();
                let waiting: Vec<Job> = unit.tx.see(waiting).await?;
                for before in waiting {
                    let after = before.clone().recalled(unit.now, unit.core.lease());
                    unit.keep_back(&before, after).await?;
                }
                Ok(())
            })
        })
        .await
    }

    /// An attempt of this job is about to be answered.
    pub(super) async fn answers(
        self: &Arc<Self>,
        subject: &Subject,
        job: &Job,
        attempt: Attempt,
    ) -> Result<(), Refusal> {
        // What nobody keeps back needs no look at its worker.
        if job.kept_back.is_none() {
            return Ok(());
        }
        let subject = Arc::new(subject.clone());
        self.change(Caller::system(), move |unit| {
            let subject = Arc::clone(&subject);
            Box::pin(async move {
                // Somebody else may have been offered it since.
                let job = unit.job(&subject.job).await?;
                job.clone().reported(unit.now, &subject.worker, attempt, Report::Running)?;
                unit.answers(&job).await
            })
        })
        .await
    }
}

impl Unit<'_> {
    /// The newest attempt of this job is about to be answered.
    pub(super) async fn answers(&mut self, before: &Job) -> Result<(), Refusal> {
        let Some(lease) = before.last_lease().filter(|_| before.kept_back.is_some()) else { return Ok(()) };
        let worker = self.tx.worker(&lease.worker).await?;
        let lease = self.core.lease_of(worker.as_ref().map(|stored| &stored.worker));
        let after = before.clone().answered(self.now, lease);
        self.keep_back(before, after).await
    }

    async fn keep_back(&mut self, before: &Job, after: Job) -> Result<(), Refusal> {
        if after == *before {
            return Ok(());
        }
        self.tx.update_job(before, &after).await?;
        let detail = json!({"attempt": after.attempt, "until": after.kept_back});
        self.record(Action::JobKeptBack, after.id.as_str(), &detail).await?;
        self.touch(Topic::Job(after.id));
        Ok(())
    }
}
