//! Floods of connections that want nothing but to be there, on real sockets: honest clients are served all the same.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::header;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::harness::{ADMIN, By, Server};
use super::tls::{connect_over, own};
use crate::boot::connections::Connections;
use crate::boot::serve::{Patience, serve_within};
use crate::clock::SystemClock;
use crate::tls::Tls;

/// So many there may be at once, and of one network.
const ROOM: (usize, usize) = (4_000, 2_000);
const HONEST: usize = 200;
/// For the honest, who share two cores with the flood and with other tests.
const LONG: Duration = Duration::from_mins(5);
/// Whoever floods comes from here; everybody on 127.0.0.0/8 is this machine.
const FLOODER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);

struct Served {
    address: SocketAddr,
    room: Arc<Connections>,
    stop: CancellationToken,
}

async fn serve(server: &Server, tls: Option<&Tls>, patience: Patience) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let open = Served {
        address: listener.local_addr().expect("an address"),
        room: Arc::new(Connections::new(ROOM.0, ROOM.1, Vec::new())),
        stop: CancellationToken::new(),
    };
    let (router, tls) = (server.router.clone(), tls.map(Tls::acceptor));
    let (room, stop) = (Arc::clone(&open.room), open.stop.clone());
    tokio::spawn(async move { serve_within(patience, listener, router, tls, &room, &stop).await });
    open
}

async fn from(host: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((host, 0).into()).expect("an address of this machine");
    socket.connect(to).await.expect("connected")
}

/// Connections that begin like this, and go on with a byte now and then until they are told to stop or are closed.
async fn flood(at: &Served, number: usize, beginning: &'static [u8]) -> Vec<TcpStream> {
    let mut open = Vec::with_capacity(number);
    for _ in 0..number {
        let mut socket = from(FLOODER, at.address).await;
        // One that there is no room for may be closed already.
        let _ = socket.write_all(beginning).await;
        open.push(socket);
    }
    open
}

/// Keeps them from being silent.
fn dribble(sockets: &[TcpStream]) {
    for socket in sockets {
        let _ = socket.try_write(b"x");
    }
}

