//! `attempts` and `points`.

use std::ops::RangeInclusive;

use app::domain::causes::LossCode;
use app::domain::ids::{AttemptNumber, JobId, WorkerId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;
use crate::store::jobs::attempts::{AttemptCursor, AttemptEnd, AttemptQueries, PointLimit, StoredAttempt, StoredPoint};
use crate::store::sql::rows::{NamedRow, to_json};
use crate::store::sql::statement::{SqlCondition, Statement, select, sql};
use crate::store::sql::{SqlRow, SqlSession};

#[async_trait]
impl AttemptQueries for SqlSession<'_> {
    async fn attempts(&mut self, job: &JobId) -> Result<Vec<StoredAttempt>> {
        let select = sql("SELECT * FROM attempts WHERE job_id = $1 ORDER BY attempt").bind(job.as_str());
        self.fetch_all(select, from_row).await
    }

    async fn newest_attempts(&mut self, jobs: &[JobId]) -> Result<Vec<StoredAttempt>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let select = self.for_engine(
            "SELECT attempts.* FROM attempts JOIN jobs ON jobs.id = attempts.job_id AND jobs.attempt = attempts.attempt
             WHERE job_id IN (SELECT value FROM json_each($1))",
            "SELECT attempts.* FROM attempts JOIN jobs ON jobs.id = attempts.job_id AND jobs.attempt = attempts.attempt
             WHERE job_id IN (SELECT json_array_elements_text($1::json))",
        );
        self.fetch_all(select.bind(to_json(&jobs)), from_row).await
    }

    async fn worker_attempts(
        &mut self,
        worker: &WorkerId,
        after: Option<&AttemptCursor>,
        limit: u32,
    ) -> Result<Vec<(StoredAttempt, String)>> {
        let by_worker: SqlCondition = ("attempts.worker_id = ?", vec![worker.as_str().into()]);
        let after_cursor = after.map(|cursor| -> SqlCondition {
            let values = vec![cursor.offered_at.0.into(), cursor.job.as_str().into(), cursor.attempt.0.into()];
            ("(attempts.offered_at, attempts.job_id, attempts.attempt) < (?, ?, ?)", values)
        });
        let from = "SELECT attempts.*, jobs.config_name FROM attempts JOIN jobs ON jobs.id = attempts.job_id";
        let order = " ORDER BY attempts.offered_at DESC, attempts.job_id DESC, attempts.attempt DESC LIMIT ?";
        let conditions = [Some(by_worker), after_cursor].into_iter().flatten().collect();
        let select = select(self.placeholder_style(), from, conditions, order).bind(limit);
        self.fetch_all(select, |row| Ok((from_row(row)?, row.get("config_name")?))).await
    }

    async fn worker_outcomes(&mut self, worker: &WorkerId, since: Timestamp) -> Result<Vec<(Option<String>, u64)>> {
        let select = sql("SELECT outcome, count(*) AS number FROM attempts
             WHERE worker_id = $1 AND offered_at >= $2 GROUP BY outcome");
        let outcome_count = |row: &SqlRow| Ok((row.get("outcome")?, row.get::<i64>("number")?.unsigned_abs()));
        self.fetch_all(select.bind(worker.as_str()).bind(since.0), outcome_count).await
    }

    async fn attempt_by_token(&mut self, digest: &str) -> Result<Option<(JobId, AttemptNumber, WorkerId)>> {
        let select = sql("SELECT job_id, attempt, worker_id FROM attempts WHERE token_digest = $1").bind(digest);
        let ids = |row: &SqlRow| {
            let row = NamedRow::new(row, "attempts", "job_id")?;
            Ok((row.job_id("job_id")?, AttemptNumber(row.number("attempt")?), row.worker_id("worker_id")?))
        };
        self.fetch_first(select).await?.as_ref().map(ids).transpose()
    }

    async fn insert_attempt(&mut self, attempt: &StoredAttempt, token_digest: &str) -> Result<()> {
        self.require_writer()?;
        self.batch.insert_attempt(attempt, token_digest);
        Ok(())
    }

    async fn start_attempt(&mut self, job: &JobId, attempt: AttemptNumber, at: Timestamp) -> Result<()> {
        self.require_writer()?;
        self.batch.start_attempt(job, attempt, at);
        Ok(())
    }

    async fn end_attempt(&mut self, job: &JobId, attempt: AttemptNumber, end: &AttemptEnd) -> Result<()> {
        self.require_writer()?;
        self.batch.end_attempt(job, attempt, end.clone());
        Ok(())
    }

    async fn recover_attempt(&mut self, job: &JobId, attempt: AttemptNumber) -> Result<()> {
        self.require_writer()?;
        self.batch.recover_attempt(job, attempt);
        Ok(())
    }

    async fn set_resumed_from(&mut self, job: &JobId, attempt: AttemptNumber, step: i64) -> Result<()> {
        let update = sql("UPDATE attempts SET resumed_from_step = $1 WHERE job_id = $2 AND attempt = $3");
        self.execute_one(update.bind(step).bind(job.as_str()).bind(attempt.0)).await
    }

    async fn set_error_line(&mut self, job: &JobId, attempt: AttemptNumber, line: i64) -> Result<()> {
        let update = sql("UPDATE attempts SET error_line = $1 WHERE job_id = $2 AND attempt = $3");
        self.execute_one(update.bind(line).bind(job.as_str()).bind(attempt.0)).await
    }

    async fn best_metrics(&mut self, job: &JobId, attempt: AttemptNumber) -> Result<Option<String>> {
        let select = sql("SELECT best_metrics FROM attempts WHERE job_id = $1 AND attempt = $2");
        let row = self.fetch_first(select.bind(job.as_str()).bind(attempt.0)).await?;
        row.map_or(Ok(None), |row| row.get("best_metrics"))
    }

    async fn set_best_metrics(&mut self, job: &JobId, attempt: AttemptNumber, best: &str) -> Result<()> {
        let update = sql("UPDATE attempts SET best_metrics = $1 WHERE job_id = $2 AND attempt = $3");
        self.execute_one(update.bind(best).bind(job.as_str()).bind(attempt.0)).await
    }

    async fn add_points(
        &mut self,
        job: &JobId,
        attempt: AttemptNumber,
        points: &[StoredPoint],
        limit: PointLimit,
    ) -> Result<()> {
        let Some(newest) = points.last() else { return Ok(()) };
        let mut stats = self.point_stats(job, attempt).await?;
        if let Some(tail) = stats.tail.take() {
            let drop = sql("DELETE FROM points WHERE job_id = $1 AND attempt = $2 AND step = $3");
            let dropped = self.execute(drop.bind(job.as_str()).bind(attempt.0).bind(tail)).await?;
            stats.number -= i64::try_from(dropped).unwrap_or(i64::MAX);
        }
        for point in points {
            let is_on_stride = stats.received % stats.stride == 0;
            stats.received += 1;
            let is_tail = !is_on_stride && std::ptr::eq(point, newest);
            if is_tail {
                stats.tail = Some(point.step);
            }
            if is_on_stride || is_tail {
                let put = sql("INSERT INTO points (job_id, attempt, step, point) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (job_id, attempt, step) DO UPDATE SET point = excluded.point");
                self.execute_one(put.bind(job.as_str()).bind(attempt.0).bind(point.step).bind(&point.point)).await?;
                stats.number += 1;
                stats.bytes += i64::try_from(point.point.len()).unwrap_or(i64::MAX);
            }
        }
        while stats.number > 2 && (exceeds(stats.number, limit.max_points) || exceeds(stats.bytes, limit.max_bytes)) {
            self.thin_points(job, attempt, &mut stats).await?;
        }
        let update = sql("UPDATE attempts SET progress = $1, points_seen = $2, points_kept = $3, points_bytes = $4,
                 points_every = $5, points_tail = $6 WHERE job_id = $7 AND attempt = $8");
        let update = update.bind(&newest.point).bind(stats.received).bind(stats.number).bind(stats.bytes);
        self.execute_one(update.bind(stats.stride).bind(stats.tail).bind(job.as_str()).bind(attempt.0)).await
    }

    async fn point_stride(&mut self, job: &JobId, attempt: AttemptNumber) -> Result<u64> {
        Ok(self.point_stats(job, attempt).await?.stride.unsigned_abs())
    }

    async fn points(
        &mut self,
        job: &JobId,
        attempt: AttemptNumber,
        steps: RangeInclusive<i64>,
        max: u32,
    ) -> Result<Vec<String>> {
        let of_steps =
            |select: Statement| select.bind(job.as_str()).bind(attempt.0).bind(*steps.start()).bind(*steps.end());
        let Some(row) = self.fetch_first(of_steps(sql(POINT_COUNT))).await? else { return Ok(Vec::new()) };
        let (number, newest): (i64, Option<i64>) = (row.get("number")?, row.get("newest")?);
        let max = i64::from(max.max(1));
        let stride = (number + max - 1) / max;
        let select = if stride <= 1 {
            of_steps(sql(ALL_POINTS)).bind(SEPARATOR)
        } else {
            let is_newest_kept = (number - 1) % stride == 0;
            let thinned = self.for_engine(THINNED_POINTS_OF_SQLITE, THINNED_POINTS_OF_POSTGRES);
            of_steps(thinned).bind(stride - 1).bind(newest.filter(|_| !is_newest_kept)).bind(SEPARATOR)
        };
        let points: Option<String> = self.fetch_first(select).await?.map_or(Ok(None), |row| row.get("points"))?;
        Ok(points.iter().flat_map(|points| points.split(SEPARATOR)).map(str::to_owned).collect())
    }
}

/// Separates points that are read as one text, because sqlx hands each row of SQLite from one thread to another. JSON
/// contains it only escaped.
const SEPARATOR: &str = "\n";
const POINT_COUNT: &str = "SELECT count(*) AS number, max(step) AS newest FROM points
     WHERE job_id = $1 AND attempt = $2 AND step BETWEEN $3 AND $4";
const ALL_POINTS: &str = "SELECT string_agg(point, $5 ORDER BY step) AS points FROM points
     WHERE job_id = $1 AND attempt = $2 AND step BETWEEN $3 AND $4";
/// The first point, each after `$5` others, and the one of step `$6`. To seek from one to the next is faster than to number
/// all of them on SQLite, and slower on PostgreSQL.
const THINNED_POINTS_OF_SQLITE: &str = "WITH RECURSIVE kept (step) AS (
         SELECT min(step) FROM points WHERE job_id = $1 AND attempt = $2 AND step BETWEEN $3 AND $4
         UNION ALL
         SELECT (SELECT points.step FROM points
                 WHERE job_id = $1 AND attempt = $2 AND points.step > kept.step AND points.step <= $4
                 ORDER BY points.step LIMIT 1 OFFSET $5)
         FROM kept WHERE kept.step IS NOT NULL)
     SELECT string_agg(point, $7 ORDER BY step) AS points
     FROM (SELECT step FROM kept UNION ALL SELECT $6) AS chosen JOIN points USING (step)
     WHERE job_id = $1 AND attempt = $2";
