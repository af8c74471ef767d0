//! Each verdict, and that it agrees with the planner.

use super::*;
use crate::domain::fixtures::{LEASE, NOW, job, job_id, label, unseen, wants, withholding, worker, worker_id};
use crate::domain::job::{Demand, Loss};
use crate::domain::plan::{Limits, STARVING};

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
    let rows = [
        (any(1), vec![], Verdict::NoWorkers),
        (any(1), vec![fit()], Verdict::Fits { worker: worker_id(1) }),
        (large.clone(), vec![fit(), small()], Verdict::Never),
        (any(1), vec![fit().stopped_listening(NOW, "s")], Verdict::Busy),
        (any(1), vec![fit().drained(NOW, None, None)], Verdict::Away),
        (any(1), vec![withholding(fit(), &[0])], Verdict::Away),
        (any(1), vec![unseen(3)], Verdict::Away),
        (large, vec![fit(), unseen(3)], Verdict::Away),
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
            Explanation { verdict: Verdict::NotWaiting, workers: vec![] }
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
