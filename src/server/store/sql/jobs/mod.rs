//! `jobs` and `idempotency_keys`.

pub(super) mod attempts;
mod index;
pub(super) mod retention;
mod sample_votes;
mod saved_views;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::rows::job::{description_columns, job_from as from_row, stars_text};
use super::rows::{NamedRow, to_json};
use super::statement::{SqlCondition, select, sql};
use super::{SqlRow, SqlSession};
use crate::store::Result;
use crate::store::cache::state::StateChange;
use crate::store::jobs::{IndexRow, IndexRows, JobQueries};
use crate::store::sql::rows::job::leased_states;

#[async_trait]
impl JobQueries for SqlSession<'_> {
    async fn job(&mut self, id: &JobId) -> Result<Option<Job>> {
        if let Some(Some(job)) = self.try_read_state(|fleet_state| fleet_state.job(id).map(|job| Job::clone(job))) {
            return Ok(Some(job));
        }
        let select = sql("SELECT * FROM jobs WHERE id = $1").bind(id.as_str());
        self.fetch_first(select).await?.as_ref().map(from_row).transpose()
    }

    async fn jobs_by_id(&mut self, ids: &[JobId]) -> Result<Vec<Job>> {
        let select = self.for_engine(
            "SELECT * FROM jobs WHERE id IN (SELECT value FROM json_each($1))",
            "SELECT * FROM jobs WHERE id IN (SELECT json_array_elements_text($1::json))",
        );
        let found = self.fetch_valid(select.bind(to_json(&ids)), from_row).await?;
        let mut jobs: HashMap<JobId, Job> = found.into_iter().map(|job| (job.id.clone(), job)).collect();
        Ok(ids.iter().filter_map(|id| jobs.remove(id)).collect())
    }

    async fn jobs_that_retry(&mut self, origins: &[JobId], limit: usize) -> Result<Vec<Job>> {
        let select = self.for_engine(
            "SELECT * FROM jobs WHERE retry_of IN (SELECT value FROM json_each($1)) ORDER BY id LIMIT $2",
            "SELECT * FROM jobs WHERE retry_of IN (SELECT json_array_elements_text($1::json)) ORDER BY id LIMIT $2",
        );
        self.fetch_valid(select.bind(to_json(&origins)).bind(i64::try_from(limit).unwrap_or(i64::MAX)), from_row).await
    }

    async fn last_completed_job(&mut self, config: &str, owner: Option<&str>) -> Result<Option<JobId>> {
        let of_config: SqlCondition = ("config_name = ? AND state = 'completed'", vec![config.into()]);
        let of_owner = owner.map(|owner| -> SqlCondition { ("submitted_by = ?", vec![owner.into()]) });
        let conditions = [Some(of_config), of_owner].into_iter().flatten().collect();
        let select = select(self.placeholder_style(), "SELECT id FROM jobs", conditions, " ORDER BY id DESC LIMIT 1");
        let row = self.fetch_first(select).await?;
        row.as_ref().map(|row| NamedRow::new(row, "jobs", "id")?.job_id("id")).transpose()
    }

    async fn index_rows(&mut self, ids: &BTreeSet<JobId>) -> Result<Vec<IndexRow>> {
        self.index_rows_by_id(ids).await
    }

    async fn index_rows_after(&mut self, id: &str, limit: u32) -> Result<IndexRows> {
        self.first_index_rows(id, limit).await
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
        let update = sql("UPDATE jobs SET job_name = $1, tags = $2, notes = $3 WHERE id = $4");
        let update = columns.into_iter().fold(update, |update, (_, value)| update.bind(value));
        self.execute_one(update.bind(job.id.as_str())).await?;
        self.record_change(StateChange::Job(Arc::new(job.clone())));
        Ok(())
    }

    async fn star_job(&mut self, job: &Job) -> Result<()> {
        self.require_writer()?;
        let update = sql("UPDATE jobs SET starred_by = $1 WHERE id = $2").bind(stars_text(job)).bind(job.id.as_str());
        self.execute_one(update).await?;
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
