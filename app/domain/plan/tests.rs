//! Planning rounds, and properties of all rounds.

use proptest::prelude::*;

use super::*;
use crate::domain::fixtures::{
    LEASE_DURATION, NOW, WORKER_SILENT, gpu_demand, job, job_id, label, with_unavailable_gpus, worker, worker_id,
};
use crate::domain::ids::AttemptNumber;
use crate::domain::job::{AttemptReport, Demand};
use crate::domain::worker::Worker;

fn assigned_pairs(jobs: &[Job], workers: &[Worker]) -> Vec<(JobId, WorkerId)> {
    assigned_within(jobs, workers, &[], ConcurrencyLimits::default())
}

fn assigned_within(
    jobs: &[Job],
    workers: &[Worker],
    leased: &[Job],
    limits: ConcurrencyLimits,
) -> Vec<(JobId, WorkerId)> {
    let plan = plan(JobQueue::new(jobs), PlannerFleet::new(workers, leased, limits), NOW);
    plan.assignments.into_iter().map(|a| (a.job, a.worker)).collect()
}

fn assignment(job: u16, worker: u16) -> (JobId, WorkerId) {
    (job_id(job), worker_id(worker))
}

fn any_gpu_job(n: u16) -> Job {
    job(n, Demand::default())
}

/// A running job with these GPUs of a worker.
fn running(n: u16, worker: u16, gpus: &[&str]) -> Job {
    let gpus = gpus.iter().map(|uuid| (*uuid).to_owned()).collect();
    let offered = any_gpu_job(n).offered(NOW, worker_id(worker), gpus, NOW).expect("queued");
    offered.reported(NOW, &worker_id(worker), AttemptNumber(1), AttemptReport::Running).expect("current")
}

#[test]
fn oldest_job_first_and_one_job_per_worker() {
    assert_eq!(
        assigned_pairs(&[any_gpu_job(3), any_gpu_job(1), any_gpu_job(2)], &[worker(1, &[80], 1), worker(2, &[80], 1)]),
        [assignment(1, 1), assignment(2, 2)]
    );
}

#[test]
fn priority_first_and_waiting_adds_urgency() {
    let urgent = |n, priority| Job { priority, ..any_gpu_job(n) };
    assert_eq!(assigned_pairs(&[any_gpu_job(1), urgent(2, 11)], &[worker(1, &[80], 1)]), [assignment(2, 1)]);
    let old = Job { submitted_at: Timestamp(NOW.0 - AGING_PER_POINT.0 - 60_000), ..any_gpu_job(1) };
    assert_eq!(assigned_pairs(&[old.clone(), urgent(2, 11)], &[worker(1, &[80], 1)]), [assignment(1, 1)]);
    assert_eq!(assigned_pairs(&[old, urgent(2, 12)], &[worker(1, &[80], 1)]), [assignment(2, 1)]);
}

#[test]
fn job_without_a_match_blocks_no_other_job() {
    assert_eq!(assigned_pairs(&[job(1, gpu_demand(8)), any_gpu_job(2)], &[worker(1, &[80], 1)]), [assignment(2, 1)]);
}

#[test]
fn gpu_hosts_and_small_hosts_first_and_local_last() {
    let local = Worker { local: true, ..worker(1, &[80], 1) };
    let (cpu, large, small) = (worker(2, &[], 1), worker(3, &[80, 80], 1), worker(4, &[80], 1));
    assert_eq!(
        assigned_pairs(&[any_gpu_job(1)], &[local.clone(), cpu.clone(), large.clone(), small]),
        [assignment(1, 4)]
    );
    assert_eq!(assigned_pairs(&[any_gpu_job(1)], &[local.clone(), cpu.clone(), large]), [assignment(1, 3)]);
    assert_eq!(assigned_pairs(&[any_gpu_job(1)], &[local.clone(), cpu]), [assignment(1, 2)]);
    assert_eq!(assigned_pairs(&[any_gpu_job(1)], &[local]), [assignment(1, 1)]);
}

#[test]
fn each_of_many_labels_finds_its_worker() {
    let numbers = 1..=600;
    let own_label = |n| label(&format!("key{}", n % 2 * (n % 100)), &format!("value{n}"));
    let workers: Vec<Worker> =
        numbers.clone().map(|n| Worker { labels: own_label(n), ..worker(n, &[80], 1) }).collect();
    let jobs: Vec<Job> =
        numbers.clone().map(|n| job(n, Demand { labels: own_label(n), ..Demand::default() })).collect();
    let expected: Vec<_> = numbers.map(|n| assignment(n, n)).collect();
    assert_eq!(assigned_pairs(&jobs, &workers), expected);
}

