//! `removals`, and removal of data of `jobs`.

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;
use crate::store::cache::state::StateChange;
use crate::store::jobs::retention::{RemovedFiles, RetainedKind, RetentionQueries};
use crate::store::sql::rows::NamedRow;
use crate::store::sql::rows::job::{ended_states, live_states};
use crate::store::sql::statement::{Statement, sql};
use crate::store::sql::{SqlRow, SqlSession};

/// Deletes the records of a job's files.
const FORGET_ARTIFACTS: [&str; 2] =
    ["DELETE FROM checkpoints WHERE job_id = $1", "DELETE FROM artifacts WHERE job_id = $1"];
/// Marks an attempt's files below a directory, and deletes their records.
const REMOVE_DIRECTORY: [&str; 2] = [
    "INSERT INTO removals (job_id, files, attempt, path)
     SELECT job_id, 'artifact', attempt, path FROM artifacts
     WHERE job_id = $1 AND attempt = $2 AND substr(path, 1, length($3)) = $3
     ON CONFLICT (job_id, files, attempt, path) DO NOTHING",
    "DELETE FROM artifacts WHERE job_id = $1 AND attempt = $2 AND substr(path, 1, length($3)) = $3",
];
/// Deletes all other data of a job, before the job itself.
const FORGET_JOB_PARTS: [&str; 4] = [
    "DELETE FROM sample_votes WHERE first_job = $1 OR second_job = $1",
    "DELETE FROM points WHERE job_id = $1",
    "DELETE FROM attempts WHERE job_id = $1",
    "INSERT INTO removed_job_numbers (config_name, number)
     SELECT config_name, number FROM jobs WHERE id = $1 AND number IS NOT NULL
     ON CONFLICT (config_name) DO UPDATE SET number = excluded.number WHERE excluded.number > removed_job_numbers.number",
];

/// The checkpoints from which unfinished jobs start: few, and so queried once.
macro_rules! starts {
    () => {
        concat!(
            "WITH starts AS MATERIALIZED (
             SELECT start AS place FROM jobs
             WHERE state IN ",
            live_states!(),
            " AND start LIKE '%/%')
         "
        )
    };
}
/// Whether one of them is of this job.
macro_rules! is_start {
    () => {
        "EXISTS (SELECT 1 FROM starts WHERE substr(place, 1, length(jobs.id) + 1) = jobs.id || '/')"
    };
}

