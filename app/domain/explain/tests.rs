//! Tests of each result, and of its agreement with the planner.

use proptest::prelude::*;

use super::*;
use crate::domain::fixtures::{
    LEASE_DURATION, NOW, WORKER_SILENT, gpu_demand, job, job_id, label, spec, unseen_worker, with_unavailable_gpus,
    worker, worker_id,
};
use crate::domain::job::{Demand, JobSpec, JobTarget};
use crate::domain::plan::{ConcurrencyLimits, JobQueue, STARVATION_AFTER};
use crate::domain::worker::OfflineCause;

fn explained<'a>(job: &'a Job, others: &'a [Job], workers: &'a [Worker]) -> Explanation<'a> {
    explain(job, others, PlannerFleet::new(workers, &[], ConcurrencyLimits::default()), NOW)
}

fn any_gpu_job(n: u16) -> Job {
    job(n, Demand::default())
}

#[test]
fn verdict_table() {
    let fit = || worker(1, &[80], 1);
    let small = || worker(2, &[24], 1);
    let large = job(1, gpu_demand(2));
    let local = |worker: Worker| Worker { local: true, ..worker };
    let with_target = |target| Job { spec: JobSpec { target, ..spec(Demand::default()) }, ..any_gpu_job(1) };
    let rows = [
        (any_gpu_job(1), vec![], ExplainVerdict::NoWorkers),
        (any_gpu_job(1), vec![fit()], ExplainVerdict::Fits { worker: worker_id(1) }),
        (large.clone(), vec![fit(), small()], ExplainVerdict::Unsatisfiable),
        (any_gpu_job(1), vec![fit().stream_closed(NOW, "s")], ExplainVerdict::Busy),
        (any_gpu_job(1), vec![fit().drained(NOW, None, None)], ExplainVerdict::WorkerUnavailable),
        (any_gpu_job(1), vec![with_unavailable_gpus(fit(), &[0])], ExplainVerdict::WorkerUnavailable),
        (any_gpu_job(1), vec![unseen_worker(3)], ExplainVerdict::WorkerUnavailable),
        (large.clone(), vec![fit(), unseen_worker(3)], ExplainVerdict::Unsatisfiable),
        (large.clone(), vec![unseen_worker(3)], ExplainVerdict::WorkerUnavailable),
        (large, vec![Worker { retired_at: Some(NOW), ..fit() }, unseen_worker(3)], ExplainVerdict::WorkerUnavailable),
        (any_gpu_job(1), vec![fit().drained(NOW, None, None), unseen_worker(3)], ExplainVerdict::WorkerUnavailable),
        (with_target(JobTarget::Worker), vec![local(fit()), unseen_worker(3)], ExplainVerdict::WorkerUnavailable),
        (with_target(JobTarget::Worker), vec![local(fit())], ExplainVerdict::Unsatisfiable),
        (with_target(JobTarget::Local), vec![], ExplainVerdict::NoLocalWorker),
        (with_target(JobTarget::Local), vec![fit(), unseen_worker(3)], ExplainVerdict::NoLocalWorker),
        (with_target(JobTarget::Local), vec![local(fit()).drained(NOW, None, None)], ExplainVerdict::WorkerUnavailable),
        (any_gpu_job(1), vec![fit().drained(NOW, None, None), small().stream_closed(NOW, "s")], ExplainVerdict::Busy),
    ];
    for (n, (job, workers, verdict)) in rows.into_iter().enumerate() {
        assert_eq!(explained(&job, &[], &workers).verdict, verdict, "row {n}");
    }
}

