//! Who is asking. One guard for each group of routes.

use std::net::IpAddr;
use std::time::Duration;

use app::domain::audit::flood::Refused;
use app::domain::ids::{Attempt, JobId, WorkerId};
use app::domain::worker::Refused as WorkerRefused;
use app::ui::pending::PendingLogin;
use axum::extract::{FromRequest, OriginalUri, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;

use super::arrival::Scheme;
use super::headers::{bearer, is_loopback, text};
use super::json::OptionalJson;
use super::problem::{ApiError, several_hosts, unknown_host};
use super::request::{Peer, as_person, caller_named};
use super::worker::actor;
use super::{session, session_cookie};
use crate::service::access::{Admission, Person, Ticket};
use crate::service::audit::refused::harmless;
use crate::service::keys::{Means, TokenUse, WorkerKey};
use crate::service::refusal::Refusal;
use crate::service::reports::Subject;
use crate::state::App;
use crate::text::percent_escaped;
use crate::tokens;

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
    /// The token of a worker with an older agent: any attempt that this worker holds.
    Older(WorkerId),
    /// The session of a worker's agent: it may report where an attempt stands of which it has lost the token.
    Agent(WorkerId),
    /// A job's token: this attempt only.
    Job(Subject),
}

impl JobKey {
    /// The attempt that is meant, if the key opens it.
    pub fn subject(self, job: &str, attempt: Option<u32>) -> Result<Subject, ApiError> {
        if matches!(self, Self::Agent(_)) {
            return Err(ApiError::job_token_required());
        }
        self.reporter(job, attempt)
    }

    /// The attempt that is meant, if the key may report where it stands.
    pub fn reporter(self, job: &str, attempt: Option<u32>) -> Result<Subject, ApiError> {
        let job = JobId::parse(job).map_err(|_| ApiError::bad_id("job"))?;
        let attempt = attempt.map(Attempt);
        match self {
            Self::Older(worker) | Self::Agent(worker) => Ok(Subject { worker, job, attempt }),
            Self::Job(subject) if subject.job == job && attempt.is_none_or(|n| subject.attempt == Some(n)) => {
                Ok(subject)
            }
            Self::Job(_) => Err(ApiError::other_attempt()),
        }
    }
}

/// Finds out which person or script is asking, and whether they may ask once more.
pub async fn identify(app: &App, headers: &HeaderMap, scheme: Scheme, peer: Option<IpAddr>) -> Result<Person, Refusal> {
    if let Some(operator) = token(headers).and_then(|token| app.core.operator(token, text(headers, OPERATOR))) {
        return Ok(operator);
    }
    let Some(ticket) = ticket(app, headers, scheme) else {
        let single = app.mode == Mode::SingleUser;
        return if single { Ok(Person::on_loopback()) } else { Err(of_stranger(app, Refusal::Nobody, peer)) };
    };
    let Some(person) = app.core.authenticate(&ticket).await? else {
        let refusal = if matches!(ticket, Ticket::Token(_)) { Refusal::WrongToken } else { Refusal::Nobody };
        return Err(of_stranger(app, refusal, peer));
    };
    app.core.may_ask(&person)?;
    Ok(person)
}

/// What a stranger is told: why they are not let in, or that they have asked too often.
fn of_stranger(app: &App, refusal: Refusal, peer: Option<IpAddr>) -> Refusal {
    let once_more = match refusal {
        Refusal::WrongToken | Refusal::WorkerKey(..) => app.core.token_was_wrong(peer),
        Refusal::Nobody => app.core.stranger_may_ask(peer),
        _ => Ok(()),
    };
    once_more.err().unwrap_or(refusal)
}

/// A browser that comes to the login with a session that is over.
#[derive(Debug, Clone, Copy)]
pub struct SessionOver;

/// Notes whether whoever comes to the login was logged in before.
pub async fn login(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let ticket = ticket(&app, request.headers(), Scheme::of(request.extensions()));
    if let Some(ticket @ Ticket::Cookie(_)) = ticket
        && let Ok(None) = app.core.authenticate(&ticket).await
    {
        request.extensions_mut().insert(SessionOver);
    }
    let path = request.uri().path();
    if path != "/login" {
        let scheme = Scheme::of(request.extensions());
        let Ok(Some(pending)) = pending(&app, request.headers(), scheme, path == "/login/enrol").await else {
            return Redirect::to("/login").into_response();
        };
        request.extensions_mut().insert(pending);
    }
    next.run(request).await
}

