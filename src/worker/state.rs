//! The agent's decisions: pure functions, so that every decision is a row in a test. No I/O and no time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use app::protocol::agents::dispatch::JobOffer;
use app::protocol::agents::{DesiredState, RunningAttempt, StopReason};

use crate::worker::args::OnStop;
use crate::worker::exit;
use crate::worker::files::{AttemptKey, StopCause};

/// How many ended attempts are remembered, for messages that arrive late.
const MAX_ENDED_ATTEMPTS: usize = 256;

/// The phase of an attempt on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptPhase {
    /// It is being prepared, running, or being reported.
    Active,
    /// It was asked to stop.
    Stopping(StopCause),
    /// Finished; remembered for messages that arrive late.
    Ended,
}

/// What happens to the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentInput {
    Offer(Box<JobOffer>),
    /// An attempt must not run here.
    Stop(AttemptKey, StopReason),
    /// The complete desired state.
    Desired(Box<DesiredState>),
    /// A drain began or was undone.
    Drain(bool),
    /// The orchestrator asks this worker to exit.
    Shutdown,
    /// An attempt has ended; whether its end was reported, not dropped because it was superseded.
    Ended(AttemptKey, bool),
    /// The token was rejected; with a message.
    TokenRejected(String),
    /// The orchestrator could not be reached for too long; with a message.
    Unreachable(String),
    /// The first SIGTERM or SIGINT, with its exit code.
    Signal(u8),
    /// There was no job for `--max-idle`.
    Idle,
    /// The host is about to be terminated.
    HostTerminating,
    /// There are GPUs that did not exist when the agent started.
    GpusAdded,
    /// The missing trainer was found.
    TrainerAdded,
}

/// What the agent does.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentAction {
    /// Start an offered attempt.
    Start(Box<JobOffer>),
    Stop(AttemptKey, StopCause),
    /// Report that an expected attempt is not on this host.
    ReportGone(AttemptKey, &'static str),
    /// A user has ended the drain: clear the failures of earlier jobs.
    ResetHostHealth,
    /// Report that this host accepts no more jobs, so that its offers go elsewhere.
    DeclineOffers,
    Exit(ProcessExit),
}

/// How the process exits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessExit {
    pub code: u8,
    /// The message, if anything went wrong.
    pub sentence: Option<String>,
}

/// Settings that do not change while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentPolicy {
    /// Whether it stays online between jobs.
    pub persistent: bool,
    /// What a signal does to running jobs.
    pub on_stop: OnStop,
    /// Max concurrent attempts.
    pub max_jobs: u32,
}

/// An attempt that an earlier agent left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedAttempt {
    pub key: AttemptKey,
    pub gpus: Vec<String>,
    /// Whether it is fully delivered.
    pub is_finished: bool,
}

#[derive(Debug, Clone)]
struct TrackedAttempt {
    phase: AttemptPhase,
    gpus: Vec<String>,
}

impl TrackedAttempt {
    fn is_finished(&self) -> bool {
        self.phase == AttemptPhase::Ended
    }
}

/// The state on which decisions depend.
#[derive(Debug, Clone)]
pub struct AgentState {
    policy: AgentPolicy,
    attempts: BTreeMap<AttemptKey, TrackedAttempt>,
    /// Ended attempts, the oldest first.
    ended: VecDeque<AttemptKey>,
    /// Offers that wait for attempts that are being stopped, in order of arrival; one per job.
    pending: Vec<JobOffer>,
    /// Missing attempts that were already reported.
    reported_unknown: BTreeSet<AttemptKey>,
    draining: bool,
    /// How the process exits once nothing runs.
    pending_exit: Option<ProcessExit>,
    /// Offers that arrived since then; each is declined once.
    declined: BTreeSet<AttemptKey>,
    /// The orchestrator must be told that no more jobs are accepted.
    must_decline: bool,
    /// An ephemeral worker has had its one job. The orchestrator may override whether it is ephemeral.
    retired: bool,
}

impl AgentState {
    /// Includes the attempts that an earlier agent left, and whether each is finished.
    pub fn new(policy: AgentPolicy, found: impl IntoIterator<Item = AdoptedAttempt>) -> Self {
        let track = |AdoptedAttempt { key, gpus, is_finished }| {
            let phase = if is_finished { AttemptPhase::Ended } else { AttemptPhase::Active };
            (key, TrackedAttempt { phase, gpus })
        };
        let attempts: BTreeMap<_, _> = found.into_iter().map(track).collect();
        Self {
            policy,
            ended: attempts.iter().filter(|(_, attempt)| attempt.is_finished()).map(|(key, _)| key.clone()).collect(),
            attempts,
            pending: Vec::new(),
            reported_unknown: BTreeSet::new(),
            draining: false,
            pending_exit: None,
            declined: BTreeSet::new(),
            must_decline: false,
            retired: false,
        }
    }

