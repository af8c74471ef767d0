//! I4: from every state, the job ends once faults end and everything that can happen does happen.
//!
//! A fair schedule without further faults is followed. A host whose agent does not run stays silent, unless no other host
//! can run the job: a job must not wait for a dead host.

use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::Model;

use crate::action::{Action, Fate};
use crate::loops::is_stuck_with_reason;
use crate::messages::{Request, Transit};
use crate::protocol::Protocol;
use crate::world::{Listening, World};

/// Longer schedules do not end.
const MAX_STEPS: usize = 400;

impl Protocol {
    /// Returns whether all jobs end, or wait with a reason that needs an admin.
    pub fn settles(&self, world: &World) -> bool {
        let mut current = without_faults(world);
        let mut passed = Vec::new();
        let mut is_settled = current.violations.any();
        for _ in 0..MAX_STEPS {
            let fingerprint = fingerprint(&current);
            if is_settled || self.is_known(fingerprint) || self.has_settled(&current) {
                is_settled = true;
                break;
            }
            passed.push(fingerprint);
            let Some((_, next)) = self.fair_step(&current) else { break };
            current = next;
        }
        if is_settled {
            for fingerprint in passed {
                self.shard(fingerprint).lock().expect("no panic while it is held").insert(fingerprint);
            }
        }
        is_settled
    }

    fn shard(&self, fingerprint: u64) -> &std::sync::Mutex<std::collections::HashSet<u64>> {
        &self.settled[usize::try_from(fingerprint % 64).expect("small")]
    }

    fn is_known(&self, fingerprint: u64) -> bool {
        self.shard(fingerprint).lock().expect("no panic while it is held").contains(&fingerprint)
    }

    fn has_settled(&self, world: &World) -> bool {
        let (jobs, workers) = self.load(&world.database);
        let waits = is_lasting(world);
        jobs.iter().all(|job| job.has_ended() || (waits && is_stuck_with_reason(job, &jobs, &workers)))
    }

    /// The first possible step in the order of urgency that changes something.
    fn fair_step(&self, world: &World) -> Option<(Action, World)> {
        let mut actions = Vec::new();
        self.list_actions(world, &mut actions);
        let lives = world.hosts.iter().zip(&world.database.workers).filter(|(_, worker)| worker.is_some());
        let is_needed = lives.map(|(host, _)| host).all(|host| host.agent.is_none());
        let mut ranked: Vec<(u8, &Action)> =
            actions.iter().filter_map(|action| Some((rank(world, action, is_needed)?, action))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().find_map(|(_, action)| Some((action.clone(), self.next_state(world, action.clone())?)))
    }

    /// The steps of the schedule from a state, for a message.
    pub fn schedule(&self, world: &World, length: usize) -> Vec<Action> {
        let mut current = without_faults(world);
        let step = || {
            let (action, next) = self.fair_step(&current)?;
            current = next;
            Some(action)
        };
        std::iter::from_fn(step).take(length).collect()
    }
}

/// Servers read current state, and no fault follows.
fn without_faults(world: &World) -> World {
    let mut world = World { budget: crate::config::Budget::default(), ..world.clone() };
    world.servers.iter_mut().for_each(|server| server.old_state = None);
    world
}

/// Returns whether no host returns by itself: workers are deleted or draining, or their agents do not run.
fn is_lasting(world: &World) -> bool {
    let mut lives = world.hosts.iter().zip(&world.database.workers).filter(|(_, worker)| worker.is_some());
    let can_start = lives.clone().all(|(host, _)| host.agent.is_none()) && lives.clone().next().is_some();
    let lasts = lives.all(|(host, worker)| {
        let Some(agent) = &host.agent else { return true };
        let is_draining = worker.is_some_and(|worker| worker.is_draining);
        is_draining && matches!(agent.listening, Listening::Stream(_))
    });
    lasts && !can_start
}

/// The order of steps; none for faults, and for what users do.
fn rank(world: &World, action: &Action, is_needed: bool) -> Option<u8> {
    Some(match action {
        Action::StartServer(_) => 0,
        Action::TakeLead(_) => 1,
        Action::CommitSubmit(_) => 2,
        Action::Drop(_) => 3,
        Action::Receive(_) | Action::ReceiveEvent(_) => 4,
        Action::Deliver(flight, _) if flight.transit == Transit::Sent => 5,
        Action::NoticeClosed(_) => 6,
        Action::CheckHealth(..) => 7,
        Action::Sweep(_) => 8,
        Action::StartAgent(n) if is_needed && world.database.workers.get(*n).is_some_and(Option::is_some) => 9,
        Action::Exchange(_, Request::Register { .. }, _, Fate::Answered) => 10,
        Action::OpenStream(..) => 11,
        Action::Exchange(_, Request::Report { .. }, _, Fate::Answered) => 12,
        Action::HandleOrphan(..) | Action::TrainerStops(..) | Action::StartTrainer(..) => 13,
        Action::Push(n, Fate::Answered) => {
            let agent = world.hosts[*n].agent.as_ref()?;
            if matches!(agent.listening, Listening::Stream(_)) { 14 } else { return None }
        }
        Action::TrainerCompletes(..) => 15,
        Action::Exchange(_, Request::Heartbeat { .. }, _, Fate::Answered) => 16,
        Action::Tick => 17,
        _ => return None,
    })
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
