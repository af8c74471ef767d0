//! Model-based tests of a whole fleet: generated commands are applied to the rules and to a much simpler model. After
//! each command both must agree, and the invariants must hold.
//!
//! `server` calls the rules like the service does, `model` knows the expected result, `planning` checks plans, and
//! `repeated_planning` that they do not depend on what the planner remembers. `older_agent_claims` and `gpus` implement
//! the reports of agents for both. `reached_states` checks that the commands lead everywhere.

mod commands;
mod gpus;
mod job;
mod model;
mod older_agent_claims;
mod planning;
mod reached_states;
mod repeated_planning;
mod server;

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use self::commands::{ClaimedAttempts, FleetCommand, HostSpec, Scenario, scenario};
use self::model::{FleetModel, ModelConnection, ModelJobState, NEVER};
use self::planning::PlannedRound;
use self::server::{PlanningTrigger, SimulatedServer};
use super::explain::{ExplainVerdict, Feasibility, FeasibilityCache, explain};
use super::fixtures::job_id;
use super::ids::{AttemptNumber, JobId, WorkerId};
use super::job::{Job, JobState};
use super::plan::Assignment;
use super::time::Timestamp;
use super::worker::{self, Worker, WorkerKind};

/// Most workers are registered and connected at the start.
fn initial_commands(hosts: &[HostSpec]) -> impl Iterator<Item = FleetCommand> {
    hosts.iter().enumerate().filter(|(_, host)| host.registers_first).flat_map(|(worker, _)| {
        let register = FleetCommand::Register { worker, elsewhere: false, claims: ClaimedAttempts::Nothing };
        [register, FleetCommand::StreamOpened(worker, 0)]
    })
}

proptest! {
    #[test]
    fn fleet_agrees_with_its_model(Scenario { hosts, limits, commands } in scenario()) {
        let (mut server, mut model) = (SimulatedServer::new(&hosts, limits), FleetModel::new(&hosts, limits));
        for command in initial_commands(&hosts).chain(commands) {
            apply_and_compare(&mut server, &mut model, &command).map_err(|error| error_at(&command, error))?;
        }
    }
}

fn error_at(command: &FleetCommand, error: TestCaseError) -> TestCaseError {
    match error {
        TestCaseError::Fail(reason) => TestCaseError::fail(format!("at {command:?}: {reason}")),
        other @ TestCaseError::Reject(_) => other,
    }
}

fn apply_and_compare(
    server: &mut SimulatedServer,
    model: &mut FleetModel,
    command: &FleetCommand,
) -> Result<(), TestCaseError> {
    let (jobs, workers) = (server.jobs.clone(), server.workers.clone());
    let outcome = server.apply(command);
    prop_assert_eq!(outcome.is_some(), model.apply(command).is_some(), "accepted by one, rejected by the other");
    prop_assert!(outcome.is_some() || server.jobs == jobs, "a rejected command changes no job");
    if outcome == Some(PlanningTrigger::Follows) {
        let mut last_round = std::mem::take(&mut server.last_round);
        let (assignments, reserved) = last_round.plan(server);
        let with_memory = by_index(server, &assignments, &reserved);
        server.last_round = last_round;
        let round = planned_round(server);
        prop_assert_eq!(with_memory, round.clone(), "with the last round's result");
        model.plan(&round)?;
        for (job, worker, gpus) in round.offers {
            server.offer(job, worker, gpus);
        }
        check_pending_is_explained(server)?;
        check_feasibility(server)?;
    }
    for (before, after) in jobs.iter().zip(&server.jobs) {
        check_job_invariants(before, after)?;
    }
    for (before, after) in workers.iter().zip(&server.workers) {
        let drains = |worker: &Worker| worker.drain.is_some();
        let drain_ended = before.as_ref().is_some_and(drains) && !after.as_ref().is_none_or(drains);
        prop_assert!(!drain_ended || matches!(command, FleetCommand::Resume(_)), "only a user ends a drain (I7)");
    }
    assert_agree(server, model)
}

/// Checks that both agree, and that no worker uses more than it has.
fn assert_agree(server: &SimulatedServer, model: &FleetModel) -> Result<(), TestCaseError> {
    prop_assert_eq!(server.jobs.len(), model.jobs.len());
    for (n, (job, expected)) in server.jobs.iter().zip(&model.jobs).enumerate() {
        prop_assert_eq!(observed_job(server, job), model_job(expected), "job {}", n);
    }
    for (n, (worker, expected)) in server.workers.iter().zip(&model.workers).enumerate() {
        let existing = Some(expected).filter(|worker| !worker.removed);
        prop_assert_eq!(worker.as_ref().map(observed_worker), existing.map(model_worker), "worker {}", n);
        check_worker_capacity(model, n)?;
    }
    Ok(())
}

fn planned_round(server: &SimulatedServer) -> PlannedRound {
    let plan = server.plan();
    by_index(server, &plan.assignments, &plan.reserved)
}

/// A plan by indexes.
fn by_index(
    server: &SimulatedServer,
    assignments: &[Assignment],
    reserved: &BTreeMap<&WorkerId, &JobId>,
) -> PlannedRound {
    let job = |id: &JobId| server.jobs.iter().position(|job| job.id == *id).expect("a known ID");
    let offer = |assignment: &Assignment| {
        (job(&assignment.job), server.worker_index(&assignment.worker), assignment.gpus.clone())
    };
    let reserved = reserved.iter().map(|(worker, job_id)| (server.worker_index(worker), job(job_id)));
    PlannedRound { offers: assignments.iter().map(offer).collect(), reserved: reserved.collect() }
}

