//! Each verdict, and that it agrees with the planner.

use proptest::prelude::*;

use super::*;
use crate::domain::fixtures::{LEASE, NOW, job, job_id, label, spec, unseen, wants, withholding, worker, worker_id};
use crate::domain::job::{Demand, Loss, Spec, Target};
use crate::domain::plan::{Limits, STARVING};
use crate::domain::worker::OfflineCause;

fn explained(job: &Job, others: &[Job], workers: &[Worker]) -> Explanation {
    explain(job, others, Fleet::new(workers, &[], Limits::default()), NOW)
}

fn any(n: u16) -> Job {
    job(n, Demand::default())
}

#[test]
fn verdicts_row_by_row() {
    let fit = || worker(1, &[80], 1);
    let small = || worker(2, &[24], 1);
    let large = job(1, wants(2));
    let local = |worker: Worker| Worker { local: true, ..worker };
    let at = |target| Job { spec: Spec { target, ..spec(Demand::default()) }, ..any(1) };
    let rows = [
        (any(1), vec![], Verdict::NoWorkers),
        (any(1), vec![fit()], Verdict::Fits { worker: worker_id(1) }),
        (large.clone(), vec![fit(), small()], Verdict::Never),
        (any(1), vec![fit().stopped_listening(NOW, "s")], Verdict::Busy),
        (any(1), vec![fit().drained(NOW, None, None)], Verdict::Away),
        (any(1), vec![withholding(fit(), &[0])], Verdict::Away),
        (any(1), vec![unseen(3)], Verdict::Away),
        (large.clone(), vec![fit(), unseen(3)], Verdict::Never),
        (large.clone(), vec![unseen(3)], Verdict::Away),
        (large, vec![Worker { spent: Some(NOW), ..fit() }, unseen(3)], Verdict::Away),
        (any(1), vec![fit().drained(NOW, None, None), unseen(3)], Verdict::Away),
        (at(Target::Worker), vec![local(fit()), unseen(3)], Verdict::Away),
        (at(Target::Worker), vec![local(fit())], Verdict::Never),
        (at(Target::Local), vec![], Verdict::NoLocalWorker),
        (at(Target::Local), vec![fit(), unseen(3)], Verdict::NoLocalWorker),
        (at(Target::Local), vec![local(fit()).drained(NOW, None, None)], Verdict::Away),
        (any(1), vec![fit().drained(NOW, None, None), small().stopped_listening(NOW, "s")], Verdict::Busy),
    ];
    for (n, (job, workers, verdict)) in rows.into_iter().enumerate() {
        assert_eq!(explained(&job, &[], &workers).verdict, verdict, "row {n}");
    }
}

#[test]
fn others_come_first() {
    let workers = [worker(1, &[80], 1)];
    let waits = explained(&any(2), &[any(1), any(2)], &workers);
    assert_eq!(waits.verdict, Verdict::Busy);
    assert_eq!(waits.workers[0].blockers, [Blocker::Occupied { max_jobs: 1 }]);
    let fits = explained(&any(1), &[any(1), any(2)], &[worker(1, &[80], 1), worker(2, &[], 1)]);
    assert_eq!(fits.verdict, Verdict::Fits { worker: worker_id(1) });
    assert_eq!(fits.workers[0].blockers, [], "who takes it has nothing against it");
    assert_eq!(fits.workers[1].blockers, [Blocker::Occupied { max_jobs: 1 }], "the next in line takes the other");
}

#[test]
fn what_has_been_offered_or_ended_does_not_wait() {
    let offered = any(1).offered(NOW, worker_id(1), vec![], NOW).expect("it waits");
    let ended = any(2).cancelled(NOW).expect("it waits");
    for job in [offered, ended] {
        assert_eq!(
            explained(&job, &[], &[worker(1, &[80], 1)]),
            Explanation { verdict: Verdict::NotWaiting, summary: None, workers: vec![] }
        );
    }
}

#[test]
fn only_who_takes_the_job_has_nothing_against_it() {
    let workers = [worker(1, &[80], 1), worker(2, &[], 1).drained(NOW, None, None)];
    let fits = explained(&any(1), &[], &workers);
    assert_eq!(fits.workers[0].blockers, []);
    assert_eq!(fits.workers[1].blockers, [Blocker::Draining]);
}

#[test]
fn a_lost_job_waits_out_its_back_off() {
    let lost = any(1).offered(NOW, worker_id(9), vec![], NOW).expect("it waits").lost(NOW, Loss::WorkerOffline, LEASE);
    let workers = [worker(1, &[80], 1)];
    assert_eq!(explained(&lost, &[], &workers).verdict, Verdict::BackOff { until: Timestamp(NOW.0 + 10_000) });
    let fleet = || Fleet::new(&workers, &[], Limits::default());
    let nobody = explain(&lost, &[], Fleet::new(&[], &[], Limits::default()), Timestamp(NOW.0 + 10_000));
    assert_eq!(nobody.verdict, Verdict::NoWorkers, "the wait is over, and still nobody is there");
    let later = explain(&lost, &[], fleet(), Timestamp(NOW.0 + 10_000));
    assert_eq!(later.verdict, Verdict::Fits { worker: worker_id(1) });
}

