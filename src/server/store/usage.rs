//! What is asked about a stretch of time: attempts, waits, and how workers came and went.

use app::domain::time::Timestamp;
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

/// Asking.
#[async_trait]
pub trait Usage {
    /// Attempts that touch the window, of all jobs or of those of one person.
    async fn runs(&mut self, window: Window, user: Option<&str>) -> Result<Vec<Run>>;
    /// How those jobs waited that had no worker yet when the window began.
    async fn waits(&mut self, window: Window, user: Option<&str>) -> Result<Vec<Wait>>;
    /// The entries with these words before a moment, the oldest first.
    async fn sightings(&mut self, words: &[&'static str], before: Timestamp) -> Result<Vec<Sighting>>;
}
