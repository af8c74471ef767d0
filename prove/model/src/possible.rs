//! Which steps are possible in a state.

use crate::action::{Action, Fate};
use crate::agent::next_report;
use crate::config::{Budget, Mutation};
use crate::messages::{Flight, Request, Transit};
use crate::protocol::Protocol;
use crate::rows::JobRow;
use crate::ticks::TIMEOUT;
use crate::workers::{ConnectionRow, WorkerRow};
use crate::world::{Agent, Host, Listening, Run, Server, Stage, World};

impl Protocol {
    /// Lists all steps that are possible in a state.
    pub fn list_actions(&self, world: &World, actions: &mut Vec<Action>) {
        if self.may_tick(world) {
            actions.push(Action::Tick);
        }
        let up: Vec<usize> = (0..world.servers.len()).filter(|n| world.servers[*n].up_since.is_some()).collect();
        for (n, host) in world.hosts.iter().enumerate() {
            list_host_actions(self, world, n, host, &up, actions);
        }
        for flight in &world.flights {
            list_flight_actions(flight, &up, actions);
        }
        self.list_server_actions(world, actions);
        if !up.is_empty() {
            self.list_user_actions(world, actions);
        }
    }

    /// Time passes when the loops are idle. In a check of restarts, it passes only while agents reach a server in time.
    fn may_tick(&self, world: &World) -> bool {
        if self.loops_are_due(world) {
            return false;
        }
        let is_away = |n: usize| {
            let listens = |agent: &Agent| matches!(agent.listening, Listening::Stream(_));
            self.is_steady(n)
                && world.database.workers[self.worker_of(n)].is_some()
                && !world.hosts[n].agent.as_ref().is_some_and(listens)
        };
        let is_served = world.servers.iter().any(|server| server.up_since.is_some());
        if is_served && (0..world.hosts.len()).any(is_away) {
            return false;
        }
        if !self.config.prompt {
            return true;
        }
        let expires = |host: &Host| {
            let agents = host.agent.iter().filter_map(|agent| agent.lease);
            host.runs.iter().filter_map(|run| run.lease).chain(agents).any(|end| end <= 1)
        };
        let has_lease = self.config.jobs.iter().any(|job| job.exclusive);
        if has_lease && world.hosts.iter().any(|host| expires(host) || host.agent.is_none()) {
            return false;
        }
        let served = world.servers.iter().filter_map(|server| Some((-server.up_since?).min(-server.leads_since?)));
        let Some(served) = served.max() else { return true };
        let is_due = |(n, worker): (usize, &WorkerRow)| {
            let is_fresh = world.servers.iter().any(|server| server.contacts >> n & 1 == 1);
            let contact = if is_fresh { 0 } else { worker.seen.map_or(TIMEOUT, |seen| -seen) };
            contact.min(served) >= TIMEOUT
        };
        let mut workers = world.database.workers.iter().enumerate();
        !workers.any(|(n, worker)| worker.as_ref().is_some_and(|worker| is_due((n, worker))))
    }

    /// Returns whether a host is always in contact while a server runs, and has no faults.
    pub fn is_steady(&self, n: usize) -> bool {
        self.config.steady_hosts.contains(&n)
    }

    /// The loops of the leader run every two seconds, so a tick does not pass while they have something to do.
    fn loops_are_due(&self, world: &World) -> bool {
        if self.config.slow_loops {
            return false;
        }
        let leads = |server: &Server| server.leads_since.is_some();
        let Some(leader) = world.servers.iter().position(leads) else { return false };
        let has_due_job = world.database.jobs.iter().flatten().any(JobRow::is_due);
        let has_silent = (0..self.config.workers).any(|n| Self::is_silent(world, leader, n));
        let changes = |action: Action| {
            let mut after = world.clone();
            self.apply(&mut after, &action).is_some() && after != *world
        };
        (has_due_job && changes(Action::Sweep(leader)))
            || (has_silent && (0..self.config.workers).any(|n| changes(Action::CheckHealth(leader, n))))
    }

