//! `/api/overview`: the state of the fleet, and its alerts.

use serde::{Deserialize, Serialize};

use super::gpus::GpuCounts;
use super::workers::{WorkerCounts, WorkerView};
use crate::domain::ids::{JobId, WorkerId};
use crate::domain::time::Timestamp;
use crate::protocol::jobs::explain::FitSummaryView;

/// `GET /api/overview`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverviewView {
    /// Number of workers in each status.
    pub workers: WorkerCounts,
    /// Number of GPUs in each state.
    pub gpus: GpuCounts,
    /// Number of connected GPUs that report their utilization.
    pub gpus_measured: u64,
    /// The jobs that the caller may see, counted.
    pub jobs: JobTotals,
    /// Whether new jobs are rejected because the server's disk is almost full.
    pub disk_full: bool,
    /// The alerts: most severe first, then oldest first.
    pub attention: Vec<AlertView>,
    /// Number of further alerts.
    pub more_attention: u64,
    /// Some workers, those with alerts first.
    pub fleet: Vec<WorkerView>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// Job counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobTotals {
    /// Those in the phase `waiting`.
    pub waiting: u64,
    /// Those in the phase `running`.
    pub running: u64,
    /// Jobs that completed in the last 24 hours.
    pub completed_in_24h: u64,
    /// Jobs that failed in the last 24 hours.
    pub failed_in_24h: u64,
    /// The pending job that was submitted first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_waiting: Option<WaitingJob>,
}

/// A pending job.
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

/// An alert about a worker, several workers, a job, or the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AlertView {
    /// The kind of alert.
    pub kind: AlertCode,
    /// The severity.
    pub severity: Severity,
    /// Since when; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// The job: for `stuck` the one that has waited longest, for `offline_with_job` and `offline` the first of `job_ids`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<JobId>,
    /// The name of the worker, or of the job's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The jobs that the worker lost (`offline_with_job`, `offline`), 20 at most; `count` is the number of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub job_ids: Vec<JobId>,
    /// A number: of jobs (`stuck`, `more_stuck`, `offline_with_job`, `offline`), attempts (`fast_failures`) or GPUs
    /// (`gpus_unavailable`); otherwise of workers, if no single one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Why no worker matches (`stuck`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<FitSummaryView>,
    /// Details: an error, a host, a version; for `registration_rejected` the code of the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When it will happen (`token_expiring`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// The kind of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlertCode {
    /// The server's disk is almost full: new jobs are rejected.
    DiskFull,
    /// A second agent used the worker's token.
    TokenShared,
    /// The worker's token has expired.
    TokenExpired,
    /// The worker went offline while it had jobs, and some of them do not run elsewhere yet.
    OfflineWithJob,
    /// The worker fell silent while it had jobs, and has not returned. The jobs run elsewhere, or have ended. A drain ends
    /// this alert.
    Offline,
    /// Several attempts in a row failed on the worker, each within a minute.
    FastFailures,
    /// Jobs with the same requirements have been pending for more than a minute, and no worker will run them without an
    /// admin's action.
    Stuck,
    /// GPUs of the worker had errors and are quarantined.
    GpusUnavailable,
    /// The worker's agent reports that the host cannot run new jobs.
    HostUnhealthy,
    /// The worker is not connected, and its agent's registration was rejected in the last 24 hours. A registration ends this
    /// alert.
    RegistrationRejected,
    /// The drain's deadline has passed, but the worker still has a job.
    DrainOverdue,
    /// The worker's token expires within seven days.
    TokenExpiring,
    /// The worker's agent does not verify the server's certificate.
    TlsUnverified,
    /// The worker has been draining for more than an hour.
    DrainLong,
    /// The worker's agent is older than the server.
    AgentOutdated,
    /// The worker's token is older than 90 days.
    TokenOld,
    /// Signed checkpoints of the audit log cannot be shipped (`--audit-ship`).
    AuditNotShipped,
    /// As `stuck`: jobs with other requirements, combined.
    MoreStuck,
}

/// The severity of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Work is lost or rejected, or a token may be compromised.
    Critical,
    /// Something does not work as intended.
    Warning,
    /// For information.
    Info,
}
