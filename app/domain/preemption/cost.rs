//! What is lost when running attempts are stopped, and the choice that loses the least.

use super::{PATIENCE, fits_with};
use crate::domain::ids::WorkerId;
use crate::domain::job::{Job, Lease, PreemptedAttempt, Preemption, PreemptionReason};
use crate::domain::matching::Candidate;
use crate::domain::time::{Millis, Timestamp};

/// An attempt whose trainer runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunningAttempt<'w> {
    /// Its job.
    pub job: &'w Job,
    /// Its lease.
    pub lease: &'w Lease,
    /// Since when the trainer runs.
    pub since: Timestamp,
    /// Its newest complete checkpoint, if it has any.
    pub checkpoint: Option<Timestamp>,
    /// The time between its checkpoints, as far as known.
    pub interval: Option<Millis>,
}

impl RunningAttempt<'_> {
    /// Returns the work that is lost if it stops now.
    pub fn lost_work(&self, now: Timestamp) -> Millis {
        Millis((now - self.checkpoint.unwrap_or(self.since)).0.max(0))
    }

    /// Returns how long it took from its offer to the start of its trainer: another attempt will take as long.
    fn restart_cost(&self) -> Millis {
        Millis((self.since - self.lease.since).0.max(0))
    }

    fn cost(&self, now: Timestamp) -> i64 {
        let gpus = i64::try_from(self.lease.gpus.len()).unwrap_or(i64::MAX).max(1);
        gpus.saturating_mul(self.lost_work(now).0.saturating_add(self.restart_cost().0))
    }

    /// Returns when it is stopped: when patience ends, if its next checkpoint comes before, otherwise immediately.
    fn stop_at(&self, now: Timestamp) -> Timestamp {
        let next = self.interval.map(|interval| self.checkpoint.unwrap_or(self.since) + interval);
        let comes_soon = next.is_some_and(|next| now < next && next - now <= PATIENCE);
        if comes_soon { now + PATIENCE } else { now }
    }
}

/// Attempts on one worker without which a job fits.
pub(super) struct Choice<'w> {
    pub worker: &'w WorkerId,
    pub attempts: Vec<RunningAttempt<'w>>,
    reason: PreemptionReason,
    /// In GPU-milliseconds.
    pub cost: i64,
}

/// Returns the cheapest of the attempts that may be stopped on a worker without which the job fits: one, or as few as
/// possible of the cheapest.
pub(super) fn cheapest<'w>(
    job: &'w Job,
    candidate: &Candidate<'w>,
    stoppable: impl Iterator<Item = (RunningAttempt<'w>, PreemptionReason)>,
    now: Timestamp,
) -> Option<Choice<'w>> {
    let mut all: Vec<(RunningAttempt<'w>, PreemptionReason)> = stoppable.collect();
    all.sort_by_key(|(running, _)| (running.cost(now), running.job.id.clone()));
    let fits_without = |stopped: &[&(RunningAttempt<'w>, PreemptionReason)]| {
        fits_with(job, &without(candidate, stopped.iter().map(|(running, _)| running.lease)))
    };
    if all.is_empty() || !fits_without(&all.iter().collect::<Vec<_>>()) {
        return None;
    }
    let single = all.iter().find(|one| fits_without(&[one])).map(|one| vec![one]);
    let chosen = single.unwrap_or_else(|| {
        let mut chosen = Vec::new();
        for one in &all {
            chosen.push(one);
            if fits_without(&chosen) {
                break;
            }
        }
        // Without the most expensive ones that are not needed.
        for index in (0..chosen.len()).rev() {
            let mut fewer = chosen.clone();
            fewer.remove(index);
            if fits_without(&fewer) {
                chosen = fewer;
            }
        }
        chosen
    });
    let cost = chosen.iter().fold(0_i64, |sum, (running, _)| sum.saturating_add(running.cost(now)));
    let reason = chosen.last().map(|(_, reason)| *reason)?;
    let attempts = chosen.into_iter().map(|(running, _)| *running).collect();
    Some(Choice { worker: &candidate.worker.id, attempts, reason, cost })
}

/// The worker after these leases have ended.
fn without<'w>(candidate: &Candidate<'w>, leases: impl Iterator<Item = &'w Lease>) -> Candidate<'w> {
    let mut left = candidate.clone();
    for lease in leases {
        let uuids = lease.gpu_uuids();
        if let Some(index) = left.held_gpus.iter().position(|held| *held == uuids) {
            left.held_gpus.remove(index);
        }
    }
    left
}

impl Choice<'_> {
    pub(super) fn into_preemption(self, now: Timestamp) -> Preemption {
        let attempt = |running: RunningAttempt<'_>| PreemptedAttempt {
            job: running.job.id.clone(),
            attempt: running.lease.attempt,
            stop_at: running.stop_at(now),
        };
        Preemption {
            worker: self.worker.clone(),
            reason: self.reason,
            decided_at: now,
            attempts: self.attempts.into_iter().map(attempt).collect(),
        }
    }
}