const THINNED_POINTS_OF_POSTGRES: &str = "SELECT string_agg(point, $7 ORDER BY step) AS points FROM (
         SELECT point, step, row_number() OVER (ORDER BY step) - 1 AS place
         FROM points WHERE job_id = $1 AND attempt = $2 AND step BETWEEN $3 AND $4) AS numbered
     WHERE place % ($5 + 1) = 0 OR step = $6";

/// What is known of an attempt's points without reading them. The numbers are upper limits: a point that is sent again
/// is counted again, until the points are thinned.
struct PointStats {
    received: i64,
    number: i64,
    bytes: i64,
    stride: i64,
    tail: Option<i64>,
}

impl SqlSession<'_> {
    async fn point_stats(&mut self, job: &JobId, attempt: AttemptNumber) -> Result<PointStats> {
        let select = sql("SELECT points_seen, points_kept, points_bytes, points_every, points_tail FROM attempts
             WHERE job_id = $1 AND attempt = $2");
        let row = self.fetch_first(select.bind(job.as_str()).bind(attempt.0)).await?;
        let Some(row) = row else { return Ok(PointStats { received: 0, number: 0, bytes: 0, stride: 1, tail: None }) };
        Ok(PointStats {
            received: row.get("points_seen")?,
            number: row.get("points_kept")?,
            bytes: row.get("points_bytes")?,
            stride: row.get::<i64>("points_every")?.max(1),
            tail: row.get("points_tail")?,
        })
    }

    /// Removes every second point, except the newest, and counts the rest.
    async fn thin_points(&mut self, job: &JobId, attempt: AttemptNumber, stats: &mut PointStats) -> Result<()> {
        let thin = sql("DELETE FROM points WHERE job_id = $1 AND attempt = $2 AND step IN (
                 SELECT step FROM (
                     SELECT step, row_number() OVER (ORDER BY step) - 1 AS place, count(*) OVER () AS number
                     FROM points WHERE job_id = $1 AND attempt = $2) AS numbered
                 WHERE place % 2 = 1 AND place < number - 1)");
        self.execute(thin.bind(job.as_str()).bind(attempt.0)).await?;
        let count = sql("SELECT count(*) AS number, CAST(coalesce(sum(octet_length(point)), 0) AS BIGINT) AS bytes
             FROM points WHERE job_id = $1 AND attempt = $2");
        if let Some(row) = self.fetch_first(count.bind(job.as_str()).bind(attempt.0)).await? {
            (stats.number, stats.bytes) = (row.get("number")?, row.get("bytes")?);
        }
        stats.stride = stats.stride.saturating_mul(2);
        Ok(())
    }
}

fn exceeds(number: i64, max: u64) -> bool {
    number.unsigned_abs() > max
}

fn from_row(row: &SqlRow) -> Result<StoredAttempt> {
    let row = NamedRow::new(row, "attempts", "job_id")?;
    Ok(StoredAttempt {
        job: row.job_id("job_id")?,
        attempt: AttemptNumber(row.number("attempt")?),
        worker: row.worker_id("worker_id")?,
        worker_name: row.get("worker_name")?,
        gpus: row.number("gpus")?,
        offered_at: row.timestamp("offered_at")?,
        started_at: row.optional_timestamp("started_at")?,
        ended_at: row.optional_timestamp("ended_at")?,
        outcome: row.get("outcome")?,
        error: row.get("error")?,
        loss_code: loss_code_from(&row)?,
        error_line: row.optional_number("error_line")?,
        exit_code: row.optional_number("exit_code")?,
        resumed_from_step: row.optional_number("resumed_from_step")?,
        progress: row.get("progress")?,
    })
}

fn loss_code_from(row: &NamedRow<'_>) -> Result<Option<LossCode>> {
    let name: Option<String> = row.get("loss_code")?;
    let code = |name: String| LossCode::parse(&name).ok_or_else(|| row.corrupt(format!("loss_code is {name:?}")));
    name.map(code).transpose()
}
