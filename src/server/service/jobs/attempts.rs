use std::collections::HashMap;

use app::domain::audit::AuditAction;
use app::domain::ids::AttemptNumber;
use app::domain::log_text::links::FoundLink;
use app::domain::time::Timestamp;
use app::protocol::jobs::AttemptView;
use app::protocol::logs::LogLink;
use serde::Deserialize;

use crate::files::log_facts::LogFacts;
use crate::store::audit::StoredAuditEntry;
use crate::store::jobs::attempts::StoredAttempt;

/// Times of an attempt that are only in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttemptTimes {
    running: Option<Timestamp>,
    cancelling: Option<Timestamp>,
}

/// The times of each attempt, from a job's entries in order. The first entry of each kind counts: a lost attempt that
/// was recovered has run since its first start.
pub fn attempt_times(entries: &[StoredAuditEntry]) -> HashMap<AttemptNumber, AttemptTimes> {
    #[derive(Deserialize)]
    struct AttemptDetail {
        attempt: AttemptNumber,
    }
    let mut times: HashMap<AttemptNumber, AttemptTimes> = HashMap::new();
    for entry in entries {
        let Ok(AttemptDetail { attempt }) = serde_json::from_str(&entry.detail) else { continue };
        let entry_times = times.entry(attempt).or_default();
        if entry.action == AuditAction::JobRunning.as_str() {
            entry_times.running.get_or_insert(entry.at);
        } else if entry.action == AuditAction::JobCancelling.as_str() {
            entry_times.cancelling.get_or_insert(entry.at);
        }
    }
    times
}

/// The user who cancelled a job, from its entries in order.
pub fn cancelled_by(entries: &[StoredAuditEntry]) -> Option<String> {
    let actions = [AuditAction::JobCancelling, AuditAction::JobCancelled].map(AuditAction::as_str);
    let entry = entries.iter().find(|entry| actions.contains(&entry.action.as_str()))?;
    let is_user = entry.actor != "system" && !entry.actor.starts_with("worker:");
    // Behind the user is the name of their token.
    is_user.then(|| entry.actor.split('/').next().unwrap_or_default().to_owned())
}

pub fn attempt_view(stored: StoredAttempt, times: AttemptTimes, log_bytes: u64, log: &LogFacts) -> AttemptView {
    let link = |link: &FoundLink| LogLink { service: link.service, url: link.url.clone() };
    AttemptView {
        attempt: stored.attempt,
        worker_id: stored.worker,
        worker_name: Some(stored.worker_name),
        gpus: stored.gpus,
        offered_at: stored.offered_at,
        started_at: stored.started_at,
        running_at: times.running,
        cancelling_at: times.cancelling,
        ended_at: stored.ended_at,
        outcome: stored.outcome,
        // An attempt that was recovered has not ended.
        error_line: stored.error_line.filter(|_| stored.error.is_some()),
        error: stored.error,
        loss_code: stored.loss_code,
        exit_code: stored.exit_code,
        resumed_from_step: stored.resumed_from_step,
        log_bytes,
        links: log.links.iter().map(link).collect(),
        ranks: log.ranks.clone(),
    }
}
