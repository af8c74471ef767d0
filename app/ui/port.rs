//! What the dashboard asks of a server, and nothing more.
//!
//! While a page is rendered on the server, the use cases implement it in process; in the browser
//! [`super::client`] implements it over the public REST API. So a page never knows where it runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::domain::ids::{Attempt, JobId, WorkerId};
use crate::protocol::access::SessionView;
use crate::protocol::problem::Problem;
use crate::protocol::queue::{ArtifactsPage, JobView, JobsPage, JobsQuery, LogChunk, ProgressSeries};
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
    /// One worker.
    fn worker(&self, id: WorkerId) -> Answer<WorkerView>;
    /// The list of jobs.
    fn jobs(&self, query: JobsQuery) -> Answer<JobsPage>;
    /// One job with its attempts.
    fn job(&self, id: JobId) -> Answer<JobView>;
    /// A piece of a log, at most `limit` bytes from `offset`; from the end if `offset` is none.
    fn job_log(&self, id: JobId, attempt: Attempt, offset: Option<u64>, limit: u32) -> Answer<LogChunk>;
    /// The points of the newest attempt.
    fn job_progress(&self, id: JobId) -> Answer<ProgressSeries>;
    /// The files that a job made.
    fn job_artifacts(&self, id: JobId) -> Answer<ArtifactsPage>;
}

/// The handle that plain pages take from the context.
#[cfg(feature = "ssr")]
pub type SharedDesk = Arc<dyn Desk>;

/// What plain pages ask ([`super::Plain`]): only a server does.
#[cfg(feature = "ssr")]
pub trait Desk: Send + Sync {
    /// The reader's API tokens.
    fn tokens(&self) -> Answer<crate::protocol::access::TokensPage>;
    /// The browsers in which the reader is logged in.
    fn sessions(&self) -> Answer<crate::protocol::access::SessionsPage>;
    /// Everybody.
    fn people(&self) -> Answer<crate::protocol::access::UsersPage>;
    /// Somebody, with their tokens and browsers.
    fn person(&self, id: crate::domain::ids::UserId) -> Answer<crate::protocol::access::UserDetail>;
    /// The configurations that can be submitted.
    fn configs(&self) -> Answer<crate::protocol::configs::ConfigsPage>;
    /// What is kept of the reader's secrets, and of those that everybody's jobs are given.
    fn secrets(&self) -> Answer<crate::protocol::secrets::SecretsPage>;
}
