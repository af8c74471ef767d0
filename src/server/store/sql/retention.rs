//! `removals`, and what is given up of `jobs`.

use app::domain::ids::{Attempt, JobId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::rows::Named;
use super::statement::{Statement, sql};
use super::{Row, Session};
use crate::store::Result;
use crate::store::retention::{Files, Retention, What};

/// What speaks of the files that a job made.
const MADE: [&str; 2] = ["DELETE FROM checkpoints WHERE job_id = $1", "DELETE FROM artifacts WHERE job_id = $1"];
/// Marks what an attempt made below a directory, and forgets it.
const BELOW: [&str; 2] = [
    "INSERT INTO removals (job_id, files, attempt, path)
     SELECT job_id, 'artifact', attempt, path FROM artifacts
     WHERE job_id = $1 AND attempt = $2 AND substr(path, 1, length($3)) = $3
     ON CONFLICT (job_id, files, attempt, path) DO NOTHING",
    "DELETE FROM artifacts WHERE job_id = $1 AND attempt = $2 AND substr(path, 1, length($3)) = $3",
];
/// All else that belongs to a job, before the job itself.
const PARTS: [&str; 2] = ["DELETE FROM points WHERE job_id = $1", "DELETE FROM attempts WHERE job_id = $1"];

#[async_trait]
impl Retention for Session<'_> {
    async fn ended_before(&mut self, what: What, before: Timestamp, limit: u32) -> Result<Vec<JobId>> {
        let select = sql(match what {
            What::Logs => {
                "SELECT id FROM jobs WHERE state IN ('completed', 'failed', 'cancelled') AND state_since < $1
                 AND logs_removed = 0 ORDER BY state_since LIMIT $2"
            }
            What::Artifacts => {
                "SELECT id FROM jobs WHERE state IN ('completed', 'failed', 'cancelled') AND state_since < $1
                 AND artifacts_removed = 0 ORDER BY state_since LIMIT $2"
            }
            What::Job => {
                "SELECT id FROM jobs WHERE state IN ('completed', 'failed', 'cancelled') AND state_since < $1
                 ORDER BY state_since LIMIT $2"
            }
        });
        self.all(select.bind(before.0).bind(limit), |row| Named::new(row, "jobs", "id")?.job_id("id")).await
    }

    async fn give_up(&mut self, what: What, job: &JobId) -> Result<()> {
        self.may_write()?;
        match what {
            What::Logs => {
                self.one(sql("UPDATE jobs SET logs_removed = 1 WHERE id = $1").bind(job.as_str())).await?;
                self.mark(job, &Files::Logs).await
            }
            What::Artifacts => {
                for part in MADE {
                    self.run(sql(part).bind(job.as_str())).await?;
                }
                self.one(sql("UPDATE jobs SET artifacts_removed = 1 WHERE id = $1").bind(job.as_str())).await?;
                self.mark(job, &Files::Artifacts).await
            }
            What::Job => {
                for part in MADE.into_iter().chain(PARTS) {
                    self.run(sql(part).bind(job.as_str())).await?;
                }
                self.one(sql("DELETE FROM jobs WHERE id = $1").bind(job.as_str())).await?;
                self.mark(job, &Files::Logs).await?;
                self.mark(job, &Files::Artifacts).await
            }
        }
    }

    async fn give_up_file(&mut self, job: &JobId, attempt: Attempt, path: &str) -> Result<()> {
        self.may_write()?;
        let delete = sql("DELETE FROM artifacts WHERE job_id = $1 AND attempt = $2 AND path = $3");
        self.run(delete.bind(job.as_str()).bind(attempt.0).bind(path)).await?;
        self.mark(job, &Files::Artifact { attempt, path: path.to_owned() }).await
    }

    async fn give_up_checkpoint(&mut self, job: &JobId, attempt: Attempt, directory: &str) -> Result<()> {
        self.may_write()?;
        let forget = sql("DELETE FROM checkpoints WHERE job_id = $1 AND attempt = $2 AND name = $3");
        self.run(forget.bind(job.as_str()).bind(attempt.0).bind(directory)).await?;
        let below = format!("{directory}/");
        for part in BELOW {
            self.run(sql(part).bind(job.as_str()).bind(attempt.0).bind(below.as_str())).await?;
        }
        Ok(())
    }

    async fn marked(&mut self, limit: u32) -> Result<Vec<(JobId, Files)>> {
        let marked = |row: &Row| {
            let row = Named::new(row, "removals", "job_id")?;
            let word: String = row.get("files")?;
            let files = match word.as_str() {
                "logs" => Files::Logs,
                "artifacts" => Files::Artifacts,
                _ => Files::Artifact { attempt: Attempt(row.number("attempt")?), path: row.get("path")? },
            };
            Ok((row.job_id("job_id")?, files))
        };
        let select = sql("SELECT * FROM removals ORDER BY job_id, files, attempt, path LIMIT $1");
        self.all(select.bind(limit), marked).await
    }

    async fn is_marked(&mut self, job: &JobId, files: &Files) -> Result<bool> {
        let select = sql("SELECT job_id FROM removals WHERE job_id = $1 AND files = $2 AND attempt = $3 AND path = $4");
        Ok(self.first(of_mark(select, job, files)).await?.is_some())
    }

    async fn unmark(&mut self, job: &JobId, files: &Files) -> Result<()> {
        let delete = sql("DELETE FROM removals WHERE job_id = $1 AND files = $2 AND attempt = $3 AND path = $4");
        self.run(of_mark(delete, job, files)).await.map(drop)
    }

    async fn artifact_bytes(&mut self) -> Result<u64> {
        let sum = sql("SELECT CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes FROM artifacts");
        self.first(sum).await?.map_or(Ok(0), |row| row.get::<i64>("bytes")).map(i64::unsigned_abs)
    }

    async fn oldest_artifacts(&mut self, limit: u32) -> Result<Vec<(JobId, u64)>> {
        let select = sql("SELECT jobs.id AS id, CAST(sum(artifacts.size) AS BIGINT) AS bytes
             FROM jobs JOIN artifacts ON artifacts.job_id = jobs.id
             WHERE jobs.state IN ('completed', 'failed', 'cancelled')
             GROUP BY jobs.id, jobs.state_since ORDER BY jobs.state_since, jobs.id LIMIT $1");
        let of = |row: &Row| {
            let named = Named::new(row, "jobs", "id")?;
            Ok((named.job_id("id")?, row.get::<i64>("bytes")?.unsigned_abs()))
        };
        self.all(select.bind(limit), of).await
    }
}

impl Session<'_> {
    async fn mark(&mut self, job: &JobId, files: &Files) -> Result<()> {
        let insert = sql("INSERT INTO removals (job_id, files, attempt, path) VALUES ($1, $2, $3, $4)
             ON CONFLICT (job_id, files, attempt, path) DO NOTHING");
        self.run(of_mark(insert, job, files)).await.map(drop)
    }
}

fn of_mark(statement: Statement, job: &JobId, files: &Files) -> Statement {
    let (attempt, path) = files.one().unwrap_or((Attempt(0), ""));
    statement.bind(job.as_str()).bind(files.as_str()).bind(attempt.0).bind(path)
}
