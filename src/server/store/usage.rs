//! Queries about a period: attempts, waiting times, and presence of workers.

use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};
use app::domain::usage::{AttemptUsage, JobWait, TimeWindow};
use async_trait::async_trait;

use super::Result;

/// An audit entry that shows whether a worker was online.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresenceEvent {
    pub at: Timestamp,
    pub worker: String,
    pub action: String,
    /// Details, as JSON.
    pub detail: String,
}

/// Which failures to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureStreakQuery {
    /// Attempts that ended earlier do not count.
    pub since: Timestamp,
    /// The end of unfinished attempts.
    pub now: Timestamp,
    /// An attempt that failed within this time of its start failed quickly.
    pub quick_failure: Millis,
    /// The minimum number of failures.
    pub min_failures: u64,
}

/// A worker on which attempts fail quickly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingWorker {
    pub worker: WorkerId,
    /// The number of failures since an attempt lasted there.
    pub attempts: u64,
    /// When the first of them ended.
    pub since: Timestamp,
}

#[async_trait]
pub trait UsageQueries {
    /// Attempts that overlap the period, of all jobs or of one user's.
    async fn attempt_usage(&mut self, window: TimeWindow, user: Option<&str>) -> Result<Vec<AttemptUsage>>;
    /// Waiting times of jobs that had no worker at the beginning of the period, or were submitted in it.
    async fn job_waits(&mut self, window: TimeWindow, user: Option<&str>) -> Result<Vec<JobWait>>;
    /// The number of jobs that ended since then, by state, of all users or of one.
    async fn ended_since(&mut self, since: Timestamp, user: Option<&str>) -> Result<Vec<(String, u64)>>;
    /// The workers on which attempts fail quickly, one after the other; of all or this one; at most a hundred.
    async fn failing_workers(
        &mut self,
        streak: FailureStreakQuery,
        worker: Option<&WorkerId>,
    ) -> Result<Vec<FailingWorker>>;
    /// The entries of a chain with these actions, in order, after the sequence number `after` and through `until`.
    async fn presence_events(
        &mut self,
        actions: &[&'static str],
        chain: &str,
        after: i64,
        until: i64,
    ) -> Result<Vec<PresenceEvent>>;
    /// The newest entries about a worker with these actions: those since a time and the one before, at most `limit`.
    async fn worker_presence_events(
        &mut self,
        worker: &WorkerId,
        actions: &[&'static str],
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<PresenceEvent>>;
}
