//! What is told of whom, and in which order.

use super::*;
use crate::domain::capability::Capability;
use crate::domain::explain::{Ask, Outlooks};
use crate::domain::fixtures::{NOW, job, job_id, label, unseen, wants, withholding, worker, worker_id};
use crate::domain::gpu::Withheld;
use crate::domain::job::{Demand, Job};
use crate::domain::plan::{Fleet, Limits};
use crate::domain::worker::{Kind, OfflineCause};

const HOUR: Millis = Millis::seconds(3_600);
const DAY: Millis = Millis::seconds(86_400);

fn told(worker: &Worker, credential: &Credential, job: Option<&JobId>, now: Timestamp) -> Vec<Found> {
    let entries = of_worker(Subject { worker, credential, job }, "0.2.0", now);
    let about = About::Worker(worker.id.clone(), worker.name.clone());
    assert!(entries.iter().all(|entry| entry.about == about), "{entries:?}");
    entries.into_iter().map(|entry| (entry.concern, entry.since)).collect()
}

fn of(worker: &Worker, job: Option<&JobId>, now: Timestamp) -> Vec<Found> {
    told(worker, &Credential::of("a"), job, now)
}

/// A worker whose agent reported this.
fn reporting(capability: Capability) -> Worker {
    unseen(1).registered(NOW, capability, Kind::Persistent)
}

#[test]
fn a_worker_that_does_what_it_is_there_for_is_not_told_of() {
    let job = job_id(1);
    assert_eq!(of(&worker(1, &[80], 1), Some(&job), NOW + DAY), []);
    assert_eq!(of(&unseen(1), None, NOW + DAY), []);
}

#[test]
fn one_that_went_is_told_of_if_a_job_was_on_it() {
    let (gone, job) = (worker(1, &[80], 1).gone(NOW, OfflineCause::Silent), job_id(1));
    assert_eq!(of(&gone, Some(&job), NOW + HOUR), [(Concern::Offline { job }, Some(NOW))]);
    assert_eq!(of(&gone, None, NOW + HOUR), []);
}

#[test]
fn a_drain_is_told_of_when_it_is_long_or_over_its_deadline() {
    let (deadline, job) = (NOW + Millis::seconds(60), job_id(1));
    let open = worker(1, &[80], 1).drained(NOW, None, None);
    let bounded = worker(1, &[80], 1).drained(NOW, None, Some(deadline));
    let (after, late) = (NOW + Millis::seconds(61), NOW + HOUR + Millis::seconds(1));
    let long = || vec![(Concern::DrainLong, Some(NOW))];
    assert_eq!((of(&open, None, NOW + HOUR), of(&open, None, late)), (vec![], long()));
    assert_eq!(of(&bounded, Some(&job), after), [(Concern::DrainOverdue, Some(deadline))]);
    assert_eq!((of(&bounded, None, after), of(&bounded, None, late)), (vec![], long()));
    let away = open.gone(NOW, OfflineCause::Disconnected);
    assert_eq!(of(&away, None, late), [], "nobody waits for it");
}

#[test]
fn an_error_of_a_gpu_is_told_and_another_s_use_of_one_is_not() {
    let broken = withholding(worker(1, &[80, 80, 80], 1), &[1, 2]);
    let concern = Concern::GpusWithheld { gpus: 2, first: 1, detail: "XID 79".to_owned() };
    assert_eq!(of(&broken, None, NOW), [(concern, None)]);
    let mut gpus = broken.capability().expect("there").gpus.clone();
    for gpu in &mut gpus[1..] {
        gpu.withheld = Some(Withheld { reason: WithheldReason::InUse, detail: "used by process 7".to_owned() });
    }
    assert_eq!(of(&reporting(Capability { gpus, ..Capability::default() }), None, NOW), []);
}

