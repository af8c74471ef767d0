//! Tests of alerts and their order.

use proptest::prelude::*;

use super::*;
use crate::domain::capability::Capability;
use crate::domain::explain::{FeasibilityCache, JobRequirement};
use crate::domain::fixtures::{
    NOW, gpu_demand, job, job_id, label, unseen_worker, with_unavailable_gpus, worker, worker_id,
};
use crate::domain::gpu::Unavailable;
use crate::domain::job::{Demand, Job};
use crate::domain::plan::{ConcurrencyLimits, PlannerFleet};
use crate::domain::worker::{OfflineCause, TokenConflict, WorkerKind};

const HOUR: Millis = Millis::from_secs(3_600);
const DAY: Millis = Millis::from_secs(86_400);

fn found_alerts(
    worker: &Worker,
    credential: &WorkerCredential,
    job: Option<&JobId>,
    now: Timestamp,
) -> Vec<DatedAlertKind> {
    context_alerts(WorkerContext { worker, credential, job, waiting_jobs: &[], rejection: None }, now)
}

fn context_alerts(context: WorkerContext<'_>, now: Timestamp) -> Vec<DatedAlertKind> {
    let (entries, worker) = (worker_alerts(context, "0.2.0", now), context.worker);
    let subject = AlertSubject::Worker(worker.id.clone(), worker.name.clone());
    assert!(entries.iter().all(|entry| entry.subject == subject), "{entries:?}");
    entries.into_iter().map(|entry| (entry.kind, entry.since)).collect()
}

fn found_kinds(worker: &Worker, job: Option<&JobId>, now: Timestamp) -> Vec<DatedAlertKind> {
    found_alerts(worker, &WorkerCredential::new("a"), job, now)
}

/// A worker with this reported capability.
fn reporting(capability: Capability) -> Worker {
    unseen_worker(1).registered(NOW, capability, WorkerKind::Persistent)
}

#[test]
fn healthy_worker_has_no_alerts() {
    let job = job_id(1);
    assert_eq!(found_kinds(&worker(1, &[80], 1), Some(&job), NOW + DAY), []);
    assert_eq!(found_kinds(&unseen_worker(1), None, NOW + DAY), []);
}

#[test]
fn worker_that_lost_jobs_raises_an_alert_until_it_returns_or_drains() {
    let (online, jobs) = (worker(1, &[80], 2), vec![job_id(1), job_id(2)]);
    let silent = online.clone().went_offline(NOW, OfflineCause::HeartbeatTimeout);
    let lost = silent.clone().with_lost_jobs(jobs.clone());
    let disconnected = online.clone().went_offline(NOW, OfflineCause::Disconnected);
    let critical = |jobs: &[JobId]| vec![(AlertKind::OfflineWithJob { jobs: jobs.to_vec() }, Some(NOW))];
    let warning = || vec![(AlertKind::Offline { jobs: jobs.clone() }, Some(NOW))];
    let drained = lost.clone().drained(NOW, None, None);
    let returned = lost.clone().registered(NOW, Capability::default(), WorkerKind::Persistent);
    let (all, none) = (&jobs[..], &jobs[..0]);
    for (worker, has_job, waiting_jobs, expected) in [
        (&silent, false, none, vec![]),
        (&lost, false, all, critical(all)),
        // The other one runs elsewhere.
        (&lost, false, &jobs[1..], critical(&jobs[1..])),
        (&lost, false, none, warning()),
        (&drained, false, all, critical(all)),
        (&drained, false, none, vec![]),
        (&returned, false, all, vec![]),
        // Its trainer continues, and its agent may return within the heartbeat timeout.
        (&disconnected, true, none, vec![]),
        (&disconnected, false, all, critical(all)),
        (&disconnected, false, none, vec![]),
    ] {
        let credential = WorkerCredential::new("a");
        let current_job = has_job.then_some(&jobs[0]);
        let context =
            WorkerContext { worker, credential: &credential, job: current_job, waiting_jobs, rejection: None };
        assert_eq!(context_alerts(context, NOW + HOUR), expected, "{context:?}");
    }
    assert_eq!(critical(all)[0].0.severity(), Severity::Critical);
    assert_eq!(warning()[0].0.severity(), Severity::Warning);
}

