//! Floods of idle connections on real sockets do not affect other clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::header;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::boot::connections::ConnectionLimiter;
use crate::boot::serve::{ConnectionTimeouts, serve_with_timeouts};
use crate::clock::SystemClock;
use crate::tests::harness::{ADMIN, Actor, TestServer};
use crate::tests::system::tls::{connect_over, self_signed_certificate};
use crate::tls::Tls;

/// Limits of connections in total and per network.
const CONNECTION_LIMITS: (usize, usize) = (4_000, 2_000);
const HONEST_CLIENTS: usize = 200;
/// A timeout for honest clients, which share two cores with the flood and other tests.
const LONG_TIMEOUT: Duration = Duration::from_mins(5);
/// The address of the attacker; all of 127.0.0.0/8 is this host.
const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);

struct ServedEndpoint {
    address: SocketAddr,
    limiter: Arc<ConnectionLimiter>,
    stop: CancellationToken,
}

async fn serve(server: &TestServer, tls: Option<&Tls>, timeouts: ConnectionTimeouts) -> ServedEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = ServedEndpoint {
        address: listener.local_addr().expect("an address"),
        limiter: Arc::new(ConnectionLimiter::new(CONNECTION_LIMITS.0, CONNECTION_LIMITS.1, Vec::new())),
        stop: CancellationToken::new(),
    };
    let (router, tls) = (server.router.clone(), tls.map(Tls::acceptor));
    let (limiter, stop) = (Arc::clone(&endpoint.limiter), endpoint.stop.clone());
    tokio::spawn(async move { serve_with_timeouts(timeouts, listener, router, tls, &limiter, &stop).await });
    endpoint
}

async fn connect_from(host: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((host, 0).into()).expect("an address of this machine");
    socket.connect(to).await.expect("connected")
}

/// Opens connections of the attacker that send this beginning of a request.
async fn flood(endpoint: &ServedEndpoint, count: usize, request_start: &'static [u8]) -> Vec<TcpStream> {
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let mut socket = connect_from(ATTACKER, endpoint.address).await;
        // A connection over the limit may be closed already.
        let _ = socket.write_all(request_start).await;
        sockets.push(socket);
    }
    sockets
}

/// Sends a byte on each connection, so that it is not idle.
fn send_byte(sockets: &[TcpStream]) {
    for socket in sockets {
        let _ = socket.try_write(b"x");
    }
}

