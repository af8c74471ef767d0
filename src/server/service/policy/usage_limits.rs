//! Usage limits of users, jobs and workers. Each is a setting (`args/limits.rs`).

use std::time::Duration;

use crate::store::jobs::attempts::PointLimit;

#[derive(Debug, Clone, Copy)]
pub struct UsageLimits {
    /// The maximum CPU time of one log search.
    pub log_search_time: Duration,
    /// The maximum number of concurrent log searches.
    pub log_searches: usize,
    /// The maximum number of one user's concurrent log searches; always fewer.
    pub log_searches_per_user: usize,
    /// The maximum number of open event streams per user.
    pub event_streams_per_user: usize,
    /// The maximum number of waiting jobs per user.
    pub waiting_jobs_per_user: usize,
    /// The maximum number of API tokens per user.
    pub api_tokens_per_user: usize,
    /// How many metric points of an attempt are kept.
    pub points: PointLimit,
    /// The maximum size of the revisions that one user has stored, in bytes.
    pub config_bytes_per_user: u64,
    /// The maximum size of all revisions, in bytes.
    pub config_bytes: u64,
    /// The maximum size of a job's files, in bytes.
    pub file_bytes_per_job: u64,
    /// The maximum size of the files of a user's jobs, in bytes.
    pub file_bytes_per_user: u64,
}

impl Default for UsageLimits {
    fn default() -> Self {
        Self {
            log_search_time: Duration::from_millis(200),
            log_searches: 4,
            log_searches_per_user: 2,
            event_streams_per_user: 50,
            waiting_jobs_per_user: 1_000,
            api_tokens_per_user: 100,
            points: PointLimit { max_points: 100_000, max_bytes: 64 << 20 },
            config_bytes_per_user: 256 << 20,
            config_bytes: 4 << 30,
            file_bytes_per_job: 1 << 40,
            file_bytes_per_user: 4 << 40,
        }
    }
}
