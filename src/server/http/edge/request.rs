//! Gives every request an id for its response, log lines and audit entries, and adds security headers.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use app::domain::ids::WorkerId;
use app::domain::trace_context::TraceContext;
use axum::Extension;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::Entry;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;

use super::client_addr::{Scheme, resolve_client};
use super::language::client_locale;
use crate::http::request_context::{RequestContext, current_id, current_trace, with_context};
use crate::http::state::AppState;
use crate::random::{OsRandom, Random};
use crate::service::access::Principal;
use crate::service::unit_of_work::Caller;
use crate::tls::Tls;
use crate::tokens::hex;

/// Incremented when something is removed from the API; additions keep it.
const API_VERSION: &str = "1";

const TRACEPARENT: &str = "traceparent";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The client's host: the peer of the connection, or the one that a trusted proxy reports.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Returns the client's address, if known.
pub fn peer_ip(peer: Option<Extension<Peer>>) -> Option<IpAddr> {
    peer.map(|Extension(Peer(address))| address)
}

/// Returns a user as the caller of a change, with the request's id.
pub fn caller_from_principal(principal: &Principal) -> Caller {
    Caller { owner: principal.name.clone(), grant: principal.grant(), ..caller_from_actor(principal.actor()) }
}

/// Returns another actor as the caller of a change: an agent, or an unauthenticated client.
pub fn caller_from_actor(actor: impl Into<String>) -> Caller {
    let actor = actor.into();
    Caller { owner: actor.clone(), actor, grant: None, request_id: current_id(), trace: current_trace() }
}

/// Returns a worker's name in the audit log.
pub fn worker_actor(worker: &WorkerId) -> String {
    format!("worker:{worker}")
}

/// Assigns the id, resolves the client, logs the end of the request, and adds the headers that every response has.
pub async fn with_request_context(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let scheme = record_client(&app, &mut request);
    hide_secrets(request.headers_mut());
    let id = client_request_id(request.headers()).unwrap_or_else(|| hex(&<dyn Random>::bytes::<12>(&OsRandom)));
    let method = request.method().clone();
    // Never log the query string: it may contain private data.
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let started = std::time::Instant::now();
    let trace = request.headers().get(TRACEPARENT).and_then(|header| TraceContext::parse(header.to_str().ok()?));
    let trace_id = trace.as_ref().map(|trace| trace.trace_id().to_owned());
    let context = RequestContext { id: id.clone(), trace, locale: client_locale(request.headers()) };
    let mut response = with_context(context, next.run(request)).await;
    let status = response.status().as_u16();
    app.services.context.metrics.http.record(&path, status, started.elapsed());
    if status == 401 {
        let rejections = &app.services.context.metrics.rejections;
        let counter =
            if path.starts_with("/api/workers/") { &rejections.unknown_workers } else { &rejections.unknown_users };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if is_user_change(&method, &path) {
        tracing::info!(request_id = id, trace_id, %method, path, status, ms, "request completed");
    } else {
        tracing::debug!(request_id = id, trace_id, %method, path, status, ms, "request completed");
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
    // Pages have set their own policy. Other responses must not be rendered as a page.
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        let policy = HeaderValue::from_static(
            "default-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        );
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    if scheme.is_secure() {
        secure_cookies(headers);
    }
    if scheme == Scheme::DirectHttps && app.tls.as_ref().is_some_and(Tls::is_ca_signed) {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    response
}

/// Sets `Secure` on cookies over HTTPS.
fn secure_cookies(headers: &mut HeaderMap) {
    let Entry::Occupied(mut cookies) = headers.entry(header::SET_COOKIE) else { return };
    for cookie in cookies.iter_mut() {
        let text = cookie.to_str().ok().filter(|text| !text.contains("; Secure")).map(|text| format!("{text}; Secure"));
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
            *cookie = value;
        }
    }
}

/// Marks headers with secrets as sensitive, so that debug output omits them.
fn hide_secrets(headers: &mut HeaderMap) {
    const SECRET: [&str; 5] = ["authorization", "cookie", "x-api-key", "x-worker-token", "x-upload-token"];
    for (_, value) in headers.iter_mut().filter(|(name, _)| SECRET.contains(&name.as_str())) {
        value.set_sensitive(true);
    }
}

/// Returns whether a user, or a script, requests a change.
fn is_user_change(method: &Method, path: &str) -> bool {
    let is_user_route = path.starts_with("/ui/") || (path.starts_with("/api/") && !path.starts_with("/api/workers/"));
    is_user_route && !method.is_safe()
}

/// Stores the client's address and scheme in the request.
fn record_client(app: &AppState, request: &mut Request) -> Scheme {
    let tls = app.tls.is_some();
    let scheme = match request.extensions().get::<Peer>() {
        None => Scheme::direct(tls),
        Some(Peer(connection_peer)) => {
            let client_address = resolve_client(*connection_peer, tls, request.headers(), &app.trusted_proxies);
            request.extensions_mut().insert(Peer(client_address.peer));
            client_address.scheme
        }
    };
    request.extensions_mut().insert(scheme);
    scheme
}

/// Returns the client's request id, if it is safe in logs.
fn client_request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    ((1..=64).contains(&id.len()) && id.bytes().all(is_safe)).then(|| id.to_owned())
}
