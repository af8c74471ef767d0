//! What each step does.

use crate::action::{Action, Fate};
use crate::agent::AgentTurn;
use crate::config::Mutation;
use crate::protocol::Protocol;
use crate::rows::LeaseRow;
use crate::service::Service;
use crate::ticks::{TIMEOUT, Ticks};
use crate::violations::Violation;
use crate::workers::{ConnectionRow, Session};
use crate::world::{
    Agent, Exit, Flight, Host, Listening, Rejection, Request, Response, Run, Server, Stage, StopCause, Transit, World,
};

impl Protocol {
    fn service<'w>(&'w self, world: &'w mut World, server: usize) -> Service<'w> {
        Service { protocol: self, world, server }
    }

    /// Applies a step; none if it is not possible.
    pub fn apply(&self, world: &mut World, action: &Action) -> Option<()> {
        match action {
            Action::Tick => self.tick(world),
            Action::Exchange(n, request, server, fate) => {
                let flight = new_flight(world, *n, request);
                self.process(world, &flight, *server, *fate)?;
            }
            Action::SendLate(n, request) => {
                world.budget.messages -= 1;
                let flight = new_flight(world, *n, request);
                world.insert(flight);
            }
            Action::Deliver(flight, server) => {
                remove(world, flight)?;
                self.process(world, flight, *server, Fate::Answered)?;
            }
            Action::Abandon(flight) => {
                remove(world, flight)?;
                world.insert(Flight { transit: Transit::Abandoned, ..flight.clone() });
            }
            Action::Drop(flight) => remove(world, flight)?,
            Action::Receive(flight) => {
                remove(world, flight)?;
                let Transit::Answered(response) = &flight.transit else { return None };
                self.handle_response(world, flight, response.clone())?;
            }
            Action::StartServer(_)
            | Action::KillServer(_)
            | Action::TakeLead(_)
            | Action::LoseLead(_)
            | Action::ReadOldState(_)
            | Action::CheckHealth(..)
            | Action::Sweep(_)
            | Action::CommitSubmit(_)
            | Action::NoticeClosed(_) => self.apply_to_server(world, action)?,
            Action::Submit(_)
            | Action::Retry(..)
            | Action::Cancel(_)
            | Action::Drain(..)
            | Action::Resume(_)
            | Action::Rotate(..)
            | Action::Delete(_) => self.apply_command(world, action)?,
            Action::Push(host, fate) => self.push(world, *host, *fate)?,
            other => self.apply_to_host(world, other)?,
        }
        Some(())
    }

    /// Ten seconds pass. Until then, supervisors have stopped trainers whose lease ends or whose grace period is over.
    fn tick(&self, world: &mut World) {
        for n in (0..world.hosts.len()).filter(|n| self.is_steady(*n)) {
            self.keep_contact(world, n);
        }
        world.shift_times();
        for run in world.hosts.iter_mut().flat_map(|host| &mut host.runs).filter(|run| run.stage == Stage::Training) {
            let has_ended = run.exclusive && run.lease.is_none_or(|lease| lease <= 0);
            if has_ended && self.mutation != Some(Mutation::LeaseIgnored) {
                run.stop = run.stop.or(Some(StopCause::Lease));
                end_trainer(run, Exit::Stopped(StopCause::Lease));
            } else if run.grace_ends {
                end_trainer(run, Exit::Stopped(StopCause::Lease));
            } else {
                run.grace_ends = run.stop.is_some();
            }
        }
        for n in 0..world.hosts.len() {
            world.hosts[n].runs.sort();
            self.deliver_superseded(world, n);
        }
    }

    /// A steady host sends a heartbeat in each tick.
    fn keep_contact(&self, world: &mut World, n: usize) {
        let is_heartbeat = |request: &Request| matches!(request, Request::Heartbeat { .. });
        let server = world.servers.iter().position(|server| server.up_since.is_some());
        if let (Some(server), Some(request)) = (server, self.requests(world, n).into_iter().find(is_heartbeat)) {
            let flight = new_flight(world, n, &request);
            self.process(world, &flight, server, Fate::Answered);
        }
    }

    /// Returns whether a leader would judge a worker.
    pub fn is_silent(world: &World, leader: usize, n: usize) -> bool {
        let server = &world.servers[leader];
        let contact = world.database.workers[n].and_then(|worker| worker.seen);
        server.contacts >> n & 1 == 0 && contact.is_some_and(|seen| -seen > TIMEOUT)
    }

    fn process(&self, world: &mut World, flight: &Flight, server: usize, fate: Fate) -> Option<()> {
        let host = usize::from(flight.host);
        let before = reported_job(&flight.request).and_then(|n| world.database.jobs[n]?.active_lease());
        let response = self.service(world, server).process(host, &flight.request);
        self.require_stopped(world, flight, before);
        if flight.transit == Transit::Abandoned {
            return Some(());
        }
        match fate {
            Fate::Answered => self.handle_response(world, flight, response)?,
            Fate::Lost => world.budget.messages -= 1,
            Fate::Late => {
                world.budget.messages -= 1;
                world.insert(Flight { transit: Transit::Answered(response), ..flight.clone() });
            }
        }
        Some(())
    }

