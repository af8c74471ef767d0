//! The orchestrator as the agent sees it: one method per endpoint, and errors sorted by what to do about them.

pub mod body;
mod error;
mod job;
mod lease;
mod retry;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use app::domain::ids::JobId;
use app::protocol::worker::{Disconnect, Heartbeat, HeartbeatAnswer, Register, Registered, StatusReport};
use app::remote::{Trust, innermost};
use bytes::Bytes;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::body::BodyError;
pub use error::ApiError;
pub use job::{JobApi, Taken, Upload};
pub use lease::LeaseTimer;
pub use retry::{Online, until_answered};

use crate::cli::bounds::Bounds;
use crate::config::{Config, is_local};
use crate::exit::Fatal;
use crate::secret::{Secret, own};

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
    bounds: Bounds,
    /// What the orchestrator gave for the token when this agent registered.
    session: Arc<Mutex<Option<Secret>>>,
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
        Ok(Self {
            http,
            base: config.url.clone(),
            token: config.token.clone(),
            bounds: config.bounds,
            session: Arc::default(),
            lease: Arc::default(),
        })
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
        if sent.status().is_success() {
            Ok(sent)
        } else {
            Err(ApiError::of(sent, &self.base, self.bounds.max_error).await)
        }
    }

    async fn read(&self, response: Response, most: usize) -> Result<Bytes, ApiError> {
        body::read(response, most).await.map_err(|error| match error {
            BodyError::Network(error) => ApiError::unreachable(&error, &self.base),
            error @ BodyError::TooLarge(_) => ApiError::Answer(format!(
                "{} gives {error}, which no orchestrator gives; check --orchestrator-url",
                self.base
            )),
        })
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ApiError> {
        let body = self.read(self.send(request).await?, self.bounds.max_answer).await?;
        serde_json::from_slice(&body).map_err(|error| {
            ApiError::Answer(format!(
                "{} does not answer like an orchestrator ({error}); check --orchestrator-url",
                self.base
            ))
        })
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ApiError> {
        self.post_by(&self.key(), path, body).await
    }

    async fn post_by<T: DeserializeOwned>(
        &self,
        key: &Secret,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let url = self.locate(path)?;
        self.json(self.http.post(url).header(WORKER_TOKEN, key.header()).json(body).timeout(SHORT)).await
    }

    /// What this agent shows: its session, or its token where the orchestrator gives no session.
    fn key(&self) -> Secret {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.as_ref().unwrap_or(&self.token).clone()
    }

    /// `POST /api/workers/register`.
    pub async fn register(&self, body: &Register) -> Result<Registered, ApiError> {
        let registered: Registered = self.post_by(&self.token, "api/workers/register", body).await?;
        let session = registered.session.as_deref().map(Secret::new);
        session.iter().for_each(own::hide);
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        Ok(registered)
    }

    /// `POST /api/workers/job/{id}/status` for an attempt of which this host has nothing, not even the token.
    pub async fn report_gone(&self, job: &JobId, report: &StatusReport) -> Result<(), ApiError> {
        self.post::<serde::de::IgnoredAny>(&format!("api/workers/job/{job}/status"), report).await.map(drop)
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
        self.json(self.http.get(url).header(WORKER_TOKEN, self.key().header()).timeout(limit)).await
    }

    /// `GET /api/workers/stream`: the answer's body is the stream.
    pub async fn stream(&self) -> Result<Response, ApiError> {
        let url = self.locate("api/workers/stream")?;
        let request =
            self.http.get(url).header(WORKER_TOKEN, self.key().header()).header("Accept", "text/event-stream");
        // Only for the head of the answer; the body has no end.
        let sent = tokio::time::timeout(SHORT, self.send(request));
        sent.await.unwrap_or_else(|_| Err(ApiError::transient(format!("{} does not answer", self.base))))
    }
}
