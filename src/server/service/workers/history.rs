//! The history of a worker: attempts and events.

use app::domain::allowed_values::AllowedValues;
use app::domain::ids::{AttemptNumber, JobId, WorkerId};
use app::domain::time::{Millis, Timestamp};
use app::protocol::audit::{AuditFilters, AuditLogEvent, AuditQuery};
use app::protocol::workers::history::{PageQuery, WorkerAttempt, WorkerAttemptStats, WorkerAttempts, WorkerEvents};

use crate::service::error::{InvalidInput, ServiceError};
use crate::service::workers::WorkerService;
use crate::store::jobs::attempts::{AttemptCursor, StoredAttempt};
use crate::store::usage::FailureStreakQuery;

/// Default number of attempts per page.
const DEFAULT_PAGE: u32 = 100;
/// Maximum number of attempts per page.
const MAX_PAGE: u32 = 1_000;
/// Jobs that ended within this time count as recent.
pub(in crate::service) const DAY: Millis = Millis::from_secs(86_400);
/// An attempt that failed sooner than this after its start did not fail because of its training.
const FAST_FAILURE_ALERT_WINDOW: Millis = Millis::from_secs(60);
/// Attempts offered within this time count as recent.
const RECENT_PERIOD: Millis = Millis::from_secs(30 * 86_400);

impl WorkerService {
    /// Returns a page of a worker's attempts, and statistics of the recent ones.
    pub async fn worker_attempts(&self, id: &WorkerId, query: &PageQuery) -> Result<WorkerAttempts, ServiceError> {
        let after = query.cursor.as_deref().map(parse_cursor).transpose()?;
        let limit = query.limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE);
        let now = self.context.now();
        let since = recent_since(now, self.context.policy.retention.jobs);
        let mut tx = self.context.read().await?;
        tx.worker(id).await?.ok_or_else(|| ServiceError::WorkerNotFound(id.clone()))?;
        let mut attempts = tx.worker_attempts(id, after.as_ref(), limit + 1).await?;
        let outcomes = tx.worker_outcomes(id, since).await?;
        let fast_failures =
            tx.failing_workers(failure_streak(now, 1), Some(id)).await?.first().map_or(0, |failing| failing.attempts);
        let has_more = attempts.len() > limit as usize;
        attempts.truncate(limit as usize);
        Ok(WorkerAttempts {
            next_cursor: attempts.last().filter(|_| has_more).map(|(attempt, _)| format_cursor(&attempt.cursor())),
            attempts: attempts.into_iter().map(|(attempt, config)| attempt_view(attempt, config)).collect(),
            record: WorkerAttemptStats { fast_failures, ..attempt_stats(since, &outcomes) },
            server_time: now,
        })
    }

    /// Returns a page of a worker's events.
    pub async fn worker_events(&self, id: &WorkerId, query: &PageQuery) -> Result<WorkerEvents, ServiceError> {
        self.context.read_recent().await?.worker(id).await?.ok_or_else(|| ServiceError::WorkerNotFound(id.clone()))?;
        let filters = AuditFilters { target: Some(id.to_string()), ..AuditFilters::default() };
        let PageQuery { limit, cursor } = query.clone();
        let page = self.audit.audit_page(&AuditQuery { filters, limit, cursor }).await?;
        let events = page.entries.into_iter().map(|entry| AuditLogEvent {
            at: entry.at,
            event: entry.action,
            actor: entry.actor,
            detail: entry.detail,
        });
        Ok(WorkerEvents { events: events.collect(), next_cursor: page.next_cursor, server_time: page.server_time })
    }
}

/// The query for at least this many recent, quick failures in a row.
pub(in crate::service) fn failure_streak(now: Timestamp, min_failures: u64) -> FailureStreakQuery {
    FailureStreakQuery { since: Timestamp(now.0 - DAY.0), now, quick_failure: FAST_FAILURE_ALERT_WINDOW, min_failures }
}

/// The start of the recent period: the beginning of a day, so that responses stay equal for a while.
fn recent_since(now: Timestamp, retention: Option<Millis>) -> Timestamp {
    let span = retention.map_or(RECENT_PERIOD, |retention| retention.min(RECENT_PERIOD));
    let from = now.0 - span.0;
    Timestamp(from - from.rem_euclid(DAY.0))
}

