//! What an agent shows: its token to register, then the session that it got, and the token of each attempt.

use std::sync::{Arc, Mutex};

use app::domain::ids::{Attempt, JobId};
use app::protocol::worker::Desired;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{Answer, By, Events, Server};
use crate::http::request::Peer;
use crate::tokens;

/// See the module.
#[derive(Debug, Clone)]
pub struct Agent {
    token: String,
    session: Arc<Mutex<Option<String>>>,
}

impl Agent {
    pub fn new(token: String) -> Self {
        Self { token, session: Arc::default() }
    }

    /// Who has the token and no more.
    pub fn thief(&self) -> Self {
        Self::new(self.token.clone())
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn session(&self) -> Option<String> {
        self.session.lock().expect("no panic while it is held").clone()
    }

    /// The header of a request.
    pub async fn header(&self, server: &Server, path: &str) -> (&'static str, String) {
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

    /// Takes the session out of the answer to a registration.
    pub async fn answered(&self, path: &str, answer: Response<Body>) -> Response<Body> {
        if path != "/api/workers/register" || !answer.status().is_success() {
            return answer;
        }
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        let registered: Value = serde_json::from_slice(&body).expect("JSON");
        *self.session.lock().expect("no panic while it is held") = registered["session"].as_str().map(str::to_owned);
        Response::from_parts(parts, body.into())
    }
}

/// Of the attempt that the query names, else of the job's newest.
async fn job_token(server: &Server, job: &JobId, query: &str) -> String {
    let named = query.split('&').find_map(|pair| pair.strip_prefix("attempt=")?.parse().ok().map(Attempt));
    let mut tx = server.app.core.read().await.expect("a database");
    let newest = tx.job(job).await.expect("readable").map(|job| job.attempt).unwrap_or_default();
    tokens::job_token(&server.app.core.job_token_key, job, named.unwrap_or(newest))
}

impl Server {
    /// Makes a worker that is registered and listens.
    pub async fn online(&self, name: &str) -> (String, By, Events) {
        let (id, key) = self.worker(name).await;
        self.register(&key, json!([])).await;
        let events = self.stream(&key).await;
        (id, key, events)
    }

    pub async fn register(&self, key: &By, attempts: Value) -> Value {
        let body =
            json!({"name": "x", "protocol": 1, "persistent": true, "accelerator_type": "cpu", "attempts": attempts});
        self.post(key, "/api/workers/register", body).await.ok(200)
    }

    pub async fn stream(&self, key: &By) -> Events {
        let answer = self.open(key, "GET", "/api/workers/stream", Body::empty()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        Events::of(answer)
    }

    /// Opens a worker's stream from this address.
    pub async fn stream_from(&self, key: &By, host: [u8; 4]) -> axum::response::Response {
        self.send_from(key, host, "GET", "/api/workers/stream", Body::empty()).await
    }

    /// Sends what a worker's agent sends, from this address.
    pub async fn send_from(
        &self,
        key: &By,
        host: [u8; 4],
        method: &str,
        path: &str,
        body: impl Into<Body>,
    ) -> axum::response::Response {
        let By::Worker(agent) = key else { panic!("only agents are told apart by where they are") };
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:8001");
        let (name, value) = agent.header(self, path).await;
        let request = request.header(name, value).extension(Peer(host.into()));
        agent.answered(path, self.send(request.body(body.into()).expect("a request")).await).await
    }

    pub async fn heartbeat(&self, key: &By, attempts: Value) -> Desired {
        let answer = self.post(key, "/api/workers/heartbeat", json!({"attempts": attempts})).await.ok(200);
        serde_json::from_value(answer["desired"].clone()).expect("a desired state")
    }

    pub async fn report(&self, key: &By, job: &str, report: Value) -> Answer {
        self.post(key, &format!("/api/workers/job/{job}/status"), report).await
    }
}
