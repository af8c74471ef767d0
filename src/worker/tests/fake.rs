//! An orchestrator that does as it is told, and remembers everything.

mod answers;
mod files;
mod jobs;

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

use self::answers::{dated, extend, full, ok, problem};
use crate::clock::hex;

pub const TOKEN: &str = "wt_test_token";
pub const JOB_TOKEN: &str = "jt_test";
/// What a registration gets for the token.
pub const SESSION: &str = "ws_test_session";
/// Where every job stands in a trace.
pub const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A file that came, with the digest that was announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub kind: String,
    pub bytes: Vec<u8>,
}

/// What was said, and what is to be said.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own that tests turn")]
pub struct Shared {
    pub registers: Vec<Value>,
    pub heartbeats: Vec<Value>,
    /// Every accepted status report.
    pub statuses: Vec<Value>,
    pub log: Vec<u8>,
    pub points: Vec<Value>,
    pub artifacts: BTreeMap<String, Stored>,
    pub files: files::Files,
    pub disconnects: Vec<Value>,
    pub streams: usize,
    /// The `traceparent` of everything that was said about jobs.
    pub traces: Vec<String>,
    /// Log bytes that came twice or out of order and were refused.
    pub gaps: usize,
    /// From where to where of the log the agent had given up; question marks stand there.
    pub dropped: Vec<(usize, usize)>,
    /// Take no gap, as before there were any.
    pub no_gaps: bool,
    /// Answer 503 to log bytes.
    pub no_logs: bool,
    /// Take no more of a log than this.
    pub most_log: Option<usize>,
    /// Answer 503 to everything, as a server that is away.
    pub away: bool,
    /// What was answered so.
    pub missed: usize,
    /// Seconds without a heartbeat after which a worker counts as lost, if not 4.
    pub heartbeat_timeout: Option<u64>,
    /// What offers say besides.
    pub offer_more: Value,
    /// The desired state.
    pub offers: Vec<Value>,
    pub stop: Vec<Value>,
    pub run: Vec<Value>,
    pub drain: bool,
    /// The bundle of every job.
    pub bundle: String,
    /// The secrets of every job, or the code of a refusal.
    pub secrets: BTreeMap<String, String>,
    pub no_secrets: Option<&'static str>,
    /// Answer 503 to so many reports of an end.
    pub failing_ends: u32,
    /// Answer 409 to every report.
    pub stale: bool,
    pub refuse_token: bool,
    /// Answer 503 to everything.
    pub busy: bool,
    /// Answer 503 to registrations.
    pub no_registrations: bool,
    /// Answer 409 to heartbeats until the next registration.
    pub is_unknown: bool,
    /// Registrations and heartbeats that were refused for one of these.
    pub refused: Vec<&'static str>,
    /// Open streams, but let nothing through, as some proxies do.
    pub hold_streams: bool,
    pub polls: usize,
    /// Answer this status and a body without end, to whatever ends like this.
    pub flood: Option<(&'static str, u16)>,
    /// How much of such bodies was taken, in bytes.
    pub flooded: Arc<std::sync::atomic::AtomicU64>,
    /// What time it says that it is, if not the real one.
    pub date: Option<&'static str>,
    open: Vec<mpsc::UnboundedSender<String>>,
    held: Vec<mpsc::UnboundedSender<String>>,
}

/// The running fake.
pub struct Fake {
    pub url: String,
    shared: Arc<Mutex<Shared>>,
    changed: Arc<watch::Sender<u64>>,
}

impl Fake {
    pub async fn start() -> io::Result<Self> {
        Self::listen(None).await
    }

    /// One that speaks TLS, under the name `localhost`.
    pub async fn start_over(tls: TlsAcceptor) -> io::Result<Self> {
        Self::listen(Some(tls)).await
    }

