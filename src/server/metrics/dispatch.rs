//! Dispatch latency. A decision counts once it is committed.

use std::sync::Mutex;

use app::domain::time::Timestamp;

use super::histogram::{Histogram, LATENCY_BOUNDS};

/// A step of dispatching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchStep {
    /// From the submit until the first offer is committed.
    Offered,
    /// From the offer until a worker accepts it.
    Accepted,
}

#[derive(Debug)]
pub struct DispatchMetrics {
    /// From the submit until the first offer is committed.
    pub to_offer: Histogram,
    /// From the offer until a worker accepts it.
    pub to_acceptance: Histogram,
    /// Steps of the group that is being written, with their start.
    uncommitted: Mutex<Vec<(DispatchStep, Timestamp)>>,
}

impl Default for DispatchMetrics {
    fn default() -> Self {
        let times = || Histogram::of_seconds(LATENCY_BOUNDS);
        Self { to_offer: times(), to_acceptance: times(), uncommitted: Mutex::default() }
    }
}

impl DispatchMetrics {
    /// Records a step with this start.
    pub fn record(&self, step: DispatchStep, since: Timestamp) {
        self.uncommitted.lock().expect("no panic while it is held").push((step, since));
    }

    /// Counts the recorded steps after their commit.
    pub fn commit(&self, now: Timestamp) {
        for (step, since) in self.uncommitted.lock().expect("no panic while it is held").drain(..) {
            let micros = (now - since).0.max(0).unsigned_abs() * 1_000;
            match step {
                DispatchStep::Offered => self.to_offer.observe(micros),
                DispatchStep::Accepted => self.to_acceptance.observe(micros),
            }
        }
    }

    /// Drops the recorded steps after a rollback.
    pub fn discard(&self) {
        self.uncommitted.lock().expect("no panic while it is held").clear();
    }
}
