//! `checkpoints`.

use std::collections::BTreeMap;

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::time::Millis;
use async_trait::async_trait;

use crate::store::Result;
use crate::store::artifacts::checkpoints::{CheckpointQueries, NewestCheckpoint, StoredCheckpoint};
use crate::store::sql::rows::{NamedRow, to_json};
use crate::store::sql::statement::sql;
use crate::store::sql::{SqlRow, SqlSession};

#[async_trait]
impl CheckpointQueries for SqlSession<'_> {
    async fn checkpoints(&mut self, job: &JobId) -> Result<Vec<StoredCheckpoint>> {
        let select = sql("SELECT * FROM checkpoints WHERE job_id = $1 ORDER BY step DESC, attempt DESC, name");
        self.fetch_all(select.bind(job.as_str()), from_row).await
    }

    async fn newest_checkpoints(&mut self, jobs: &[JobId]) -> Result<Vec<NewestCheckpoint>> {
        let select = self.for_engine(
            "SELECT job_id, attempt, step, created_at, since_previous FROM checkpoints
             WHERE job_id IN (SELECT value FROM json_each($1)) ORDER BY job_id, created_at, step",
            "SELECT job_id, attempt, step, created_at, since_previous FROM checkpoints
             WHERE job_id IN (SELECT json_array_elements_text($1::json)) ORDER BY job_id, created_at, step",
        );
        let found = self.fetch_valid(select.bind(to_json(&jobs)), newest_from).await?;
        let newest = found.into_iter().map(|checkpoint| (checkpoint.job.clone(), checkpoint));
        Ok(newest.collect::<BTreeMap<_, _>>().into_values().collect())
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
        let put = sql("INSERT INTO checkpoints (job_id, attempt, name, step, files, created_at, since_previous)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (job_id, attempt, name) DO UPDATE SET step = excluded.step, files = excluded.files,
                    created_at = excluded.created_at, since_previous = excluded.since_previous");
        let put = put.bind(job.as_str()).bind(checkpoint.attempt.0).bind(&checkpoint.name).bind(checkpoint.step);
        let put = put.bind(&checkpoint.files).bind(checkpoint.created_at.0);
        self.execute_one(put.bind(checkpoint.interval.map(|interval| interval.0))).await
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
        interval: row.get::<Option<i64>>("since_previous")?.map(Millis),
    })
}

fn newest_from(row: &SqlRow) -> Result<NewestCheckpoint> {
    let row = NamedRow::new(row, "checkpoints", "job_id")?;
    Ok(NewestCheckpoint {
        job: row.job_id("job_id")?,
        attempt: AttemptNumber(row.number("attempt")?),
        step: row.get("step")?,
        created_at: row.timestamp("created_at")?,
        interval: row.get::<Option<i64>>("since_previous")?.map(Millis),
    })
}
