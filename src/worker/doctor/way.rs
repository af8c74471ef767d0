//! The way to the orchestrator, walked step by step as the agent walks it. Nothing is said that changes anything there.

use std::net::SocketAddr;
use std::time::Duration;

use app::domain::time::Timestamp;
use app::remote::Trust;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::tls::TlsInfo;
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::net::TcpStream;

use super::certificate::Certificate;
use crate::api::{ApiError, WORKER_TOKEN, client};
use crate::clock;
use crate::config::is_local;
use crate::exit::Fatal;
use crate::secret::Secret;

/// For each step.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most of an answer that is read, in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;

/// How far it went, and what was there. A step that was not reached is none.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// The proxy that the usual variables name for this address, as `host:port`.
    pub proxy: Option<String>,
    /// Where the first host is.
    pub names: Option<Result<Vec<SocketAddr>, String>>,
    /// Which of those takes connections, or what the last one says.
    pub connection: Option<Result<SocketAddr, String>>,
    /// `GET /healthz`.
    pub health: Option<Result<Heard, Unheard>>,
    /// `GET /api/workers/queue`, with the token.
    pub queue: Option<Result<Heard, String>>,
    /// What the orchestrator shows, trusted or not.
    pub certificate: Option<Certificate>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The HTTP status.
    pub status: u16,
    /// JSON, or null if it is none.
    pub body: Value,
    /// Where it sends us instead.
    pub location: Option<String>,
    /// The time there.
    pub date: Option<Timestamp>,
    /// The time here, when it came.
    pub at: Timestamp,
}

/// No answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unheard {
    /// The certificate was refused here.
    Untrusted(String),
    /// Something else.
    Network(String),
}

/// Walks it. Without a token it ends before the door.
///
/// # Errors
/// If the certificates that should be trusted cannot be used.
pub async fn walk(url: &Url, trust: &Trust, token: Option<&Secret>) -> Result<Way, Fatal> {
    let asking = build(trust, url)?;
    let mut way = Way::default();
    let proxy = proxy(url);
    way.proxy = proxy.as_ref().map(|proxy| {
        format!("{}:{}", proxy.host_str().unwrap_or_default(), proxy.port_or_known_default().unwrap_or_default())
    });
    let first = proxy.unwrap_or_else(|| url.clone());
    let names = tokio::task::spawn_blocking(move || first.socket_addrs(|| None));
    let names = match tokio::time::timeout(PATIENCE, names).await {
        Ok(Ok(Ok(found))) => Ok(found),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer in {} s", PATIENCE.as_secs())),
    };
    if let Ok(found) = &names {
        way.connection = Some(connect(found).await);
    }
    way.names = Some(names);
    if !matches!(way.connection, Some(Ok(_))) {
        return Ok(way);
    }
    let (health, certificate) = hear(&asking, url, "healthz", None).await;
    way.certificate = certificate;
    if let Err(Unheard::Untrusted(_)) = &health {
        // Only to say which certificate it is: nothing secret is told.
        way.certificate = hear(&build(&Trust::Anything, url)?, url, "healthz", None).await.1;
    }
    let heard = health.is_ok();
    way.health = Some(health);
    if let Some(token) = token.filter(|_| heard) {
        let answer = hear(&asking, url, "api/workers/queue", Some(token)).await.0;
        way.queue = Some(answer.map_err(|unheard| match unheard {
            Unheard::Untrusted(sentence) | Unheard::Network(sentence) => sentence,
        }));
    }
    Ok(way)
}

fn build(trust: &Trust, url: &Url) -> Result<Client, Fatal> {
    let builder = client(trust, url)?.tls_info(true).timeout(PATIENCE);
    builder.build().map_err(|error| Fatal::config(format!("cannot set up TLS: {}", app::remote::innermost(&error))))
}

/// The proxy that the agent's own connections take, by the same reading of the same variables.
fn proxy(url: &Url) -> Option<Url> {
    let target = url.as_str().parse().ok()?;
    let found = Matcher::from_env().intercept(&target).filter(|_| !is_local(url))?;
    Url::parse(&found.uri().to_string()).ok()
}

async fn connect(addresses: &[SocketAddr]) -> Result<SocketAddr, String> {
    let mut last = "the name has no address".to_owned();
    for address in addresses {
        match tokio::time::timeout(PATIENCE / 2, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return Ok(*address),
            Ok(Err(error)) => last = format!("{address}: {error}"),
            Err(_) => last = format!("{address}: no answer in {} s", (PATIENCE / 2).as_secs()),
        }
    }
    Err(last)
}

async fn hear(
    client: &Client,
    base: &Url,
    path: &str,
    token: Option<&Secret>,
) -> (Result<Heard, Unheard>, Option<Certificate>) {
    let Ok(url) = base.join(path) else { return (Err(Unheard::Network("no such address".to_owned())), None) };
    let request = client.get(url);
    let request = match token {
        Some(token) => request.header(WORKER_TOKEN, token.header()),
        None => request,
    };
    match request.send().await {
        Err(error) => (Err(unheard(&error, base)), None),
        Ok(response) => {
            let shown = response.extensions().get::<TlsInfo>().and_then(TlsInfo::peer_certificate);
            let certificate = shown.and_then(Certificate::read);
            (read(response).await.map_err(|error| unheard(&error, base)), certificate)
        }
    }
}

fn unheard(error: &reqwest::Error, base: &Url) -> Unheard {
    match ApiError::unreachable(error, base) {
        ApiError::Untrusted(sentence) => Unheard::Untrusted(sentence),
        other => Unheard::Network(other.to_string()),
    }
}

async fn read(mut response: Response) -> Result<Heard, reqwest::Error> {
    let at = clock::now();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (location, date) = (header("location"), header("date").as_deref().and_then(clock::http_date));
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while body.len() < LONGEST_ANSWER
        && let Some(piece) = response.chunk().await?
    {
        body.extend_from_slice(&piece);
    }
    Ok(Heard { status, body: serde_json::from_slice(&body).unwrap_or_default(), location, date, at })
}