#[test]
fn limits_are_named() {
    let workers = [worker(1, &[80], 1)];
    let fleet = Fleet::new(&workers, &[], Limits { jobs: Some(0), jobs_per_user: None });
    assert_eq!(explain(&any(1), &[], fleet, NOW).verdict, Verdict::Limited(Limited::InAll(0)));
}

#[test]
fn a_worker_that_is_kept_for_another_says_so() {
    let workers = [worker(1, &[80, 80], 2)];
    let holder = job(8, wants(1)).offered(NOW, worker_id(1), vec!["GPU-1-0".to_owned()], NOW).expect("it waits");
    let starving = Job { submitted_at: Timestamp(NOW.0 - STARVING.0), ..job(1, wants(2)) };
    let leased = [holder];
    let explanation = explain(&any(2), &[starving], Fleet::new(&workers, &leased, Limits::default()), NOW);
    assert_eq!(explanation.verdict, Verdict::Busy);
    assert_eq!(explanation.workers[0].blockers, [Blocker::Reserved { job: job_id(1) }]);
}

#[test]
fn the_nearest_worker_comes_first() {
    let elsewhere = Worker { labels: label("rack", "b"), ..worker(1, &[], 1) };
    let workers = [elsewhere, worker(2, &[80], 1).drained(NOW, None, None), worker(3, &[80], 1)];
    let demand = Demand { labels: label("rack", "a"), ..wants(1) };
    let workers = [workers[0].clone(), Worker { labels: label("rack", "a"), ..workers[1].clone() }, workers[2].clone()];
    let explanation = explained(&job(1, demand), &[], &workers);
    let names: Vec<&str> = explanation.workers.iter().map(|answer| answer.name.as_str()).collect();
    assert_eq!(names, ["w2", "w3", "w1"]);
    assert_eq!(explanation.workers[0].blockers, [Blocker::Draining]);
    assert_eq!(explanation.workers[2].blockers.len(), 2);
}

#[test]
fn a_worker_that_has_never_connected_is_the_last_to_be_near() {
    let in_graz = |worker: Worker| Worker { labels: label("site", "graz"), ..worker };
    let workers = [in_graz(unseen(1)), worker(2, &[80], 1), in_graz(worker(3, &[80, 80], 1))];
    let demand = Demand { labels: label("site", "graz"), ..wants(16) };
    let explanation = explained(&job(1, demand), &[], &workers);
    assert_eq!(explanation.verdict, Verdict::Never);
    let names: Vec<&str> = explanation.workers.iter().map(|answer| answer.name.as_str()).collect();
    assert_eq!(names, ["w3", "w2", "w1"]);
    assert_eq!(explanation.workers[2].blockers, [Blocker::NeverConnected]);
}

/// How many are left after each step, of how many.
fn counted(summary: &Summary) -> (usize, Vec<(Ask, usize)>) {
    (summary.workers, summary.steps.iter().map(|step| (step.ask.clone(), step.left)).collect())
}

#[test]
fn a_summary_says_where_nobody_is_left() {
    let site = |worker: Worker, site: &str| Worker { labels: label("site", site), ..worker };
    let graz = || Ask::Label { key: "site".to_owned(), wanted: "graz".to_owned() };
    let fleet = [
        site(worker(1, &[80, 80], 1), "graz"),
        site(worker(2, &[40], 1), "graz").drained(NOW, None, None),
        site(unseen(3), "graz"),
        site(worker(4, &[80; 16], 1), "wien"),
        unseen(5),
    ];
    let in_graz = |demand: Demand| Demand { labels: label("site", "graz"), ..demand };
    let vram = |gb: f64| Demand { min_vram_gb: Some(gb), ..Demand::default() };
    let known = || vec![(graz(), 3), (Ask::HasConnected, 2)];
    let rows = [
        (in_graz(wants(16)), [known(), vec![(Ask::Gpus(16), 0)]].concat()),
        (in_graz(vram(60.0)), [known(), vec![(Ask::Vram { gb: 60.0, gpus: 1 }, 1), (Ask::Free, 1)]].concat()),
        (in_graz(Demand::default()), [known(), vec![(Ask::Ready, 1), (Ask::Free, 1)]].concat()),
        (
            Demand { accelerator: Some("rocm".to_owned()), ..Demand::default() },
            vec![(Ask::HasConnected, 3), (Ask::Accelerator("rocm".to_owned()), 0)],
        ),
        (
            Demand { labels: label("site", "linz"), ..wants(1) },
            vec![(Ask::Label { key: "site".to_owned(), wanted: "linz".to_owned() }, 0)],
        ),
    ];
    for (demand, steps) in rows {
        let summary = explained(&job(1, demand), &[], &fleet).summary.expect("there are workers");
        assert_eq!(counted(&summary), (5, steps));
    }
    assert_eq!(explained(&any(1), &[], &[]).summary, None);
    let busy = explained(&any(2), &[any(1)], &fleet[..1]).summary.expect("there is one");
    assert_eq!(counted(&busy), (1, vec![(Ask::Free, 0)]));
}

