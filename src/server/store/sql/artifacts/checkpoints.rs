//! `checkpoints`.

use app::domain::ids::{AttemptNumber, JobId};
use async_trait::async_trait;

use crate::store::Result;
use crate::store::artifacts::checkpoints::{CheckpointQueries, StoredCheckpoint};
use crate::store::sql::rows::NamedRow;
use crate::store::sql::statement::sql;
use crate::store::sql::{SqlRow, SqlSession};

#[async_trait]
impl CheckpointQueries for SqlSession<'_> {
    async fn checkpoints(&mut self, job: &JobId) -> Result<Vec<StoredCheckpoint>> {
        let select = sql("SELECT * FROM checkpoints WHERE job_id = $1 ORDER BY step DESC, attempt DESC, name");
        self.fetch_all(select.bind(job.as_str()), from_row).await
    }

    async fn checkpoint_files(&mut self, job: &JobId) -> Result<Vec<(AttemptNumber, String)>> {
        let select = sql("SELECT attempt, path FROM artifacts
             WHERE job_id = $1 AND substr(path, 1, 11) = 'checkpoint-' ORDER BY attempt, path");
        let file = |row: &SqlRow| {
            let row = NamedRow::new(row, "artifacts", "path")?;
            Ok((AttemptNumber(row.number("attempt")?), row.get("path")?))
        };
        self.fetch_all(select.bind(job.as_str()), file).await
    }

    async fn put_checkpoint(&mut self, job: &JobId, checkpoint: &StoredCheckpoint) -> Result<()> {
        let put = sql("INSERT INTO checkpoints (job_id, attempt, name, step, files, created_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (job_id, attempt, name) DO UPDATE SET step = excluded.step, files = excluded.files,
                    created_at = excluded.created_at");
        let put = put.bind(job.as_str()).bind(checkpoint.attempt.0).bind(&checkpoint.name).bind(checkpoint.step);
        self.execute_one(put.bind(&checkpoint.files).bind(checkpoint.created_at.0)).await
    }
}

fn from_row(row: &SqlRow) -> Result<StoredCheckpoint> {
    let row = NamedRow::new(row, "checkpoints", "name")?;
    Ok(StoredCheckpoint {
        attempt: AttemptNumber(row.number("attempt")?),
        name: row.get("name")?,
        step: row.get("step")?,
        files: row.get("files")?,
        created_at: row.timestamp("created_at")?,
    })
}