#[test]
fn rejected_registration_raises_an_alert_until_the_worker_registers_or_has_another_token() {
    let rejection = RejectedRegistration { at: NOW + DAY, reason: "network_not_allowed".to_owned() };
    let new = unseen_worker(1);
    let online = worker(1, &[80], 1);
    let offline = |at| online.clone().went_offline(at, OfflineCause::Disconnected);
    let credential = |issued_at, expires_at| WorkerCredential { issued_at, expires_at, ..WorkerCredential::new("a") };
    let unchanged = credential(Some(NOW), None);
    for (worker, credential, is_alert) in [
        (&new, &unchanged, true),
        (&offline(NOW), &unchanged, true),
        (&offline(NOW + DAY + HOUR), &unchanged, false),
        (&online, &unchanged, false),
        (&new, &credential(Some(NOW + DAY + HOUR), None), false),
        (&new, &credential(None, None), true),
    ] {
        let context = WorkerContext { worker, credential, job: None, waiting_jobs: &[], rejection: Some(&rejection) };
        let kind = AlertKind::RegistrationRejected { reason: rejection.reason.clone() };
        let expected: Vec<DatedAlertKind> = is_alert.then_some((kind, None)).into_iter().collect();
        assert_eq!(context_alerts(context, NOW + DAY + HOUR), expected, "{context:?}");
    }
    let expired = credential(Some(NOW), Some(NOW + DAY));
    let context =
        WorkerContext { worker: &new, credential: &expired, job: None, waiting_jobs: &[], rejection: Some(&rejection) };
    assert_eq!(context_alerts(context, NOW + DAY + HOUR), [(AlertKind::TokenExpired, Some(NOW + DAY))]);
}

#[test]
fn long_or_overdue_drain_raises_an_alert() {
    let (deadline, job) = (NOW + Millis::from_secs(60), job_id(1));
    let unlimited = worker(1, &[80], 1).drained(NOW, None, None);
    let limited = worker(1, &[80], 1).drained(NOW, None, Some(deadline));
    let (after, late) = (NOW + Millis::from_secs(61), NOW + HOUR + Millis::from_secs(1));
    let long = || vec![(AlertKind::DrainLong, Some(NOW))];
    assert_eq!((found_kinds(&unlimited, None, NOW + HOUR), found_kinds(&unlimited, None, late)), (vec![], long()));
    assert_eq!(found_kinds(&limited, Some(&job), after), [(AlertKind::DrainOverdue, Some(deadline))]);
    assert_eq!((found_kinds(&limited, None, after), found_kinds(&limited, None, late)), (vec![], long()));
    let disconnected = unlimited.went_offline(NOW, OfflineCause::Disconnected);
    assert_eq!(found_kinds(&disconnected, None, late), [], "no alert while disconnected");
}

#[test]
fn quarantined_gpu_raises_an_alert_and_used_gpu_does_not() {
    let quarantined = with_unavailable_gpus(worker(1, &[80, 80, 80], 1), &[1, 2]);
    let kind = AlertKind::GpusUnavailable { gpus: 2, first: 1, detail: "XID 79".to_owned() };
    assert_eq!(found_kinds(&quarantined, None, NOW), [(kind, None)]);
    let mut gpus = quarantined.capability().expect("registered").gpus.clone();
    for gpu in &mut gpus[1..] {
        gpu.unavailable =
            Some(Unavailable { reason: UnavailableReason::InUse, detail: "used by process 7".to_owned() });
    }
    assert_eq!(found_kinds(&reporting(Capability { gpus, ..Capability::default() }), None, NOW), []);
}

#[test]
fn reports_count_only_while_connected() {
    let capability = Capability {
        unhealthy_reason: Some("no disk space".to_owned()),
        tls_verify: Some(false),
        agent_version: Some("0.1.9".to_owned()),
        protocol: Some(1),
        ..Capability::default()
    };
    let connected = reporting(capability.clone());
    let unhealthy = AlertKind::HostUnhealthy { why: "no disk space".to_owned() };
    let outdated = AlertKind::AgentOutdated { version: "0.1.9".to_owned() };
    assert_eq!(
        found_kinds(&connected, None, NOW),
        [unhealthy, AlertKind::TlsUnverified, outdated].map(|kind| (kind, None))
    );
    assert_eq!(found_kinds(&connected.went_offline(NOW, OfflineCause::HeartbeatTimeout), None, NOW), []);
    let older = reporting(Capability { protocol: None, unhealthy_reason: None, tls_verify: None, ..capability });
    assert_eq!(found_kinds(&older, None, NOW), [], "its version is that of another program");
}