    /// The attempts that are not finished.
    pub fn running(&self) -> Vec<RunningAttempt> {
        self.attempts
            .iter()
            .filter(|(_, attempt)| !attempt.is_finished())
            .map(|(key, _)| key.to_running_attempt())
            .collect()
    }

    fn is_idle(&self) -> bool {
        self.attempts.values().all(TrackedAttempt::is_finished)
    }

    /// Whether an offer can start beside the running attempts. A GPU is never shared, even if the orchestrator
    /// considers its attempt ended, and a job never runs twice.
    fn can_start(&self, offer: &JobOffer) -> bool {
        let running = || self.attempts.iter().filter(|(_, attempt)| !attempt.is_finished());
        let conflicts = |(key, attempt): (&AttemptKey, &TrackedAttempt)| {
            key.job_id == offer.job_id || attempt.gpus.iter().any(|gpu| offer.gpus.contains(gpu))
        };
        running().count() < self.policy.max_jobs as usize && !running().any(conflicts)
    }

    /// Handles one input; the actions must be done in order.
    pub fn handle(&mut self, input: AgentInput) -> Vec<AgentAction> {
        let mut actions = Vec::new();
        match input {
            AgentInput::Offer(offer) => self.handle_offer(offer, &mut actions),
            AgentInput::Stop(key, reason) => self.handle_stop(&key, reason, &mut actions),
            AgentInput::Desired(desired) => self.apply_desired(*desired, &mut actions),
            AgentInput::Drain(drain) => self.set_draining(drain, &mut actions),
            AgentInput::Shutdown => self.draining = true,
            AgentInput::Ended(key, reported) => {
                self.attempt_ended(key);
                self.retired |= reported && !self.policy.persistent;
            }
            AgentInput::TokenRejected(sentence) => self.begin_exit(exit::TOKEN_REJECTED, Some(sentence)),
            AgentInput::Unreachable(sentence) if !self.policy.persistent && self.is_idle() => {
                self.begin_exit(exit::UNAVAILABLE, Some(sentence));
            }
            AgentInput::Idle if self.is_idle() => self.begin_exit(exit::OK, None),
            // Running attempts have their hardware, and are not disturbed.
            AgentInput::GpusAdded | AgentInput::TrainerAdded if self.is_idle() => self.begin_exit(exit::RESTART, None),
            AgentInput::Unreachable(_) | AgentInput::Idle | AgentInput::GpusAdded | AgentInput::TrainerAdded => {}
            AgentInput::Signal(code) => self.handle_signal(code, &mut actions),
            AgentInput::HostTerminating => self.requeue_running(exit::OK, &mut actions),
        }
        self.schedule_pending(&mut actions);
        actions
    }

    fn attempt_ended(&mut self, key: AttemptKey) {
        self.attempts.insert(key.clone(), TrackedAttempt { phase: AttemptPhase::Ended, gpus: Vec::new() });
        self.ended.push_back(key);
        if self.ended.len() > MAX_ENDED_ATTEMPTS
            && let Some(oldest) = self.ended.pop_front()
        {
            self.attempts.remove(&oldest);
        }
    }

    fn set_draining(&mut self, drain: bool, actions: &mut Vec<AgentAction>) {
        if std::mem::replace(&mut self.draining, drain) && !drain {
            actions.push(AgentAction::ResetHostHealth);
        }
    }

    fn begin_exit(&mut self, code: u8, sentence: Option<String>) {
        self.pending_exit.get_or_insert(ProcessExit { code, sentence });
    }

    /// Starts pending offers when possible, or exits once nothing runs.
    fn schedule_pending(&mut self, actions: &mut Vec<AgentAction>) {
        if actions.iter().any(|action| matches!(action, AgentAction::Exit(_))) {
            return;
        }
        for offer in std::mem::take(&mut self.pending) {
            self.handle_offer(Box::new(offer), actions);
        }
        if !self.is_idle() {
            if std::mem::take(&mut self.must_decline) {
                actions.push(AgentAction::DeclineOffers);
            }
            return;
        }
        if self.retired || (self.draining && !self.policy.persistent) {
            self.begin_exit(exit::OK, None);
        }
        if let Some(exit) = &self.pending_exit {
            actions.push(AgentAction::Exit(exit.clone()));
        }
    }

