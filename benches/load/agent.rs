//! An agent without a trainer: it registers, listens, and sends the given reports.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::StreamExt;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::server::Server;

/// A registered worker and its session.
#[derive(Clone)]
pub struct Agent {
    http: Client,
    url: String,
    token: String,
    session: Arc<Mutex<String>>,
}

/// An offer, with the time of its arrival.
#[derive(Clone)]
pub struct Offer {
    pub job: String,
    pub attempt: u64,
    pub at: Instant,
}

impl Agent {
    /// Creates a worker and registers its agent.
    pub async fn new(server: &Server, name: &str) -> Self {
        let body = json!({"name": name, "worker_type": "persistent"});
        let created = server.api(Method::POST, "/api/admin/workers", Some(&body)).await;
        let token = created["token"].as_str().expect("a token").to_owned();
        let agent = Self { http: server.http.clone(), url: server.url.clone(), token, session: Arc::default() };
        agent.register(json!([])).await.expect("registered");
        agent
    }

    async fn post(&self, path: &str, body: &Value) -> reqwest::Result<StatusCode> {
        let request = self.http.post(format!("{}{path}", self.url)).header("x-worker-token", self.session()).json(body);
        let response = request.send().await?;
        let status = response.status();
        response.bytes().await?;
        Ok(status)
    }

    fn session(&self) -> String {
        self.session.lock().expect("no panic while it is held").clone()
    }

    async fn register_with(&self, body: &Value) -> reqwest::Result<StatusCode> {
        let url = format!("{}/api/workers/register", self.url);
        let response = self.http.post(url).header("x-worker-token", &self.token).json(body).send().await?;
        let status = response.status();
        let registered: Value = response.json().await?;
        if let Some(session) = registered["session"].as_str() {
            session.clone_into(&mut self.session.lock().expect("no panic while it is held"));
        }
        Ok(status)
    }

    pub async fn register(&self, attempts: Value) -> reqwest::Result<StatusCode> {
        let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "attempts": attempts});
        self.register_with(&body).await
    }

    /// Sends a heartbeat with this telemetry.
    pub async fn heartbeat(&self, telemetry: &Value) -> reqwest::Result<StatusCode> {
        self.post("/api/workers/heartbeat", &json!({"attempts": [], "telemetry": telemetry})).await
    }

    /// Registers again, with `gpus` GPUs.
    pub async fn register_gpus(&self, gpus: usize) -> reqwest::Result<StatusCode> {
        let gpu = |n: usize| json!({"index": n, "uuid": format!("GPU-{n}"), "name": "NVIDIA A100-SXM4-80GB", "vram_gb": 80.0});
        let gpus: Vec<Value> = (0..gpus).map(gpu).collect();
        let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus});
        self.register_with(&body).await
    }

    pub async fn report(&self, offer: &Offer, status: &str) -> reqwest::Result<StatusCode> {
        let path = format!("/api/workers/job/{}/status", offer.job);
        self.post(&path, &json!({"status": status, "attempt": offer.attempt})).await
    }

    /// Listens in a separate task until the server ends.
    pub fn offers(&self) -> UnboundedReceiver<Offer> {
        let (offers, receiver) = unbounded_channel();
        let agent = self.clone();
        tokio::spawn(async move { agent.listen(&offers).await });
        receiver
    }

    /// Opens the stream, and forwards offers until it ends.
    pub async fn listen(&self, offers: &UnboundedSender<Offer>) -> reqwest::Result<()> {
        let stream = self.http.get(format!("{}/api/workers/stream", self.url)).header("x-worker-token", self.session());
        let mut bytes = stream.send().await?.error_for_status()?.bytes_stream();
        let mut text = String::new();
        while let Some(chunk) = bytes.next().await {
            let at = Instant::now();
            text.push_str(&String::from_utf8_lossy(&chunk?));
            while let Some((event, rest)) = text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                let message: Value = data.and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
                text = rest.to_owned();
                if message["type"] == "job_submit" {
                    let job = message["job_id"].as_str().unwrap_or_default().to_owned();
                    // An error means that the receiver has ended.
                    let _ = offers.send(Offer { job, attempt: message["attempt"].as_u64().unwrap_or_default(), at });
                }
            }
        }
        Ok(())
    }
}
