//! What the agent decides: pure, so that every decision is a row in a test. It does no I/O and knows no time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use app::protocol::dispatch::JobSubmit;
use app::protocol::worker::{Desired, RunningAttempt, StopReason};

use crate::cli::OnStop;
use crate::exit;
use crate::files::{Key, StopCause};

/// So many attempts are remembered that have ended, for hints that come late.
const REMEMBERED: usize = 256;

/// Where an attempt stands on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is being prepared, runs, or is being reported.
    Active,
    /// It was told to stop.
    Stopping(StopCause),
    /// Nothing is left to do; kept so that a late hint is understood.
    Ended,
}

/// What happens to the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// An offer.
    Offer(Box<JobSubmit>),
    /// An attempt must not run here.
    Stop(Key, StopReason),
    /// The whole desired state.
    Desired(Box<Desired>),
    /// A drain began or was undone.
    Drain(bool),
    /// The orchestrator ends this worker.
    Shutdown,
    /// An attempt has ended; whether its end was reported (and not dropped as somebody else's).
    Ended(Key, bool),
    /// The token was refused: with a sentence.
    Refused(String),
    /// The orchestrator was out of reach for too long: with a sentence.
    Unreachable(String),
    /// The first SIGTERM or SIGINT, with the exit code that belongs to it.
    Signal(u8),
    /// There was no job for as long as the operator wants to pay for that.
    Idle,
    /// The host is about to be taken away.
    HostEnds,
    /// GPUs are there that were not when the agent began.
    GpusCame,
}

/// What the agent then does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Begin with an offered attempt.
    Start(Box<JobSubmit>),
    /// Stop an attempt.
    Stop(Key, StopCause),
    /// Tell the orchestrator that an attempt it expects here is not here.
    ReportGone(Key, &'static str),
    /// Tell the orchestrator that this host takes nothing more: what it was offered goes elsewhere.
    TurnAway,
    /// End the process.
    Leave(Ending),
}

/// How the process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The exit code.
    pub code: u8,
    /// What to say, if anything went wrong.
    pub sentence: Option<String>,
}

/// What stays the same while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether it stays between jobs.
    pub persistent: bool,
    /// What a signal means for what runs.
    pub on_stop: OnStop,
    /// How many attempts may run at once.
    pub max_jobs: u32,
}

/// An attempt that an earlier agent left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which one.
    pub key: Key,
    /// The GPUs that it was granted.
    pub gpus: Vec<String>,
    /// Whether nothing is left to do for it.
    pub over: bool,
}

/// An attempt that this agent knows.
#[derive(Debug, Clone)]
struct Known {
    phase: Phase,
    gpus: Vec<String>,
}

impl Known {
    fn is_over(&self) -> bool {
        self.phase == Phase::Ended
    }
}

/// All that the decisions depend on.
#[derive(Debug, Clone)]
pub struct Agent {
    policy: Policy,
    attempts: BTreeMap<Key, Known>,
    /// Those of them that have ended, the oldest first.
    ended: VecDeque<Key>,
    /// Offers that came while what they need was still being wound up, in the order in which they came; one for a job.
    pending: Vec<JobSubmit>,
    /// Gone attempts that were reported: once is enough.
    gone: BTreeSet<Key>,
    draining: bool,
    /// Once nothing runs any more, the process ends like this.
    leaving: Option<Ending>,
    /// Offers that came since: each is turned away once.
    late: BTreeSet<Key>,
    /// The orchestrator has to be told that nothing more is taken.
    turns_away: bool,
    /// An ephemeral worker has had its one job. Whether it is ephemeral the orchestrator may know better.
    spent: bool,
}