/// Who is in the middle of logging in.
async fn pending(
    app: &App,
    headers: &HeaderMap,
    scheme: Scheme,
    enrols: bool,
) -> Result<Option<PendingLogin>, Refusal> {
    let Some(cookie) = session_cookie::read_pending(headers, scheme) else { return Ok(None) };
    let Some(found) = app.core.pending_login(cookie).await? else { return Ok(None) };
    let enrolment = if enrols { Some(app.core.enrolment_at_login(&found).await?) } else { None };
    let ways = app.core.ways_at_login(&found, cookie, session::origin(scheme, headers).ok().as_ref()).await?;
    Ok(Some(PendingLogin { name: found.user.name, enrolment, ways }))
}

/// What is open to everybody, but not without end.
pub async fn stranger(State(app): State<App>, request: Request, next: Next) -> Response {
    let peer = peer_of(&request);
    match app.core.stranger_may_ask(peer) {
        Err(refusal) => shut_out(&app, refusal, ApiError::from, wanted(&request), peer).await,
        Ok(()) => next.run(request).await,
    }
}

/// What somebody came with. Where nobody needs anything, cookies are nothing.
fn ticket(app: &App, headers: &HeaderMap, scheme: Scheme) -> Option<Ticket> {
    if let Some(token) = token(headers) {
        return Some(Ticket::Token(tokens::digest(token.trim())));
    }
    let cookie = session_cookie::read(headers, scheme).filter(|_| app.mode == Mode::Accounts)?;
    Some(Ticket::Cookie(tokens::digest(cookie)))
}

/// Lets in people and scripts.
pub async fn person(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let (scheme, peer) = (Scheme::of(request.extensions()), peer_of(&request));
    match identify(&app, request.headers(), scheme, peer).await {
        Err(refusal) => shut_out(&app, refusal, ApiError::from, wanted(&request), peer).await,
        Ok(person) => {
            // Where somebody listens, it is looked again whether they may.
            if let Some(admission) = Admission::of(&person) {
                request.extensions_mut().insert(admission);
            }
            request.extensions_mut().insert(person);
            next.run(request).await
        }
    }
}

/// Lets in browsers that are logged in, and shows the others the way.
pub async fn page(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let (scheme, peer) = (Scheme::of(request.extensions()), peer_of(&request));
    match identify(&app, request.headers(), scheme, peer).await {
        // Whether they are logged in, nobody can say while the database is away.
        Err(refusal @ (Refusal::TooMany { .. } | Refusal::Store(_))) => {
            shut_out(&app, refusal, ApiError::from, wanted(&request), peer).await
        }
        Err(_) => {
            let wanted = request.uri().path_and_query().map_or("/", |wanted| wanted.as_str());
            Redirect::to(&format!("/login?next={}", percent_escaped(wanted))).into_response()
        }
        Ok(person) => {
            let name = person.name.clone();
            request.extensions_mut().insert(person);
            as_person(name, next.run(request)).await
        }
    }
}

/// Lets in workers; what they send is a sign of life.
pub async fn worker(State((app, to)): State<(App, TokenUse)>, mut request: Request, next: Next) -> Response {
    let peer = peer_of(&request);
    match heard_of(&app, request.headers(), peer, to).await {
        Err(refusal) => shut_out(&app, refusal, worker_error, wanted(&request), peer).await,
        Ok(key) => {
            request.extensions_mut().insert(key.worker.clone());
            request.extensions_mut().insert(key);
            next.run(request).await
        }
    }
}

