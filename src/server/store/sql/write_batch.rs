//! Writes of a group that are not flushed yet.
//!
//! Jobs, attempts and audit entries are what nearly every use case writes. They are collected here and written with
//! many rows per statement: at the end of the group, or before the first statement that could read them. A statement
//! costs a round trip to another thread or host; another row in it costs next to nothing.
//!
//! A change is still guarded by the state it was based on: the guard becomes part of the row in the statement, and a
//! row that has changed fails the group, as it would have failed immediately.

use std::collections::BTreeMap;

use app::domain::causes::LossCode;
use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::Job;
use app::domain::time::Timestamp;

use super::SqlSession;
use super::rows::job::{Column, description_columns, immutable_columns, mutable_columns};
use super::shares::USAGE_COLUMNS;
use super::statement::{PlaceholderStyle, SqlValue, Statement, insert, update, upsert};
use crate::store::jobs::attempts::{AttemptEnd, StoredAttempt};
use crate::store::{Result, StoreError};

const ATTEMPT_COLUMNS: [&str; 7] =
    ["job_id", "attempt", "worker_id", "worker_name", "token_digest", "gpus", "offered_at"];
const PATCH_COLUMNS: [&str; 9] =
    ["job_id", "attempt", "started_at", "changes", "ended_at", "outcome", "error", "loss_code", "exit_code"];
const PATCH_ASSIGNMENTS: &str = "started_at = coalesce(attempts.started_at, v.started_at),
    ended_at = CASE v.changes WHEN 1 THEN v.ended_at ELSE attempts.ended_at END,
    outcome = CASE v.changes WHEN 1 THEN v.outcome ELSE attempts.outcome END,
    error = CASE v.changes WHEN 1 THEN v.error ELSE attempts.error END,
    loss_code = CASE v.changes WHEN 1 THEN v.loss_code ELSE attempts.loss_code END,
    exit_code = CASE v.changes WHEN 1 THEN v.exit_code ELSE attempts.exit_code END";
const AUDIT_COLUMNS: [&str; 10] =
    ["chain", "seq", "at", "actor", "action", "target", "detail", "request_id", "previous", "hash"];

#[derive(Default)]
pub struct WriteBatch {
    jobs: BTreeMap<JobId, PendingJob>,
    new_attempts: Vec<Vec<SqlValue>>,
    attempts: BTreeMap<(JobId, AttemptNumber), AttemptPatch>,
    audit: Vec<Vec<SqlValue>>,
    /// Rows of [`USAGE_COLUMNS`], by ID.
    share_usage: BTreeMap<String, Vec<SqlValue>>,
}

struct PendingJob {
    /// State and attempt in the row; `None` if it is new.
    guard: Option<(&'static str, AttemptNumber)>,
    job: Job,
}

/// A change of an existing attempt.
#[derive(Default)]
struct AttemptPatch {
    started_at: Option<Timestamp>,
    end: EndPatch,
}

/// The change of an attempt's end.
#[derive(Default)]
enum EndPatch {
    #[default]
    Unchanged,
    /// The attempt was recovered.
    Cleared,
    Ended(AttemptEnd),
}

impl WriteBatch {
    pub fn insert_job(&mut self, job: &Job) -> Result<()> {
        let pending = PendingJob { guard: None, job: job.clone() };
        if self.jobs.insert(job.id.clone(), pending).is_some() { Err(StoreError::Conflict) } else { Ok(()) }
    }

    /// A job's change, guarded by `before`.
    pub fn update_job(&mut self, before: &Job, after: &Job) -> Result<()> {
        let guard = (before.state.as_str(), before.attempt);
        if let Some(pending) = self.jobs.get_mut(&before.id) {
            if (pending.job.state.as_str(), pending.job.attempt) != guard {
                return Err(StoreError::Conflict);
            }
            pending.job = after.clone();
        } else {
            self.jobs.insert(before.id.clone(), PendingJob { guard: Some(guard), job: after.clone() });
        }
        Ok(())
    }

    pub fn insert_attempt(&mut self, attempt: &StoredAttempt, token_digest: &str) {
        self.new_attempts.push(vec![
            attempt.job.as_str().into(),
            attempt.attempt.0.into(),
            attempt.worker.as_str().into(),
            (&attempt.worker_name).into(),
            token_digest.into(),
            attempt.gpus.into(),
            attempt.offered_at.0.into(),
        ]);
    }

    /// An attempt was accepted; only the first time counts.
    pub fn start_attempt(&mut self, job: &JobId, attempt: AttemptNumber, at: Timestamp) {
        self.patch(job, attempt).started_at.get_or_insert(at);
    }

    /// An attempt has ended.
    pub fn end_attempt(&mut self, job: &JobId, attempt: AttemptNumber, end: AttemptEnd) {
        self.patch(job, attempt).end = EndPatch::Ended(end);
    }

    pub fn recover_attempt(&mut self, job: &JobId, attempt: AttemptNumber) {
        self.patch(job, attempt).end = EndPatch::Cleared;
    }

    /// An audit entry, as a row of [`AUDIT_COLUMNS`].
    pub fn push_audit(&mut self, row: [SqlValue; AUDIT_COLUMNS.len()]) {
        self.audit.push(row.into());
    }

    /// What a member of a team has used; the last value in a group is written.
    pub fn put_share_usage(&mut self, id: String, row: [SqlValue; USAGE_COLUMNS.len()]) {
        self.share_usage.insert(id, row.into());
    }

    fn patch(&mut self, job: &JobId, attempt: AttemptNumber) -> &mut AttemptPatch {
        self.attempts.entry((job.clone(), attempt)).or_default()
    }

