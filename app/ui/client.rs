//! [`Port`] in the browser: the public REST API.

use gloo_net::http::{Method, RequestBuilder};
use send_wrapper::SendWrapper;
use serde::de::DeserializeOwned;

use super::format::query_string;
use super::port::{Answer, Port};
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
use crate::protocol::workers::{WorkerView, WorkersPage, WorkersQuery};

/// The server behind the page's own address.
pub(crate) struct Rest;

impl Port for Rest {
    fn session(&self) -> Answer<SessionView> {
        get("/api/session".to_owned())
    }

    fn workers(&self, query: WorkersQuery) -> Answer<WorkersPage> {
        get(format!(
            "/api/admin/workers{}",
            query_string(&[
                ("status", query.status.map(|status| status.as_str().to_owned())),
                ("q", query.q),
                ("label", query.label),
                ("facets", query.facets.then(|| "true".to_owned())),
                ("sort", query.sort),
                ("limit", query.limit.map(|limit| limit.to_string())),
                ("cursor", query.cursor),
            ])
        ))
    }

    fn gpus(&self, query: GpusQuery) -> Answer<GpusPage> {
        let asked = query_string(&[
            ("state", query.state.map(|state| state.as_str().to_owned())),
            ("q", query.q),
            ("group", query.group),
            ("lately", query.lately.map(|range| range.as_str().to_owned())),
            ("limit", text(query.limit)),
            ("cursor", query.cursor),
        ]);
        get(format!("/api/admin/gpus{asked}"))
    }

    fn overview(&self) -> Answer<OverviewView> {
        get("/api/overview".to_owned())
    }

    fn latest_events(&self, limit: u32) -> Answer<AuditPage> {
        get(format!("/api/audit?limit={limit}"))
    }

    fn worker(&self, id: WorkerId) -> Answer<WorkerView> {
        get(format!("/api/admin/workers/{id}"))
    }

    fn jobs(&self, query: JobsQuery) -> Answer<JobsPage> {
        get(format!(
            "/api/queue{}",
            query_string(&[
                ("status", query.status.map(|status| status.as_str().to_owned())),
                ("phase", query.phase.map(|phase| phase.as_str().to_owned())),
                ("user", query.user),
                ("label", query.label),
                ("limit", query.limit.map(|limit| limit.to_string())),
                ("cursor", query.cursor),
            ])
        ))
    }

    fn job(&self, id: JobId) -> Answer<JobView> {
        get(format!("/api/queue/{id}"))
    }

    fn job_log(&self, id: JobId, attempt: Attempt, offset: Option<u64>, limit: u32) -> Answer<LogChunk> {
        let query = query_string(&[
            ("attempt", Some(attempt.to_string())),
            ("offset", offset.map(|offset| offset.to_string())),
            ("limit", Some(limit.to_string())),
        ]);
        get(format!("/api/queue/{id}/logs{query}"))
    }

    fn job_log_lines(&self, id: JobId, query: LogLinesQuery) -> Answer<LogLines> {
        let asked = query_string(&[
            ("attempt", text(query.attempt)),
            ("from", text(query.from)),
            ("limit", text(query.limit)),
            ("q", query.q),
            ("regex", text(Some(query.regex))),
            ("case", text(Some(query.case))),
        ]);
        get(format!("/api/queue/{id}/logs/lines{asked}"))
    }

    fn job_log_search(&self, id: JobId, query: LogSearchQuery) -> Answer<LogMatches> {
        let asked = query_string(&[
            ("attempt", text(query.attempt)),
            ("q", Some(query.q)),
            ("regex", text(Some(query.regex))),
            ("case", text(Some(query.case))),
            ("from", text(query.from)),
            ("until", text(query.until)),
            ("backward", text(Some(query.backward))),
            ("limit", text(query.limit)),
        ]);
        get(format!("/api/queue/{id}/logs/search{asked}"))
    }

    fn job_metrics(&self, id: JobId, attempt: Option<Attempt>) -> Answer<JobMetrics> {
        let query = query_string(&[("attempt", attempt.map(|attempt| attempt.to_string()))]);
        get(format!("/api/queue/{id}/metrics{query}"))
    }

    fn job_gpus(&self, id: JobId) -> Answer<GpuHistory> {
        get(format!("/api/queue/{id}/gpus"))
    }

    fn worker_gpus(&self, id: WorkerId, range: Range) -> Answer<GpuHistory> {
        get(format!("/api/admin/workers/{id}/gpus/history?range={}", range.as_str()))
    }

    fn fleet_gpus(&self, range: Range) -> Answer<FleetHistory> {
        get(format!("/api/admin/gpus/history?range={}", range.as_str()))
    }

    fn job_artifacts(&self, id: JobId) -> Answer<ArtifactsPage> {
        get(format!("/api/queue/{id}/artifacts"))
    }

    fn job_explain(&self, id: JobId) -> Answer<ExplanationView> {
        get(format!("/api/queue/{id}/explain"))
    }

    fn search(&self, query: SearchQuery) -> Answer<SearchPage> {
        let limit = query.limit.map(|limit| limit.to_string());
        get(format!("/api/search{}", query_string(&[("q", Some(query.q)), ("limit", limit)])))
    }
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn get<T: DeserializeOwned + 'static>(path: String) -> Answer<T> {
    Box::pin(SendWrapper::new(async move {
        let body = exchange(Method::GET, &path, None).await?;
        serde_json::from_str(&body).map_err(|error| Problem::new(502, "Bad Gateway", "bad_answer", error.to_string()))
    }))
}

/// A write, with what there is to say as JSON.
pub(crate) async fn send(method: &str, path: &str, body: Option<String>) -> Result<(), Problem> {
    let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST);
    exchange(method, path, body.map(|json| ("application/json", json))).await.map(drop)
}

/// A form, as the browser would have sent it.
pub(crate) async fn post_form(path: &str, fields: &[(&'static str, &str)]) -> Result<(), Problem> {
    let fields: Vec<_> = fields.iter().map(|(key, value)| (*key, Some((*value).to_owned()))).collect();
    let body = query_string(&fields);
    let form = ("application/x-www-form-urlencoded", body.trim_start_matches('?').to_owned());
    exchange(Method::POST, path, Some(form)).await.map(drop)
}

/// What is said where no answer came.
pub(super) fn no_answer(error: gloo_net::Error) -> Problem {
    Problem::new(0, "No Answer", "no_answer", error.to_string())
}

/// One request and its body; whatever is not a 2xx becomes a problem.
async fn exchange(method: Method, path: &str, body: Option<(&str, String)>) -> Result<String, Problem> {
    let request = RequestBuilder::new(path).method(method).header("accept", "application/json");
    let request = match body {
        Some((kind, body)) => request.header("content-type", kind).body(body),
        None => request.build(),
    };
    let response = request.map_err(no_answer)?.send().await.map_err(no_answer)?;
    let body = response.text().await.map_err(no_answer)?;
    if response.ok() {
        return Ok(body);
    }
    let plain = || Problem::new(response.status(), &response.status_text(), "http_error", response.status_text());
    Err(serde_json::from_str(&body).unwrap_or_else(|_| plain()))
}
