//! Every way in which a job changes. Each takes the job, and returns the new one or why not; nobody else writes a state.

use super::super::ids::WorkerId;
use super::super::queue::DEFAULT_PRIORITY;
use super::super::retry::{self, Retry};
use super::super::time::{Millis, Timestamp};
use super::{Attempt, Failure, Job, JobId, Lease, Loss, Previous, Refused, Report, Spec, State};

/// So much longer than need be a job is kept back whose lost attempt is still heard of.
pub(super) const SLACK: Millis = Millis::seconds(10);

impl Job {
    /// A new job, waiting.
    pub fn submitted(id: JobId, spec: Spec, now: Timestamp, by: String) -> Self {
        Self {
            id,
            spec,
            submitted_at: now,
            submitted_by: by,
            attempt: Attempt(0),
            losses: 0,
            priority: DEFAULT_PRIORITY,
            retry_of: None,
            trace: None,
            kept_back: None,
            state: State::Queued { since: now, not_before: None, previous: None },
        }
    }

    /// A new job that tries again what has ended: same demands, same revision, a life of its own, and the same priority
    /// unless it is higher than `highest`. Where a trainer of the old one may still run, it waits for that.
    pub fn retried(&self, id: JobId, now: Timestamp, by: String, highest: u8) -> Result<Self, Refused> {
        if !self.has_ended() {
            return Err(Refused::NotEnded);
        }
        let again = Self::submitted(id, self.spec.clone(), now, by);
        let priority = self.priority.min(highest);
        Ok(Self { priority, retry_of: Some(self.id.clone()), kept_back: self.kept_back, ..again })
    }

    /// A person makes it more or less urgent. Where it no longer waits, that counts if it waits again.
    pub fn prioritised(self, priority: u8) -> Result<Self, Refused> {
        if self.has_ended() { Err(Refused::Ended) } else { Ok(Self { priority, ..self }) }
    }

    /// Offers the next attempt to a worker until `until`.
    pub fn offered(
        self,
        now: Timestamp,
        worker: WorkerId,
        gpus: Vec<String>,
        until: Timestamp,
    ) -> Result<Self, Refused> {
        match self.state {
            State::Queued { .. } => {
                let attempt = self.attempt.next();
                let lease = Lease { worker, attempt, gpus };
                Ok(Self { attempt, state: State::Offered { lease, since: now, until }, ..self })
            }
            _ if self.has_ended() => Err(Refused::Ended),
            _ => Err(Refused::NotQueued),
        }
    }

    /// Takes back an offer that nobody answered in time. It does not count as a loss.
    #[must_use]
    pub fn offer_expired(self, now: Timestamp) -> Self {
        match self.state {
            State::Offered { until, .. } if until <= now => self.offer_withdrawn(now),
            _ => self,
        }
    }

    /// Takes back an offer because its worker left. It does not count as a loss.
    #[must_use]
    pub fn offer_withdrawn(self, now: Timestamp) -> Self {
        match self.state {
            State::Offered { lease, .. } => {
                let previous = Some(Previous { lease, loss: None });
                Self { state: State::Queued { since: now, not_before: None, previous }, ..self }
            }
            _ => self,
        }
    }

    /// A person cancels it. What has not started is over at once; what runs is over when its worker says so.
    pub fn cancelled(self, now: Timestamp) -> Result<Self, Refused> {
        let state = match self.state {
            State::Queued { previous, .. } => {
                State::Cancelled { at: now, lease: previous.map(|previous| previous.lease) }
            }
            State::Offered { lease, .. } => State::Cancelled { at: now, lease: Some(lease) },
            State::Starting { lease, .. } | State::Running { lease, .. } => State::Cancelling { lease, since: now },
            State::Cancelling { .. } => self.state,
            State::Completed { .. } | State::Failed { .. } | State::Cancelled { .. } => return Err(Refused::Ended),
        };
        Ok(Self { state, ..self })
    }

    /// A worker reports on an attempt.
    ///
    /// Repeats and late news change nothing; an attempt counts as long as no newer one was offered (invariant I1).
    pub fn reported(
        self,
        now: Timestamp,
        worker: &WorkerId,
        attempt: Attempt,
        report: Report,
    ) -> Result<Self, Refused> {
        let had_ended = self.has_ended();
        let after = self.told(now, worker, attempt, report)?;
        // Its agent has it, or says that nothing of it runs any more.
        Ok(if had_ended { after } else { Self { kept_back: None, ..after } })
    }

