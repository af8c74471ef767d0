//! Steps of agents, supervisors and trainers.

use crate::action::Action;
use crate::config::Mutation;
use crate::messages::{Flight, Rejection, Transit};
use crate::protocol::Protocol;
use crate::ticks::Ticks;
use crate::world::{Agent, Exit, Host, Listening, Run, Stage, StopCause, World};

impl Protocol {
    pub fn apply_to_host(&self, world: &mut World, action: &Action) -> Option<()> {
        match *action {
            Action::StartAgent(n) => {
                if n >= self.config.workers && !world.hosts[n].was_used {
                    world.budget.moves -= 1;
                }
                start_agent(world, n, self.worker_of(n), self.mutation);
                self.deliver_superseded(world, n)?;
            }
            Action::KillAgent(n) => {
                world.budget.agent_kills -= 1;
                kill_agent(world, n, self.mutation == Some(Mutation::SupervisorEndsWithAgent));
            }
            Action::StopAgent(n, server) => {
                world.budget.agent_stops -= 1;
                self.service(world, server).disconnect(self.worker_of(n), n);
                kill_agent(world, n, false);
            }
            Action::KillSupervisors(n) => crash(world, n, false),
            Action::Reboot(n) => crash(world, n, true),
            Action::LoseDisk(n) => {
                world.budget.disk_losses -= 1;
                kill_agent(world, n, false);
                world.hosts[n] = Host { was_used: true, ..Host::default() };
            }
            Action::OpenStream(n, server) => self.open_stream(world, n, server)?,
            Action::ReceiveEvent(n) => {
                let desired = world.hosts[n].late_event.take()?;
                self.with_agent(world, n, |turn| turn.handle_event(desired))?;
            }
            Action::BreakStream(n) => {
                world.budget.messages -= 1;
                let host = &mut world.hosts[n];
                (host.agent.as_mut()?.listening, host.late_event) = (Listening::Unregistered, None);
            }
            _ => self.apply_to_run(world, action)?,
        }
        Some(())
    }

    fn apply_to_run(&self, world: &mut World, action: &Action) -> Option<()> {
        let (Action::StartTrainer(n, key)
        | Action::HandleOrphan(n, key)
        | Action::TrainerCompletes(n, key)
        | Action::TrainerFails(n, key)
        | Action::TrainerStops(n, key)) = *action
        else {
            return None;
        };
        let lease = world.hosts[n].agent.as_ref().and_then(|agent| agent.lease);
        let run = world.hosts[n].run(key)?;
        match action {
            Action::StartTrainer(..) => start_trainer(run, lease),
            Action::HandleOrphan(..) => Self::handle_orphan(run)?,
            Action::TrainerCompletes(..) => end_trainer(run, Exit::Completed),
            Action::TrainerFails(..) => {
                end_trainer(run, Exit::Failed);
                world.budget.failures -= 1;
            }
            _ => end_trainer(run, Exit::Stopped(run.stop?)),
        }
        world.hosts[n].runs.sort();
        self.deliver_superseded(world, n);
        Some(())
    }

    /// `handle_orphaned` in `src/worker/attempt/monitor.rs`: kills what is left before the end counts.
    fn handle_orphan(run: &mut Run) -> Option<()> {
        let Stage::Orphaned { rebooted, .. } = run.stage else { return None };
        end_trainer(run, if rebooted { Exit::HostFault } else { Exit::Failed });
        Some(())
    }

    fn open_stream(&self, world: &mut World, n: usize, server: usize) -> Option<()> {
        let session = world.hosts[n].agent.as_ref()?.session?;
        let opened = self.service(world, server).open_stream(self.worker_of(n), n, session);
        let agent = world.hosts[n].agent.as_mut()?;
        match opened {
            Ok(()) => agent.listening = Listening::Stream(u8::try_from(server).expect("few servers")),
            Err(Rejection::Conflict) => agent.listening = Listening::Unregistered,
            Err(Rejection::Unauthorized) => {
                agent.is_rejected = true;
                (agent.session, agent.listening) = (None, Listening::Unregistered);
            }
        }
        self.with_agent(world, n, |_| {})
    }
}

/// The supervisor starts the trainer only under a lease: `start_forbidden_by` in `src/worker/supervisor/stop_requests.rs`.
fn start_trainer(run: &mut Run, lease: Option<Ticks>) {
    run.had_supervisor = true;
    if run.exclusive && lease.is_none_or(|lease| lease <= 0) {
        run.stop = Some(StopCause::Lease);
        run.stage = Stage::Exited(Exit::Stopped(StopCause::Lease));
    } else {
        run.stage = Stage::Training;
        run.lease = lease.filter(|_| run.exclusive);
    }
}

pub fn end_trainer(run: &mut Run, exit: Exit) {
    (run.stage, run.lease) = (Stage::Exited(exit), None);
    run.grace_ends = false;
}

/// `with_adopted_attempts` in `src/worker/agent.rs`.
fn start_agent(world: &mut World, n: usize, worker: usize, mutation: Option<Mutation>) {
    let token = world.database.workers[worker].map_or(0, |worker| worker.credential.token);
    let host = &mut world.hosts[n];
    host.was_used = true;
    if mutation == Some(Mutation::NotAdopted) {
        host.runs.retain(|run| !run.is_active());
    }
    host.agent = Some(Agent {
        token,
        session: None,
        listening: Listening::Unregistered,
        is_draining: false,
        is_rejected: false,
        has_adopted: host.runs.iter().any(|run| run.stage == Stage::Training),
        lease: None,
        pending: Vec::new(),
        reported_missing: Vec::new(),
    });
}

/// What its agent knew only in memory is lost: acceptances, and stops before a trainer started.
fn kill_agent(world: &mut World, n: usize, with_supervisors: bool) {
    let host = &mut world.hosts[n];
    (host.agent, host.late_event) = (None, None);
    for run in &mut host.runs {
        let is_forgotten = matches!(run.stage, Stage::Exited(_)) && !run.had_supervisor && !run.end_recorded;
        if is_forgotten {
            (run.stage, run.stop) = (Stage::Preparing, None);
        }
        run.accepted &= run.stage != Stage::Preparing;
        if with_supervisors && run.stage == Stage::Training {
            run.stage = Stage::Orphaned { trainer_alive: false, rebooted: false };
        }
    }
    host.runs.sort();
    abandon_all(world, n);
}

/// The agent and all supervisors are killed. The trainer of an exclusive job ends with its supervisor; another may
/// survive it, but not a restart of the host.
fn crash(world: &mut World, n: usize, rebooted: bool) {
    world.budget.host_crashes -= 1;
    kill_agent(world, n, false);
    for run in &mut world.hosts[n].runs {
        match run.stage {
            Stage::Training => {
                let trainer_alive = !rebooted && !run.exclusive;
                (run.stage, run.lease) = (Stage::Orphaned { trainer_alive, rebooted }, None);
                (run.stop, run.grace_ends) = (None, false);
            }
            Stage::Preparing if rebooted => run.stage = Stage::Exited(Exit::HostFault),
            _ => {}
        }
    }
    world.hosts[n].runs.sort();
}

/// Requests of an agent that no longer runs may still arrive.
pub fn abandon_all(world: &mut World, n: usize) {
    let of_host = |flight: &Flight| usize::from(flight.host) == n;
    world.flights.retain(|flight| !(of_host(flight) && matches!(flight.transit, Transit::Answered(_))));
    for flight in world.flights.iter_mut().filter(|flight| of_host(flight)) {
        flight.transit = Transit::Abandoned;
    }
    world.flights.sort();
    world.flights.dedup();
}
