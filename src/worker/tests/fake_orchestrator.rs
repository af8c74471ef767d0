//! A scripted orchestrator that records everything.

mod files;
mod jobs;
mod responses;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::stream;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use self::responses::{bytes_response, merge, ok_response, problem_response, with_date};
use super::test_host::TEST_TIMEOUT;
use crate::worker::clock::encode_hex;

pub const TOKEN: &str = "wt_test_token";
pub const JOB_TOKEN: &str = "jt_test";
/// The session that a registration returns for the token.
pub const SESSION: &str = "ws_test_session";
/// The trace context of every job.
pub const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A job's ID and the number of the attempt.
type Attempt = (String, usize);

/// A received file, with its announced digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactUpload {
    pub kind: String,
    pub bytes: Vec<u8>,
}

/// What was received, and how to respond.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch for tests")]
pub struct FakeState {
    pub registrations: Vec<Value>,
    pub heartbeats: Vec<Value>,
    /// Every accepted status report.
    pub statuses: Vec<Value>,
    /// The log of the attempt that was offered last.
    pub log: Vec<u8>,
    log_attempt: Option<Attempt>,
    other_logs: BTreeMap<Attempt, Vec<u8>>,
    pub points: Vec<Value>,
    pub artifacts: BTreeMap<String, ArtifactUpload>,
    pub files: files::FakeFileStore,
    pub disconnects: Vec<Value>,
    pub streams: usize,
    /// The `traceparent` of every request about jobs.
    pub traces: Vec<String>,
    /// Log bytes that arrived twice or out of order and were rejected.
    pub gaps: usize,
    /// Ranges of the log that the agent had dropped, filled with question marks.
    pub dropped: Vec<(usize, usize)>,
    /// Reject gaps, as before they existed.
    pub rejects_gaps: bool,
    /// Respond with 503 to log bytes.
    pub rejects_logs: bool,
    /// Accept no more of a log than this.
    pub max_log_bytes: Option<usize>,
    /// Respond with 503 to everything, like an unavailable server.
    pub is_unavailable: bool,
    /// How many requests got that response.
    pub unavailable_responses: usize,
    /// Heartbeat timeout in seconds, if not 4.
    pub heartbeat_timeout: Option<u64>,
    /// Additional fields of offers.
    pub offer_extra: Value,
    /// The desired state.
    pub offers: Vec<Value>,
    pub stop: Vec<Value>,
    pub running: Vec<Value>,
    pub drain: bool,
    /// The bundle of every job.
    pub bundle: String,
    /// The secrets of every job, or the code of an error.
    pub secrets: BTreeMap<String, String>,
    pub secrets_error: Option<&'static str>,
    /// Respond with 503 to this many reports of an end.
    pub failing_ends: u32,
    /// Respond with 503 to acceptances, which are counted.
    pub rejects_acceptances: bool,
    pub rejected_acceptances: u32,
    /// Respond with 409 to every report.
    pub rejects_reports: bool,
    pub reject_token: bool,
    /// Respond with 503 to everything except jobs.
    pub busy: bool,
    /// Respond with 503 to registrations.
    pub rejects_registrations: bool,
    /// The next heartbeat is rejected, but only after the next registration.
    pub late_conflict: LateConflict,
    /// Respond with 409 to heartbeats until the next registration.
    pub is_unknown: bool,
    /// Registrations and heartbeats that were rejected for one of these.
    pub rejected: Vec<&'static str>,
    /// Open streams, but send nothing through them, as some proxies do.
    pub hold_streams: bool,
    pub polls: usize,
    /// Respond to paths with this suffix with this status and an endless body.
    pub flood: Option<(&'static str, u16)>,
    /// How much of such bodies was read, in bytes.
    pub flooded: Arc<std::sync::atomic::AtomicU64>,
    /// The `Date` header, if not the real time.
    pub date: Option<&'static str>,
    open_streams: Vec<mpsc::UnboundedSender<String>>,
    held_streams: Vec<mpsc::UnboundedSender<String>>,
}

pub struct FakeOrchestrator {
    pub url: String,
    state: Arc<Mutex<FakeState>>,
    changed: Arc<watch::Sender<u64>>,
}

impl FakeOrchestrator {
    pub async fn start() -> io::Result<Self> {
        Self::listen(None).await
    }

