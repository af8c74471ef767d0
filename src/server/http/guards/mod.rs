//! Authentication: one guard per group of routes.

pub(super) mod session_cookie;

use std::net::IpAddr;
use std::time::Duration;

use app::domain::audit::rate_limit::RejectionKind;
use app::domain::ids::{AttemptNumber, JobId, WorkerId};
use app::domain::worker::WorkerTransitionError;
use app::ui::pending::SecondFactorPrompt;
use axum::extract::{FromRequest, OriginalUri, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;

use super::problem::{ApiError, multiple_hosts, unknown_host};
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::json::OptionalJson;
use crate::http::edge::loopback_host::is_loopback_host;
use crate::http::edge::request::{Peer, caller_from_actor, worker_actor};
use crate::http::edge::request_headers::{bearer_token, header_text};
use crate::http::edge::server_address::passkey_origin;
use crate::http::request_context::with_user;
use crate::http::state::{AppState, AuthMode};
use crate::service::access::Principal;
use crate::service::attempt_ref::AttemptRef;
use crate::service::audit::rejections::printable_name;
use crate::service::auth_grant::Credential;
use crate::service::error::{IdKind, ServiceError};
use crate::service::workers::tokens::{TokenUse, WorkerAuth, WorkerAuthKind};
use crate::text::percent_escaped;
use crate::tokens;

/// The time in which an unauthenticated registration must send its name.
const NAME_READ_TIMEOUT: Duration = Duration::from_secs(1);

/// The header with the name of the operator on the server's host.
pub const OPERATOR_HEADER: &str = "x-operator";

/// The credential of a request to a job route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAuth {
    /// The token of a worker with an older agent: any attempt that this worker holds.
    LegacyWorker(WorkerId),
    /// The session of a worker's agent, which may report the state of an attempt whose token it has lost.
    AgentSession(WorkerId),
    /// A job token: this attempt only.
    JobToken(AttemptRef),
}

impl JobAuth {
    /// Returns the attempt of the request if the credential allows access to it.
    pub fn access_attempt(self, job: &str, attempt: Option<u32>) -> Result<AttemptRef, ApiError> {
        if matches!(self, Self::AgentSession(_)) {
            return Err(ApiError::job_token_required());
        }
        self.report_on_attempt(job, attempt)
    }

    /// Returns the attempt of the request if the credential allows reports of its state.
    pub fn report_on_attempt(self, job: &str, attempt: Option<u32>) -> Result<AttemptRef, ApiError> {
        let job = JobId::parse(job).map_err(|_| ApiError::invalid_id(IdKind::Job))?;
        let attempt = attempt.map(AttemptNumber);
        match self {
            Self::LegacyWorker(worker) | Self::AgentSession(worker) => Ok(AttemptRef { worker, job, attempt }),
            Self::JobToken(attempt_ref)
                if attempt_ref.job == job && attempt.is_none_or(|n| attempt_ref.attempt == Some(n)) =>
            {
                Ok(attempt_ref)
            }
            Self::JobToken(_) => Err(ApiError::token_of_other_attempt()),
        }
    }
}

/// Authenticates a user or a script, and applies its rate limit.
pub async fn identify(
    app: &AppState,
    headers: &HeaderMap,
    scheme: Scheme,
    peer: Option<IpAddr>,
) -> Result<Principal, ServiceError> {
    if let Some(operator) = api_token(headers)
        .and_then(|token| app.services.access.authenticate_operator(token, header_text(headers, OPERATOR_HEADER)))
    {
        return Ok(operator);
    }
    let Some(credential) = presented_credential(app, headers, scheme) else {
        let is_single_user = app.mode == AuthMode::SingleUser;
        return if is_single_user {
            Ok(Principal::on_loopback())
        } else {
            Err(limit_unauthenticated(app, ServiceError::NotAuthenticated, peer))
        };
    };
    let Some(principal) = app.services.access.authenticate(&credential).await? else {
        let error = if matches!(credential, Credential::Token(_)) {
            ServiceError::WrongToken
        } else {
            ServiceError::NotAuthenticated
        };
        return Err(limit_unauthenticated(app, error, peer));
    };
    app.services.access.check_caller_rate(&principal)?;
    Ok(principal)
}