#[test]
fn what_an_agent_reports_counts_while_it_is_there() {
    let capability = Capability {
        unfit: Some("no room".to_owned()),
        tls_verify: Some(false),
        agent_version: Some("0.1.9".to_owned()),
        protocol: Some(1),
        ..Capability::default()
    };
    let there = reporting(capability.clone());
    let unfit = Concern::Unfit { why: "no room".to_owned() };
    let behind = Concern::AgentBehind { version: "0.1.9".to_owned() };
    assert_eq!(of(&there, None, NOW), [unfit, Concern::Unverified, behind].map(|concern| (concern, None)));
    assert_eq!(of(&there.gone(NOW, OfflineCause::Silent), None, NOW), []);
    let older = reporting(Capability { protocol: None, unfit: None, tls_verify: None, ..capability });
    assert_eq!(of(&older, None, NOW), [], "its version is that of another program");
}

#[test]
fn versions_are_compared_as_numbers() {
    for (version, newest, expected) in [
        ("0.2.0", "0.2.0", false),
        ("0.9.0", "0.10.0", true),
        ("0.10.0", "0.9.0", false),
        ("0.1.0-dev+7", "0.2.0", true),
        ("one", "0.2.0", false),
        ("", "0.2.0", false),
    ] {
        assert_eq!(is_behind(version, newest), expected, "{version} {newest}");
    }
}

#[test]
fn a_token_is_told_of_when_it_has_ended_soon_ends_or_is_old() {
    let key = |ends: Option<Millis>, age: Option<Millis>| Credential {
        made_at: age.map(|age| Timestamp(NOW.0 - age.0)),
        expires_at: ends.map(|span| NOW + span),
        ..Credential::of("a")
    };
    let days = |n: i64| Millis(DAY.0 * n);
    let tell = |worker: &Worker, ends, age| told(worker, &key(ends, age), None, NOW);
    let there = worker(1, &[], 1);
    assert_eq!(tell(&there, Some(days(0)), None), [(Concern::TokenEnded, Some(NOW))]);
    assert_eq!(tell(&there, Some(days(6)), Some(days(91))), [(Concern::TokenEnds { at: NOW + days(6) }, None)]);
    assert_eq!(tell(&there, Some(days(7)), Some(days(90))), []);
    assert_eq!(tell(&there, None, Some(days(91))), [(Concern::TokenOld, Some(Timestamp(NOW.0 - days(91).0)))]);
    assert_eq!(tell(&there, None, None), [], "nobody has written down how old it is");
    let spent = Worker { spent: Some(NOW), ..there.clone() };
    assert_eq!(tell(&spent, Some(days(0)), Some(days(91))), [], "its work is done");
    let conflict = there.contended(NOW, "rack-7");
    assert_eq!(tell(&conflict, None, None), [(Concern::TokenShared { host: "rack-7".to_owned() }, Some(NOW))]);
}

fn entry(n: u16, concern: Concern, since: Option<i64>) -> Entry {
    Entry { concern, about: About::Worker(worker_id(n), format!("w{n}")), since: since.map(Timestamp) }
}

#[test]
fn the_most_urgent_comes_first_and_of_those_the_oldest() {
    let full = Entry { concern: Concern::DiskFull, about: About::Server, since: Some(Timestamp(9)) };
    let rows = [
        entry(1, Concern::DrainLong, Some(1)),
        entry(2, Concern::Unverified, None),
        entry(3, Concern::DrainOverdue, Some(5)),
        entry(4, Concern::TokenEnded, Some(2)),
        full,
    ];
    let list = list(rows.to_vec());
    assert_eq!((list.entries[0].clone(), list.entries[1].clone()), (rows[3].clone(), rows[4].clone()));
    assert_eq!(list.entries[2..], [rows[2].clone(), rows[1].clone(), rows[0].clone()]);
    assert_eq!((list.entries.len(), list.more), (rows.len(), 0));
}

#[test]
fn what_is_only_worth_knowing_of_many_is_one_entry() {
    let old = |n: u16| entry(n, Concern::TokenOld, Some(i64::from(n)));
    assert_eq!(list((1..=3).map(old).collect()).entries.len(), 3);
    let many = list((1..=4).rev().map(old).chain([entry(9, Concern::DrainLong, Some(7))]).collect());
    let about: Vec<_> = many.entries.iter().map(|entry| (&entry.about, entry.since)).collect();
    let drained = About::Worker(worker_id(9), "w9".to_owned());
    assert_eq!(about, [(&About::Workers(4), Some(Timestamp(1))), (&drained, Some(Timestamp(7)))]);
}

