//! A GPU host: its disk, its trainers with their supervisors, and the agent, which may be killed and started again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use app::protocol::agents::RunningAttempt;
use app::protocol::agents::dispatch::JobOffer;
use clap::{CommandFactory, FromArgMatches};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::attempt::{self, StoredAttempt};
use super::checks::Checks;
use super::network::{HostTransport, Network};
use super::{property, trace};
use crate::worker::agent::send_if_changed;
use crate::worker::api::{Api, retry_until_answered};
use crate::worker::cli::Cli;
use crate::worker::clock;
use crate::worker::config::AgentConfig;
use crate::worker::context::AgentContext;
use crate::worker::files::{AttemptKey, LeaseRecord, StopCause};
use crate::worker::gpu::Hardware;
use crate::worker::session::AgentSession;
use crate::worker::state::{AdoptedAttempt, AgentAction, AgentInput, AgentPolicy, AgentState};

/// When a service manager starts an agent that has exited.
const RESTART_DELAY: Duration = Duration::from_secs(5);

pub struct Host {
    pub index: usize,
    gpu_count: u32,
    work_dir: PathBuf,
    network: Arc<Network>,
    pub checks: Rc<Checks>,
    /// The token that the host's owner has set.
    pub token: RefCell<String>,
    /// What is on disk: survives the agent and, apart from trainers, the host.
    pub attempts: RefCell<BTreeMap<AttemptKey, StoredAttempt>>,
    /// The newest lease on disk.
    pub lease: Cell<Option<LeaseRecord>>,
    agent: RefCell<Option<AbortHandle>>,
}

impl Host {
    pub fn new(index: usize, gpu_count: u32, work_dir: PathBuf, network: Arc<Network>, checks: Rc<Checks>) -> Rc<Self> {
        Rc::new(Self {
            index,
            gpu_count,
            work_dir,
            network,
            checks,
            token: RefCell::default(),
            attempts: RefCell::default(),
            lease: Cell::new(None),
            agent: RefCell::new(None),
        })
    }

    pub fn name(&self) -> String {
        format!("host-{}", self.index)
    }

    /// Starts the agent, and starts it again when it exits.
    pub fn start_agent(self: &Rc<Self>) {
        if self.agent.borrow().is_some() {
            return;
        }
        trace::record(format_args!("host {} agent starts", self.index));
        let host = Rc::clone(self);
        let task = tokio::task::spawn_local(async move {
            loop {
                let exit = run_agent(&host).await;
                trace::record(format_args!("host {} agent exits: {exit}", host.index));
                tokio::time::sleep(RESTART_DELAY).await;
            }
        });
        *self.agent.borrow_mut() = Some(task.abort_handle());
    }

    /// Kills the agent. Its trainers continue.
    pub fn kill_agent(&self) {
        if let Some(agent) = self.agent.borrow_mut().take() {
            trace::record(format_args!("host {} agent is killed", self.index));
            agent.abort();
        }
    }

    /// Restarts the host: its trainers are gone, and the agent is started later.
    pub fn reboot(&self) {
        self.kill_agent();
        trace::record(format_args!("host {} reboots", self.index));
        for (key, attempt) in self.attempts.borrow_mut().iter_mut() {
            attempt.lose_trainer(key, &self.checks);
        }
    }

    fn config(&self) -> AgentConfig {
        let (token, name, gpus) = (self.token.borrow().clone(), self.name(), self.gpu_count.to_string());
        let work_dir = self.work_dir.to_string_lossy().into_owned();
        let command = ["simpletuner-worker", "--persistent", "--orchestrator-url", "http://server:8001"];
        let flags = ["--worker-token", &token, "--name", &name, "--work-dir", &work_dir, "--gpu-count", &gpus];
        let parsed = Cli::command().try_get_matches_from(command.into_iter().chain(flags));
        let config = parsed.ok().and_then(|matches| {
            let cli = Cli::from_arg_matches(&matches).ok()?;
            AgentConfig::from_args(cli.agent, &matches).ok()
        });
        let config = config.unwrap_or_else(|| property::stop("the agent's flags are invalid"));
        AgentConfig { hostname: name, ..config }
    }

    fn context(&self) -> Arc<AgentContext> {
        let config = self.config();
        let transport = HostTransport { network: Arc::clone(&self.network), host: self.index };
        let api = Api::simulated(&config, Arc::new(transport));
        let hardware = Hardware::placeholders(self.gpu_count, &config.hostname);
        let boot_id = clock::random_secret().unwrap_or_default();
        Arc::new(AgentContext::simulated(config, api, hardware, boot_id, format!("install-{}", self.index)))
    }
}

