//! What each step does.

use crate::action::{Action, Fate};
use crate::agent::AgentTurn;
use crate::apply_host::{abandon_all, end_trainer};
use crate::config::Mutation;
use crate::messages::{Flight, Request, Response, Transit};
use crate::protocol::Protocol;
use crate::rows::LeaseRow;
use crate::service::Service;
use crate::ticks::TIMEOUT;
use crate::violations::Violation;
use crate::workers::{ConnectionRow, Session};
use crate::world::{Exit, Listening, Run, Server, Stage, StopCause, World};

impl Protocol {
    pub fn service<'w>(&'w self, world: &'w mut World, server: usize) -> Service<'w> {
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
    pub fn with_agent(&self, world: &mut World, n: usize, handle: impl FnOnce(&mut AgentTurn<'_>)) -> Option<()> {
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

    pub fn deliver_superseded(&self, world: &mut World, n: usize) -> Option<()> {
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
