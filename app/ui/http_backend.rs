//! [`Backend`] in the browser, over the public REST API.

use gloo_net::http::{Method, RequestBuilder};
use send_wrapper::SendWrapper;
use serde::de::DeserializeOwned;

use super::backend::{Backend, BackendFuture};
use super::page_query::query_string;
use crate::domain::ids::{AttemptNumber, JobId, WorkerId};
use crate::protocol::access::SessionView;
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::audit::{AuditPage, AuditQuery};
use crate::protocol::gpus::history::{FleetHistory, GpuHistory, HistoryQuery, HistoryRange, JobMetrics};
use crate::protocol::gpus::{GpusPage, GpusQuery};
use crate::protocol::jobs::compare::{CompareJobsQuery, JobComparison};
use crate::protocol::jobs::explain::ExplanationView;
use crate::protocol::jobs::saved_views::SavedViews;
use crate::protocol::jobs::{
    JobCompletions, JobCompletionsQuery, JobGroupsPage, JobLive, JobLiveQuery, JobView, JobsPage, JobsQuery, LogChunk,
    SeriesQuery,
};
use crate::protocol::logs::{LogLines, LogLinesQuery, LogMatches, LogQuery, LogSearchQuery};
use crate::protocol::overview::OverviewView;
use crate::protocol::problem::Problem;
use crate::protocol::search::{SearchPage, SearchQuery};
use crate::protocol::workers::{WorkerView, WorkersPage, WorkersQuery};
use crate::ui::flash::FormResponse;

/// The backend at the origin of the page.
pub(crate) struct HttpBackend;

impl Backend for HttpBackend {
    fn session(&self) -> BackendFuture<SessionView> {
        get_json("/api/session".to_owned())
    }

    fn workers(&self, query: WorkersQuery) -> BackendFuture<WorkersPage> {
        get_json(format!("/api/admin/workers{}", query_string(&query)))
    }

    fn gpus(&self, query: GpusQuery) -> BackendFuture<GpusPage> {
        get_json(format!("/api/admin/gpus{}", query_string(&query)))
    }

    fn overview(&self) -> BackendFuture<OverviewView> {
        get_json("/api/overview".to_owned())
    }

    fn latest_events(&self, limit: u32) -> BackendFuture<AuditPage> {
        let query = AuditQuery { limit: Some(limit), ..AuditQuery::default() };
        get_json(format!("/api/audit{}", query_string(&query)))
    }

    fn worker(&self, id: WorkerId) -> BackendFuture<WorkerView> {
        get_json(format!("/api/admin/workers/{id}"))
    }

    fn jobs(&self, query: JobsQuery) -> BackendFuture<JobsPage> {
        get_json(format!("/api/queue{}", query_string(&query)))
    }

    fn job_groups(&self, query: JobsQuery) -> BackendFuture<JobGroupsPage> {
        get_json(format!("/api/queue/groups{}", query_string(&query)))
    }

    fn saved_views(&self) -> BackendFuture<SavedViews> {
        get_json("/api/queue/views".to_owned())
    }

    fn complete_job_search(&self, query: JobCompletionsQuery) -> BackendFuture<JobCompletions> {
        get_json(format!("/api/queue/completions{}", query_string(&query)))
    }

    fn compare_jobs(&self, query: CompareJobsQuery) -> BackendFuture<JobComparison> {
        get_json(format!("/api/queue/compare{}", query_string(&query)))
    }

    fn job(&self, id: JobId) -> BackendFuture<JobView> {
        get_json(format!("/api/queue/{id}"))
    }

    fn job_live(&self, id: JobId, attempt: Option<AttemptNumber>, offset: Option<u64>) -> BackendFuture<JobLive> {
        let query = JobLiveQuery { attempt: attempt.map(|attempt| attempt.0), offset };
        get_json(format!("/api/queue/{id}/live{}", query_string(&query)))
    }