#[test]
fn longest_idle_worker_is_used() {
    let longest_idle =
        worker(2, &[80], 1).stream_closed(Timestamp(1), "s").stream_opened(Timestamp(1), "s").expect("registered");
    assert_eq!(assigned_pairs(&[any_gpu_job(1)], &[worker(1, &[80], 1), longest_idle]), [assignment(1, 2)]);
}

#[test]
fn jobs_share_a_host_but_no_gpu() {
    let workers = [worker(1, &[80, 80, 40], 3)];
    let jobs = [any_gpu_job(1), job(2, gpu_demand(2)), any_gpu_job(3)];
    let fleet = PlannerFleet::new(&workers, &[], ConcurrencyLimits::default());
    let assigned: Vec<_> =
        plan(JobQueue::new(&jobs), fleet, NOW).assignments.into_iter().map(|a| (a.job, a.gpus)).collect();
    let uuids = |list: &[&str]| list.iter().map(|uuid| (*uuid).to_owned()).collect::<Vec<_>>();
    assert_eq!(assigned, [(job_id(1), uuids(&["GPU-1-2"])), (job_id(2), uuids(&["GPU-1-0", "GPU-1-1"]))]);
    let leased = [running(7, 1, &["GPU-1-2"])];
    assert_eq!(assigned_within(&[job(1, gpu_demand(3))], &workers, &leased, ConcurrencyLimits::default()), []);
    assert_eq!(
        assigned_within(&[job(1, gpu_demand(2))], &workers, &leased, ConcurrencyLimits::default()),
        [assignment(1, 1)]
    );
}

#[test]
fn worker_with_unavailable_gpus_is_skipped_and_not_reserved() {
    let without_gpus = with_unavailable_gpus(worker(1, &[80], 1), &[0]);
    assert_eq!(assigned_pairs(&[any_gpu_job(1)], &[without_gpus.clone(), worker(2, &[80, 80], 1)]), [assignment(1, 2)]);
    let starving = Job { submitted_at: Timestamp(NOW.0 - STARVATION_AFTER.0), ..any_gpu_job(1) };
    let workers = [without_gpus, worker(2, &[80], 1)];
    let leased = [running(9, 2, &["GPU-2-0"])];
    let plan =
        plan(JobQueue::new([&starving]), PlannerFleet::new(&workers, &leased, ConcurrencyLimits::default()), NOW);
    assert_eq!((plan.assignments.len(), plan.fleet.with_capacity), (0, 0));
}

#[test]
fn only_queued_and_eligible_jobs_are_assigned() {
    let workers = [worker(1, &[80], 1)];
    let running_job = running(1, 9, &[]);
    assert_eq!(assigned_pairs(std::slice::from_ref(&running_job), &workers), []);
    let lost = running_job.lost(NOW, WORKER_SILENT, LEASE_DURATION);
    let plan_at =
        |now| plan(JobQueue::new([&lost]), PlannerFleet::new(&workers, &[], ConcurrencyLimits::default()), now);
    assert_eq!(plan_at(Timestamp(NOW.0 + 9_999)).assignments, []);
    assert_eq!(plan_at(Timestamp(NOW.0 + 10_000)).assignments.len(), 1);
}

#[test]
fn limits_apply_to_the_right_jobs() {
    let workers = [worker(1, &[80], 1), worker(2, &[80], 1), worker(3, &[80], 1)];
    let leased = [running(9, 1, &["GPU-1-0"])];
    let bob = |n| Job { submitted_by: "bob".to_owned(), ..any_gpu_job(n) };
    let jobs = [any_gpu_job(1), bob(2), bob(3)];
    let jobs_within = |jobs_in_total, jobs_per_user| {
        let limits = ConcurrencyLimits { jobs: jobs_in_total, jobs_per_user };
        assigned_within(&jobs, &workers, &leased, limits).into_iter().map(|(job, _)| job).collect::<Vec<_>>()
    };
    assert_eq!(jobs_within(None, None), [job_id(2), job_id(1)]);
    assert_eq!(jobs_within(None, Some(1)), [job_id(2)]);
    assert_eq!(jobs_within(Some(2), None), [job_id(2)]);
    assert_eq!(jobs_within(Some(1), None), []);
    let limits = ConcurrencyLimits { jobs: Some(1), jobs_per_user: Some(1) };
    assert_eq!(PlannerFleet::new(&workers, &leased, limits).reached_limit(&bob(2)), Some(ReachedLimit::Total(1)));
    let limits = ConcurrencyLimits { jobs: Some(2), jobs_per_user: Some(1) };
    assert_eq!(PlannerFleet::new(&workers, &leased, limits).reached_limit(&jobs[0]), Some(ReachedLimit::PerUser(1)));
    assert_eq!(PlannerFleet::new(&workers, &leased, limits).reached_limit(&bob(2)), None);
}

