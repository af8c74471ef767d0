//! The data that the dashboard requests from a server.
//!
//! During server rendering the use cases implement it in process; in the browser, `HttpBackend` implements it over the
//! public REST API. Pages do not know where they run.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use leptos::prelude::expect_context;

use crate::domain::ids::{AttemptNumber, JobId, WorkerId};
use crate::protocol::access::SessionView;
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::audit::AuditPage;
use crate::protocol::gpus::history::{FleetHistory, GpuHistory, HistoryRange, JobMetrics};
use crate::protocol::gpus::{GpusPage, GpusQuery};
use crate::protocol::jobs::compare::{CompareJobsQuery, JobComparison};
use crate::protocol::jobs::explain::ExplanationView;
use crate::protocol::jobs::saved_views::SavedViews;
use crate::protocol::jobs::{
    JobCompletions, JobCompletionsQuery, JobGroupsPage, JobLive, JobView, JobsPage, JobsQuery, LogChunk, SeriesQuery,
};
use crate::protocol::logs::{LogLines, LogLinesQuery, LogMatches, LogSearchQuery};
use crate::protocol::overview::OverviewView;
use crate::protocol::problem::Problem;
use crate::protocol::search::{SearchPage, SearchQuery};
#[cfg(feature = "ssr")]
use crate::protocol::workers::history::{PageQuery, WorkerAttempts, WorkerEvents};
use crate::protocol::workers::{WorkerView, WorkersPage, WorkersQuery};

/// A pending response.
pub type BackendFuture<T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>>;

/// The shared backend that pages take from their context.
pub type SharedBackend = Arc<dyn Backend>;

/// The backend of all pages. Its context exists on every page, but not while routes are listed.
pub(crate) fn use_backend() -> SharedBackend {
    expect_context::<SharedBackend>()
}

/// Read access for pages; writes are forms that post to `/ui/…` (see `CONTRIBUTING.md`, "A page").
pub trait Backend: Send + Sync {
    /// Returns the current user, their session and the address of the server.
    fn session(&self) -> BackendFuture<SessionView>;
    /// Returns a page of the list of workers.
    fn workers(&self, query: WorkersQuery) -> BackendFuture<WorkersPage>;
    /// Returns the GPUs of the fleet.
    fn gpus(&self, query: GpusQuery) -> BackendFuture<GpusPage>;
    /// Returns the state of the fleet and its alerts.
    fn overview(&self) -> BackendFuture<OverviewView>;
    /// Returns the newest entries of the audit log.
    fn latest_events(&self, limit: u32) -> BackendFuture<AuditPage>;
    /// Returns one worker.
    fn worker(&self, id: WorkerId) -> BackendFuture<WorkerView>;
    /// Returns a page of the list of jobs.
    fn jobs(&self, query: JobsQuery) -> BackendFuture<JobsPage>;
    /// Completes a search for jobs.
    fn complete_job_search(&self, query: JobCompletionsQuery) -> BackendFuture<JobCompletions>;
    /// Groups the jobs of a list.
    fn job_groups(&self, query: JobsQuery) -> BackendFuture<JobGroupsPage>;
    /// Returns the user's saved views of the list of jobs, and the shared ones.
    fn saved_views(&self) -> BackendFuture<SavedViews>;
    /// Compares several jobs.
    fn compare_jobs(&self, query: CompareJobsQuery) -> BackendFuture<JobComparison>;
    /// Returns one job with its attempts.
    fn job(&self, id: JobId) -> BackendFuture<JobView>;
    /// Returns what changes while a job trains, with its log from `offset`.
    fn job_live(&self, id: JobId, attempt: Option<AttemptNumber>, offset: Option<u64>) -> BackendFuture<JobLive>;
    /// Returns at most `limit` bytes of a log from `offset`, or its end if `offset` is `None`.
    fn job_log(&self, id: JobId, attempt: AttemptNumber, offset: Option<u64>, limit: u32) -> BackendFuture<LogChunk>;
    /// Returns some lines of a log.
    fn job_log_lines(&self, id: JobId, query: LogLinesQuery) -> BackendFuture<LogLines>;
    /// Returns the lines in a range of a log that match a search.
    fn job_log_search(&self, id: JobId, query: LogSearchQuery) -> BackendFuture<LogMatches>;
    /// Returns the metrics of an attempt, or of the newest one if `attempt` is `None`.
    fn job_metrics(&self, id: JobId, query: SeriesQuery) -> BackendFuture<JobMetrics>;
    /// Returns the history of the GPUs of a job.
    fn job_gpus(&self, id: JobId) -> BackendFuture<GpuHistory>;
    /// Returns the history of the GPUs of a worker.
    fn worker_gpus(&self, id: WorkerId, range: HistoryRange) -> BackendFuture<GpuHistory>;
    /// Returns the aggregated history of all GPUs.
    fn fleet_gpus(&self, range: HistoryRange) -> BackendFuture<FleetHistory>;
    /// Returns the artifacts of a job.
    fn job_artifacts(&self, id: JobId) -> BackendFuture<ArtifactsPage>;
    /// Explains for each worker why a job is pending.
    fn job_explain(&self, id: JobId) -> BackendFuture<ExplanationView>;
    /// Searches workers, jobs and configurations by part of their names or IDs.
    fn search(&self, query: SearchQuery) -> BackendFuture<SearchPage>;
}

