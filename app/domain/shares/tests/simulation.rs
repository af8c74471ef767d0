//! A fleet over weeks: who gets how much of it, and how much work preemption loses.

use std::collections::BTreeMap;

use crate::domain::fixtures::{gpu_demand, job, worker, worker_id};
use crate::domain::ids::{AttemptNumber, JobId};
use crate::domain::job::{AttemptReport, Job, JobSpec, JobState};
use crate::domain::job_share::JobClass;
use crate::domain::plan::{ConcurrencyLimits, JobQueue, PlannerFleet, plan};
use crate::domain::preemption::{PreemptionInput, RunningAttempt, plan_preemptions};
use crate::domain::shares::*;
use crate::domain::worker::Worker;

const HOUR: i64 = 3_600_000;
const USERS: [&str; 3] = ["ada", "bob", "cleo"];

/// Numbers that look random and are the same in each run (Numerical Recipes' generator).
struct Sequence(u64);

impl Sequence {
    /// The next number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn span(&mut self, from: i64, to: i64) -> i64 {
        from + i64::try_from(self.below((to - from).unsigned_abs())).expect("a span")
    }
}

struct Simulation {
    now: Timestamp,
    workers: Vec<Worker>,
    waiting: Vec<Job>,
    /// Each with its end.
    running: Vec<(Job, Timestamp)>,
    usage: BTreeMap<ShareKey, ShareUsage>,
    teams: Teams,
    numbers: Sequence,
    submitted: u16,
}

impl Simulation {
    fn new(teams: Teams, workers: Vec<Worker>) -> Self {
        let (now, usage) = (Timestamp(1_705_314_600_000), BTreeMap::new());
        let (waiting, running, numbers) = (Vec::new(), Vec::new(), Sequence(7));
        Self { now, workers, waiting, running, usage, teams, numbers, submitted: 0 }
    }

    fn submit(&mut self, team: &str, user: &str) {
        self.submitted = self.submitted.wrapping_add(1);
        let submitted = job(self.submitted, gpu_demand(1));
        let spec = JobSpec { team: team.to_owned(), ..submitted.spec };
        self.waiting.push(Job { spec, submitted_by: user.to_owned(), submitted_at: self.now, ..submitted });
    }

    fn load_of(&self, key: &ShareKey) -> ShareLoad {
        let mut load = ShareLoad::default();
        for (job, _) in self.running.iter().filter(|(job, _)| job.spec.team == key.team && job.submitted_by == key.user)
        {
            load.add(ShareLoad::of(job, 1));
        }
        load
    }

    /// Starts what can start.
    fn plan(&mut self) {
        let leased: Vec<Job> = self.running.iter().map(|(job, _)| job.clone()).collect();
        let fleet = PlannerFleet::new(&self.workers, &leased, ConcurrencyLimits::default());
        let mut tree = ShareTree::new(&self.teams, fleet.shares.size());
        for (key, usage) in &self.usage {
            tree.add(key, usage, self.load_of(key));
        }
        let assignments = plan(JobQueue::new(&self.waiting), fleet.with_shares(tree), self.now).assignments;
        for assignment in assignments {
            let index = self.waiting.iter().position(|job| job.id == assignment.job).expect("it waits");
            let offered = self.waiting.remove(index).offered(self.now, assignment.worker, assignment.gpus, self.now);
            let end = Timestamp(self.now.0 + self.numbers.span(HOUR, 6 * HOUR));
            self.running.push((offered.expect("queued"), end));
        }
    }

    /// Runs until the next end of a job; counts its usage.
    fn advance(&mut self, keys: &[ShareKey]) {
        let next = self.running.iter().map(|(_, end)| *end).min().expect("jobs run");
        for key in keys {
            let usage = self.usage.get(key).copied().unwrap_or(ShareUsage { at: self.now, ..ShareUsage::default() });
            let usage = usage.at(next, &self.load_of(key), DEFAULT_HALF_LIFE);
            self.usage.insert(key.clone(), usage);
        }
        self.now = next;
        self.running.retain(|(_, end)| *end > next);
    }
}

/// The GPU time of each user in a half-life, of which the first one has submitted a thousand jobs at once, as parts of all.
fn parts_of_users(teams: &Teams, keys: &[ShareKey]) -> Vec<f64> {
    let mut simulation = Simulation::new(teams.clone(), vec![worker(1, &[80; 8], 8), worker(2, &[80; 8], 8)]);
    let end = simulation.now + DEFAULT_HALF_LIFE;
    for _ in 0..1_000 {
        simulation.submit(&keys[0].team, &keys[0].user);
    }
    let mut used = vec![0.0; keys.len()];
    while simulation.now < end {
        // The others always have a few jobs.
        for key in &keys[1..] {
            while simulation.waiting.iter().filter(|job| job.submitted_by == key.user).count() < 16 {
                simulation.submit(&key.team, &key.user);
            }
        }
        simulation.plan();
        let before = simulation.now;
        let loads: Vec<u32> = keys.iter().map(|key| simulation.load_of(key).gpus).collect();
        simulation.advance(keys);
        for (used, gpus) in used.iter_mut().zip(loads) {
            *used += f64::from(gpus) * f64::from(u32::try_from((simulation.now - before).0).expect("hours"));
        }
    }
    let all: f64 = used.iter().sum();
    used.into_iter().map(|used| used / all).collect()
}

