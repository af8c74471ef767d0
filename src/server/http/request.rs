//! What every request gets: an id that stands in its answer, its log lines and its audit entries, and safe headers.

use std::future::pending;
use std::net::IpAddr;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;

use app::domain::trace::Trace;
use axum::Extension;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::Entry;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use tokio::task::JoinError;

use super::arrival::{Scheme, arrival};
use crate::random::{OsRandom, Random};
use crate::service::access::{Admission, Person};
use crate::service::unit::Caller;
use crate::state::App;
use crate::tls::Tls;
use crate::tokens::hex;

/// Grows when something is taken away from the API; what is only added needs no new one.
const API_VERSION: &str = "1";

const TRACEPARENT: &str = "traceparent";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    static CURRENT: Ids;
    static PERSON: String;
}

/// What is known of a request wherever it leads.
#[derive(Clone)]
struct Ids {
    request: String,
    /// What its `traceparent` says, if it makes sense.
    trace: Option<Trace>,
}

/// The client's host: the other end of the connection, or whom a trusted proxy names.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Its address, as far as it is known.
pub fn address(peer: Option<Extension<Peer>>) -> Option<IpAddr> {
    peer.map(|Extension(Peer(address))| address)
}

/// The id of the request that is being answered.
pub fn current_id() -> Option<String> {
    CURRENT.try_with(|ids| ids.request.clone()).ok()
}

/// Answers a request of this person.
pub async fn as_person<T>(name: String, work: impl Future<Output = T>) -> T {
    PERSON.scope(name, work).await
}

/// Whose request is being answered, if somebody is logged in.
pub fn current_person() -> Option<String> {
    PERSON.try_with(String::clone).ok()
}

/// The trace that the request belongs to which is being answered.
fn current_trace() -> Option<Trace> {
    CURRENT.try_with(|ids| ids.trace.clone()).ok().flatten()
}

/// Work for the request that is being answered which goes on to its end, also when nobody waits for it any more.
pub async fn to_the_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let task = match CURRENT.try_with(Ids::clone) {
        Ok(ids) => tokio::spawn(CURRENT.scope(ids, work)),
        Err(_) => tokio::spawn(work),
    };
    match task.await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => resume_unwind(panic),
        // The program ends, and so does whoever waits here.
        Err(Err(_)) => pending().await,
    }
}

/// What a log line says of the request that it belongs to.
pub fn around() -> Vec<(&'static str, String)> {
    let told = |ids: &Ids| {
        let trace = ids.trace.as_ref().map(|trace| ("trace_id", trace.id().to_owned()));
        [("request_id", ids.request.clone())].into_iter().chain(trace).collect()
    };
    CURRENT.try_with(told).unwrap_or_default()
}

/// A person as the caller of a change, with the request's id.
pub fn caller(person: &Person) -> Caller {
    Caller { owner: person.name.clone(), admission: Admission::of(person), ..caller_named(person.actor()) }
}

/// Somebody else as the caller of a change: an agent, or whoever is not known yet.
pub fn caller_named(actor: impl Into<String>) -> Caller {
    let actor = actor.into();
    Caller { owner: actor.clone(), actor, admission: None, request_id: current_id(), trace: current_trace() }
}

/// Gives the request its id and what is believed of its way here, logs its end, and adds the headers that every answer has.
pub async fn in_context(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let scheme = arrive(&app, &mut request);
    hide_secrets(request.headers_mut());
    let id = accepted_id(request.headers()).unwrap_or_else(|| hex(&<dyn Random>::bytes::<12>(&OsRandom)));
    let method = request.method().clone();
    // Never the query string: it may hold what is nobody's business.
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let started = std::time::Instant::now();
    let trace = request.headers().get(TRACEPARENT).and_then(|header| Trace::parse(header.to_str().ok()?));
    let trace_id = trace.as_ref().map(|trace| trace.id().to_owned());
    let mut response = CURRENT.scope(Ids { request: id.clone(), trace }, next.run(request)).await;
    let status = response.status().as_u16();
    app.core.metrics.http.answered(&path, status, started.elapsed());
    if status == 401 {
        let refused = &app.core.metrics.refused;
        let of = if path.starts_with("/api/workers/") { &refused.of_workers } else { &refused.of_people };
        of.fetch_add(1, Ordering::Relaxed);
    }
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if is_change_by_people(&method, &path) {
        tracing::info!(request_id = id, trace_id, %method, path, status, ms, "answered");
    } else {
        tracing::debug!(request_id = id, trace_id, %method, path, status, ms, "answered");
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
        ("api-version", API_VERSION),
        ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    // Pages have said what they need. Nothing else is to be looked at as one.
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        let nothing = HeaderValue::from_static(
            "default-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        );
        headers.insert(header::CONTENT_SECURITY_POLICY, nothing);
    }
    if scheme.is_secure() {
        secure_cookies(headers);
    }
    if scheme == Scheme::OwnHttps && app.tls.as_ref().is_some_and(Tls::is_vouched_for) {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    response
}

/// What is set over HTTPS is sent over nothing else.
fn secure_cookies(headers: &mut HeaderMap) {
    let Entry::Occupied(mut cookies) = headers.entry(header::SET_COOKIE) else { return };
    for cookie in cookies.iter_mut() {
        let text = cookie.to_str().ok().filter(|text| !text.contains("; Secure")).map(|text| format!("{text}; Secure"));
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
            *cookie = value;
        }
    }
}

/// Whoever prints a request's headers prints none of these.
fn hide_secrets(headers: &mut HeaderMap) {
    const SECRET: [&str; 5] = ["authorization", "cookie", "x-api-key", "x-worker-token", "x-upload-token"];
    for (_, value) in headers.iter_mut().filter(|(name, _)| SECRET.contains(&name.as_str())) {
        value.set_sensitive(true);
    }
}

/// Whether a person, or a script of theirs, wants to change something.
fn is_change_by_people(method: &Method, path: &str) -> bool {
    let by_people = path.starts_with("/ui/") || (path.starts_with("/api/") && !path.starts_with("/api/workers/"));
    by_people && !method.is_safe()
}

/// Notes the client's host and what it speaks.
fn arrive(app: &App, request: &mut Request) -> Scheme {
    let tls = app.tls.is_some();
    let scheme = match request.extensions().get::<Peer>() {
        None => Scheme::direct(tls),
        Some(Peer(connected)) => {
            let arrival = arrival(*connected, tls, request.headers(), &app.trusted_proxies);
            request.extensions_mut().insert(Peer(arrival.peer));
            arrival.scheme
        }
    };
    request.extensions_mut().insert(scheme);
    scheme
}

/// An id of the client's, if it is harmless in logs.
fn accepted_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    ((1..=64).contains(&id.len()) && id.bytes().all(harmless)).then(|| id.to_owned())
}