/// The shared backend that server-rendered pages take from their context.
#[cfg(feature = "ssr")]
pub type SharedServerPageBackend = Arc<dyn ServerPageBackend>;

/// The backend of pages that are rendered on the server only.
#[cfg(feature = "ssr")]
pub(crate) fn use_page_backend() -> SharedServerPageBackend {
    expect_context::<SharedServerPageBackend>()
}

/// A submit form that the user is filling in.
#[cfg(feature = "ssr")]
pub struct SubmitDraft {
    /// The values of the form.
    pub fields: std::collections::BTreeMap<String, String>,
    /// The preview of the submit, or why it is invalid.
    pub preview: Result<DraftPreview, Problem>,
    /// The change that another user has made since the user last ran this configuration.
    pub unseen_change: Option<UnseenChange>,
    /// The revision that the retried job ran.
    pub retried_revision: Option<u32>,
    /// The revision that the form requests, if any.
    pub pinned_revision: Option<u32>,
}

/// A change of a configuration by another user.
#[cfg(feature = "ssr")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenChange {
    /// The revision that the user last ran.
    pub last_run: u32,
    /// The newest revision.
    pub newest: u32,
    /// The user who changed it, if known.
    pub changed_by: Option<String>,
}

/// The preview of a submit.
#[cfg(feature = "ssr")]
pub struct DraftPreview {
    /// The API's response to `dry_run`.
    pub preview: crate::protocol::jobs::submit::SubmitPreviewResponse,
    /// The same submit as commands for a shell.
    pub commands: SubmitCommands,
}

/// A submit as commands for a shell.
#[cfg(feature = "ssr")]
pub struct SubmitCommands {
    /// The command of the command-line client.
    pub cli: String,
    /// The `curl` command.
    pub curl: String,
}

