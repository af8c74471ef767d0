//! The invariants of ARCHITECTURE.md as properties, by their names there, and the states that must be reached.
//!
//! I6 (bytes of logs) is about the content of uploads and I9 (audit entries) about what is stored beside a change: neither
//! influences a decision of the protocol, so both would only add states. They have tests of their own.

use stateright::Property;

use crate::action::Action;
use crate::apply::living;
use crate::config::Config;
use crate::protocol::Protocol;
use crate::rows::{JobRow, JobRowState};
use crate::violations::Violation;
use crate::workers::ConnectionRow;
use crate::world::{StopCause, World};

/// The property that follows a schedule without faults.
pub const SETTLES: &str = "I4 every job ends";

impl Protocol {
    /// Checks what a step must not do, independently of the rules.
    pub fn check_step(&self, before: &World, after: &mut World, action: &Action) {
        let mut violations = after.violations;
        for (n, (old, new)) in before.database.jobs.iter().zip(&after.database.jobs).enumerate() {
            let is_acknowledged = after.acknowledged >> n & 1 == 1;
            let is_pending = after.servers.iter().any(|server| server.uncommitted.map(usize::from) == Some(n));
            violations.require(new.is_some() || !is_acknowledged || is_pending, Violation::SubmitLost);
            let (Some(old), Some(new)) = (old, new) else { continue };
            self.check_job(old, new, &mut violations);
        }
        for (old, new) in before.database.workers.iter().zip(&after.database.workers) {
            let (Some(old), Some(new)) = (old, new) else { continue };
            let is_ended = old.is_draining && !new.is_draining;
            violations.require(!is_ended || matches!(action, Action::Resume(_)), Violation::DrainEnded);
        }
        after.violations = violations;
    }

    fn check_job(&self, old: &JobRow, new: &JobRow, violations: &mut crate::violations::Violations) {
        let is_offered = |row: &JobRow| matches!(row.state, JobRowState::Offered { .. });
        let is_newly_offered = is_offered(new) && !is_offered(old);
        let increases = new.attempt >= old.attempt + u8::from(is_newly_offered);
        violations.require(increases, Violation::AttemptDecreased);
        let is_newest = new.active_lease().is_none_or(|lease| lease.attempt == new.attempt);
        violations.require(is_newest, Violation::OldAttemptHasLease);
        violations.require(!old.has_ended() || old.state == new.state, Violation::EndedJobChanged);
        let costs = new.losses > old.losses || matches!(new.state, JobRowState::Failed { .. });
        violations.require(!self.config.prompt || !costs, Violation::AttemptCost);
    }
}

/// The job at the beginning of a chain of retries.
fn root(world: &World, job: u8) -> u8 {
    world.database.jobs[usize::from(job)].and_then(|row| row.retry_of).map_or(job, |retried| root(world, retried))
}

fn has_one_exclusive_trainer(_: &Protocol, world: &World) -> bool {
    let jobs: Vec<u8> = living(world).filter(|(_, run)| run.exclusive).map(|(_, run)| root(world, run.key.0)).collect();
    jobs.iter().enumerate().all(|(n, job)| !jobs[..n].contains(job))
}

fn allocates_gpus_once(protocol: &Protocol, world: &World) -> bool {
    let leases: Vec<_> = world.database.jobs.iter().flatten().filter_map(JobRow::active_lease).collect();
    let is_shared = |n: usize| leases[..n].iter().any(|o| o.worker == leases[n].worker && o.gpus & leases[n].gpus != 0);
    let held = |worker: usize| leases.iter().filter(|lease| usize::from(lease.worker) == worker).count();
    let has_slots = |(worker, shape): (usize, &crate::config::HostShape)| held(worker) <= shape.max_jobs as usize;
    !(0..leases.len()).any(is_shared)
        && protocol.config.hosts.iter().take(protocol.config.workers).enumerate().all(has_slots)
}

fn uses_gpus_once(_: &Protocol, world: &World) -> bool {
    let runs: Vec<_> = living(world).collect();
    let shares = |n: usize| runs[..n].iter().any(|(host, run)| *host == runs[n].0 && run.gpus & runs[n].1.gpus != 0);
    !(0..runs.len()).any(shares)
}

fn any_job(world: &World, is_such: impl Fn(&JobRow) -> bool) -> bool {
    world.database.jobs.iter().flatten().any(is_such)
}