#[test]
fn earlier_jobs_are_considered_first() {
    let workers = [worker(1, &[80], 1)];
    let jobs = [any_gpu_job(1), any_gpu_job(2)];
    let waits = explained(&jobs[1], &jobs, &workers);
    assert_eq!(waits.verdict, ExplainVerdict::Busy);
    assert_eq!(waits.workers[0].blockers, [Blocker::AtCapacity { max_jobs: 1 }]);
    let workers = [worker(1, &[80], 1), worker(2, &[], 1)];
    let fits = explained(&jobs[0], &jobs, &workers);
    assert_eq!(fits.verdict, ExplainVerdict::Fits { worker: worker_id(1) });
    assert_eq!(fits.workers[0].blockers, [], "the assigned worker has no blockers");
    assert_eq!(fits.workers[1].blockers, [Blocker::AtCapacity { max_jobs: 1 }], "the next job gets the other worker");
}

#[test]
fn offered_or_ended_job_is_not_pending() {
    let offered = any_gpu_job(1).offered(NOW, worker_id(1), vec![], NOW).expect("queued");
    let ended = any_gpu_job(2).cancelled(NOW).expect("queued");
    for job in [offered, ended] {
        assert_eq!(
            explained(&job, &[], &[worker(1, &[80], 1)]),
            Explanation { verdict: ExplainVerdict::NotWaiting, summary: None, workers: vec![], unlisted: vec![] }
        );
    }
}

#[test]
fn only_the_assigned_worker_has_no_blockers() {
    let workers = [worker(1, &[80], 1), worker(2, &[], 1).drained(NOW, None, None)];
    let job = any_gpu_job(1);
    let fits = explained(&job, &[], &workers);
    assert_eq!(fits.workers[0].blockers, []);
    assert_eq!(fits.workers[1].blockers, [Blocker::Draining]);
}

#[test]
fn lost_job_waits_for_its_back_off() {
    let lost = any_gpu_job(1).offered(NOW, worker_id(9), vec![], NOW).expect("queued").lost(
        NOW,
        WORKER_SILENT,
        LEASE_DURATION,
    );
    let workers = [worker(1, &[80], 1)];
    assert_eq!(explained(&lost, &[], &workers).verdict, ExplainVerdict::BackOff { until: Timestamp(NOW.0 + 10_000) });
    let fleet = || PlannerFleet::new(&workers, &[], ConcurrencyLimits::default());
    let explanation =
        explain(&lost, &[], PlannerFleet::new(&[], &[], ConcurrencyLimits::default()), Timestamp(NOW.0 + 10_000));
    assert_eq!(explanation.verdict, ExplainVerdict::NoWorkers, "the back-off is over, but there are no workers");
    let later = explain(&lost, &[], fleet(), Timestamp(NOW.0 + 10_000));
    assert_eq!(later.verdict, ExplainVerdict::Fits { worker: worker_id(1) });
}

#[test]
fn reached_limit_is_named() {
    let workers = [worker(1, &[80], 1)];
    let fleet = PlannerFleet::new(&workers, &[], ConcurrencyLimits { jobs: Some(0), jobs_per_user: None });
    assert_eq!(explain(&any_gpu_job(1), &[], fleet, NOW).verdict, ExplainVerdict::LimitReached(ReachedLimit::Total(0)));
}

#[test]
fn reserved_worker_is_a_blocker() {
    let workers = [worker(1, &[80, 80], 2)];
    let holder = job(8, gpu_demand(1)).offered(NOW, worker_id(1), vec!["GPU-1-0".to_owned()], NOW).expect("queued");
    let starving = [Job { submitted_at: Timestamp(NOW.0 - STARVATION_AFTER.0), ..job(1, gpu_demand(2)) }];
    let (leased, small) = ([holder], any_gpu_job(2));
    let explanation =
        explain(&small, &starving, PlannerFleet::new(&workers, &leased, ConcurrencyLimits::default()), NOW);
    assert_eq!(explanation.verdict, ExplainVerdict::Busy);
    assert_eq!(explanation.workers[0].blockers, [Blocker::Reserved { job: &job_id(1) }]);
}