/// Read access for server-rendered pages ([`super::ServerRenderedApp`]); only the server implements it.
#[cfg(feature = "ssr")]
pub trait ServerPageBackend: Send + Sync {
    /// Returns the user's API tokens.
    fn tokens(&self) -> BackendFuture<crate::protocol::access::TokensPage>;
    /// Returns the browser sessions of the user.
    fn sessions(&self) -> BackendFuture<crate::protocol::access::SessionsPage>;
    /// Returns the user's second factors.
    fn factors(&self) -> BackendFuture<crate::protocol::access::factors::FactorsView>;
    /// Returns the secret for the authenticator app that the user is setting up.
    fn totp_enrollment(&self) -> BackendFuture<crate::protocol::access::factors::TotpEnrollment>;
    /// Returns the options with which the user's browser creates a passkey.
    fn passkey_enrollment(&self) -> BackendFuture<crate::protocol::access::factors::PasskeyEnrollment>;
    /// Returns the second factors with which the user can confirm a request, or `None` if they have none.
    fn second_factor_methods(&self) -> BackendFuture<Option<crate::domain::second_factor::AvailableFactors>>;
    /// Returns the security notices of the user's account.
    fn notices(&self) -> BackendFuture<crate::protocol::access::notices::NoticesPage>;
    /// Returns a worker for the form that changes or deletes it.
    fn editable_worker(&self, id: WorkerId) -> BackendFuture<WorkerView>;
    /// Returns those of these workers that exist.
    fn workers_by_ids(&self, ids: Vec<WorkerId>) -> BackendFuture<Vec<WorkerView>>;
    /// Returns those of these jobs that the user may view.
    fn jobs_by_ids(&self, ids: Vec<JobId>) -> BackendFuture<Vec<JobView>>;
    /// Searches the logs of jobs.
    fn search_job_logs(
        &self,
        query: crate::protocol::jobs::log_search::JobLogsQuery,
    ) -> BackendFuture<crate::protocol::jobs::log_search::JobLogsPage>;
    /// Returns a page of the list of users.
    fn users(&self, query: crate::protocol::access::UsersQuery) -> BackendFuture<crate::protocol::access::UsersPage>;
    /// Returns a user with their tokens and browser sessions.
    fn user(&self, id: crate::domain::ids::UserId) -> BackendFuture<crate::protocol::access::UserDetail>;
    /// Returns the columns that a list of jobs can show.
    fn sample_votes(&self, ids: String) -> BackendFuture<crate::protocol::jobs::votes::SampleVotes>;
    /// `GET /api/queue/columns`
    fn job_columns(&self) -> BackendFuture<crate::protocol::jobs::JobColumns>;
    /// Returns the configurations that can be submitted.
    fn configs(&self) -> BackendFuture<crate::protocol::configs::ConfigsPage>;
    /// Returns the attempts that were offered to a worker.
    fn worker_attempts(&self, id: WorkerId, query: PageQuery) -> BackendFuture<WorkerAttempts>;
    /// Returns the events of a worker.
    fn worker_events(&self, id: WorkerId, query: PageQuery) -> BackendFuture<WorkerEvents>;
    /// Returns the events of a job.
    fn job_events(&self, id: JobId) -> BackendFuture<crate::protocol::audit::JobEvents>;
    /// Returns the configuration with which a job was submitted.
    fn job_config(&self, id: JobId) -> BackendFuture<crate::protocol::configs::ConfigDetail>;
    /// Returns a revision of a configuration with its files, or the newest one.
    fn config(&self, name: String, revision: Option<u32>) -> BackendFuture<crate::protocol::configs::ConfigDetail>;
    /// Returns the newest revision of a configuration for the form that edits it; without a name, only
    /// checks that the user may create one.
    fn editable_config(&self, name: Option<String>) -> BackendFuture<Option<crate::protocol::configs::ConfigDetail>>;
    /// Returns the revisions of a configuration.
    fn revisions(&self, name: String) -> BackendFuture<crate::protocol::configs::RevisionsPage>;
    /// Returns the labels of all workers, for the form of a new worker.
    fn labels_for_worker_form(&self) -> BackendFuture<crate::protocol::workers::FleetLabels>;
    /// Returns the labels of all workers, for the submit form.
    fn fleet_labels(&self) -> BackendFuture<crate::protocol::workers::FleetLabels>;
    /// Returns the submit that a query string describes, or the rejected one with the values that the user has `typed`.
    fn draft(
        &self,
        query: String,
        typed: Option<std::collections::BTreeMap<String, String>>,
    ) -> BackendFuture<SubmitDraft>;
    /// Describes the user's secrets and the shared secrets, without their values.
    fn secrets(&self) -> BackendFuture<crate::protocol::secrets::SecretsPage>;
    /// Returns what teams and their members use.
    fn shares(&self) -> BackendFuture<crate::protocol::shares::SharesView>;
    /// Returns a team for its admins.
    fn team(&self, name: String) -> BackendFuture<crate::protocol::shares::TeamView>;
    /// Returns the usage of the fleet, or only the user's own without permission for more.
    fn usage(&self, query: crate::protocol::usage::UsageQuery) -> BackendFuture<crate::protocol::usage::UsageReport>;
    /// Returns a page of the audit log.
    fn audit(&self, query: crate::protocol::audit::AuditQuery) -> BackendFuture<AuditPage>;
    /// Verifies the audit log.
    fn verify_audit(&self) -> BackendFuture<crate::protocol::audit::AuditVerification>;
    /// Returns the configuration and state of the server.
    fn system(&self) -> BackendFuture<crate::protocol::system::SystemView>;
}
