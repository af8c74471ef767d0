//! What the dashboard asks of a server, and nothing more.
//!
//! While a page is rendered on the server, the use cases implement it in process; in the browser
//! [`super::http_backend`] implements it over the public REST API. So a page never knows where it runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::domain::ids::{AttemptNumber, JobId, WorkerId};
use crate::protocol::access::SessionView;
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::audit::AuditPage;
use crate::protocol::gpus::history::{FleetHistory, GpuHistory, HistoryRange, JobMetrics};
use crate::protocol::gpus::{GpusPage, GpusQuery};
use crate::protocol::jobs::explain::ExplanationView;
use crate::protocol::jobs::{JobLive, JobView, JobsPage, JobsQuery, LogChunk};
use crate::protocol::logs::{LogLines, LogLinesQuery, LogMatches, LogSearchQuery};
use crate::protocol::overview::OverviewView;
use crate::protocol::problem::Problem;
use crate::protocol::search::{SearchPage, SearchQuery};
#[cfg(feature = "ssr")]
use crate::protocol::workers::history::{PageQuery, WorkerAttempts, WorkerEvents};
use crate::protocol::workers::{WorkerView, WorkersPage, WorkersQuery};

/// An answer that is on its way.
pub type BackendFuture<T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>>;

/// The shared handle that pages take from the context.
pub type SharedBackend = Arc<dyn Backend>;

/// Questions; writes go through forms to `/ui/…` (see `CONTRIBUTING.md`, "A page").
pub trait Backend: Send + Sync {
    /// Who is asking, and under which address.
    fn session(&self) -> BackendFuture<SessionView>;
    /// The list of workers.
    fn workers(&self, query: WorkersQuery) -> BackendFuture<WorkersPage>;
    /// The GPUs of the fleet.
    fn gpus(&self, query: GpusQuery) -> BackendFuture<GpusPage>;
    /// How the fleet stands, and what somebody should look at.
    fn overview(&self) -> BackendFuture<OverviewView>;
    /// The newest entries of the audit trail.
    fn latest_events(&self, limit: u32) -> BackendFuture<AuditPage>;
    /// One worker.
    fn worker(&self, id: WorkerId) -> BackendFuture<WorkerView>;
    /// The list of jobs.
    fn jobs(&self, query: JobsQuery) -> BackendFuture<JobsPage>;
    /// One job with its attempts.
    fn job(&self, id: JobId) -> BackendFuture<JobView>;
    /// What changes while a job trains; the log from `offset` on.
    fn job_live(&self, id: JobId, attempt: Option<AttemptNumber>, offset: Option<u64>) -> BackendFuture<JobLive>;
    /// A piece of a log, at most `limit` bytes from `offset`; from the end if `offset` is none.
    fn job_log(&self, id: JobId, attempt: AttemptNumber, offset: Option<u64>, limit: u32) -> BackendFuture<LogChunk>;
    /// Some lines of a log.
    fn job_log_lines(&self, id: JobId, query: LogLinesQuery) -> BackendFuture<LogLines>;
    /// Which lines of a slice of a log have something.
    fn job_log_search(&self, id: JobId, query: LogSearchQuery) -> BackendFuture<LogMatches>;
    /// What an attempt's trainer measured; that of the newest if none is named.
    fn job_metrics(&self, id: JobId, attempt: Option<AttemptNumber>) -> BackendFuture<JobMetrics>;
    /// How a job's GPUs did.
    fn job_gpus(&self, id: JobId) -> BackendFuture<GpuHistory>;
    /// How a worker's GPUs did.
    fn worker_gpus(&self, id: WorkerId, range: HistoryRange) -> BackendFuture<GpuHistory>;
    /// How all GPUs did together.
    fn fleet_gpus(&self, range: HistoryRange) -> BackendFuture<FleetHistory>;
    /// The files that a job made.
    fn job_artifacts(&self, id: JobId) -> BackendFuture<ArtifactsPage>;
    /// Why a job waits, worker by worker.
    fn job_explain(&self, id: JobId) -> BackendFuture<ExplanationView>;
    /// Workers, jobs and configurations by a few characters of them.
    fn search(&self, query: SearchQuery) -> BackendFuture<SearchPage>;
}

/// The handle that plain pages take from the context.
#[cfg(feature = "ssr")]
pub type SharedServerPageBackend = Arc<dyn ServerPageBackend>;

/// A submit that is being filled in.
#[cfg(feature = "ssr")]
pub struct SubmitDraft {
    /// What the form holds.
    pub fields: std::collections::BTreeMap<String, String>,
    /// What would become of it, or why it cannot be submitted.
    pub preview: Result<DraftPreview, Problem>,
    /// What others have changed since the reader ran the configuration last.
    pub unseen_change: Option<UnseenChange>,
    /// The revision that the retried job ran.
    pub retried_revision: Option<u32>,
    /// The revision to run, if the form names one.
    pub pinned_revision: Option<u32>,
}

/// A change of a configuration by somebody else.
#[cfg(feature = "ssr")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenChange {
    /// The revision that the reader ran last.
    pub last_run: u32,
    /// The newest revision.
    pub newest: u32,
    /// Who has changed it, if it is known.
    pub changed_by: Option<String>,
}