#[async_trait]
impl RetentionQueries for SqlSession<'_> {
    async fn ended_before(&mut self, kind: RetainedKind, before: Timestamp, limit: u32) -> Result<Vec<JobId>> {
        let select = sql(match kind {
            RetainedKind::Logs => {
                concat!(
                    "SELECT id FROM jobs WHERE state IN ",
                    ended_states!(),
                    " AND state_since < $1
                 AND logs_removed = 0 ORDER BY state_since LIMIT $2"
                )
            }
            RetainedKind::Artifacts => concat!(
                starts!(),
                concat!(
                    "SELECT id FROM jobs WHERE state IN ",
                    ended_states!(),
                    " AND state_since < $1
                 AND artifacts_removed = 0 AND NOT "
                ),
                is_start!(),
                " ORDER BY state_since LIMIT $2"
            ),
            RetainedKind::Job => concat!(
                starts!(),
                concat!("SELECT id FROM jobs WHERE state IN ", ended_states!(), " AND state_since < $1 AND NOT "),
                is_start!(),
                " ORDER BY state_since LIMIT $2"
            ),
        });
        self.fetch_all(select.bind(before.0).bind(limit), |row| NamedRow::new(row, "jobs", "id")?.job_id("id")).await
    }

    async fn is_resume_source(&mut self, job: &JobId) -> Result<bool> {
        let select = sql(concat!(starts!(), "SELECT id FROM jobs WHERE id = $1 AND ", is_start!()));
        Ok(self.fetch_first(select.bind(job.as_str())).await?.is_some())
    }

    async fn remove_retained(&mut self, kind: RetainedKind, job: &JobId) -> Result<()> {
        self.require_writer()?;
        match kind {
            RetainedKind::Logs => {
                self.execute_one(sql("UPDATE jobs SET logs_removed = 1 WHERE id = $1").bind(job.as_str())).await?;
                self.mark_files(job, &RemovedFiles::Logs).await
            }
            RetainedKind::Artifacts => {
                for part in FORGET_ARTIFACTS {
                    self.execute(sql(part).bind(job.as_str())).await?;
                }
                self.execute_one(sql("UPDATE jobs SET artifacts_removed = 1 WHERE id = $1").bind(job.as_str())).await?;
                self.mark_files(job, &RemovedFiles::Artifacts).await
            }
            RetainedKind::Job => {
                for part in FORGET_ARTIFACTS.into_iter().chain(FORGET_JOB_PARTS) {
                    self.execute(sql(part).bind(job.as_str())).await?;
                }
                self.execute_one(sql("DELETE FROM jobs WHERE id = $1").bind(job.as_str())).await?;
                self.record_change(StateChange::JobRemoved(job.clone()));
                self.mark_files(job, &RemovedFiles::Logs).await?;
                self.mark_files(job, &RemovedFiles::Artifacts).await
            }
        }
    }

    async fn remove_artifact(&mut self, job: &JobId, attempt: AttemptNumber, path: &str) -> Result<()> {
        self.require_writer()?;
        let delete = sql("DELETE FROM artifacts WHERE job_id = $1 AND attempt = $2 AND path = $3");
        self.execute(delete.bind(job.as_str()).bind(attempt.0).bind(path)).await?;
        self.mark_files(job, &RemovedFiles::Artifact { attempt, path: path.to_owned() }).await
    }

    async fn remove_checkpoint(&mut self, job: &JobId, attempt: AttemptNumber, directory: &str) -> Result<()> {
        self.require_writer()?;
        let forget = sql("DELETE FROM checkpoints WHERE job_id = $1 AND attempt = $2 AND name = $3");
        self.execute(forget.bind(job.as_str()).bind(attempt.0).bind(directory)).await?;
        let below = format!("{directory}/");
        for part in REMOVE_DIRECTORY {
            self.execute(sql(part).bind(job.as_str()).bind(attempt.0).bind(below.as_str())).await?;
        }
        Ok(())
    }

    async fn marked_files(
        &mut self,
        after: Option<&(JobId, RemovedFiles)>,
        limit: u32,
    ) -> Result<Vec<(JobId, RemovedFiles)>> {
        let marked_file = |row: &SqlRow| {
            let row = NamedRow::new(row, "removals", "job_id")?;
            let kind: String = row.get("files")?;
            let files = match kind.as_str() {
                "logs" => RemovedFiles::Logs,
                "artifacts" => RemovedFiles::Artifacts,
                _ => RemovedFiles::Artifact { attempt: AttemptNumber(row.number("attempt")?), path: row.get("path")? },
            };
            Ok((row.job_id("job_id")?, files))
        };
        let select = match after {
            None => sql("SELECT * FROM removals ORDER BY job_id, files, attempt, path LIMIT $1"),
            Some((job, files)) => {
                let select = sql("SELECT * FROM removals WHERE (job_id, files, attempt, path) > ($1, $2, $3, $4)
                     ORDER BY job_id, files, attempt, path LIMIT $5");
                bind_mark(select, job, files)
            }
        };
        self.fetch_all(select.bind(limit), marked_file).await
    }

    async fn is_marked(&mut self, job: &JobId, files: &RemovedFiles) -> Result<bool> {
        let select = sql("SELECT job_id FROM removals WHERE job_id = $1 AND files = $2 AND attempt = $3 AND path = $4");
        Ok(self.fetch_first(bind_mark(select, job, files)).await?.is_some())
    }

    async fn unmark(&mut self, job: &JobId, files: &RemovedFiles) -> Result<()> {
        let delete = sql("DELETE FROM removals WHERE job_id = $1 AND files = $2 AND attempt = $3 AND path = $4");
        self.execute(bind_mark(delete, job, files)).await.map(drop)
    }

    async fn artifact_bytes(&mut self) -> Result<u64> {
        let sum = sql("SELECT CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes FROM artifacts");
        self.fetch_first(sum).await?.map_or(Ok(0), |row| row.get::<i64>("bytes")).map(i64::unsigned_abs)
    }

    async fn oldest_artifacts(&mut self, limit: u32) -> Result<Vec<(JobId, u64)>> {
        let select = sql(concat!(
            starts!(),
            concat!(
                "SELECT jobs.id AS id, CAST(sum(artifacts.size) AS BIGINT) AS bytes
             FROM jobs JOIN artifacts ON artifacts.job_id = jobs.id
             WHERE jobs.state IN ",
                ended_states!(),
                "
             GROUP BY jobs.id, jobs.state_since HAVING NOT "
            ),
            is_start!(),
            " ORDER BY jobs.state_since, jobs.id LIMIT $1"
        ));
        let job_bytes = |row: &SqlRow| {
            let bytes_row = NamedRow::new(row, "jobs", "id")?;
            Ok((bytes_row.job_id("id")?, row.get::<i64>("bytes")?.unsigned_abs()))
        };
        self.fetch_all(select.bind(limit), job_bytes).await
    }
}

impl SqlSession<'_> {
    async fn mark_files(&mut self, job: &JobId, files: &RemovedFiles) -> Result<()> {
        let insert = sql("INSERT INTO removals (job_id, files, attempt, path) VALUES ($1, $2, $3, $4)
             ON CONFLICT (job_id, files, attempt, path) DO NOTHING");
        self.execute(bind_mark(insert, job, files)).await.map(drop)
    }
}

fn bind_mark(statement: Statement, job: &JobId, files: &RemovedFiles) -> Statement {
    let (attempt, path) = files.artifact().unwrap_or((AttemptNumber(0), ""));
    statement.bind(job.as_str()).bind(files.as_str()).bind(attempt.0).bind(path)
}
