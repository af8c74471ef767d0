//! The network between hosts and server. Each host has a link with a latency, faults, and two directions that can be
//! blocked. What is blocked is neither delivered nor rejected: only a timeout ends the wait.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use app::simulation;
use axum::body::Body;
use axum::http::{Request, Response, header};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use http_body_util::BodyExt;
use tokio::sync::{mpsc, oneshot};

use super::trace;
use crate::worker::api::{OrchestratorError, Transport};

/// How often a blocked link is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// When the kernel gives up a connection whose peer acknowledges nothing.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(1);

/// A request on its way to the server.
pub struct IncomingRequest {
    pub request: Request<Body>,
    pub reply: oneshot::Sender<Response<ResponseBody>>,
}

/// The parts of a response's body as they arrive; it ends with `None`, or is closed without it if the connection broke.
pub type ResponseBody = mpsc::UnboundedReceiver<Option<Bytes>>;

/// The state of one host's link.
#[derive(Debug, Clone, Copy, Default)]
pub struct Link {
    /// Nothing reaches the server.
    pub is_upstream_blocked: bool,
    /// Nothing reaches the host.
    pub is_downstream_blocked: bool,
    /// In ms, of each direction.
    pub max_latency: u64,
    /// How many of a thousand requests, and of a thousand responses, are lost.
    pub lost_per_mille: u64,
    /// How many of a thousand requests arrive twice.
    pub doubled_per_mille: u64,
}

#[derive(Default)]
pub struct Network {
    links: Mutex<BTreeMap<usize, Link>>,
    /// Where the server receives requests, while it runs.
    server: Mutex<Option<mpsc::UnboundedSender<IncomingRequest>>>,
}

/// Why there is no response.
#[derive(Debug, Clone, Copy)]
pub enum NoResponse {
    Refused,
    Reset,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn happens(per_mille: u64) -> bool {
    simulation::random_u64() % 1_000 < per_mille
}

impl Network {
    /// Connects a server, instead of any earlier one; `None`: no server runs.
    pub fn set_server(&self, server: Option<mpsc::UnboundedSender<IncomingRequest>>) {
        *lock(&self.server) = server;
    }

    /// Changes a host's link.
    pub fn change_link(&self, host: usize, change: impl FnOnce(&mut Link)) {
        change(lock(&self.links).entry(host).or_default());
    }

    fn link(&self, host: usize) -> Link {
        lock(&self.links).get(&host).copied().unwrap_or_default()
    }

    async fn latency(&self, host: usize) {
        let ms = simulation::random_u64() % (self.link(host).max_latency + 1);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Sends a request from a host. Without a response it waits for ever, as a request without a timeout does.
    pub async fn send(
        self: &Arc<Self>,
        host: usize,
        request: Request<Bytes>,
    ) -> Result<Response<ConnectionBody>, NoResponse> {
        self.latency(host).await;
        let link = self.link(host);
        if link.is_upstream_blocked || happens(link.lost_per_mille) {
            return std::future::pending().await;
        }
        if happens(link.doubled_per_mille) {
            drop(self.deliver(request.clone())?);
        }
        let response = self.deliver(request)?.await.map_err(|_| NoResponse::Reset)?;
        self.latency(host).await;
        let link = self.link(host);
        if link.is_downstream_blocked || happens(link.lost_per_mille) {
            return std::future::pending().await;
        }
        Ok(response.map(|body| ConnectionBody { network: Arc::clone(self), host, body }))
    }

    fn deliver(&self, request: Request<Bytes>) -> Result<oneshot::Receiver<Response<ResponseBody>>, NoResponse> {
        let server = lock(&self.server).clone().ok_or(NoResponse::Refused)?;
        let (reply, response) = oneshot::channel();
        let incoming = IncomingRequest { request: request.map(Body::from), reply };
        server.send(incoming).map_err(|_| NoResponse::Refused)?;
        Ok(response)
    }
}

/// A response's body as its host receives it.
pub struct ConnectionBody {
    network: Arc<Network>,
    host: usize,
    body: ResponseBody,
}

impl ConnectionBody {
    /// The next part; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let part = self.body.recv().await;
        let mut waited = Duration::ZERO;
        while self.network.link(self.host).is_downstream_blocked {
            if waited >= CONNECTION_TIMEOUT {
                return Err(io::ErrorKind::TimedOut.into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            waited += POLL_INTERVAL;
        }
        part.ok_or_else(|| io::ErrorKind::ConnectionReset.into())
    }

    fn into_stream(self) -> BoxStream<'static, io::Result<Bytes>> {
        Box::pin(stream::try_unfold(self, |mut body| async move { Ok(body.next().await?.map(|part| (part, body))) }))
    }

    /// All of it.
    pub async fn read(mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(part) = self.next().await? {
            all.extend_from_slice(&part);
        }
        Ok(all)
    }
}

/// An agent's way to the server.
pub struct HostTransport {
    pub network: Arc<Network>,
    pub host: usize,
}

impl fmt::Debug for HostTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "host {}", self.host)
    }
}

impl HostTransport {
    async fn exchange(&self, request: reqwest::Request) -> Result<reqwest::Response, OrchestratorError> {
        let name = format!("{} {}", request.method(), request.url().path());
        let request = into_relative(request).await.map_err(|error| OrchestratorError::transient(error.to_string()))?;
        let result = self.network.send(self.host, request).await;
        match result {
            Ok(response) => {
                trace::record(format_args!("host {} {name} {}", self.host, response.status()));
                let response = response.map(|body| reqwest::Body::wrap_stream(body.into_stream()));
                Ok(reqwest::Response::from(response))
            }
            Err(error) => {
                trace::record(format_args!("host {} {name} {error:?}", self.host));
                Err(OrchestratorError::transient(format!("{error:?}")))
            }
        }
    }
}

impl Transport for HostTransport {
    fn send(&self, request: reqwest::Request) -> BoxFuture<'_, Result<reqwest::Response, OrchestratorError>> {
        Box::pin(async move {
            let timeout = request.timeout().copied();
            let exchange = pin!(self.exchange(request));
            match timeout {
                None => exchange.await,
                Some(timeout) => tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| {
                    trace::record(format_args!("host {} gave up", self.host));
                    Err(OrchestratorError::transient("no response in time"))
                }),
            }
        })
    }
}

/// The request as a server receives it.
async fn into_relative(request: reqwest::Request) -> Result<Request<Bytes>, reqwest::Error> {
    let request: Request<reqwest::Body> = request.try_into()?;
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    if let Some(path) = parts.uri.path_and_query().cloned() {
        parts.uri = path.into();
    }
    parts.headers.insert(header::HOST, header::HeaderValue::from_static("server:8001"));
    parts.headers.insert(header::CONTENT_LENGTH, body.len().into());
    Ok(Request::from_parts(parts, body))
}
