//! The server's API as a script sees it: untyped JSON, so that the wire format is tested.

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use super::{ADMIN, wait_until};

/// Statuses after which nothing follows.
const TERMINAL_STATUSES: [&str; 3] = ["completed", "failed", "cancelled"];

/// The API of one server, as admin by default.
pub struct Api {
    http: Client,
    base: String,
    token: String,
}

impl Api {
    /// Creates a client of the server at this URL, without verifying its certificate.
    pub fn new(address: &str) -> Self {
        // Connections are not reused, because the server may be killed at any time.
        let http = Client::builder().no_proxy().pool_max_idle_per_host(0).tls_danger_accept_invalid_certs(true);
        Self { http: http.build().expect("a client"), base: address.to_owned(), token: ADMIN.to_owned() }
    }

    /// The same server with another API token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { http: self.http.clone(), base: self.base.clone(), token: token.to_owned() }
    }

    pub fn port(&self) -> u16 {
        self.base.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port")
    }

    /// Returns the URL for agents.
    pub fn url(&self) -> &str {
        &self.base
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> reqwest::Result<(StatusCode, Vec<u8>)> {
        let request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await?;
        Ok((response.status(), response.bytes().await?.to_vec()))
    }

    /// Sends a request; returns status and body, whatever they are.
    pub async fn request(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request_line = format!("{method} {path}");
        let (status, bytes) =
            self.send(method, path, body).await.unwrap_or_else(|error| panic!("{request_line}: {error}"));
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        (status.as_u16(), body)
    }

    async fn request_ok(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let request_line = format!("{method} {path}");
        let (status, body) = self.request(method, path, body).await;
        assert!((200..300).contains(&status), "{request_line} returned {status}: {body}");
        body
    }

    /// Sends a `GET`, which must succeed.
    pub async fn get(&self, path: &str) -> Value {
        self.request_ok(Method::GET, path, None).await
    }

    /// Sends a `POST`, which must succeed.
    pub async fn post(&self, path: &str, body: &Value) -> Value {
        self.request_ok(Method::POST, path, Some(body)).await
    }

    /// Sends a `PUT`, which must succeed.
    pub async fn put(&self, path: &str, body: &Value) -> Value {
        self.request_ok(Method::PUT, path, Some(body)).await
    }

    /// Sends a `GET`; returns `None` on any failure.
    pub async fn try_get(&self, path: &str) -> Option<Value> {
        let (status, bytes) = self.send(Method::GET, path, None).await.ok()?;
        if status.is_success() { serde_json::from_slice(&bytes).ok() } else { None }
    }

    /// Returns the bytes at a path.
    pub async fn get_bytes(&self, path: &str) -> Vec<u8> {
        let (status, bytes) =
            self.send(Method::GET, path, None).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(status.is_success(), "{path} returned {status}");
        bytes
    }

    /// Returns the text at a path for this `Accept` header.
    pub async fn get_text(&self, path: &str, accept: &str) -> String {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(&self.token).header("accept", accept);
        let response = request.send().await.and_then(reqwest::Response::error_for_status);
        response.unwrap_or_else(|error| panic!("{path}: {error}")).text().await.expect("text")
    }

    /// Submits a job; returns its id.
    pub async fn submit(&self, config: &str) -> String {
        self.submit_with(&json!({"config_name": config, "target": "worker"})).await
    }

    /// Submits a job with this body; returns its id.
    pub async fn submit_with(&self, body: &Value) -> String {
        let response = self.post("/api/queue/submit", body).await;
        response["job_id"].as_str().expect("a job id").to_owned()
    }

    /// Returns a job with its attempts.
    pub async fn job(&self, id: &str) -> Value {
        self.get(&format!("/api/queue/{id}")).await
    }

    /// Returns the checksum of the weights that a job has trained.
    pub async fn weights(&self, job: &str) -> Value {
        let page = self.get(&format!("/api/queue/{job}/artifacts")).await;
        let artifacts = page["artifacts"].as_array().expect("artifacts");
        let last = artifacts.iter().rfind(|artifact| artifact["kind"] == "final").expect("weights");
        last["sha256"].clone()
    }

    /// Waits until a job has a status; it must not end in another one.
    pub async fn wait_for_job(&self, id: &str, status: &str) -> Value {
        wait_until(&format!("job {id} to be {status}"), async || {
            let job = self.try_get(&format!("/api/queue/{id}")).await?;
            let current = job["status"].as_str().unwrap_or_default();
            assert!(
                current == status || !TERMINAL_STATUSES.contains(&current),
                "the job should become {status}, but is {job:#}"
            );
            (current == status).then_some(job)
        })
        .await
    }

    /// Waits until the server has this much log of a job's latest attempt.
    pub async fn wait_for_log(&self, id: &str, bytes: u64) {
        wait_until(&format!("{bytes} bytes of log of {id}"), async || {
            let log = self.try_get(&format!("/api/queue/{id}/logs?offset=0&limit=1")).await?;
            (log["size"].as_u64()? >= bytes).then_some(())
        })
        .await;
    }

    /// Returns the whole log of a job's latest attempt.
    pub async fn log(&self, id: &str) -> String {
        String::from_utf8(self.get_bytes(&format!("/api/queue/{id}/logs?raw=1")).await).expect("text")
    }

    /// Waits until a worker has a status.
    pub async fn wait_for_worker(&self, id: &str, status: &str) -> Value {
        wait_until(&format!("worker {id} to be {status}"), async || {
            let worker = self.try_get(&format!("/api/admin/workers/{id}")).await?;
            (worker["status"] == status).then_some(worker)
        })
        .await
    }

    /// Waits for the next contact of a worker.
    pub async fn wait_for_contact(&self, id: &str) {
        // Timestamps in this format sort like text.
        let server_time = self.get("/api/admin/workers").await["server_time"].as_str().expect("a time").to_owned();
        wait_until(&format!("worker {id} to contact the server"), async || {
            let worker = self.try_get(&format!("/api/admin/workers/{id}")).await?;
            (worker["last_heartbeat"].as_str()? > server_time.as_str()).then_some(())
        })
        .await;
    }
}
