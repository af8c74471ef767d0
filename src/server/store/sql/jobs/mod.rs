//! `jobs` and `idempotency_keys`.

pub(super) mod attempts;
pub(super) mod retention;

use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::plan::urgency;
use app::domain::time::{Millis, Timestamp};
use async_trait::async_trait;

use super::rows::job::{description_columns, equals, job_from as from_row};
use super::rows::{NamedRow, to_json};
use super::statement::{PlaceholderStyle, SqlCondition, select, sql};
use super::{SqlRow, SqlSession, valid_or_log};
use crate::store::Result;
use crate::store::cache::state::StateChange;
use crate::store::jobs::{JobFilter, JobListOrder, JobNameFilter, JobQueries, QueueCursor};
use crate::store::sql::rows::job::{ended_states, leased_states};

/// The maximum difference between a job's id and its submit: ids are created before the transaction, by the clock of
/// any server.
const MAX_ID_SKEW: Millis = Millis::from_secs(3_600);

#[async_trait]
impl JobQueries for SqlSession<'_> {
    async fn job(&mut self, id: &JobId) -> Result<Option<Job>> {
        if let Some(Some(job)) = self.try_read_state(|fleet_state| fleet_state.job(id).map(|job| Job::clone(job))) {
            return Ok(Some(job));
        }
        let select = sql("SELECT * FROM jobs WHERE id = $1").bind(id.as_str());
        self.fetch_first(select).await?.as_ref().map(from_row).transpose()
    }

    async fn jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>> {
        let (mut jobs, mut order) = (Vec::new(), filter.order.clone());
        // A short page would be the last one; so corrupt rows are replaced by those after them.
        loop {
            let missing = filter.limit.saturating_sub(u32::try_from(jobs.len()).unwrap_or(u32::MAX));
            let rows = self.job_rows(filter, &order, missing).await?;
            let has_more = rows.len() == missing as usize;
            if let Some(last) = rows.last().map(|(cursor, _)| cursor.clone()) {
                order = match order {
                    JobListOrder::Newest(_) => JobListOrder::Newest(Some(last.id)),
                    JobListOrder::QueueOrder(_) => JobListOrder::QueueOrder(Some(last)),
                };
            }
            jobs.extend(rows.into_iter().filter_map(|(_, job)| valid_or_log(job)));
            if !has_more || jobs.len() == filter.limit as usize {
                return Ok(jobs);
            }
        }
    }

    async fn count_jobs(&mut self, filter: &JobFilter) -> Result<Vec<(String, u64)>> {
        let from = "SELECT state, count(*) AS number FROM jobs";
        let select = select(self.placeholder_style(), from, self.job_conditions(filter), " GROUP BY state");
        let state_count = |row: &SqlRow| Ok((row.get("state")?, row.get::<i64>("number")?.unsigned_abs()));
        self.fetch_all(select, state_count).await
    }

    async fn queue_position(&mut self, job: &Job) -> Result<u64> {
        if let Some(position) = self.try_read_state(|fleet_state| fleet_state.queue_position(job)) {
            return Ok(position);
        }
        let before = sql("SELECT count(*) AS number FROM jobs
             WHERE state = 'queued' AND (urgency > $1 OR (urgency = $1 AND (submitted_at, id) < ($2, $3)))");
        let row = self.fetch_first(before.bind(urgency(job)).bind(job.submitted_at.0).bind(job.id.as_str())).await?;
        Ok(row.map_or(Ok(0), |row| row.get::<i64>("number"))?.unsigned_abs() + 1)
    }

    async fn leased_jobs(&mut self, worker: Option<&WorkerId>) -> Result<Vec<Job>> {
        let leased = self.try_read_state(|fleet_state| fleet_state.leased_jobs(worker).into_iter().cloned().collect());
        if let Some(leased) = leased {
            return Ok(leased);
        }
        let select = sql(concat!(
            "SELECT * FROM jobs WHERE state IN ",
            leased_states!(),
            " AND ($1 IS NULL OR worker_id = $1) ORDER BY submitted_at, id"
        ));
        self.fetch_valid(select.bind(worker.map(WorkerId::as_str)), from_row).await
    }

    async fn insert_job(&mut self, job: &Job) -> Result<()> {
        self.require_writer()?;
        self.batch.insert_job(job)?;
        if let (Some(number), Some(cache)) = (job.number, &mut self.cache) {
            cache.record_job_number(&job.spec.config_name, number);
        }
        self.record_change(StateChange::Job(Arc::new(job.clone())));
        Ok(())
    }

    async fn last_job_number(&mut self, config: &str) -> Result<u32> {
        if let Some(number) = self.cache.as_ref().and_then(|cache| cache.last_job_number(config)) {
            return Ok(number);
        }
        let select = sql("SELECT max(number) AS number FROM (
                 SELECT max(number) AS number FROM jobs WHERE config_name = $1
                 UNION ALL SELECT number FROM removed_job_numbers WHERE config_name = $1
             ) AS numbers");
        let row = self.fetch_first(select.bind(config)).await?;
        let number = row.map_or(Ok(None), |row| row.get::<Option<i64>>("number"))?;
        Ok(number.and_then(|number| u32::try_from(number).ok()).unwrap_or_default())
    }

    async fn describe_job(&mut self, job: &Job) -> Result<()> {
        self.require_writer()?;
        let columns = description_columns(&job.description);
        let update = sql("UPDATE jobs SET job_name = $1, job_name_key = $2, tags = $3, notes = $4 WHERE id = $5");
        let update = columns.into_iter().fold(update, |update, (_, value)| update.bind(value));
        self.execute_one(update.bind(job.id.as_str())).await?;
        self.execute(sql("DELETE FROM job_tags WHERE job_id = $1").bind(job.id.as_str())).await?;
        self.batch.push_tags(job);
        self.record_change(StateChange::Job(Arc::new(job.clone())));
        Ok(())
    }

    async fn update_job(&mut self, before: &Job, after: &Job) -> Result<()> {
        self.require_writer()?;
        self.batch.update_job(before, after)?;
        self.record_change(StateChange::Job(Arc::new(after.clone())));
        Ok(())
    }

    async fn idempotency_key(&mut self, actor: &str, key: &str) -> Result<Option<(JobId, String)>> {
        let select = sql("SELECT key, job_id, digest FROM idempotency_keys WHERE actor = $1 AND key = $2");
        let job_and_digest = |row: &SqlRow| {
            let row = NamedRow::new(row, "idempotency_keys", "key")?;
            Ok((row.job_id("job_id")?, row.get("digest")?))
        };
        self.fetch_first(select.bind(actor).bind(key)).await?.as_ref().map(job_and_digest).transpose()
    }

    async fn insert_idempotency_key(&mut self, actor: &str, key: &str, digest: &str, job: &Job) -> Result<()> {
        let insert =
            sql("INSERT INTO idempotency_keys (actor, key, digest, job_id, created_at) VALUES ($1, $2, $3, $4, $5)");
        self.execute_one(insert.bind(actor).bind(key).bind(digest).bind(job.id.as_str()).bind(job.submitted_at.0)).await
    }

    async fn sweep_idempotency_keys(&mut self, before: Timestamp) -> Result<()> {
        self.execute(sql("DELETE FROM idempotency_keys WHERE created_at < $1").bind(before.0)).await.map(drop)
    }
}