#[test]
fn versions_are_compared_numerically() {
    for (version, newest, expected) in [
        ("0.2.0", "0.2.0", false),
        ("0.9.0", "0.10.0", true),
        ("0.10.0", "0.9.0", false),
        ("0.1.0-dev+7", "0.2.0", true),
        ("one", "0.2.0", false),
        ("", "0.2.0", false),
    ] {
        assert_eq!(is_older_version(version, newest), expected, "{version} {newest}");
    }
}

#[test]
fn expired_expiring_or_old_token_raises_an_alert() {
    let credential = |expires_in: Option<Millis>, age: Option<Millis>| WorkerCredential {
        issued_at: age.map(|age| Timestamp(NOW.0 - age.0)),
        expires_at: expires_in.map(|span| NOW + span),
        ..WorkerCredential::new("a")
    };
    let days = |n: i64| Millis(DAY.0 * n);
    let alerts = |worker: &Worker, expires_in, age| found_alerts(worker, &credential(expires_in, age), None, NOW);
    let active = worker(1, &[], 1);
    assert_eq!(alerts(&active, Some(days(0)), None), [(AlertKind::TokenExpired, Some(NOW))]);
    assert_eq!(
        alerts(&active, Some(days(6)), Some(days(91))),
        [(AlertKind::TokenExpiring { at: NOW + days(6) }, None)]
    );
    assert_eq!(alerts(&active, Some(days(7)), Some(days(90))), []);
    assert_eq!(alerts(&active, None, Some(days(91))), [(AlertKind::TokenOld, Some(Timestamp(NOW.0 - days(91).0)))]);
    assert_eq!(alerts(&active, None, None), [], "its age is not recorded");
    let retired = Worker { retired_at: Some(NOW), ..active.clone() };
    assert_eq!(alerts(&retired, Some(days(0)), Some(days(91))), [], "it is retired");
    let conflict = active.token_contended(NOW, "rack-7");
    assert_eq!(alerts(&conflict, None, None), [(AlertKind::TokenShared { host: "rack-7".to_owned() }, Some(NOW))]);
}

fn entry(n: u16, kind: AlertKind, since: Option<i64>) -> Alert {
    Alert { kind, subject: AlertSubject::Worker(worker_id(n), format!("w{n}")), since: since.map(Timestamp) }
}

#[test]
fn most_severe_then_oldest_alerts_come_first() {
    let full = Alert { kind: AlertKind::DiskFull, subject: AlertSubject::Server, since: Some(Timestamp(9)) };
    let rows = [
        entry(1, AlertKind::DrainLong, Some(1)),
        entry(2, AlertKind::TlsUnverified, None),
        entry(3, AlertKind::DrainOverdue, Some(5)),
        entry(4, AlertKind::TokenExpired, Some(2)),
        full,
    ];
    let list = build_list(rows.to_vec());
    assert_eq!((list.alerts[0].clone(), list.alerts[1].clone()), (rows[3].clone(), rows[4].clone()));
    assert_eq!(list.alerts[2..], [rows[2].clone(), rows[1].clone(), rows[0].clone()]);
    assert_eq!((list.alerts.len(), list.more), (rows.len(), 0));
}

#[test]
fn informational_alerts_of_many_workers_are_combined() {
    let old = |n: u16| entry(n, AlertKind::TokenOld, Some(i64::from(n)));
    assert_eq!(build_list((1..=3).map(old).collect()).alerts.len(), 3);
    let many = build_list((1..=4).rev().map(old).chain([entry(9, AlertKind::DrainLong, Some(7))]).collect());
    let subjects: Vec<_> = many.alerts.iter().map(|entry| (&entry.subject, entry.since)).collect();
    let drained = AlertSubject::Worker(worker_id(9), "w9".to_owned());
    assert_eq!(subjects, [(&AlertSubject::Workers(4), Some(Timestamp(1))), (&drained, Some(Timestamp(7)))]);
}