    fn job_log(&self, id: JobId, attempt: AttemptNumber, offset: Option<u64>, limit: u32) -> BackendFuture<LogChunk> {
        let query = LogQuery { attempt: Some(attempt.0), offset, limit: Some(limit), ..LogQuery::default() };
        get_json(format!("/api/queue/{id}/logs{}", query_string(&query)))
    }

    fn job_log_lines(&self, id: JobId, query: LogLinesQuery) -> BackendFuture<LogLines> {
        get_json(format!("/api/queue/{id}/logs/lines{}", query_string(&query)))
    }

    fn job_log_search(&self, id: JobId, query: LogSearchQuery) -> BackendFuture<LogMatches> {
        get_json(format!("/api/queue/{id}/logs/search{}", query_string(&query)))
    }

    fn job_metrics(&self, id: JobId, query: SeriesQuery) -> BackendFuture<JobMetrics> {
        get_json(format!("/api/queue/{id}/metrics{}", query_string(&query)))
    }

    fn job_gpus(&self, id: JobId) -> BackendFuture<GpuHistory> {
        get_json(format!("/api/queue/{id}/gpus"))
    }

    fn worker_gpus(&self, id: WorkerId, range: HistoryRange) -> BackendFuture<GpuHistory> {
        let query = HistoryQuery { range: Some(range) };
        get_json(format!("/api/admin/workers/{id}/gpus/history{}", query_string(&query)))
    }

    fn fleet_gpus(&self, range: HistoryRange) -> BackendFuture<FleetHistory> {
        let query = HistoryQuery { range: Some(range) };
        get_json(format!("/api/admin/gpus/history{}", query_string(&query)))
    }

    fn job_artifacts(&self, id: JobId) -> BackendFuture<ArtifactsPage> {
        get_json(format!("/api/queue/{id}/artifacts"))
    }

    fn job_explain(&self, id: JobId) -> BackendFuture<ExplanationView> {
        get_json(format!("/api/queue/{id}/explain"))
    }

    fn search(&self, query: SearchQuery) -> BackendFuture<SearchPage> {
        get_json(format!("/api/search{}", query_string(&query)))
    }
}

fn get_json<T: DeserializeOwned + 'static>(path: String) -> BackendFuture<T> {
    Box::pin(SendWrapper::new(async move {
        let body = send_request(Method::GET, &path, None).await?;
        serde_json::from_str(&body).map_err(invalid_response)
    }))
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err passes it")]
fn invalid_response(error: serde_json::Error) -> Problem {
    Problem::new(502, "Bad Gateway", "bad_answer", error.to_string())
}

/// Posts a form in the browser's encoding to a handler that responds to scripts.
pub(crate) async fn post_form(path: &str, body: String) -> Result<FormResponse, Problem> {
    let body = send_request(Method::POST, path, Some(body)).await?;
    serde_json::from_str(&body).map_err(invalid_response)
}

/// Fails if the session has ended, or the server does not answer.
pub(crate) async fn check_session() -> Result<(), Problem> {
    send_request(Method::GET, "/api/session", None).await.map(drop)
}

/// Returns the problem for a request without a response.
pub(super) fn network_error(error: gloo_net::Error) -> Problem {
    Problem::new(0, "No Answer", "no_answer", error.to_string())
}

/// Sends a request, optionally with a form, and returns the body; a status other than 2xx becomes a problem.
async fn send_request(method: Method, path: &str, form: Option<String>) -> Result<String, Problem> {
    let request = RequestBuilder::new(path).method(method).header("accept", "application/json");
    let request = match form {
        Some(form) => request.header("content-type", "application/x-www-form-urlencoded").body(form),
        None => request.build(),
    };
    let response = request.map_err(network_error)?.send().await.map_err(network_error)?;
    let body = response.text().await.map_err(network_error)?;
    if response.ok() {
        return Ok(body);
    }
    let plain_problem =
        || Problem::new(response.status(), &response.status_text(), "http_error", response.status_text());
    Err(serde_json::from_str(&body).unwrap_or_else(|_| plain_problem()))
}
