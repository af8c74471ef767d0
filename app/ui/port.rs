//! What the dashboard asks of a server, and nothing more.
//!
//! While a page is rendered on the server, the use cases implement it in process; in the browser
//! [`super::client`] implements it over the public REST API. So a page never knows where it runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::domain::ids::{Attempt, JobId, WorkerId};
use crate::protocol::access::SessionView;
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::audit::AuditPage;
use crate::protocol::explain::ExplanationView;
use crate::protocol::gpus::{GpusPage, GpusQuery};
use crate::protocol::history::{FleetHistory, GpuHistory, JobMetrics, Range};
use crate::protocol::logs::{LogLines, LogLinesQuery, LogMatches, LogSearchQuery};
use crate::protocol::overview::OverviewView;
use crate::protocol::problem::Problem;
use crate::protocol::queue::{JobView, JobsPage, JobsQuery, LogChunk};
use crate::protocol::search::{SearchPage, SearchQuery};
#[cfg(feature = "ssr")]
use crate::protocol::worker_history::{PartQuery, WorkerAttempts, WorkerEvents};
use crate::protocol::workers::{WorkerView, WorkersPage, WorkersQuery};

/// An answer that is on its way.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>>;

/// The shared handle that pages take from the context.
pub type SharedPort = Arc<dyn Port>;

/// Questions; writes go through forms to `/ui/…` (see `CONTRIBUTING.md`, "A page").
pub trait Port: Send + Sync {
    /// Who is asking, and under which address.
    fn session(&self) -> Answer<SessionView>;
    /// The list of workers.
    fn workers(&self, query: WorkersQuery) -> Answer<WorkersPage>;
    /// The GPUs of the fleet.
    fn gpus(&self, query: GpusQuery) -> Answer<GpusPage>;
    /// How the fleet stands, and what somebody should look at.
    fn overview(&self) -> Answer<OverviewView>;
    /// The newest entries of the audit trail.
    fn latest_events(&self, limit: u32) -> Answer<AuditPage>;
    /// One worker.
    fn worker(&self, id: WorkerId) -> Answer<WorkerView>;
    /// The list of jobs.
    fn jobs(&self, query: JobsQuery) -> Answer<JobsPage>;
    /// One job with its attempts.
    fn job(&self, id: JobId) -> Answer<JobView>;
    /// A piece of a log, at most `limit` bytes from `offset`; from the end if `offset` is none.
    fn job_log(&self, id: JobId, attempt: Attempt, offset: Option<u64>, limit: u32) -> Answer<LogChunk>;
    /// Some lines of a log.
    fn job_log_lines(&self, id: JobId, query: LogLinesQuery) -> Answer<LogLines>;
    /// Which lines of a slice of a log have something.
    fn job_log_search(&self, id: JobId, query: LogSearchQuery) -> Answer<LogMatches>;
    /// What an attempt's trainer measured; that of the newest if none is named.
    fn job_metrics(&self, id: JobId, attempt: Option<Attempt>) -> Answer<JobMetrics>;
    /// How a job's GPUs did.
    fn job_gpus(&self, id: JobId) -> Answer<GpuHistory>;
    /// How a worker's GPUs did.
    fn worker_gpus(&self, id: WorkerId, range: Range) -> Answer<GpuHistory>;
    /// How all GPUs did together.
    fn fleet_gpus(&self, range: Range) -> Answer<FleetHistory>;
    /// The files that a job made.
    fn job_artifacts(&self, id: JobId) -> Answer<ArtifactsPage>;
    /// Why a job waits, worker by worker.
    fn job_explain(&self, id: JobId) -> Answer<ExplanationView>;
    /// Workers, jobs and configurations by a few characters of them.
    fn search(&self, query: SearchQuery) -> Answer<SearchPage>;
}

/// The handle that plain pages take from the context.
#[cfg(feature = "ssr")]
pub type SharedDesk = Arc<dyn Desk>;

/// A submit that is being filled in.
#[cfg(feature = "ssr")]
pub struct Draft {
    /// What the form holds.
    pub fields: std::collections::BTreeMap<String, String>,
    /// What would become of it, or why it cannot be submitted.
    pub outcome: Result<Drafted, Problem>,
    /// What others have changed since the reader ran the configuration last.
    pub unseen: Option<Unseen>,
    /// The revision that the retried job ran.
    pub ran: Option<u32>,
    /// The revision to run, if the form names one.
    pub pinned: Option<u32>,
}

/// A change of a configuration by somebody else.
#[cfg(feature = "ssr")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    /// The revision that the reader ran last.
    pub last_run: u32,
    /// The newest revision.
    pub newest: u32,
    /// Who has changed it, if it is known.
    pub changed_by: Option<String>,
}

