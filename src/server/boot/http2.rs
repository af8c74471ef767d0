//! Settings and limits of HTTP/2 connections, which browsers use over TLS: one of them carries all requests and streams
//! of a browser.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::Request;
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// ALPN's name of the protocol.
pub const ALPN: &[u8] = b"h2";

/// Maximum number of open requests on a connection; further ones wait in the browser.
const MAX_CONCURRENT_STREAMS: u32 = 64;
/// Bytes of bodies that a client may send ahead, per connection and per request.
const WINDOW_BYTES: (u32, u32) = (1 << 20, 256 << 10);
/// Bytes of a response that are buffered for a client that reads slowly.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// A client is pinged at this interval, and closed if it does not answer within it.
const PING_INTERVAL: Duration = Duration::from_secs(30);

pub fn builder(max_head_bytes: usize) -> http2::Builder<TokioExecutor> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .max_header_list_size(u32::try_from(max_head_bytes).unwrap_or(u32::MAX))
        .initial_connection_window_size(WINDOW_BYTES.0)
        .initial_stream_window_size(WINDOW_BYTES.1)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    http
}

/// Adds the `Host` header of HTTP/1.1, which HTTP/2 replaces by a part of the address.
pub fn add_host<B>(request: &mut Request<B>) {
    let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().entry(header::HOST).or_insert(host);
    }
}

/// The requests of a connection: how many came, and how many are open, until the last byte of their response.
#[derive(Debug, Clone, Default)]
pub struct OpenRequests(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    started: AtomicUsize,
    open: AtomicUsize,
}

/// Counts as open until it is dropped.
pub struct OpenRequest(Arc<Counts>);

impl OpenRequests {
    pub fn start(&self) -> OpenRequest {
        self.0.started.fetch_add(1, Ordering::Relaxed);
        self.0.open.fetch_add(1, Ordering::Relaxed);
        OpenRequest(Arc::clone(&self.0))
    }

    /// Number of requests so far; none while one is open.
    pub fn started_if_idle(&self) -> Option<usize> {
        (self.0.open.load(Ordering::Relaxed) == 0).then(|| self.0.started.load(Ordering::Relaxed))
    }
}

impl OpenRequest {
    /// Keeps the request open until the response's body was sent.
    pub fn until_sent(self, response: Response) -> Response {
        response.map(|body| Body::new(CountedBody { body, _open: self }))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

struct CountedBody {
    body: Body,
    _open: OpenRequest,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
