//! All transitions of a job. Each takes the job and returns the new one or an error; no other code changes a state.

use std::collections::BTreeSet;

use super::super::ids::WorkerId;
use super::super::priority::DEFAULT_PRIORITY;
use super::super::retry::{self, RetryDecision};
use super::super::time::{Millis, Timestamp};
use super::{
    AttemptLoss, AttemptNumber, AttemptReport, Job, JobDescription, JobFailure, JobId, JobSpec, JobState,
    JobTransitionError, Lease, MAX_PREEMPTIONS_PER_DAY, Preemption, PreviousAttempt, Waiting,
};

/// Extra fencing delay of an exclusive job whose lost attempt still sends requests.
pub(super) const HOLD_SLACK: Millis = Millis::from_secs(10);

/// What a report about its newest attempt does to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportEffect {
    /// Nothing: it is repeated, or late.
    Nothing,
    /// The job changes as reported: it starts, runs, ends, or is requeued.
    Advances,
    /// The attempt has stopped, as a user requested.
    ConfirmsCancel,
    /// It is rejected: the job has ended.
    Rejected,
}

/// Reports also arrive late: about the previous attempt of a job that waits, which was lost or whose offer expired. For
/// each state, this defines their effect.
impl JobState {
    /// Decides what a report does to a job in this state.
    const fn report_effect(&self, report: &AttemptReport) -> ReportEffect {
        match self {
            Self::Queued(waiting) => match report {
                // Sent before its agent reported the end, and late: no trainer of it will run.
                AttemptReport::Starting | AttemptReport::Running if waiting.has_reported_end() => ReportEffect::Nothing,
                AttemptReport::Starting
                | AttemptReport::Running
                | AttemptReport::Completed
                | AttemptReport::Failed { .. }
                | AttemptReport::Cancelled
                | AttemptReport::Requeue { .. }
                | AttemptReport::Evicted
                | AttemptReport::Preempted { .. }
                | AttemptReport::HostUnhealthy { .. } => ReportEffect::Advances,
            },
            Self::Offered { .. } => ReportEffect::Advances,
            Self::Starting { .. } => match report {
                AttemptReport::Starting => ReportEffect::Nothing,
                _ => ReportEffect::Advances,
            },
            Self::Running { .. } => match report {
                AttemptReport::Starting | AttemptReport::Running => ReportEffect::Nothing,
                _ => ReportEffect::Advances,
            },
            Self::Cancelling { .. } => match report {
                AttemptReport::Starting | AttemptReport::Running => ReportEffect::Nothing,
                _ => ReportEffect::ConfirmsCancel,
            },
            Self::Completed { .. } => match report {
                AttemptReport::Completed => ReportEffect::Nothing,
                _ => ReportEffect::Rejected,
            },
            Self::Failed { failure, .. } => match (report, failure) {
                (AttemptReport::Failed { .. }, _)
                | (AttemptReport::Cancelled | AttemptReport::Requeue { .. }, JobFailure::RuntimeExceeded { .. }) => {
                    ReportEffect::Nothing
                }
                _ => ReportEffect::Rejected,
            },
            Self::Cancelled { .. } => match report {
                AttemptReport::Cancelled => ReportEffect::Nothing,
                _ => ReportEffect::Rejected,
            },
        }
    }

    /// Decides how a job in this state waits after its attempt was lost or returned: in the queue.
    fn requeued(&self, waiting: Waiting) -> Self {
        match self {
            Self::Queued(_)
            | Self::Offered { .. }
            | Self::Starting { .. }
            | Self::Running { .. }
            | Self::Cancelling { .. }
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Cancelled { .. } => Self::Queued(waiting),
        }
    }
}

impl Job {
    /// Creates a queued job.
    pub fn submitted(id: JobId, spec: JobSpec, now: Timestamp, by: String) -> Self {
        Self {
            id,
            spec,
            submitted_at: now,
            submitted_by: by,
            attempt: AttemptNumber(0),
            losses: 0,
            priority: DEFAULT_PRIORITY,
            number: None,
            description: JobDescription::default(),
            starred_by: BTreeSet::new(),
            retry_of: None,
            trace: None,
            hold_until: None,
            preempted_at: Vec::new(),
            state: JobState::Queued(Waiting { since: now, not_before: None, previous: None, preemption: None }),
        }
    }