/// Whether the server has closed it.
fn is_closed(socket: &TcpStream) -> bool {
    !matches!(socket.try_read(&mut [0; 1_024]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Waits until that many are open.
async fn until_open(room: &Connections, so: impl Fn(usize) -> bool) {
    until(|| so(room.count().0)).await;
}

async fn until(so: impl Fn() -> bool) {
    let waiting = async {
        while !so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("in time");
}

/// The n-th honest client's own address.
fn honest(n: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(n).expect("a few").to_be_bytes();
    Ipv4Addr::new(127, 0, 1 + high, 1 + low)
}

/// What `GET /api/session` says on a connection.
async fn session(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin) -> Value {
    let head =
        format!("GET /api/session HTTP/1.1\r\nhost: localhost:8001\r\nx-api-key: {ADMIN}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.flush().await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer, and an end");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_honest_clients_are_served_in_a_flood_of_slow_ones() {
    let server = Server::start().await;
    let patience = Patience { first_request: LONG, ..Patience::default() };
    let open = serve(&server, None, patience).await;
    let heads = flood(&open, 1_500, b"GET / HTTP/1.1\r\nhost: localhost:8001\r\nx-slow: ").await;
    let body = b"POST /ui/login HTTP/1.1\r\nhost: localhost:8001\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 200000\r\n\r\nname=";
    let bodies = flood(&open, 1_500, body).await;
    let everybody: Vec<&TcpStream> = heads.iter().chain(&bodies).collect();
    until_open(&open.room, |open| open == ROOM.1).await;

    let clients = join_all((0..HONEST).map(async |n| session(from(honest(n), open.address).await).await));
    let dribbling = async {
        loop {
            dribble(&heads);
            dribble(&bodies);
            tokio::task::yield_now().await;
        }
    };
    let sessions = tokio::select! {
        sessions = clients => sessions,
        () = dribbling => unreachable!("it has no end"),
    };
    assert_eq!(sessions.len(), HONEST);
    assert!(sessions.iter().all(|session| session["name"] == "admin"), "each got its answer");
    let closed = everybody.iter().filter(|socket| is_closed(socket)).count();
    assert!(closed >= 3_000 - ROOM.1, "a network has its share, and no more: {closed}");
    until_open(&open.room, |open| open <= ROOM.1).await;
    open.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_nothing_is_let_go() {
    let server = Server::start().await;
    let patience = Patience { first_request: Duration::from_secs(2), ..Patience::default() };
    let open = serve(&server, None, patience).await;
    let silent = flood(&open, 200, b"").await;
    let slow = flood(&open, 200, b"GET / HTTP/1.1\r\nx-slow: ").await;
    // One that has asked may be silent for longer.
    let mut idle = from(honest(0), open.address).await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost:8001\r\n\r\n").await.expect("sent");
    let mut answer = [0; 12];
    idle.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
    until_open(&open.room, |open| open <= 1).await;
    until(|| silent.iter().chain(&slow).all(is_closed)).await; // the server's end is heard of a little later
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost:8001\r\nconnection: close\r\n\r\n").await.expect("sent");
    let mut rest = String::new();
    idle.read_to_string(&mut rest).await.expect("its end");
    assert!(rest.contains("HTTP/1.1 200"), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_that_never_end_keep_nobody_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let pair = own(directory.path());
    let tls = Tls::open(pair.clone(), &SystemClock).expect("a certificate");
    let server = Server::start_over(tls.clone()).await;
    let patience = Patience { handshake: LONG, first_request: LONG };
    let open = serve(&server, Some(&tls), patience).await;
    // A few say that they speak TLS, most say nothing at all.
    let begun = flood(&open, 500, b"\x16\x03\x01").await;
    let silent = flood(&open, 2_000, b"").await;
    until_open(&open.room, |open| open == ROOM.1).await;
    let clients = (0..HONEST).map(async |n| {
        let socket = from(honest(n), open.address).await;
        session(connect_over(socket, &pair.chain).await.expect("a handshake")).await
    });
    let sessions = join_all(clients).await;
    assert!(sessions.iter().all(|session| session["name"] == "admin"), "each got its answer");
    let closed = begun.iter().chain(&silent).filter(|socket| is_closed(socket)).count();
    assert_eq!(closed, 500, "those that there was no room for");
    open.stop.cancel();
}

#[tokio::test]
async fn heads_and_addresses_have_a_limit() {
    let server = Server::start().await;
    let open = serve(&server, None, Patience::default()).await;
    let ask = async |request: String| {
        let mut socket = from(honest(0), open.address).await;
        let _ = socket.write_all(request.as_bytes()).await;
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    };
    let long = "x".repeat(200 << 10);
    assert_eq!(ask(format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", &long[..65_600])).await, "HTTP/1.1 414");
    assert_eq!(ask(format!("GET / HTTP/1.1\r\nhost: a\r\nx-long: {long}\r\n\r\n")).await, "HTTP/1.1 431");
    let many = "x-many: 1\r\n".repeat(200);
    assert_eq!(ask(format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n")).await, "HTTP/1.1 431");
    assert_eq!(ask("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()).await, "HTTP/1.1 200");
    // What the connection reads ahead is more than a head may be.
    let head = |bytes: usize| {
        let rest = "GET /healthz HTTP/1.1\r\nhost: a\r\nx-long: \r\n\r\n".len();
        format!("GET /healthz HTTP/1.1\r\nhost: a\r\nx-long: {}\r\n\r\n", "x".repeat(bytes - rest))
    };
    assert_eq!(ask(head(64 << 10)).await, "HTTP/1.1 200");
    assert_eq!(ask(head((64 << 10) + 1)).await, "HTTP/1.1 431");
    assert_eq!(ask(head(100_000)).await, "HTTP/1.1 431");
}

/// The body never comes: the head says enough.
#[tokio::test]
async fn a_body_that_is_announced_as_too_large_is_refused_at_once() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let token = By::Job(events.offer().await.upload_token);
    let routes: Vec<(&By, &str, String)> = vec![
        (&By::Admin, "POST", "/api/admin/workers".to_owned()),
        (&By::Admin, "PUT", "/api/configs/large".to_owned()),
        (&key, "POST", "/api/workers/heartbeat".to_owned()),
        (&token, "POST", format!("/api/workers/job/{job}/progress")),
        (&token, "PUT", format!("/api/workers/job/{job}/logs?attempt=1&offset=0")),
        (&token, "PUT", format!("/api/workers/job/{job}/artifacts/large.bin?attempt=1")),
        (&By::Nobody, "POST", "/ui/login".to_owned()),
    ];
    for (by, method, path) in routes {
        let answer = server.call(by, method, &path, announced(1 << 40)).await;
        assert_eq!(answer.status, 413, "{method} {path}: {}", answer.text());
    }
}

/// A body of which nothing comes but its length.
fn announced(length: u64) -> axum::body::Body {
    struct Announced(u64);
    impl hyper::body::Body for Announced {
        type Data = bytes::Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, Self::Error>>> {
            panic!("nothing of it is read")
        }

        fn size_hint(&self) -> hyper::body::SizeHint {
            hyper::body::SizeHint::with_exact(self.0)
        }
    }
    axum::body::Body::new(Announced(length))
}

/// Every route that takes a body, and more than it takes. Uploads have a limit of their own.
#[tokio::test]
async fn every_route_that_takes_a_body_has_a_limit() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let token = By::Job(events.offer().await.upload_token);
    let user = server.id_of("admin").await;
    let large = "x".repeat(17 << 20);
    let (admin, nobody) = (By::Admin, By::Nobody);
    let routes: Vec<(&By, &str, String)> = vec![
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
        (&nobody, "POST", "/ui/login".to_owned()),
        (&nobody, "POST", "/ui/setup".to_owned()),
        (&nobody, "POST", "/ui/preferences".to_owned()),
        (&nobody, "POST", "/ui/preferences".to_owned()),
    ];
    for (by, method, path) in routes {
        let answer = server.call(by, method, &path, large.clone()).await;
        assert_eq!(answer.status, 413, "{method} {path}: {}", answer.text());
        assert!(answer.headers.contains_key(header::CONTENT_TYPE));
    }
    let nested = "[".repeat(100_000);
    server.call(&admin, "POST", "/api/admin/workers", nested).await.problem(400, "invalid_json");
}
