//! What agents say of themselves, as far as something follows from it; see `app::domain::astray`.

use std::sync::Arc;

use app::domain::astray::{Word, astray, is_news, offer_taken};
use app::domain::audit::Action;
use app::domain::ids::WorkerId;
use app::domain::job::Report;
use app::domain::worker::Worker;
use app::protocol::topic::Topic;
use app::protocol::worker::Heartbeat;
use serde_json::json;

use super::Core;
use super::refusal::Refusal;
use super::unit::{Caller, Unit};

impl Core {
    /// An agent's report was refused. An older one does not hear of it, unless by its stream.
    pub(super) async fn refused_to(self: &Arc<Self>, caller: Caller, worker: WorkerId, word: Word) {
        if let Err(refusal) = self.note_word(caller, worker.clone(), word).await {
            tracing::error!(%worker, ?refusal, "what an agent runs is not on record");
        }
    }

    /// An agent said again that it runs what it was told to stop: its stream tells it again.
    pub(super) async fn remind(self: &Arc<Self>, worker: &Worker, word: &Word) -> Result<(), Refusal> {
        match (&worker.astray, word) {
            (Some(_), Word::Runs(_)) => self.ring(Topic::Worker(worker.id.clone())).await,
            _ => Ok(()),
        }
    }

    async fn note_word(self: &Arc<Self>, caller: Caller, worker: WorkerId, word: Word) -> Result<(), Refusal> {
        let mut tx = self.recent().await?;
        let Some(stored) = tx.worker(&worker).await? else { return Ok(()) };
        if !is_news(&stored.worker, &tx.leased_jobs(Some(&worker)).await?, &word) {
            drop(tx);
            return self.remind(&stored.worker, &word).await;
        }
        drop(tx);
        let input = Arc::new((worker, word));
        self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move { spoke(unit, &input.0, &input.1).await })
        })
        .await
    }
}

/// A worker's agent spoke by a heartbeat: it may have taken an offer.
pub async fn heartbeat_says(unit: &mut Unit<'_>, worker: &Worker, word: &Word) -> Result<(), Refusal> {
    let held = unit.tx.leased_jobs(Some(&worker.id)).await?;
    if let Some(job) = offer_taken(worker, &held, word) {
        let after = job.clone().reported(unit.now, &worker.id, job.attempt, Report::Starting)?;
        unit.save_job(job, &after).await?;
    }
    spoke(unit, &worker.id, word).await
}

/// A worker's agent spoke.
pub async fn spoke(unit: &mut Unit<'_>, worker: &WorkerId, word: &Word) -> Result<(), Refusal> {
    let Some(stored) = unit.tx.worker(worker).await? else { return Ok(()) };
    let (before, held) = (stored.worker, unit.tx.leased_jobs(Some(worker)).await?);
    let after = Worker { astray: astray(&before, &held, word), ..before.clone() };
    unit.save_worker(&before, &after, Action::WorkerAstray, &json!({"job_id": after.astray})).await?;
    if before.astray.is_some() && after.astray.is_none() {
        unit.plan_after();
    }
    Ok(())
}

/// What an older agent says by a heartbeat; ours name attempts instead.
pub fn word_of(beat: &Heartbeat) -> Option<Word> {
    match (beat.status.as_deref(), &beat.current_job_id) {
        (Some("busy"), Some(job)) => Some(Word::Runs(job.clone())),
        (Some("idle"), _) => Some(Word::Idle),
        _ => None,
    }
}