    /// Creates a new job that retries an ended one: with the same requirements and revision, the same name and tags, and
    /// the same priority up to `max_priority`. The notes are about the result of the ended one. If a trainer of the old
    /// job may still run, the new one waits for it.
    pub fn retried(&self, id: JobId, now: Timestamp, by: String, max_priority: u8) -> Result<Self, JobTransitionError> {
        if self.has_ended() { Ok(self.forked(id, now, by, max_priority)) } else { Err(JobTransitionError::NotEnded) }
    }

    /// Creates a new job like [`Self::retried`] does, also if this one has not ended: to start from one of its
    /// checkpoints.
    #[must_use]
    pub fn forked(&self, id: JobId, now: Timestamp, by: String, max_priority: u8) -> Self {
        let new_job = Self::submitted(id, self.spec.clone(), now, by);
        let priority = self.priority.min(max_priority);
        let description = JobDescription { notes: None, ..self.description.clone() };
        Self { priority, description, retry_of: Some(self.id.clone()), hold_until: self.hold_until, ..new_job }
    }

    /// Changes the priority. If the job is not queued, the new priority applies if it is requeued.
    pub fn prioritized(self, priority: u8) -> Result<Self, JobTransitionError> {
        if self.has_ended() { Err(JobTransitionError::AlreadyEnded) } else { Ok(Self { priority, ..self }) }
    }

    /// Offers the next attempt to a worker until `until`.
    pub fn offered(
        self,
        now: Timestamp,
        worker: WorkerId,
        gpus: Vec<String>,
        until: Timestamp,
    ) -> Result<Self, JobTransitionError> {
        match self.state {
            JobState::Queued(_) => {
                let attempt = self.attempt.next();
                let lease = Lease { worker, attempt, gpus, since: now };
                Ok(Self { attempt, state: JobState::Offered { lease, since: now, until }, ..self })
            }
            _ if self.has_ended() => Err(JobTransitionError::AlreadyEnded),
            _ => Err(JobTransitionError::NotQueued),
        }
    }

    /// Withdraws an offer that was not accepted in time. It does not count as a loss.
    #[must_use]
    pub fn offer_expired(self, now: Timestamp) -> Self {
        match self.state {
            JobState::Offered { until, .. } if until <= now => self.offer_withdrawn(now),
            _ => self,
        }
    }

    /// Withdraws an offer because its worker is no longer available. It does not count as a loss.
    #[must_use]
    pub fn offer_withdrawn(self, now: Timestamp) -> Self {
        match self.state {
            JobState::Offered { lease, .. } => {
                let previous = Some(PreviousAttempt { lease, loss: None });
                let waiting = Waiting { since: now, not_before: None, previous, preemption: None };
                Self { state: JobState::Queued(waiting), ..self }
            }
            _ => self,
        }
    }

    /// Ends the claim of the previous attempt's worker on a job in the queue: a report on the attempt is rejected, and it
    /// cannot be recovered. A fencing delay stays.
    #[must_use]
    pub fn attempt_abandoned(self) -> Self {
        match self.state {
            JobState::Queued(waiting) => {
                Self { state: JobState::Queued(Waiting { previous: None, ..waiting }), ..self }
            }
            _ => self,
        }
    }

    /// Cancels the job for a user. A job without a running attempt ends immediately; otherwise it ends when its worker
    /// confirms.
    pub fn cancelled(self, now: Timestamp) -> Result<Self, JobTransitionError> {
        let state = match self.state {
            JobState::Queued(waiting) => {
                JobState::Cancelled { at: now, lease: waiting.previous.map(|previous| previous.lease) }
            }
            JobState::Offered { lease, .. } => JobState::Cancelled { at: now, lease: Some(lease) },
            JobState::Starting { lease, .. } | JobState::Running { lease, .. } => {
                JobState::Cancelling { lease, since: now }
            }
            JobState::Cancelling { .. } => self.state,
            JobState::Completed { .. } | JobState::Failed { .. } | JobState::Cancelled { .. } => {
                return Err(JobTransitionError::AlreadyEnded);
            }
        };
        Ok(Self { state, ..self })
    }