    fn told(self, now: Timestamp, worker: &WorkerId, attempt: Attempt, report: Report) -> Result<Self, Refused> {
        let lease = self.fence(worker, attempt)?.clone();
        let overdue = self.overdue(now);
        match (&self.state, report) {
            (State::Completed { .. }, Report::Completed)
            | (State::Failed { .. }, Report::Failed { .. })
            | (State::Cancelled { .. }, Report::Cancelled)
            | (State::Failed { failure: Failure::OverTime { .. }, .. }, Report::Cancelled | Report::Requeue { .. })
            | (State::Cancelling { .. }, Report::Starting | Report::Running)
            | (State::Starting { .. } | State::Running { .. }, Report::Starting)
            | (State::Running { .. }, Report::Running)
            | (State::Queued { .. }, Report::Evicted) => Ok(self),
            (State::Completed { .. } | State::Failed { .. } | State::Cancelled { .. }, _) => Err(Refused::Ended),
            (State::Cancelling { .. }, _) => Ok(self.into_state(State::Cancelled { at: now, lease: Some(lease) })),
            (_, Report::Starting) => Ok(self.into_state(State::Starting { lease, since: now })),
            (_, Report::Running) => Ok(self.into_state(State::Running { lease, since: now })),
            (_, Report::Completed) => Ok(self.into_state(State::Completed { at: now, lease })),
            (_, Report::Failed { exit_code, error }) if self.spec.retry_on_failure => {
                Ok(self.requeued(now, lease, Loss::TrainerFailed { exit_code, error }))
            }
            (_, Report::Failed { exit_code, error }) => {
                let failure = Failure::Trainer { exit_code, error };
                Ok(self.into_state(State::Failed { at: now, lease, failure }))
            }
            (_, Report::Cancelled | Report::Requeue { .. }) if let Some(allowed) = overdue => {
                let failure = Failure::OverTime { allowed };
                Ok(self.into_state(State::Failed { at: now, lease, failure }))
            }
            (_, Report::Cancelled) => {
                let loss = Loss::Requeued("the agent stopped it without being asked to".to_owned());
                Ok(self.requeued(now, lease, loss))
            }
            (_, Report::Requeue { error }) => Ok(self.requeued(now, lease, Loss::Requeued(error))),
            (_, Report::Evicted) => {
                let previous = Some(Previous { lease, loss: Some(Loss::Evicted) });
                Ok(self.into_state(State::Queued { since: now, not_before: None, previous }))
            }
        }
    }

    /// Its attempt is lost, without a word of its agent about it. A job that was being cancelled is then cancelled.
    ///
    /// Whoever was answered just now, by whichever server, may train on for a `lease`: as long as the agents were told
    /// that they may be silent. So long nothing of an exclusive job begins.
    #[must_use]
    pub fn lost(self, now: Timestamp, loss: Loss, lease: Millis) -> Self {
        let may_run = self.spec.exclusive && self.live_lease().is_some();
        if may_run { self.keeping_back(now + lease) } else { self }.given_up(now, loss)
    }

    /// Its lost attempt was answered nevertheless, and may take that for a renewal of its lease.
    #[must_use]
    pub fn answered(self, now: Timestamp, lease: Millis) -> Self {
        let until = now + lease;
        let waits = matches!(self.state, State::Queued { .. });
        // More than is needed, so that not every request of it is a change.
        if waits && self.kept_back.is_some_and(|kept| kept < until) { self.keeping_back(until + SLACK) } else { self }
    }

    /// It is known from a backup, and may have been offered since to somebody who was answered until just now.
    #[must_use]
    pub fn recalled(self, now: Timestamp, lease: Millis) -> Self {
        let may_run = self.spec.exclusive && matches!(self.state, State::Queued { .. });
        if may_run { self.keeping_back(now + lease) } else { self }
    }

    fn keeping_back(self, until: Timestamp) -> Self {
        Self { kept_back: self.kept_back.max(Some(until)), ..self }
    }

    fn given_up(self, now: Timestamp, loss: Loss) -> Self {
        match &self.state {
            State::Offered { lease, .. } | State::Starting { lease, .. } | State::Running { lease, .. } => {
                let lease = lease.clone();
                self.requeued(now, lease, loss)
            }
            State::Cancelling { lease, .. } => {
                let lease = Some(lease.clone());
                self.into_state(State::Cancelled { at: now, lease })
            }
            State::Queued { .. } | State::Completed { .. } | State::Failed { .. } | State::Cancelled { .. } => self,
        }
    }

    /// The lease that a report speaks of, if that attempt is still the job's.
    fn fence(&self, worker: &WorkerId, attempt: Attempt) -> Result<&Lease, Refused> {
        match self.last_lease() {
            Some(lease) if lease.attempt == attempt && &lease.worker == worker => Ok(lease),
            _ if attempt < self.attempt => Err(Refused::OldAttempt { current: self.attempt }),
            _ => Err(Refused::NotYours),
        }
    }

    fn requeued(self, now: Timestamp, lease: Lease, loss: Loss) -> Self {
        let waiting_again = matches!(self.state, State::Queued { .. });
        // A lost attempt that comes back only to be lost again was already counted.
        let losses = if waiting_again { self.losses } else { self.losses + 1 };
        let state = match retry::after_loss(now, losses, self.spec.max_retries) {
            Retry::NotBefore(moment) => State::Queued {
                since: now,
                not_before: Some(moment),
                previous: Some(Previous { lease, loss: Some(loss) }),
            },
            Retry::Exhausted => State::Failed { at: now, lease, failure: Failure::Lost(loss) },
        };
        Self { losses, state, ..self }
    }

    fn into_state(self, state: State) -> Self {
        Self { state, ..self }
    }
}