#[test]
fn starving_job_reserves_a_worker() {
    let workers = [worker(1, &[80, 80], 2)];
    let leased = [running(9, 1, &["GPU-1-0"])];
    let large = |waited: i64| Job { submitted_at: Timestamp(NOW.0 - waited), ..job(1, gpu_demand(2)) };
    let small = any_gpu_job(2);
    let young = [large(STARVATION_AFTER.0 - 1), small.clone()];
    let starving = [large(STARVATION_AFTER.0), small];
    let round =
        |jobs| plan(JobQueue::new(jobs), PlannerFleet::new(&workers, &leased, ConcurrencyLimits::default()), NOW);
    let before = round(&young);
    assert_eq!((before.assignments.len(), before.reserved), (1, BTreeMap::new()));
    let mut after = round(&starving);
    after.fleet.load_all();
    let small_blockers: Vec<_> = after.blockers(&starving[1], &after.fleet.candidates[0]).collect();
    assert_eq!(small_blockers, [Blocker::Reserved { job: &job_id(1) }]);
    assert_eq!((after.assignments.len(), after.reserved), (0, [(&worker_id(1), &job_id(1))].into()));
}

#[test]
fn reservation_is_of_its_round_only() {
    let workers = [worker(1, &[80, 80], 2)];
    let leased = [running(9, 1, &["GPU-1-0"])];
    let large = Job { submitted_at: Timestamp(NOW.0 - STARVATION_AFTER.0), ..job(1, gpu_demand(2)) };
    let small = any_gpu_job(2);
    let fleet = PlannerFleet::new(&workers, &leased, ConcurrencyLimits::default());
    let plan = plan(JobQueue::new([&large, &small]), fleet, NOW);
    assert_eq!(plan.reserved.len(), 1);
    assert!(plan.unmatched.contains(0), "no worker has two free GPUs");
    assert!(!plan.unmatched.contains(1), "without the large job, the small one matches");
}

#[test]
fn worker_that_is_freed_for_a_job_is_not_given_to_another() {
    let workers = [worker(1, &[80, 80], 2), worker(2, &[80], 1)];
    let (large, small, other) = (job(5, gpu_demand(2)), any_gpu_job(1), any_gpu_job(2));
    let jobs = [small, other, large];
    let round = |leased: &[Job]| -> Vec<(JobId, WorkerId)> {
        let fleet = PlannerFleet::new(&workers, leased, ConcurrencyLimits::default());
        let fleet = fleet.with_reservations(vec![(&workers[0].id, &jobs[2])]);
        let plan = plan(JobQueue::new(&jobs), fleet, NOW);
        plan.assignments.into_iter().map(|a| (a.job, a.worker)).collect()
    };
    // One of its GPUs is in use: it waits for the other one, and no younger job takes the free one.
    assert_eq!(round(&[running(9, 1, &["GPU-1-0"])]), [assignment(1, 2)]);
    assert_eq!(round(&[]), [assignment(5, 1), assignment(1, 2)]);
}

#[test]
fn job_with_the_requirements_of_a_reservation_finds_its_worker() {
    let workers = [worker(1, &[80], 1)];
    let jobs = [any_gpu_job(1), any_gpu_job(2)];
    let fleet = PlannerFleet::new(&workers, &[], ConcurrencyLimits::default());
    let plan = plan(JobQueue::new(&jobs), fleet.with_reservations(vec![(&workers[0].id, &jobs[1])]), NOW);
    let assigned: Vec<_> = plan.assignments.into_iter().map(|a| (a.job, a.worker)).collect();
    assert_eq!(assigned, [assignment(2, 1)], "although the other one comes first");
}

#[test]
fn unsuitable_worker_is_not_reserved() {
    let workers = [worker(1, &[80], 2).drained(NOW, None, None), worker(2, &[80], 2)];
    let old = |n, demand| Job { submitted_at: Timestamp(NOW.0 - STARVATION_AFTER.0 - i64::from(n)), ..job(n, demand) };
    let jobs = [old(1, gpu_demand(8)), any_gpu_job(2)];
    let plan = plan(JobQueue::new(&jobs), PlannerFleet::new(&workers, &[], ConcurrencyLimits::default()), NOW);
    assert_eq!((plan.assignments.len(), plan.reserved.len()), (1, 0));
}

