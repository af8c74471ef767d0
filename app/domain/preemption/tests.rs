//! Who may stop whom, what is chosen, and that nothing is stopped in vain.

use proptest::prelude::*;

use super::*;
use crate::domain::fixtures::{NOW, gpu_demand, job, job_id, worker, worker_id};
use crate::domain::ids::AttemptNumber;
use crate::domain::job::{AttemptReport, JobSpec, JobState, PreemptionReason};
use crate::domain::job_share::JobClass;
use crate::domain::plan::{ConcurrencyLimits, PlannerFleet};
use crate::domain::shares::{ShareSettings, Team, Teams};
use crate::domain::worker::Worker;

const HOUR: Millis = Millis::from_secs(3_600);

fn of(team: &str, user: &str, class: JobClass, job: Job) -> Job {
    Job { submitted_by: user.to_owned(), spec: JobSpec { team: team.to_owned(), class, ..job.spec.clone() }, ..job }
}

fn waiting(n: u16, team: &str, user: &str, class: JobClass, gpus: u32) -> Job {
    of(team, user, class, job(n, gpu_demand(gpus)))
}

/// A job that has run for this long with these GPUs of worker 1.
fn running(n: u16, team: &str, user: &str, class: JobClass, gpus: std::ops::Range<u32>, ran: Millis) -> Job {
    let number = gpus.len().try_into().expect("few");
    let uuids = gpus.map(|index| format!("GPU-1-{index}")).collect();
    let since = Timestamp(NOW.0 - ran.0);
    let offered = waiting(n, team, user, class, number).offered(since, worker_id(1), uuids, NOW).expect("queued");
    offered.reported(since, &worker_id(1), AttemptNumber(1), AttemptReport::Running).expect("current")
}

fn team(name: &str, guaranteed_gpus: u32) -> (String, Team) {
    let settings = ShareSettings { guaranteed_gpus, ..ShareSettings::default() };
    (name.to_owned(), Team { name: name.to_owned(), settings, ..Team::unchanged_default() })
}

/// The attempts of these jobs, each with its newest checkpoint this long ago.
fn attempts<'j>(jobs: &'j [Job], checkpoints: &[(u16, Millis)]) -> HashMap<&'j JobId, RunningAttempt<'j>> {
    let attempt = |job: &'j Job| {
        let found = checkpoints.iter().find(|(n, _)| job_id(*n) == job.id);
        let JobState::Running { since, lease } = &job.state else { panic!("it runs") };
        let checkpoint = found.map(|(_, ago)| Timestamp(NOW.0 - ago.0));
        (&job.id, RunningAttempt { job, lease, since: *since, checkpoint, interval: None })
    };
    jobs.iter().map(attempt).collect()
}

fn decide(
    teams: &Teams,
    workers: &[Worker],
    waiting: &[Job],
    leased: &[Job],
    checkpoints: &[(u16, Millis)],
) -> Vec<(JobId, Preemption)> {
    let mut fleet = PlannerFleet::new(workers, leased, ConcurrencyLimits::default());
    fleet.load_all();
    let mut shares = ShareTree::new(teams, fleet.shares.size());
    for job in leased {
        shares.add_job(job, job.active_lease().expect("leased").gpus.len());
    }
    let input = PreemptionInput {
        waiting: waiting.iter().collect(),
        candidates: fleet.candidates,
        running: attempts(leased, checkpoints),
        shares,
    };
    plan_preemptions(input, NOW).into_iter().map(|(job, preemption)| (job.id.clone(), preemption)).collect()
}

/// Who is stopped for job 1, and why.
fn stopped(decided: &[(JobId, Preemption)]) -> Option<(PreemptionReason, Vec<JobId>)> {
    let (_, preemption) = decided.first()?;
    Some((preemption.reason, preemption.attempts.iter().map(|attempt| attempt.job.clone()).collect()))
}

fn with(team_of_first: &str, class: JobClass, other: Job, checkpoints: &[(u16, Millis)]) -> Option<PreemptionReason> {
    let teams = Teams::from([team("vision", 1), team("speech", 0)]);
    let first = waiting(1, team_of_first, "ada", class, 1);
    let decided = decide(&teams, &[worker(1, &[80], 1)], &[first], &[other], checkpoints);
    stopped(&decided).map(|(reason, _)| reason)
}