/// Returns the error for an unauthenticated client, or 429 after too many requests.
fn limit_unauthenticated(app: &AppState, error: ServiceError, peer: Option<IpAddr>) -> ServiceError {
    let result = match error {
        ServiceError::WrongToken | ServiceError::WorkerTokenRejected(..) => {
            app.services.access.charge_wrong_token(peer)
        }
        ServiceError::NotAuthenticated => app.services.access.check_unauthenticated_rate(peer),
        _ => Ok(()),
    };
    result.err().unwrap_or(error)
}

/// A browser that opens the sign-in page with an expired session.
#[derive(Debug, Clone, Copy)]
pub struct ExpiredSession;

/// Marks requests to the sign-in page whose session has expired.
pub async fn detect_expired_session(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let credential = presented_credential(&app, request.headers(), Scheme::from_extensions(request.extensions()));
    if let Some(credential @ Credential::Cookie(_)) = credential
        && let Ok(None) = app.services.access.authenticate(&credential).await
    {
        request.extensions_mut().insert(ExpiredSession);
    }
    let path = request.uri().path();
    if path != "/login" {
        let scheme = Scheme::from_extensions(request.extensions());
        let Ok(Some(pending)) = load_pending_login(&app, request.headers(), scheme, path == "/login/enrol").await
        else {
            return Redirect::to("/login").into_response();
        };
        request.extensions_mut().insert(pending);
    }
    next.run(request).await
}

/// Loads the pending sign-in of a user who still has to enter the second factor.
async fn load_pending_login(
    app: &AppState,
    headers: &HeaderMap,
    scheme: Scheme,
    with_enrolment: bool,
) -> Result<Option<SecondFactorPrompt>, ServiceError> {
    let Some(cookie) = session_cookie::read_pending(headers, scheme) else { return Ok(None) };
    let Some(pending) = app.services.access.pending_login(cookie).await? else { return Ok(None) };
    let enrolment = if with_enrolment { Some(app.services.access.login_enrollment(&pending).await?) } else { None };
    let factors =
        app.services.access.login_factors(&pending, cookie, passkey_origin(scheme, headers).ok().as_ref()).await?;
    Ok(Some(SecondFactorPrompt { name: pending.user.name, enrolment, factors }))
}

/// Applies the rate limit to routes without authentication.
pub async fn limit_anonymous(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let peer = peer_ip(&request);
    match app.services.access.check_unauthenticated_rate(peer) {
        Err(error) => reject(&app, error, ApiError::from, request_target(&request), peer).await,
        Ok(()) => next.run(request).await,
    }
}

/// Returns the credential of a request. In single-user mode cookies are ignored.
fn presented_credential(app: &AppState, headers: &HeaderMap, scheme: Scheme) -> Option<Credential> {
    if let Some(token) = api_token(headers) {
        return Some(Credential::Token(tokens::digest(token.trim())));
    }
    let cookie = session_cookie::read_session(headers, scheme).filter(|_| app.mode == AuthMode::Accounts)?;
    Some(Credential::Cookie(tokens::digest(cookie)))
}