    fn handle_offer(&mut self, offer: Box<JobOffer>, actions: &mut Vec<AgentAction>) {
        let key = AttemptKey { job_id: offer.job_id.clone(), attempt: offer.attempt };
        if self.pending_exit.is_some() {
            // If it is not declined, the offer waits for half a minute, and is then made here again.
            self.must_decline |= !self.attempts.contains_key(&key) && self.declined.insert(key);
            return;
        }
        if self.draining || self.retired {
            return;
        }
        let newest = self.attempts.keys().filter(|other| other.job_id == key.job_id).map(|other| other.attempt).max();
        if newest.is_some_and(|newest| newest >= key.attempt) {
            return;
        }
        let older_key = |(other, attempt): (&AttemptKey, &TrackedAttempt)| {
            (other.job_id == key.job_id && !attempt.is_finished()).then(|| other.clone())
        };
        for older in self.attempts.iter().filter_map(older_key).collect::<Vec<_>>() {
            self.order_stop(&older, StopCause::Superseded, actions);
        }
        if self.can_start(&offer) {
            self.attempts.insert(key, TrackedAttempt { phase: AttemptPhase::Active, gpus: offer.gpus.clone() });
            actions.push(AgentAction::Start(offer));
        } else {
            self.queue_offer(*offer);
        }
    }

    /// Queues an offer: the newest one of its job, in the place of the first.
    fn queue_offer(&mut self, offer: JobOffer) {
        match self.pending.iter_mut().find(|queued| queued.job_id == offer.job_id) {
            Some(queued) if queued.attempt <= offer.attempt => *queued = offer,
            Some(_) => {}
            None => self.pending.push(offer),
        }
    }

    fn handle_stop(&mut self, key: &AttemptKey, reason: StopReason, actions: &mut Vec<AgentAction>) {
        self.pending.retain(|offer| offer.job_id != key.job_id || offer.attempt > key.attempt);
        let cause = match reason {
            StopReason::Cancelled | StopReason::OverTime => StopCause::Cancelled,
            StopReason::Superseded => StopCause::Superseded,
            StopReason::Drained => StopCause::Requeue,
        };
        if self.attempts.contains_key(key) {
            self.order_stop(key, cause, actions);
        } else if cause == StopCause::Cancelled && self.reported_unknown.insert(key.clone()) {
            actions.push(AgentAction::ReportGone(key.clone(), "cancelled"));
        }
    }

    /// Asks an attempt to stop, unless it already has a stop cause that is as strong.
    fn order_stop(&mut self, key: &AttemptKey, cause: StopCause, actions: &mut Vec<AgentAction>) {
        let Some(attempt) = self.attempts.get_mut(key) else { return };
        let is_stronger = match attempt.phase {
            AttemptPhase::Active => true,
            AttemptPhase::Stopping(earlier) => earlier < cause,
            AttemptPhase::Ended => false,
        };
        if is_stronger {
            attempt.phase = AttemptPhase::Stopping(cause);
            actions.push(AgentAction::Stop(key.clone(), cause));
        }
    }

    fn apply_desired(&mut self, desired: DesiredState, actions: &mut Vec<AgentAction>) {
        self.set_draining(desired.drain, actions);
        self.retired |= desired.retired;
        for stop in &desired.stop {
            let key = AttemptKey { job_id: stop.job_id.clone(), attempt: stop.attempt };
            self.handle_stop(&key, stop.reason, actions);
        }
        for expected in desired.run.iter().map(AttemptKey::from) {
            if !self.attempts.contains_key(&expected) && self.reported_unknown.insert(expected.clone()) {
                actions.push(AgentAction::ReportGone(expected, "requeue"));
            }
        }
        for offer in desired.offers {
            self.handle_offer(Box::new(offer), actions);
        }
    }

    fn handle_signal(&mut self, code: u8, actions: &mut Vec<AgentAction>) {
        match self.policy.on_stop {
            OnStop::Leave => {
                self.begin_exit(code, None);
                actions.push(AgentAction::Exit(ProcessExit { code, sentence: None }));
            }
            OnStop::Finish => self.finish_running(code),
            OnStop::Requeue => self.requeue_running(code, actions),
        }
    }

    /// Exits once all running attempts have ended. A worker with `--max-jobs 1` gets no offers meanwhile.
    fn finish_running(&mut self, code: u8) {
        self.begin_exit(code, None);
        self.must_decline |= self.policy.max_jobs > 1;
    }

    /// Exits once all running attempts are stopped and requeued.
    fn requeue_running(&mut self, code: u8, actions: &mut Vec<AgentAction>) {
        self.finish_running(code);
        for running in self.running() {
            self.order_stop(&AttemptKey::from(&running), StopCause::Requeue, actions);
        }
    }
}

#[cfg(test)]
#[path = "tests/state.rs"]
mod tests;