#[test]
fn list_is_limited_and_counts_the_rest() {
    let long = build_list((1..=25).map(|n| entry(n, AlertKind::TlsUnverified, None)).collect());
    assert_eq!((long.alerts.len(), long.more), (MAX_ALERTS, 5));
}

fn in_site(site: &str) -> Demand {
    Demand { labels: label("site", site), ..Demand::default() }
}

#[test]
fn stuck_jobs_raise_alerts_after_a_minute_by_requirements() {
    let workers = [worker(1, &[80], 1), worker(2, &[80], 1).drained(NOW, None, None)];
    let jobs = [job(1, in_site("graz")), job(2, Demand::default()), job(3, gpu_demand(2)), job(4, in_site("graz"))];
    let alerts_at = |now: Timestamp| {
        let fleet = PlannerFleet::new(&workers, &[], ConcurrencyLimits::default());
        let alerts = stuck_job_alerts(&jobs, &mut FeasibilityCache::with_budget(fleet, 1_000), now);
        alerts.into_iter().map(|entry| match entry.kind {
            AlertKind::Stuck { jobs, summary } => {
                let last = summary.and_then(|summary| summary.steps.last().cloned()).expect("a step");
                assert_eq!(last.remaining, 0);
                (entry.subject, jobs, last.requirement, entry.since)
            }
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(alerts_at(NOW).count(), 0, "pending for less than a minute");
    let graz = JobRequirement::Label { key: "site".to_owned(), wanted: "graz".to_owned() };
    let since = |n: usize| Some(jobs[n].submitted_at);
    let subject = |n: u16| AlertSubject::Job(job_id(n), "digits".to_owned());
    let expected = [(subject(1), 2, graz, since(0)), (subject(3), 1, JobRequirement::Gpus(2), since(2))];
    assert_eq!(alerts_at(NOW + Millis::from_secs(1)).collect::<Vec<_>>(), expected);
}

#[test]
fn jobs_that_need_an_admin_raise_alerts() {
    let workers = [worker(1, &[80], 1).drained(NOW, None, None), unseen_worker(2)];
    let jobs = [job(1, Demand::default())];
    let mut feasibility_cache =
        FeasibilityCache::with_budget(PlannerFleet::new(&workers, &[], ConcurrencyLimits::default()), 1_000);
    let alerts = stuck_job_alerts(&jobs, &mut feasibility_cache, NOW + HOUR);
    let [Alert { kind: AlertKind::Stuck { jobs: 1, summary: Some(summary) }, .. }] = &alerts[..] else {
        panic!("{alerts:?}")
    };
    let steps: Vec<_> = summary.steps.iter().map(|step| (&step.requirement, step.remaining)).collect();
    assert_eq!(steps, [(&JobRequirement::HasConnected, 1), (&JobRequirement::Ready, 0)]);
}

#[test]
fn many_stuck_jobs_give_few_alerts_in_bounded_time() {
    let workers: Vec<Worker> = (1..=50).map(|n| worker(n, &[80], 1)).collect();
    let demand = |n: u16| match n % 400 {
        // A worker would run these.
        0 => Demand::default(),
        other => in_site(&format!("s{other}")),
    };
    let jobs: Vec<Job> = (1..=10_000).map(|n| job(n, demand(n))).collect();
    let alert_sizes = |max_comparisons| -> (Vec<u64>, usize) {
        let mut feasibility_cache = FeasibilityCache::with_budget(
            PlannerFleet::new(&workers, &[], ConcurrencyLimits::default()),
            max_comparisons,
        );
        let job_count = |entry: Alert| match entry.kind {
            AlertKind::Stuck { jobs, .. } | AlertKind::MoreStuck { jobs } => jobs,
            other => panic!("{other:?}"),
        };
        let entries = build_list(stuck_job_alerts(&jobs, &mut feasibility_cache, NOW + HOUR)).alerts;
        (entries.into_iter().map(job_count).collect(), feasibility_cache.comparisons())
    };
    // The number of all stuck jobs. Each set of requirements is checked once; those with an alert are checked again.
    assert_eq!(alert_sizes(100_000), (vec![25, 25, 25, 25, 25, 394 * 25], 399 * 50 + 1 + 5 * 50));
    // Requirements beyond the budget raise no alert.
    assert_eq!(alert_sizes(1_000), (vec![25, 25, 25, 25, 25, 15 * 25], 20 * 50 + 5 * 50));
}

#[test]
fn remembered_time_is_that_of_the_first_alert() {
    let time = |worker: &Worker, credential: &WorkerCredential| no_alert_before(worker, credential, "0.2.0");
    let (online, plain) = (worker(1, &[80], 1), WorkerCredential::new("a"));
    let dated = |issued_at, expires_at| WorkerCredential { issued_at, expires_at, ..WorkerCredential::new("a") };
    let (never, at_once) = (Timestamp(i64::MAX), Timestamp(i64::MIN));
    assert_eq!((time(&online, &plain), time(&unseen_worker(1), &plain)), (never, never));
    assert_eq!(time(&online, &dated(Some(NOW), None)), NOW + MAX_TOKEN_AGE);
    assert_eq!(time(&online, &dated(Some(NOW), Some(NOW + DAY))), NOW + Millis(-6 * DAY.0));
    assert_eq!(time(&online.clone().drained(NOW, None, None), &plain), NOW + LONG_DRAIN);
    assert_eq!(time(&online.clone().drained(NOW, None, Some(NOW + DAY)), &plain), NOW + LONG_DRAIN);
    assert_eq!(time(&online.host_health_reported(Some("disk".to_owned())), &plain), at_once);
}

prop_compose! {
    /// A worker with a credential, some of whose times are within days of now.
    fn any_subject()(
        (connection, drain, is_local, is_retired) in (0_u8..4, 0_u8..3, prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
        has_lost_jobs in any::<bool>(),
        agent_version in prop::sample::select(vec![None, Some("0.1.9"), Some("0.2.0"), Some("?")]),
        (tls_verify, is_unhealthy) in (prop::option::of(any::<bool>()), prop::bool::weighted(0.2)),
        is_token_shared in prop::bool::weighted(0.1),
        (issued, expires, drained) in (prop::option::of(-100_i64..100), prop::option::of(-100_i64..100), -100_i64..100),
    ) -> (Worker, WorkerCredential) {
        let capability = Capability {
            agent_version: agent_version.map(str::to_owned),
            unhealthy_reason: is_unhealthy.then(|| "disk".to_owned()),
            tls_verify,
            protocol: Some(1),
            ..Capability::default()
        };
        let online = || reporting(capability.clone()).stream_opened(NOW, "s").expect("registered");
        let worker = match connection {
            0 => unseen_worker(1),
            1 => reporting(capability.clone()),
            2 => online(),
            _ => online().went_offline(NOW, OfflineCause::HeartbeatTimeout)
                .with_lost_jobs(if has_lost_jobs { vec![job_id(1)] } else { vec![] }),
        };
        let days = |number: i64| NOW + Millis(number * DAY.0);
        let worker = match drain {
            0 => worker,
            1 => worker.drained(days(drained), None, None),
            _ => worker.drained(days(drained), None, Some(days(drained) + HOUR)),
        };
        let conflict = TokenConflict { at: NOW, host: String::new() };
        let worker = Worker {
            local: is_local,
            retired_at: is_retired.then_some(NOW),
            token_conflict: is_token_shared.then_some(conflict),
            ..worker
        };
        let credential = WorkerCredential::new("a");
        (worker, WorkerCredential { issued_at: issued.map(days), expires_at: expires.map(days), ..credential })
    }
}

proptest! {
    #[test]
    fn no_alert_comes_before_the_remembered_time(
        (worker, credential) in any_subject(),
        has_job in any::<bool>(),
        days in -200_i64..200,
    ) {
        let first = no_alert_before(&worker, &credential, "0.2.0");
        let job = job_id(1);
        for now in [NOW + Millis(days * DAY.0), first + Millis(-1)] {
            let found = found_alerts(&worker, &credential, has_job.then_some(&job), now);
            prop_assert!(now >= first || found.is_empty(), "{found:?} at {now}");
        }
    }
}
