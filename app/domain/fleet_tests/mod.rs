//! Any story of a whole fleet, told to the rules and to a model of them that is far simpler: after every command both
//! say the same, and the invariants hold.
//!
//! `server` calls the rules as the service does, `model` knows what should follow, `planning` what a plan may be; `words`
//! and `gpus` are both for what agents say of themselves.

mod commands;
mod gpus;
mod job;
mod model;
mod planning;
mod server;
mod words;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use self::commands::{Claims, Command, Host, Story, story};
use self::model::{How, Link, Model, NEVER, Stands};
use self::planning::Round;
use self::server::{Planning, Server};
use super::explain::{Outlook, Outlooks, Verdict, explain};
use super::fixtures::job_id;
use super::ids::{Attempt, JobId};
use super::job::{Failure, Job, State};
use super::time::Timestamp;
use super::worker::{self, Kind, Worker};

/// Most workers have registered and listen when the story begins.
fn beginning(hosts: &[Host]) -> impl Iterator<Item = Command> {
    hosts.iter().enumerate().filter(|(_, host)| host.comes).flat_map(|(worker, _)| {
        let register = Command::Register { worker, elsewhere: false, claims: Claims::Nothing };
        [register, Command::Listen(worker, 0)]
    })
}

proptest! {
    #[test]
    fn a_fleet_does_what_its_model_does(Story { hosts, limits, commands } in story()) {
        let (mut server, mut model) = (Server::new(&hosts, limits), Model::new(&hosts, limits));
        for command in beginning(&hosts).chain(commands) {
            step(&mut server, &mut model, &command).map_err(|error| error_at(&command, error))?;
        }
    }
}

fn error_at(command: &Command, error: TestCaseError) -> TestCaseError {
    match error {
        TestCaseError::Fail(why) => TestCaseError::fail(format!("at {command:?}: {why}")),
        other @ TestCaseError::Reject(_) => other,
    }
}

fn step(server: &mut Server, model: &mut Model, command: &Command) -> Result<(), TestCaseError> {
    let (jobs, workers) = (server.jobs.clone(), server.workers.clone());
    let outcome = server.take(command);
    prop_assert_eq!(outcome.is_some(), model.take(command).is_some(), "accepted by one, refused by the other");
    prop_assert!(outcome.is_some() || server.jobs == jobs, "a refusal changes no job");
    if outcome == Some(Planning::Follows) {
        let round = round(server);
        model.plan(&round)?;
        for (job, worker, gpus) in round.offers {
            server.offer(job, worker, gpus);
        }
        nothing_waits_that_fits(server)?;
        outlooks_are_those_that_are_explained(server)?;
    }
    for (before, after) in jobs.iter().zip(&server.jobs) {
        lives_on(before, after)?;
    }
    for (before, after) in workers.iter().zip(&server.workers) {
        let drains = |worker: &Worker| worker.drain.is_some();
        let undone = before.as_ref().is_some_and(drains) && !after.as_ref().is_none_or(drains);
        prop_assert!(!undone || matches!(command, Command::Resume(_)), "a drain is undone only by a person (I7)");
    }
    agree(server, model)
}

/// Both say the same, and no worker holds more than it has.
fn agree(server: &Server, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(server.jobs.len(), model.jobs.len());
    for (n, (job, expected)) in server.jobs.iter().zip(&model.jobs).enumerate() {
        prop_assert_eq!(seen_job(server, job), model_job(expected), "job {}", n);
    }
    for (n, (worker, expected)) in server.workers.iter().zip(&model.workers).enumerate() {
        let there = Some(expected).filter(|worker| !worker.removed);
        prop_assert_eq!(worker.as_ref().map(seen_worker), there.map(model_worker), "worker {}", n);
        holds_no_more_than_it_has(model, n)?;
    }
    Ok(())
}

/// The plan by places.
fn round(server: &Server) -> Round {
    let plan = server.plan();
    let job = |id: &JobId| server.jobs.iter().position(|job| job.id == *id).expect("one of ours");
    let offers = plan.assignments.iter().map(|to| (job(&to.job), server.place(&to.worker), to.gpus.clone())).collect();
    let kept = plan.reserved.iter().map(|(worker, of)| (server.place(worker), job(of))).collect();
    Round { offers, kept }
}

/// I4: after a round, who waits is told why. The last in the queue hears of all before it.
fn nothing_waits_that_fits(server: &Server) -> Result<(), TestCaseError> {
    if let Some(job) = server.waiting().pop() {
        let explanation = explain(job, server.waiting(), server.fleet(), server.now);
        let told = !matches!(explanation.verdict, Verdict::Fits { .. } | Verdict::NotWaiting);
        prop_assert!(told, "{:?} waits, and is told {:?} (I4)", job.id, explanation.verdict);
    }
    Ok(())
}

