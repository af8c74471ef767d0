//! What is asked about a stretch of time: attempts, waits, and how workers came and went.

use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};
use app::domain::usage::{Run, Wait, Window};
use async_trait::async_trait;

use super::Result;

/// An entry of the audit trail that tells whether a worker was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// When.
    pub at: Timestamp,
    /// The worker's id.
    pub worker: String,
    /// What happened.
    pub action: String,
    /// Particulars, as JSON.
    pub detail: String,
}

/// Which workers' failures are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streak {
    /// What ended earlier does not count.
    pub since: Timestamp,
    /// Until when an attempt has lasted that has not ended.
    pub now: Timestamp,
    /// What failed within this time of its start failed at once.
    pub quick: Millis,
    /// With fewer of them a worker is not told of.
    pub least: u64,
}

/// A worker on which attempts fail at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// Which.
    pub worker: WorkerId,
    /// How many, since one has lasted there.
    pub attempts: u64,
    /// When the first of them ended.
    pub since: Timestamp,
}

/// Asking.
#[async_trait]
pub trait Usage {
    /// Attempts that touch the window, of all jobs or of those of one person.
    async fn runs(&mut self, window: Window, user: Option<&str>) -> Result<Vec<Run>>;
    /// How those jobs waited that had no worker yet when the window began.
    async fn waits(&mut self, window: Window, user: Option<&str>) -> Result<Vec<Wait>>;
    /// How many jobs have ended since then in each state, of all or of one person.
    async fn ended_since(&mut self, since: Timestamp, user: Option<&str>) -> Result<Vec<(String, u64)>>;
    /// The workers on which attempts fail at once, one after the other, of all or this one; a hundred at most.
    async fn failing(&mut self, streak: Streak, worker: Option<&WorkerId>) -> Result<Vec<Failing>>;
    /// The entries with these words before a moment, the oldest first.
    async fn sightings(&mut self, words: &[&'static str], before: Timestamp) -> Result<Vec<Sighting>>;
    /// The newest entries about a worker with these words: those since a moment and the one before, at most so many.
    async fn sightings_of(
        &mut self,
        worker: &WorkerId,
        words: &[&'static str],
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<Sighting>>;
}