#[test]
fn closest_worker_comes_first() {
    let elsewhere = Worker { labels: label("rack", "b"), ..worker(1, &[], 1) };
    let workers = [elsewhere, worker(2, &[80], 1).drained(NOW, None, None), worker(3, &[80], 1)];
    let demand = Demand { labels: label("rack", "a"), ..gpu_demand(1) };
    let workers = [workers[0].clone(), Worker { labels: label("rack", "a"), ..workers[1].clone() }, workers[2].clone()];
    let job = job(1, demand);
    let explanation = explained(&job, &[], &workers);
    let names: Vec<&str> = explanation.workers.iter().map(|worker| worker.name).collect();
    assert_eq!(names, ["w2", "w3", "w1"]);
    assert_eq!(explanation.workers[0].blockers, [Blocker::Draining]);
    assert_eq!(explanation.workers[2].blockers.len(), 2);
}

#[test]
fn never_connected_worker_comes_last() {
    let in_graz = |worker: Worker| Worker { labels: label("site", "graz"), ..worker };
    let workers = [in_graz(unseen_worker(1)), worker(2, &[80], 1), in_graz(worker(3, &[80, 80], 1))];
    let demand = Demand { labels: label("site", "graz"), ..gpu_demand(16) };
    let job = job(1, demand);
    let explanation = explained(&job, &[], &workers);
    assert_eq!(explanation.verdict, ExplainVerdict::Unsatisfiable);
    let names: Vec<&str> = explanation.workers.iter().map(|worker| worker.name).collect();
    assert_eq!(names, ["w3", "w2", "w1"]);
    assert_eq!(explanation.workers[2].blockers, [Blocker::NeverConnected]);
}

/// The number of workers left after each step, and their total.
fn summary_counts(summary: &FitSummary) -> (usize, Vec<(JobRequirement, usize)>) {
    (summary.workers, summary.steps.iter().map(|step| (step.requirement.clone(), step.remaining)).collect())
}

#[test]
fn summary_ends_where_no_worker_is_left() {
    let site = |worker: Worker, site: &str| Worker { labels: label("site", site), ..worker };
    let graz = || JobRequirement::Label { key: "site".to_owned(), wanted: "graz".to_owned() };
    let fleet = [
        site(worker(1, &[80, 80], 1), "graz"),
        site(worker(2, &[40], 1), "graz").drained(NOW, None, None),
        site(unseen_worker(3), "graz"),
        site(worker(4, &[80; 16], 1), "wien"),
        unseen_worker(5),
    ];
    let in_graz = |demand: Demand| Demand { labels: label("site", "graz"), ..demand };
    let vram = |gb: f64| Demand { min_vram_gb: Some(gb), ..Demand::default() };
    let known = || vec![(graz(), 3), (JobRequirement::HasConnected, 2)];
    let rows = [
        (in_graz(gpu_demand(16)), [known(), vec![(JobRequirement::Gpus(16), 0)]].concat()),
        (
            in_graz(vram(60.0)),
            [known(), vec![(JobRequirement::Vram { gb: 60.0, gpus: 1 }, 1), (JobRequirement::Free, 1)]].concat(),
        ),
        (in_graz(Demand::default()), [known(), vec![(JobRequirement::Ready, 1), (JobRequirement::Free, 1)]].concat()),
        (
            Demand { accelerator: Some("rocm".to_owned()), ..Demand::default() },
            vec![(JobRequirement::HasConnected, 3), (JobRequirement::Accelerator("rocm".to_owned()), 0)],
        ),
        (
            Demand { labels: label("site", "linz"), ..gpu_demand(1) },
            vec![(JobRequirement::Label { key: "site".to_owned(), wanted: "linz".to_owned() }, 0)],
        ),
    ];
    for (demand, steps) in rows {
        let summary = explained(&job(1, demand), &[], &fleet).summary.expect("there are workers");
        assert_eq!(summary_counts(&summary), (5, steps));
    }
    assert_eq!(explained(&any_gpu_job(1), &[], &[]).summary, None);
    let busy = explained(&any_gpu_job(2), &[any_gpu_job(1)], &fleet[..1]).summary.expect("there is one");
    assert_eq!(summary_counts(&busy), (1, vec![(JobRequirement::Free, 0)]));
}

