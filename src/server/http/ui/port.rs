//! The dashboard's questions, answered in process while a page is rendered on the server.

use std::future::Future;
use std::sync::Arc;

use app::domain::ids::{Attempt, JobId, WorkerId};
use app::protocol::access::SessionView;
use app::protocol::configs::ConfigsPage;
use app::protocol::queue::{ArtifactsPage, JobView, JobsPage, JobsQuery, LogChunk, ProgressSeries};
use app::protocol::workers::{WorkerView, WorkersPage, WorkersQuery};
use app::ui::port::{Answer, Port};

use crate::http::problem::ApiError;
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::state::App;

/// Asks the use cases.
pub struct ServerPort {
    app: App,
    session: SessionView,
}

impl ServerPort {
    /// For one reader.
    pub fn new(app: App, session: SessionView) -> Self {
        Self { app, session }
    }

    fn ask<T, F>(&self, question: impl FnOnce(Arc<Core>) -> F + Send + 'static) -> Answer<T>
    where
        F: Future<Output = Result<T, Refusal>> + Send,
    {
        let core = self.app.core.clone();
        Box::pin(async move { question(core).await.map_err(|refusal| ApiError::from(refusal).problem()) })
    }
}

impl Port for ServerPort {
    fn session(&self) -> Answer<SessionView> {
        let session = self.session.clone();
        Box::pin(async move { Ok(session) })
    }

    fn workers(&self, query: WorkersQuery) -> Answer<WorkersPage> {
        self.ask(|core| async move { core.workers_page(&query).await })
    }

    fn worker(&self, id: WorkerId) -> Answer<WorkerView> {
        self.ask(|core| async move { core.worker_page(&id).await })
    }

    fn jobs(&self, query: JobsQuery) -> Answer<JobsPage> {
        self.ask(|core| async move { core.jobs_page(&query).await })
    }

    fn job(&self, id: JobId) -> Answer<JobView> {
        self.ask(|core| async move { core.job_detail(&id).await })
    }

    fn job_log(&self, id: JobId, attempt: Attempt, offset: Option<u64>, limit: u32) -> Answer<LogChunk> {
        self.ask(move |core| async move { core.read_log(&id, Some(attempt), offset, limit).await })
    }

    fn job_progress(&self, id: JobId) -> Answer<ProgressSeries> {
        self.ask(|core| async move { core.progress_series(&id).await })
    }

    fn job_artifacts(&self, id: JobId) -> Answer<ArtifactsPage> {
        self.ask(|core| async move { core.artifacts_page(&id).await })
    }

    fn configs(&self) -> Answer<ConfigsPage> {
        self.ask(|core| async move { core.configs().await })
    }
}