    async fn listen(tls: Option<TlsAcceptor>) -> io::Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let address = socket.local_addr()?;
        let url = match &tls {
            None => format!("http://{address}"),
            Some(_) => format!("https://localhost:{}", address.port()),
        };
        let fake = Self { url, shared: Arc::default(), changed: Arc::new(watch::Sender::new(0)) };
        let (shared, changed) = (Arc::clone(&fake.shared), Arc::clone(&fake.changed));
        tokio::spawn(async move {
            while let Ok((connection, _)) = socket.accept().await {
                let (shared, changed) = (Arc::clone(&shared), Arc::clone(&changed));
                let service = service_fn(move |request| answer(request, Arc::clone(&shared), Arc::clone(&changed)));
                let tls = tls.clone();
                tokio::spawn(async move {
                    let http = hyper::server::conn::http1::Builder::new();
                    // A connection ends as it ends; what was said on it is what counts.
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

    pub fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers a job with this configuration, and tells whoever listens.
    pub fn offer(&self, job: &str, attempt: u32, files: &Value) {
        self.offer_with(job, attempt, files, json!({}));
    }

    /// The same, with GPUs granted.
    pub fn offer_on(&self, gpus: &[&str], job: &str, attempt: u32, files: &Value) {
        self.offer_with(job, attempt, files, json!({"gpus": gpus}));
    }

    /// Offers a job of which more is said.
    pub fn offer_with(&self, job: &str, attempt: u32, files: &Value, more: Value) {
        let mut shared = self.shared();
        shared.bundle = json!({ "files": files }).to_string();
        let mut offer = json!({
            "type": "job_submit", "job_id": job, "attempt": attempt, "config_name": "test", "config": {},
            "upload_endpoint": format!("/api/workers/job/{job}/artifacts"), "upload_token": JOB_TOKEN,
            "bundle": {
                "url": format!("/api/workers/job/{job}/bundle?attempt={attempt}"),
                "sha256": hex(&Sha256::digest(shared.bundle.as_bytes())),
            },
            "gpus": [], "hf_token": "hf_job", "traceparent": TRACE,
        });
        extend(&mut offer, shared.offer_more.clone());
        extend(&mut offer, more);
        shared.offers.push(offer.clone());
        shared.push(&offer);
    }

    /// Wants an attempt stopped.
    pub fn stop(&self, job: &str, attempt: u32, reason: &str) {
        let mut shared = self.shared();
        shared.stop.push(json!({"job_id": job, "attempt": attempt, "reason": reason}));
        shared.push(&json!({"type": "job_cancel", "job_id": job, "attempt": attempt, "reason": reason}));
    }

    /// Waits until something is true of what was said; fails with `what` after a minute.
    pub async fn until<T>(&self, what: &str, mut check: impl FnMut(&mut Shared) -> Option<T>) -> T {
        let mut changes = self.changed.subscribe();
        let wait = async {
            loop {
                if let Some(found) = check(&mut self.shared()) {
                    return found;
                }
                let _ = changes.changed().await;
            }
        };
        let found = tokio::time::timeout(std::time::Duration::from_mins(1), wait).await;
        found.unwrap_or_else(|_| panic!("waited in vain: {what}\nstatuses: {:?}", self.shared().statuses))
    }

    /// Waits for a status report and answers with it.
    pub async fn status(&self, status: &str) -> Value {
        self.until(status, |shared| shared.statuses.iter().find(|report| report["status"] == status).cloned()).await
    }

    /// The reported statuses. `running` may come twice around the death of an agent, which is killed before it has written
    /// down that the first one was answered.
    pub fn words(&self) -> Vec<String> {
        let shared = self.shared();
        let mut words: Vec<String> =
            shared.statuses.iter().filter_map(|report| Some(report["status"].as_str()?.to_owned())).collect();
        words.dedup_by(|next, before| next == before && next == "running");
        words
    }
}

impl Shared {
    /// Sends an event to whoever listens.
    pub fn push(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        let text = format!("event: {kind}\ndata: {event}\n\n");
        self.open.retain(|stream| stream.send(text.clone()).is_ok());
    }

    fn desired(&self) -> Value {
        json!({"run": self.run, "stop": self.stop, "offers": self.offers, "drain": self.drain})
    }

    /// Ends every open stream.
    pub fn cut(&mut self) {
        self.open.clear();
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Mutex<Shared>>,
    changed: Arc<watch::Sender<u64>>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
    let answer = {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match body {
            Ok(body) => shared.answer(&parts, &body),
            // The sender died in the middle: nothing of it counts.
            Err(_) => problem(400, "cut_short", json!({})),
        }
    };
    changed.send_modify(|times| *times += 1);
    Ok(dated(answer, shared.lock().unwrap_or_else(PoisonError::into_inner).date))
}

impl Shared {
    fn answer(&mut self, parts: &Parts, body: &Bytes) -> Response<Body> {
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let path = parts.uri.path();
        let session = header("x-worker-token") == SESSION && !self.refuse_token;
        if self.away {
            self.missed += 1;
            return problem(503, "away", json!({}));
        }
        if let Some((_, status)) = self.flood.filter(|(end, _)| path.ends_with(end)) {
            return answers::endless(status, path.ends_with("/stream"), Arc::clone(&self.flooded));
        }
        if let Some(rest) = path.strip_prefix("/api/workers/job/") {
            let Some((job, rest)) = rest.split_once('/') else { return problem(404, "no_such_route", json!({})) };
            if !(header("x-upload-token").starts_with(JOB_TOKEN) || session && rest == "status") {
                return problem(401, "token_refused", json!({}));
            }
            self.traces.push(format!("{rest} {}", header("traceparent")));
            return self.job(job, rest, parts, value, body);
        }
        if self.busy {
            return problem(503, "busy", json!({"detail": format!("busy for {}", header("x-worker-token"))}));
        }
        if path == "/healthz" {
            return ok(&json!({"status": "ok"}));
        }
        let route = path.strip_prefix("/api/workers/").unwrap_or_default();
        let token = header("x-worker-token") == TOKEN && !self.refuse_token;
        let opens = match route {
            "register" => token,
            "queue" => token || session,
            _ => session,
        };
        if !opens {
            return problem(401, "token_refused", json!({}));
        }
        match route {
            "register" if self.no_registrations => {
                self.refused.push("register");
                problem(503, "busy", json!({}))
            }
            "heartbeat" if self.is_unknown => {
                self.refused.push("heartbeat");
                problem(409, "not_registered", json!({}))
            }
            "register" => {
                self.is_unknown = false;
                self.registers.push(value);
                ok(
                    &json!({"worker_id": "w_1", "name": "test", "heartbeat_interval_seconds": if self.hold_streams { 3_600 } else { 1 }, "heartbeat_timeout_seconds": self.heartbeat_timeout.unwrap_or(4),
                    "protocol": 1, "session": SESSION, "server_time": "2024-01-15T10:30:00Z", "desired": self.desired()}),
                )
            }
            "heartbeat" => {
                self.heartbeats.push(value);
                ok(&json!({"desired": self.desired()}))
            }
            "next" => {
                self.polls += 1;
                ok(&json!({"desired": self.desired()}))
            }
            "stream" => self.stream(),
            "queue" => ok(&json!({"has_jobs": !self.offers.is_empty()})),
            "disconnect" => {
                self.disconnects.push(value);
                ok(&json!({"success": true}))
            }
            _ => problem(404, "no_such_route", json!({})),
        }
    }

    fn stream(&mut self) -> Response<Body> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.streams += 1;
        if self.hold_streams {
            self.held.push(sender);
        } else {
            self.open.push(sender);
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