#[test]
fn what_asks_for_the_same_is_judged_once_and_not_more_than_was_allowed() {
    let workers: Vec<Worker> = (1..=4).map(|n| worker(n, &[80], 1)).collect();
    let jobs: Vec<Job> = (1..=100).map(|n| job(n, wants(2 + u32::from(n % 2)))).collect();
    let mut outlooks = Outlooks::within(Fleet::new(&workers, &[], Limits::default()), 1_000);
    assert!(jobs.iter().all(|job| outlooks.of(job) == Some(Outlook::Never)));
    assert_eq!(outlooks.compared(), 2 * 4, "two demands, four workers");
    let mut outlooks = Outlooks::within(Fleet::new(&workers, &[], Limits::default()), 1);
    assert_eq!([outlooks.of(&jobs[0]), outlooks.of(&jobs[1])], [Some(Outlook::Never), None]);
    let takes_it = any(1);
    let mut outlooks = Outlooks::within(Fleet::new(&workers, &[], Limits::default()), 1_000);
    assert_eq!((outlooks.of(&takes_it), outlooks.compared()), (Some(Outlook::Busy), 1));
}

prop_compose! {
    fn any_worker(n: u16)(
        link in 0_u8..4,
        sizes in prop::collection::vec(prop_oneof![Just(24_u32), Just(80)], 0..4),
        site in prop::option::of(prop_oneof![Just("graz"), Just("wien")]),
        (drains, is_spent, local) in (prop::bool::weighted(0.2), prop::bool::weighted(0.1), prop::bool::weighted(0.2)),
    ) -> Worker {
        let there = worker(n, &sizes, 1);
        let worker = match link {
            0 => unseen(n),
            1 => there.gone(NOW, OfflineCause::Silent),
            _ => there,
        };
        let worker = if drains { worker.drained(NOW, None, None) } else { worker };
        let spent = (is_spent && link > 0).then_some(NOW);
        Worker { labels: site.map(|site| label("site", site)).unwrap_or_default(), spent, local, ..worker }
    }
}

prop_compose! {
    fn any_job(n: u16)(
        target in prop_oneof![3 => Just(Target::Auto), 1 => Just(Target::Worker), 1 => Just(Target::Local)],
        gpu_count in prop::option::of(1_u32..5),
        min_vram_gb in prop::option::of(prop_oneof![Just(24.0), Just(60.0)]),
        site in prop::option::of(prop_oneof![Just("graz"), Just("wien"), Just("linz")]),
    ) -> Job {
        let labels = site.map(|site| label("site", site)).unwrap_or_default();
        let demand = Demand { labels, gpu_count, min_vram_gb, ..Demand::default() };
        Job { spec: Spec { target, ..spec(demand) }, ..any(n) }
    }
}

proptest! {
    #[test]
    fn planner_verdict_outlook_and_summary_agree(
        workers in (any_worker(1), any_worker(2), any_worker(3), any_worker(4)),
        jobs in (any_job(1), any_job(2), any_job(3)),
        count in 0_usize..5,
    ) {
        let workers = &[workers.0, workers.1, workers.2, workers.3][..count];
        let jobs = [jobs.0, jobs.1, jobs.2];
        let fleet = || Fleet::new(workers, &[], Limits::default());
        let planned = plan(&jobs, fleet(), NOW).assignments;
        let mut outlooks = Outlooks::within(fleet(), 1_000);
        for job in &jobs {
            let taken = planned.iter().find(|assignment| assignment.job == job.id);
            let explanation = explain(job, &jobs, fleet(), NOW);
            let outlook = match &explanation.verdict {
                Verdict::Fits { .. } | Verdict::Busy => Outlook::Busy,
                Verdict::Away => Outlook::Away,
                Verdict::Never => Outlook::Never,
                Verdict::NoLocalWorker => Outlook::NoLocalWorker,
                Verdict::NoWorkers => Outlook::NoWorkers,
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
            prop_assert_eq!(outlooks.of(job), Some(outlook));
            let fits = matches!(explanation.verdict, Verdict::Fits { .. });
            prop_assert_eq!(taken.is_some(), fits, "{:?}", explanation.verdict);
            let Some(summary) = &explanation.summary else {
                prop_assert_eq!(count, 0);
                continue;
            };
            // Time alone is in the way of those that are left in the end, and of nobody else.
            let last = summary.steps.last().expect("a step");
            prop_assert_eq!(outlook == Outlook::Busy, last.ask == Ask::Free, "{:?}", summary);
            prop_assert_eq!(taken.is_some(), last.ask == Ask::Free && last.left > 0);
            prop_assert!(summary.steps.iter().map(|step| step.left).is_sorted_by(|a, b| a >= b));
            for answer in &explanation.workers {
                let matches = !answer.blockers.iter().any(Blocker::is_mismatch);
                prop_assert!(!matches || !answer.blockers.contains(&Blocker::NeverConnected));
                prop_assert!(!matches || outlook <= Outlook::Away, "{} matches", answer.name);
            }
        }
    }
}