/// Returns the properties of a configuration.
pub fn properties(config: &Config) -> Vec<Property<Protocol>> {
    let mut properties = vec![
        Property::always("I1 attempt numbers only increase", |_, w: &World| {
            !w.violations.has(Violation::AttemptDecreased)
        }),
        Property::always("I1 only the newest attempt has a lease", |_, w: &World| {
            !w.violations.has(Violation::OldAttemptHasLease)
        }),
        Property::always("I1 an exclusive job has one trainer", has_one_exclusive_trainer),
        Property::always("I2 a terminal state never changes", |_, w: &World| {
            !w.violations.has(Violation::EndedJobChanged)
        }),
        Property::always("I2 an acknowledged submit is not lost", |_, w: &World| {
            !w.violations.has(Violation::SubmitLost)
        }),
        Property::always("I3 a GPU is allocated once", allocates_gpus_once),
        Property::always("I3 a GPU is used once", uses_gpus_once),
        Property::always("I4 what is pending is explained", |_, w: &World| !w.violations.has(Violation::Unexplained)),
        Property::always("I7 only a user ends a drain", |_, w: &World| !w.violations.has(Violation::DrainEnded)),
        Property::always("I8 a revoked token is rejected", |_, w: &World| {
            !w.violations.has(Violation::RevokedAccepted)
        }),
        Property::always("I10 silence needs a listener", |_, w: &World| !w.violations.has(Violation::JudgedTooEarly)),
        Property::always("I11 no process after the end", |_, w: &World| !w.violations.has(Violation::AliveAfterEnd)),
    ];
    if config.settles {
        properties.push(Property::always(SETTLES, Protocol::settles));
    }
    if config.prompt {
        properties.push(Property::always("I5 a restart costs no attempt", |_, w: &World| {
            !w.violations.has(Violation::AttemptCost)
        }));
    }
    properties.extend(config.reaches.iter().map(|reached| reached.property()));
    properties
}

/// A state that a check must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    Completed,
    Failed,
    Cancelled,
    Lost,
    Recovered,
    Superseded,
    Fenced,
    FencedByLease,
    Adopted,
    Draining,
    Offline,
    Deleted,
    TokenRejected,
    LeaderChanged,
    Retried,
    Orphaned,
}

impl Reached {
    fn property(self) -> Property<Protocol> {
        let is_reached: (&'static str, fn(&Protocol, &World) -> bool) = match self {
            Self::Completed => {
                ("reached: completed", |_, w| any_job(w, |job| matches!(job.state, JobRowState::Completed(_))))
            }
            Self::Failed => {
                ("reached: failed", |_, w| any_job(w, |job| matches!(job.state, JobRowState::Failed { .. })))
            }
            Self::Cancelled => {
                ("reached: cancelled", |_, w| any_job(w, |job| matches!(job.state, JobRowState::Cancelled(Some(_)))))
            }
            Self::Lost => ("reached: lost", |_, w| any_job(w, |job| job.losses > 0)),
            Self::Recovered => ("reached: recovered", |_, w| {
                any_job(w, |job| matches!(job.state, JobRowState::Running(_)) && job.losses >= job.attempt)
            }),
            Self::Superseded => ("reached: superseded", |_, w| {
                w.hosts.iter().flat_map(|host| &host.runs).any(|run| run.stop == Some(StopCause::Superseded))
            }),
            Self::Fenced => ("reached: fenced", |_, w| any_job(w, |job| job.hold_until.is_some_and(|until| until > 0))),
            Self::FencedByLease => ("reached: stopped by the lease", |_, w| {
                w.hosts.iter().flat_map(|host| &host.runs).any(|run| run.stop == Some(StopCause::Lease))
            }),
            Self::Adopted => ("reached: adopted", |_, w| {
                w.hosts.iter().any(|host| host.agent.as_ref().is_some_and(|agent| agent.has_adopted))
            }),
            Self::Draining => {
                ("reached: draining", |_, w| w.hosts.iter().flat_map(|host| &host.agent).any(|agent| agent.is_draining))
            }
            Self::Offline => ("reached: offline", |_, w| {
                w.database.workers.iter().flatten().any(|row| matches!(row.connection, ConnectionRow::Offline { .. }))
            }),
            Self::Deleted => ("reached: deleted", |_, w| w.database.workers.iter().any(Option::is_none)),
            Self::TokenRejected => ("reached: token rejected", |_, w| {
                w.hosts.iter().flat_map(|host| &host.agent).any(|agent| agent.is_rejected)
            }),
            Self::LeaderChanged => {
                ("reached: another leader", |_, w| w.servers.iter().skip(1).any(|server| server.leads_since.is_some()))
            }
            Self::Retried => ("reached: retried", |_, w| any_job(w, |job| job.retry_of.is_some() && job.attempt > 0)),
            Self::Orphaned => ("reached: trainer without supervisor", |_, w| {
                living(w).any(|(_, run)| run.stage != crate::world::Stage::Training)
            }),
        };
        Property::sometimes(is_reached.0, is_reached.1)
    }
}