impl Agent {
    /// With the attempts that an earlier agent left, and whether each is over.
    pub fn new(policy: Policy, found: impl IntoIterator<Item = Found>) -> Self {
        let known = |Found { key, gpus, over }| {
            let phase = if over { Phase::Ended } else { Phase::Active };
            (key, Known { phase, gpus })
        };
        let attempts: BTreeMap<_, _> = found.into_iter().map(known).collect();
        Self {
            policy,
            ended: attempts.iter().filter(|(_, known)| known.is_over()).map(|(key, _)| key.clone()).collect(),
            attempts,
            pending: Vec::new(),
            gone: BTreeSet::new(),
            draining: false,
            leaving: None,
            late: BTreeSet::new(),
            turns_away: false,
            spent: false,
        }
    }

    /// The attempts that are here and not over.
    pub fn running(&self) -> Vec<RunningAttempt> {
        self.attempts.iter().filter(|(_, known)| !known.is_over()).map(|(key, _)| key.running()).collect()
    }

    fn is_idle(&self) -> bool {
        self.attempts.values().all(Known::is_over)
    }

    /// Whether an offer can begin beside what runs. Nothing shares a GPU, whatever the orchestrator thinks is over, and no
    /// job runs twice.
    fn has_room_for(&self, offer: &JobSubmit) -> bool {
        let here = || self.attempts.iter().filter(|(_, known)| !known.is_over());
        let is_in_the_way = |(key, known): (&Key, &Known)| {
            key.job_id == offer.job_id || known.gpus.iter().any(|gpu| offer.gpus.contains(gpu))
        };
        here().count() < self.policy.max_jobs as usize && !here().any(is_in_the_way)
    }

