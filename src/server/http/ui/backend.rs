//! [`Backend`] and [`ServerPageBackend`](app::ui::backend::ServerPageBackend) in process, for rendering on the server.

mod server_pages;

use std::future::Future;
use std::sync::Arc;

use app::domain::access::Permission;
use app::domain::ids::{AttemptNumber, JobId, WorkerId};
use app::protocol::access::SessionView;
use app::protocol::artifacts::ArtifactsPage;
use app::protocol::audit::{AuditPage, AuditQuery};
use app::protocol::gpus::history::{FleetHistory, GpuHistory, HistoryRange, JobMetrics};
use app::protocol::gpus::{GpusPage, GpusQuery};
use app::protocol::jobs::compare::{CompareJobsQuery, JobComparison};
use app::protocol::jobs::explain::ExplanationView;
use app::protocol::jobs::saved_views::SavedViews;
use app::protocol::jobs::{
    JobCompletions, JobCompletionsQuery, JobGroupsPage, JobLive, JobView, JobsPage, JobsQuery, LogChunk, SeriesQuery,
};
use app::protocol::logs::{LogLines, LogLinesQuery, LogMatches, LogSearchQuery};
use app::protocol::overview::OverviewView;
use app::protocol::problem::Problem;
use app::protocol::search::{SearchPage, SearchQuery};
use app::protocol::workers::{WorkerView, WorkersPage, WorkersQuery};
use app::ui::backend::{Backend, BackendFuture};
use app::ui::page_problem::word_for_page;
use app::ui::prefs::{Locale, Prefs};
use app::ui::time_zone::TimeZone;

use crate::http::problem::ApiError;
use crate::http::request_context::current_id;
use crate::http::search::SEARCH_PERMISSIONS;
use crate::http::state::AppState;
use crate::service::Services;
use crate::service::access::{Principal, Requirement};
use crate::service::error::ServiceError;

const FLEET: Requirement = Requirement::Permission(Permission::FleetView);
const WORKERS: Requirement = Requirement::Permission(Permission::AdminWorkers);
const AUDIT: Requirement = Requirement::Permission(Permission::AdminAudit);

/// Reads through the use cases.
pub struct InProcessBackend {
    app: AppState,
    principal: Principal,
    session: SessionView,
    locale: Locale,
    zone: Option<TimeZone>,
    request_id: Option<String>,
}

impl InProcessBackend {
    /// Creates the backend for one user and one page. It stores what it needs, because
    /// its reads can run in other tasks.
    pub fn new(app: AppState, principal: Principal, session: SessionView, prefs: &Prefs) -> Self {
        let zone = prefs.time_zone.as_deref().and_then(TimeZone::from_name);
        Self { app, principal, session, locale: prefs.locale, zone, request_id: current_id() }
    }

    /// Runs a use case if the user is authorized for it, by the same rules as the API.
    fn query<T, F>(
        &self,
        requirement: Requirement,
        job: Option<JobId>,
        read: impl FnOnce(Arc<Services>, Principal) -> F + Send + 'static,
    ) -> BackendFuture<T>
    where
        F: Future<Output = Result<T, ServiceError>> + Send,
    {
        let (services, principal, locale) = (self.app.services.clone(), self.principal.clone(), self.locale);
        let request_id = self.request_id.clone();
        Box::pin(async move {
            let result = async {
                services.access.authorize(&principal, requirement, job.as_ref()).await?;
                read(services, principal).await
            };
            result.await.map_err(|error| {
                let problem = ApiError::from(error).to_problem(locale);
                word_for_page(Problem { request_id: problem.request_id.or(request_id), ..problem }, locale)
            })
        })
    }
}

impl Backend for InProcessBackend {
    fn session(&self) -> BackendFuture<SessionView> {
        let session = self.session.clone();
        Box::pin(async move { Ok(session) })
    }

    fn workers(&self, query: WorkersQuery) -> BackendFuture<WorkersPage> {
        self.query(
            FLEET,
            None,
            |services, principal| async move { services.workers.workers_page(&principal, &query).await },
        )
    }

    fn gpus(&self, query: GpusQuery) -> BackendFuture<GpusPage> {
        self.query(FLEET, None, |services, principal| async move { services.gpus.gpus_page(&principal, &query).await })
    }

    fn overview(&self) -> BackendFuture<OverviewView> {
        self.query(WORKERS, None, |services, principal| async move { services.system.overview(&principal).await })
    }

    fn latest_events(&self, limit: u32) -> BackendFuture<AuditPage> {
        let query = AuditQuery { limit: Some(limit), ..AuditQuery::default() };
        self.query(AUDIT, None, |services, _| async move { services.audit.audit_page(&query).await })
    }