/// Returns whether the server has closed the connection.
fn is_closed(socket: &TcpStream) -> bool {
    !matches!(socket.try_read(&mut [0; 1_024]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Waits until the number of open connections matches.
async fn wait_until_open(limiter: &ConnectionLimiter, is_reached: impl Fn(usize) -> bool) {
    wait_until(|| is_reached(limiter.counts().0)).await;
}

async fn wait_until(is_reached: impl Fn() -> bool) {
    let waiting = async {
        while !is_reached() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("in time");
}

/// Returns the address of the n-th honest client.
fn client_address(n: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(n).expect("a few").to_be_bytes();
    Ipv4Addr::new(127, 0, 1 + high, 1 + low)
}

/// Returns the response of `GET /api/session` on a connection.
async fn fetch_session(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin) -> Value {
    let head =
        format!("GET /api/session HTTP/1.1\r\nhost: localhost:8001\r\nx-api-key: {ADMIN}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.flush().await.expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("a response, and the end of the connection");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    serde_json::from_str(response.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_are_served_during_a_flood() {
    let server = TestServer::start().await;
    let timeouts = ConnectionTimeouts { first_request: LONG_TIMEOUT, ..ConnectionTimeouts::default() };
    let endpoint = serve(&server, None, timeouts).await;
    let heads = flood(&endpoint, 1_500, b"GET / HTTP/1.1\r\nhost: localhost:8001\r\nx-slow: ").await;
    let body = b"POST /ui/login HTTP/1.1\r\nhost: localhost:8001\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 200000\r\n\r\nname=";
    let bodies = flood(&endpoint, 1_500, body).await;
    let flood_sockets: Vec<&TcpStream> = heads.iter().chain(&bodies).collect();
    wait_until_open(&endpoint.limiter, |open| open == CONNECTION_LIMITS.1).await;

    let clients = join_all(
        (0..HONEST_CLIENTS).map(async |n| fetch_session(connect_from(client_address(n), endpoint.address).await).await),
    );
    let sending = async {
        loop {
            send_byte(&heads);
            send_byte(&bodies);
            tokio::task::yield_now().await;
        }
    };
    let sessions = tokio::select! {
        sessions = clients => sessions,
        () = sending => unreachable!("it never ends"),
    };
    assert_eq!(sessions.len(), HONEST_CLIENTS);
    assert!(sessions.iter().all(|session| session["name"] == "admin"), "each got its response");
    let closed = flood_sockets.iter().filter(|socket| is_closed(socket)).count();
    assert!(closed >= 3_000 - CONNECTION_LIMITS.1, "the connections of a network are limited: {closed}");
    wait_until_open(&endpoint.limiter, |open| open <= CONNECTION_LIMITS.1).await;
    endpoint.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_are_closed() {
    let server = TestServer::start().await;
    let timeouts = ConnectionTimeouts { first_request: Duration::from_secs(2), ..ConnectionTimeouts::default() };
    let endpoint = serve(&server, None, timeouts).await;
    let silent = flood(&endpoint, 200, b"").await;
    let slow = flood(&endpoint, 200, b"GET / HTTP/1.1\r\nx-slow: ").await;
    // A connection that has sent a request may be idle for longer.
    let mut idle = connect_from(client_address(0), endpoint.address).await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost:8001\r\n\r\n").await.expect("sent");
    let mut response = [0; 12];
    idle.read_exact(&mut response).await.expect("a response");
    assert_eq!(&response, b"HTTP/1.1 200");
    wait_until_open(&endpoint.limiter, |open| open <= 1).await;
    wait_until(|| silent.iter().chain(&slow).all(is_closed)).await; // The client notices a little later.
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost:8001\r\nconnection: close\r\n\r\n").await.expect("sent");
    let mut rest = String::new();
    idle.read_to_string(&mut rest).await.expect("the end of the connection");
    assert!(rest.contains("HTTP/1.1 200"), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_handshakes_do_not_block_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let paths = self_signed_certificate(directory.path());
    let tls = Tls::open(paths.clone(), &SystemClock).expect("a certificate");
    let server = TestServer::start_with_tls(tls.clone()).await;
    let timeouts = ConnectionTimeouts {
        handshake: LONG_TIMEOUT,
        first_request: LONG_TIMEOUT,
        idle: LONG_TIMEOUT,
        ..ConnectionTimeouts::default()
    };
    let endpoint = serve(&server, Some(&tls), timeouts).await;
    // A few start TLS, most send nothing.
    let unfinished = flood(&endpoint, 500, b"\x16\x03\x01").await;
    let silent = flood(&endpoint, 2_000, b"").await;
    wait_until_open(&endpoint.limiter, |open| open == CONNECTION_LIMITS.1).await;
    let clients = (0..HONEST_CLIENTS).map(async |n| {
        let socket = connect_from(client_address(n), endpoint.address).await;
        fetch_session(connect_over(socket, &paths.chain, &["http/1.1"]).await.expect("a handshake")).await
    });
    let sessions = join_all(clients).await;
    assert!(sessions.iter().all(|session| session["name"] == "admin"), "each got its response");
    let closed = unfinished.iter().chain(&silent).filter(|socket| is_closed(socket)).count();
    assert_eq!(closed, 500, "connections over the limit are closed");
    endpoint.stop.cancel();
}

#[tokio::test]
async fn heads_and_urls_are_limited() {
    let server = TestServer::start().await;
    let endpoint = serve(&server, None, ConnectionTimeouts::default()).await;
    let send = async |request: String| {
        let mut socket = connect_from(client_address(0), endpoint.address).await;
        let _ = socket.write_all(request.as_bytes()).await;
        let mut response = [0; 12];
        socket.read_exact(&mut response).await.expect("a response");
        String::from_utf8_lossy(&response).into_owned()
    };
    let long = "x".repeat(200 << 10);
    assert_eq!(send(format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", &long[..65_600])).await, "HTTP/1.1 414");
    assert_eq!(send(format!("GET / HTTP/1.1\r\nhost: a\r\nx-long: {long}\r\n\r\n")).await, "HTTP/1.1 431");
    let many = "x-many: 1\r\n".repeat(200);
    assert_eq!(send(format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n")).await, "HTTP/1.1 431");
    assert_eq!(send("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()).await, "HTTP/1.1 200");
    // The connection reads ahead more than the limit of a head.
    let head = |bytes: usize| {
        let rest = "GET /healthz HTTP/1.1\r\nhost: a\r\nx-long: \r\n\r\n".len();
        format!("GET /healthz HTTP/1.1\r\nhost: a\r\nx-long: {}\r\n\r\n", "x".repeat(bytes - rest))
    };
    assert_eq!(send(head(64 << 10)).await, "HTTP/1.1 200");
    assert_eq!(send(head((64 << 10) + 1)).await, "HTTP/1.1 431");
    assert_eq!(send(head(100_000)).await, "HTTP/1.1 431");
}

/// The body never arrives; its announced length is enough.
#[tokio::test]
async fn announced_too_large_body_is_rejected_immediately() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    let routes: Vec<(&Actor, &str, String)> = vec![
        (&Actor::Admin, "POST", "/api/admin/workers".to_owned()),
        (&Actor::Admin, "PUT", "/api/configs/large".to_owned()),
        (&key, "POST", "/api/workers/heartbeat".to_owned()),
        (&token, "POST", format!("/api/workers/job/{job}/progress")),
        (&token, "PUT", format!("/api/workers/job/{job}/logs?attempt=1&offset=0")),
        (&token, "PUT", format!("/api/workers/job/{job}/artifacts/large.bin?attempt=1")),
        (&Actor::Unauthenticated, "POST", "/ui/login".to_owned()),
    ];
    for (actor, method, path) in routes {
        let response = server.call(actor, method, &path, body_of_length(1 << 40)).await;
        assert_eq!(response.status, 413, "{method} {path}: {}", response.text());
    }
}

/// A body that only announces its length.
fn body_of_length(length: u64) -> axum::body::Body {
    struct BodyWithSizeHint(u64);
    impl hyper::body::Body for BodyWithSizeHint {
        type Data = bytes::Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, Self::Error>>> {
            panic!("the body is not read")
        }

        fn size_hint(&self) -> hyper::body::SizeHint {
            hyper::body::SizeHint::with_exact(self.0)
        }
    }
    axum::body::Body::new(BodyWithSizeHint(length))
}

/// Sends too large bodies to all routes with a body. Uploads have their own limit.
#[tokio::test]
async fn every_route_that_takes_a_body_has_a_limit() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    let user = server.user_id("admin").await;
    let large = "x".repeat(17 << 20);
    let (admin, unauthenticated) = (Actor::Admin, Actor::Unauthenticated);
    let routes: Vec<(&Actor, &str, String)> = vec![
        (&admin, "POST", "/api/admin/workers".to_owned()),
        (&admin, "PATCH", format!("/api/admin/workers/{id}")),
        (&admin, "POST", format!("/api/admin/workers/{id}/drain")),
        (&admin, "POST", format!("/api/admin/workers/{id}/token")),
        (&admin, "POST", "/api/admin/users".to_owned()),
        (&admin, "PATCH", format!("/api/admin/users/{user}")),
        (&admin, "POST", format!("/api/admin/users/{user}/password")),
        (&admin, "POST", "/api/account/tokens".to_owned()),
        (&admin, "POST", "/api/account/password".to_owned()),
        (&admin, "POST", "/api/queue/submit".to_owned()),
        (&admin, "POST", format!("/api/queue/{job}/priority")),
        (&admin, "PUT", "/api/configs/large".to_owned()),
        (&key, "POST", "/api/workers/register".to_owned()),
        (&key, "POST", "/api/workers/heartbeat".to_owned()),
        (&key, "POST", "/api/workers/disconnect".to_owned()),
        (&token, "POST", format!("/api/workers/job/{job}/status")),
        (&token, "POST", format!("/api/workers/job/{job}/progress")),
        (&token, "PUT", format!("/api/workers/job/{job}/logs?attempt=1&offset=0")),
        (&token, "PUT", format!("/api/workers/job/{job}/artifacts/large.bin?attempt=1")),
        (&admin, "POST", "/ui/workers".to_owned()),
        (&admin, "POST", "/ui/jobs".to_owned()),
        (&admin, "POST", "/ui/account/tokens".to_owned()),
        (&admin, "POST", "/ui/account/password".to_owned()),
        (&unauthenticated, "POST", "/ui/login".to_owned()),
        (&unauthenticated, "POST", "/ui/setup".to_owned()),
        (&unauthenticated, "POST", "/ui/preferences".to_owned()),
        (&unauthenticated, "POST", "/ui/preferences".to_owned()),
    ];
    for (actor, method, path) in routes {
        let response = server.call(actor, method, &path, large.clone()).await;
        assert_eq!(response.status, 413, "{method} {path}: {}", response.text());
        assert!(response.headers.contains_key(header::CONTENT_TYPE));
    }
    let nested = "[".repeat(100_000);
    server.call(&admin, "POST", "/api/admin/workers", nested).await.expect_problem(400, "invalid_json");
}
