//! What people, jobs and workers may use up. Each number is a setting (`cli/limits.rs`).

use std::time::Duration;

use super::log_searches::LogSearches;
use super::shares::Shares;
use crate::store::attempts::PointLimit;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How much CPU time one search of a log may take.
    pub log_search_time: Duration,
    /// How many searches of logs run at once.
    pub log_searches: usize,
    /// How many of those are one person's; always fewer.
    pub log_searches_per_user: usize,
    /// How many event streams a person has open at once.
    pub event_streams_per_user: usize,
    /// How many of a person's jobs wait at once.
    pub waiting_jobs_per_user: usize,
    /// How many API tokens a person has.
    pub api_tokens_per_user: usize,
    /// How much is kept of an attempt's points.
    pub points: PointLimit,
    /// How many bytes the revisions of configurations have that one person has stored.
    pub config_bytes_per_user: u64,
    /// How many bytes all revisions of configurations have.
    pub config_bytes: u64,
    /// How many bytes the files of a job have.
    pub file_bytes_per_job: u64,
    /// How many bytes the files of a person's jobs have.
    pub file_bytes_per_user: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            log_search_time: Duration::from_millis(200),
            log_searches: 4,
            log_searches_per_user: 2,
            event_streams_per_user: 50,
            waiting_jobs_per_user: 1_000,
            api_tokens_per_user: 100,
            points: PointLimit { most: 100_000, bytes: 64 << 20 },
            config_bytes_per_user: 256 << 20,
            config_bytes: 4 << 30,
            file_bytes_per_job: 1 << 40,
            file_bytes_per_user: 4 << 40,
        }
    }
}

impl Bounds {
    /// Who may search logs at the same time.
    pub fn searches(&self) -> LogSearches {
        LogSearches::new(self.log_searches, self.log_searches_per_user)
    }

    /// Who may listen to events at the same time.
    pub fn event_streams(&self) -> Shares {
        Shares::of_each(self.event_streams_per_user)
    }
}
