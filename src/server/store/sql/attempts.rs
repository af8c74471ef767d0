//! `attempts` and `points`.

use app::domain::ids::{Attempt, JobId, WorkerId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::rows::{Named, to_json};
use super::statement::{Condition, select, sql};
use super::{Row, Session};
use crate::store::Result;
use crate::store::attempts::{AttemptEnd, AttemptPlace, Attempts, StoredAttempt, StoredPoint};

#[async_trait]
impl Attempts for Session<'_> {
    async fn attempts(&mut self, job: &JobId) -> Result<Vec<StoredAttempt>> {
        let select = sql("SELECT * FROM attempts WHERE job_id = $1 ORDER BY attempt").bind(job.as_str());
        self.all(select, from_row).await
    }

    async fn newest_attempts(&mut self, jobs: &[JobId]) -> Result<Vec<StoredAttempt>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let select = self.either(
            "SELECT attempts.* FROM attempts JOIN jobs ON jobs.id = attempts.job_id AND jobs.attempt = attempts.attempt
             WHERE job_id IN (SELECT value FROM json_each($1))",
            "SELECT attempts.* FROM attempts JOIN jobs ON jobs.id = attempts.job_id AND jobs.attempt = attempts.attempt
             WHERE job_id IN (SELECT json_array_elements_text($1::json))",
        );
        self.all(select.bind(to_json(&jobs)), from_row).await
    }

    async fn attempts_on(
        &mut self,
        worker: &WorkerId,
        behind: Option<&AttemptPlace>,
        limit: u32,
    ) -> Result<Vec<(StoredAttempt, String)>> {
        let of: Condition = ("attempts.worker_id = ?", vec![worker.as_str().into()]);
        let behind = behind.map(|place| -> Condition {
            let place = vec![place.offered_at.0.into(), place.job.as_str().into(), place.attempt.0.into()];
            ("(attempts.offered_at, attempts.job_id, attempts.attempt) < (?, ?, ?)", place)
        });
        let from = "SELECT attempts.*, jobs.config_name FROM attempts JOIN jobs ON jobs.id = attempts.job_id";
        let order = " ORDER BY attempts.offered_at DESC, attempts.job_id DESC, attempts.attempt DESC LIMIT ?";
        let conditions = [Some(of), behind].into_iter().flatten().collect();
        let select = select(self.places(), from, conditions, order).bind(limit);
        self.all(select, |row| Ok((from_row(row)?, row.get("config_name")?))).await
    }

    async fn outcomes_on(&mut self, worker: &WorkerId, since: Timestamp) -> Result<Vec<(Option<String>, u64)>> {
        let select = sql("SELECT outcome, count(*) AS number FROM attempts
             WHERE worker_id = $1 AND offered_at >= $2 GROUP BY outcome");
        let of = |row: &Row| Ok((row.get("outcome")?, row.get::<i64>("number")?.unsigned_abs()));
        self.all(select.bind(worker.as_str()).bind(since.0), of).await
    }

    async fn attempt_by_token(&mut self, digest: &str) -> Result<Option<(JobId, Attempt, WorkerId)>> {
        let select = sql("SELECT job_id, attempt, worker_id FROM attempts WHERE token_digest = $1").bind(digest);
        let ids = |row: &Row| {
            let row = Named::new(row, "attempts", "job_id")?;
            Ok((row.job_id("job_id")?, Attempt(row.number("attempt")?), row.worker_id("worker_id")?))
        };
        self.first(select).await?.as_ref().map(ids).transpose()
    }

    async fn insert_attempt(&mut self, attempt: &StoredAttempt, token_digest: &str) -> Result<()> {
        self.may_write()?;
        self.pending.insert_attempt(attempt, token_digest);
        Ok(())
    }

    async fn start_attempt(&mut self, job: &JobId, attempt: Attempt, at: Timestamp) -> Result<()> {
        self.may_write()?;
        self.pending.start_attempt(job, attempt, at);
        Ok(())
    }

    async fn end_attempt(&mut self, job: &JobId, attempt: Attempt, end: &AttemptEnd) -> Result<()> {
        self.may_write()?;
        self.pending.end_attempt(job, attempt, end.clone());
        Ok(())
    }

    async fn reopen_attempt(&mut self, job: &JobId, attempt: Attempt) -> Result<()> {
        self.may_write()?;
        self.pending.reopen_attempt(job, attempt);
        Ok(())
    }

    async fn note_resumed(&mut self, job: &JobId, attempt: Attempt, step: i64) -> Result<()> {
        let update = sql("UPDATE attempts SET resumed_from_step = $1 WHERE job_id = $2 AND attempt = $3");
        self.one(update.bind(step).bind(job.as_str()).bind(attempt.0)).await
    }

    async fn add_points(&mut self, job: &JobId, attempt: Attempt, points: &[StoredPoint]) -> Result<()> {
        for point in points {
            let put = sql("INSERT INTO points (job_id, attempt, step, point) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (job_id, attempt, step) DO UPDATE SET point = excluded.point");
            self.one(put.bind(job.as_str()).bind(attempt.0).bind(point.step).bind(&point.point)).await?;
        }
        let Some(newest) = points.last() else { return Ok(()) };
        let update = sql("UPDATE attempts SET progress = $1 WHERE job_id = $2 AND attempt = $3");
        self.one(update.bind(&newest.point).bind(job.as_str()).bind(attempt.0)).await
    }

    async fn points(&mut self, job: &JobId, attempt: Attempt, most: u32) -> Result<Vec<String>> {
        let select = sql("WITH numbered AS (
                 SELECT point, step, row_number() OVER (ORDER BY step) - 1 AS place, count(*) OVER () AS number
                 FROM points WHERE job_id = $1 AND attempt = $2)
             SELECT point FROM numbered
             WHERE place % ((number + $3 - 1) / $3) = 0 OR place = number - 1 ORDER BY step");
        self.all(select.bind(job.as_str()).bind(attempt.0).bind(most.max(1)), |row| row.get("point")).await
    }
}

fn from_row(row: &Row) -> Result<StoredAttempt> {
    let row = Named::new(row, "attempts", "job_id")?;
    Ok(StoredAttempt {
        job: row.job_id("job_id")?,
        attempt: Attempt(row.number("attempt")?),
        worker: row.worker_id("worker_id")?,
        worker_name: row.get("worker_name")?,
        gpus: row.number("gpus")?,
        offered_at: row.moment("offered_at")?,
        started_at: row.optional_moment("started_at")?,
        ended_at: row.optional_moment("ended_at")?,
        outcome: row.get("outcome")?,
        error: row.get("error")?,
        exit_code: row.optional_number("exit_code")?,
        resumed_from_step: row.optional_number("resumed_from_step")?,
        progress: row.get("progress")?,
    })
}