#[test]
fn who_may_stop_whom() {
    use JobClass::{Idle, Normal, Urgent};
    let other = |team, user, class, ran| running(9, team, user, class, 0..1, ran);
    let minute = Millis::from_secs(60);
    // Idle jobs make room for all others, and for no idle one.
    assert_eq!(with("speech", Normal, other("vision", "bob", Idle, minute), &[]), Some(PreemptionReason::Idle));
    assert_eq!(with("speech", Idle, other("vision", "bob", Idle, HOUR), &[]), None);
    assert_eq!(with("speech", Idle, other("vision", "bob", Normal, HOUR), &[]), None);
    // Guaranteed GPUs are taken back from a team that has borrowed them, also from one that has just started.
    assert_eq!(with("vision", Normal, other("speech", "bob", Normal, minute), &[]), Some(PreemptionReason::Guaranteed));
    assert_eq!(with("speech", Normal, other("vision", "bob", Normal, minute), &[]), None, "it is within its guarantee");
    assert_eq!(with("vision", Normal, other("speech", "bob", Urgent, minute), &[]), None);
    // Urgent jobs wait for the minimum runtime.
    let ran = |millis| other("speech", "bob", Normal, Millis(millis));
    assert_eq!(with("speech", Urgent, ran(MIN_RUNTIME.0), &[]), Some(PreemptionReason::Urgent));
    assert_eq!(with("speech", Urgent, ran(MIN_RUNTIME.0 - 1), &[]), None);
    assert_eq!(with("speech", Urgent, other("speech", "bob", Urgent, HOUR), &[]), None);
    // Equal users alternate after a turn, if there is a checkpoint.
    let checkpoint = [(9, minute)];
    let has_used = |ran| other("speech", "bob", Normal, ran);
    assert_eq!(with("speech", Normal, has_used(TURN), &checkpoint), Some(PreemptionReason::Turn));
    assert_eq!(with("speech", Normal, other("speech", "ada", Normal, TURN), &checkpoint), None, "one's own");
}

#[test]
fn equal_users_alternate_after_a_turn() {
    let minute = Millis::from_secs(60);
    let decide_with = |mine: u8, ran: Millis, checkpoints: &[(u16, Millis)]| {
        let leased =
            [8, 9].map(|n| running(n, "default", "bob", JobClass::Normal, u32::from(n - 8)..u32::from(n - 7), ran));
        let first = Job { priority: mine, ..waiting(1, "default", "ada", JobClass::Normal, 1) };
        decide(&Teams::new(), &[worker(1, &[80, 80], 2)], &[first], &leased, checkpoints)
    };
    let one = decide_with(10, TURN, &[(8, HOUR), (9, minute)]);
    assert_eq!(stopped(&one), Some((PreemptionReason::Turn, vec![job_id(9)])), "the one with the newer checkpoint");
    assert_eq!(decide_with(10, Millis(TURN.0 - 1), &[(8, minute), (9, minute)]), []);
    assert_eq!(decide_with(10, TURN, &[]), [], "all work would be lost");
    assert_eq!(decide_with(9, TURN, &[(9, minute)]), [], "a lower priority");
}

#[test]
fn the_least_work_is_lost() {
    let minutes = |n: i64| Millis::from_secs(n * 60);
    let leased = [
        running(7, "default", "bob", JobClass::Normal, 0..2, HOUR),
        running(8, "default", "bob", JobClass::Normal, 2..3, HOUR),
        running(9, "default", "bob", JobClass::Normal, 3..4, HOUR),
    ];
    let workers = [worker(1, &[80; 4], 4)];
    let urgent = |gpus| [waiting(1, "default", "ada", JobClass::Urgent, gpus)];
    let decide = |gpus, checkpoints: &[(u16, Millis)]| {
        stopped(&decide(&Teams::new(), &workers, &urgent(gpus), &leased, checkpoints)).expect("possible").1
    };
    assert_eq!(decide(1, &[(8, minutes(20)), (9, minutes(10))]), [job_id(9)]);
    assert_eq!(decide(1, &[(7, minutes(4)), (8, minutes(20)), (9, minutes(10))]), [job_id(7)], "2 GPUs for 4 minutes");
    assert_eq!(decide(2, &[(8, minutes(1)), (9, minutes(2))]), [job_id(7)], "one job is stopped rather than two");
    assert_eq!(decide(3, &[(7, minutes(1)), (8, minutes(9)), (9, minutes(2))]), [job_id(7), job_id(9)]);
    assert_eq!(decide(4, &[]).len(), 3);
}

