//! The server's API as a script sees it: JSON without types, so that the wire itself is what is tested.

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use super::{ADMIN, until};

/// Statuses after which nothing follows.
const TERMINAL: [&str; 3] = ["completed", "failed", "cancelled"];

/// The API of one server, as its administrator unless made for somebody else.
pub struct Api {
    http: Client,
    base: String,
    token: String,
}

impl Api {
    /// Of the server at this address. Whether it is the right one is for agents to find out.
    pub fn new(address: &str) -> Self {
        // No connection is kept: the server behind it may be killed at any time.
        let http = Client::builder().no_proxy().pool_max_idle_per_host(0).tls_danger_accept_invalid_certs(true);
        Self { http: http.build().expect("a client"), base: address.to_owned(), token: ADMIN.to_owned() }
    }

    /// The same server for whoever has this API token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { http: self.http.clone(), base: self.base.clone(), token: token.to_owned() }
    }

    /// The port of the server.
    pub fn port(&self) -> u16 {
        self.base.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port")
    }

    /// The address under which agents reach the server.
    pub fn url(&self) -> &str {
        &self.base
    }

    async fn bytes_of(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> reqwest::Result<(StatusCode, Vec<u8>)> {
        let request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await?;
        Ok((answer.status(), answer.bytes().await?.to_vec()))
    }

    /// Asks; answers with status and body, whatever they are.
    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let asked = format!("{method} {path}");
        let (status, bytes) =
            self.bytes_of(method, path, body).await.unwrap_or_else(|error| panic!("{asked}: {error}"));
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        (status.as_u16(), body)
    }

    async fn must(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let asked = format!("{method} {path}");
        let (status, body) = self.ask(method, path, body).await;
        assert!((200..300).contains(&status), "{asked} was answered {status}: {body}");
        body
    }

    /// `GET`, which must succeed.
    pub async fn get(&self, path: &str) -> Value {
        self.must(Method::GET, path, None).await
    }

    /// `POST`, which must succeed.
    pub async fn post(&self, path: &str, body: &Value) -> Value {
        self.must(Method::POST, path, Some(body)).await
    }

    /// `PUT`, which must succeed.
    pub async fn put(&self, path: &str, body: &Value) -> Value {
        self.must(Method::PUT, path, Some(body)).await
    }

    /// `GET`; none if it fails in any way.
    pub async fn try_get(&self, path: &str) -> Option<Value> {
        let (status, bytes) = self.bytes_of(Method::GET, path, None).await.ok()?;
        if status.is_success() { serde_json::from_slice(&bytes).ok() } else { None }
    }

    /// The bytes behind a path.
    pub async fn bytes(&self, path: &str) -> Vec<u8> {
        let (status, bytes) =
            self.bytes_of(Method::GET, path, None).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(status.is_success(), "{path} was answered {status}");
        bytes
    }

    /// Submits a job; answers with its id.
    pub async fn submit(&self, config: &str) -> String {
        self.submit_with(&json!({"config_name": config, "target": "worker"})).await
    }

    /// The same with a body of one's own.
    pub async fn submit_with(&self, body: &Value) -> String {
        let answer = self.post("/api/queue/submit", body).await;
        answer["job_id"].as_str().expect("a job id").to_owned()
    }

    /// A job with its attempts.
    pub async fn job(&self, id: &str) -> Value {
        self.get(&format!("/api/queue/{id}")).await
    }

    /// Waits for a job to be in a status; it must not end in another one.
    pub async fn until_job(&self, id: &str, status: &str) -> Value {
        until(&format!("job {id} to be {status}"), async || {
            let job = self.try_get(&format!("/api/queue/{id}")).await?;
            let now = job["status"].as_str().unwrap_or_default();
            assert!(now == status || !TERMINAL.contains(&now), "the job should become {status}, but is {job:#}");
            (now == status).then_some(job)
        })
        .await
    }

    /// Waits for so much log of a job's newest attempt to be on the server.
    pub async fn until_log(&self, id: &str, bytes: u64) {
        until(&format!("{bytes} bytes of log of {id}"), async || {
            let log = self.try_get(&format!("/api/queue/{id}/logs?offset=0&limit=1")).await?;
            (log["size"].as_u64()? >= bytes).then_some(())
        })
        .await;
    }

    /// The whole log of a job's newest attempt.
    pub async fn log(&self, id: &str) -> String {
        String::from_utf8(self.bytes(&format!("/api/queue/{id}/logs?raw=1")).await).expect("text")
    }

    /// Waits for a worker to be in a status.
    pub async fn until_worker(&self, id: &str, status: &str) -> Value {
        until(&format!("worker {id} to be {status}"), async || {
            let worker = self.try_get(&format!("/api/admin/workers/{id}")).await?;
            (worker["status"] == status).then_some(worker)
        })
        .await
    }

    /// Waits for a worker to be heard of again.
    pub async fn until_heard_again(&self, id: &str) {
        // Moments of this form sort like text.
        let now = self.get("/api/admin/workers").await["server_time"].as_str().expect("a moment").to_owned();
        until(&format!("worker {id} to be heard of"), async || {
            let worker = self.try_get(&format!("/api/admin/workers/{id}")).await?;
            (worker["last_heartbeat"].as_str()? > now.as_str()).then_some(())
        })
        .await;
    }
}