/// One life of an agent: the event loop of `worker::agent`, with simulated attempts.
async fn run_agent(host: &Rc<Host>) -> String {
    let context = host.context();
    let (inbox, mut inputs) = mpsc::channel(64);
    let found: Vec<AdoptedAttempt> =
        host.attempts.borrow().iter().map(|(key, attempt)| attempt.to_adopted(key)).collect();
    let policy = AgentPolicy {
        persistent: true,
        on_stop: context.config.on_stop,
        max_jobs: context.config.max_jobs.resolve(context.hardware.gpus.len()),
    };
    let active: Vec<AttemptKey> =
        found.iter().filter(|attempt| !attempt.is_finished).map(|attempt| attempt.key.clone()).collect();
    let decisions = AgentState::new(policy, found);
    let running = watch::Sender::new(decisions.running());
    let decline_requests = watch::Sender::new(0);
    let session =
        AgentSession::new(Arc::clone(&context), inbox.clone(), running.subscribe(), decline_requests.subscribe());
    let mut agent = Agent {
        host: Rc::clone(host),
        context,
        decisions,
        inbox,
        running,
        decline_requests,
        stops: BTreeMap::new(),
        tasks: JoinSet::new(),
    };
    for key in active {
        agent.spawn_attempt(key);
    }
    agent.tasks.spawn_local(session.run());
    while let Some(input) = inputs.recv().await {
        if let Some(exit) = agent.handle(input) {
            return exit;
        }
    }
    unreachable!("the agent has a sender itself")
}

/// A running agent; its tasks end with it.
struct Agent {
    host: Rc<Host>,
    context: Arc<AgentContext>,
    decisions: AgentState,
    inbox: mpsc::Sender<AgentInput>,
    running: watch::Sender<Vec<RunningAttempt>>,
    decline_requests: watch::Sender<u32>,
    stops: BTreeMap<AttemptKey, watch::Sender<Option<StopCause>>>,
    tasks: JoinSet<()>,
}

impl Agent {
    fn handle(&mut self, input: AgentInput) -> Option<String> {
        if let AgentInput::Ended(key, _) = &input {
            self.stops.remove(key);
        }
        let actions = self.decisions.handle(input);
        send_if_changed(&self.running, self.decisions.running());
        actions.into_iter().find_map(|action| self.apply(action))
    }

    fn apply(&mut self, action: AgentAction) -> Option<String> {
        match action {
            AgentAction::Start(offer) => self.start(*offer),
            AgentAction::Stop(key, cause) => {
                trace::record(format_args!("host {} stops {key}: {cause:?}", self.host.index));
                if let Some(stop) = self.stops.get(&key) {
                    stop.send_if_modified(|order| cause.replace_weaker(order));
                }
            }
            AgentAction::ReportGone(key, status) => self.report_gone(key, status),
            AgentAction::ResetHostHealth => self.context.host_health.reset(),
            AgentAction::DeclineOffers => self.decline_requests.send_modify(|count| *count += 1),
            AgentAction::Exit(exit) => return Some(exit.sentence.unwrap_or_else(|| exit.code.to_string())),
        }
        None
    }

    fn start(&mut self, offer: JobOffer) {
        let key = AttemptKey { job_id: offer.job_id.clone(), attempt: offer.attempt };
        trace::record(format_args!("host {} is offered {key}", self.host.index));
        self.host.attempts.borrow_mut().insert(key.clone(), StoredAttempt::new(offer));
        self.spawn_attempt(key);
    }

    fn spawn_attempt(&mut self, key: AttemptKey) {
        let stop = watch::Sender::new(None);
        let (host, context, inbox) = (Rc::clone(&self.host), Arc::clone(&self.context), self.inbox.clone());
        let orders = stop.clone();
        self.stops.insert(key.clone(), stop);
        self.tasks.spawn_local(async move {
            let is_reported = attempt::run(&host, &context, &key, &orders).await;
            // The agent's loop has ended.
            let _ = inbox.send(AgentInput::Ended(key, is_reported)).await;
        });
    }

    fn report_gone(&mut self, key: AttemptKey, status: &'static str) {
        let context = Arc::clone(&self.context);
        self.tasks.spawn_local(async move {
            let report = key.status_report(status);
            // A rejection ends it, too.
            let _ = retry_until_answered(&context.reconnect_signal, "reporting a missing attempt", async || {
                context.api.report_unknown_attempt(&key.job_id, &report).await
            })
            .await;
        });
    }
}
