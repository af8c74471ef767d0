//! Accepts connections and answers them.
//!
//! Not by `axum::serve`: that copies every route for each connection and leaves no word in hyper's settings, which is
//! more than half of what a worker's idle stream cost.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use super::connections::Connections;
use crate::http::request::Peer;
use crate::tls::Tls;

/// How long requests that are under way may take when the server stops.
const DRAIN: Duration = Duration::from_secs(8);

/// How long a connection may take to say what it wants, the first time and between two requests. Longer than clients
/// keep an idle connection (reqwest 90 s, Firefox 115 s), so that it is not closed while they send.
const SILENCE: Duration = Duration::from_mins(2);

/// Without an acknowledgement for so long the other end is gone: a dead host's stream must not count as listening.
/// Pings make sure that there is something to acknowledge.
const UNACKNOWLEDGED: Duration = Duration::from_mins(1);

/// The most that a request's head may be, in bytes; more is answered with 431, and an address of its own with 414.
const LONGEST_HEAD: usize = 64 << 10;

/// How patient the server is with a new connection.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How long it may take to agree on a key.
    pub handshake: Duration,
    /// How long it may take to send the head of its first request: whoever connects has something to ask.
    pub first_request: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { handshake: Duration::from_secs(10), first_request: Duration::from_secs(30) }
    }
}

/// The first byte of whoever speaks TLS.
const TLS_HELLO: u8 = 0x16;

/// What is said to whoever does not.
const SPEAK_TLS: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,\"code\":\"speak_tls\",\
    \"detail\":\"This server speaks HTTPS: write https:// in place of http:// in its address.\"}";

/// Serves until the server is to stop, then waits for what is under way, but not for long.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<&Tls>,
    room: &Arc<Connections>,
    shutdown: &CancellationToken,
) {
    serve_within(Patience::default(), listener, router, tls.map(Tls::acceptor), room, shutdown).await;
}

/// The same with another patience.
pub async fn serve_within(
    patience: Patience,
    mut listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    room: &Arc<Connections>,
    shutdown: &CancellationToken,
) {
    let connections = TaskTracker::new();
    // The trait's method, which waits when there are too many open files.
    while let Some((socket, peer)) = shutdown.run_until_cancelled(Listener::accept(&mut listener)).await {
        // Whoever there is no room for is told by the end of the connection: an answer would take more room.
        let Some(admitted) = room.admit(peer.ip()) else { continue };
        if let Err(error) = set_options(&socket) {
            tracing::debug!(%error, "a connection without its options");
        }
        let (peer, router, shutdown) = (Peer(peer.ip()), router.clone(), shutdown.clone());
        // Tasks of two kinds, so that a plain connection has no room for TLS in it.
        match tls.clone() {
            None => connections.spawn(async move {
                connection(socket, peer, router, patience, shutdown).await;
                drop(admitted);
            }),
            Some(tls) => connections.spawn(async move {
                let _admitted = admitted;
                let agreed = tokio::time::timeout(patience.handshake, agree(&tls, socket));
                match shutdown.run_until_cancelled(agreed).await {
                    Some(Ok(Ok(stream))) => connection(stream, peer, router, patience, shutdown).await,
                    Some(Ok(Err(error))) => tracing::debug!(%error, host = %peer.0, "no TLS handshake"),
                    Some(Err(_)) => tracing::debug!(host = %peer.0, "a TLS handshake took too long"),
                    None => {}
                }
            }),
        };
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
}

/// The handshake. Who speaks plain HTTP is told so.
async fn agree(tls: &TlsAcceptor, mut socket: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
    let mut first = [TLS_HELLO];
    socket.peek(&mut first).await?;
    if first != [TLS_HELLO] {
        socket.write_all(SPEAK_TLS.as_bytes()).await?;
        socket.shutdown().await?;
        // What was not read would make the system take the answer back.
        tokio::io::copy(&mut socket, &mut tokio::io::sink()).await?;
        return Err(std::io::Error::other("the client speaks no TLS"));
    }
    tls.accept(socket).await
}

async fn connection<S>(socket: S, peer: Peer, router: Router, patience: Patience, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let asked = AtomicBool::new(false);
    let answer = service_fn(|mut request: Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        let is_long = head_length(&request) > LONGEST_HEAD;
        request.extensions_mut().insert(peer);
        let answer = (!is_long).then(|| router.clone().call(request));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => Ok(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response()),
            }
        }
    });
    let mut http = http1::Builder::new();
    let http = http.timer(TokioTimer::new()).header_read_timeout(SILENCE).max_buf_size(LONGEST_HEAD);
    let mut http = pin!(http.serve_connection(TokioIo::new(socket), answer));
    let mut first = pin!(tokio::time::sleep(patience.first_request));
    let mut waits = true;
    let ended = loop {
        tokio::select! {
            ended = http.as_mut() => break ended,
            () = shutdown.cancelled() => {
                http.as_mut().graceful_shutdown();
                break http.await;
            }
            () = first.as_mut(), if waits => {
                if !asked.load(Ordering::Relaxed) {
                    tracing::debug!(host = %peer.0, "a connection asked nothing for too long");
                    return;
                }
                waits = false;
            }
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended");
    }
}

/// How many bytes a request's head had. The connection reads ahead, and takes a head that is longer than its buffer.
fn head_length(request: &Request<Incoming>) -> usize {
    let uri = request.uri();
    let target = uri.path_and_query().map_or(1, |target| target.as_str().len());
    let host = uri.authority().map_or(0, |host| host.as_str().len() + "https://".len());
    let first = request.method().as_str().len() + host + target + "  HTTP/1.1\r\n\r\n".len();
    first
        + request
            .headers()
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
            .sum::<usize>()
}

fn set_options(socket: &TcpStream) -> std::io::Result<()> {
    // Events are small and must not wait for more.
    socket.set_nodelay(true)?;
    SockRef::from(socket).set_tcp_user_timeout(Some(UNACKNOWLEDGED))
}

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn what_is_under_way_is_answered_when_the_server_stops_and_what_is_idle_is_closed() {
        let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (asked, go_on) = (Arc::clone(&asked), Arc::clone(&go_on));
            async move |Extension(Peer(host)): Extension<Peer>| {
                asked.notify_one();
                go_on.notified().await;
                host.to_string()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shutdown = CancellationToken::new();
        let (stop, room) = (shutdown.clone(), Arc::new(Connections::new(9, 9, Vec::new())));
        let router = Router::new().route("/slow", get(slow));
        let server = tokio::spawn(async move { serve(listener, router, None, &room, &stop).await });

        let mut idle = TcpStream::connect(address).await.expect("connected");
        let mut busy = TcpStream::connect(address).await.expect("connected");
        busy.write_all(b"GET /slow HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("asked");
        asked.notified().await;
        shutdown.cancel();
        assert_eq!(idle.read_to_end(&mut Vec::new()).await.expect("an end"), 0);
        go_on.notify_one();
        let mut answer = String::new();
        busy.read_to_string(&mut answer).await.expect("an answer, and an end");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("127.0.0.1"), "{answer}");
        server.await.expect("the server ended");
    }

    #[tokio::test]
    async fn sockets_send_at_once_and_give_up_on_a_dead_host() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("connected");
        set_options(&socket).expect("options that this system knows");
        assert!(socket.nodelay().expect("an option"));
        assert_eq!(SockRef::from(&socket).tcp_user_timeout().expect("an option"), Some(UNACKNOWLEDGED));
    }
}
