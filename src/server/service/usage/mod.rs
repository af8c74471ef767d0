//! Fleet usage in a period, computed on request.

mod presence_log;

use std::sync::Arc;

use app::domain::allowed_values::AllowedValues;
use app::domain::time::{Millis, Timestamp};
use app::domain::usage::calendar::{UsageCalendar, UtcOffset};
use app::domain::usage::presence::FleetCapacity;
use app::domain::usage::spans::TimeSpans;
use app::domain::usage::{
    AttemptUsage, JobWait, TimeWindow, UsageAmount, UsageGrouping, percentile, summarize_usage, wait_times,
};
use app::protocol::usage::{
    UsageAmountView, UsageBy, UsageDay, UsageFleet, UsageGroup, UsageHour, UsageQuery, UsageReport, UsageWaits,
};
use tokio::sync::Mutex;

use self::presence_log::PresenceLog;
use super::access::Principal;
use super::error::{InvalidInput, ServiceError, parse_time};
use crate::service::ServiceContext;
use crate::store::Tx;
use crate::store::audit::{AuditFilter, AuditOrder};

const DAY: Millis = Millis::from_secs(86_400);
/// The default length of the period.
const DEFAULT_DAYS: i64 = 7;
/// The maximum length of the period, in days.
const MAX_DAYS: i64 = 366;

/// GPU time by user.
pub struct UsageService {
    context: Arc<ServiceContext>,
    presence: Mutex<PresenceLog>,
}

impl UsageService {
    pub(super) fn new(context: Arc<ServiceContext>) -> Self {
        Self { context, presence: Mutex::default() }
    }

    /// Computes usage; for a user who may not see all jobs, of their own. Days and hours are those of a time zone.
    pub async fn usage(
        &self,
        principal: &Principal,
        query: &UsageQuery,
        zone: UtcOffset<'_>,
    ) -> Result<UsageReport, ServiceError> {
        let window = parse_window(query, self.context.now())?;
        let visible_owner = principal.visible_owner();
        let mut tx = self.context.read().await?;
        let (runs, all_waits) = (
            tx.attempt_usage(window, visible_owner.as_deref()).await?,
            tx.job_waits(window, visible_owner.as_deref()).await?,
        );
        let fleet = if visible_owner.is_none() { self.fleet_capacity(&mut *tx, &runs, window).await? } else { None };
        drop(tx);
        let available = fleet.as_ref().map(|fleet| build_calendar(window, zone, fleet.connected.iter().copied()));
        let held =
            build_calendar(window, zone, runs.iter().filter_map(|run| Some((run.clip_to(window)?, run.gpus.into()))));
        let (total, groups) = summarize_usage(&runs, window, usage_grouping(query.by));
        let hours = |index: usize| available.as_ref().map(|available| in_hours(available.week[index]));
        Ok(UsageReport {
            since: window.since,
            until: window.until,
            by: query.by,
            own: visible_owner.is_some(),
            total: amount_view(total),
            groups: groups
                .into_iter()
                .map(|((name, worker_id), amount)| UsageGroup { name, worker_id, amount: amount_view(amount) })
                .collect(),
            waits: summarize_waits(&wait_times(&all_waits, window)),
            days: held
                .days
                .iter()
                .enumerate()
                .map(|(n, (day, time))| UsageDay {
                    day: *day,
                    gpu_hours: in_hours(*time),
                    gpu_hours_available: available.as_ref().map(|available| in_hours(available.days[n].1)),
                })
                .collect(),
            week: (0_u8..7)
                .flat_map(|day| (0_u8..24).map(move |hour| (day, hour)))
                .zip(held.week)
                .enumerate()
                .map(|(index, ((day, hour), time))| UsageHour {
                    weekday: day + 1,
                    hour,
                    gpu_hours: in_hours(time),
                    gpu_hours_available: hours(index),
                })
                .collect(),
            fleet: fleet.as_ref().zip(available.as_ref()).map(|(fleet, available)| UsageFleet {
                gpu_hours: available.days.iter().map(|(_, time)| in_hours(*time)).sum(),
                idle_while_queued_minutes: in_hours(idle_while_queued(&fleet.idle, &all_waits, window)) * 60.0,
            }),
        })
    }

