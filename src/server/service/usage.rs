//! Use of the fleet in a stretch of time, computed when it is asked for.

use std::collections::{BTreeMap, BTreeSet};

use app::domain::audit::Action;
use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};
use app::domain::usage::calendar::Calendar;
use app::domain::usage::fleet::{Attendance, Change, attendance, idle};
use app::domain::usage::spans::Spans;
use app::domain::usage::{Amount, By, Run, Wait, Window, percentile, used, waits};
use app::domain::worker::Link;
use app::protocol::usage::{
    UsageAmount, UsageBy, UsageDay, UsageFleet, UsageGroup, UsageHour, UsageQuery, UsageReport, UsageWaits,
};
use serde_json::Value;

use super::Core;
use super::access::Person;
use super::refusal::{Invalid, Refusal, moment};
use crate::store::Tx;
use crate::store::audit::{AuditFilter, Reading};
use crate::store::usage::Sighting;
use crate::store::workers::StoredWorker;

const DAY: Millis = Millis::seconds(86_400);
/// Left out, the time begins so long before its end.
const USUAL: i64 = 7;
/// The longest time that can be asked for, in days.
const LONGEST: i64 = 366;

/// What of the trail tells where workers are.
const SIGHTINGS: [Action; 10] = [
    Action::WorkerRegistered,
    Action::WorkerOnline,
    Action::WorkerConnecting,
    Action::WorkerOffline,
    Action::WorkerRemoved,
    Action::WorkerDeleted,
    Action::WorkerDrained,
    Action::WorkerResumed,
    Action::WorkerSpent,
    Action::WorkerFitness,
];

impl Core {
    /// What the fleet was used for; of a person who may not see all jobs, by their own.
    pub async fn usage(&self, person: &Person, query: &UsageQuery) -> Result<UsageReport, Refusal> {
        let window = window(query, self.now())?;
        let own = person.sees_only();
        let mut tx = self.read().await?;
        let (runs, all_waits) = (tx.runs(window, own.as_deref()).await?, tx.waits(window, own.as_deref()).await?);
        let fleet = if own.is_none() { fleet(&mut *tx, window).await? } else { None };
        drop(tx);
        let there =
            fleet.as_ref().map(|fleet| calendar(window, fleet.values().flat_map(|one| one.there.iter().copied())));
        let held = calendar(window, runs.iter().filter_map(|run| Some((run.part(window)?, run.gpus))));
        let (total, groups) = used(&runs, window, by(query.by));
        let hours = |place: usize| there.as_ref().map(|there| in_hours(there.week[place]));
        Ok(UsageReport {
            since: window.since,
            until: window.until,
            by: query.by,
            own: own.is_some(),
            total: amount(total),
            groups: groups
                .into_iter()
                .map(|((name, worker_id), used)| UsageGroup { name, worker_id, amount: amount(used) })
                .collect(),
            waits: waited(&waits(&all_waits, window)),
            days: held
                .days
                .iter()
                .enumerate()
                .map(|(n, (day, time))| UsageDay {
                    day: *day,
                    gpu_hours: in_hours(*time),
                    gpu_hours_there: there.as_ref().map(|there| in_hours(there.days[n].1)),
                })
                .collect(),
            week: (0_u8..7)
                .flat_map(|day| (0_u8..24).map(move |hour| (day, hour)))
                .zip(held.week)
                .enumerate()
                .map(|(place, ((day, hour), time))| UsageHour {
                    weekday: day + 1,
                    hour,
                    gpu_hours: in_hours(time),
                    gpu_hours_there: hours(place),
                })
                .collect(),
            fleet: fleet.as_ref().zip(there.as_ref()).map(|(fleet, there)| UsageFleet {
                gpu_hours: there.days.iter().map(|(_, time)| in_hours(*time)).sum(),
                idle_while_queued_minutes: in_hours(idle_while_queued(fleet, &runs, &all_waits, window)) * 60.0,
            }),
        })
    }
}

/// The time that was asked for, as far as it has been.
fn window(query: &UsageQuery, now: Timestamp) -> Result<Window, Refusal> {
    let until = moment("until", query.until.as_deref())?.unwrap_or(now).min(now);
    let since = moment("since", query.since.as_deref())?.unwrap_or(Timestamp(until.0 - USUAL * DAY.0));
    if since >= until || (until - since).0 > LONGEST * DAY.0 {
        return Err(
            Invalid::Range { field: "since", allowed: "before `until` and in the past, by 366 days at most" }.into()
        );
    }
    Ok(Window { since, until })
}

