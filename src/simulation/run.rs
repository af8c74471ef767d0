//! One simulation: steps server and hosts in turns, until all jobs have ended after the last fault.

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use app::simulation;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, LocalSet};

use super::checks::Checks;
use super::host::Host;
use super::network::{Link, Network};
use super::scenario::{Event, Scenario, TimedEvent};
use super::server_process::{MACHINE, MAX_WRITE_DELAY_MS, ServerProcess};
use super::user::Users;
use super::{property, trace};

/// How long server and hosts run in turns.
pub const STEP: Duration = Duration::from_millis(50);
/// Every job must have ended this long after the last fault.
const MAX_SETTLING: Duration = Duration::from_hours(2);

/// Runs a seed, and prints its result.
pub fn run_seed(seed: u64, print_trace: bool, directory: &Path) -> ExitCode {
    if print_trace {
        trace::print_lines();
    }
    match simulate(seed, directory) {
        Ok(result) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("seed {seed}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn simulate(seed: u64, directory: &Path) -> anyhow::Result<String> {
    simulation::set_seed(seed);
    let scenario = Scenario::from_seed(seed);
    MACHINE.clock_drift_ppm.store(scenario.clock_drift_ppm, Ordering::Relaxed);
    let directory = tempfile::Builder::new().prefix("simulation").tempdir_in(directory)?;
    let mut world = World::new(scenario, directory.path())?;
    world.run()?;
    let (lines, hash) = trace::summary();
    Ok(format!("{lines} events, hash {hash:016x}, {} s", world.time.as_secs()))
}

struct World<'d> {
    scenario: Scenario,
    data: &'d Path,
    time: Duration,
    network: Arc<Network>,
    server: Option<ServerProcess>,
    /// How often a server was started.
    starts: u64,
    /// What ends later: faults that were begun.
    pending: Vec<(Duration, Recovery)>,
    runtime: Runtime,
    tasks: LocalSet,
    hosts: Vec<Rc<Host>>,
    users: Rc<Users>,
    /// What users have begun and may not have finished.
    actions: Vec<JoinHandle<()>>,
}

/// The end of a fault.
#[derive(Debug, Clone, Copy)]
enum Recovery {
    StartServer,
    FreeServerDisk,
    FastServerDisk,
    UnblockLink(usize),
    StartAgent(usize),
}

impl<'d> World<'d> {
    fn new(scenario: Scenario, data: &'d Path) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
        let (network, checks) = (Arc::<Network>::default(), Rc::<Checks>::default());
        let hosts = scenario.hosts.iter().enumerate().map(|(index, gpus)| {
            let work_dir = data.join(format!("host-{index}"));
            Host::new(index, *gpus, work_dir, Arc::clone(&network), Rc::clone(&checks))
        });
        let hosts = hosts.collect();
        let users = Users::new(Arc::clone(&network), Rc::clone(&checks));
        let mut world = Self {
            scenario,
            data,
            time: Duration::ZERO,
            network,
            server: None,
            starts: 0,
            pending: Vec::new(),
            runtime,
            tasks: LocalSet::new(),
            hosts,
            users,
            actions: Vec::new(),
        };
        world.start_server()?;
        Ok(world)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let users = Rc::clone(&self.users);
        let names: Vec<String> = self.hosts.iter().map(|host| host.name()).collect();
        let tokens = self.spawn(async move { users.set_up(&names).await });
        let tokens = self.finish(tokens, MAX_SETTLING)?;
        for (host, token) in self.hosts.clone().into_iter().zip(tokens) {
            *host.token.borrow_mut() = token;
            self.network.change_link(host.index, |link| *link = self.scenario.link);
            self.spawn(async move { host.start_agent() });
        }
        let users = Rc::clone(&self.users);
        let watch = self.spawn(async move { users.watch().await });
        self.run_events()?;
        self.end_faults()?;
        self.settle()?;
        watch.abort();
        // The first start is no restart.
        let calm_restarts = self.scenario.is_calm.then_some(self.starts - 1);
        let users = Rc::clone(&self.users);
        let checked = self.spawn(async move { users.check_ends(calm_restarts).await });
        self.finish(checked, MAX_SETTLING)
    }

    /// Runs the scenario until its last fault.
    fn run_events(&mut self) -> anyhow::Result<()> {
        let begun = self.time;
        for TimedEvent { at, event } in self.scenario.events.clone() {
            while self.time < begun + at {
                self.step()?;
            }
            trace::record(format_args!("{event:?}"));
            self.apply(event);
        }
        Ok(())
    }

    /// Repairs everything.
    fn end_faults(&mut self) -> anyhow::Result<()> {
        trace::record(format_args!("the faults end"));
        for (_, recovery) in std::mem::take(&mut self.pending) {
            self.recover(recovery)?;
        }
        let max_latency = self.scenario.link.max_latency;
        for host in self.hosts.clone() {
            self.network.change_link(host.index, |link| *link = Link { max_latency, ..Link::default() });
            self.spawn(async move { host.start_agent() });
        }
        Ok(())
    }

    /// Runs until users have done what they wanted and all jobs have ended.
    fn settle(&mut self) -> anyhow::Result<()> {
        self.finish_actions()?;
        for host in 0..self.hosts.len() {
            self.apply(Event::Resume { host });
        }
        self.finish_actions()?;
        let end = self.time + MAX_SETTLING;
        while self.time < end {
            let users = Rc::clone(&self.users);
            let ended = self.spawn(async move { users.have_all_ended().await });
            if self.finish(ended, MAX_SETTLING)? {
                break;
            }
            for _ in 0..100 {
                self.step()?;
            }
        }
        Ok(())
    }

    fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        let _runtime = self.runtime.enter();
        self.tasks.spawn_local(task)
    }

    /// Begins an action of a user.
    fn begin(&mut self, action: impl Future<Output = ()> + 'static) {
        let action = self.spawn(action);
        self.actions.push(action);
    }

    fn finish_actions(&mut self) -> anyhow::Result<()> {
        for action in std::mem::take(&mut self.actions) {
            self.finish(action, MAX_SETTLING)?;
        }
        Ok(())
    }

    /// Steps until a task has ended.
    fn finish<T>(&mut self, task: JoinHandle<T>, limit: Duration) -> anyhow::Result<T> {
        let end = self.time + limit;
        while !task.is_finished() {
            if self.time > end {
                property::stop("a user has waited for an answer for too long");
            }
            self.step()?;
        }
        Ok(self.runtime.block_on(task)?)
    }

    /// Lets the hosts and then the server run.
    fn step(&mut self) -> anyhow::Result<()> {
        let time = self.time;
        self.tasks.block_on(&self.runtime, async {
            simulation::enter(time);
            tokio::time::sleep(STEP).await;
        });
        if let Some(server) = &self.server {
            server.run(time, STEP);
        }
        self.time += STEP;
        simulation::leave(self.time);
        let (due, later) = std::mem::take(&mut self.pending).into_iter().partition(|(at, _)| *at <= self.time);
        self.pending = later;
        for (_, recovery) in due {
            self.recover(recovery)?;
        }
        Ok(())
    }

    fn start_server(&mut self) -> anyhow::Result<()> {
        if self.server.is_none() {
            self.starts += 1;
            trace::record(format_args!("the server starts"));
            let server = ServerProcess::start(self.data, &self.network, self.time, self.starts);
            self.server = Some(server.context("a start of the server")?);
        }
        Ok(())
    }

    fn recover(&mut self, recovery: Recovery) -> anyhow::Result<()> {
        match recovery {
            Recovery::StartServer => {
                // It had been asked to stop.
                if let Some(server) = self.server.take() {
                    server.kill(&self.network);
                }
                MACHINE.is_disk_full.store(false, Ordering::Relaxed);
                self.start_server()?;
            }
            Recovery::FreeServerDisk => MACHINE.is_disk_full.store(false, Ordering::Relaxed),
            Recovery::FastServerDisk => MACHINE.max_write_delay_ms.store(MAX_WRITE_DELAY_MS, Ordering::Relaxed),
            Recovery::UnblockLink(host) => self.network.change_link(host, |link| {
                (link.is_upstream_blocked, link.is_downstream_blocked) = (false, false);
            }),
            Recovery::StartAgent(host) => {
                let host = Rc::clone(&self.hosts[host]);
                self.spawn(async move { host.start_agent() });
            }
        }
        Ok(())
    }

    fn later(&mut self, after: Duration, recovery: Recovery) {
        self.pending.push((self.time + after, recovery));
    }

    fn apply(&mut self, event: Event) {
        let users = Rc::clone(&self.users);
        match event {
            Event::Submit { number, is_exclusive, is_retried } => {
                self.begin(async move { users.submit(number, is_exclusive, is_retried).await });
            }
            Event::Cancel { number } => {
                self.begin(async move { users.cancel(number).await });
            }
            Event::Drain { host } => {
                self.begin(async move { users.set_draining(host, true).await });
            }
            Event::Resume { host } => {
                self.begin(async move { users.set_draining(host, false).await });
            }
            Event::RotateToken { host } => {
                let host = Rc::clone(&self.hosts[host]);
                self.begin(async move {
                    let token = users.rotate_token(host.index).await;
                    *host.token.borrow_mut() = token;
                });
            }
            Event::KillServer { down } => {
                if let Some(server) = self.server.take() {
                    server.kill(&self.network);
                }
                self.later(down, Recovery::StartServer);
            }
            Event::StopServer { down } => {
                if let Some(server) = &self.server {
                    server.stop(&self.network);
                }
                self.later(down, Recovery::StartServer);
            }
            Event::FillServerDisk { lasts } => {
                MACHINE.is_disk_full.store(true, Ordering::Relaxed);
                self.later(lasts, Recovery::FreeServerDisk);
            }
            Event::SlowServerDisk { max_delay_ms, lasts } => {
                MACHINE.max_write_delay_ms.store(max_delay_ms, Ordering::Relaxed);
                self.later(lasts, Recovery::FastServerDisk);
            }
            Event::SetServerClock { by_ms } => {
                MACHINE.clock_offset.fetch_add(by_ms, Ordering::Relaxed);
            }
            Event::BlockLink { host, is_upstream, is_downstream, lasts } => {
                self.network.change_link(host, |link| {
                    link.is_upstream_blocked |= is_upstream;
                    link.is_downstream_blocked |= is_downstream;
                });
                self.later(lasts, Recovery::UnblockLink(host));
            }
            Event::KillAgent { host, down } => {
                self.hosts[host].kill_agent();
                self.later(down, Recovery::StartAgent(host));
            }
            Event::Reboot { host, down } => {
                self.hosts[host].reboot();
                self.later(down, Recovery::StartAgent(host));
            }
        }
    }
}
