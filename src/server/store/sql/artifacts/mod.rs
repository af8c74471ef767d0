//! `artifacts`.

pub(super) mod checkpoints;

use app::domain::ids::{AttemptNumber, JobId};
use async_trait::async_trait;

use super::rows::NamedRow;
use super::statement::sql;
use super::{SqlRow, SqlSession};
use crate::store::Result;
use crate::store::artifacts::{ArtifactQueries, StoredArtifact};

#[async_trait]
impl ArtifactQueries for SqlSession<'_> {
    async fn artifacts(&mut self, job: &JobId) -> Result<Vec<StoredArtifact>> {
        let select = sql("SELECT * FROM artifacts AS a WHERE job_id = $1
             AND attempt = (SELECT max(attempt) FROM artifacts WHERE job_id = a.job_id AND path = a.path)
             ORDER BY path");
        self.fetch_all(select.bind(job.as_str()), from_row).await
    }

    async fn attempt_artifacts(&mut self, job: &JobId, attempt: AttemptNumber) -> Result<Vec<StoredArtifact>> {
        let select = sql("SELECT * FROM artifacts WHERE job_id = $1 AND attempt = $2 ORDER BY path");
        self.fetch_all(select.bind(job.as_str()).bind(attempt.0), from_row).await
    }

    async fn artifact(&mut self, job: &JobId, path: &str) -> Result<Option<StoredArtifact>> {
        let select = sql("SELECT * FROM artifacts WHERE job_id = $1 AND path = $2 ORDER BY attempt DESC LIMIT 1");
        self.fetch_first(select.bind(job.as_str()).bind(path)).await?.as_ref().map(from_row).transpose()
    }

    async fn other_artifact_bytes(&mut self, job: &JobId, except: (AttemptNumber, &str)) -> Result<u64> {
        let sum = sql("SELECT CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes FROM artifacts
             WHERE job_id = $1 AND NOT (attempt = $2 AND path = $3)");
        let sum = sum.bind(job.as_str()).bind(except.0.0).bind(except.1);
        self.fetch_first(sum).await?.map_or(Ok(0), |row| row.get::<i64>("bytes")).map(i64::unsigned_abs)
    }

    async fn user_artifact_bytes(&mut self, user: &str) -> Result<u64> {
        let sum = sql("SELECT CAST(coalesce(sum(artifacts.size), 0) AS BIGINT) AS bytes
             FROM jobs JOIN artifacts ON artifacts.job_id = jobs.id WHERE jobs.submitted_by = $1");
        self.fetch_first(sum.bind(user)).await?.map_or(Ok(0), |row| row.get::<i64>("bytes")).map(i64::unsigned_abs)
    }

    async fn has_other_artifacts(&mut self, job: &JobId, except: (AttemptNumber, &str), number: u64) -> Result<bool> {
        let Some(last) = number.checked_sub(1) else { return Ok(true) };
        let select = sql("SELECT path FROM artifacts WHERE job_id = $1 AND NOT (attempt = $2 AND path = $3)
             LIMIT 1 OFFSET $4");
        let last = i64::try_from(last).unwrap_or(i64::MAX);
        let select = select.bind(job.as_str()).bind(except.0.0).bind(except.1).bind(last);
        Ok(self.fetch_first(select).await?.is_some())
    }

    async fn put_artifact(&mut self, job: &JobId, artifact: &StoredArtifact) -> Result<()> {
        let put = sql("INSERT INTO artifacts (job_id, path, attempt, kind, size, sha256, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (job_id, path, attempt) DO UPDATE SET kind = excluded.kind, size = excluded.size,
                    sha256 = excluded.sha256, created_at = excluded.created_at");
        let put = put.bind(job.as_str()).bind(&artifact.path).bind(artifact.attempt.0).bind(&artifact.kind);
        let size = i64::try_from(artifact.size).unwrap_or(i64::MAX);
        self.execute_one(put.bind(size).bind(&artifact.sha256).bind(artifact.created_at.0)).await
    }
}

fn from_row(row: &SqlRow) -> Result<StoredArtifact> {
    let row = NamedRow::new(row, "artifacts", "path")?;
    Ok(StoredArtifact {
        path: row.get("path")?,
        attempt: AttemptNumber(row.number("attempt")?),
        kind: row.get("kind")?,
        size: row.number("size")?,
        sha256: row.get("sha256")?,
        created_at: row.timestamp("created_at")?,
    })
}