    /// Takes one input; the actions are to be done in order.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        match input {
            Input::Offer(offer) => self.offer(offer, &mut actions),
            Input::Stop(key, reason) => self.stop(&key, reason, &mut actions),
            Input::Desired(desired) => self.desired(*desired, &mut actions),
            Input::Drain(drain) => self.draining = drain,
            Input::Shutdown => self.draining = true,
            Input::Ended(key, reported) => {
                self.ended(key);
                self.spent |= reported && !self.policy.persistent;
            }
            Input::Refused(sentence) => self.leave(exit::REFUSED, Some(sentence)),
            Input::Unreachable(sentence) if !self.policy.persistent && self.is_idle() => {
                self.leave(exit::UNAVAILABLE, Some(sentence));
            }
            Input::Idle if self.is_idle() => self.leave(exit::OK, None),
            // What runs was given what there was, and is not disturbed.
            Input::GpusCame if self.is_idle() => self.leave(exit::AGAIN, None),
            Input::Unreachable(_) | Input::Idle | Input::GpusCame => {}
            Input::Signal(code) => self.signal(code, &mut actions),
            Input::HostEnds => self.give_back(exit::OK, &mut actions),
        }
        self.settle(&mut actions);
        actions
    }

    fn ended(&mut self, key: Key) {
        self.attempts.insert(key.clone(), Known { phase: Phase::Ended, gpus: Vec::new() });
        self.ended.push_back(key);
        if self.ended.len() > REMEMBERED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.attempts.remove(&oldest);
        }
    }

    fn leave(&mut self, code: u8, sentence: Option<String>) {
        self.leaving.get_or_insert(Ending { code, sentence });
    }

    /// What follows once there is room, or nothing runs.
    fn settle(&mut self, actions: &mut Vec<Action>) {
        if actions.iter().any(|action| matches!(action, Action::Leave(_))) {
            return;
        }
        for offer in std::mem::take(&mut self.pending) {
            self.offer(Box::new(offer), actions);
        }
        if !self.is_idle() {
            if std::mem::take(&mut self.turns_away) {
                actions.push(Action::TurnAway);
            }
            return;
        }
        if self.spent || (self.draining && !self.policy.persistent) {
            self.leave(exit::OK, None);
        }
        if let Some(ending) = &self.leaving {
            actions.push(Action::Leave(ending.clone()));
        }
    }

    fn offer(&mut self, offer: Box<JobSubmit>, actions: &mut Vec<Action>) {
        let key = Key { job_id: offer.job_id.clone(), attempt: offer.attempt };
        if self.leaving.is_some() {
            // Unanswered it would wait for half a minute, and then be offered here again.
            self.turns_away |= !self.attempts.contains_key(&key) && self.late.insert(key);
            return;
        }
        if self.draining || self.spent {
            return;
        }
        let newest = self.attempts.keys().filter(|known| known.job_id == key.job_id).map(|known| known.attempt).max();
        if newest.is_some_and(|newest| newest >= key.attempt) {
            return;
        }
        let older = |(known, it): (&Key, &Known)| (known.job_id == key.job_id && !it.is_over()).then(|| known.clone());
        for known in self.attempts.iter().filter_map(older).collect::<Vec<_>>() {
            self.order(&known, StopCause::Superseded, actions);
        }
        if self.has_room_for(&offer) {
            self.attempts.insert(key, Known { phase: Phase::Active, gpus: offer.gpus.clone() });
            actions.push(Action::Start(offer));
        } else {
            self.wait(*offer);
        }
    }

    /// Keeps an offer until there is room: the newest of its job, where the first one stood.
    fn wait(&mut self, offer: JobSubmit) {
        match self.pending.iter_mut().find(|waiting| waiting.job_id == offer.job_id) {
            Some(waiting) if waiting.attempt <= offer.attempt => *waiting = offer,
            Some(_) => {}
            None => self.pending.push(offer),
        }
    }

    fn stop(&mut self, key: &Key, reason: StopReason, actions: &mut Vec<Action>) {
        self.pending.retain(|offer| offer.job_id != key.job_id || offer.attempt > key.attempt);
        let cause = match reason {
            StopReason::Cancelled | StopReason::OverTime => StopCause::Cancelled,
            StopReason::Superseded => StopCause::Superseded,
            StopReason::Drained => StopCause::Requeue,
        };
        if self.attempts.contains_key(key) {
            self.order(key, cause, actions);
        } else if cause == StopCause::Cancelled && self.gone.insert(key.clone()) {
            actions.push(Action::ReportGone(key.clone(), "cancelled"));
        }
    }

    /// Tells an attempt to stop, unless it already was for as good a reason.
    fn order(&mut self, key: &Key, cause: StopCause, actions: &mut Vec<Action>) {
        let Some(known) = self.attempts.get_mut(key) else { return };
        let weaker = match known.phase {
            Phase::Active => true,
            Phase::Stopping(earlier) => earlier < cause,
            Phase::Ended => false,
        };
        if weaker {
            known.phase = Phase::Stopping(cause);
            actions.push(Action::Stop(key.clone(), cause));
        }
    }

    fn desired(&mut self, desired: Desired, actions: &mut Vec<Action>) {
        self.draining = desired.drain;
        self.spent |= desired.spent;
        for stop in &desired.stop {
            let key = Key { job_id: stop.job_id.clone(), attempt: stop.attempt };
            self.stop(&key, stop.reason, actions);
        }
        for expected in desired.run.iter().map(Key::from) {
            if !self.attempts.contains_key(&expected) && self.gone.insert(expected.clone()) {
                actions.push(Action::ReportGone(expected, "requeue"));
            }
        }
        for offer in desired.offers {
            self.offer(Box::new(offer), actions);
        }
    }

    fn signal(&mut self, code: u8, actions: &mut Vec<Action>) {
        match self.policy.on_stop {
            OnStop::Leave => {
                self.leave(code, None);
                actions.push(Action::Leave(Ending { code, sentence: None }));
            }
            OnStop::Finish => self.finish(code),
            OnStop::Requeue => self.give_back(code, actions),
        }
    }

    /// Leaves once everything that runs has ended. Whoever has one place only is offered nothing meanwhile.
    fn finish(&mut self, code: u8) {
        self.leave(code, None);
        self.turns_away |= self.policy.max_jobs > 1;
    }

    /// Leaves once everything that runs is stopped and back in the queue.
    fn give_back(&mut self, code: u8, actions: &mut Vec<Action>) {
        self.finish(code);
        for running in self.running() {
            self.order(&Key::from(&running), StopCause::Requeue, actions);
        }
    }
}

#[cfg(test)]
#[path = "tests/state.rs"]
mod tests;
