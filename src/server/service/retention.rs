//! What of ended jobs is not kept any longer: by age, and artifacts also by how many bytes all of them have. Nothing is
//! given up unless a setting says so.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::JobId;
use app::domain::time::{Millis, Timestamp};
use app::protocol::topic::Topic;
use serde_json::json;

use super::Core;
use super::refusal::Refusal;
use super::unit::Caller;
use crate::store::retention::{Files, What};

/// So many jobs are dealt with in one transaction; others want to write too.
const BATCH: u32 = 50;

/// How long what is kept; without a number, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// Ended jobs, with all that belongs to them.
    pub jobs: Option<Millis>,
    /// Their logs.
    pub logs: Option<Millis>,
    /// The files that they made.
    pub artifacts: Option<Millis>,
    /// How many bytes of those are kept in all; those of jobs that ended first go first.
    pub artifact_bytes: Option<u64>,
}

impl What {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Artifacts => "artifacts",
            Self::Job => "jobs",
        }
    }
}

impl Core {
    /// Gives up what was kept for long enough; returns of how many jobs something went.
    pub async fn expire_jobs(self: &Arc<Self>) -> Result<u64, Refusal> {
        // What a server that ended in the middle has left.
        self.remove_marked().await?;
        let kept = self.policy.kept;
        let mut number = 0;
        for (what, span) in [(What::Job, kept.jobs), (What::Artifacts, kept.artifacts), (What::Logs, kept.logs)] {
            let Some(span) = span else { continue };
            let before = Timestamp(self.now().0 - span.0);
            loop {
                let jobs = self.read().await?.ended_before(what, before, BATCH).await?;
                if jobs.is_empty() {
                    break;
                }
                number += jobs.len() as u64;
                self.give_up(what, jobs).await?;
            }
        }
        Ok(number + self.fit_artifacts().await?)
    }

    /// Gives up artifacts until the rest is no more than is kept.
    async fn fit_artifacts(self: &Arc<Self>) -> Result<u64, Refusal> {
        let Some(most) = self.policy.kept.artifact_bytes else { return Ok(0) };
        let mut number = 0;
        loop {
            let mut tx = self.read().await?;
            let mut over = tx.artifact_bytes().await?.saturating_sub(most);
            let oldest = tx.oldest_artifacts(BATCH).await?;
            drop(tx);
            let enough = oldest.into_iter().take_while(|(_, bytes)| {
                let goes = over > 0;
                over = over.saturating_sub(*bytes);
                goes
            });
            let jobs: Vec<JobId> = enough.map(|(job, _)| job).collect();
            if jobs.is_empty() {
                return Ok(number);
            }
            number += jobs.len() as u64;
            self.give_up(What::Artifacts, jobs).await?;
        }
    }

    /// One transaction with its entry in the trail, and then the files.
    async fn give_up(self: &Arc<Self>, what: What, jobs: Vec<JobId>) -> Result<(), Refusal> {
        let jobs = Arc::new(jobs);
        self.change(Caller::system(), move |unit| {
            let jobs = Arc::clone(&jobs);
            Box::pin(async move {
                for job in jobs.iter() {
                    unit.tx.give_up(what, job).await?;
                    unit.touch(Topic::Job(job.clone()));
                }
                unit.touch(Topic::Jobs);
                let (first, last) = (jobs.first(), jobs.last());
                let detail = json!({"jobs": jobs.len(), "first": first, "last": last});
                unit.record(Action::RetentionSwept, what.as_str(), &detail).await
            })
        })
        .await?;
        self.remove_marked().await
    }

    /// Removes the files that are marked, and then their marks. What cannot be removed keeps its mark.
    pub(super) async fn remove_marked(self: &Arc<Self>) -> Result<(), Refusal> {
        // What somebody else has removed may be there anew.
        let _turn = self.artifacts.turn_to_remove().await;
        loop {
            let marked = self.read().await?.marked(BATCH).await?;
            if marked.is_empty() {
                return Ok(());
            }
            for (job, files) in &marked {
                match files {
                    Files::Logs => self.logs.remove(job).await?,
                    Files::Artifacts => {
                        self.artifacts.remove(job).await.map_err(|error| Refusal::Files(error.to_string()))?;
                        self.uploads.remove(job).await?;
                    }
                    Files::Artifact { attempt, path } => {
                        let removed = self.artifacts.remove_one((job, *attempt, path)).await;
                        removed.map_err(|error| Refusal::Files(error.to_string()))?;
                    }
                }
            }
            let marked = Arc::new(marked);
            self.change(Caller::system(), move |unit| {
                let marked = Arc::clone(&marked);
                Box::pin(async move {
                    for (job, files) in marked.iter() {
                        unit.tx.unmark(job, files).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        }
    }
}