    /// Uses TLS, with the name `localhost`.
    pub async fn start_with_tls(tls: TlsAcceptor) -> io::Result<Self> {
        Self::listen(Some(tls)).await
    }

    async fn listen(tls: Option<TlsAcceptor>) -> io::Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let url = match &tls {
            None => format!("http://{address}"),
            Some(_) => format!("https://localhost:{}", address.port()),
        };
        let fake = Self { url, state: Arc::default(), changed: Arc::new(watch::Sender::new(0)) };
        let (shared, changed) = (Arc::clone(&fake.state), Arc::clone(&fake.changed));
        tokio::spawn(async move {
            while let Ok((connection, _)) = socket.accept().await {
                let (shared, changed) = (Arc::clone(&shared), Arc::clone(&changed));
                let service = service_fn(move |request| respond(request, Arc::clone(&shared), Arc::clone(&changed)));
                let tls = tls.clone();
                tokio::spawn(async move {
                    let http = hyper::server::conn::http1::Builder::new();
                    // Errors of a connection are ignored; the recorded requests count.
                    match tls {
                        None => drop(http.serve_connection(TokioIo::new(connection), service).await),
                        Some(tls) => {
                            let Ok(stream) = tls.accept(connection).await else { return };
                            drop(http.serve_connection(TokioIo::new(stream), service).await);
                        }
                    }
                });
            }
        });
        Ok(fake)
    }

    pub fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers a job with this configuration, and notifies listeners.
    pub fn offer(&self, job: &str, attempt: u32, files: &Value) {
        self.offer_with(job, attempt, files, json!({}));
    }

    /// The same with granted GPUs.
    pub fn offer_with_gpus(&self, gpus: &[&str], job: &str, attempt: u32, files: &Value) {
        self.offer_with(job, attempt, files, json!({"gpus": gpus}));
    }

    /// Offers a job with additional fields.
    pub fn offer_with(&self, job: &str, attempt: u32, files: &Value, extra: Value) {
        let mut shared = self.state();
        shared.bundle = json!({ "files": files }).to_string();
        let mut offer = json!({
            "type": "job_submit", "job_id": job, "attempt": attempt, "config_name": "test", "config": {},
            "upload_endpoint": format!("/api/workers/job/{job}/artifacts"), "upload_token": JOB_TOKEN,
            "bundle": {
                "url": format!("/api/workers/job/{job}/bundle?attempt={attempt}"),
                "sha256": encode_hex(&Sha256::digest(shared.bundle.as_bytes())),
            },
            "gpus": [], "hf_token": "hf_job", "traceparent": TRACE,
        });
        merge(&mut offer, shared.offer_extra.clone());
        merge(&mut offer, extra);
        shared.start_log((job.to_owned(), attempt as usize));
        shared.offers.push(offer.clone());
        shared.push(&offer);
    }

    /// Offers a job as an orchestrator of this version does: with the bundle, and with what need not be asked.
    pub fn offer_inline(&self, job: &str, attempt: u32, files: &Value) {
        self.offer_with_body(job, attempt, files, &json!({ "files": files }).to_string());
    }

    /// The same with this body instead of the bundle.
    pub fn offer_with_body(&self, job: &str, attempt: u32, files: &Value, body: &str) {
        let sha256 = encode_hex(&Sha256::digest(json!({ "files": files }).to_string().as_bytes()));
        let url = format!("/api/workers/job/{job}/bundle?attempt={attempt}");
        let bundle = json!({"url": url, "sha256": sha256, "body": body});
        let extra = json!({"bundle": bundle, "has_secrets": false, "may_have_checkpoint": false});
        self.offer_with(job, attempt, files, extra);
    }

