//! HTTP/2 over TLS: one connection of a browser carries all of its streams.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::get;
use futures_util::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::boot::connections::ConnectionLimiter;
use crate::boot::serve::{ConnectionTimeouts, serve_with_timeouts};
use crate::tests::harness::{ADMIN, TestServer};
use crate::tests::system::tls::{connect_over, open, self_signed_certificate};
use crate::tls::{CertificatePaths, Tls};

type Sender = SendRequest<Empty<Bytes>>;

/// Serves on a port until the test ends.
async fn serve(router: Router, tls: &Tls, idle: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let acceptor = tls.acceptor();
    tokio::spawn(async move {
        let timeouts = ConnectionTimeouts { idle, ..ConnectionTimeouts::default() };
        let limiter = Arc::new(ConnectionLimiter::new(100, 100, Vec::new()));
        serve_with_timeouts(timeouts, listener, router, Some(acceptor), &limiter, &CancellationToken::new()).await;
    });
    address
}

/// Connects as browsers do; the task ends with the connection.
async fn connect(address: SocketAddr, trusted: &Path) -> (Sender, JoinHandle<hyper::Result<()>>) {
    let socket = TcpStream::connect(address).await.expect("connected");
    let stream = connect_over(socket, trusted, &["h2", "http/1.1"]).await.expect("a handshake");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let (sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("an HTTP/2 connection");
    (sender, tokio::spawn(connection))
}

fn request(path: &str) -> Request<Empty<Bytes>> {
    let request =
        Request::get(format!("https://localhost:8001{path}")).header("authorization", format!("Bearer {ADMIN}"));
    request.body(Empty::new()).expect("a request")
}

fn certificate() -> (TempDir, CertificatePaths, Tls) {
    let directory = TempDir::new().expect("a directory");
    let paths = self_signed_certificate(directory.path());
    let tls = open(&paths);
    (directory, paths, tls)
}

#[tokio::test]
async fn one_connection_carries_more_streams_than_http1_has_connections() {
    let (_directory, paths, tls) = certificate();
    let server = TestServer::start_with_tls(tls.clone()).await;
    let address = serve(server.router.clone(), &tls, Duration::from_mins(1)).await;
    let (mut sender, _connection) = connect(address, &paths.chain).await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        let response = sender.send_request(request("/api/events?topics=workers")).await.expect("a stream");
        assert_eq!(response.status(), StatusCode::OK);
        streams.push(response.into_body());
    }
    let session = sender.send_request(request("/api/session")).await.expect("a response");
    let body = session.into_body().collect().await.expect("a body").to_bytes();
    let session: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(session["base_url"], "https://localhost:8001", "the address comes without a Host header");
    server.create_worker("gpu-1").await;
    let notified = streams.iter_mut().map(async |stream| {
        let mut text = String::new();
        while !text.contains("workers") {
            let frame = stream.frame().await.expect("an open stream").expect("a frame");
            text.push_str(&String::from_utf8_lossy(frame.data_ref().expect("data")));
        }
    });
    join_all(notified).await;
}

#[tokio::test]
async fn address_and_host_header_must_agree() {
    let (_directory, paths, tls) = certificate();
    let server = TestServer::start_with_tls(tls.clone()).await;
    let address = serve(server.router.clone(), &tls, Duration::from_mins(1)).await;
    let (mut sender, _connection) = connect(address, &paths.chain).await;
    let mut status = async |host: &str| {
        let mut request = request("/healthz");
        request.headers_mut().insert("host", host.parse().expect("a value"));
        sender.send_request(request).await.expect("a response").status()
    };
    assert_eq!(status("localhost:8001").await, StatusCode::OK);
    assert_eq!(status("elsewhere.example").await, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn idle_connection_is_closed_and_one_with_an_open_stream_is_not() {
    let (_directory, paths, tls) = certificate();
    let proceed = Arc::new(Notify::new());
    let slow = {
        let proceed = Arc::clone(&proceed);
        async move || {
            let proceed = Arc::clone(&proceed);
            let chunks = futures_util::stream::unfold(0, move |n: u8| {
                let proceed = Arc::clone(&proceed);
                async move {
                    if n > 0 {
                        proceed.notified().await;
                    }
                    (n < 2).then(|| (Ok::<_, Infallible>(Bytes::from(vec![b'0' + n])), n + 1))
                }
            });
            Body::from_stream(chunks)
        }
    };
    let router = Router::new().route("/slow", get(slow)).route("/", get(async |_: HeaderMap| "hello"));
    let address = serve(router, &tls, Duration::from_millis(50)).await;
    let (mut busy, _busy_task) = connect(address, &paths.chain).await;
    let mut stream = busy.send_request(request("/slow")).await.expect("a response").into_body();
    assert_eq!(stream.frame().await.expect("a frame").expect("data").into_data().expect("data"), "0");
    // This connection is opened later and is idle, so the server closes it.
    let (mut idle, idle_task) = connect(address, &paths.chain).await;
    let hello = idle.send_request(request("/")).await.expect("a response");
    assert_eq!(hello.into_body().collect().await.expect("a body").to_bytes(), "hello");
    idle_task.await.expect("a task").expect("closed by the server");
    proceed.notify_one();
    assert_eq!(stream.frame().await.expect("a frame").expect("data").into_data().expect("data"), "1");
}

/// The payload of the ping by which hyper's `h2` waits for a client before it closes a connection.
const SHUTDOWN_PING: [u8; 8] = [0x0b, 0x7b, 0xa2, 0xf0, 0x8b, 0x9b, 0xfe, 0x54];

#[tokio::test]
async fn idle_connection_is_closed_although_its_client_does_not_agree() {
    const PREFACE_AND_SETTINGS: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    const PING: u8 = 6;
    let (_directory, paths, tls) = certificate();
    let address = serve(Router::new(), &tls, Duration::from_millis(50)).await;
    let socket = TcpStream::connect(address).await.expect("connected");
    let mut stream = connect_over(socket, &paths.chain, &["h2"]).await.expect("a handshake");
    stream.write_all(PREFACE_AND_SETTINGS).await.expect("sent");
    // Answers every keep-alive ping, but not the one before the server closes.
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).expect("small")];
        stream.read_exact(&mut payload).await.expect("a frame");
        if head[3] == PING && payload != SHUTDOWN_PING {
            head[4] = 1;
            stream.write_all(&head).await.expect("sent");
            stream.write_all(&payload).await.expect("sent");
        }
    }
}
