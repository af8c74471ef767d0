//! Attempts, events, progress and artifacts as clients see them.

use app::domain::ids::JobId;
use app::protocol::queue::{ArtifactView, ArtifactsPage, AttemptView, JobEvent, JobEvents, ProgressSeries};
use app::protocol::status::ArtifactKind;

use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::store::artifacts::StoredArtifact;
use crate::store::attempts::StoredAttempt;
use crate::store::audit::StoredEntry;
use crate::text::percent_escaped;

/// How many points a chart gets.
const CHART_POINTS: u32 = 600;

impl Core {
    /// The newest attempt's points.
    pub async fn progress_series(&self, id: &JobId) -> Result<ProgressSeries, Refusal> {
        let mut tx = self.read().await?;
        let attempt = tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?.attempt;
        let points = tx.points(id, attempt, CHART_POINTS).await?;
        Ok(ProgressSeries { attempt, points: points.iter().filter_map(|p| serde_json::from_str(p).ok()).collect() })
    }

    /// What happened to a job.
    pub async fn job_events(&self, id: &JobId) -> Result<JobEvents, Refusal> {
        let mut tx = self.read().await?;
        tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?;
        let events = tx.audit_of(id.as_str()).await?.into_iter().map(event).collect();
        Ok(JobEvents { events })
    }

    /// A job's files.
    pub async fn artifacts_page(&self, id: &JobId) -> Result<ArtifactsPage, Refusal> {
        let mut tx = self.read().await?;
        tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?;
        let artifacts = tx.artifacts(id).await?;
        Ok(ArtifactsPage { artifacts: artifacts.into_iter().map(|artifact| artifact_view(id, artifact)).collect() })
    }
}

fn event(entry: StoredEntry) -> JobEvent {
    JobEvent {
        at: entry.at,
        event: entry.action,
        actor: entry.actor,
        detail: serde_json::from_str(&entry.detail).unwrap_or_default(),
    }
}

fn artifact_view(job: &JobId, artifact: StoredArtifact) -> ArtifactView {
    ArtifactView {
        url: format!("/api/queue/{job}/artifacts/{}", percent_escaped(&artifact.path)),
        path: artifact.path,
        attempt: artifact.attempt,
        kind: ArtifactKind::parse(&artifact.kind).unwrap_or(ArtifactKind::Other),
        size_bytes: artifact.size,
        sha256: artifact.sha256,
        created_at: artifact.created_at,
    }
}

/// One attempt.
pub fn attempt_view(stored: StoredAttempt, log_bytes: u64) -> AttemptView {
    AttemptView {
        attempt: stored.attempt,
        worker_id: stored.worker,
        worker_name: Some(stored.worker_name),
        offered_at: stored.offered_at,
        started_at: stored.started_at,
        ended_at: stored.ended_at,
        outcome: stored.outcome,
        error: stored.error,
        exit_code: stored.exit_code,
        resumed_from_step: stored.resumed_from_step,
        log_bytes,
    }
}
