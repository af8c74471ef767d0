//! Events, artifacts and configurations of jobs as clients see them.

use app::domain::ids::JobId;
use app::domain::text::in_order;
use app::protocol::artifacts::{ArtifactView, ArtifactsPage};
use app::protocol::audit::{JobEvents, TrailEvent};
use app::protocol::configs::ConfigDetail;
use app::protocol::status::ArtifactKind;

use crate::service::Core;
use crate::service::checkpoints::resume_point;
use crate::service::configs::config_detail;
use crate::service::overrides;
use crate::service::refusal::Refusal;
use crate::store::artifacts::StoredArtifact;
use crate::store::audit::StoredEntry;
use crate::text::percent_escaped;

impl Core {
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
        let job = tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?;
        let artifacts = tx.artifacts(id).await?;
        let mut artifacts: Vec<_> = artifacts.into_iter().map(|artifact| artifact_view(id, artifact)).collect();
        artifacts.sort_by(|a, b| in_order(&a.path, &b.path).then(a.attempt.cmp(&b.attempt)));
        Ok(ArtifactsPage { artifacts, resumes_from: resume_point(&mut *tx, &job).await? })
    }

    /// The configuration as a job runs it, with its files.
    pub async fn job_config(&self, id: &JobId) -> Result<ConfigDetail, Refusal> {
        let mut tx = self.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?;
        let (name, revision) = (job.spec.config_name, job.spec.config_revision);
        let config = tx.config_revision(&name, revision).await?.ok_or(Refusal::NoConfig(name))?;
        Ok(config_detail(&overrides::ran(config, &job.spec.overrides)))
    }
}

fn event(entry: StoredEntry) -> TrailEvent {
    TrailEvent {
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