#[test]
fn equal_requirements_are_checked_once_within_the_budget() {
    let workers: Vec<Worker> = (1..=4).map(|n| worker(n, &[80], 1)).collect();
    let jobs: Vec<Job> = (1..=100).map(|n| job(n, gpu_demand(2 + u32::from(n % 2)))).collect();
    let mut feasibility_cache =
        FeasibilityCache::with_budget(PlannerFleet::new(&workers, &[], ConcurrencyLimits::default()), 1_000);
    assert!(jobs.iter().all(|job| feasibility_cache.feasibility(job) == Some(Feasibility::Unsatisfiable)));
    assert_eq!(feasibility_cache.comparisons(), 2 * 4, "two sets of requirements, four workers");
    let mut feasibility_cache =
        FeasibilityCache::with_budget(PlannerFleet::new(&workers, &[], ConcurrencyLimits::default()), 1);
    assert_eq!(
        [feasibility_cache.feasibility(&jobs[0]), feasibility_cache.feasibility(&jobs[1])],
        [Some(Feasibility::Unsatisfiable), None]
    );
    let matching = any_gpu_job(1);
    let mut feasibility_cache =
        FeasibilityCache::with_budget(PlannerFleet::new(&workers, &[], ConcurrencyLimits::default()), 1_000);
    assert_eq!(
        (feasibility_cache.feasibility(&matching), feasibility_cache.comparisons()),
        (Some(Feasibility::Busy), 1)
    );
}

prop_compose! {
    fn any_worker(n: u16)(
        connection in 0_u8..4,
        sizes in prop::collection::vec(prop_oneof![Just(24_u32), Just(80)], 0..4),
        site in prop::option::of(prop_oneof![Just("graz"), Just("wien")]),
        (drains, is_retired, local) in (prop::bool::weighted(0.2), prop::bool::weighted(0.1), prop::bool::weighted(0.2)),
    ) -> Worker {
        let online = worker(n, &sizes, 1);
        let worker = match connection {
            0 => unseen_worker(n),
            1 => online.went_offline(NOW, OfflineCause::HeartbeatTimeout),
            _ => online,
        };
        let worker = if drains { worker.drained(NOW, None, None) } else { worker };
        let retired_at = (is_retired && connection > 0).then_some(NOW);
        Worker { labels: site.map(|site| label("site", site)).unwrap_or_default(), retired_at, local, ..worker }
    }
}

prop_compose! {
    fn any_job(n: u16)(
        target in prop_oneof![3 => Just(JobTarget::Auto), 1 => Just(JobTarget::Worker), 1 => Just(JobTarget::Local)],
        gpu_count in prop::option::of(1_u32..5),
        min_vram_gb in prop::option::of(prop_oneof![Just(24.0), Just(60.0)]),
        site in prop::option::of(prop_oneof![Just("graz"), Just("wien"), Just("linz")]),
    ) -> Job {
        let labels = site.map(|site| label("site", site)).unwrap_or_default();
        let demand = Demand { labels, gpu_count, min_vram_gb, ..Demand::default() };
        Job { spec: JobSpec { target, ..spec(demand) }, ..any_gpu_job(n) }
    }
}

