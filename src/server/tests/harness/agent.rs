//! Credentials of an agent: the worker token to register, then its session, and the token of each attempt.

use std::sync::{Arc, Mutex};

use app::domain::ids::{AttemptNumber, JobId, WorkerId};
use app::protocol::agents::DesiredState;
use app::protocol::topic::Topic;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{Actor, EventStreamReader, TestResponse, TestServer};
use crate::http::edge::request::Peer;
use crate::tokens;

#[derive(Debug, Clone)]
pub struct TestAgent {
    token: String,
    session: Arc<Mutex<Option<String>>>,
}

impl TestAgent {
    pub fn new(token: String) -> Self {
        Self { token, session: Arc::default() }
    }

    /// Returns a client that has the worker token only.
    pub fn with_token_only(&self) -> Self {
        Self::new(self.token.clone())
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn session(&self) -> Option<String> {
        self.session.lock().expect("no panic while it is held").clone()
    }

    /// Returns the authorization header for a request.
    pub async fn auth_header(&self, server: &TestServer, path: &str) -> (&'static str, String) {
        let (route, query) = path.split_once('?').unwrap_or((path, ""));
        match (self.session(), route.strip_prefix("/api/workers/job/")) {
            (Some(_), Some(rest)) if !rest.ends_with("/status") => {
                let job = JobId::parse(rest.split('/').next().unwrap_or_default());
                match job {
                    Ok(job) => ("x-upload-token", job_token(server, &job, query).await),
                    Err(_) => ("x-upload-token", String::new()),
                }
            }
            (Some(session), _) if route != "/api/workers/register" => ("x-worker-token", session),
            _ => ("x-worker-token", self.token.clone()),
        }
    }

    /// Stores the session from the response to a registration.
    pub async fn record_session(&self, path: &str, response: Response<Body>) -> Response<Body> {
        if path != "/api/workers/register" || !response.status().is_success() {
            return response;
        }
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a complete body").to_bytes();
        let registration: Value = serde_json::from_slice(&body).expect("JSON");
        *self.session.lock().expect("no panic while it is held") = registration["session"].as_str().map(str::to_owned);
        Response::from_parts(parts, body.into())
    }
}

/// Returns the token of the attempt in the query, otherwise of the job's latest attempt.
async fn job_token(server: &TestServer, job: &JobId, query: &str) -> String {
    let requested = query.split('&').find_map(|pair| pair.strip_prefix("attempt=")?.parse().ok().map(AttemptNumber));
    let mut tx = server.app.services.context.read().await.expect("a database");
    let latest = tx.job(job).await.expect("readable").map(|job| job.attempt).unwrap_or_default();
    tokens::job_token(&server.app.services.context.token_signing_key, job, requested.unwrap_or(latest))
}

impl TestServer {
    /// Creates a worker, registers it and opens its stream; returns its id, its key (the agent as an actor), and the
    /// stream.
    pub async fn connect_worker(&self, name: &str) -> (String, Actor, EventStreamReader) {
        let (id, key) = self.create_worker(name).await;
        self.register(&key, json!([])).await;
        let events = self.open_stream(&key).await;
        (id, key, events)
    }

    /// Connects the worker `gpu-1`, and starts a job on it; returns the job's id, too.
    pub async fn connect_busy_worker(&self) -> (String, Actor, EventStreamReader, String) {
        self.put_config("digits").await;
        let (id, key, mut events) = self.connect_worker("gpu-1").await;
        let job = self.submit("digits").await;
        events.next_offer().await;
        self.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        (id, key, events, job)
    }

    /// Drops a worker's stream without a disconnect, as if its agent had crashed.
    pub async fn drop_stream(&self, id: &str, events: EventStreamReader) {
        let path = format!("/api/admin/workers/{id}");
        let mut changes =
            self.app.services.context.notifier.subscribe_topic(&Topic::Worker(WorkerId::parse(id).expect("an id")));
        drop(events);
        while self.get(&Actor::Admin, &path).await.expect_status(200)["connection_lost"] != true {
            changes.changed().await.expect("the end of the stream is notified");
        }
    }

    pub async fn register(&self, key: &Actor, attempts: Value) -> Value {
        let body =
            json!({"name": "x", "protocol": 1, "persistent": true, "accelerator_type": "cpu", "attempts": attempts});
        self.post(key, "/api/workers/register", body).await.expect_status(200)
    }

    pub async fn open_stream(&self, key: &Actor) -> EventStreamReader {
        let response = self.open(key, "GET", "/api/workers/stream", Body::empty()).await;
        assert_eq!(response.status(), StatusCode::OK);
        EventStreamReader::new(response)
    }

    /// Opens a worker's stream from this address.
    pub async fn open_stream_from(&self, key: &Actor, host: [u8; 4]) -> axum::response::Response {
        self.send_from(key, host, "GET", "/api/workers/stream", Body::empty()).await
    }

    /// Sends a request of a worker's agent from this address.
    pub async fn send_from(
        &self,
        key: &Actor,
        host: [u8; 4],
        method: &str,
        path: &str,
        body: impl Into<Body>,
    ) -> axum::response::Response {
        let Actor::Worker(agent) = key else { panic!("only agents are distinguished by address") };
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:8001");
        let (name, value) = agent.auth_header(self, path).await;
        let request = request.header(name, value).extension(Peer(host.into()));
        agent.record_session(path, self.send(request.body(body.into()).expect("a request")).await).await
    }

    pub async fn heartbeat(&self, key: &Actor, attempts: Value) -> DesiredState {
        let response = self.post(key, "/api/workers/heartbeat", json!({"attempts": attempts})).await.expect_status(200);
        serde_json::from_value(response["desired"].clone()).expect("a desired state")
    }

    pub async fn report_status(&self, key: &Actor, job: &str, report: Value) -> TestResponse {
        self.post(key, &format!("/api/workers/job/{job}/status"), report).await
    }
}
