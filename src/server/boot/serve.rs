//! Accepts connections and serves requests.
//!
//! Not with `axum::serve`: it clones all routes per connection and does not expose hyper's settings, which is more than
//! half of the memory of a worker's idle stream.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use app::ui::prefs::Locale;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use super::client_socket::{ClientSocket, ReadTimeouts, StreamMark};
use super::connections::ConnectionLimiter;
use super::http2::{self, OpenRequests};
use crate::http::edge::request::Peer;
use crate::http::problem::ApiError;
use crate::tls::Tls;

/// How long running requests may take when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);

/// The time to send a request head on an open connection, the first and between requests. Longer than clients keep idle
/// connections (reqwest 90 s, Firefox 115 s), so that the server does not close one while they send.
const IDLE_TIMEOUT: Duration = Duration::from_mins(2);

/// Maximum size of a request head in bytes. A larger head gets 431, a longer URL 414.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Timeouts of a new connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionTimeouts {
    /// The time for the TLS handshake.
    pub handshake: Duration,
    /// The time to send the head of the first request.
    pub first_request: Duration,
    /// The time without a request after which an HTTP/2 connection is closed.
    pub idle: Duration,
    /// The time without an acknowledgement after which the connection is closed.
    pub read: ReadTimeouts,
}

impl Default for ConnectionTimeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(30),
            idle: IDLE_TIMEOUT,
            read: ReadTimeouts::default(),
        }
    }
}

/// The first byte of a TLS connection.
const TLS_HELLO: u8 = 0x16;

/// Returns the response to plain HTTP on a TLS port. The request is not read, so its language is unknown.
fn https_required_response() -> String {
    let document = serde_json::to_string(&ApiError::tls_required().to_problem(Locale::En)).unwrap_or_default();
    format!("HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close\r\n\r\n{document}")
}

/// Serves until shutdown, then waits for running requests, up to a limit.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<&Tls>,
    limiter: &Arc<ConnectionLimiter>,
    shutdown: &CancellationToken,
) {
    serve_with_timeouts(ConnectionTimeouts::default(), listener, router, tls.map(Tls::acceptor), limiter, shutdown)
        .await;
}

/// Like `serve`, with other timeouts.
pub async fn serve_with_timeouts(
    timeouts: ConnectionTimeouts,
    mut listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    limiter: &Arc<ConnectionLimiter>,
    shutdown: &CancellationToken,
) {
    let connections = TaskTracker::new();
    // The trait's method, which waits when too many files are open.
    while let Some((socket, peer)) = shutdown.run_until_cancelled(Listener::accept(&mut listener)).await {
        // Connections over the limit are closed without a response, which would cost more.
        let Some(permit) = limiter.try_acquire(peer.ip()) else { continue };
        let mark = StreamMark::default();
        let socket = ClientSocket::new(socket, timeouts.read, mark.clone());
        let (peer, router, shutdown) = (Peer(peer.ip()), router.clone(), shutdown.clone());
        // Separate tasks, so that a plain connection does not reserve the memory of TLS.
        match tls.clone() {
            None => connections.spawn(async move {
                serve_connection(HttpVersion::Http1, socket, mark, peer, router, timeouts, shutdown).await;
                drop(permit);
            }),
            Some(tls) => connections.spawn(async move {
                let _permit = permit;
                let handshake = tokio::time::timeout(timeouts.handshake, tls_handshake(&tls, socket));
                match shutdown.run_until_cancelled(handshake).await {
                    Some(Ok(Ok(stream))) => {
                        let version = HttpVersion::from_stream(&stream);
                        serve_connection(version, stream, mark, peer, router, timeouts, shutdown).await;
                    }
                    Some(Ok(Err(error))) => tracing::debug!(%error, host = %peer.0, "TLS handshake failed"),
                    Some(Err(_)) => tracing::debug!(host = %peer.0, "TLS handshake timed out"),
                    None => {}
                }
            }),
        };
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.wait()).await.is_err() {
        tracing::warn!("shutdown: some connections did not close in time");
    }
}

