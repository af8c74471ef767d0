//! The client of the orchestrator: one method per endpoint, and errors classified by how the agent handles them.

pub mod body;
mod error;
mod job;
mod lease;
mod retry;
mod transport;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use app::domain::ids::JobId;
use app::protocol::agents::{
    DisconnectRequest, HeartbeatRequest, HeartbeatResponse, RegisterRequest, RegisterResponse, StatusReport,
};
use app::remote::{ServerTrust, root_cause};
use bytes::Bytes;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::body::BodyError;
use self::transport::Network;
pub use error::OrchestratorError;
pub use job::{ChunkAck, FileUpload, JobApi};
pub use lease::LeaseTimer;
pub use retry::{ReconnectSignal, retry_until_answered};
pub use transport::Transport;

use crate::worker::args::input_limits::InputLimits;
use crate::worker::config::{AgentConfig, is_local};
use crate::worker::exit::FatalError;
use crate::worker::secret::{Secret, agent_secrets};

/// Idle connections that are kept for the next requests: as many as jobs that start or end at the same time need.
const MAX_IDLE_CONNECTIONS: usize = 16;
/// Timeout of a short request and its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the server may hold a long poll, in seconds.
const LONG_POLL_SECONDS: u64 = 25;
pub const WORKER_TOKEN_HEADER: &str = "X-Worker-Token";

