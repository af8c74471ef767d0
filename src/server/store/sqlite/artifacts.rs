//! `artifacts`.

use std::ops::DerefMut;

use app::domain::ids::{Attempt, JobId};
use app::domain::time::Timestamp;
use async_trait::async_trait;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::failed;
use super::rows::Named;
use super::session::Session;
use crate::store::Result;
use crate::store::artifacts::{Artifacts, StoredArtifact};

#[async_trait]
impl<C: DerefMut<Target = SqliteConnection> + Send> Artifacts for Session<C> {
    async fn artifacts(&mut self, job: &JobId) -> Result<Vec<StoredArtifact>> {
        let query = sqlx::query(
            "SELECT * FROM artifacts AS a WHERE job_id = ?
             AND attempt = (SELECT max(attempt) FROM artifacts WHERE job_id = a.job_id AND path = a.path)
             ORDER BY path",
        );
        let query = query.bind(job.as_str());
        query.fetch_all(self.db()).await.map_err(failed)?.iter().map(from_row).collect()
    }

    async fn artifact(&mut self, job: &JobId, path: &str) -> Result<Option<StoredArtifact>> {
        let query = sqlx::query("SELECT * FROM artifacts WHERE job_id = ? AND path = ? ORDER BY attempt DESC LIMIT 1");
        let query = query.bind(job.as_str()).bind(path);
        query.fetch_optional(self.db()).await.map_err(failed)?.as_ref().map(from_row).transpose()
    }

    async fn put_artifact(&mut self, job: &JobId, artifact: &StoredArtifact) -> Result<()> {
        let query = sqlx::query(
            "INSERT INTO artifacts (job_id, path, attempt, kind, size, sha256, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET kind = excluded.kind, size = excluded.size, sha256 = excluded.sha256,
                    created_at = excluded.created_at",
        );
        query
            .bind(job.as_str())
            .bind(&artifact.path)
            .bind(artifact.attempt.0)
            .bind(&artifact.kind)
            .bind(i64::try_from(artifact.size).unwrap_or(i64::MAX))
            .bind(&artifact.sha256)
            .bind(artifact.created_at.0)
            .execute(self.db())
            .await
            .map_err(failed)?;
        Ok(())
    }
}

fn from_row(row: &SqliteRow) -> Result<StoredArtifact> {
    let row = Named::new(row, "artifacts", "path")?;
    Ok(StoredArtifact {
        path: row.get("path")?,
        attempt: Attempt(row.number("attempt")?),
        kind: row.get("kind")?,
        size: row.number("size")?,
        sha256: row.get("sha256")?,
        created_at: Timestamp(row.get("created_at")?),
    })
}
