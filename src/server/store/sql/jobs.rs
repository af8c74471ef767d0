//! `jobs` and `idempotency_keys`.

use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::plan::urgency;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::rows::job::job as from_row;
use super::rows::{Named, to_json};
use super::statement::{Statement, sql};
use super::{Row, Session, sound};
use crate::store::Result;
use crate::store::jobs::{JobFilter, Jobs};
use crate::store::known::Change;

#[async_trait]
impl Jobs for Session<'_> {
    async fn job(&mut self, id: &JobId) -> Result<Option<Job>> {
        if let Some(Some(job)) = self.glance(|known| known.job(id).map(|job| Job::clone(job))) {
            return Ok(Some(job));
        }
        let select = sql("SELECT * FROM jobs WHERE id = $1").bind(id.as_str());
        self.first(select).await?.as_ref().map(from_row).transpose()
    }

    async fn jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>> {
        let (mut jobs, mut before) = (Vec::new(), filter.before.as_ref().map(ToString::to_string));
        // A page that is short is the last one; so what broken rows leave free goes to those after them.
        loop {
            let missing = filter.limit.saturating_sub(u32::try_from(jobs.len()).unwrap_or(u32::MAX));
            let rows = self.rows_of_jobs(filter, before, missing).await?;
            let more = rows.len() == missing as usize;
            before = rows.last().map(|(id, _)| id.clone());
            jobs.extend(rows.into_iter().filter_map(|(_, job)| sound(job)));
            if !more || jobs.len() == filter.limit as usize {
                return Ok(jobs);
            }
        }
    }

    async fn count_jobs(&mut self, filter: &JobFilter) -> Result<Vec<(String, u64)>> {
        let select = self.either(
            "SELECT state, count(*) AS number FROM jobs
             WHERE ($1 IS NULL OR submitted_by = $1)
               AND ($2 IS NULL OR EXISTS (SELECT 1 FROM json_each(labels) AS l
                                          WHERE l.key = $2 AND ($3 IS NULL OR l.value = $3)))
             GROUP BY state",
            "SELECT state, count(*) AS number FROM jobs
             WHERE ($1 IS NULL OR submitted_by = $1)
               AND ($2 IS NULL OR EXISTS (SELECT 1 FROM json_each_text(labels::json) AS l
                                          WHERE l.key = $2 AND ($3 IS NULL OR l.value = $3)))
             GROUP BY state",
        );
        let of = |row: &Row| Ok((row.get("state")?, row.get::<i64>("number")?.unsigned_abs()));
        self.all(of_whom(select, filter), of).await
    }

    async fn place(&mut self, job: &Job) -> Result<u64> {
        if let Some(place) = self.glance(|known| known.place(job)) {
            return Ok(place);
        }
        let before = sql("SELECT count(*) AS number FROM jobs
             WHERE state = 'queued' AND (urgency > $1 OR (urgency = $1 AND (submitted_at, id) < ($2, $3)))");
        let row = self.first(before.bind(urgency(job)).bind(job.submitted_at.0).bind(job.id.as_str())).await?;
        Ok(row.map_or(Ok(0), |row| row.get::<i64>("number"))?.unsigned_abs() + 1)
    }

    // The states are those in which `Job::live_lease` has a lease.
    async fn leased_jobs(&mut self, worker: Option<&WorkerId>) -> Result<Vec<Job>> {
        let leased = self.glance(|known| known.leased(worker).into_iter().cloned().collect());
        if let Some(leased) = leased {
            return Ok(leased);
        }
        let select = sql("SELECT * FROM jobs
             WHERE state IN ('offered', 'starting', 'running', 'cancelling') AND ($1 IS NULL OR worker_id = $1)
             ORDER BY submitted_at, id");
        self.whole(select.bind(worker.map(WorkerId::as_str)), from_row).await
    }

    async fn insert_job(&mut self, job: &Job) -> Result<()> {
        self.may_write()?;
        self.pending.insert_job(job)?;
        self.note(Change::Job(Arc::new(job.clone())));
        Ok(())
    }

    async fn update_job(&mut self, before: &Job, after: &Job) -> Result<()> {
        self.may_write()?;
        self.pending.update_job(before, after)?;
        self.note(Change::Job(Arc::new(after.clone())));
        Ok(())
    }

    async fn idempotency_key(&mut self, actor: &str, key: &str) -> Result<Option<(JobId, String)>> {
        let select = sql("SELECT key, job_id, digest FROM idempotency_keys WHERE actor = $1 AND key = $2");
        let made = |row: &Row| {
            let row = Named::new(row, "idempotency_keys", "key")?;
            Ok((row.job_id("job_id")?, row.get("digest")?))
        };
        self.first(select.bind(actor).bind(key)).await?.as_ref().map(made).transpose()
    }

    async fn insert_idempotency_key(&mut self, actor: &str, key: &str, digest: &str, job: &Job) -> Result<()> {
        let insert =
            sql("INSERT INTO idempotency_keys (actor, key, digest, job_id, created_at) VALUES ($1, $2, $3, $4, $5)");
        self.one(insert.bind(actor).bind(key).bind(digest).bind(job.id.as_str()).bind(job.submitted_at.0)).await
    }

    async fn sweep_idempotency_keys(&mut self, before: Timestamp) -> Result<()> {
        self.run(sql("DELETE FROM idempotency_keys WHERE created_at < $1").bind(before.0)).await.map(drop)
    }
}

impl Session<'_> {
    /// So many rows of jobs, the newest before this one, whatever can be made of them.
    async fn rows_of_jobs(
        &mut self,
        filter: &JobFilter,
        before: Option<String>,
        limit: u32,
    ) -> Result<Vec<(String, Result<Job>)>> {
        let select = self.either(
            "SELECT * FROM jobs
             WHERE ($1 IS NULL OR submitted_by = $1)
               AND ($2 IS NULL OR EXISTS (SELECT 1 FROM json_each(labels) AS l
                                          WHERE l.key = $2 AND ($3 IS NULL OR l.value = $3)))
               AND ($4 = '[]' OR state IN (SELECT value FROM json_each($4))) AND ($5 IS NULL OR id < $5)
             ORDER BY id DESC LIMIT $6",
            "SELECT * FROM jobs
             WHERE ($1 IS NULL OR submitted_by = $1)
               AND ($2 IS NULL OR EXISTS (SELECT 1 FROM json_each_text(labels::json) AS l
                                          WHERE l.key = $2 AND ($3 IS NULL OR l.value = $3)))
               AND ($4 = '[]' OR state IN (SELECT json_array_elements_text($4::json))) AND ($5 IS NULL OR id < $5)
             ORDER BY id DESC LIMIT $6",
        );
        let select = of_whom(select, filter).bind(to_json(&filter.states));
        let of = |row: &Row| Ok((row.get("id")?, from_row(row)));
        self.all(select.bind(before).bind(limit), of).await
    }
}

/// The first three parameters of what is filtered.
fn of_whom(select: Statement, filter: &JobFilter) -> Statement {
    let (key, value) = filter.label.as_ref().map_or((None, None), |(key, value)| (Some(key), value.as_ref()));
    select.bind(filter.user.clone()).bind(key.cloned()).bind(value.cloned())
}