    fn worker(&self, id: WorkerId) -> BackendFuture<WorkerView> {
        self.query(FLEET, None, |services, principal| async move { services.workers.worker_for(&principal, &id).await })
    }

    fn jobs(&self, query: JobsQuery) -> BackendFuture<JobsPage> {
        self.query(Requirement::SeeJobs, None, |services, principal| async move {
            services.jobs.jobs_page(&principal, &query).await
        })
    }

    fn job_groups(&self, query: JobsQuery) -> BackendFuture<JobGroupsPage> {
        self.query(Requirement::SeeJobs, None, |services, principal| async move {
            services.jobs.job_groups(&principal, &query).await
        })
    }

    fn saved_views(&self) -> BackendFuture<SavedViews> {
        self.query(Requirement::SeeJobs, None, |services, principal| async move {
            services.jobs.saved_views(&principal).await
        })
    }

    fn complete_job_search(&self, query: JobCompletionsQuery) -> BackendFuture<JobCompletions> {
        self.query(Requirement::SeeJobs, None, |services, principal| async move {
            services.jobs.complete_search(&principal, query.q).await
        })
    }

    fn compare_jobs(&self, query: CompareJobsQuery) -> BackendFuture<JobComparison> {
        self.query(Requirement::SeeJobs, None, |services, principal| async move {
            services.jobs.compare_jobs(&principal, &query).await
        })
    }

    fn job(&self, id: JobId) -> BackendFuture<JobView> {
        self.query(Requirement::SeeJob, Some(id.clone()), |services, principal| async move {
            services.jobs.job_detail(&principal, &id).await
        })
    }

    fn job_live(&self, id: JobId, attempt: Option<AttemptNumber>, offset: Option<u64>) -> BackendFuture<JobLive> {
        self.query(Requirement::SeeJob, Some(id.clone()), move |services, _| async move {
            services.job_live(&id, attempt, offset).await
        })
    }

    fn job_log(&self, id: JobId, attempt: AttemptNumber, offset: Option<u64>, limit: u32) -> BackendFuture<LogChunk> {
        self.query(Requirement::SeeJob, Some(id.clone()), move |services, _| async move {
            services.logs.read_log(&id, Some(attempt), offset, limit).await
        })
    }

    fn job_log_lines(&self, id: JobId, query: LogLinesQuery) -> BackendFuture<LogLines> {
        self.query(Requirement::SeeJob, Some(id.clone()), move |services, principal| async move {
            services.logs.log_lines(&principal.name, &id, query).await
        })
    }

    fn job_log_search(&self, id: JobId, query: LogSearchQuery) -> BackendFuture<LogMatches> {
        self.query(Requirement::SeeJob, Some(id.clone()), move |services, principal| async move {
            services.logs.search_log(&principal.name, &id, query).await
        })
    }

    fn job_metrics(&self, id: JobId, query: SeriesQuery) -> BackendFuture<JobMetrics> {
        self.query(Requirement::SeeJob, Some(id.clone()), move |services, _| async move {
            services.jobs.job_metrics(&id, query).await
        })
    }

    fn job_gpus(&self, id: JobId) -> BackendFuture<GpuHistory> {
        self.query(
            Requirement::SeeJob,
            Some(id.clone()),
            |services, _| async move { services.gpus.job_history(&id).await },
        )
    }

    fn worker_gpus(&self, id: WorkerId, range: HistoryRange) -> BackendFuture<GpuHistory> {
        self.query(FLEET, None, move |services, _| async move { services.gpus.worker_history(&id, range).await })
    }

    fn fleet_gpus(&self, range: HistoryRange) -> BackendFuture<FleetHistory> {
        self.query(FLEET, None, move |services, _| async move { Ok(services.gpus.fleet_history(range)) })
    }

    fn job_artifacts(&self, id: JobId) -> BackendFuture<ArtifactsPage> {
        self.query(Requirement::SeeJob, Some(id.clone()), |services, _| async move {
            services.jobs.artifacts_page(&id).await
        })
    }

    fn job_explain(&self, id: JobId) -> BackendFuture<ExplanationView> {
        self.query(Requirement::SeeJob, Some(id.clone()), |services, _| async move { services.jobs.explain(&id).await })
    }

    fn search(&self, query: SearchQuery) -> BackendFuture<SearchPage> {
        self.query(Requirement::AnyOf(SEARCH_PERMISSIONS), None, |services, principal| async move {
            services.search.search(&principal, &query).await
        })
    }
}