/// The HTTP client settings for an orchestrator.
///
/// # Errors
/// If the certificates cannot be used.
pub fn http_client_builder(trust: &ServerTrust, url: &Url) -> Result<ClientBuilder, FatalError> {
    let builder = Client::builder()
        .user_agent(concat!("simpletuner-worker/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the token to another host.
        .redirect(redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_user_timeout(Duration::from_mins(1))
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .http1_only();
    let builder = trust.configure_client(builder, url.scheme() == "https")?;
    // Otherwise reqwest uses the proxy variables.
    Ok(if is_local(url) { builder.no_proxy() } else { builder })
}

#[derive(Debug, Clone)]
pub struct Api {
    /// Builds requests.
    http: Client,
    transport: Arc<dyn Transport>,
    base: Url,
    token: Secret,
    limits: InputLimits,
    /// The session that the registration returned for the token.
    session: Arc<Mutex<Option<Secret>>>,
    /// Renewed by the orchestrator's responses.
    pub lease: Arc<LeaseTimer>,
}

impl Api {
    /// Creates a client without sending anything.
    ///
    /// # Errors
    /// If the certificates cannot be used.
    pub fn new(config: &AgentConfig) -> Result<Self, FatalError> {
        let http = http_client_builder(&config.trust, &config.url)?
            .build()
            .map_err(|error| FatalError::config(format!("cannot set up TLS: {}", root_cause(&error))))?;
        let transport = Network { http: http.clone(), base: config.url.clone() };
        Ok(Self::with_transport(config, http, Arc::new(transport)))
    }

    fn with_transport(config: &AgentConfig, http: Client, transport: Arc<dyn Transport>) -> Self {
        Self {
            http,
            transport,
            base: config.url.clone(),
            token: config.token.clone(),
            limits: config.input_limits,
            session: Arc::default(),
            lease: Arc::default(),
        }
    }

    /// A client whose requests reach the orchestrator of a simulation.
    #[cfg(feature = "simulation")]
    pub fn simulated(config: &AgentConfig, transport: Arc<dyn Transport>) -> Self {
        Self::with_transport(config, Client::new(), transport)
    }

    /// Resolves a path that the server named. It must be on the server itself.
    pub fn resolve_url(&self, path: &str) -> Result<Url, OrchestratorError> {
        self.base.join(path.trim_start_matches('/')).ok().filter(|url| url.origin() == self.base.origin()).ok_or_else(
            || OrchestratorError::InvalidResponse(format!("the orchestrator sent the invalid address {path:?}")),
        )
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, OrchestratorError> {
        let request = request.build().map_err(|error| OrchestratorError::unreachable(&error, &self.base))?;
        let response = self.transport.send(request).await?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(OrchestratorError::from_response(response, &self.base, self.limits.max_error).await)
        }
    }

    async fn read(&self, response: Response, max_bytes: usize) -> Result<Bytes, OrchestratorError> {
        body::read_limited(response, max_bytes).await.map_err(|error| match error {
            BodyError::Network(error) => OrchestratorError::unreachable(&error, &self.base),
            error @ BodyError::TooLarge(_) => OrchestratorError::InvalidResponse(format!(
                "{} sent {error}, which no orchestrator sends; check --orchestrator-url",
                self.base
            )),
        })
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, OrchestratorError> {
        let body = self.read(self.send(request).await?, self.limits.max_answer).await?;
        serde_json::from_slice(&body).map_err(|error| {
            OrchestratorError::InvalidResponse(format!(
                "{} does not respond like an orchestrator ({error}); check --orchestrator-url",
                self.base
            ))
        })
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, OrchestratorError> {
        self.post_with_token(&self.active_token(), path, body).await
    }

    async fn post_with_token<T: DeserializeOwned>(
        &self,
        token: &Secret,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, OrchestratorError> {
        let url = self.resolve_url(path)?;
        self.json(self.http.post(url).header(WORKER_TOKEN_HEADER, token.header()).json(body).timeout(REQUEST_TIMEOUT))
            .await
    }

    /// The session, or the token if the orchestrator gives no session.
    fn active_token(&self) -> Secret {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.as_ref().unwrap_or(&self.token).clone()
    }

    /// `POST /api/workers/register`.
    pub async fn register(&self, body: &RegisterRequest) -> Result<RegisterResponse, OrchestratorError> {
        let response: RegisterResponse = self.post_with_token(&self.token, "api/workers/register", body).await?;
        let session = response.session.as_deref().map(Secret::new);
        session.iter().for_each(agent_secrets::add);
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        Ok(response)
    }

    /// `POST /api/workers/job/{id}/status` for an attempt of which this host has nothing, not even its token.
    pub async fn report_unknown_attempt(&self, job: &JobId, report: &StatusReport) -> Result<(), OrchestratorError> {
        self.post::<serde::de::IgnoredAny>(&format!("api/workers/job/{job}/status"), report).await.map(drop)
    }

    /// `POST /api/workers/heartbeat`.
    pub async fn heartbeat(&self, body: &HeartbeatRequest) -> Result<HeartbeatResponse, OrchestratorError> {
        self.post("api/workers/heartbeat", body).await
    }

    /// `POST /api/workers/disconnect`.
    pub async fn disconnect(&self, body: &DisconnectRequest) -> Result<(), OrchestratorError> {
        self.post::<serde::de::IgnoredAny>("api/workers/disconnect", body).await.map(drop)
    }

    /// `GET /api/workers/next`: a long poll; returns when there is an event, or after a while.
    pub async fn long_poll(&self) -> Result<HeartbeatResponse, OrchestratorError> {
        let mut url = self.resolve_url("api/workers/next")?;
        url.set_query(Some(&format!("wait={LONG_POLL_SECONDS}")));
        let limit = Duration::from_secs(LONG_POLL_SECONDS) + REQUEST_TIMEOUT;
        self.json(self.http.get(url).header(WORKER_TOKEN_HEADER, self.active_token().header()).timeout(limit)).await
    }

    /// `GET /api/workers/stream`: the response body is the event stream.
    pub async fn stream(&self) -> Result<Response, OrchestratorError> {
        let url = self.resolve_url("api/workers/stream")?;
        let request = self
            .http
            .get(url)
            .header(WORKER_TOKEN_HEADER, self.active_token().header())
            .header("Accept", "text/event-stream");
        // The timeout covers only the response headers; the body has no end.
        let response = tokio::time::timeout(REQUEST_TIMEOUT, self.send(request));
        response.await.unwrap_or_else(|_| Err(OrchestratorError::transient(format!("{} does not respond", self.base))))
    }
}