impl SqlSession<'_> {
    /// Rows of jobs in this order, valid or not.
    async fn job_rows(
        &mut self,
        filter: &JobFilter,
        order: &JobListOrder,
        limit: u32,
    ) -> Result<Vec<(QueueCursor, Result<Job>)>> {
        let (after, end): (Option<SqlCondition>, _) = match order {
            JobListOrder::Newest(before) => {
                let before = before.as_ref().map(|id| -> SqlCondition { ("id < ?", vec![id.into()]) });
                (before, " ORDER BY id DESC LIMIT ?")
            }
            JobListOrder::QueueOrder(last) => {
                let after = last.as_ref().map(|QueueCursor { urgency, submitted_at, id }| -> SqlCondition {
                    let text = "(urgency < ? OR (urgency = ? AND (submitted_at, id) > (?, ?)))";
                    (text, vec![(*urgency).into(), (*urgency).into(), submitted_at.0.into(), id.into()])
                });
                (after, " ORDER BY urgency DESC, submitted_at, id LIMIT ?")
            }
        };
        let states = (!filter.states.is_empty()).then(|| self.state_condition(&filter.states));
        let conditions = self.job_conditions(filter).into_iter().chain(states).chain(after).collect();
        let select = select(self.placeholder_style(), "SELECT * FROM jobs", conditions, end).bind(limit);
        let cursor_and_job = |row: &SqlRow| {
            let (urgency, submitted_at) = (row.get("urgency")?, Timestamp(row.get("submitted_at")?));
            Ok((QueueCursor { urgency, submitted_at, id: row.get("id")? }, from_row(row)))
        };
        self.fetch_all(select, cursor_and_job).await
    }

    /// The conditions of the filter, without states.
    fn job_conditions(&self, filter: &JobFilter) -> Vec<SqlCondition> {
        let JobFilter {
            states: _,
            worker,
            since,
            until,
            ended_since,
            properties,
            label,
            tag,
            name,
            order: _,
            limit: _,
        } = filter;
        // An id begins with about the time of the submit, so that distant ids need not be read.
        let id_near = |at: Timestamp, slack: Millis| JobId::new(at + slack, [0; 10]).to_string();
        let worker = worker.as_ref().map(|worker| -> SqlCondition {
            ("id IN (SELECT job_id FROM attempts WHERE worker_id = ?)", vec![worker.as_str().into()])
        });
        // Written like the condition of the index of ended jobs.
        let ended = concat!("state IN ", ended_states!(), " AND state_since >= ?");
        let properties =
            properties.iter().map(|(property, value)| -> SqlCondition { (equals(*property), vec![value.into()]) });
        let others = [
            name.as_ref().map(Self::name_condition),
            label.as_ref().map(|(key, value)| self.label_condition(key, value.as_ref())),
            tag.as_ref().map(|tag| ("id IN (SELECT job_id FROM job_tags WHERE tag = ?)", vec![tag.into()])),
            worker,
            since.map(|at| {
                ("submitted_at >= ? AND id >= ?", vec![at.0.into(), id_near(at, Millis(-MAX_ID_SKEW.0)).into()])
            }),
            until.map(|at| ("submitted_at < ? AND id < ?", vec![at.0.into(), id_near(at, MAX_ID_SKEW).into()])),
            ended_since.map(|at| (ended, vec![at.0.into()])),
        ];
        properties.chain(others.into_iter().flatten()).collect()
    }

    /// A part of a configuration's or a job's name, in SQL of both engines, or the beginning of an id. Jobs have few
    /// different configurations: the index leads from each to the next. Names of jobs are read from their index.
    fn name_condition(filter: &JobNameFilter) -> SqlCondition {
        match filter {
            // `~` sorts after every character of an id.
            JobNameFilter::Id(begin) => ("id >= ? AND id < ?", vec![begin.into(), format!("{begin}~").into()]),
            JobNameFilter::Part(part) => (
                "(config_name IN (WITH RECURSIVE names (name) AS (
                     SELECT min(config_name) FROM jobs UNION ALL
                     SELECT (SELECT min(config_name) FROM jobs WHERE config_name > name) FROM names WHERE name IS NOT NULL)
                 SELECT name FROM names WHERE replace(lower(name), ?, '') <> lower(name))
                 OR id IN (SELECT id FROM jobs WHERE job_name_key IS NOT NULL AND replace(job_name_key, ?, '') <> job_name_key))",
                vec![part.into(), part.into()],
            ),
        }
    }

    fn label_condition(&self, key: &String, value: Option<&String>) -> SqlCondition {
        let text = match (self.placeholder_style(), value.is_some()) {
            (PlaceholderStyle::Anonymous, false) => "EXISTS (SELECT 1 FROM json_each(labels) AS l WHERE l.key = ?)",
            (PlaceholderStyle::Anonymous, true) => {
                "EXISTS (SELECT 1 FROM json_each(labels) AS l WHERE l.key = ? AND l.value = ?)"
            }
            (PlaceholderStyle::Numbered, false) => {
                "EXISTS (SELECT 1 FROM json_each_text(labels::json) AS l WHERE l.key = ?)"
            }
            (PlaceholderStyle::Numbered, true) => {
                "EXISTS (SELECT 1 FROM json_each_text(labels::json) AS l WHERE l.key = ? AND l.value = ?)"
            }
        };
        (text, std::iter::once(key).chain(value).map(Into::into).collect())
    }

    fn state_condition(&self, states: &[&'static str]) -> SqlCondition {
        let text = match self.placeholder_style() {
            PlaceholderStyle::Anonymous => "state IN (SELECT value FROM json_each(?))",
            PlaceholderStyle::Numbered => "state IN (SELECT json_array_elements_text(?::json))",
        };
        (text, vec![to_json(&states).into()])
    }
}
