//! `checkpoints`.

use app::domain::ids::{Attempt, JobId};
use async_trait::async_trait;

use super::rows::Named;
use super::statement::sql;
use super::{Row, Session};
use crate::store::Result;
use crate::store::checkpoints::{Checkpoints, StoredCheckpoint};

#[async_trait]
impl Checkpoints for Session<'_> {
    async fn checkpoints(&mut self, job: &JobId) -> Result<Vec<StoredCheckpoint>> {
        let select = sql("SELECT * FROM checkpoints WHERE job_id = $1 ORDER BY step DESC, attempt DESC, name");
        self.all(select.bind(job.as_str()), from_row).await
    }

    async fn checkpoint_files(&mut self, job: &JobId) -> Result<Vec<(Attempt, String)>> {
        let select = sql("SELECT attempt, path FROM artifacts
             WHERE job_id = $1 AND substr(path, 1, 11) = 'checkpoint-' ORDER BY attempt, path");
        let file = |row: &Row| {
            let row = Named::new(row, "artifacts", "path")?;
            Ok((Attempt(row.number("attempt")?), row.get("path")?))
        };
        self.all(select.bind(job.as_str()), file).await
    }

    async fn put_checkpoint(&mut self, job: &JobId, checkpoint: &StoredCheckpoint) -> Result<()> {
        let put = sql("INSERT INTO checkpoints (job_id, attempt, name, step, files, created_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (job_id, attempt, name) DO UPDATE SET step = excluded.step, files = excluded.files,
                    created_at = excluded.created_at");
        let put = put.bind(job.as_str()).bind(checkpoint.attempt.0).bind(&checkpoint.name).bind(checkpoint.step);
        self.one(put.bind(&checkpoint.files).bind(checkpoint.created_at.0)).await
    }
}

fn from_row(row: &Row) -> Result<StoredCheckpoint> {
    let row = Named::new(row, "checkpoints", "name")?;
    Ok(StoredCheckpoint {
        attempt: Attempt(row.number("attempt")?),
        name: row.get("name")?,
        step: row.get("step")?,
        files: row.get("files")?,
        created_at: row.moment("created_at")?,
    })
}