#[test]
fn each_starving_job_reserves_its_own_worker() {
    let workers = [worker(1, &[80, 80], 2), worker(2, &[80, 80], 2)];
    let leased = [running(8, 1, &["GPU-1-0"]), running(9, 2, &["GPU-2-0"])];
    let old =
        |n| Job { submitted_at: Timestamp(NOW.0 - 2 * STARVATION_AFTER.0 + i64::from(n)), ..job(n, gpu_demand(2)) };
    let jobs = [old(1), old(2), old(3), any_gpu_job(4)];
    let plan = plan(JobQueue::new(&jobs), PlannerFleet::new(&workers, &leased, ConcurrencyLimits::default()), NOW);
    let ids = [1, 2].map(|n| (worker_id(n), job_id(n)));
    assert_eq!(plan.reserved, ids.iter().map(|(worker, job)| (worker, job)).collect());
    assert_eq!(plan.assignments, []);
}

/// Requirements (GPUs, memory, rack), priority, waiting time, and user of a job.
type GeneratedJob = ((Option<u32>, Option<f64>, u8), u8, i64, u8);

/// A small fleet and queue with everything that matters to the planner.
fn fleet_and_queue() -> impl Strategy<Value = (Vec<Worker>, Vec<Job>)> {
    let unavailable = prop::collection::vec(0_u32..4, 0..2);
    let host =
        (prop::collection::vec(prop_oneof![Just(0_u32), Just(24), Just(80)], 0..4), 1_u32..4, 0_u8..6, unavailable);
    let demand = (prop::option::of(1_u32..4), prop::option::of(prop_oneof![Just(20.0), Just(60.0)]), 0_u8..3);
    let generated_job = (demand, 0_u8..50, 0_i64..7_200_000, 0_u8..3);
    (prop::collection::vec(host, 0..6), prop::collection::vec(generated_job, 0..14)).prop_map(|(hosts, jobs)| {
        let host = |(n, (sizes, max_jobs, kind, unavailable)): (u16, (Vec<u32>, u32, u8, Vec<u32>))| {
            let online = with_unavailable_gpus(worker(n, &sizes, max_jobs), &unavailable);
            let worker = Worker { labels: label("rack", if kind % 2 == 0 { "a" } else { "b" }), ..online };
            if kind == 5 { worker.drained(NOW, None, None) } else { worker }
        };
        let job = |(n, (demand, priority, waited, by)): (u16, GeneratedJob)| {
            let (gpu_count, min_vram_gb, rack) = demand;
            let labels = if rack == 0 { label("rack", "a") } else { label("rack", "*") };
            let demand = Demand { labels, gpu_count, min_vram_gb, ..Demand::default() };
            let submitted_at = Timestamp(NOW.0 - waited);
            Job { priority, submitted_at, submitted_by: format!("user{by}"), ..job(n, demand) }
        };
        ((0..).zip(hosts).map(host).collect(), (0..).zip(jobs).map(job).collect())
    })
}

proptest! {
    #[test]
    fn invariants_hold_for_every_plan(
        (workers, jobs) in fleet_and_queue(), total in prop::option::of(0_u32..8), per_user in prop::option::of(1_u32..4),
    ) {
        let limits = ConcurrencyLimits { jobs: total, jobs_per_user: per_user };
        let mut plan = plan(JobQueue::new(&jobs), PlannerFleet::new(&workers, &[], limits), NOW);
        plan.fleet.load_all();
        let mut gpus: Vec<&String> = plan.assignments.iter().flat_map(|a| &a.gpus).collect();
        let number = gpus.len();
        gpus.sort();
        gpus.dedup();
        prop_assert_eq!(gpus.len(), number, "a GPU is allocated to one job (I3)");
        let is_available = |uuid: &&String| {
            let gpus = workers.iter().filter_map(Worker::capability).flat_map(|capability| &capability.gpus);
            gpus.filter(|gpu| gpu.uuid == **uuid).all(|gpu| gpu.unavailable.is_none())
        };
        prop_assert!(gpus.iter().all(is_available), "unavailable GPUs are not allocated");
        for worker in &workers {
            let count = plan.assignments.iter().filter(|a| a.worker == worker.id).count();
            prop_assert!(count <= worker.capability().map_or(0, |c| c.max_jobs as usize));
            prop_assert!(count == 0 || worker.drain.is_none(), "a draining worker gets no new jobs (I7)");
        }
        prop_assert!(total.is_none_or(|limit| plan.assignments.len() <= limit as usize));
        for job in &jobs {
            let assignment = plan.assignments.iter().find(|a| a.job == job.id);
            if let (Some(assignment), Some(gpu_count)) = (assignment, job.spec.demand.gpu_count) {
                prop_assert!(assignment.gpus.len() >= gpu_count as usize);
            }
            if assignment.is_none() {
                let has_match = plan.fleet.candidates.iter().any(|candidate| plan.blockers(job, candidate).next().is_none());
                let is_limited = plan.fleet.reached_limit(job).is_some();
                prop_assert!(!has_match || is_limited, "no matching job stays queued (I4)");
            }
        }
    }
}