fn has_same_kind<'a>(left: Option<&Blocker<'a>>, right: Option<&Blocker<'a>>) -> bool {
    left.map(std::mem::discriminant) == right.map(std::mem::discriminant)
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
        let fleet = || PlannerFleet::new(workers, &[], ConcurrencyLimits::default());
        let planned = plan(JobQueue::new(&jobs), fleet(), NOW).assignments;
        let mut feasibility_cache = FeasibilityCache::with_budget(fleet(), 1_000);
        for job in &jobs {
            let assigned = planned.iter().find(|assignment| assignment.job == job.id);
            let explanation = explain(job, &jobs, fleet(), NOW);
            let feasibility = match &explanation.verdict {
                ExplainVerdict::Fits { .. } | ExplainVerdict::Busy => Feasibility::Busy,
                ExplainVerdict::WorkerUnavailable => Feasibility::WorkerUnavailable,
                ExplainVerdict::Unsatisfiable => Feasibility::Unsatisfiable,
                ExplainVerdict::NoLocalWorker => Feasibility::NoLocalWorker,
                ExplainVerdict::NoWorkers => Feasibility::NoWorkers,
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
            prop_assert_eq!(feasibility_cache.feasibility(job), Some(feasibility));
            let fits = matches!(explanation.verdict, ExplainVerdict::Fits { .. });
            prop_assert_eq!(assigned.is_some(), fits, "{:?}", explanation.verdict);
            let Some(summary) = &explanation.summary else {
                prop_assert_eq!(count, 0);
                continue;
            };
            // The workers left at the end are blocked only by waiting, and all others are not.
            let last = summary.steps.last().expect("a step");
            let is_last_free = last.requirement == JobRequirement::Free;
            prop_assert_eq!(feasibility == Feasibility::Busy, is_last_free, "{:?}", summary);
            prop_assert_eq!(assigned.is_some(), last.requirement == JobRequirement::Free && last.remaining > 0);
            prop_assert!(summary.steps.iter().map(|step| step.remaining).is_sorted_by(|a, b| a >= b));
            for worker in &explanation.workers {
                let matches = !worker.blockers.iter().any(Blocker::is_mismatch);
                prop_assert!(!matches || !worker.blockers.contains(&Blocker::NeverConnected));
                prop_assert!(!matches || feasibility <= Feasibility::WorkerUnavailable, "{} matches", worker.name);
            }
        }
    }

    #[test]
    fn nearest_workers_are_listed_and_the_others_counted(
        workers in prop::collection::vec(any_worker(1), 0..2 * MAX_LISTED_WORKERS),
        jobs in (any_job(1), any_job(2)),
    ) {
        let named = |(n, other): (u16, Worker)| Worker { id: worker_id(n), name: format!("w{n}"), ..other };
        let workers: Vec<Worker> = (1..).zip(workers).map(named).collect();
        let jobs = [jobs.0, jobs.1];
        let fleet = || PlannerFleet::new(&workers, &[], ConcurrencyLimits::default());
        let mut plan = plan(JobQueue::new(&jobs), fleet(), NOW);
        plan.fleet.load_all();
        for job in &jobs {
            let assigned = plan.assignments.iter().find(|assignment| assignment.job == job.id);
            let explained = plan.fleet.candidates.iter().map(|candidate| {
                let Worker { id, name, .. } = candidate.worker;
                let is_assigned = assigned.is_some_and(|assignment| assignment.worker == *id);
                let blockers = plan.blockers(job, candidate).filter(|_| !is_assigned).collect();
                (!is_assigned, WorkerExplanation { worker: id, name, blockers })
            });
            let mut all: Vec<_> = explained.collect();
            all.sort_by_key(|(is_other, worker)| (*is_other, distance(&worker.blockers), worker.name));
            let all: Vec<WorkerExplanation<'_>> = all.into_iter().map(|(_, worker)| worker).collect();
            let (listed, others) = all.split_at(all.len().min(MAX_LISTED_WORKERS));
            let explanation = explain(job, &jobs, fleet(), NOW);
            prop_assert_eq!(&explanation.workers, listed);
            for unlisted in &explanation.unlisted {
                let same = others.iter().filter(|other| has_same_kind(other.blockers.first(), unlisted.blocker.as_ref()));
                prop_assert_eq!(unlisted.workers, same.count());
            }
            prop_assert_eq!(explanation.unlisted.iter().map(|unlisted| unlisted.workers).sum::<usize>(), others.len());
        }
    }
}
