//! Attempts as clients see them.

use std::collections::HashMap;

use app::domain::audit::Action;
use app::domain::ids::Attempt;
use app::domain::time::Timestamp;
use app::protocol::queue::AttemptView;
use serde::Deserialize;

use crate::store::attempts::StoredAttempt;
use crate::store::audit::StoredEntry;

/// What only the trail knows of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moments {
    running: Option<Timestamp>,
    cancelling: Option<Timestamp>,
}

/// The moments of each attempt, by a job's entries in the order of time. The first of its kind counts: an attempt that
/// was lost and came back runs since before.
pub fn moments(entries: Vec<StoredEntry>) -> HashMap<Attempt, Moments> {
    #[derive(Deserialize)]
    struct Of {
        attempt: Attempt,
    }
    let mut found: HashMap<Attempt, Moments> = HashMap::new();
    for entry in entries {
        let Ok(Of { attempt }) = serde_json::from_str(&entry.detail) else { continue };
        let of = found.entry(attempt).or_default();
        if entry.action == Action::JobRunning.as_str() {
            of.running.get_or_insert(entry.at);
        } else if entry.action == Action::JobCancelling.as_str() {
            of.cancelling.get_or_insert(entry.at);
        }
    }
    found
}

/// One attempt.
pub fn attempt_view(stored: StoredAttempt, moments: Moments, log_bytes: u64) -> AttemptView {
    AttemptView {
        attempt: stored.attempt,
        worker_id: stored.worker,
        worker_name: Some(stored.worker_name),
        offered_at: stored.offered_at,
        started_at: stored.started_at,
        running_at: moments.running,
        cancelling_at: moments.cancelling,
        ended_at: stored.ended_at,
        outcome: stored.outcome,
        // What came back has no end any more.
        error_line: stored.error_line.filter(|_| stored.error.is_some()),
        error: stored.error,
        exit_code: stored.exit_code,
        resumed_from_step: stored.resumed_from_step,
        log_bytes,
    }
}