    /// The capacity of the fleet that ran these attempts; `None` if the audit log does not reach back far enough.
    async fn fleet_capacity(
        &self,
        tx: &mut dyn Tx,
        runs: &[AttemptUsage],
        window: TimeWindow,
    ) -> Result<Option<FleetCapacity>, ServiceError> {
        let heads = tx.audit_heads().await?;
        let was_pruned = heads.values().any(|head| head.removed.seq > 0);
        if was_pruned && !reaches_back(tx, window.since).await? {
            return Ok(None);
        }
        let mut presence = self.presence.lock().await;
        presence.read_new(tx, &heads).await?;
        let further = if was_pruned { presence.workers_without_entries(tx).await? } else { Vec::new() };
        Ok(Some(presence.fleet_capacity(further, runs, window)))
    }
}

/// The requested period, cut at the current time.
fn parse_window(query: &UsageQuery, now: Timestamp) -> Result<TimeWindow, ServiceError> {
    let until = parse_time("until", query.until.as_deref())?.unwrap_or(now).min(now);
    let since = parse_time("since", query.since.as_deref())?.unwrap_or(Timestamp(until.0 - DEFAULT_DAYS * DAY.0));
    if since >= until || (until - since).0 > MAX_DAYS * DAY.0 {
        let allowed = AllowedValues::Period { days: MAX_DAYS.unsigned_abs() };
        return Err(InvalidInput::OutOfRange { field: "since", allowed }.into());
    }
    Ok(TimeWindow { since, until })
}

/// Whether the audit log, whose first entries were removed, reaches back to a time.
async fn reaches_back(tx: &mut dyn Tx, at: Timestamp) -> Result<bool, ServiceError> {
    let oldest = tx.audit_page(&AuditFilter::default(), &AuditOrder::OldestFirst(None), 1).await?;
    Ok(oldest.first().is_some_and(|oldest| oldest.at <= at))
}

fn build_calendar(
    window: TimeWindow,
    zone: UtcOffset<'_>,
    spans: impl Iterator<Item = ((Timestamp, Timestamp), u64)>,
) -> UsageCalendar<'_> {
    let mut calendar = UsageCalendar::new(window, zone);
    spans.for_each(|(span, gpus)| calendar.add(span, gpus));
    calendar
}

/// Returns how long jobs waited while a worker that accepts jobs had none.
fn idle_while_queued(idle: &TimeSpans, all_waits: &[JobWait], window: TimeWindow) -> Millis {
    let waiting: TimeSpans =
        all_waits.iter().filter_map(|wait| window.clip(wait.submitted_at, wait.waited_until())).collect();
    idle.intersection(&waiting).total_duration()
}

fn summarize_waits(sorted: &[Millis]) -> UsageWaits {
    let seconds = |percent| percentile(sorted, percent).map(|wait| in_hours(wait) * 3_600.0);
    UsageWaits { jobs: sorted.len() as u64, p50_seconds: seconds(50), p95_seconds: seconds(95) }
}

fn amount_view(amount: UsageAmount) -> UsageAmountView {
    UsageAmountView {
        gpu_hours: in_hours(amount.gpu_time),
        run_hours: in_hours(amount.run_time),
        jobs: amount.jobs,
        attempts: amount.attempts,
    }
}

const fn usage_grouping(grouping: UsageBy) -> UsageGrouping {
    match grouping {
        UsageBy::User => UsageGrouping::User,
        UsageBy::Label => UsageGrouping::Label,
        UsageBy::Worker => UsageGrouping::Worker,
        UsageBy::Config => UsageGrouping::Config,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a fleet's milliseconds in a year are exact in a float")]
fn in_hours(time: Millis) -> f64 {
    time.0 as f64 / 3_600_000.0
}
