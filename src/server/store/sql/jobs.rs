//! `jobs` and `idempotency_keys`.

use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::plan::urgency;
use app::domain::time::{Millis, Timestamp};
use async_trait::async_trait;

use super::rows::job::job as from_row;
use super::rows::{Named, to_json};
use super::statement::{Condition, Places, select, sql};
use super::{Row, Session, sound};
use crate::store::Result;
use crate::store::jobs::{JobFilter, Jobs, Order, Turn};
use crate::store::known::Change;

/// So far from its submit a job's id was made at most: before the change that it waited for, by another server's clock.
const SLACK: Millis = Millis::seconds(3_600);

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
        let (mut jobs, mut order) = (Vec::new(), filter.order.clone());
        // A page that is short is the last one; so what broken rows leave free goes to those after them.
        loop {
            let missing = filter.limit.saturating_sub(u32::try_from(jobs.len()).unwrap_or(u32::MAX));
            let rows = self.rows_of_jobs(filter, &order, missing).await?;
            let more = rows.len() == missing as usize;
            if let Some(last) = rows.last().map(|(turn, _)| turn.clone()) {
                order = match order {
                    Order::Newest(_) => Order::Newest(Some(last.id)),
                    Order::Next(_) => Order::Next(Some(last)),
                };
            }
            jobs.extend(rows.into_iter().filter_map(|(_, job)| sound(job)));
            if !more || jobs.len() == filter.limit as usize {
                return Ok(jobs);
            }
        }
    }

    async fn count_jobs(&mut self, filter: &JobFilter) -> Result<Vec<(String, u64)>> {
        let from = "SELECT state, count(*) AS number FROM jobs";
        let select = select(self.places(), from, self.conditions(filter), " GROUP BY state");
        let of = |row: &Row| Ok((row.get("state")?, row.get::<i64>("number")?.unsigned_abs()));
        self.all(select, of).await
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
    /// So many rows of jobs, in this order, whatever can be made of them.
    async fn rows_of_jobs(
        &mut self,
        filter: &JobFilter,
        order: &Order,
        limit: u32,
    ) -> Result<Vec<(Turn, Result<Job>)>> {
        let (after, end): (Option<Condition>, _) = match order {
            Order::Newest(before) => {
                let before = before.as_ref().map(|id| -> Condition { ("id < ?", vec![id.into()]) });
                (before, " ORDER BY id DESC LIMIT ?")
            }
            Order::Next(last) => {
                let after = last.as_ref().map(|Turn { urgency, submitted_at, id }| -> Condition {
                    let words = "(urgency < ? OR (urgency = ? AND (submitted_at, id) > (?, ?)))";
                    (words, vec![(*urgency).into(), (*urgency).into(), submitted_at.0.into(), id.into()])
                });
                (after, " ORDER BY urgency DESC, submitted_at, id LIMIT ?")
            }
        };
        let states = (!filter.states.is_empty()).then(|| self.among(&filter.states));
        let conditions = self.conditions(filter).into_iter().chain(states).chain(after).collect();
        let select = select(self.places(), "SELECT * FROM jobs", conditions, end).bind(limit);
        let of = |row: &Row| {
            let (urgency, submitted_at) = (row.get("urgency")?, Timestamp(row.get("submitted_at")?));
            Ok((Turn { urgency, submitted_at, id: row.get("id")? }, from_row(row)))
        };
        self.all(select, of).await
    }

    /// What is filtered, but for the states.
    fn conditions(&self, filter: &JobFilter) -> Vec<Condition> {
        let JobFilter { worker, since, until, ended_since, user, label, .. } = filter;
        // An id begins with about the moment of the submit, so that what is far from it is not looked at.
        let about = |at: Timestamp, slack: Millis| JobId::new(at + slack, [0; 10]).to_string();
        let worker = worker.as_ref().map(|worker| -> Condition {
            ("id IN (SELECT job_id FROM attempts WHERE worker_id = ?)", vec![worker.as_str().into()])
        });
        // Said as the index of ended jobs says it.
        let ended = "state IN ('completed', 'failed', 'cancelled') AND state_since >= ?";
        [
            user.as_ref().map(|user| -> Condition { ("submitted_by = ?", vec![user.into()]) }),
            label.as_ref().map(|(key, value)| self.labelled(key, value.as_ref())),
            worker,
            since.map(|at| ("submitted_at >= ? AND id >= ?", vec![at.0.into(), about(at, Millis(-SLACK.0)).into()])),
            until.map(|at| ("submitted_at < ? AND id < ?", vec![at.0.into(), about(at, SLACK).into()])),
            ended_since.map(|at| (ended, vec![at.0.into()])),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn labelled(&self, key: &String, value: Option<&String>) -> Condition {
        let words = match (self.places(), value.is_some()) {
            (Places::Bare, false) => "EXISTS (SELECT 1 FROM json_each(labels) AS l WHERE l.key = ?)",
            (Places::Bare, true) => "EXISTS (SELECT 1 FROM json_each(labels) AS l WHERE l.key = ? AND l.value = ?)",
            (Places::Numbered, false) => "EXISTS (SELECT 1 FROM json_each_text(labels::json) AS l WHERE l.key = ?)",
            (Places::Numbered, true) => {
                "EXISTS (SELECT 1 FROM json_each_text(labels::json) AS l WHERE l.key = ? AND l.value = ?)"
            }
        };
        (words, std::iter::once(key).chain(value).map(Into::into).collect())
    }

    fn among(&self, states: &[&'static str]) -> Condition {
        let words = match self.places() {
            Places::Bare => "state IN (SELECT value FROM json_each(?))",
            Places::Numbered => "state IN (SELECT json_array_elements_text(?::json))",
        };
        (words, vec![to_json(&states).into()])
    }
}