#[test]
fn a_flood_of_a_thousand_jobs_changes_no_share() {
    let keys = USERS.map(|user| ShareKey { team: DEFAULT_TEAM.to_owned(), user: user.to_owned() });
    let parts = parts_of_users(&Teams::new(), &keys);
    let errors: Vec<f64> = parts.iter().map(|part| (part * 3.0 - 1.0).abs()).collect();
    let squares: f64 = parts.iter().map(|part| part * part).sum();
    let jain = 1.0 / (3.0 * squares);
    assert!(errors.iter().all(|error| *error <= 0.02) && jain >= 0.98, "{parts:?}, Jain's index {jain}");
}

#[test]
fn teams_get_their_weights() {
    let team = |name: &str, weight| {
        let settings = ShareSettings { weight, ..ShareSettings::default() };
        (name.to_owned(), Team { name: name.to_owned(), settings, ..Team::unchanged_default() })
    };
    let teams = Teams::from([team("vision", 1), team("speech", 2), team("text", 5)]);
    let keys = [("vision", "ada"), ("speech", "bob"), ("text", "cleo")];
    let keys = keys.map(|(team, user)| ShareKey { team: team.to_owned(), user: user.to_owned() });
    for (part, weight) in parts_of_users(&teams, &keys).into_iter().zip([1.0, 2.0, 5.0]) {
        let error = (part * 8.0 / weight - 1.0).abs();
        assert!(error <= 0.02, "weight {weight} got {part}");
    }
}

/// Work that is lost in 3,200 decisions on a full fleet of 32 GPUs, by the choice and by stopping the youngest job, in
/// milliseconds.
#[test]
fn preemption_loses_a_fifth_of_what_stopping_the_youngest_would() {
    let workers: Vec<Worker> = (1..=4).map(|n| worker(n, &[80; 8], 8)).collect();
    let (now, mut numbers) = (Timestamp(1_705_314_600_000), Sequence(11));
    let (mut chosen, mut youngest, mut worst_of_interval) = (0.0, 0.0, 0.0_f64);
    for _ in 0..3_200 {
        let mut jobs = Vec::new();
        let mut checkpoints = BTreeMap::new();
        for n in 0..32_u16 {
            let (host, gpu) = (n / 8 + 1, n % 8);
            let (ran, interval) = (numbers.span(HOUR / 2, 48 * HOUR), numbers.span(HOUR / 6, 2 * HOUR));
            let since = Timestamp(now.0 - ran);
            let offered = Job { submitted_by: "bob".to_owned(), ..job(100 + n, gpu_demand(1)) };
            let offered = offered.offered(since, worker_id(host), vec![format!("GPU-{host}-{gpu}")], since);
            let started =
                offered.expect("queued").reported(since, &worker_id(host), AttemptNumber(1), AttemptReport::Running);
            let started = started.expect("current");
            let last = Some(Timestamp(now.0 - ran % interval)).filter(|_| ran >= interval);
            checkpoints.insert(started.id.clone(), (last, interval));
            jobs.push(started);
        }
        let urgent = job(1, gpu_demand(1));
        let urgent = Job { spec: JobSpec { class: JobClass::Urgent, ..urgent.spec }, ..urgent };
        let lost = |id: &JobId| {
            let (last, _) = checkpoints[id];
            let job = jobs.iter().find(|job| job.id == *id).expect("it runs");
            now.0 - last.map_or(job.state_since().0, |last| last.0)
        };
        let decided = decide(&workers, &urgent, &jobs, &checkpoints, now);
        let decided = decided.expect("all have run for half an hour");
        let young = jobs.iter().max_by_key(|job| job.state_since()).expect("32");
        let hours = |millis: i64| f64::from(i32::try_from(millis).expect("two days"));
        chosen += hours(lost(&decided));
        youngest += hours(lost(&young.id));
        worst_of_interval = worst_of_interval.max(hours(lost(&decided)) / hours(checkpoints[&decided].1));
    }
    assert!(youngest >= 5.0 * chosen, "{youngest} and {chosen}");
    assert!(worst_of_interval <= 1.0, "at most one interval is lost: {worst_of_interval}");
}

fn decide(
    workers: &[Worker],
    urgent: &Job,
    jobs: &[Job],
    checkpoints: &BTreeMap<JobId, (Option<Timestamp>, i64)>,
    now: Timestamp,
) -> Option<JobId> {
    let mut fleet = PlannerFleet::new(workers, jobs, ConcurrencyLimits::default());
    fleet.load_all();
    let running = jobs.iter().map(|job| {
        let JobState::Running { lease, since } = &job.state else { panic!("it runs") };
        let checkpoint = checkpoints[&job.id].0;
        (&job.id, RunningAttempt { job, lease, since: *since, checkpoint, interval: None })
    });
    let input = PreemptionInput {
        waiting: vec![urgent],
        running: running.collect(),
        candidates: fleet.candidates,
        shares: fleet.shares,
    };
    let (_, preemption) = plan_preemptions(input, now).into_iter().next()?;
    preemption.attempts.into_iter().next().map(|attempt| attempt.job)
}