    /// I11: when the end of an attempt is reported, it has no living process on its host, nor has an attempt that loses
    /// its lease by the report.
    fn require_stopped(&self, world: &mut World, flight: &Flight, before: Option<LeaseRow>) {
        if let Request::Report { key, report } | Request::ReportMissing { key, report } = &flight.request
            && report.has_stopped()
        {
            let job = world.database.jobs[usize::from(key.0)];
            let is_released = job.is_none_or(|job| job.active_lease().is_none());
            let released = before.filter(|_| is_released).map(|lease| (usize::from(lease.worker), lease.attempt));
            let sender = usize::from(flight.host);
            let is_alive =
                |host: usize, attempt: u8| living(world).any(|(n, run)| n == host && run.key == (key.0, attempt));
            let is_alive_elsewhere = |(worker, attempt): (usize, u8)| {
                let is_other = worker != self.worker_of(sender);
                is_alive(sender, attempt) || (is_other && is_alive(worker, attempt))
            };
            let none_lives = !is_alive(sender, key.1) && !released.is_some_and(is_alive_elsewhere);
            world.violations.require(none_lives, Violation::AliveAfterEnd);
        }
    }

    fn handle_response(&self, world: &mut World, flight: &Flight, response: Response) -> Option<()> {
        let host = usize::from(flight.host);
        self.with_agent(world, host, |turn| turn.handle_response(&flight.request, flight.sent, response))
    }

    /// Lets the agent of a host handle an input.
    fn with_agent(&self, world: &mut World, n: usize, handle: impl FnOnce(&mut AgentTurn<'_>)) -> Option<()> {
        let host = &mut world.hosts[n];
        let agent = host.agent.take()?;
        let max_jobs = usize::try_from(self.config.hosts[n].max_jobs).expect("few jobs");
        let mut turn = AgentTurn { protocol: self, host, agent, missing: Vec::new(), max_jobs };
        handle(&mut turn);
        for (key, report) in turn.finish() {
            let flight = new_flight(world, n, &Request::ReportMissing { key, report });
            world.insert(flight);
        }
        if world.hosts[n].agent.is_none() {
            abandon_all(world, n);
        }
        Some(())
    }

    fn deliver_superseded(&self, world: &mut World, n: usize) -> Option<()> {
        self.with_agent(world, n, |turn| {
            turn.deliver_all_superseded();
        })
    }

    /// The stream sends what its worker should do, or ends.
    fn push(&self, world: &mut World, n: usize, fate: Fate) -> Option<()> {
        let agent = world.hosts[n].agent.as_ref()?;
        let Listening::Stream(server) = agent.listening else { return None };
        let session = agent.session.unwrap_or(Session::Replaced);
        let Some(desired) = self.service(world, usize::from(server)).desired_for_stream(self.worker_of(n), n, session)
        else {
            world.hosts[n].late_event = None;
            world.hosts[n].agent.as_mut()?.listening = Listening::Unregistered;
            if stream_host(world, self.worker_of(n)) == Some((usize::from(server), n)) {
                self.service(world, usize::from(server)).close_stream(self.worker_of(n));
            }
            return Some(());
        };
        if fate == Fate::Late {
            world.budget.messages -= 1;
            world.hosts[n].late_event = Some(desired);
            return Some(());
        }
        self.with_agent(world, n, |turn| turn.handle_event(desired))
    }

    fn apply_to_host(&self, world: &mut World, action: &Action) -> Option<()> {
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

fn end_trainer(run: &mut Run, exit: Exit) {
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
fn abandon_all(world: &mut World, n: usize) {
    let of_host = |flight: &Flight| usize::from(flight.host) == n;
    world.flights.retain(|flight| !(of_host(flight) && matches!(flight.transit, Transit::Answered(_))));
    for flight in world.flights.iter_mut().filter(|flight| of_host(flight)) {
        flight.transit = Transit::Abandoned;
    }
    world.flights.sort();
    world.flights.dedup();
}

/// A request that an agent sends now. A final report is in its attempt's files from now on.
fn new_flight(world: &mut World, n: usize, request: &Request) -> Flight {
    if let Request::Report { key, report } = request
        && report.has_stopped()
        && let Some(run) = world.hosts[n].run(*key)
    {
        run.end_recorded = true;
    }
    Flight { host: u8::try_from(n).expect("few hosts"), sent: 0, request: request.clone(), transit: Transit::Sent }
}

fn reported_job(request: &Request) -> Option<usize> {
    match request {
        Request::Report { key, .. } | Request::ReportMissing { key, .. } => Some(key.0.into()),
        Request::Register { .. } | Request::Heartbeat { .. } | Request::Progress { .. } => None,
    }
}

fn remove(world: &mut World, flight: &Flight) -> Option<()> {
    let position = world.flights.iter().position(|other| other == flight)?;
    world.flights.remove(position);
    Some(())
}

/// Ends a server: its streams break, and what it had only in memory is lost.
pub fn stop_server(world: &mut World, n: usize) {
    world.servers[n] = Server { up_since: None, leads_since: None, contacts: 0, old_state: None, uncommitted: None };
    let stream = Listening::Stream(u8::try_from(n).expect("few servers"));
    for host in &mut world.hosts {
        if let Some(agent) = host.agent.as_mut().filter(|agent| agent.listening == stream) {
            (agent.listening, host.late_event) = (Listening::Unregistered, None);
        }
    }
}

/// Returns the server and the host of a worker's stream.
pub fn stream_host(world: &World, n: usize) -> Option<(usize, usize)> {
    match world.database.workers[n]?.connection {
        ConnectionRow::Online { server, host, .. } => Some((server.into(), host.into())),
        _ => None,
    }
}

/// Returns an attempt with a living trainer on a host.
pub fn living(world: &World) -> impl Iterator<Item = (usize, &Run)> {
    let hosts = world.hosts.iter().enumerate();
    hosts.flat_map(|(n, host)| host.runs.iter().filter(|run| run.is_alive()).map(move |run| (n, run)))
}