/// Lists and the overview say of a job what its explanation says.
fn outlooks_are_those_that_are_explained(server: &Server) -> Result<(), TestCaseError> {
    let waiting = server.waiting();
    let mut outlooks = Outlooks::within(server.fleet(), usize::MAX);
    for job in &waiting {
        let explanation = explain(job, waiting.iter().copied(), server.fleet(), server.now);
        let outlook = match explanation.verdict {
            Verdict::Busy | Verdict::Limited(_) => Outlook::Busy,
            Verdict::Away => Outlook::Away,
            Verdict::Never => Outlook::Never,
            Verdict::NoLocalWorker => Outlook::NoLocalWorker,
            Verdict::NoWorkers => Outlook::NoWorkers,
            Verdict::NotWaiting | Verdict::Fits { .. } | Verdict::BackOff { .. } | Verdict::KeptBack { .. } => continue,
        };
        prop_assert_eq!(outlooks.of(job), Some(outlook));
    }
    Ok(())
}

/// What holds for one job from one moment to the next.
fn lives_on(before: &Job, after: &Job) -> Result<(), TestCaseError> {
    prop_assert!(after.attempt >= before.attempt, "attempts only grow (I1)");
    prop_assert!(after.live_lease().is_none_or(|lease| lease.attempt == after.attempt), "an old attempt holds (I1)");
    prop_assert!(!before.has_ended() || after == before, "a terminal state never changes (I2)");
    prop_assert!(after.losses <= after.spec.max_retries + 1, "retries are limited");
    if matches!(before.state, State::Cancelling { .. }) {
        let stays = matches!(after.state, State::Cancelling { .. } | State::Cancelled { .. });
        prop_assert!(stays, "a cancelled job never completes");
    }
    Ok(())
}

/// I3, and the number of jobs that the worker takes.
fn holds_no_more_than_it_has(model: &Model, worker: usize) -> Result<(), TestCaseError> {
    let held: Vec<_> = model.held_by(worker).collect();
    prop_assert!(held.len() <= model.workers[worker].host.max_jobs as usize, "worker {worker} has too many jobs");
    let mut gpus: Vec<_> = held.iter().filter_map(|job| job.offers.last()).flat_map(|(_, gpus)| gpus).collect();
    let number = gpus.len();
    gpus.sort();
    gpus.dedup();
    prop_assert_eq!(gpus.len(), number, "two jobs hold one GPU of worker {} (I3)", worker);
    Ok(())
}

type SeenJob = (Stands, Option<(usize, Attempt)>, Option<Vec<String>>, Option<usize>, u32, u8, Option<Timestamp>);

fn seen_job(server: &Server, job: &Job) -> SeenJob {
    let stands = match &job.state {
        State::Queued { not_before, .. } => Stands::Waiting { due: not_before.unwrap_or_default() },
        State::Offered { until, .. } => Stands::Offered { until: *until },
        State::Starting { .. } => Stands::Starting,
        State::Running { since, .. } => Stands::Running { since: *since },
        State::Cancelling { .. } => Stands::Cancelling,
        State::Completed { .. } => Stands::Ended(How::Completed),
        State::Failed { failure: Failure::OverTime { .. }, .. } => Stands::Ended(How::OverTime),
        State::Failed { .. } => Stands::Ended(How::Failed),
        State::Cancelled { .. } => Stands::Ended(How::Cancelled),
    };
    let newest = job.last_lease().map(|lease| (server.place(&lease.worker), job.attempt));
    let gpus = job.last_lease().map(|lease| lease.gpus.clone());
    let holder = job.live_lease().map(|lease| server.place(&lease.worker));
    (stands, newest, gpus, holder, job.losses, job.priority, job.kept_back)
}

fn model_job(job: &model::Job) -> SeenJob {
    let gpus = job.offers.last().map(|(_, gpus)| gpus.clone());
    (job.stands, job.newest(), gpus, job.holder(), job.losses, job.priority, job.kept_back)
}

type SeenWorker = (Link, Option<Kind>, Option<Timestamp>, bool, Option<JobId>);

fn seen_worker(worker: &Worker) -> SeenWorker {
    let link = match &worker.link {
        worker::Link::NeverSeen => Link::Unseen,
        worker::Link::Connecting { .. } => Link::Connecting,
        worker::Link::Online { stream, .. } => Link::Listening(stream.parse().expect("a number")),
        worker::Link::Offline { .. } => Link::Away,
    };
    let drain = worker.drain.as_ref().map(|drain| drain.deadline.unwrap_or(NEVER));
    (link, worker.kind, drain, worker.spent.is_some(), worker.astray.clone())
}

fn model_worker(worker: &model::Worker) -> SeenWorker {
    let astray = worker.astray.map(|job| job_id(u16::try_from(job).expect("few")));
    (worker.link, worker.kind, worker.drain, worker.spent, astray)
}
