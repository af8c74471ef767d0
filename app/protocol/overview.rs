//! `/api/overview`: how the fleet stands, and what somebody should look at.

use serde::{Deserialize, Serialize};

use super::explain::SummaryView;
use super::gpus::GpuCounts;
use super::workers::{WorkerCounts, WorkerView};
use crate::domain::ids::{JobId, WorkerId};
use crate::domain::time::Timestamp;

/// `GET /api/overview`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverviewView {
    /// How many workers there are in each status.
    pub workers: WorkerCounts,
    /// How many GPUs stand where.
    pub gpus: GpuCounts,
    /// The jobs that the caller may see.
    pub jobs: JobsNow,
    /// Whether no new jobs are taken, because the server's disk is almost full.
    pub disk_full: bool,
    /// What somebody should look at: the most urgent first, of those the oldest.
    pub attention: Vec<AttentionView>,
    /// How many more such things there are.
    pub more_attention: u64,
    /// Some workers, those first that somebody should look at.
    pub fleet: Vec<WorkerView>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// Jobs, counted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobsNow {
    /// `queued` and `offered`.
    pub waiting: u64,
    /// `starting`, `running` and `cancelling`.
    pub running: u64,
    /// Those that completed in the last 24 hours.
    pub completed_in_24h: u64,
    /// Those that failed in the last 24 hours.
    pub failed_in_24h: u64,
    /// Of those that wait, the one that was submitted first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_waiting: Option<WaitingJob>,
}

/// A job that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingJob {
    /// The job.
    pub job_id: JobId,
    /// Its configuration's name.
    pub config_name: String,
    /// When it was submitted.
    pub submitted_at: Timestamp,
}

/// Something that somebody should look at: of a worker, of several, of a job, or else of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttentionView {
    /// What it is.
    pub kind: AttentionKind,
    /// How urgent it is.
    pub severity: Severity,
    /// Since when it is so; left out if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// The job: of `stuck` the one that has waited for longest, of `offline_with_job` the one that the worker had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<JobId>,
    /// The worker's name, or that of the job's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many: jobs (`stuck`, `more_stuck`), attempts (`fast_failures`) or GPUs (`gpus_withheld`); else workers, where none
    /// is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Why no worker takes them (`stuck`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryView>,
    /// What is said of it: an error, a host, a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When it happens (`token_ends`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// What somebody should look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// The server's disk is almost full: no new jobs are taken.
    DiskFull,
    /// A second agent came with the worker's token.
    TokenShared,
    /// The worker's token has ended.
    TokenEnded,
    /// The worker went offline while it had a job.
    OfflineWithJob,
    /// Attempts failed one after the other on the worker, each within a minute.
    FastFailures,
    /// Jobs that ask for the same have waited for more than a minute, and no worker takes them unless somebody does
    /// something.
    Stuck,
    /// GPUs of the worker showed errors, and are given to no job.
    GpusWithheld,
    /// The worker's agent says that its host is fit for no new job.
    Unfit,
    /// The drain's deadline has passed, and the worker still has a job.
    DrainOverdue,
    /// The worker's token ends within seven days.
    TokenEnds,
    /// The worker's agent does not verify the server's certificate.
    Unverified,
    /// The worker drains for more than an hour.
    DrainLong,
    /// The worker's agent is older than the server.
    AgentBehind,
    /// The worker's token is older than 90 days.
    TokenOld,
    /// Signed checkpoints of the audit trail do not reach the place where they are kept (`--audit-ship`).
    AuditNotShipped,
    /// As `stuck`: jobs that ask for other things, together.
    MoreStuck,
}

/// How urgent something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Work is lost or refused, or a secret is in other hands.
    Alarm,
    /// Something does not do what it is there for.
    Warning,
    /// Worth knowing.
    Note,
}
