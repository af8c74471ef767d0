//! `jobs`.

use std::ops::DerefMut;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::rows::job::{job as from_row, state_columns};
use super::rows::to_json;
use super::session::Session;
use super::{exactly_one, failed};
use crate::store::Result;
use crate::store::jobs::{JobFilter, Jobs};

/// The states in which a lease is in force, as `Job::live_lease` has it.
const LEASED: &str = r#"["offered","starting","running","cancelling"]"#;

#[async_trait]
impl<C: DerefMut<Target = SqliteConnection> + Send> Jobs for Session<C> {
    async fn job(&mut self, id: &JobId) -> Result<Option<Job>> {
        let query = sqlx::query("SELECT * FROM jobs WHERE id = ?").bind(id.as_str());
        query.fetch_optional(self.db()).await.map_err(failed)?.as_ref().map(from_row).transpose()
    }

    async fn jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>> {
        let query = sqlx::query(
            "SELECT * FROM jobs
             WHERE (?1 = '[]' OR state IN (SELECT value FROM json_each(?1))) AND (?2 IS NULL OR id < ?2)
             ORDER BY id DESC LIMIT ?3",
        );
        let rows = query
            .bind(to_json(&filter.states))
            .bind(filter.before.as_ref().map(JobId::as_str))
            .bind(filter.limit)
            .fetch_all(self.db())
            .await
            .map_err(failed)?;
        Ok(whole(&rows))
    }

    async fn count_jobs(&mut self) -> Result<Vec<(String, u64)>> {
        let query = sqlx::query("SELECT state, count(*) AS number FROM jobs GROUP BY state");
        let rows = query.fetch_all(self.db()).await.map_err(failed)?;
        let count = |row: &SqliteRow| {
            let number: i64 = row.try_get("number").map_err(failed)?;
            Ok((row.try_get("state").map_err(failed)?, number.unsigned_abs()))
        };
        rows.iter().map(count).collect()
    }

    async fn waiting_jobs(&mut self) -> Result<Vec<Job>> {
        let query = sqlx::query("SELECT * FROM jobs WHERE state = 'queued' ORDER BY submitted_at, id");
        Ok(whole(&query.fetch_all(self.db()).await.map_err(failed)?))
    }

    async fn leased_jobs(&mut self, worker: Option<&WorkerId>) -> Result<Vec<Job>> {
        let query = sqlx::query(
            "SELECT * FROM jobs
             WHERE state IN (SELECT value FROM json_each(?1)) AND (?2 IS NULL OR worker_id = ?2)
             ORDER BY submitted_at, id",
        );
        let query = query.bind(LEASED).bind(worker.map(WorkerId::as_str));
        Ok(whole(&query.fetch_all(self.db()).await.map_err(failed)?))
    }

    async fn insert_job(&mut self, job: &Job) -> Result<()> {
        let state = state_columns(job);
        let query = sqlx::query(
            "INSERT INTO jobs (id, config_name, config_revision, target, labels, gpu_count, min_vram_gb, accelerator,
                    num_processes, max_retries, retry_on_failure, submitted_at, submitted_by, attempt, losses,
                    state, state_since)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        );
        let (spec, demand) = (&job.spec, &job.spec.demand);
        query
            .bind(job.id.as_str())
            .bind(&spec.config_name)
            .bind(spec.config_revision)
            .bind(spec.target.as_str())
            .bind(to_json(&demand.labels))
            .bind(demand.gpu_count)
            .bind(demand.min_vram_gb)
            .bind(&demand.accelerator)
            .bind(spec.num_processes)
            .bind(spec.max_retries)
            .bind(spec.retry_on_failure)
            .bind(job.submitted_at.0)
            .bind(&job.submitted_by)
            .bind(job.attempt.0)
            .bind(job.losses)
            .bind(state.word)
            .bind(state.since)
            .execute(self.db())
            .await
            .map_err(failed)
            .and_then(|result| exactly_one(&result))
    }

    async fn update_job(&mut self, before: &Job, after: &Job) -> Result<()> {
        let state = state_columns(after);
        let query = sqlx::query(
            "UPDATE jobs SET attempt = ?, losses = ?, state = ?, state_since = ?, worker_id = ?, gpus = ?,
                    offer_until = ?, not_before = ?, failure = ?
             WHERE id = ? AND state = ? AND attempt = ?",
        );
        query
            .bind(after.attempt.0)
            .bind(after.losses)
            .bind(state.word)
            .bind(state.since)
            .bind(state.worker_id)
            .bind(state.gpus)
            .bind(state.offer_until)
            .bind(state.not_before)
            .bind(state.failure)
            .bind(before.id.as_str())
            .bind(before.state.as_str())
            .bind(before.attempt.0)
            .execute(self.db())
            .await
            .map_err(failed)
            .and_then(|result| exactly_one(&result))
    }
}

/// One broken row must not hide the others.
fn whole(rows: &[SqliteRow]) -> Vec<Job> {
    let whole = |row: &_| from_row(row).inspect_err(|error| tracing::error!(%error, "a job is left out")).ok();
    rows.iter().filter_map(whole).collect()
}