    /// Checks that an attempt may still request and send data: it is the newest, and its job has not ended. A lost
    /// attempt may until a newer one is offered, because it may be recovered.
    pub fn check_current_attempt(&self, worker: &WorkerId, attempt: AttemptNumber) -> Result<(), JobTransitionError> {
        self.current_lease(worker, attempt)?;
        match self.state {
            JobState::Queued(_)
            | JobState::Offered { .. }
            | JobState::Starting { .. }
            | JobState::Running { .. }
            | JobState::Cancelling { .. } => Ok(()),
            JobState::Completed { .. } | JobState::Failed { .. } | JobState::Cancelled { .. } => {
                Err(JobTransitionError::AlreadyEnded)
            }
        }
    }

    /// Returns whether an attempt is the newest, also if its job has ended.
    pub fn is_newest_attempt(&self, worker: &WorkerId, attempt: AttemptNumber) -> bool {
        self.current_lease(worker, attempt).is_ok()
    }

    /// Applies a worker's report on an attempt.
    ///
    /// Repeated and late reports change nothing; an attempt is accepted until a newer one is offered (invariant I1).
    pub fn reported(
        self,
        now: Timestamp,
        worker: &WorkerId,
        attempt: AttemptNumber,
        report: AttemptReport,
    ) -> Result<Self, JobTransitionError> {
        let had_ended = self.has_ended();
        let has_stopped = !matches!(report, AttemptReport::Starting | AttemptReport::Running);
        let after = self.apply_report(now, worker, attempt, report)?;
        // No other trainer of it can run: its agent has reported that this one has stopped, or continues it.
        let ends_hold = has_stopped || after.active_lease().is_some();
        Ok(if had_ended || !ends_hold { after } else { Self { hold_until: None, ..after } })
    }

    fn apply_report(
        self,
        now: Timestamp,
        worker: &WorkerId,
        attempt: AttemptNumber,
        report: AttemptReport,
    ) -> Result<Self, JobTransitionError> {
        let lease = self.current_lease(worker, attempt)?.clone();
        match self.state.report_effect(&report) {
            ReportEffect::Nothing => Ok(self),
            ReportEffect::Rejected => Err(JobTransitionError::AlreadyEnded),
            ReportEffect::ConfirmsCancel => Ok(self.into_state(JobState::Cancelled { at: now, lease: Some(lease) })),
            ReportEffect::Advances => Ok(self.advanced(now, lease, report)),
        }
    }

    /// Applies a report that changes a job that may still complete.
    fn advanced(self, now: Timestamp, lease: Lease, report: AttemptReport) -> Self {
        let overdue = self.exceeded_runtime(now);
        match report {
            AttemptReport::Starting => self.into_state(JobState::Starting { lease, since: now }),
            AttemptReport::Running => self.into_state(JobState::Running { lease, since: now }),
            AttemptReport::Completed => self.into_state(JobState::Completed { at: now, lease }),
            AttemptReport::Failed { exit_code, error } if self.spec.retry_on_failure => {
                self.requeued(now, lease, AttemptLoss::TrainerFailed { exit_code, error })
            }
            AttemptReport::Failed { exit_code, error } => {
                let failure = JobFailure::Trainer { exit_code, error };
                self.into_state(JobState::Failed { at: now, lease, failure })
            }
            AttemptReport::Cancelled | AttemptReport::Requeue { .. } if let Some(allowed) = overdue => {
                let failure = JobFailure::RuntimeExceeded { allowed };
                self.into_state(JobState::Failed { at: now, lease, failure })
            }
            AttemptReport::Cancelled => self.requeued(now, lease, AttemptLoss::StoppedByAgent),
            AttemptReport::Requeue { error } => self.requeued(now, lease, AttemptLoss::Requeued(error)),
            AttemptReport::Evicted => self.requeued_without_loss(now, lease, AttemptLoss::Evicted),
            AttemptReport::Preempted { by, lost, step } => {
                let mut preempted_at = self.preempted_at.clone();
                preempted_at.push(now);
                let oldest = preempted_at.len().saturating_sub(MAX_PREEMPTIONS_PER_DAY);
                preempted_at.drain(..oldest);
                let loss = AttemptLoss::Preempted { by, lost, step };
                Self { preempted_at, ..self.requeued_without_loss(now, lease, loss) }
            }
            AttemptReport::HostUnhealthy { error } => {
                self.requeued_without_loss(now, lease, AttemptLoss::Requeued(error))
            }
        }
    }

