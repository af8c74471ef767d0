//! The state of the model: the database, the servers, the hosts, and the requests between them.

use crate::config::Budget;
use crate::messages::{Desired, Flight, Offer, Transit};
use crate::rows::{JobRow, Key};
use crate::ticks::{MAX_DELAY, Ticks, age, approach};
use crate::violations::Violations;
use crate::workers::{Session, WorkerRow};

/// What all servers share. Jobs are missing until they are submitted, workers once they are deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Database {
    pub jobs: Vec<Option<JobRow>>,
    pub workers: Vec<Option<WorkerRow>>,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Server {
    /// Since when it listens; none while it does not run.
    pub up_since: Option<Ticks>,
    /// Since when it is the leader.
    pub leads_since: Option<Ticks>,
    /// Contacts of workers that are not written yet, as bits.
    pub contacts: u8,
    /// The older state from which it answers frequent requests.
    pub old_state: Option<Box<Database>>,
    /// A submit that was acknowledged before it was stored (a mutation).
    pub uncommitted: Option<u8>,
}

/// Why a trainer was stopped: `StopCause` in `src/worker/files/exit.rs`, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StopCause {
    Lease,
    Requeue,
    Cancelled,
    Superseded,
}

/// How an attempt ended: `AttemptExit` in `src/worker/files/exit.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exit {
    Completed,
    Failed,
    /// The host was restarted.
    HostFault,
    Stopped(StopCause),
}

/// What exists of an attempt on its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Its directory; no trainer yet.
    Preparing,
    /// A supervisor and its trainer.
    Training,
    /// Its supervisor was killed without recording an exit.
    Orphaned { trainer_alive: bool, rebooted: bool },
    /// Its exit.
    Exited(Exit),
    /// Its end was reported, or is not to be reported.
    Delivered,
}

/// An attempt on a host.
#[expect(clippy::struct_excessive_bools, reason = "files of the attempt that exist or not")]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    pub key: Key,
    pub gpus: u8,
    pub exclusive: bool,
    pub stage: Stage,
    /// Whether the agent knows that its acceptance was recorded.
    pub accepted: bool,
    /// Whether a supervisor ever ran, so that the start of the trainer is to be reported.
    pub had_supervisor: bool,
    /// Whether that report was answered.
    pub running_answered: bool,
    /// Whether its final report is in its files.
    pub end_recorded: bool,
    pub stop: Option<StopCause>,
    /// Whether the grace period of the stop is over with the next tick.
    pub grace_ends: bool,
    /// When the lease in its file ends; only of an exclusive attempt with a trainer.
    pub lease: Option<Ticks>,
}

impl Run {
    /// Creates one without a trainer.
    pub const fn new(key: Key, gpus: u8, exclusive: bool, stage: Stage) -> Self {
        Self {
            key,
            gpus,
            exclusive,
            stage,
            accepted: false,
            had_supervisor: false,
            running_answered: false,
            end_recorded: false,
            stop: None,
            grace_ends: false,
            lease: None,
        }
    }

    /// Returns whether a process of the attempt is alive.
    pub const fn is_alive(&self) -> bool {
        matches!(self.stage, Stage::Training | Stage::Orphaned { trainer_alive: true, .. })
    }

    /// Returns whether the agent lists it as running.
    pub fn is_active(&self) -> bool {
        self.stage != Stage::Delivered
    }
}

/// How an agent listens: `src/worker/session/event_channel.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Listening {
    /// It must register.
    Unregistered,
    /// It has registered, and opens a stream next.
    Registered,
    /// A stream from this server.
    Stream(u8),
}

/// A running agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Agent {
    pub token: u8,
    pub session: Option<Session>,
    pub listening: Listening,
    pub is_draining: bool,
    /// Its token was rejected: it exits once nothing runs.
    pub is_rejected: bool,
    /// Whether it has adopted attempts.
    pub has_adopted: bool,
    /// When its lease ends; none until it has registered.
    pub lease: Option<Ticks>,
    /// Offers that wait for attempts that are being stopped.
    pub pending: Vec<Offer>,
    /// Missing attempts that it has reported.
    pub reported_missing: Vec<Key>,
}

/// A host of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Host {
    /// Whether an agent ever ran here.
    pub was_used: bool,
    pub agent: Option<Agent>,
    pub runs: Vec<Run>,
    /// An event of its stream that is late.
    pub late_event: Option<Desired>,
}

impl Host {
    /// Returns the attempts that its agent reports as running.
    pub fn running(&self) -> Vec<Key> {
        self.runs.iter().filter(|run| run.is_active()).map(|run| run.key).collect()
    }

    /// Returns an attempt.
    pub fn run(&mut self, key: Key) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.key == key)
    }
}

/// The state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub database: Database,
    pub servers: Vec<Server>,
    pub hosts: Vec<Host>,
    pub flights: Vec<Flight>,
    /// Tokens that must no longer be accepted: worker and token.
    pub revoked: Vec<(u8, u8)>,
    /// Jobs whose submit was acknowledged, as bits.
    pub acknowledged: u8,
    pub budget: Budget,
    /// What went wrong in the last step. Such a state has no successors.
    pub violations: Violations,
}

impl World {
    /// Adds a request that is on its way; equal states have their requests in the same order.
    pub fn insert(&mut self, flight: Flight) {
        let position = self.flights.partition_point(|other| *other < flight);
        self.flights.insert(position, flight);
    }

    /// Lets a tick pass for all stored times. Contacts are written every two seconds, and old state is read for less.
    pub fn shift_times(&mut self) {
        for server in &mut self.servers {
            server.up_since.iter_mut().chain(&mut server.leads_since).for_each(age);
            for (n, worker) in self.database.workers.iter_mut().enumerate() {
                if let Some(worker) = worker.as_mut().filter(|_| server.contacts >> n & 1 == 1) {
                    worker.seen = Some(0);
                }
            }
            (server.contacts, server.old_state) = (0, None);
        }
        self.database.jobs.iter_mut().flatten().for_each(JobRow::tick);
        self.database.workers.iter_mut().flatten().for_each(WorkerRow::tick);
        for host in &mut self.hosts {
            host.runs.iter_mut().filter_map(|run| run.lease.as_mut()).for_each(approach);
            if let Some(agent) = &mut host.agent {
                agent.lease.iter_mut().for_each(approach);
            }
        }
        self.flights.iter_mut().for_each(|flight| age(&mut flight.sent));
        self.flights.retain(|flight| flight.sent >= -MAX_DELAY);
        self.flights.sort();
        self.flights.dedup_by(|a, b| a == b && a.transit == Transit::Abandoned);
    }
}
