//! The orchestrator as the agent sees it: one method per endpoint, and errors sorted by what to do about them.

mod error;
mod job;
mod lease;
mod retry;

use std::sync::Arc;
use std::time::Duration;

use app::protocol::worker::{Disconnect, Heartbeat, HeartbeatAnswer, Register, Registered};
use app::remote::{Trust, innermost};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::ApiError;
pub use job::{JobApi, Taken, Upload};
pub use lease::LeaseTimer;
pub use retry::{Online, until_answered};

use crate::config::{Config, is_local};
use crate::exit::Fatal;
use crate::secret::Secret;

/// Longest time for a short request and its answer.
const SHORT: Duration = Duration::from_secs(20);
/// How long `next` lets the server wait, in seconds.
const POLL_SECONDS: u64 = 25;
/// The header that carries the worker's token.
pub const WORKER_TOKEN: &str = "X-Worker-Token";

/// How an orchestrator is spoken to.
///
/// # Errors
/// If the certificates cannot be used.
pub fn client(trust: &Trust, url: &Url) -> Result<ClientBuilder, Fatal> {
    let builder = Client::builder()
        .user_agent(concat!("simpletuner-worker/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the token to wherever it leads.
        .redirect(redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_user_timeout(Duration::from_mins(1))
        .pool_max_idle_per_host(2)
        .http1_only();
    let builder = trust.apply(builder, url.scheme() == "https")?;
    // Else by the proxy that the usual variables name.
    Ok(if is_local(url) { builder.no_proxy() } else { builder })
}

/// The orchestrator.
#[derive(Debug, Clone)]
pub struct Api {
    http: Client,
    base: Url,
    token: Secret,
    /// What answers are worth.
    pub lease: Arc<LeaseTimer>,
}

impl Api {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// If the certificates cannot be used.
    pub fn new(config: &Config) -> Result<Self, Fatal> {
        let http = client(&config.trust, &config.url)?
            .build()
            .map_err(|error| Fatal::config(format!("cannot set up TLS: {}", innermost(&error))))?;
        Ok(Self { http, base: config.url.clone(), token: config.token.clone(), lease: Arc::default() })
    }

    /// Where a path that the server named is; it must be on the server itself.
    pub fn locate(&self, path: &str) -> Result<Url, ApiError> {
        self.base
            .join(path.trim_start_matches('/'))
            .ok()
            .filter(|url| url.origin() == self.base.origin())
            .ok_or_else(|| ApiError::Answer(format!("the orchestrator names the unusable address {path:?}")))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ApiError> {
        let sent = request.send().await.map_err(|error| ApiError::unreachable(&error, &self.base))?;
        if sent.status().is_success() { Ok(sent) } else { Err(ApiError::of(sent, &self.base).await) }
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ApiError> {
        let body =
            self.send(request).await?.bytes().await.map_err(|error| ApiError::unreachable(&error, &self.base))?;
        serde_json::from_slice(&body).map_err(|error| {
            ApiError::Answer(format!(
                "{} does not answer like an orchestrator ({error}); check --orchestrator-url",
                self.base
            ))
        })
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ApiError> {
        let url = self.locate(path)?;
        self.json(self.http.post(url).header(WORKER_TOKEN, self.token.header()).json(body).timeout(SHORT)).await
    }

    /// `POST /api/workers/register`.
    pub async fn register(&self, body: &Register) -> Result<Registered, ApiError> {
        self.post("api/workers/register", body).await
    }

    /// `POST /api/workers/heartbeat`.
    pub async fn heartbeat(&self, body: &Heartbeat) -> Result<HeartbeatAnswer, ApiError> {
        self.post("api/workers/heartbeat", body).await
    }

    /// `POST /api/workers/disconnect`.
    pub async fn disconnect(&self, body: &Disconnect) -> Result<(), ApiError> {
        self.post::<serde::de::IgnoredAny>("api/workers/disconnect", body).await.map(drop)
    }

    /// `GET /api/workers/next`: answers when there is news, or after a while.
    pub async fn next(&self) -> Result<HeartbeatAnswer, ApiError> {
        let mut url = self.locate("api/workers/next")?;
        url.set_query(Some(&format!("wait={POLL_SECONDS}")));
        let limit = Duration::from_secs(POLL_SECONDS) + SHORT;
        self.json(self.http.get(url).header(WORKER_TOKEN, self.token.header()).timeout(limit)).await
    }

    /// `GET /api/workers/stream`: the answer's body is the stream.
    pub async fn stream(&self) -> Result<Response, ApiError> {
        let url = self.locate("api/workers/stream")?;
        let request =
            self.http.get(url).header(WORKER_TOKEN, self.token.header()).header("Accept", "text/event-stream");
        // Only for the head of the answer; the body has no end.
        let sent = tokio::time::timeout(SHORT, self.send(request));
        sent.await.unwrap_or_else(|_| Err(ApiError::transient(format!("{} does not answer", self.base))))
    }
}