    /// Marks the active attempt as lost, without a report of its agent. A job that was being cancelled is then
    /// cancelled.
    ///
    /// An agent that has just received a response, from any server, may continue to train for `lease_duration`, the
    /// time for which agents may be silent. No attempt of an exclusive job starts before that.
    #[must_use]
    pub fn lost(self, now: Timestamp, loss: AttemptLoss, lease_duration: Millis) -> Self {
        let may_still_run = self.spec.exclusive && self.active_lease().is_some();
        if may_still_run { self.with_hold_until(now + lease_duration) } else { self }.apply_loss(now, loss)
    }

    /// Extends the fencing delay because the lost attempt received a response, which its agent may treat as a renewal
    /// of its lease. A job that has ended passes the delay on to its retries.
    #[must_use]
    pub fn hold_renewed(self, now: Timestamp, lease_duration: Millis) -> Self {
        let until = now + lease_duration;
        let is_lost = self.active_lease().is_none();
        // Extends by more than necessary, so that not every request causes a change.
        if is_lost && self.hold_until.is_some_and(|hold_until| hold_until < until) {
            self.with_hold_until(until + HOLD_SLACK)
        } else {
            self
        }
    }

    /// Delays an exclusive job that was restored from a backup: since the backup, it may have been offered to an agent
    /// that was in contact until just now.
    #[must_use]
    pub fn held_after_restore(self, now: Timestamp, lease_duration: Millis) -> Self {
        let may_still_run = self.spec.exclusive && self.state.waiting().is_some();
        if may_still_run { self.with_hold_until(now + lease_duration) } else { self }
    }

    fn with_hold_until(self, until: Timestamp) -> Self {
        Self { hold_until: self.hold_until.max(Some(until)), ..self }
    }

    fn apply_loss(self, now: Timestamp, loss: AttemptLoss) -> Self {
        match &self.state {
            JobState::Offered { lease, .. } | JobState::Starting { lease, .. } | JobState::Running { lease, .. } => {
                let lease = lease.clone();
                self.requeued(now, lease, loss)
            }
            JobState::Cancelling { lease, .. } => {
                let lease = Some(lease.clone());
                self.into_state(JobState::Cancelled { at: now, lease })
            }
            JobState::Queued(_) | JobState::Completed { .. } | JobState::Failed { .. } | JobState::Cancelled { .. } => {
                self
            }
        }
    }

    /// Returns the lease of a reported attempt, if that attempt is still current.
    fn current_lease(&self, worker: &WorkerId, attempt: AttemptNumber) -> Result<&Lease, JobTransitionError> {
        match self.last_lease() {
            Some(lease) if lease.attempt == attempt && &lease.worker == worker => Ok(lease),
            _ if attempt < self.attempt => Err(JobTransitionError::StaleAttempt { current: self.attempt }),
            _ => Err(JobTransitionError::WrongWorker),
        }
    }

    fn requeued(self, now: Timestamp, lease: Lease, loss: AttemptLoss) -> Self {
        // A recovered attempt that is lost again was already counted.
        let losses = if self.state.waiting().is_some() { self.losses } else { self.losses + 1 };
        match retry::after_loss(now, losses, self.spec.max_retries) {
            RetryDecision::RetryAt(retry_at) => {
                let previous = Some(PreviousAttempt { lease, loss: Some(loss) });
                let preemption = self.kept_preemption();
                let waiting = Waiting { since: now, not_before: Some(retry_at), previous, preemption };
                let state = self.state.requeued(waiting);
                Self { losses, state, ..self }
            }
            RetryDecision::Exhausted => {
                let state = JobState::Failed { at: now, lease, failure: JobFailure::Lost(loss) };
                Self { losses, state, ..self }
            }
        }
    }

    /// Requeues the job immediately, without using up a retry.
    fn requeued_without_loss(self, now: Timestamp, lease: Lease, loss: AttemptLoss) -> Self {
        let previous = Some(PreviousAttempt { lease, loss: Some(loss) });
        let (since, not_before) =
            self.state.waiting().map_or((now, None), |waiting| (waiting.since, waiting.not_before));
        let preemption = self.kept_preemption();
        let state = self.state.requeued(Waiting { since, not_before, previous, preemption });
        self.into_state(state)
    }

    /// What is stopped for a job that still waits after a late report of its previous attempt.
    fn kept_preemption(&self) -> Option<Box<Preemption>> {
        self.state.waiting()?.preemption.clone()
    }

    fn into_state(self, state: JobState) -> Self {
        Self { state, ..self }
    }
}
