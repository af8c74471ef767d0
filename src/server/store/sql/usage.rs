//! `attempts`, `jobs` and `audit`, for queries about usage.

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::usage::{AttemptUsage, JobWait, TimeWindow};
use async_trait::async_trait;

use super::rows::{NamedRow, to_json};
use super::statement::{SqlCondition, select, sql};
use super::{SqlRow, SqlSession};
use crate::store::Result;
use crate::store::sql::rows::job::ended_states;
use crate::store::usage::{FailingWorker, FailureStreakQuery, PresenceEvent, UsageQueries};

#[async_trait]
impl UsageQueries for SqlSession<'_> {
    async fn attempt_usage(&mut self, window: TimeWindow, user: Option<&str>) -> Result<Vec<AttemptUsage>> {
        let select = sql("SELECT attempts.job_id, attempts.worker_id, attempts.worker_name, attempts.gpus,
                 attempts.offered_at, attempts.started_at, attempts.ended_at,
                 jobs.submitted_by, jobs.config_name, jobs.labels
             FROM attempts JOIN jobs ON jobs.id = attempts.job_id
             WHERE attempts.offered_at < $1 AND (attempts.ended_at IS NULL OR attempts.ended_at > $2)
               AND ($3 IS NULL OR jobs.submitted_by = $3)");
        let run = |row: &SqlRow| {
            let row = NamedRow::new(row, "attempts", "job_id")?;
            Ok(AttemptUsage {
                job: row.job_id("job_id")?,
                user: row.get("submitted_by")?,
                config_name: row.get("config_name")?,
                labels: row.labels("labels")?,
                worker: row.worker_id("worker_id")?,
                worker_name: row.get("worker_name")?,
                gpus: row.number("gpus")?,
                offered_at: row.timestamp("offered_at")?,
                started_at: row.optional_timestamp("started_at")?,
                ended_at: row.optional_timestamp("ended_at")?,
            })
        };
        self.fetch_valid(select.bind(window.until.0).bind(window.since.0).bind(user), run).await
    }

    async fn job_waits(&mut self, window: TimeWindow, user: Option<&str>) -> Result<Vec<JobWait>> {
        let select = sql(concat!(
            "SELECT jobs.id, jobs.submitted_at, min(attempts.offered_at) AS offered,
                 min(attempts.started_at) AS started,
                 CASE WHEN jobs.state IN ",
            ended_states!(),
            " THEN jobs.state_since END AS ended
             FROM jobs LEFT JOIN attempts ON attempts.job_id = jobs.id
             WHERE jobs.submitted_at < $1 AND ($3 IS NULL OR jobs.submitted_by = $3)
             GROUP BY jobs.id, jobs.submitted_at, jobs.state, jobs.state_since
             HAVING coalesce(min(attempts.started_at),
                 CASE WHEN jobs.state IN ",
            ended_states!(),
            " THEN jobs.state_since END, $2) >= $2"
        ));
        let wait = |row: &SqlRow| {
            let row = NamedRow::new(row, "jobs", "id")?;
            Ok(JobWait {
                submitted_at: row.timestamp("submitted_at")?,
                offered_at: row.optional_timestamp("offered")?,
                started_at: row.optional_timestamp("started")?,
                ended_at: row.optional_timestamp("ended")?,
            })
        };
        self.fetch_valid(select.bind(window.until.0).bind(window.since.0).bind(user), wait).await
    }

    async fn ended_since(&mut self, since: Timestamp, user: Option<&str>) -> Result<Vec<(String, u64)>> {
        let select = sql(concat!(
            "SELECT state, count(*) AS number FROM jobs
             WHERE state IN ",
            ended_states!(),
            " AND state_since >= $1
               AND ($2 IS NULL OR submitted_by = $2)
             GROUP BY state"
        ));
        let state_count = |row: &SqlRow| Ok((row.get("state")?, row.get::<i64>("number")?.unsigned_abs()));
        self.fetch_all(select.bind(since.0).bind(user), state_count).await
    }

    async fn failing_workers(
        &mut self,
        streak: FailureStreakQuery,
        worker: Option<&WorkerId>,
    ) -> Result<Vec<FailingWorker>> {
        let recent: SqlCondition = ("ended_at >= ?", vec![streak.since.0.into()]);
        let by_worker = worker.map(|worker| -> SqlCondition { ("worker_id = ?", vec![worker.as_str().into()]) });
        let from = "SELECT worker_id, count(*) AS number, min(ended_at) AS since FROM attempts AS failed";
        let streak_condition = " AND outcome = 'failed' AND ended_at - coalesce(started_at, offered_at) < ?
               AND NOT EXISTS (SELECT 1 FROM attempts AS later
                   WHERE later.worker_id = failed.worker_id AND later.offered_at > failed.offered_at
                     AND (later.outcome = 'completed'
                          OR coalesce(later.ended_at, ?) - coalesce(later.started_at, ?) >= ?))
             GROUP BY worker_id HAVING count(*) >= ? ORDER BY since LIMIT 100";
        let select =
            select(self.placeholder_style(), from, by_worker.into_iter().chain([recent]).collect(), streak_condition);
        let select =
            select.bind(streak.quick_failure.0).bind(streak.now.0).bind(streak.now.0).bind(streak.quick_failure.0);
        let select = select.bind(i64::try_from(streak.min_failures).unwrap_or(i64::MAX));
        let failing = |row: &SqlRow| {
            let row = NamedRow::new(row, "attempts", "worker_id")?;
            Ok(FailingWorker {
                worker: row.worker_id("worker_id")?,
                attempts: row.get::<i64>("number")?.unsigned_abs(),
                since: row.timestamp("since")?,
            })
        };
        self.fetch_valid(select, failing).await
    }

    async fn presence_events(
        &mut self,
        actions: &[&'static str],
        chain: &str,
        after: i64,
        until: i64,
    ) -> Result<Vec<PresenceEvent>> {
        let select = self.for_engine(
            "SELECT at, target, action, detail FROM audit
             WHERE chain = $2 AND seq > $3 AND seq <= $4 AND action IN (SELECT value FROM json_each($1)) ORDER BY seq",
            "SELECT at, target, action, detail FROM audit
             WHERE chain = $2 AND seq > $3 AND seq <= $4 AND action IN (SELECT json_array_elements_text($1::json))
             ORDER BY seq",
        );
        let select = select.bind(to_json(&actions)).bind(chain).bind(after).bind(until);
        self.fetch_all(select, presence_event_from).await
    }

    async fn worker_presence_events(
        &mut self,
        worker: &WorkerId,
        actions: &[&'static str],
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<PresenceEvent>> {
        let select = self.for_engine(
            "WITH words AS (SELECT value AS word FROM json_each($2))
             SELECT at, target, action, detail FROM audit
             WHERE target = $1 AND action IN (SELECT word FROM words) AND at >= coalesce(
                 (SELECT at FROM audit WHERE target = $1 AND action IN (SELECT word FROM words) AND at < $3
                  ORDER BY at DESC LIMIT 1), $3)
             ORDER BY at DESC, chain DESC, seq DESC LIMIT $4",
            "WITH words AS (SELECT json_array_elements_text($2::json) AS word)
             SELECT at, target, action, detail FROM audit
             WHERE target = $1 AND action IN (SELECT word FROM words) AND at >= coalesce(
                 (SELECT at FROM audit WHERE target = $1 AND action IN (SELECT word FROM words) AND at < $3
                  ORDER BY at DESC LIMIT 1), $3)
             ORDER BY at DESC, chain DESC, seq DESC LIMIT $4",
        );
        let select = select.bind(worker.as_str()).bind(to_json(&actions)).bind(since.0).bind(limit);
        self.fetch_all(select, presence_event_from).await
    }
}

fn presence_event_from(row: &SqlRow) -> Result<PresenceEvent> {
    Ok(PresenceEvent {
        at: Timestamp(row.get("at")?),
        worker: row.get("target")?,
        action: row.get("action")?,
        detail: row.get("detail")?,
    })
}