/// When each worker was there; none if the trail does not reach back so far.
async fn fleet(tx: &mut dyn Tx, window: Window) -> Result<Option<BTreeMap<WorkerId, Attendance>>, Refusal> {
    let shortened = tx.audit_heads().await?.values().any(|head| head.removed.seq > 0);
    if shortened {
        let oldest = tx.audit_page(&AuditFilter::default(), &Reading::Forth(None), 1).await?;
        if oldest.first().is_none_or(|oldest| oldest.at > window.since) {
            return Ok(None);
        }
    }
    let words = SIGHTINGS.map(Action::as_str);
    let seen: Vec<_> = tx.sightings(&words, window.until).await?.iter().filter_map(change).collect();
    let known: BTreeSet<WorkerId> = seen.iter().map(|(_, worker, _)| worker.clone()).collect();
    // Who came before what is left of the trail, and has stayed.
    let stayed: Vec<_> =
        tx.workers().await?.iter().filter(|one| !known.contains(&one.worker.id)).flat_map(as_it_is).collect();
    Ok(Some(attendance(stayed.into_iter().chain(seen), window)))
}

fn change(sighting: &Sighting) -> Option<(Timestamp, WorkerId, Change)> {
    let detail: Value = serde_json::from_str(&sighting.detail).unwrap_or_default();
    let unfit = detail["unfit"].is_string();
    let action = SIGHTINGS.into_iter().find(|action| action.as_str() == sighting.action)?;
    let change = match action {
        Action::WorkerRegistered => {
            let gpus = detail["gpus"].as_array().map_or(0, Vec::len);
            Change::Registered { gpus: u32::try_from(gpus).unwrap_or(u32::MAX), unfit }
        }
        Action::WorkerOnline => Change::Online,
        Action::WorkerConnecting => Change::Connecting,
        Action::WorkerDrained => Change::Drained,
        Action::WorkerResumed => Change::Resumed,
        Action::WorkerSpent => Change::Spent,
        Action::WorkerFitness => Change::Fitness { unfit },
        _ => Change::Gone,
    };
    Some((sighting.at, WorkerId::parse(&sighting.worker).ok()?, change))
}

fn as_it_is(stored: &StoredWorker) -> Vec<(Timestamp, WorkerId, Change)> {
    let worker = &stored.worker;
    let (since, capability, listens) = match &worker.link {
        Link::Online { since, capability, .. } => (*since, capability, true),
        Link::Connecting { since, capability } => (*since, capability, false),
        Link::NeverSeen | Link::Offline { .. } => return Vec::new(),
    };
    let gpus = u32::try_from(capability.gpus.len()).unwrap_or(u32::MAX);
    let registered = Change::Registered { gpus, unfit: capability.unfit.is_some() };
    let further = [listens.then_some(Change::Online), worker.drain.as_ref().map(|_| Change::Drained)];
    let all = [Some(registered)].into_iter().chain(further).flatten();
    all.map(|change| (since, worker.id.clone(), change)).collect()
}

fn calendar(window: Window, spans: impl Iterator<Item = ((Timestamp, Timestamp), u32)>) -> Calendar {
    let mut calendar = Calendar::of(window);
    spans.for_each(|(span, gpus)| calendar.add(span, gpus));
    calendar
}

/// How long a job waited while a worker that takes jobs had none.
fn idle_while_queued(
    fleet: &BTreeMap<WorkerId, Attendance>,
    runs: &[Run],
    all_waits: &[Wait],
    window: Window,
) -> Millis {
    let mut busy = BTreeMap::<WorkerId, Vec<(Timestamp, Timestamp)>>::new();
    for run in runs {
        busy.entry(run.worker.clone()).or_default().extend(window.part(run.offered, run.ended));
    }
    let busy = busy.into_iter().map(|(worker, spans)| (worker, spans.into_iter().collect())).collect();
    let waiting: Spans = all_waits.iter().filter_map(|wait| window.part(wait.submitted, wait.over())).collect();
    idle(fleet, &busy).and(&waiting).total()
}

fn waited(sorted: &[Millis]) -> UsageWaits {
    let seconds = |percent| percentile(sorted, percent).map(|wait| in_hours(wait) * 3_600.0);
    UsageWaits { jobs: sorted.len() as u64, p50_seconds: seconds(50), p95_seconds: seconds(95) }
}

fn amount(used: Amount) -> UsageAmount {
    UsageAmount {
        gpu_hours: in_hours(used.gpus),
        run_hours: in_hours(used.runs),
        jobs: used.jobs,
        attempts: used.attempts,
    }
}

const fn by(asked: UsageBy) -> By {
    match asked {
        UsageBy::User => By::User,
        UsageBy::Label => By::Label,
        UsageBy::Worker => By::Worker,
        UsageBy::Config => By::Config,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a fleet's milliseconds in a year are exact in a float")]
fn in_hours(time: Millis) -> f64 {
    time.0 as f64 / 3_600_000.0
}