#[test]
fn an_attempt_stops_at_its_next_checkpoint_if_that_comes_soon() {
    let leased = [running(9, "default", "bob", JobClass::Normal, 0..1, HOUR)];
    let first = waiting(1, "default", "ada", JobClass::Urgent, 1);
    let workers = [worker(1, &[80], 1)];
    let stop_at = |interval: Option<Millis>| {
        let mut fleet = PlannerFleet::new(&workers, &leased, ConcurrencyLimits::default());
        fleet.load_all();
        let mut running = attempts(&leased, &[(9, Millis::from_secs(300))]);
        for running in running.values_mut() {
            running.interval = interval;
        }
        let (candidates, shares) = (fleet.candidates, ShareTree::default());
        let input = PreemptionInput { waiting: vec![&first], candidates, running, shares };
        plan_preemptions(input, NOW)[0].1.clone()
    };
    assert_eq!(stop_at(None).last_stop(), NOW);
    assert_eq!(stop_at(Some(Millis::from_secs(3_000))).last_stop(), NOW, "too late");
    let soon = stop_at(Some(Millis::from_secs(600)));
    assert_eq!(soon.last_stop(), NOW + PATIENCE);
    let later = Timestamp(NOW.0 + 60_000);
    assert_eq!(soon.clone().with_checkpoint(&job_id(9), later).last_stop(), later);
    assert_eq!(soon.clone().with_checkpoint(&job_id(8), later), soon, "of another job");
    assert!(soon.holds(soon.last_stop()) && !soon.holds(soon.last_stop() + HOUR));
}

#[test]
fn a_job_that_was_stopped_often_stays() {
    let stopped_before = |hours_ago: [i64; 3]| {
        let preempted_at = hours_ago.map(|hours| Timestamp(NOW.0 - hours * HOUR.0)).to_vec();
        Job { preempted_at, ..running(9, "default", "bob", JobClass::Idle, 0..1, HOUR) }
    };
    let first = [waiting(1, "default", "ada", JobClass::Normal, 1)];
    let decide = |other: Job| decide(&Teams::new(), &[worker(1, &[80], 1)], &first, &[other], &[]).len();
    assert_eq!((decide(stopped_before([3, 2, 1])), decide(stopped_before([25, 2, 1]))), (0, 1));
}

#[test]
fn a_job_stops_others_once() {
    let leased = [
        running(8, "default", "bob", JobClass::Idle, 0..1, HOUR),
        running(9, "default", "bob", JobClass::Idle, 1..2, HOUR),
    ];
    let workers = [worker(1, &[80, 80], 2)];
    let first = waiting(1, "default", "ada", JobClass::Normal, 1);
    let (_, preemption) = decide(&Teams::new(), &workers, std::slice::from_ref(&first), &leased, &[]).remove(0);
    let pending = first.preempting(Some(preemption));
    assert_eq!(decide(&Teams::new(), &workers, std::slice::from_ref(&pending), &leased, &[]), []);
    // Its worker is reserved: nothing else is stopped there meanwhile.
    let second = waiting(2, "default", "cleo", JobClass::Normal, 1);
    assert_eq!(decide(&Teams::new(), &workers, &[pending.clone(), second], &leased, &[]), []);
    let offered = pending.offered(NOW, worker_id(1), vec![], NOW).expect("queued");
    assert_eq!(offered.preemption(), None);
}