#[test]
fn the_list_is_bounded_and_says_how_much_is_left_out() {
    let long = list((1..=25).map(|n| entry(n, Concern::Unverified, None)).collect());
    assert_eq!((long.entries.len(), long.more), (MOST, 5));
}

fn in_site(site: &str) -> Demand {
    Demand { labels: label("site", site), ..Demand::default() }
}

#[test]
fn jobs_that_nobody_takes_are_told_after_a_minute_by_what_they_ask_for() {
    let workers = [worker(1, &[80], 1), worker(2, &[80], 1).drained(NOW, None, None)];
    let jobs = [job(1, in_site("graz")), job(2, Demand::default()), job(3, wants(2)), job(4, in_site("graz"))];
    let at = |now: Timestamp| {
        let fleet = Fleet::new(&workers, &[], Limits::default());
        let told = stuck(&jobs, &mut Outlooks::within(fleet, 1_000), now);
        told.into_iter().map(|entry| match entry.concern {
            Concern::Stuck { jobs, summary } => {
                let last = summary.and_then(|summary| summary.steps.last().cloned()).expect("a step");
                assert_eq!(last.left, 0);
                (entry.about, jobs, last.ask, entry.since)
            }
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(at(NOW).count(), 0, "they have waited for less than a minute");
    let graz = Ask::Label { key: "site".to_owned(), wanted: "graz".to_owned() };
    let since = |n: usize| Some(jobs[n].submitted_at);
    let about = |n: u16| About::Job(job_id(n), "digits".to_owned());
    let both = [(about(1), 2, graz, since(0)), (about(3), 1, Ask::Gpus(2), since(2))];
    assert_eq!(at(NOW + Millis::seconds(1)).collect::<Vec<_>>(), both);
}

#[test]
fn jobs_that_wait_for_somebody_who_sees_to_a_worker_are_told_too() {
    let workers = [worker(1, &[80], 1).drained(NOW, None, None), unseen(2)];
    let jobs = [job(1, Demand::default())];
    let mut outlooks = Outlooks::within(Fleet::new(&workers, &[], Limits::default()), 1_000);
    let told = stuck(&jobs, &mut outlooks, NOW + HOUR);
    let [Entry { concern: Concern::Stuck { jobs: 1, summary: Some(summary) }, .. }] = &told[..] else {
        panic!("{told:?}")
    };
    let steps: Vec<_> = summary.steps.iter().map(|step| (&step.ask, step.left)).collect();
    assert_eq!(steps, [(&Ask::HasConnected, 1), (&Ask::Ready, 0)]);
}

#[test]
fn ten_thousand_jobs_of_four_hundred_demands_are_a_few_entries_and_bounded_work() {
    let workers: Vec<Worker> = (1..=50).map(|n| worker(n, &[80], 1)).collect();
    let demand = |n: u16| match n % 400 {
        // These a worker takes.
        0 => Demand::default(),
        other => in_site(&format!("s{other}")),
    };
    let jobs: Vec<Job> = (1..=10_000).map(|n| job(n, demand(n))).collect();
    let told = |most| -> (Vec<u64>, usize) {
        let mut outlooks = Outlooks::within(Fleet::new(&workers, &[], Limits::default()), most);
        let number = |entry: Entry| match entry.concern {
            Concern::Stuck { jobs, .. } | Concern::MoreStuck { jobs } => jobs,
            other => panic!("{other:?}"),
        };
        let entries = list(stuck(&jobs, &mut outlooks, NOW + HOUR)).entries;
        (entries.into_iter().map(number).collect(), outlooks.compared())
    };
    // The sum is that of all that nobody takes. One of each demand is judged, and those that are told once more.
    assert_eq!(told(100_000), (vec![25, 25, 25, 25, 25, 394 * 25], 399 * 50 + 1 + 5 * 50));
    // What is not judged is not told.
    assert_eq!(told(1_000), (vec![25, 25, 25, 25, 25, 15 * 25], 20 * 50 + 5 * 50));
}