/// Requires a user or an API token.
pub async fn require_principal(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let (scheme, peer) = (Scheme::from_extensions(request.extensions()), peer_ip(&request));
    match identify(&app, request.headers(), scheme, peer).await {
        Err(error) => reject(&app, error, ApiError::from, request_target(&request), peer).await,
        Ok(principal) => {
            // Streams use it to recheck the authorization.
            if let Some(grant) = principal.grant() {
                request.extensions_mut().insert(grant);
            }
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
    }
}

/// Requires a signed-in browser, and redirects others to the sign-in page.
pub async fn require_page_session(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let (scheme, peer) = (Scheme::from_extensions(request.extensions()), peer_ip(&request));
    match identify(&app, request.headers(), scheme, peer).await {
        // While the database is unavailable, the session cannot be checked.
        Err(error @ (ServiceError::RateLimited { .. } | ServiceError::Store(_))) => {
            reject(&app, error, ApiError::from, request_target(&request), peer).await
        }
        Err(_) => {
            let path_and_query = request.uri().path_and_query().map_or("/", |path_and_query| path_and_query.as_str());
            Redirect::to(&format!("/login?next={}", percent_escaped(path_and_query))).into_response()
        }
        Ok(principal) => {
            let name = principal.name.clone();
            request.extensions_mut().insert(principal);
            with_user(name, next.run(request)).await
        }
    }
}

/// Requires a worker. Its requests count as contact.
pub async fn require_worker(
    State((app, token_use)): State<(AppState, TokenUse)>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = peer_ip(&request);
    match authenticate_worker(&app, request.headers(), peer, token_use).await {
        Err(error) => reject(&app, error, worker_error, request_target(&request), peer).await,
        Ok(auth) => {
            request.extensions_mut().insert(auth.worker.clone());
            request.extensions_mut().insert(auth);
            next.run(request).await
        }
    }
}

/// Requires a worker token. The use case checks whether the agent is the registered one.
pub async fn require_registration(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let peer = peer_ip(&request);
    let auth = load_worker(&app, request.headers(), peer).await;
    // A session does not prove possession of the token that it was obtained with.
    match auth
        .and_then(|auth| if auth.kind == WorkerAuthKind::Token { Ok(auth) } else { Err(ServiceError::WrongToken) })
    {
        Err(error @ ServiceError::RateLimited { .. }) => {
            reject(&app, error, worker_error, request_target(&request), peer).await
        }
        Err(error) => {
            let known = error.worker_id().map(ToString::to_string);
            let error = worker_error(error);
            if error.is_client_error() {
                let detail = json!({"reason": error.code()});
                let name = match known {
                    Some(worker) => worker,
                    None => printable_name(&claimed_name(&app, request).await).to_owned(),
                };
                app.services
                    .audit
                    .record_rejection(caller_from_actor("unknown"), RejectionKind::Registration, peer, &name, detail)
                    .await;
            }
            error.into_response()
        }
        Ok(auth) => {
            request.extensions_mut().insert(auth);
            next.run(request).await
        }
    }
}

/// Returns the name in an unauthenticated registration, if it arrives in time.
async fn claimed_name(app: &AppState, request: Request) -> String {
    #[derive(Default, Deserialize)]
    struct Claim {
        #[serde(default)]
        name: String,
    }
    let claim = tokio::time::timeout(NAME_READ_TIMEOUT, OptionalJson::<Claim>::from_request(request, app)).await;
    claim.map_or_else(|_| String::new(), |claim| claim.map(|OptionalJson(claim)| claim.name).unwrap_or_default())
}

/// Requires a worker or an attempt that it runs.
pub async fn require_job(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let peer = peer_ip(&request);
    let auth = match header_text(request.headers(), "x-upload-token") {
        Some(token) => load_attempt(&app, token, peer).await.map(JobAuth::JobToken),
        None => authenticate_worker(&app, request.headers(), peer, TokenUse::Work).await.map(|auth| match auth.kind {
            WorkerAuthKind::Token => JobAuth::LegacyWorker(auth.worker),
            WorkerAuthKind::Session => JobAuth::AgentSession(auth.worker),
        }),
    };
    match auth {
        Err(error) => reject(&app, error, worker_error, request_target(&request), peer).await,
        Ok(auth) => {
            request.extensions_mut().insert(auth);
            next.run(request).await
        }
    }
}

/// Accepts loopback host names only in single-user mode, against DNS rebinding by foreign pages.
pub async fn require_known_host(State(app): State<AppState>, request: Request, next: Next) -> Response {
    // With two hosts, programs differ in which one they use.
    let header = header_text(request.headers(), "host");
    let differs = |authority: &Authority| header.is_some_and(|host| host != authority.as_str());
    let count = request.headers().get_all(header::HOST).iter().count();
    if count > 1 || request.uri().authority().is_some_and(differs) {
        return multiple_hosts().into_response();
    }
    let host = request.uri().host().or(header).unwrap_or_default();
    if app.mode == AuthMode::SingleUser && !is_loopback_host(host) {
        return unknown_host().into_response();
    }
    next.run(request).await
}

/// Authenticates the worker and records the contact.
async fn authenticate_worker(
    app: &AppState,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
    token_use: TokenUse,
) -> Result<WorkerAuth, ServiceError> {
    let auth = load_worker(app, headers, peer).await?;
    if let Err(error) = app.services.workers.check_holder(&auth, token_use).await {
        return Err(record_token_conflict(app, &auth, error).await);
    }
    app.services.workers.record_contact(&auth.worker, peer);
    Ok(auth)
}

/// Records that a token is used by another agent than the registered one.
async fn record_token_conflict(app: &AppState, auth: &WorkerAuth, error: ServiceError) -> ServiceError {
    if matches!(error, ServiceError::WorkerTransition(WorkerTransitionError::TokenInUse)) {
        let host = auth.peer.map(|peer| peer.to_string());
        app.services
            .workers
            .record_token_conflict(caller_from_actor(worker_actor(&auth.worker)), &auth.worker, host.as_deref())
            .await;
    }
    error
}

/// Rejects a request. Invalid tokens of known workers, and exceeded rate limits, are recorded in the audit log.
async fn reject(
    app: &AppState,
    service_error: ServiceError,
    to_api_error: fn(ServiceError) -> ApiError,
    target: String,
    peer: Option<IpAddr>,
) -> Response {
    let actor = match &service_error {
        ServiceError::WorkerTokenRejected(_, worker) => Some(worker_actor(worker)),
        ServiceError::RateLimited { caller, .. } => Some(caller.clone()),
        _ => None,
    };
    let error = to_api_error(service_error);
    if let Some(actor) = actor {
        let detail = json!({"reason": error.code()});
        app.services
            .audit
            .record_rejection(caller_from_actor(actor), RejectionKind::AccessDenied, peer, &target, detail)
            .await;
    }
    error.into_response()
}

async fn load_worker(app: &AppState, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<WorkerAuth, ServiceError> {
    let Some(token) = header_text(headers, "x-worker-token") else {
        return Err(limit_unauthenticated(app, ServiceError::NotAuthenticated, peer));
    };
    let auth = app
        .services
        .workers
        .authenticate_worker(token, peer)
        .await
        .map_err(|error| limit_unauthenticated(app, error, peer))?;
    app.services.access.check_worker_rate(&auth.worker)?;
    Ok(auth)
}

/// Loads the attempt of a job token; its worker counts as in contact.
async fn load_attempt(app: &AppState, token: &str, peer: Option<IpAddr>) -> Result<AttemptRef, ServiceError> {
    let attempt_ref = app
        .services
        .agents
        .authenticate_job(token, peer)
        .await
        .map_err(|error| limit_unauthenticated(app, error, peer))?;
    app.services.access.check_worker_rate(&attempt_ref.worker)?;
    Ok(attempt_ref)
}

/// Returns the method and path of a request as sent, without the query.
pub fn request_target(request: &Request) -> String {
    let uri = request.extensions().get::<OriginalUri>().map_or(request.uri(), |OriginalUri(uri)| uri);
    format!("{} {}", request.method(), uri.path())
}

fn peer_ip(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<Peer>().map(|Peer(host)| *host)
}

fn worker_error(error: ServiceError) -> ApiError {
    match error {
        ServiceError::NotAuthenticated => ApiError::worker_token_missing(),
        ServiceError::WrongToken => ApiError::worker_token_invalid(),
        other => other.into(),
    }
}

/// Returns the API token of a request.
pub fn api_token(headers: &HeaderMap) -> Option<&str> {
    bearer_token(headers).or_else(|| header_text(headers, "x-api-key"))
}