    /// Requests that an attempt stops.
    pub fn stop(&self, job: &str, attempt: u32, reason: &str) {
        let mut shared = self.state();
        shared.stop.push(json!({"job_id": job, "attempt": attempt, "reason": reason}));
        shared.push(&json!({"type": "job_cancel", "job_id": job, "attempt": attempt, "reason": reason}));
    }

    /// Waits until the state satisfies `check`; fails with `condition` after [`TEST_TIMEOUT`].
    pub async fn wait_until<T>(&self, condition: &str, mut check: impl FnMut(&mut FakeState) -> Option<T>) -> T {
        let mut changes = self.changed.subscribe();
        let wait = async {
            loop {
                if let Some(found) = check(&mut self.state()) {
                    return found;
                }
                let _ = changes.changed().await;
            }
        };
        let found = tokio::time::timeout(TEST_TIMEOUT, wait).await;
        found.unwrap_or_else(|_| panic!("timeout: {condition}\nstatuses: {:?}", self.state().statuses))
    }

    /// Waits for a status report and returns it.
    pub async fn wait_for_status(&self, status: &str) -> Value {
        self.wait_until(status, |shared| shared.statuses.iter().find(|report| report["status"] == status).cloned())
            .await
    }

    /// The reported statuses. `running` may be repeated after an agent was killed before it recorded the first
    /// response.
    pub fn reported_statuses(&self) -> Vec<String> {
        let shared = self.state();
        let mut statuses: Vec<String> =
            shared.statuses.iter().filter_map(|report| Some(report["status"].as_str()?.to_owned())).collect();
        statuses.dedup_by(|report, previous| report == previous && report == "running");
        statuses
    }
}

impl FakeState {
    /// From now on, `log` is the log of this attempt. An older attempt may still send parts of its own.
    fn start_log(&mut self, attempt: Attempt) {
        if self.log_attempt.as_ref() == Some(&attempt) {
            return;
        }
        let log = self.other_logs.remove(&attempt).unwrap_or_default();
        let current = self.log_attempt.replace(attempt);
        let before = std::mem::replace(&mut self.log, log);
        if let Some(current) = current {
            self.other_logs.insert(current, before);
        }
    }

    /// The log of an attempt.
    pub fn log_of(&self, job: &str, number: usize) -> &[u8] {
        let attempt = (job.to_owned(), number);
        if self.log_attempt.as_ref() == Some(&attempt) {
            return &self.log;
        }
        self.other_logs.get(&attempt).map_or(&[], Vec::as_slice)
    }

    /// Sends an event to all listeners.
    pub fn push(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        let text = format!("event: {kind}\ndata: {event}\n\n");
        self.open_streams.retain(|stream| stream.send(text.clone()).is_ok());
    }

    fn desired(&self) -> Value {
        json!({"run": self.running, "stop": self.stop, "offers": self.offers, "drain": self.drain})
    }

    /// Closes every open stream.
    pub fn close_streams(&mut self) {
        self.open_streams.clear();
    }
}

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Mutex<FakeState>>,
    changed: Arc<watch::Sender<u64>>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
    if parts.uri.path() == "/api/workers/heartbeat" {
        wait_for_registration(&shared, &changed).await;
    }
    let response = {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match body {
            Ok(body) => shared.respond(&parts, &body),
            // The sender died: its incomplete body is ignored.
            Err(_) => problem_response(400, "cut_short", json!({})),
        }
    };
    changed.send_modify(|count| *count += 1);
    Ok(with_date(response, shared.lock().unwrap_or_else(PoisonError::into_inner).date))
}

/// Whether a heartbeat waits for a registration, to be rejected after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LateConflict {
    #[default]
    Off,
    Requested,
    Waiting,
    /// The heartbeat is rejected now.
    Due,
}