/// What would become of a submit.
#[cfg(feature = "ssr")]
pub struct Drafted {
    /// As the API says it (`dry_run`).
    pub preview: crate::protocol::submit::Previewed,
    /// The same submit for a shell.
    pub commands: Commands,
}

/// A submit as commands for a shell.
#[cfg(feature = "ssr")]
pub struct Commands {
    /// By the command line's program.
    pub cli: String,
    /// By curl.
    pub curl: String,
}

/// What plain pages ask ([`super::Plain`]): only a server does.
#[cfg(feature = "ssr")]
pub trait Desk: Send + Sync {
    /// The reader's API tokens.
    fn tokens(&self) -> Answer<crate::protocol::access::TokensPage>;
    /// The browsers in which the reader is logged in.
    fn sessions(&self) -> Answer<crate::protocol::access::SessionsPage>;
    /// The reader's second factors.
    fn factors(&self) -> Answer<crate::protocol::factors::FactorsView>;
    /// What the reader's authenticator app is given, which is being set up.
    fn totp_enrolment(&self) -> Answer<crate::protocol::factors::TotpEnrolment>;
    /// What the reader's browser is given to make a passkey of.
    fn passkey_enrolment(&self) -> Answer<crate::protocol::factors::PasskeyEnrolment>;
    /// By what the reader can give their second factor besides the password; none who has none.
    fn ways_to_prove(&self) -> Answer<Option<crate::domain::factor::Ways>>;
    /// What the reader should know of their account.
    fn notices(&self) -> Answer<crate::protocol::notices::NoticesPage>;
    /// Those of these workers that there are.
    fn workers_named(&self, ids: Vec<WorkerId>) -> Answer<Vec<WorkerView>>;
    /// Those of these jobs that the reader may see.
    fn jobs_named(&self, ids: Vec<JobId>) -> Answer<Vec<JobView>>;
    /// Everybody.
    fn people(&self, query: crate::protocol::access::UsersQuery) -> Answer<crate::protocol::access::UsersPage>;
    /// Somebody, with their tokens and browsers.
    fn person(&self, id: crate::domain::ids::UserId) -> Answer<crate::protocol::access::UserDetail>;
    /// The configurations that can be submitted.
    fn configs(&self) -> Answer<crate::protocol::configs::ConfigsPage>;
    /// The attempts that were offered to a worker.
    fn worker_attempts(&self, id: WorkerId, query: PartQuery) -> Answer<WorkerAttempts>;
    /// What happened with a worker.
    fn worker_events(&self, id: WorkerId, query: PartQuery) -> Answer<WorkerEvents>;
    /// What happened to a job.
    fn job_events(&self, id: JobId) -> Answer<crate::protocol::audit::JobEvents>;
    /// The configuration that a job was submitted with.
    fn job_config(&self, id: JobId) -> Answer<crate::protocol::configs::ConfigDetail>;
    /// One revision of a configuration, or the newest, with its files.
    fn config(&self, name: String, revision: Option<u32>) -> Answer<crate::protocol::configs::ConfigDetail>;
    /// The newest revision of a configuration that is to be edited; without a name, only whether a new one can be made.
    fn config_to_edit(&self, name: Option<String>) -> Answer<Option<crate::protocol::configs::ConfigDetail>>;
    /// The revisions of a configuration.
    fn revisions(&self, name: String) -> Answer<crate::protocol::configs::RevisionsPage>;
    /// The labels that workers have.
    fn fleet_labels(&self) -> Answer<crate::protocol::workers::FleetLabels>;
    /// The submit that a query string asks for, or that was `typed` and refused.
    fn draft(&self, query: String, typed: Option<std::collections::BTreeMap<String, String>>) -> Answer<Draft>;
    /// What is kept of the reader's secrets, and of those that everybody's jobs are given.
    fn secrets(&self) -> Answer<crate::protocol::secrets::SecretsPage>;
    /// What the fleet was used for, or of it the reader's own part.
    fn usage(&self, query: crate::protocol::usage::UsageQuery) -> Answer<crate::protocol::usage::UsageReport>;
    /// A page of the audit trail.
    fn audit(&self, query: crate::protocol::audit::AuditQuery) -> Answer<AuditPage>;
    /// Whether the audit trail is as it was written.
    fn verify_audit(&self) -> Answer<crate::protocol::audit::AuditVerdict>;
    /// How the server is set up, and how it does.
    fn system(&self) -> Answer<crate::protocol::system::SystemView>;
}
