//! Checks the connection to the orchestrator step by step, as the agent connects. Changes nothing there.

use std::net::SocketAddr;
use std::time::Duration;

use app::domain::time::Timestamp;
use app::remote::ServerTrust;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::tls::TlsInfo;
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::net::TcpStream;

use super::certificate::CertificateInfo;
use crate::worker::api::{OrchestratorError, WORKER_TOKEN_HEADER, http_client_builder};
use crate::worker::clock;
use crate::worker::config::is_local;
use crate::worker::exit::FatalError;
use crate::worker::secret::Secret;

/// Timeout of each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Max bytes read of a response.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Results of the steps. A step that was not reached is `None`.
#[derive(Debug, Clone, Default)]
pub struct ConnectionProbe {
    /// The proxy from the usual variables for this address, as `host:port`.
    pub proxy: Option<String>,
    /// The addresses of the first host.
    pub addresses: Option<Result<Vec<SocketAddr>, String>>,
    /// The address that accepts connections, or the last error.
    pub connection: Option<Result<SocketAddr, String>>,
    /// `GET /healthz`.
    pub health: Option<Result<ProbeResponse, ProbeError>>,
    /// `GET /api/workers/queue`, with the token.
    pub queue: Option<Result<ProbeResponse, String>>,
    /// The certificate that the orchestrator sent, trusted or not.
    pub certificate: Option<CertificateInfo>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ProbeResponse {
    pub status: u16,
    /// JSON, or null if it is invalid.
    pub body: Value,
    /// The target of a redirect.
    pub location: Option<String>,
    /// The server's time.
    pub date: Option<Timestamp>,
    /// The local time at which the response arrived.
    pub received_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeError {
    /// This host rejected the certificate.
    Untrusted(String),
    Network(String),
}

/// Runs the probe. Without a token it stops before the authenticated request.
///
/// # Errors
/// If the configured certificates cannot be used.
pub async fn probe(url: &Url, trust: &ServerTrust, token: Option<&Secret>) -> Result<ConnectionProbe, FatalError> {
    let client = build_client(trust, url)?;
    let mut probe = ConnectionProbe::default();
    let proxy = proxy_for(url);
    probe.proxy = proxy.as_ref().map(|proxy| {
        format!("{}:{}", proxy.host_str().unwrap_or_default(), proxy.port_or_known_default().unwrap_or_default())
    });
    let first_hop = proxy.unwrap_or_else(|| url.clone());
    let addresses = tokio::task::spawn_blocking(move || first_hop.socket_addrs(|| None));
    let addresses = match tokio::time::timeout(STEP_TIMEOUT, addresses).await {
        Ok(Ok(Ok(found))) => Ok(found),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no response in {} s", STEP_TIMEOUT.as_secs())),
    };
    if let Ok(found) = &addresses {
        probe.connection = Some(connect(found).await);
    }
    probe.addresses = Some(addresses);
    if !matches!(probe.connection, Some(Ok(_))) {
        return Ok(probe);
    }
    let (health, certificate) = fetch(&client, url, "healthz", None).await;
    probe.certificate = certificate;
    if let Err(ProbeError::Untrusted(_)) = &health {
        // Only to read the certificate: nothing secret is sent.
        probe.certificate = fetch(&build_client(&ServerTrust::AcceptAny, url)?, url, "healthz", None).await.1;
    }
    let is_healthy = health.is_ok();
    probe.health = Some(health);
    if let Some(token) = token.filter(|_| is_healthy) {
        let response = fetch(&client, url, "api/workers/queue", Some(token)).await.0;
        probe.queue = Some(response.map_err(|error| match error {
            ProbeError::Untrusted(sentence) | ProbeError::Network(sentence) => sentence,
        }));
    }
    Ok(probe)
}

fn build_client(trust: &ServerTrust, url: &Url) -> Result<Client, FatalError> {
    let builder = http_client_builder(trust, url)?.tls_info(true).timeout(STEP_TIMEOUT);
    builder
        .build()
        .map_err(|error| FatalError::config(format!("cannot set up TLS: {}", app::remote::root_cause(&error))))
}

/// The proxy that the agent's connections use, from the same variables.
fn proxy_for(url: &Url) -> Option<Url> {
    let target = url.as_str().parse().ok()?;
    let found = Matcher::from_env().intercept(&target).filter(|_| !is_local(url))?;
    Url::parse(&found.uri().to_string()).ok()
}

async fn connect(addresses: &[SocketAddr]) -> Result<SocketAddr, String> {
    let mut last_error = "the name has no address".to_owned();
    for address in addresses {
        match tokio::time::timeout(STEP_TIMEOUT / 2, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return Ok(*address),
            Ok(Err(error)) => last_error = format!("{address}: {error}"),
            Err(_) => last_error = format!("{address}: no response in {} s", (STEP_TIMEOUT / 2).as_secs()),
        }
    }
    Err(last_error)
}

async fn fetch(
    client: &Client,
    base: &Url,
    path: &str,
    token: Option<&Secret>,
) -> (Result<ProbeResponse, ProbeError>, Option<CertificateInfo>) {
    let Ok(url) = base.join(path) else { return (Err(ProbeError::Network("no such address".to_owned())), None) };
    let request = client.get(url);
    let request = match token {
        Some(token) => request.header(WORKER_TOKEN_HEADER, token.header()),
        None => request,
    };
    match request.send().await {
        Err(error) => (Err(classify_error(&error, base)), None),
        Ok(response) => {
            let peer_certificate = response.extensions().get::<TlsInfo>().and_then(TlsInfo::peer_certificate);
            let certificate = peer_certificate.and_then(CertificateInfo::parse);
            (read_response(response).await.map_err(|error| classify_error(&error, base)), certificate)
        }
    }
}

fn classify_error(error: &reqwest::Error, base: &Url) -> ProbeError {
    match OrchestratorError::unreachable(error, base) {
        OrchestratorError::UntrustedCertificate(sentence) => ProbeError::Untrusted(sentence),
        other => ProbeError::Network(other.to_string()),
    }
}

async fn read_response(mut response: Response) -> Result<ProbeResponse, reqwest::Error> {
    let received_at = clock::now();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (location, date) = (header("location"), header("date").as_deref().and_then(clock::parse_http_date));
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while body.len() < MAX_BODY_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(ProbeResponse { status, body: serde_json::from_slice(&body).unwrap_or_default(), location, date, received_at })
}
