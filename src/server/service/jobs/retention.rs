//! Retention of ended jobs: by age, and artifacts also by their total size. Nothing is removed unless a setting says
//! so, and never a checkpoint from which an unfinished job starts.

use std::io;
use std::sync::Arc;

use app::domain::audit::AuditAction;
use app::domain::ids::JobId;
use app::domain::time::Timestamp;
use app::protocol::topic::Topic;
use serde_json::json;

use crate::service::error::ServiceError;
use crate::service::jobs::JobService;
use crate::service::unit_of_work::Caller;
use crate::store::jobs::retention::{RemovedFiles, RetainedKind};

/// The maximum number of jobs per transaction, so that other writers are not blocked.
const BATCH: u32 = 50;

impl RetainedKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Artifacts => "artifacts",
            Self::Job => "jobs",
        }
    }
}

impl JobService {
    /// Removes expired data; returns the number of affected jobs.
    pub async fn prune_jobs(self: &Arc<Self>) -> Result<u64, ServiceError> {
        let pruned = self.prune_records().await;
        // Even if the database fails, perhaps because the disk is full. Also what a stopped server has left.
        let removed = self.remove_marked_files().await;
        pruned.and_then(|number| removed.map(|()| number))
    }

    /// Deletes the records of expired data, and marks its files.
    async fn prune_records(self: &Arc<Self>) -> Result<u64, ServiceError> {
        let retention = self.context.policy.retention;
        let mut number = 0;
        for (kind, span) in [
            (RetainedKind::Job, retention.jobs),
            (RetainedKind::Artifacts, retention.artifacts),
            (RetainedKind::Logs, retention.logs),
        ] {
            let Some(span) = span else { continue };
            let before = Timestamp(self.context.now().0 - span.0);
            loop {
                let jobs = self.context.read().await?.ended_before(kind, before, BATCH).await?;
                if jobs.is_empty() {
                    break;
                }
                number += jobs.len() as u64;
                self.remove_retained(kind, jobs).await?;
            }
        }
        Ok(number + self.prune_artifacts().await?)
    }

    /// Removes artifacts until the rest is within the limit.
    async fn prune_artifacts(self: &Arc<Self>) -> Result<u64, ServiceError> {
        let Some(max_bytes) = self.context.policy.retention.artifact_bytes else { return Ok(0) };
        let mut number = 0;
        loop {
            let mut tx = self.context.read().await?;
            let mut excess = tx.artifact_bytes().await?.saturating_sub(max_bytes);
            let oldest = tx.oldest_artifacts(BATCH).await?;
            drop(tx);
            let selected = oldest.into_iter().take_while(|(_, bytes)| {
                let is_selected = excess > 0;
                excess = excess.saturating_sub(*bytes);
                is_selected
            });
            let jobs: Vec<JobId> = selected.map(|(job, _)| job).collect();
            if jobs.is_empty() {
                return Ok(number);
            }
            number += jobs.len() as u64;
            self.remove_retained(RetainedKind::Artifacts, jobs).await?;
        }
    }

    /// Deletes the records and marks the files, in one transaction with its audit entry.
    async fn remove_retained(self: &Arc<Self>, kind: RetainedKind, jobs: Vec<JobId>) -> Result<(), ServiceError> {
        let jobs = Arc::new(jobs);
        self.context
            .change(Caller::system(), move |unit| {
                let jobs = Arc::clone(&jobs);
                Box::pin(async move {
                    let mut removed = Vec::with_capacity(jobs.len());
                    for job in jobs.iter() {
                        // A job that starts from its checkpoint may have been submitted since the selection.
                        if kind != RetainedKind::Logs && unit.tx.is_resume_source(job).await? {
                            continue;
                        }
                        unit.tx.remove_retained(kind, job).await?;
                        unit.notify(Topic::Job(job.clone()));
                        removed.push(job);
                    }
                    if removed.is_empty() {
                        return Ok(());
                    }
                    unit.notify(Topic::Jobs);
                    let (first, last) = (removed.first(), removed.last());
                    let detail = json!({"jobs": removed.len(), "first": first, "last": last});
                    unit.record(AuditAction::RetentionSwept, kind.as_str(), &detail).await
                })
            })
            .await
    }

    /// Removes the marked files, then their marks. A file that cannot be removed keeps its mark, and the others are
    /// removed nevertheless.
    ///
    /// # Errors
    /// Why the first of those files could not be removed.
    pub(in crate::service) async fn remove_marked_files(self: &Arc<Self>) -> Result<(), ServiceError> {
        // What another server has removed may exist again.
        let _lock = self.artifacts.lock_removals().await;
        let (mut last, mut first_error) = (None, None);
        loop {
            let marked = self.context.read().await?.marked_files(last.as_ref(), BATCH).await?;
            if marked.is_empty() {
                break;
            }
            last = marked.last().cloned();
            let mut removed = Vec::with_capacity(marked.len());
            for (job, files) in marked {
                match self.remove_files(&job, &files).await {
                    Ok(()) => removed.push((job, files)),
                    Err(error) => {
                        tracing::warn!(%job, ?files, %error, "retention: failed to remove files; retrying every hour");
                        first_error.get_or_insert(error);
                    }
                }
            }
            self.unmark(removed).await?;
        }
        first_error.map_or(Ok(()), |error| Err(ServiceError::FilesUnavailable(error.to_string())))
    }

    async fn remove_files(&self, job: &JobId, files: &RemovedFiles) -> io::Result<()> {
        match files {
            RemovedFiles::Logs => self.logs.remove_job(job).await,
            RemovedFiles::Artifacts => {
                self.artifacts.remove_job(job).await?;
                self.uploads.remove_job(job).await
            }
            RemovedFiles::Artifact { attempt, path } => {
                self.artifacts.remove_file((job, *attempt, path)).await.map_err(io::Error::other)
            }
        }
    }

    async fn unmark(&self, removed: Vec<(JobId, RemovedFiles)>) -> Result<(), ServiceError> {
        if removed.is_empty() {
            return Ok(());
        }
        let removed = Arc::new(removed);
        self.context
            .change(Caller::system(), move |unit| {
                let removed = Arc::clone(&removed);
                Box::pin(async move {
                    for (job, files) in removed.iter() {
                        unit.tx.unmark(job, files).await?;
                    }
                    Ok(())
                })
            })
            .await
    }
}
