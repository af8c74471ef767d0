//! What a worker did, and what happened with it, as clients see it.

use app::domain::ids::{Attempt, JobId, WorkerId};
use app::domain::time::{Millis, Timestamp};
use app::protocol::audit::{AuditFilters, AuditQuery, TrailEvent};
use app::protocol::worker_history::{PartQuery, WorkerAttempt, WorkerAttempts, WorkerEvents, WorkerRecord};

use super::overview::{DAY, streak};
use crate::service::Core;
use crate::service::refusal::{Invalid, Refusal};
use crate::store::attempts::{AttemptPlace, StoredAttempt};

/// Attempts on a page if nothing else was asked for.
const PAGE: u32 = 100;
/// Attempts on a page at most.
const LONGEST_PAGE: u32 = 1_000;
/// What was offered so long ago counts as of late.
const MONTH: Millis = Millis::seconds(30 * 86_400);

impl Core {
    /// A page of the attempts that were offered to a worker, and how those of late ended.
    pub async fn worker_attempts(&self, id: &WorkerId, query: &PartQuery) -> Result<WorkerAttempts, Refusal> {
        let behind = query.cursor.as_deref().map(place).transpose()?;
        let limit = query.limit.unwrap_or(PAGE).clamp(1, LONGEST_PAGE);
        let now = self.now();
        let since = since(now, self.policy.kept.jobs);
        let mut tx = self.read().await?;
        tx.worker(id).await?.ok_or_else(|| Refusal::NoWorker(id.clone()))?;
        let mut attempts = tx.attempts_on(id, behind.as_ref(), limit + 1).await?;
        let outcomes = tx.outcomes_on(id, since).await?;
        let fast_failures = tx.failing(streak(now, 1), Some(id)).await?.first().map_or(0, |failing| failing.attempts);
        let more = attempts.len() > limit as usize;
        attempts.truncate(limit as usize);
        Ok(WorkerAttempts {
            next_cursor: attempts.last().filter(|_| more).map(|(attempt, _)| cursor(&attempt.place())),
            attempts: attempts.into_iter().map(|(attempt, config)| view(attempt, config)).collect(),
            record: WorkerRecord { fast_failures, ..record(since, &outcomes) },
            server_time: now,
        })
    }

    /// A page of what happened with a worker.
    pub async fn worker_events(&self, id: &WorkerId, query: &PartQuery) -> Result<WorkerEvents, Refusal> {
        self.recent().await?.worker(id).await?.ok_or_else(|| Refusal::NoWorker(id.clone()))?;
        let filters = AuditFilters { target: Some(id.to_string()), ..AuditFilters::default() };
        let PartQuery { limit, cursor } = query.clone();
        let page = self.audit_page(&AuditQuery { filters, limit, cursor }).await?;
        let events = page.entries.into_iter().map(|entry| TrailEvent {
            at: entry.at,
            event: entry.action,
            actor: entry.actor,
            detail: entry.detail,
        });
        Ok(WorkerEvents { events: events.collect(), next_cursor: page.next_cursor, server_time: page.server_time })
    }
}

/// From when on attempts count as of late: the day's beginning, so that the same answer is the same for a while.
fn since(now: Timestamp, kept: Option<Millis>) -> Timestamp {
    let span = kept.map_or(MONTH, |kept| kept.min(MONTH));
    let from = now.0 - span.0;
    Timestamp(from - from.rem_euclid(DAY.0))
}

/// How many there are of each outcome, and what that makes. A person's cancel and an offer that was not taken say nothing
/// of how well a worker trains.
fn record(since: Timestamp, outcomes: &[(Option<String>, u64)]) -> WorkerRecord {
    let of = |word| outcomes.iter().filter(|(outcome, _)| outcome.as_deref() == Some(word)).map(|(_, many)| many).sum();
    let (completed, failed, lost): (u64, u64, u64) = (of("completed"), of("failed"), of("lost"));
    WorkerRecord {
        since,
        attempts: outcomes.iter().map(|(_, many)| many).sum(),
        completed,
        failed,
        lost,
        cancelled: of("cancelled"),
        expired: of("expired"),
        success_percent: percent(completed, completed + failed + lost),
        fast_failures: 0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is rounded to a few digits anyway")]
fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

fn view(stored: StoredAttempt, config_name: String) -> WorkerAttempt {
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
        exit_code: stored.exit_code,
    }
}

fn cursor(AttemptPlace { offered_at, job, attempt }: &AttemptPlace) -> String {
    format!("{}.{attempt}.{job}", offered_at.0)
}

fn place(cursor: &str) -> Result<AttemptPlace, Refusal> {
    let parse = || {
        let mut parts = cursor.splitn(3, '.');
        let (at, attempt) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let job = JobId::parse(parts.next()?).ok()?;
        Some(AttemptPlace { offered_at: Timestamp(at), job, attempt: Attempt(attempt) })
    };
    Ok(parse().ok_or(Invalid::Range { field: "cursor", allowed: "a next_cursor of this list" })?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_names_a_place(at in any::<i64>(), attempt in any::<u32>(), entropy in any::<[u8; 10]>()) {
            let job = JobId::new(Timestamp(5), entropy);
            let here = AttemptPlace { offered_at: Timestamp(at), job, attempt: Attempt(attempt) };
            prop_assert_eq!(place(&cursor(&here)), Ok(here));
        }

        #[test]
        fn every_attempt_counts_once_and_a_rate_is_a_share(many in proptest::array::uniform6(0_u64..50)) {
            let words = [Some("completed"), Some("failed"), Some("lost"), Some("cancelled"), Some("expired"), None];
            let outcomes: Vec<_> = words.map(|word| word.map(str::to_owned)).into_iter().zip(many).collect();
            let told = record(Timestamp(0), &outcomes);
            prop_assert_eq!(told.attempts, many.iter().sum::<u64>());
            prop_assert_eq!(&[told.completed, told.failed, told.lost, told.cancelled, told.expired][..], &many[..5]);
            let judged = many[0] + many[1] + many[2];
            prop_assert_eq!(told.success_percent.is_some(), judged > 0);
            prop_assert!(told.success_percent.is_none_or(|rate| (0.0..=100.0).contains(&rate)));
        }
    }

    #[test]
    fn what_nobody_gave_is_no_cursor() {
        for bad in ["", "1", "1.2", "a.2.j_1", "1.b.j_1", "1.2.", "1.2.j/1"] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn of_late_is_a_month_of_days_or_what_is_kept() {
        let now = Timestamp(40 * DAY.0 + 7);
        let day = |days: i64| Timestamp(days * DAY.0);
        assert_eq!(since(now, None), day(10));
        assert_eq!(since(now, Some(Millis(90 * DAY.0))), day(10));
        assert_eq!(since(now, Some(Millis(2 * DAY.0))), day(38));
    }

    #[test]
    fn only_what_ended_by_itself_is_judged() {
        let some = |word: &str, many| (Some(word.to_owned()), many);
        let told = record(Timestamp(0), &[some("completed", 3), some("lost", 1), some("cancelled", 9), (None, 1)]);
        assert_eq!((told.success_percent, told.attempts), (Some(75.0), 14));
    }
}
