//! `attempts` and `points`.

use std::ops::DerefMut;

use app::domain::ids::{Attempt, JobId, WorkerId};
use app::domain::time::Timestamp;
use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::rows::{Named, to_json};
use super::session::Session;
use super::{exactly_one, failed};
use crate::store::Result;
use crate::store::attempts::{AttemptEnd, Attempts, StoredAttempt, StoredPoint};

#[async_trait]
impl<C: DerefMut<Target = SqliteConnection> + Send> Attempts for Session<C> {
    async fn attempts(&mut self, job: &JobId) -> Result<Vec<StoredAttempt>> {
        let query = sqlx::query("SELECT * FROM attempts WHERE job_id = ? ORDER BY attempt").bind(job.as_str());
        query.fetch_all(self.db()).await.map_err(failed)?.iter().map(from_row).collect()
    }

    async fn newest_attempts(&mut self, jobs: &[JobId]) -> Result<Vec<StoredAttempt>> {
        let query = sqlx::query(
            "SELECT attempts.* FROM attempts JOIN jobs ON jobs.id = attempts.job_id AND jobs.attempt = attempts.attempt
             WHERE job_id IN (SELECT value FROM json_each(?))",
        );
        let query = query.bind(to_json(&jobs));
        query.fetch_all(self.db()).await.map_err(failed)?.iter().map(from_row).collect()
    }

    async fn attempt_by_token(&mut self, digest: &str) -> Result<Option<(JobId, Attempt, WorkerId)>> {
        let query = sqlx::query("SELECT job_id, attempt, worker_id FROM attempts WHERE token_digest = ?").bind(digest);
        let row = query.fetch_optional(self.db()).await.map_err(failed)?;
        let ids = |row: &SqliteRow| {
            let row = Named::new(row, "attempts", "job_id")?;
            Ok((row.job_id("job_id")?, Attempt(row.number("attempt")?), row.worker_id("worker_id")?))
        };
        row.as_ref().map(ids).transpose()
    }

    async fn insert_attempt(&mut self, attempt: &StoredAttempt, token_digest: &str) -> Result<()> {
        let query = sqlx::query(
            "INSERT INTO attempts (job_id, attempt, worker_id, worker_name, token_digest, offered_at)
             VALUES (?, ?, ?, ?, ?, ?)",
        );
        query
            .bind(attempt.job.as_str())
            .bind(attempt.attempt.0)
            .bind(attempt.worker.as_str())
            .bind(&attempt.worker_name)
            .bind(token_digest)
            .bind(attempt.offered_at.0)
            .execute(self.db())
            .await
            .map_err(failed)
            .and_then(|result| exactly_one(&result))
    }

    async fn start_attempt(&mut self, job: &JobId, attempt: Attempt, at: Timestamp) -> Result<()> {
        let query =
            sqlx::query("UPDATE attempts SET started_at = coalesce(started_at, ?) WHERE job_id = ? AND attempt = ?");
        let query = query.bind(at.0).bind(job.as_str()).bind(attempt.0);
        query.execute(self.db()).await.map_err(failed).and_then(|result| exactly_one(&result))
    }

    async fn end_attempt(&mut self, job: &JobId, attempt: Attempt, end: &AttemptEnd) -> Result<()> {
        let query = sqlx::query(
            "UPDATE attempts SET ended_at = ?, outcome = ?, error = ?, exit_code = ? WHERE job_id = ? AND attempt = ?",
        );
        query
            .bind(end.at.0)
            .bind(end.outcome)
            .bind(&end.error)
            .bind(end.exit_code)
            .bind(job.as_str())
            .bind(attempt.0)
            .execute(self.db())
            .await
            .map_err(failed)
            .and_then(|result| exactly_one(&result))
    }

    async fn reopen_attempt(&mut self, job: &JobId, attempt: Attempt) -> Result<()> {
        let query = sqlx::query(
            "UPDATE attempts SET ended_at = NULL, outcome = NULL, error = NULL, exit_code = NULL
             WHERE job_id = ? AND attempt = ?",
        );
        let query = query.bind(job.as_str()).bind(attempt.0);
        query.execute(self.db()).await.map_err(failed).and_then(|result| exactly_one(&result))
    }

    async fn add_points(&mut self, job: &JobId, attempt: Attempt, points: &[StoredPoint]) -> Result<()> {
        for point in points {
            let query = sqlx::query(
                "INSERT INTO points (job_id, attempt, step, point) VALUES (?, ?, ?, ?)
                 ON CONFLICT DO UPDATE SET point = excluded.point",
            );
            let query = query.bind(job.as_str()).bind(attempt.0).bind(point.step).bind(&point.point);
            query.execute(self.db()).await.map_err(failed)?;
        }
        let Some(newest) = points.last() else { return Ok(()) };
        let query = sqlx::query("UPDATE attempts SET progress = ? WHERE job_id = ? AND attempt = ?");
        let query = query.bind(&newest.point).bind(job.as_str()).bind(attempt.0);
        query.execute(self.db()).await.map_err(failed).and_then(|result| exactly_one(&result))
    }

    async fn points(&mut self, job: &JobId, attempt: Attempt, most: u32) -> Result<Vec<String>> {
        let query = sqlx::query(
            "WITH numbered AS (
                 SELECT point, step, row_number() OVER (ORDER BY step) - 1 AS place, count(*) OVER () AS number
                 FROM points WHERE job_id = ? AND attempt = ?)
             SELECT point FROM numbered
             WHERE place % max(1, (number + ?3 - 1) / ?3) = 0 OR place = number - 1 ORDER BY step",
        );
        let query = query.bind(job.as_str()).bind(attempt.0).bind(most.max(1));
        let rows = query.fetch_all(self.db()).await.map_err(failed)?;
        rows.iter().map(|row| row.try_get("point").map_err(failed)).collect()
    }
}

fn from_row(row: &SqliteRow) -> Result<StoredAttempt> {
    let row = Named::new(row, "attempts", "job_id")?;
    let started_at: Option<i64> = row.get("started_at")?;
    let ended_at: Option<i64> = row.get("ended_at")?;
    Ok(StoredAttempt {
        job: row.job_id("job_id")?,
        attempt: Attempt(row.number("attempt")?),
        worker: row.worker_id("worker_id")?,
        worker_name: row.get("worker_name")?,
        offered_at: Timestamp(row.get("offered_at")?),
        started_at: started_at.map(Timestamp),
        ended_at: ended_at.map(Timestamp),
        outcome: row.get("outcome")?,
        error: row.get("error")?,
        exit_code: row.optional_number("exit_code")?,
        progress: row.get("progress")?,
    })
}