/// Holds a heartbeat for which a late conflict is requested.
async fn wait_for_registration(shared: &Mutex<FakeState>, changed: &watch::Sender<u64>) {
    let state = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    let mut updates = changed.subscribe();
    let registrations = {
        let mut state = state();
        if state.late_conflict != LateConflict::Requested {
            return;
        }
        state.late_conflict = LateConflict::Waiting;
        state.registrations.len()
    };
    changed.send_modify(|count| *count += 1);
    while state().registrations.len() == registrations {
        let _ = updates.changed().await;
    }
    state().late_conflict = LateConflict::Due;
}

impl FakeState {
    fn respond(&mut self, parts: &Parts, body: &Bytes) -> Response<Body> {
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let path = parts.uri.path();
        let has_session = header("x-worker-token") == SESSION && !self.reject_token;
        if self.is_unavailable {
            self.unavailable_responses += 1;
            return problem_response(503, "away", json!({}));
        }
        if let Some((_, status)) = self.flood.filter(|(suffix, _)| path.ends_with(suffix)) {
            return responses::endless_response(status, path.ends_with("/stream"), Arc::clone(&self.flooded));
        }
        if let Some(rest) = path.strip_prefix("/api/workers/job/") {
            let Some((job, rest)) = rest.split_once('/') else {
                return problem_response(404, "no_such_route", json!({}));
            };
            if !(header("x-upload-token").starts_with(JOB_TOKEN) || has_session && rest == "status") {
                return problem_response(401, "token_rejected", json!({}));
            }
            self.traces.push(format!("{rest} {}", header("traceparent")));
            return self.handle_job(job, rest, parts, value, body);
        }
        if self.busy {
            return problem_response(503, "busy", json!({"detail": format!("busy for {}", header("x-worker-token"))}));
        }
        if path == "/healthz" {
            return ok_response(&json!({"status": "ok"}));
        }
        let route = path.strip_prefix("/api/workers/").unwrap_or_default();
        let has_token = header("x-worker-token") == TOKEN && !self.reject_token;
        let is_authorized = match route {
            "register" => has_token,
            "queue" => has_token || has_session,
            _ => has_session,
        };
        if !is_authorized {
            return problem_response(401, "token_rejected", json!({}));
        }
        match route {
            "register" if self.rejects_registrations => {
                self.rejected.push("register");
                problem_response(503, "busy", json!({}))
            }
            "heartbeat" if self.is_unknown || self.late_conflict == LateConflict::Due => {
                self.late_conflict = LateConflict::Off;
                self.rejected.push("heartbeat");
                problem_response(409, "not_registered", json!({}))
            }
            "register" => {
                self.is_unknown = false;
                self.registrations.push(value);
                ok_response(
                    &json!({"worker_id": "w_1", "name": "test", "heartbeat_interval_seconds": if self.hold_streams { 3_600 } else { 1 }, "heartbeat_timeout_seconds": self.heartbeat_timeout.unwrap_or(4),
                    "protocol": 1, "session": SESSION, "server_time": "2024-01-15T10:30:00Z", "desired": self.desired()}),
                )
            }
            "heartbeat" => {
                self.heartbeats.push(value);
                ok_response(&json!({"desired": self.desired()}))
            }
            "next" => {
                self.polls += 1;
                ok_response(&json!({"desired": self.desired()}))
            }
            "stream" => self.stream(),
            "queue" => ok_response(&json!({"has_jobs": !self.offers.is_empty()})),
            "disconnect" => {
                self.disconnects.push(value);
                ok_response(&json!({"success": true}))
            }
            _ => problem_response(404, "no_such_route", json!({})),
        }
    }

    fn stream(&mut self) -> Response<Body> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.streams += 1;
        if self.hold_streams {
            self.held_streams.push(sender);
        } else {
            self.open_streams.push(sender);
        }
        for offer in self.offers.clone() {
            self.push(&offer);
        }
        let frames = stream::unfold(receiver, async |mut receiver| {
            let text: String = receiver.recv().await?;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from(text))), receiver))
        });
        let mut response = Response::new(StreamBody::new(Box::pin(frames)).boxed_unsync());
        response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("text/event-stream"));
        response
    }
}
