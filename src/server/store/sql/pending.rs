//! What a group has decided and not written yet.
//!
//! Jobs, attempts and audit entries are what nearly every use case writes. They are kept here and written many rows to
//! a statement: at the end of the group, or before the first statement that could look for them. A statement is a
//! journey to another thread, or to another host; a row in it costs next to nothing.
//!
//! A change is still guarded by what it saw: the guard goes with its row into the statement, and a row that is not as
//! it was taken to be fails the group, as it would have failed at once.

use std::collections::BTreeMap;

use app::domain::ids::{Attempt, JobId};
use app::domain::job::Job;
use app::domain::time::Timestamp;

use super::Session;
use super::rows::job::{CHANGED, PINNED, changed_values, pinned_values};
use super::statement::{Places, Statement, Value, insert, update};
use crate::store::attempts::{AttemptEnd, StoredAttempt};
use crate::store::{Result, StoreError};

/// The most rows in one statement. Statements come in sizes of powers of two, so that few are prepared.
const MOST_ROWS: usize = 64;

const ATTEMPT: [&str; 7] = ["job_id", "attempt", "worker_id", "worker_name", "token_digest", "gpus", "offered_at"];
const PATCH: [&str; 8] = ["job_id", "attempt", "started_at", "changes", "ended_at", "outcome", "error", "exit_code"];
const PATCHED: &str = "started_at = coalesce(attempts.started_at, v.started_at),
    ended_at = CASE v.changes WHEN 1 THEN v.ended_at ELSE attempts.ended_at END,
    outcome = CASE v.changes WHEN 1 THEN v.outcome ELSE attempts.outcome END,
    error = CASE v.changes WHEN 1 THEN v.error ELSE attempts.error END,
    exit_code = CASE v.changes WHEN 1 THEN v.exit_code ELSE attempts.exit_code END";
const AUDIT: [&str; 10] =
    ["chain", "seq", "at", "actor", "action", "target", "detail", "request_id", "previous", "hash"];

/// See the module.
#[derive(Default)]
pub struct Pending {
    jobs: BTreeMap<JobId, PendingJob>,
    new_attempts: Vec<Vec<Value>>,
    attempts: BTreeMap<(JobId, Attempt), Patch>,
    audit: Vec<Vec<Value>>,
}

struct PendingJob {
    /// State and attempt in the row; none if it is new.
    was: Option<(&'static str, Attempt)>,
    job: Job,
}

/// What changes of an attempt that is there.
#[derive(Default)]
struct Patch {
    started: Option<Timestamp>,
    end: End,
}

/// What becomes of an attempt's end.
#[derive(Default)]
enum End {
    #[default]
    AsItIs,
    /// It goes on after all.
    None,
    At(AttemptEnd),
}

impl Pending {
    /// A new job.
    pub fn insert_job(&mut self, job: &Job) -> Result<()> {
        let pending = PendingJob { was: None, job: job.clone() };
        if self.jobs.insert(job.id.clone(), pending).is_some() { Err(StoreError::Conflict) } else { Ok(()) }
    }

    /// A job's change from `before`, as whoever changes it saw it.
    pub fn update_job(&mut self, before: &Job, after: &Job) -> Result<()> {
        let saw = (before.state.as_str(), before.attempt);
        if let Some(pending) = self.jobs.get_mut(&before.id) {
            if (pending.job.state.as_str(), pending.job.attempt) != saw {
                return Err(StoreError::Conflict);
            }
            pending.job = after.clone();
        } else {
            self.jobs.insert(before.id.clone(), PendingJob { was: Some(saw), job: after.clone() });
        }
        Ok(())
    }

    /// A new attempt.
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

    /// An attempt was taken; only the first time counts.
    pub fn start_attempt(&mut self, job: &JobId, attempt: Attempt, at: Timestamp) {
        self.patch(job, attempt).started.get_or_insert(at);
    }

    /// An attempt ended.
    pub fn end_attempt(&mut self, job: &JobId, attempt: Attempt, end: AttemptEnd) {
        self.patch(job, attempt).end = End::At(end);
    }

    /// An attempt goes on after all.
    pub fn reopen_attempt(&mut self, job: &JobId, attempt: Attempt) {
        self.patch(job, attempt).end = End::None;
    }