    /// Returns the requests that an agent may send now: one of each kind, and one report per attempt, at a time.
    pub fn requests(&self, world: &World, n: usize) -> Vec<Request> {
        let host = &world.hosts[n];
        let Some(agent) = &host.agent else { return Vec::new() };
        let mut requests = Vec::new();
        if !agent.is_rejected && agent.listening == Listening::Unregistered {
            requests.push(Request::Register { token: agent.token, claims: host.running() });
        }
        if let Some(session) = agent.session.filter(|_| !agent.is_rejected) {
            requests.push(Request::Heartbeat { session, claims: host.running() });
        }
        for run in &host.runs {
            let report = next_report(run, self.mutation);
            requests.extend(report.map(|report| Request::Report { key: run.key, report }));
            if self.config.progress && run.stage == Stage::Training {
                requests.push(Request::Progress { key: run.key });
            }
        }
        let is_waiting = |request: &Request| {
            let mut flights = world.flights.iter().filter(|flight| usize::from(flight.host) == n);
            flights.any(|flight| flight.transit != Transit::Abandoned && flight.request.has_kind_of(request))
        };
        requests.retain(|request| !is_waiting(request));
        requests
    }

    fn list_server_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let budget = &world.budget;
        let has_leader = world.servers.iter().any(|server| server.leads_since.is_some());
        for (n, server) in world.servers.iter().enumerate() {
            if server.up_since.is_none() {
                actions.push(Action::StartServer(n));
                continue;
            }
            if budget.server_kills > 0 {
                actions.push(Action::KillServer(n));
            }
            if budget.old_reads > 0 && server.old_state.is_none() {
                actions.push(Action::ReadOldState(n));
            }
            if server.uncommitted.is_some() {
                actions.push(Action::CommitSubmit(n));
            }
            if !has_leader {
                actions.push(Action::TakeLead(n));
            }
            let judges = server.leads_since.is_some() || self.mutation == Some(Mutation::JudgedWithoutLeading);
            if judges {
                actions.extend((0..self.config.workers).map(|worker| Action::CheckHealth(n, worker)));
            }
            if server.leads_since.is_some() {
                actions.push(Action::Sweep(n));
                if budget.leader_changes > 0 {
                    actions.push(Action::LoseLead(n));
                }
            }
        }
    }

    fn list_user_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let budget = &world.budget;
        for (n, shape) in self.config.jobs.iter().enumerate() {
            let Some(job) = &world.database.jobs[n] else {
                let retried = shape.retry_of.map(usize::from);
                let has_ended = |n: usize| world.database.jobs[n].is_some_and(|job| job.has_ended());
                match retried {
                    None if world.acknowledged >> n & 1 == 0 => actions.push(Action::Submit(n)),
                    Some(retried) if has_ended(retried) => actions.push(Action::Retry(n, retried)),
                    _ => {}
                }
                continue;
            };
            let is_mutated = self.mutation == Some(Mutation::EndedJobCancelled);
            if budget.cancels > 0 && (!job.has_ended() || is_mutated) {
                actions.push(Action::Cancel(n));
            }
        }
        for (n, worker) in world.database.workers.iter().enumerate() {
            let Some(worker) = worker else { continue };
            if worker.is_draining {
                actions.push(Action::Resume(n));
            } else if budget.drains > 0 {
                actions.extend([false, true].map(|deadline| Action::Drain(n, deadline)));
            }
            if budget.rotations > 0 {
                actions.extend([false, true].map(|overlaps| Action::Rotate(n, overlaps)));
            }
            if budget.deletions > 0 {
                actions.push(Action::Delete(n));
            }
        }
    }
}

