//! The model as Stateright checks it: initial state, actions, properties, and bounds.

use std::collections::HashSet;
use std::sync::Mutex;

use app::domain::job::Job;
use app::domain::worker::Worker;
use stateright::{Model, Property};

use crate::action::{Action, Fate};
use crate::config::{Config, Mutation};
use crate::messages::Request;
use crate::properties::properties;
use crate::rows::JobRow;
use crate::ticks::HORIZON;
use crate::workers::WorkerRow;
use crate::world::{Database, Host, Server, World};

/// A configuration, and the guard that is removed.
pub struct Protocol {
    pub config: Config,
    pub mutation: Option<Mutation>,
    /// Fingerprints of states that are known to end.
    pub settled: Vec<Mutex<HashSet<u64>>>,
}

impl Protocol {
    /// Creates the model of a configuration.
    pub fn new(config: Config, mutation: Option<Mutation>) -> Self {
        Self { config, mutation, settled: (0..64).map(|_| Mutex::default()).collect() }
    }

    /// Returns the worker of a host. Hosts beyond the workers are others of the first worker.
    pub fn worker_of(&self, host: usize) -> usize {
        if host < self.config.workers { host } else { 0 }
    }

    /// Loads a job.
    pub fn job(&self, database: &Database, n: usize) -> Option<Job> {
        Some(database.jobs[n]?.to_job(n, &self.config.jobs[n]))
    }

    /// Loads a worker.
    pub fn worker(&self, database: &Database, n: usize) -> Option<Worker> {
        Some(database.workers[n]?.to_worker(n, self.config.hosts[n]))
    }

    /// Loads the jobs with an active lease of a worker, with their indexes.
    pub fn held_indexes(&self, database: &Database, worker: usize) -> Vec<(usize, Job)> {
        let is_held = |n: &usize| {
            let lease = database.jobs[*n].and_then(|job| job.active_lease());
            lease.is_some_and(|lease| usize::from(lease.worker) == worker)
        };
        (0..database.jobs.len()).filter(is_held).filter_map(|n| Some((n, self.job(database, n)?))).collect()
    }

    /// Loads the jobs with an active lease of a worker.
    pub fn held(&self, database: &Database, worker: usize) -> Vec<Job> {
        self.held_indexes(database, worker).into_iter().map(|(_, job)| job).collect()
    }

    /// Loads all jobs and workers.
    pub fn load(&self, database: &Database) -> (Vec<Job>, Vec<Worker>) {
        let jobs = (0..database.jobs.len()).filter_map(|n| self.job(database, n)).collect();
        let workers = (0..database.workers.len()).filter_map(|n| self.worker(database, n)).collect();
        (jobs, workers)
    }

    /// A new fleet; nothing runs yet.
    fn empty_world(&self) -> World {
        let Config { hosts, workers, jobs, servers, budget, .. } = &self.config;
        let server =
            Server { up_since: Some(-HORIZON), leads_since: None, contacts: 0, old_state: None, uncommitted: None };
        World {
            database: Database { jobs: vec![None; jobs.len()], workers: vec![Some(WorkerRow::new()); *workers] },
            servers: vec![server; usize::from(*servers)],
            hosts: vec![Host::default(); hosts.len()],
            flights: Vec::new(),
            revoked: Vec::new(),
            acknowledged: 0,
            budget: *budget,
            violations: crate::violations::Violations::default(),
        }
    }

    /// All agents are connected, and the first jobs are submitted.
    fn started_world(&self) -> World {
        let mut world = self.empty_world();
        world.servers[0].leads_since = Some(-HORIZON);
        let mut step = |action: Action| {
            world = self.next_state(&world, action.clone()).unwrap_or_else(|| panic!("{action:?} at the start"));
        };
        for host in 0..self.config.workers {
            step(Action::StartAgent(host));
            let request = Request::Register { token: 0, claims: Vec::new() };
            step(Action::Exchange(host, request, 0, Fate::Answered));
            step(Action::OpenStream(host, 0));
        }
        for (n, shape) in self.config.jobs.iter().enumerate() {
            if shape.submitted {
                step(Action::Submit(n));
            }
        }
        world
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.started_world()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if !world.violations.any() && !is_over(world) {
            self.list_actions(world, actions);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut after = world.clone();
        self.apply(&mut after, &action)?;
        self.check_step(world, &mut after, &action);
        (after != *world).then_some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(&self.config)
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.database.jobs.iter().flatten().all(|job| job.attempt <= self.config.max_attempt)
    }
}

/// Returns whether nothing of any job is left.
fn is_over(world: &World) -> bool {
    let has_ended = |job: &Option<JobRow>| job.is_some_and(|job| job.has_ended());
    let is_delivered = world.hosts.iter().all(|host| host.running().is_empty());
    world.database.jobs.iter().all(has_ended) && is_delivered && world.flights.is_empty()
}
