//! `jobs` and `attempts`, as the index of jobs needs them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use app::domain::ids::{JobId, WorkerId};
use app::domain::job_search::index::IndexedJob;
use app::domain::job_status::JobStatus;
use app::domain::time::Timestamp;

use crate::store::Result;
use crate::store::jobs::{IndexRow, IndexRows};
use crate::store::sql::rows::job::overrides_from;
use crate::store::sql::rows::{NamedRow, to_json};
use crate::store::sql::statement::{Statement, sql};
use crate::store::sql::{SqlRow, SqlSession, valid_or_log};

/// `SELECT` of jobs: only the columns that the index has, because it reads all rows.
macro_rules! jobs {
    ($end:literal) => {
        concat!(
            "SELECT id, number, config_name, config_revision, job_name, tags, starred_by, submitted_by, state, state_since,
             submitted_at, priority, urgency, labels, gpu_count, overrides, attempt, vote_tally FROM jobs WHERE ",
            $end
        )
    };
}

macro_rules! attempts {
    ($condition:literal) => {
        concat!(
            "SELECT job_id, attempt, worker_id, worker_name, gpus, started_at, progress, best_metrics FROM attempts WHERE ",
            $condition,
            " ORDER BY job_id, attempt"
        )
    };
}

/// What is read of an attempt.
struct IndexAttempt {
    attempt: u32,
    worker: (WorkerId, String),
    gpus: u32,
    started_at: Option<Timestamp>,
    progress: Option<String>,
    best_metrics: Option<String>,
}

type AttemptsByJob = HashMap<JobId, Vec<IndexAttempt>>;

impl SqlSession<'_> {
    pub(super) async fn index_rows_by_id(&mut self, ids: &BTreeSet<JobId>) -> Result<Vec<IndexRow>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids = to_json(ids);
        let attempts = self.for_engine(
            attempts!("job_id IN (SELECT value FROM json_each($1))"),
            attempts!("job_id IN (SELECT json_array_elements_text($1::json))"),
        );
        let mut attempts = self.attempts_by_job(attempts.bind(ids.clone())).await?;
        let select = self.for_engine(
            jobs!("id IN (SELECT value FROM json_each($1))"),
            jobs!("id IN (SELECT json_array_elements_text($1::json))"),
        );
        self.fetch_valid(select.bind(ids), |row| index_row(row, &mut attempts)).await
    }

    pub(super) async fn first_index_rows(&mut self, after: &str, limit: u32) -> Result<IndexRows> {
        let select = sql(jobs!("id > $1 ORDER BY id LIMIT $2")).bind(after).bind(limit);
        let last_of_full = |rows: &[SqlRow]| -> Result<Option<String>> {
            rows.last().filter(|_| rows.len() == limit as usize).map(|row| row.get("id")).transpose()
        };
        let mut rows = Vec::new();
        self.for_each_row(select, |row| rows.push(row)).await?;
        let last = last_of_full(&rows)?;
        let until = rows.last().map(|row| row.get::<String>("id")).transpose()?.unwrap_or_default();
        let attempts = sql(attempts!("job_id > $1 AND job_id <= $2")).bind(after).bind(until);
        let mut attempts = self.attempts_by_job(attempts).await?;
        let rows = rows.iter().filter_map(|row| valid_or_log(index_row(row, &mut attempts))).collect();
        Ok(IndexRows { rows, last })
    }

    async fn attempts_by_job(&mut self, select: Statement) -> Result<AttemptsByJob> {
        let attempt = |row: &SqlRow| {
            let row = NamedRow::new(row, "attempts", "job_id")?;
            let attempt = IndexAttempt {
                attempt: row.number("attempt")?,
                worker: (row.worker_id("worker_id")?, row.get("worker_name")?),
                gpus: row.number("gpus")?,
                started_at: row.optional_timestamp("started_at")?,
                progress: row.get("progress")?,
                best_metrics: row.get("best_metrics")?,
            };
            Ok((row.job_id("job_id")?, attempt))
        };
        let mut by_job = AttemptsByJob::new();
        for (job, attempt) in self.fetch_valid(select, attempt).await? {
            by_job.entry(job).or_default().push(attempt);
        }
        Ok(by_job)
    }
}

fn index_row(row: &SqlRow, attempts: &mut AttemptsByJob) -> Result<IndexRow> {
    let row = NamedRow::new(row, "jobs", "id")?;
    let id = row.job_id("id")?;
    let state: String = row.get("state")?;
    let status = JobStatus::parse(&state).ok_or_else(|| row.corrupt(format!("state is {state:?}")))?;
    let number: u32 = row.number("attempt")?;
    let attempts = attempts.remove(&id).unwrap_or_default();
    let newest = attempts.iter().find(|attempt| attempt.attempt == number);
    let since = row.timestamp("state_since")?;
    let job = IndexedJob {
        number: row.optional_number("number")?,
        config: row.get("config_name")?,
        revision: row.number("config_revision")?,
        name: row.get("job_name")?,
        tags: row.optional_json("tags")?.unwrap_or_default(),
        starred_by: row.optional_json("starred_by")?.unwrap_or_default(),
        user: row.get("submitted_by")?,
        status,
        submitted_at: row.timestamp("submitted_at")?,
        started_at: newest.and_then(|attempt| attempt.started_at),
        ended_at: status.is_terminal().then_some(since),
        priority: row.number("priority")?,
        urgency: row.get("urgency")?,
        labels: row.labels("labels")?,
        gpus: newest.map_or(row.optional_number("gpu_count")?, |attempt| Some(attempt.gpus)),
        overrides: BTreeMap::new(),
        metrics: BTreeMap::new(),
        workers: Vec::new(),
        id,
    };
    let progress = newest.and_then(|attempt| attempt.progress.clone());
    let (workers, best) =
        attempts.into_iter().map(|attempt| (attempt.worker, attempt.best_metrics)).unzip::<_, _, Vec<_>, Vec<_>>();
    let best_metrics = best.into_iter().flatten().collect();
    Ok(IndexRow {
        job: IndexedJob { workers, ..job },
        overrides: overrides_from(&row)?,
        progress,
        vote_tally: row.get("vote_tally")?,
        best_metrics,
    })
}