fn list_host_actions(
    protocol: &Protocol,
    world: &World,
    n: usize,
    host: &Host,
    up: &[usize],
    actions: &mut Vec<Action>,
) {
    let budget = if protocol.is_steady(n) { &Budget::default() } else { &world.budget };
    if n < protocol.config.workers && has_dead_stream(world, n) {
        actions.push(Action::NoticeClosed(n));
    }
    let Some(agent) = &host.agent else {
        let is_new = n >= protocol.config.workers && !host.was_used;
        if !is_new || world.budget.moves > 0 {
            actions.push(Action::StartAgent(n));
        }
        list_run_actions(protocol, world, n, host, actions);
        return;
    };
    if budget.agent_kills > 0 {
        actions.push(Action::KillAgent(n));
    }
    if budget.agent_stops > 0 && agent.session.is_some() {
        actions.extend(up.iter().map(|server| Action::StopAgent(n, *server)));
    }
    if budget.host_crashes > 0 {
        actions.extend([Action::KillSupervisors(n), Action::Reboot(n)]);
    }
    if budget.disk_losses > 0 {
        actions.push(Action::LoseDisk(n));
    }
    if !agent.is_rejected {
        match agent.listening {
            Listening::Unregistered => {}
            Listening::Registered => actions.extend(up.iter().map(|server| Action::OpenStream(n, *server))),
            Listening::Stream(_) => {
                actions.push(Action::Push(n, Fate::Answered));
                if budget.messages > 0 {
                    actions.extend([Action::Push(n, Fate::Late), Action::BreakStream(n)]);
                }
            }
        }
    }
    for request in protocol.requests(world, n) {
        let fates: &[Fate] =
            if budget.messages > 0 { &[Fate::Answered, Fate::Late, Fate::Lost] } else { &[Fate::Answered] };
        for server in up {
            actions.extend(fates.iter().map(|fate| Action::Exchange(n, request.clone(), *server, *fate)));
        }
        if budget.messages > 0 {
            actions.push(Action::SendLate(n, request));
        }
    }
    if host.late_event.is_some() {
        actions.push(Action::ReceiveEvent(n));
    }
    list_run_actions(protocol, world, n, host, actions);
}

/// Returns whether a running server has a stream of a worker that its agent no longer reads.
fn has_dead_stream(world: &World, n: usize) -> bool {
    let Some(ConnectionRow::Online { server, host, .. }) = world.database.workers[n].map(|worker| worker.connection)
    else {
        return false;
    };
    let reads =
        world.hosts[usize::from(host)].agent.as_ref().is_some_and(|agent| agent.listening == Listening::Stream(server));
    !reads && world.servers[usize::from(server)].up_since.is_some()
}

fn list_run_actions(protocol: &Protocol, world: &World, n: usize, host: &Host, actions: &mut Vec<Action>) {
    let has_agent = host.agent.is_some();
    for run in &host.runs {
        let key = run.key;
        match run.stage {
            Stage::Training if run.stop.is_some() => actions.push(Action::TrainerStops(n, key)),
            Stage::Training => {
                actions.push(Action::TrainerCompletes(n, key));
                if world.budget.failures > 0 {
                    actions.push(Action::TrainerFails(n, key));
                }
            }
            Stage::Orphaned { .. } if has_agent => actions.push(Action::HandleOrphan(n, key)),
            Stage::Preparing if may_start(protocol, host, run) => actions.push(Action::StartTrainer(n, key)),
            _ => {}
        }
    }
}

/// `accept_and_prepare` in `src/worker/attempt/prepare.rs`: an exclusive attempt waits for a lease.
fn may_start(protocol: &Protocol, host: &Host, run: &Run) -> bool {
    let is_accepted = run.accepted || protocol.mutation == Some(Mutation::StartBeforeAcceptance);
    let has_lease = |agent: &Agent| !run.exclusive || agent.lease.is_some();
    is_accepted && host.agent.as_ref().is_some_and(has_lease)
}

fn list_flight_actions(flight: &Flight, up: &[usize], actions: &mut Vec<Action>) {
    match &flight.transit {
        Transit::Answered(_) => actions.push(Action::Receive(flight.clone())),
        Transit::Abandoned => {
            actions.extend(up.iter().map(|server| Action::Deliver(flight.clone(), *server)));
            actions.push(Action::Drop(flight.clone()));
        }
        Transit::Sent => {
            actions.extend(up.iter().map(|server| Action::Deliver(flight.clone(), *server)));
            // That one is repeated until it is answered, and is never out of date.
            if !matches!(flight.request, Request::ReportMissing { .. }) {
                actions.push(Action::Abandon(flight.clone()));
            }
        }
    }
}