/// Performs the handshake. Plain HTTP gets an error response.
async fn tls_handshake(tls: &TlsAcceptor, mut socket: ClientSocket) -> std::io::Result<TlsStream<ClientSocket>> {
    let mut first = [TLS_HELLO];
    socket.peek(&mut first).await?;
    if first != [TLS_HELLO] {
        socket.write_all(https_required_response().as_bytes()).await?;
        socket.shutdown().await?;
        // Unread data would make the kernel reset the connection and drop the response.
        tokio::io::copy(&mut socket, &mut tokio::io::sink()).await?;
        return Err(std::io::Error::other("client does not use TLS"));
    }
    tls.accept(socket).await
}

/// The version of HTTP on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HttpVersion {
    Http1,
    Http2,
}

impl HttpVersion {
    /// The version that client and server agreed on in the handshake.
    fn from_stream(stream: &TlsStream<ClientSocket>) -> Self {
        if stream.get_ref().1.alpn_protocol() == Some(http2::ALPN) { Self::Http2 } else { Self::Http1 }
    }
}

async fn serve_connection<S>(
    version: HttpVersion,
    socket: S,
    mark: StreamMark,
    peer: Peer,
    router: Router,
    timeouts: ConnectionTimeouts,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let requests = OpenRequests::default();
    let service = {
        let requests = requests.clone();
        service_fn(move |mut request: Request<Incoming>| {
            let open = requests.start();
            let is_long = head_length(&request) > MAX_HEAD_BYTES;
            http2::add_host(&mut request);
            request.extensions_mut().insert(peer);
            let response = (!is_long).then(|| router.clone().call(request));
            let mark = mark.clone();
            async move {
                let response = match response {
                    Some(response) => response.await?,
                    None => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response(),
                };
                mark.set_for(&response);
                Ok::<_, Infallible>(match version {
                    HttpVersion::Http1 => response,
                    HttpVersion::Http2 => open.until_sent(response),
                })
            }
        })
    };
    let io = TokioIo::new(socket);
    let result = match version {
        HttpVersion::Http1 => {
            let mut http = http1::Builder::new();
            let http = http.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
            // hyper closes idle connections by itself.
            drive(http.serve_connection(io, service), &requests, timeouts, None, &shutdown).await
        }
        HttpVersion::Http2 => {
            let http = http2::builder(MAX_HEAD_BYTES).serve_connection(io, service);
            // Boxed, so that a connection with HTTP/1 does not reserve the memory of HTTP/2.
            Box::pin(drive(http, &requests, timeouts, Some(timeouts.idle), &shutdown)).await
        }
    };
    match result {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::trace!(%error, "connection closed"),
        None => tracing::debug!(host = %peer.0, "closing an idle connection"),
    }
}

/// Drives a connection until it ends. Returns none if it has to be closed because it is idle.
async fn drive<E>(
    connection: impl GracefulConnection<Error = E>,
    requests: &OpenRequests,
    timeouts: ConnectionTimeouts,
    idle: Option<Duration>,
    shutdown: &CancellationToken,
) -> Option<Result<(), E>> {
    let mut connection = pin!(connection);
    tokio::select! {
        result = connection.as_mut() => return Some(result),
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            return Some(connection.await);
        }
        () = first_request_timeout(requests, timeouts) => {}
        () = wait_until_idle(requests, idle) => {
            connection.as_mut().graceful_shutdown();
            // A client that does not answer would keep it open.
            return tokio::time::timeout(timeouts.idle, connection).await.ok();
        }
    }
    None
}

/// Returns if no request was sent in time.
async fn first_request_timeout(requests: &OpenRequests, timeouts: ConnectionTimeouts) {
    tokio::time::sleep(timeouts.first_request).await;
    if requests.started_if_idle() != Some(0) {
        std::future::pending::<()>().await;
    }
}

/// Returns when no request was open for this time, or up to twice as long; never without a limit.
async fn wait_until_idle(requests: &OpenRequests, idle: Option<Duration>) {
    let Some(idle) = idle else { return std::future::pending().await };
    let mut last = None;
    loop {
        tokio::time::sleep(idle).await;
        let started = requests.started_if_idle();
        if started.is_some() && started == last {
            return;
        }
        last = started;
    }
}

