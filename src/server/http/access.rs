//! Who is asking. One guard for each group of routes.

use std::time::Duration;

use app::domain::audit::flood::Refused;
use app::domain::ids::{Attempt, JobId, WorkerId};
use axum::Extension;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;

use super::arrival::Scheme;
use super::json::OptionalJson;
use super::problem::{ApiError, unknown_host};
use super::request::{Peer, address, caller_named};
use super::session_cookie;
use crate::service::access::Person;
use crate::service::agents::WorkerKey;
use crate::service::audit::refused::harmless;
use crate::service::refusal::Refusal;
use crate::service::reports::Subject;
use crate::state::App;
use crate::text::percent_escaped;

/// How long a stranger may take to say who they are.
const PATIENCE: Duration = Duration::from_secs(1);

/// How whoever is on the server's host says who they are there.
pub const OPERATOR: &str = "x-operator";

/// How people and scripts get in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// With an API token or a session.
    Accounts,
    /// Whoever reaches the loopback address (`--single-user`).
    SingleUser,
}

/// What a job route was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobKey {
    /// A worker's token: any attempt that this worker holds.
    Worker(WorkerId),
    /// A job's token: this attempt only.
    Job(Subject),
}

impl JobKey {
    /// The attempt that is meant, if the key opens it.
    pub fn subject(self, job: &str, attempt: Option<u32>) -> Result<Subject, ApiError> {
        let job = JobId::parse(job).map_err(|_| ApiError::bad_id("job"))?;
        let attempt = attempt.map(Attempt);
        match self {
            Self::Worker(worker) => Ok(Subject { worker, job, attempt }),
            Self::Job(subject) if subject.job == job && attempt.is_none_or(|n| subject.attempt == Some(n)) => {
                Ok(subject)
            }
            Self::Job(_) => Err(ApiError::new(
                axum::http::StatusCode::FORBIDDEN,
                "other_attempt",
                "This job token belongs to another job or attempt.",
            )),
        }
    }
}

/// Finds out which person or script is asking.
pub async fn identify(app: &App, headers: &HeaderMap, scheme: Scheme) -> Result<Person, ApiError> {
    if let Some(token) = bearer(headers).or_else(|| text(headers, "x-api-key")) {
        if let Some(operator) = app.core.operator(token, text(headers, OPERATOR)) {
            return Ok(operator);
        }
        return Ok(app.core.authenticate_token(token).await?);
    }
    if app.mode == Mode::SingleUser {
        return Ok(Person::on_loopback());
    }
    let Some(cookie) = session_cookie::read(headers, scheme) else { return Err(ApiError::not_authenticated()) };
    app.core.authenticate_session(cookie).await?.ok_or_else(ApiError::not_authenticated)
}

/// Lets in people and scripts.
pub async fn person(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match identify(&app, request.headers(), Scheme::of(request.extensions())).await {
        Err(error) => error.into_response(),
        Ok(person) => {
            request.extensions_mut().insert(person);
            next.run(request).await
        }
    }
}

/// Lets in browsers that are logged in, and shows the others the way.
pub async fn page(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match identify(&app, request.headers(), Scheme::of(request.extensions())).await {
        Err(_) => {
            let wanted = request.uri().path_and_query().map_or("/", |wanted| wanted.as_str());
            Redirect::to(&format!("/login?next={}", percent_escaped(wanted))).into_response()
        }
        Ok(person) => {
            request.extensions_mut().insert(person);
            next.run(request).await
        }
    }
}

/// Lets in workers; what they send is a sign of life.
pub async fn worker(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match heard_of(&app, request.headers()).await {
        Err(error) => error.into_response(),
        Ok(key) => {
            request.extensions_mut().insert(key.worker.clone());
            request.extensions_mut().insert(key);
            next.run(request).await
        }
    }
}

/// Lets in workers that register: whether it is the one that is known is seen then.
pub async fn newcomer(
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    mut request: Request,
    next: Next,
) -> Response {
    match worker_of(&app, request.headers()).await {
        Err(error) => {
            if error.is_refusal() {
                let (name, detail) = (claimed_name(&app, request).await, json!({"reason": error.code()}));
                let by = caller_named("unknown");
                app.core.record_refused(by, Refused::Registration, address(peer), harmless(&name), detail).await;
            }
            error.into_response()
        }
        Ok(key) => {
            request.extensions_mut().insert(key.worker);
            next.run(request).await
        }
    }
}

/// The name that a stranger's registration claims, if it comes soon.
async fn claimed_name(app: &App, request: Request) -> String {
    #[derive(Default, Deserialize)]
    struct Claim {
        #[serde(default)]
        name: String,
    }
    let claim = tokio::time::timeout(PATIENCE, OptionalJson::<Claim>::from_request(request, app)).await;
    claim.map_or_else(|_| String::new(), |claim| claim.map(|OptionalJson(claim)| claim.name).unwrap_or_default())
}

/// Lets in workers and the attempts they run.
pub async fn job(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let key = match text(request.headers(), "x-upload-token") {
        Some(token) => app.core.authenticate_job(token).await.map(JobKey::Job).map_err(worker_error),
        None => heard_of(&app, request.headers()).await.map(|key| JobKey::Worker(key.worker)),
    };
    match key {
        Err(error) => error.into_response(),
        Ok(key) => {
            request.extensions_mut().insert(key);
            next.run(request).await
        }
    }
}

/// In single-user mode, nothing but loopback names is answered: a foreign page must not reach us by a name of its own
/// that points here (DNS rebinding).
pub async fn known_host(State(app): State<App>, request: Request, next: Next) -> Response {
    let host = request.uri().host().or_else(|| text(request.headers(), "host")).unwrap_or_default();
    if app.mode == Mode::SingleUser && !is_loopback(host) {
        return unknown_host().into_response();
    }
    next.run(request).await
}

/// Whether a host, with or without a port, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let bare = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let bare = bare.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The worker that asks, which is a sign of life.
async fn heard_of(app: &App, headers: &HeaderMap) -> Result<WorkerKey, ApiError> {
    let key = worker_of(app, headers).await?;
    app.core.heard_of(&key.worker);
    Ok(key)
}

async fn worker_of(app: &App, headers: &HeaderMap) -> Result<WorkerKey, ApiError> {
    let token = text(headers, "x-worker-token").ok_or_else(ApiError::worker_token_refused)?;
    app.core.authenticate_worker(token).await.map_err(worker_error)
}

fn worker_error(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::WrongToken => ApiError::worker_token_refused(),
        other => other.into(),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = text(headers, header::AUTHORIZATION.as_str())?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// The value of a cookie.
pub fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';')).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names() {
        for yes in
            ["localhost", "localhost:8001", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8001", "[::1]:8001", "[::1]", "::1"]
        {
            assert!(is_loopback(yes), "{yes}");
        }
        for no in [
            "",
            "evil.example",
            "evil.example:8001",
            "localhost.evil.example",
            "10.0.0.1:8001",
            "[fe80::1]:1",
            "127.0.0.1.evil",
        ] {
            assert!(!is_loopback(no), "{no}");
        }
    }
}
