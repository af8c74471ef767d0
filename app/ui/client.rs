//! [`Port`] in the browser: the public REST API.

use gloo_net::http::{Method, RequestBuilder};
use send_wrapper::SendWrapper;
use serde::de::DeserializeOwned;

use super::format::query_string;
use super::port::{Answer, Port};
use crate::domain::ids::{Attempt, JobId, WorkerId};
use crate::protocol::access::SessionView;
use crate::protocol::problem::Problem;
use crate::protocol::queue::{ArtifactsPage, JobView, JobsPage, JobsQuery, LogChunk, Phase, ProgressSeries};
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
                ("gpus", query.gpus.then(|| "true".to_owned())),
                ("limit", query.limit.map(|limit| limit.to_string())),
                ("cursor", query.cursor),
            ])
        ))
    }

    fn worker(&self, id: WorkerId) -> Answer<WorkerView> {
        get(format!("/api/admin/workers/{id}"))
    }

    fn jobs(&self, query: JobsQuery) -> Answer<JobsPage> {
        let phase = query.phase.map(|phase| match phase {
            Phase::Active => "active".to_owned(),
            Phase::Ended => "ended".to_owned(),
        });
        get(format!(
            "/api/queue{}",
            query_string(&[
                ("status", query.status.map(|status| status.as_str().to_owned())),
                ("phase", phase),
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

    fn job_progress(&self, id: JobId) -> Answer<ProgressSeries> {
        get(format!("/api/queue/{id}/progress"))
    }

    fn job_artifacts(&self, id: JobId) -> Answer<ArtifactsPage> {
        get(format!("/api/queue/{id}/artifacts"))
    }
}

fn get<T: DeserializeOwned + 'static>(path: String) -> Answer<T> {
    Box::pin(SendWrapper::new(async move {
        let body = exchange(Method::GET, &path, None).await?;
        serde_json::from_str(&body).map_err(|error| Problem::new(502, "Bad Gateway", "bad_answer", error.to_string()))
    }))
}

/// A write without a body.
pub(crate) async fn send(method: &str, path: &str) -> Result<(), Problem> {
    let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST);
    exchange(method, path, None).await.map(drop)
}

/// A form, as the browser would have sent it.
pub(crate) async fn post_form(path: &str, fields: &[(&'static str, &str)]) -> Result<(), Problem> {
    let fields: Vec<_> = fields.iter().map(|(key, value)| (*key, Some((*value).to_owned()))).collect();
    let body = query_string(&fields);
    exchange(Method::POST, path, Some(body.trim_start_matches('?').to_owned())).await.map(drop)
}

/// One request and its body; whatever is not a 2xx becomes a problem.
async fn exchange(method: Method, path: &str, form: Option<String>) -> Result<String, Problem> {
    let away = |error: gloo_net::Error| Problem::new(0, "No Answer", "no_answer", error.to_string());
    let request = RequestBuilder::new(path).method(method).header("accept", "application/json");
    let request = match form {
        Some(form) => request.header("content-type", "application/x-www-form-urlencoded").body(form),
        None => request.build(),
    };
    let response = request.map_err(away)?.send().await.map_err(away)?;
    let body = response.text().await.map_err(away)?;
    if response.ok() {
        return Ok(body);
    }
    let plain = || Problem::new(response.status(), &response.status_text(), "http_error", response.status_text());
    Err(serde_json::from_str(&body).unwrap_or_else(|_| plain()))
}