    /// An entry of the audit trail, as a row of [`AUDIT`].
    pub fn audit(&mut self, row: [Value; AUDIT.len()]) {
        self.audit.push(row.into());
    }

    fn patch(&mut self, job: &JobId, attempt: Attempt) -> &mut Patch {
        self.attempts.entry((job.clone(), attempt)).or_default()
    }

    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.new_attempts.is_empty() && self.attempts.is_empty() && self.audit.is_empty()
    }

    /// The statements that write it all, each with the number of rows that it must write. An attempt needs its job.
    fn statements(self, places: Places) -> Vec<(Statement, u64)> {
        let patches = self.attempts.into_iter().map(|((job, attempt), patch)| patch.row(&job, attempt)).collect();
        let key = "attempts.job_id = v.job_id AND attempts.attempt = v.attempt";
        let mut statements = of_jobs(places, self.jobs.into_values());
        statements.extend(portions(self.new_attempts, |rows| insert(places, "attempts", &ATTEMPT, rows)));
        statements.extend(portions(patches, |rows| update(places, "attempts", &PATCH, PATCHED, key, rows)));
        statements.extend(portions(self.audit, |rows| insert(places, "audit", &AUDIT, rows)));
        statements
    }
}

fn of_jobs(places: Places, jobs: impl Iterator<Item = PendingJob>) -> Vec<(Statement, u64)> {
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for PendingJob { was, job } in jobs {
        let values = changed_values(&job).into_iter();
        match was {
            None => new.push(pinned_values(&job).into_iter().chain(values).collect()),
            Some((state, attempt)) => changed.push(values.chain([state.into(), attempt.0.into()]).collect()),
        }
    }
    let columns: Vec<&str> = PINNED.into_iter().chain(CHANGED).collect();
    let mut statements = portions(new, |rows| insert(places, "jobs", &columns, rows));
    let columns: Vec<&str> = CHANGED.into_iter().chain(["was_state", "was_attempt"]).collect();
    let set: Vec<String> = CHANGED[1..].iter().map(|column| format!("{column} = v.{column}")).collect();
    let key = "jobs.id = v.id AND jobs.state = v.was_state AND jobs.attempt = v.was_attempt";
    statements.extend(portions(changed, |rows| update(places, "jobs", &columns, &set.join(", "), key, rows)));
    statements
}

impl Patch {
    fn row(self, job: &JobId, attempt: Attempt) -> Vec<Value> {
        let (changes, end) = match self.end {
            End::AsItIs => (false, None),
            End::None => (true, None),
            End::At(end) => (true, Some(end)),
        };
        let outcome = end.as_ref().map(|end| end.outcome);
        let (at, exit_code) = (end.as_ref().map(|end| end.at.0), end.as_ref().and_then(|end| end.exit_code));
        let error = end.and_then(|end| end.error);
        vec![
            job.as_str().into(),
            attempt.0.into(),
            self.started.map(|at| at.0).into(),
            changes.into(),
            at.into(),
            outcome.into(),
            error.into(),
            exit_code.into(),
        ]
    }
}

impl Session<'_> {
    /// Writes what is pending.
    pub(super) async fn settle(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let places = self.places();
        for (statement, rows) in std::mem::take(&mut self.pending).statements(places) {
            if self.execute(statement).await? != rows {
                self.failed = true;
                return Err(StoreError::Conflict);
            }
        }
        Ok(())
    }
}

/// Rows in statements of sizes that are powers of two.
pub(super) fn portions(
    mut rows: Vec<Vec<Value>>,
    statement: impl Fn(Vec<Vec<Value>>) -> Statement,
) -> Vec<(Statement, u64)> {
    let mut statements = Vec::new();
    while !rows.is_empty() {
        let size = MOST_ROWS.min(1 << rows.len().ilog2());
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
    fn rows_come_in_few_sizes() {
        let sizes = |number: usize| -> Vec<u64> {
            let rows = (0..number).map(|_| vec![Value::from(1_u8)]).collect();
            portions(rows, |rows| insert(Places::Bare, "t", &["a"], rows)).into_iter().map(|(_, size)| size).collect()
        };
        assert_eq!(sizes(0), Vec::<u64>::new());
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(150), [64, 64, 16, 4, 2]);
    }
}
