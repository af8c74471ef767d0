use app::domain::access::Permission;
use app::domain::ids::JobId;
use app::domain::text::natural_cmp;
use app::protocol::artifacts::{ArtifactView, ArtifactsPage};
use app::protocol::audit::{AuditLogEvent, JobEvents};
use app::protocol::configs::ConfigDetail;
use app::protocol::status::ArtifactKind;

use crate::service::access::Principal;
use crate::service::configs::config_detail;
use crate::service::error::ServiceError;
use crate::service::jobs::JobService;
use crate::service::jobs::overrides as job_overrides;
use crate::service::jobs::resume_points::resume_point;
use crate::store::artifacts::StoredArtifact;
use crate::store::audit::StoredAuditEntry;
use crate::text::percent_escaped;

impl JobService {
    /// Returns the events of a job. Overrides are only shown to users who may read configurations.
    pub async fn job_events(&self, principal: &Principal, id: &JobId) -> Result<JobEvents, ServiceError> {
        let mut tx = self.context.read().await?;
        tx.job(id).await?.ok_or_else(|| ServiceError::JobNotFound(id.clone()))?;
        let mut events: Vec<_> = tx.audit_of_target(id.as_str()).await?.into_iter().map(event_view).collect();
        if !principal.permissions.contains(Permission::ConfigView) {
            let details = events.iter_mut().filter_map(|event| event.detail.as_object_mut());
            details.for_each(|detail| drop(detail.remove("overrides")));
        }
        Ok(JobEvents { events })
    }

    pub async fn artifacts_page(&self, id: &JobId) -> Result<ArtifactsPage, ServiceError> {
        let mut tx = self.context.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| ServiceError::JobNotFound(id.clone()))?;
        let artifacts = tx.artifacts(id).await?;
        let mut artifacts: Vec<_> = artifacts.into_iter().map(|artifact| artifact_view(id, artifact)).collect();
        artifacts.sort_by(|a, b| natural_cmp(&a.path, &b.path).then(a.attempt.cmp(&b.attempt)));
        Ok(ArtifactsPage { artifacts, resumes_from: resume_point(&mut *tx, &job).await? })
    }

    /// Returns the configuration as a job runs it, with its files.
    pub async fn job_config(&self, id: &JobId) -> Result<ConfigDetail, ServiceError> {
        let mut tx = self.context.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| ServiceError::JobNotFound(id.clone()))?;
        let (name, revision) = (job.spec.config_name, job.spec.config_revision);
        let config =
            tx.config_revision(&name, revision).await?.ok_or(ServiceError::ConfigNotFound(name, Vec::new()))?;
        Ok(config_detail(&job_overrides::applied_config(config, &job.spec.overrides)))
    }
}

fn event_view(entry: StoredAuditEntry) -> AuditLogEvent {
    AuditLogEvent {
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