    fn is_empty(&self) -> bool {
        let no_jobs = self.jobs.is_empty() && self.new_attempts.is_empty() && self.attempts.is_empty();
        no_jobs && self.audit.is_empty() && self.share_usage.is_empty()
    }

    /// The statements for all writes, each with the number of rows that it must write. An attempt needs its job.
    fn statements(self, placeholders: PlaceholderStyle) -> Vec<(Statement, u64)> {
        let patches = self.attempts.into_iter().map(|((job, attempt), patch)| patch.row(&job, attempt)).collect();
        let key = "attempts.job_id = v.job_id AND attempts.attempt = v.attempt";
        let mut statements = job_statements(placeholders, self.jobs.into_values());
        statements.extend(batched(placeholders, self.new_attempts, |rows| {
            insert(placeholders, "attempts", &ATTEMPT_COLUMNS, rows)
        }));
        statements.extend(batched(placeholders, patches, |rows| {
            update(placeholders, "attempts", &PATCH_COLUMNS, PATCH_ASSIGNMENTS, key, rows)
        }));
        statements
            .extend(batched(placeholders, self.audit, |rows| insert(placeholders, "audit", &AUDIT_COLUMNS, rows)));
        statements.extend(batched(placeholders, self.share_usage.into_values().collect(), |rows| {
            upsert(placeholders, "share_usage", &USAGE_COLUMNS, rows)
        }));
        statements
    }
}

fn job_statements(placeholders: PlaceholderStyle, jobs: impl Iterator<Item = PendingJob>) -> Vec<(Statement, u64)> {
    let (mut new, mut changed) = (JobRows::default(), JobRows::default());
    for PendingJob { guard, job } in jobs {
        let columns = mutable_columns(&job);
        match guard {
            None => {
                let description = description_columns(&job.description);
                new.push(immutable_columns(&job).into_iter().chain(description).chain(columns));
            }
            Some((state, attempt)) => {
                changed
                    .push(columns.into_iter().chain([("was_state", state.into()), ("was_attempt", attempt.0.into())]));
            }
        }
    }
    let mut statements = batched(placeholders, new.rows, |rows| insert(placeholders, "jobs", &new.columns, rows));
    let set = changed.columns.iter().filter(|column| !["id", "was_state", "was_attempt"].contains(column));
    let set: Vec<String> = set.map(|column| format!("{column} = v.{column}")).collect();
    let key = "jobs.id = v.id AND jobs.state = v.was_state AND jobs.attempt = v.was_attempt";
    statements.extend(batched(placeholders, changed.rows, |rows| {
        update(placeholders, "jobs", &changed.columns, &set.join(", "), key, rows)
    }));
    statements
}

/// Rows of jobs that have the same columns.
#[derive(Default)]
struct JobRows {
    columns: Vec<&'static str>,
    rows: Vec<Vec<SqlValue>>,
}

impl JobRows {
    fn push(&mut self, row: impl Iterator<Item = Column>) {
        let (columns, values) = row.unzip();
        self.columns = columns;
        self.rows.push(values);
    }
}

impl AttemptPatch {
    fn row(self, job: &JobId, attempt: AttemptNumber) -> Vec<SqlValue> {
        let (changes, end) = match self.end {
            EndPatch::Unchanged => (false, None),
            EndPatch::Cleared => (true, None),
            EndPatch::Ended(end) => (true, Some(end)),
        };
        let outcome = end.as_ref().map(|end| end.outcome);
        let (at, exit_code) = (end.as_ref().map(|end| end.at.0), end.as_ref().and_then(|end| end.exit_code));
        let loss_code = end.as_ref().and_then(|end| end.loss_code).map(LossCode::as_str);
        let error = end.and_then(|end| end.error);
        vec![
            job.as_str().into(),
            attempt.0.into(),
            self.started_at.map(|at| at.0).into(),
            changes.into(),
            at.into(),
            outcome.into(),
            error.into(),
            loss_code.into(),
            exit_code.into(),
        ]
    }
}

impl SqlSession<'_> {
    /// Flushes the batch.
    pub(super) async fn flush(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let placeholders = self.placeholder_style();
        for (statement, rows) in std::mem::take(&mut self.batch).statements(placeholders) {
            if self.execute_unflushed(statement).await? != rows {
                self.has_failed = true;
                return Err(StoreError::Conflict);
            }
        }
        Ok(())
    }
}

/// Splits rows into statements that the engine prepares once for many groups.
pub(super) fn batched(
    placeholders: PlaceholderStyle,
    mut rows: Vec<Vec<SqlValue>>,
    statement: impl Fn(Vec<Vec<SqlValue>>) -> Statement,
) -> Vec<(Statement, u64)> {
    let mut statements = Vec::new();
    while !rows.is_empty() {
        let size = placeholders.batch_size(rows.len());
        let rest = rows.split_off(size);
        statements.push((statement(rows), size as u64));
        rows = rest;
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_few_sizes() {
        let sizes = |placeholders: PlaceholderStyle, number: usize| -> Vec<u64> {
            let rows = (0..number).map(|_| vec![SqlValue::from(1_u8)]).collect();
            let statements = batched(placeholders, rows, |rows| insert(placeholders, "t", &["a"], rows));
            statements.into_iter().map(|(_, size)| size).collect()
        };
        assert_eq!(sizes(PlaceholderStyle::Anonymous, 0), Vec::<u64>::new());
        assert_eq!(sizes(PlaceholderStyle::Anonymous, 1), [1]);
        assert_eq!(sizes(PlaceholderStyle::Anonymous, 150), [64, 64, 16, 4, 2]);
        assert_eq!(sizes(PlaceholderStyle::Numbered, 150), [150]);
    }
}