/// GPUs, class, team, user, and whether it has a checkpoint.
type GeneratedJob = (u32, usize, usize, usize, bool);

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    /// I12: a job is stopped only if it may be, and without those the waiting job fits.
    #[test]
    fn nothing_is_stopped_in_vain(
        hosts in prop::collection::vec((1_u32..5, 1_u32..5), 1..4),
        running_jobs in prop::collection::vec((0_usize..3, (1_u32..4, 0_usize..3, 0_usize..2, 0_usize..3, any::<bool>()), 0_i64..200), 0..8),
        waiting_jobs in prop::collection::vec((1_u32..5, 0_usize..3, 0_usize..2, 0_usize..3, any::<bool>()), 1..6),
        guaranteed in prop::array::uniform2(0_u32..6),
    ) {
        let names = ["vision", "speech"];
        let users = ["ada", "bob", "cleo"];
        let teams = Teams::from([team(names[0], guaranteed[0]), team(names[1], guaranteed[1])]);
        let workers: Vec<Worker> = (1..).zip(&hosts).map(|(n, (gpus, max))| worker(n, &vec![80; *gpus as usize], *max)).collect();
        let spec_of = |n: u16, (gpus, class, team, user, _): GeneratedJob| {
            waiting(n, names[team], users[user], JobClass::ALL[class], gpus)
        };
        // Jobs get the first free GPUs of their worker.
        let mut leased: Vec<Job> = Vec::new();
        let mut checkpoints = Vec::new();
        for (n, (host, generated, minutes)) in (100..).zip(running_jobs) {
            let Some(worker) = workers.get(host % workers.len()) else { continue };
            let held: Vec<&String> = leased.iter().filter_map(Job::active_lease)
                .filter(|lease| lease.worker == worker.id).flat_map(|lease| &lease.gpus).collect();
            let slots = leased.iter().filter(|job| job.active_lease().is_some_and(|lease| lease.worker == worker.id)).count();
            let capability = worker.capability().expect("registered");
            let free: Vec<String> = capability.gpus.iter().map(|gpu| gpu.uuid.clone()).filter(|uuid| !held.contains(&uuid)).collect();
            let wanted = if capability.max_jobs == 1 { free.len() } else { generated.0 as usize };
            if free.len() < generated.0 as usize || slots >= capability.max_jobs as usize { continue }
            let since = Timestamp(NOW.0 - minutes * 60_000);
            let gpus = free.into_iter().take(wanted).collect();
            let offered = spec_of(n, generated).offered(since, worker.id.clone(), gpus, NOW).expect("queued");
            leased.push(offered.reported(since, &worker.id, AttemptNumber(1), AttemptReport::Running).expect("current"));
            if generated.4 { checkpoints.push((n, Millis(minutes * 30_000))) }
        }
        let queue: Vec<Job> = (1..).zip(waiting_jobs).map(|(n, generated)| spec_of(n, generated)).collect();
        let decided = decide(&teams, &workers, &queue, &leased, &checkpoints);
        let mut all_stopped: Vec<&JobId> = Vec::new();
        let mut used_workers: Vec<&WorkerId> = Vec::new();
        for (id, preemption) in &decided {
            let job = queue.iter().find(|job| job.id == *id).expect("it waits");
            prop_assert!(!used_workers.contains(&&preemption.worker), "a worker is freed for one job");
            used_workers.push(&preemption.worker);
            prop_assert!(!preemption.attempts.is_empty());
            for attempt in &preemption.attempts {
                prop_assert!(!all_stopped.contains(&&attempt.job), "a job is stopped for one other");
                all_stopped.push(&attempt.job);
                let other = leased.iter().find(|other| other.id == attempt.job).expect("it runs");
                prop_assert_eq!(&other.active_lease().expect("leased").worker, &preemption.worker);
                let (mine, theirs) = (job.spec.class, other.spec.class);
                prop_assert!(mine != JobClass::Idle && theirs != JobClass::Urgent);
                prop_assert!(theirs == JobClass::Idle || job.submitted_by != other.submitted_by
                    || job.spec.team != other.spec.team || mine == JobClass::Urgent);
            }
            let is_stopped = |other: &Job| preemption.attempts.iter().any(|attempt| attempt.job == other.id);
            let rest: Vec<Job> = leased.iter().filter(|other| !is_stopped(other)).cloned().collect();
            let mut after = PlannerFleet::new(&workers, &rest, ConcurrencyLimits::default());
            after.load_all();
            let freed = after.candidates.iter().find(|candidate| candidate.worker.id == preemption.worker).expect("it exists");
            prop_assert!(fits_with(job, freed), "the job fits what is freed (I12)");
            let mut before = PlannerFleet::new(&workers, &leased, ConcurrencyLimits::default());
            before.load_all();
            let is_free = |candidate: &&Candidate<'_>| !used_workers.contains(&&candidate.worker.id);
            let fitted = before.candidates.iter().filter(is_free).any(|candidate| fits_with(job, candidate));
            prop_assert!(!fitted, "it fitted before, on a worker that is not reserved");
            // None of them could have stayed.
            for kept in &preemption.attempts {
                let rest: Vec<Job> = leased.iter().filter(|other| !is_stopped(other) || other.id == kept.job).cloned().collect();
                let mut fewer = PlannerFleet::new(&workers, &rest, ConcurrencyLimits::default());
                fewer.load_all();
                let candidate = fewer.candidates.iter().find(|candidate| candidate.worker.id == preemption.worker).expect("it exists");
                prop_assert!(!fits_with(job, candidate), "one attempt was stopped without need");
            }
        }
    }
}