/// Lets in workers that register: whether it is the one that is known is seen then.
pub async fn newcomer(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let peer = peer_of(&request);
    let key = worker_of(&app, request.headers(), peer).await;
    // A session is no proof of the token that it was got for.
    match key.and_then(|key| if key.means == Means::Token { Ok(key) } else { Err(Refusal::WrongToken) }) {
        Err(refusal @ Refusal::TooMany { .. }) => shut_out(&app, refusal, worker_error, wanted(&request), peer).await,
        Err(refusal) => {
            let known = refusal.worker().map(ToString::to_string);
            let error = worker_error(refusal);
            if error.is_refusal() {
                let detail = json!({"reason": error.code()});
                let name = match known {
                    Some(worker) => worker,
                    None => harmless(&claimed_name(&app, request).await).to_owned(),
                };
                app.core.record_refused(caller_named("unknown"), Refused::Registration, peer, &name, detail).await;
            }
            error.into_response()
        }
        Ok(key) => {
            request.extensions_mut().insert(key);
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
    let peer = peer_of(&request);
    let key = match text(request.headers(), "x-upload-token") {
        Some(token) => attempt_of(&app, token, peer).await.map(JobKey::Job),
        None => heard_of(&app, request.headers(), peer, TokenUse::Work).await.map(|key| match key.means {
            Means::Token => JobKey::Older(key.worker),
            Means::Session => JobKey::Agent(key.worker),
        }),
    };
    match key {
        Err(refusal) => shut_out(&app, refusal, worker_error, wanted(&request), peer).await,
        Ok(key) => {
            request.extensions_mut().insert(key);
            next.run(request).await
        }
    }
}

/// In single-user mode, nothing but loopback names is answered: a foreign page must not reach us by a name of its own
/// that points here (DNS rebinding).
pub async fn known_host(State(app): State<App>, request: Request, next: Next) -> Response {
    // Two hosts are read as one by one program and as the other by the next.
    if request.headers().get_all(header::HOST).iter().count() > 1 {
        return several_hosts().into_response();
    }
    let host = request.uri().host().or_else(|| text(request.headers(), "host")).unwrap_or_default();
    if app.mode == Mode::SingleUser && !is_loopback(host) {
        return unknown_host().into_response();
    }
    next.run(request).await
}

/// The worker that asks, which is a sign of life.
async fn heard_of(app: &App, headers: &HeaderMap, peer: Option<IpAddr>, to: TokenUse) -> Result<WorkerKey, Refusal> {
    let key = worker_of(app, headers, peer).await?;
    if let Err(refusal) = app.core.check_holder(&key, to).await {
        return Err(alarm(app, &key, refusal).await);
    }
    app.core.heard_of(&key.worker, peer);
    Ok(key)
}

/// Puts on record that a token is used by another than the agent that registered.
async fn alarm(app: &App, key: &WorkerKey, refusal: Refusal) -> Refusal {
    if matches!(refusal, Refusal::Worker(WorkerRefused::TokenInUse)) {
        let host = key.peer.map(|peer| peer.to_string());
        app.core.record_token_in_use(caller_named(actor(&key.worker)), &key.worker, host.as_deref()).await;
    }
    refusal
}

/// Says no. A token that is some worker's and does not open is on record, and who asks too often.
async fn shut_out(
    app: &App,
    refusal: Refusal,
    told: fn(Refusal) -> ApiError,
    wanted: String,
    peer: Option<IpAddr>,
) -> Response {
    let by = match &refusal {
        Refusal::WorkerKey(_, worker) => Some(actor(worker)),
        Refusal::TooMany { who, .. } => Some(who.clone()),
        _ => None,
    };
    let error = told(refusal);
    if let Some(by) = by {
        let detail = json!({"reason": error.code()});
        app.core.record_refused(caller_named(by), Refused::Access, peer, &wanted, detail).await;
    }
    error.into_response()
}

async fn worker_of(app: &App, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<WorkerKey, Refusal> {
    let Some(token) = text(headers, "x-worker-token") else {
        return Err(of_stranger(app, Refusal::Nobody, peer));
    };
    let key = app.core.authenticate_worker(token, peer).await.map_err(|refusal| of_stranger(app, refusal, peer))?;
    app.core.worker_may_ask(&key.worker)?;
    Ok(key)
}

/// The attempt whose token this is; its worker asks.
async fn attempt_of(app: &App, token: &str, peer: Option<IpAddr>) -> Result<Subject, Refusal> {
    let subject = app.core.authenticate_job(token, peer).await.map_err(|refusal| of_stranger(app, refusal, peer))?;
    app.core.worker_may_ask(&subject.worker)?;
    Ok(subject)
}

/// What a request is for, as whoever sent it wrote it; what it asks for is nobody's business.
pub fn wanted(request: &Request) -> String {
    let whole = request.extensions().get::<OriginalUri>().map_or(request.uri(), |OriginalUri(whole)| whole);
    format!("{} {}", request.method(), whole.path())
}

fn peer_of(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<Peer>().map(|Peer(host)| *host)
}

fn worker_error(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::Nobody => ApiError::worker_token_missing(),
        Refusal::WrongToken => ApiError::worker_token_refused(),
        other => other.into(),
    }
}

/// The token that a script came with.
pub fn token(headers: &HeaderMap) -> Option<&str> {
    bearer(headers).or_else(|| text(headers, "x-api-key"))
}