/// I4: after a round, every pending job has an explanation. The last job in the queue depends on all before it.
fn check_pending_is_explained(server: &SimulatedServer) -> Result<(), TestCaseError> {
    if let Some(job) = server.waiting().pop() {
        let explanation = explain(job, server.waiting(), server.fleet(), server.now);
        let is_explained = !matches!(explanation.verdict, ExplainVerdict::Fits { .. } | ExplainVerdict::NotWaiting);
        prop_assert!(is_explained, "{:?} is pending, explained as {:?} (I4)", job.id, explanation.verdict);
    }
    Ok(())
}

/// Feasibility in lists and on the overview agrees with the explanation.
fn check_feasibility(server: &SimulatedServer) -> Result<(), TestCaseError> {
    let waiting = server.waiting();
    let mut feasibility_cache = FeasibilityCache::with_budget(server.fleet(), usize::MAX);
    for job in &waiting {
        let explanation = explain(job, waiting.iter().copied(), server.fleet(), server.now);
        let feasibility = match explanation.verdict {
            ExplainVerdict::Busy | ExplainVerdict::LimitReached(_) => Feasibility::Busy,
            ExplainVerdict::WorkerUnavailable => Feasibility::WorkerUnavailable,
            ExplainVerdict::Unsatisfiable => Feasibility::Unsatisfiable,
            ExplainVerdict::NoLocalWorker => Feasibility::NoLocalWorker,
            ExplainVerdict::NoWorkers => Feasibility::NoWorkers,
            ExplainVerdict::NotWaiting
            | ExplainVerdict::Fits { .. }
            | ExplainVerdict::BackOff { .. }
            | ExplainVerdict::Held { .. }
            | ExplainVerdict::Preempting { .. } => continue,
        };
        prop_assert_eq!(feasibility_cache.feasibility(job), Some(feasibility));
    }
    Ok(())
}

/// Checks the invariants of one job between two states.
fn check_job_invariants(before: &Job, after: &Job) -> Result<(), TestCaseError> {
    prop_assert!(after.attempt >= before.attempt, "attempt numbers only increase (I1)");
    prop_assert!(
        after.active_lease().is_none_or(|lease| lease.attempt == after.attempt),
        "an old attempt has the lease (I1)"
    );
    prop_assert!(!before.has_ended() || after == before, "a terminal state never changes (I2)");
    prop_assert!(after.losses <= after.spec.max_retries + 1, "retries are limited");
    if matches!(before.state, JobState::Cancelling { .. }) {
        let stays = matches!(after.state, JobState::Cancelling { .. } | JobState::Cancelled { .. });
        prop_assert!(stays, "a cancelled job never completes");
    }
    Ok(())
}

/// Checks I3 and the maximum number of jobs of the worker.
fn check_worker_capacity(model: &FleetModel, worker: usize) -> Result<(), TestCaseError> {
    let held_jobs: Vec<_> = model.held_by(worker).collect();
    prop_assert!(held_jobs.len() <= model.workers[worker].host.max_jobs as usize, "worker {worker} has too many jobs");
    let mut gpus: Vec<_> = held_jobs.iter().filter_map(|job| job.offers.last()).flat_map(|(_, gpus)| gpus).collect();
    let number = gpus.len();
    gpus.sort();
    gpus.dedup();
    prop_assert_eq!(gpus.len(), number, "two jobs have one GPU of worker {} (I3)", worker);
    Ok(())
}

type ObservedJob =
    (ModelJobState, Option<(usize, AttemptNumber)>, Option<Vec<String>>, Option<usize>, u32, u8, Option<Timestamp>);

fn observed_job(server: &SimulatedServer, job: &Job) -> ObservedJob {
    let newest = job.last_lease().map(|lease| (server.worker_index(&lease.worker), job.attempt));
    let gpus = job.last_lease().map(|lease| lease.gpus.clone());
    let holder = job.active_lease().map(|lease| server.worker_index(&lease.worker));
    (ModelJobState::from_state(&job.state), newest, gpus, holder, job.losses, job.priority, job.hold_until)
}

fn model_job(job: &model::ModelJob) -> ObservedJob {
    let gpus = job.newest_offer().map(|(_, gpus)| gpus.clone());
    (job.state, job.newest(), gpus, job.holder(), job.losses, job.priority, job.hold_until)
}

type ObservedWorker = (ModelConnection, Option<WorkerKind>, Option<Timestamp>, bool, Option<JobId>);

fn observed_worker(worker: &Worker) -> ObservedWorker {
    let connection = match &worker.connection {
        worker::ConnectionState::NeverConnected => ModelConnection::NeverConnected,
        worker::ConnectionState::Connecting { connection_lost: true, .. } => ModelConnection::Lost,
        worker::ConnectionState::Connecting { connection_lost: false, .. } => ModelConnection::Connecting,
        worker::ConnectionState::Online { stream, .. } => ModelConnection::Listening(stream.parse().expect("a number")),
        worker::ConnectionState::Offline { .. } => ModelConnection::Offline,
    };
    let drain = worker.drain.as_ref().map(|drain| drain.deadline.unwrap_or(NEVER));
    (connection, worker.kind, drain, worker.retired_at.is_some(), worker.unassigned_run.clone())
}

fn model_worker(worker: &model::ModelWorker) -> ObservedWorker {
    let unassigned_run = worker.unassigned_run.map(|job| job_id(u16::try_from(job).expect("few")));
    (worker.connection, worker.kind, worker.drain, worker.retired, unassigned_run)
}