/// What would become of a submit.
#[cfg(feature = "ssr")]
pub struct DraftPreview {
    /// As the API says it (`dry_run`).
    pub preview: crate::protocol::jobs::submit::SubmitPreviewResponse,
    /// The same submit for a shell.
    pub commands: SubmitCommands,
}

/// A submit as commands for a shell.
#[cfg(feature = "ssr")]
pub struct SubmitCommands {
    /// By the command line's program.
    pub cli: String,
    /// By curl.
    pub curl: String,
}

/// What plain pages ask ([`super::Plain`]): only a server does.
#[cfg(feature = "ssr")]
pub trait ServerPageBackend: Send + Sync {
    /// The reader's API tokens.
    fn tokens(&self) -> BackendFuture<crate::protocol::access::TokensPage>;
    /// The browsers in which the reader is logged in.
    fn sessions(&self) -> BackendFuture<crate::protocol::access::SessionsPage>;
    /// The reader's second factors.
    fn factors(&self) -> BackendFuture<crate::protocol::access::factors::FactorsView>;
    /// What the reader's authenticator app is given, which is being set up.
    fn totp_enrollment(&self) -> BackendFuture<crate::protocol::access::factors::TotpEnrollment>;
    /// What the reader's browser is given to make a passkey of.
    fn passkey_enrollment(&self) -> BackendFuture<crate::protocol::access::factors::PasskeyEnrollment>;
    /// By what the reader can give their second factor besides the password; none who has none.
    fn second_factor_methods(&self) -> BackendFuture<Option<crate::domain::second_factor::AvailableFactors>>;
    /// What the reader should know of their account.
    fn notices(&self) -> BackendFuture<crate::protocol::access::notices::NoticesPage>;
    /// A worker that is to be changed or deleted.
    fn editable_worker(&self, id: WorkerId) -> BackendFuture<WorkerView>;
    /// Those of these workers that there are.
    fn workers_by_ids(&self, ids: Vec<WorkerId>) -> BackendFuture<Vec<WorkerView>>;
    /// Those of these jobs that the reader may see.
    fn jobs_by_ids(&self, ids: Vec<JobId>) -> BackendFuture<Vec<JobView>>;
    /// Everybody.
    fn users(&self, query: crate::protocol::access::UsersQuery) -> BackendFuture<crate::protocol::access::UsersPage>;
    /// Somebody, with their tokens and browsers.
    fn user(&self, id: crate::domain::ids::UserId) -> BackendFuture<crate::protocol::access::UserDetail>;
    /// The configurations that can be submitted.
    fn configs(&self) -> BackendFuture<crate::protocol::configs::ConfigsPage>;
    /// The attempts that were offered to a worker.
    fn worker_attempts(&self, id: WorkerId, query: PageQuery) -> BackendFuture<WorkerAttempts>;
    /// What happened with a worker.
    fn worker_events(&self, id: WorkerId, query: PageQuery) -> BackendFuture<WorkerEvents>;
    /// What happened to a job.
    fn job_events(&self, id: JobId) -> BackendFuture<crate::protocol::audit::JobEvents>;
    /// The configuration that a job was submitted with.
    fn job_config(&self, id: JobId) -> BackendFuture<crate::protocol::configs::ConfigDetail>;
    /// One revision of a configuration, or the newest, with its files.
    fn config(&self, name: String, revision: Option<u32>) -> BackendFuture<crate::protocol::configs::ConfigDetail>;
    /// The newest revision of a configuration that is to be edited; without a name, only whether a new one can be made.
    fn editable_config(&self, name: Option<String>) -> BackendFuture<Option<crate::protocol::configs::ConfigDetail>>;
    /// The revisions of a configuration.
    fn revisions(&self, name: String) -> BackendFuture<crate::protocol::configs::RevisionsPage>;
    /// The labels that workers have, for the form of a new worker.
    fn labels_for_worker_form(&self) -> BackendFuture<crate::protocol::workers::FleetLabels>;
    /// The labels that workers have.
    fn fleet_labels(&self) -> BackendFuture<crate::protocol::workers::FleetLabels>;
    /// The submit that a query string asks for, or that was `typed` and refused.
    fn draft(
        &self,
        query: String,
        typed: Option<std::collections::BTreeMap<String, String>>,
    ) -> BackendFuture<SubmitDraft>;
    /// What is kept of the reader's secrets, and of those that everybody's jobs are given.
    fn secrets(&self) -> BackendFuture<crate::protocol::secrets::SecretsPage>;
    /// What the fleet was used for, or of it the reader's own part.
    fn usage(&self, query: crate::protocol::usage::UsageQuery) -> BackendFuture<crate::protocol::usage::UsageReport>;
    /// A page of the audit trail.
    fn audit(&self, query: crate::protocol::audit::AuditQuery) -> BackendFuture<AuditPage>;
    /// Whether the audit trail is as it was written.
    fn verify_audit(&self) -> BackendFuture<crate::protocol::audit::AuditVerification>;
    /// How the server is set up, and how it does.
    fn system(&self) -> BackendFuture<crate::protocol::system::SystemView>;
}
