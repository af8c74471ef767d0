//! How long a job takes to get to a worker. What is decided counts once it is committed.

use std::sync::Mutex;

use app::domain::time::Timestamp;

use super::histogram::{Histogram, TIMES};

/// A step of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// From the submit until the first offer was written down.
    Offered,
    /// From the offer until a worker accepted it.
    Accepted,
}

/// See the module.
#[derive(Debug)]
pub struct Dispatch {
    /// From the submit until the first offer was written down.
    pub to_offer: Histogram,
    /// From the offer until a worker accepted it.
    pub to_acceptance: Histogram,
    /// What the group that is being written has decided: which step, begun when.
    decided: Mutex<Vec<(Step, Timestamp)>>,
}

impl Default for Dispatch {
    fn default() -> Self {
        let times = || Histogram::of_seconds(TIMES);
        Self { to_offer: times(), to_acceptance: times(), decided: Mutex::default() }
    }
}

impl Dispatch {
    /// A step that began then is decided.
    pub fn decided(&self, step: Step, since: Timestamp) {
        self.decided.lock().expect("no panic while it is held").push((step, since));
    }

    /// All that was decided is committed.
    pub fn committed(&self, now: Timestamp) {
        for (step, since) in self.decided.lock().expect("no panic while it is held").drain(..) {
            let micros = (now - since).0.max(0).unsigned_abs() * 1_000;
            match step {
                Step::Offered => self.to_offer.observe(micros),
                Step::Accepted => self.to_acceptance.observe(micros),
            }
        }
    }

    /// Nothing of it is.
    pub fn undone(&self) {
        self.decided.lock().expect("no panic while it is held").clear();
    }
}