/// Counts attempts per outcome, and computes the success rate. Cancels by users and unanswered offers say nothing about
/// the worker's quality.
fn attempt_stats(since: Timestamp, outcomes: &[(Option<String>, u64)]) -> WorkerAttemptStats {
    let count =
        |name| outcomes.iter().filter(|(outcome, _)| outcome.as_deref() == Some(name)).map(|(_, count)| count).sum();
    let (completed, failed, lost): (u64, u64, u64) = (count("completed"), count("failed"), count("lost"));
    WorkerAttemptStats {
        since,
        attempts: outcomes.iter().map(|(_, count)| count).sum(),
        completed,
        failed,
        lost,
        cancelled: count("cancelled"),
        expired: count("expired"),
        success_percent: percent(completed, completed + failed + lost),
        fast_failures: 0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is rounded to a few digits anyway")]
fn percent(part: u64, total: u64) -> Option<f64> {
    (total > 0).then(|| part as f64 * 100.0 / total as f64)
}

fn attempt_view(stored: StoredAttempt, config_name: String) -> WorkerAttempt {
    WorkerAttempt {
        job_id: stored.job,
        config_name,
        attempt: stored.attempt,
        gpus: stored.gpus,
        offered_at: stored.offered_at,
        started_at: stored.started_at,
        ended_at: stored.ended_at,
        outcome: stored.outcome,
        error: stored.error,
        loss_code: stored.loss_code,
        exit_code: stored.exit_code,
    }
}

fn format_cursor(AttemptCursor { offered_at, job, attempt }: &AttemptCursor) -> String {
    format!("{}.{attempt}.{job}", offered_at.0)
}

fn parse_cursor(cursor: &str) -> Result<AttemptCursor, ServiceError> {
    let parse = || {
        let mut parts = cursor.splitn(3, '.');
        let (at, attempt) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let job = JobId::parse(parts.next()?).ok()?;
        Some(AttemptCursor { offered_at: Timestamp(at), job, attempt: AttemptNumber(attempt) })
    };
    Ok(parse().ok_or(InvalidInput::OutOfRange { field: "cursor", allowed: AllowedValues::Cursor })?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cursor_round_trips(at in any::<i64>(), attempt in any::<u32>(), entropy in any::<[u8; 10]>()) {
            let job = JobId::new(Timestamp(5), entropy);
            let cursor = AttemptCursor { offered_at: Timestamp(at), job, attempt: AttemptNumber(attempt) };
            prop_assert_eq!(parse_cursor(&format_cursor(&cursor)), Ok(cursor));
        }

        #[test]
        fn each_attempt_counts_once_and_rates_are_fractions(counts in proptest::array::uniform6(0_u64..50)) {
            let names = [Some("completed"), Some("failed"), Some("lost"), Some("cancelled"), Some("expired"), None];
            let outcomes: Vec<_> = names.map(|outcome| outcome.map(str::to_owned)).into_iter().zip(counts).collect();
            let stats = attempt_stats(Timestamp(0), &outcomes);
            prop_assert_eq!(stats.attempts, counts.iter().sum::<u64>());
            prop_assert_eq!(&[stats.completed, stats.failed, stats.lost, stats.cancelled, stats.expired][..], &counts[..5]);
            let rated = counts[0] + counts[1] + counts[2];
            prop_assert_eq!(stats.success_percent.is_some(), rated > 0);
            prop_assert!(stats.success_percent.is_none_or(|rate| (0.0..=100.0).contains(&rate)));
        }
    }

    #[test]
    fn arbitrary_text_is_not_a_cursor() {
        for bad in ["", "1", "1.2", "a.2.j_1", "1.b.j_1", "1.2.", "1.2.j/1"] {
            assert!(parse_cursor(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn recent_is_30_days_or_the_retention() {
        let now = Timestamp(40 * DAY.0 + 7);
        let day = |days: i64| Timestamp(days * DAY.0);
        assert_eq!(recent_since(now, None), day(10));
        assert_eq!(recent_since(now, Some(Millis(90 * DAY.0))), day(10));
        assert_eq!(recent_since(now, Some(Millis(2 * DAY.0))), day(38));
    }

    #[test]
    fn only_completed_failed_and_lost_attempts_are_rated() {
        let outcome_count = |outcome: &str, many| (Some(outcome.to_owned()), many);
        let stats = attempt_stats(
            Timestamp(0),
            &[outcome_count("completed", 3), outcome_count("lost", 1), outcome_count("cancelled", 9), (None, 1)],
        );
        assert_eq!((stats.success_percent, stats.attempts), (Some(75.0), 14));
    }
}