/// Returns the size of a request head. The connection reads ahead and accepts a head that is larger than its buffer.
fn head_length(request: &Request<Incoming>) -> usize {
    let uri = request.uri();
    let target = uri.path_and_query().map_or(1, |target| target.as_str().len());
    let host = uri.authority().map_or(0, |host| host.as_str().len() + "https://".len());
    let request_line = request.method().as_str().len() + host + target + "  HTTP/1.1\r\n\r\n".len();
    request_line
        + request
            .headers()
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
            .sum::<usize>()
}

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::body::Body;
    use axum::http::header::CONTENT_TYPE;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn shutdown_completes_requests_and_closes_idle_connections() {
        let (started, proceed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (started, proceed) = (Arc::clone(&started), Arc::clone(&proceed));
            async move |Extension(Peer(host)): Extension<Peer>| {
                started.notify_one();
                proceed.notified().await;
                host.to_string()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shutdown = CancellationToken::new();
        let (stop, limiter) = (shutdown.clone(), Arc::new(ConnectionLimiter::new(9, 9, Vec::new())));
        let router = Router::new().route("/slow", get(slow));
        let server = tokio::spawn(async move { serve(listener, router, None, &limiter, &stop).await });

        let mut idle = TcpStream::connect(address).await.expect("connected");
        let mut busy = TcpStream::connect(address).await.expect("connected");
        busy.write_all(b"GET /slow HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("sent");
        started.notified().await;
        shutdown.cancel();
        assert_eq!(idle.read_to_end(&mut Vec::new()).await.expect("an end"), 0);
        proceed.notify_one();
        let mut response = String::new();
        busy.read_to_string(&mut response).await.expect("a response, and the end of the connection");
        assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("127.0.0.1"), "{response}");
        server.await.expect("the server ended");
    }

    #[test]
    fn http1_connections_do_not_reserve_the_memory_of_http2() {
        let (socket, _) = tokio::io::duplex(1);
        let (peer, timeouts) = (Peer([127, 0, 0, 1].into()), ConnectionTimeouts::default());
        let shutdown = CancellationToken::new();
        let mark = StreamMark::default();
        let connection = serve_connection(HttpVersion::Http1, socket, mark, peer, Router::new(), timeouts, shutdown);
        let bytes = size_of_val(&connection);
        assert!(bytes < 2_560, "{bytes} bytes: how much is it for each of ten thousand streams?");
    }

    /// Signals when it is dropped.
    struct OnDrop(Arc<Notify>);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }

    #[tokio::test]
    async fn download_may_be_paused_for_longer_than_a_stream() {
        const FILE_BYTES: usize = 64 << 20; // more than the kernel buffers
        let stream_ended = Arc::new(Notify::new());
        let on_drop = Arc::clone(&stream_ended);
        let events = async move || {
            let ended = OnDrop(Arc::clone(&on_drop));
            let events = futures_util::stream::repeat_with(move || {
                let _until_dropped = &ended;
                Ok::<_, Infallible>(vec![b'\n'; 64 << 10])
            });
            ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events))
        };
        let router = Router::new().route("/file", get(async || vec![0; FILE_BYTES])).route("/events", get(events));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let read = ReadTimeouts { stream: Duration::from_secs(1), ..ReadTimeouts::default() };
        let timeouts = ConnectionTimeouts { read, ..ConnectionTimeouts::default() };
        let limiter = Arc::new(ConnectionLimiter::new(9, 9, Vec::new()));
        tokio::spawn(async move {
            serve_with_timeouts(timeouts, listener, router, None, &limiter, &CancellationToken::new()).await;
        });

        let request = async |path: &str| {
            let mut client = TcpStream::connect(address).await.expect("connected");
            let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
            client.write_all(head.as_bytes()).await.expect("sent");
            client
        };
        let (mut download, _stream) = (request("/file").await, request("/events").await);
        // Neither client reads.
        stream_ended.notified().await;
        let mut response = Vec::new();
        download.read_to_end(&mut response).await.expect("the whole response");
        assert!(response.len() > FILE_BYTES, "{} bytes", response.len());
    }
}
