//! The model of a job: its states, what users change about it, and what reports do to it. A state of a job is described
//! here only.

use proptest::prelude::*;

use super::commands::{JobRequest, NewestAttempt};
use super::server::HEARTBEAT_TIMEOUT;
use crate::domain::ids::AttemptNumber;
use crate::domain::job::{AttemptReport, Job, JobFailure, JobState};
use crate::domain::time::{Millis, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobEnd {
    Completed,
    Failed,
    RuntimeExceeded,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelJobState {
    Waiting { due: Timestamp },
    Offered { until: Timestamp },
    Starting,
    Running { since: Timestamp },
    Cancelling,
    Ended(JobEnd),
}

impl ModelJobState {
    /// Returns the model's state for a state of the rules.
    pub fn from_state(state: &JobState) -> Self {
        match state {
            JobState::Queued(waiting) => Self::Waiting { due: waiting.not_before.unwrap_or_default() },
            JobState::Offered { until, .. } => Self::Offered { until: *until },
            JobState::Starting { .. } => Self::Starting,
            JobState::Running { since, .. } => Self::Running { since: *since },
            JobState::Cancelling { .. } => Self::Cancelling,
            JobState::Completed { .. } => Self::Ended(JobEnd::Completed),
            JobState::Failed { failure: JobFailure::RuntimeExceeded { .. }, .. } => {
                Self::Ended(JobEnd::RuntimeExceeded)
            }
            JobState::Failed { .. } => Self::Ended(JobEnd::Failed),
            JobState::Cancelled { .. } => Self::Ended(JobEnd::Cancelled),
        }
    }
}

/// What a user changes about a job.
#[derive(Debug, Clone, Copy)]
pub(super) enum JobChange {
    Cancel,
    SetPriority(u8),
}

pub(super) fn job_change() -> impl Strategy<Value = JobChange> {
    prop_oneof![2 => Just(JobChange::Cancel), 1 => (9_u8..12).prop_map(JobChange::SetPriority)]
}

impl JobChange {
    /// Applies it by the rules; none if it is rejected.
    pub fn apply(self, job: Job, now: Timestamp) -> Option<Job> {
        match self {
            Self::Cancel => job.cancelled(now).ok(),
            Self::SetPriority(priority) => job.prioritized(priority).ok(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct ModelJob {
    pub request: JobRequest,
    pub submitted_at: Timestamp,
    pub priority: u8,
    /// Worker and GPUs of each offer; the last one is the newest attempt.
    pub offers: Vec<(usize, Vec<String>)>,
    pub losses: u32,
    pub state: ModelJobState,
    /// Whether the newest attempt's agent has reported its end.
    pub end_reported: bool,
    /// Whether the newest attempt's worker has moved to another host, which does not run it.
    pub abandoned: bool,
    /// Earliest next offer, because an unreported trainer may still run.
    pub hold_until: Option<Timestamp>,
    /// When an agent last received a response that lets it continue; none if it is known that nothing runs.
    pub renewed_at: Option<Timestamp>,
}

impl ModelJob {
    pub fn new(request: JobRequest, priority: u8, now: Timestamp) -> Self {
        let state = ModelJobState::Waiting { due: Timestamp(0) };
        let (offers, losses) = (Vec::new(), 0);
        Self {
            request,
            submitted_at: now,
            priority,
            offers,
            losses,
            state,
            end_reported: false,
            abandoned: false,
            hold_until: None,
            renewed_at: None,
        }
    }

    /// Earliest time of an offer, if it is pending.
    pub fn earliest_offer(&self) -> Option<Timestamp> {
        let ModelJobState::Waiting { due } = self.state else { return None };
        Some(due.max(self.hold_until.unwrap_or_default()))
    }

    /// The worker that it occupies.
    pub fn holder(&self) -> Option<usize> {
        let occupies = !self.waits() && !self.has_ended();
        self.offers.last().filter(|_| occupies).map(|(worker, _)| *worker)
    }

    /// The worker and the number of the newest attempt, unless it is abandoned.
    pub fn newest(&self) -> NewestAttempt {
        let number = u32::try_from(self.offers.len()).expect("few");
        self.newest_offer().map(|(worker, _)| (*worker, AttemptNumber(number)))
    }

    pub fn newest_offer(&self) -> Option<&(usize, Vec<String>)> {
        self.offers.last().filter(|_| !self.abandoned)
    }

    /// Whether a report that an attempt continues is late: its agent has reported the end.
    pub fn is_late(&self, report: &AttemptReport) -> bool {
        self.waits() && self.end_reported && matches!(report, AttemptReport::Starting | AttemptReport::Running)
    }

    /// Whether it waits, and occupies no worker.
    pub fn waits(&self) -> bool {
        matches!(self.state, ModelJobState::Waiting { .. })
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.state, ModelJobState::Ended(_))
    }

    /// Its attempt is lost without a report of its agent, so its trainer may run for as long as agents may be silent.
    pub fn lose_without_report(&mut self, now: Timestamp) {
        if self.request.exclusive && self.holder().is_some() {
            self.hold_until = self.hold_until.max(Some(now + HEARTBEAT_TIMEOUT));
        }
        self.lose(now);
    }

    /// Its attempt is lost, but not because of the job.
    fn lose(&mut self, now: Timestamp) {
        match self.state {
            ModelJobState::Ended(_) => {}
            ModelJobState::Cancelling => self.state = ModelJobState::Ended(JobEnd::Cancelled),
            _ => {
                // If it is pending, the loss of this attempt was counted, or its offer was not accepted.
                self.losses += u32::from(self.holder().is_some());
                let seconds = [10, 10, 20, 40, 80, 160].get(self.losses as usize).copied().unwrap_or(300);
                let due = now + Millis::from_secs(seconds);
                let exhausted = self.losses > self.request.max_retries;
                self.state =
                    if exhausted { ModelJobState::Ended(JobEnd::Failed) } else { ModelJobState::Waiting { due } };
            }
        }
    }

    /// Whether it has exceeded its time limit and must stop.
    pub fn exceeded_runtime(&self, now: Timestamp) -> bool {
        let ModelJobState::Running { since } = self.state else { return false };
        self.request.max_runtime.is_some_and(|seconds| now - since >= Millis::from_secs(seconds))
    }

    /// Applies what a user changes; none if it is rejected.
    pub fn change(&mut self, change: JobChange) -> Option<()> {
        if self.has_ended() {
            return None;
        }
        match change {
            JobChange::Cancel => self.cancel(),
            JobChange::SetPriority(priority) => self.priority = priority,
        }
        Some(())
    }

    fn cancel(&mut self) {
        let runs =
            matches!(self.state, ModelJobState::Starting | ModelJobState::Running { .. } | ModelJobState::Cancelling);
        self.state = if runs { ModelJobState::Cancelling } else { ModelJobState::Ended(JobEnd::Cancelled) };
    }

    pub fn withdraw_offer(&mut self) {
        self.state = ModelJobState::Waiting { due: Timestamp(0) };
    }

    /// Applies a report of the worker of the newest attempt; false if it is rejected.
    pub fn apply_report(&mut self, report: &AttemptReport, now: Timestamp) -> bool {
        let is_current = self.apply_current_report(report, now);
        self.end_reported |= is_current && self.waits();
        is_current
    }

    fn apply_current_report(&mut self, report: &AttemptReport, now: Timestamp) -> bool {
        self.state = match (self.state, report) {
            (ModelJobState::Ended(end), report) => return is_repeat(end, report),
            (ModelJobState::Cancelling, AttemptReport::Starting | AttemptReport::Running) => ModelJobState::Cancelling,
            (ModelJobState::Cancelling, _) => ModelJobState::Ended(JobEnd::Cancelled),
            (ModelJobState::Waiting { .. } | ModelJobState::Offered { .. }, AttemptReport::Starting) => {
                ModelJobState::Starting
            }
            (state, AttemptReport::Starting) => state,
            (ModelJobState::Running { since }, AttemptReport::Running) => ModelJobState::Running { since },
            (_, AttemptReport::Running) => ModelJobState::Running { since: now },
            (_, AttemptReport::Completed) => ModelJobState::Ended(JobEnd::Completed),
            (_, AttemptReport::Cancelled | AttemptReport::Requeue { .. }) if self.exceeded_runtime(now) => {
                ModelJobState::Ended(JobEnd::RuntimeExceeded)
            }
            (_, AttemptReport::Failed { .. }) if !self.request.retry_on_failure => ModelJobState::Ended(JobEnd::Failed),
            (
                ModelJobState::Waiting { due },
                AttemptReport::Evicted | AttemptReport::Preempted { .. } | AttemptReport::HostUnhealthy { .. },
            ) => ModelJobState::Waiting { due },
            (_, AttemptReport::Evicted | AttemptReport::Preempted { .. } | AttemptReport::HostUnhealthy { .. }) => {
                ModelJobState::Waiting { due: Timestamp(0) }
            }
            (_, AttemptReport::Failed { .. } | AttemptReport::Cancelled | AttemptReport::Requeue { .. }) => {
                self.lose(now);
                self.state
            }
        };
        true
    }
}

fn is_repeat(end: JobEnd, report: &AttemptReport) -> bool {
    matches!(
        (end, report),
        (
            JobEnd::RuntimeExceeded,
            AttemptReport::Failed { .. } | AttemptReport::Cancelled | AttemptReport::Requeue { .. }
        ) | (JobEnd::Completed, AttemptReport::Completed)
            | (JobEnd::Failed, AttemptReport::Failed { .. })
            | (JobEnd::Cancelled, AttemptReport::Cancelled)
    )
}
