//! Checks that the generated commands reach every state of a job and of a worker: the model does not test one that they
//! never reach.

use std::collections::BTreeSet;
use std::iter;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::commands::{Scenario, scenario};
use super::model::{FleetModel, ModelConnection};
use super::server::SimulatedServer;
use super::{apply_and_compare, initial_commands};
use crate::domain::job_status::JobStatus;

/// As many as the other test tries by default.
const SCENARIOS: usize = 256;

/// Every connection of the model: the match lists all, so a new one does not compile until it is added here.
fn every_connection() -> impl Iterator<Item = ModelConnection> {
    iter::successors(Some(ModelConnection::NeverConnected), |connection| match connection {
        ModelConnection::NeverConnected => Some(ModelConnection::Connecting),
        ModelConnection::Connecting => Some(ModelConnection::Listening(0)),
        ModelConnection::Listening(_) => Some(ModelConnection::Lost),
        ModelConnection::Lost => Some(ModelConnection::Offline),
        ModelConnection::Offline => None,
    })
}

#[test]
fn generated_commands_reach_every_state() {
    // The same scenarios in each run.
    let (mut runner, scenarios) = (TestRunner::deterministic(), scenario());
    let (mut statuses, mut unreached) = (BTreeSet::new(), every_connection().collect::<Vec<_>>());
    for _ in 0..SCENARIOS {
        let Scenario { hosts, limits, commands } = scenarios.new_tree(&mut runner).expect("a scenario").current();
        let (mut server, mut model) = (SimulatedServer::new(&hosts, limits), FleetModel::new(&hosts, limits));
        for command in initial_commands(&hosts).chain(commands) {
            apply_and_compare(&mut server, &mut model, &command).expect("the rules agree with the model");
            statuses.extend(server.jobs.iter().map(|job| job.state.status()));
            unreached.retain(|connection| model.workers.iter().all(|worker| worker.connection != *connection));
        }
    }
    assert_eq!(statuses, BTreeSet::from(JobStatus::ALL), "a command leads to each status of a job");
    assert!(unreached.is_empty(), "no command leads to a worker that is {unreached:?}");
}
