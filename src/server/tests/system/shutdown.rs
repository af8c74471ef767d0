//! Shutdown of the server.

use std::sync::Arc;

use axum::body::Body;
use futures_util::StreamExt;
use futures_util::stream::iter;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::boot::connections::ConnectionLimiter;
use crate::boot::serve;
use crate::tests::harness::{Actor, TestServer};

const STREAMS: usize = 1_000;

/// Opens a worker's stream over a real socket; returns after its first event.
async fn open_worker_stream(server: &TestServer, address: std::net::SocketAddr, n: usize) -> BufReader<TcpStream> {
    let (_, key) = server.create_worker(&format!("gpu-{n}")).await;
    server.register(&key, serde_json::json!([])).await;
    let Actor::Worker(agent) = key else { panic!("a worker's key") };
    let session = agent.session().expect("a session");
    let mut socket = TcpStream::connect(address).await.expect("connected");
    let request = format!("GET /api/workers/stream HTTP/1.1\r\nhost: localhost\r\nx-worker-token: {session}\r\n\r\n");
    socket.write_all(request.as_bytes()).await.expect("sent");
    let (mut socket, mut line) = (BufReader::new(socket), String::new());
    while !line.starts_with("data: ") {
        line.clear();
        assert_ne!(socket.read_line(&mut line).await.expect("readable"), 0, "the stream ended");
    }
    socket
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_get_a_retry_time_and_end_at_shutdown() {
    // Both ends of each connection are in this process.
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(8_192).min(hard), hard).expect("within the hard limit");
    let server = TestServer::start_with(|policy| policy.max_streams = STREAMS).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (router, stop) = (server.router.clone(), server.app.shutdown.clone());
    let limiter = Arc::new(ConnectionLimiter::new(2_000, 2_000, Vec::new()));
    let server_task = tokio::spawn(async move { serve::serve(listener, router, None, &limiter, &stop).await });
    let streams: Vec<_> =
        iter((0..STREAMS).map(|n| open_worker_stream(&server, address, n))).buffer_unordered(64).collect().await;
    assert_eq!(server.app.services.context.notifier.stream_counts().workers, STREAMS);

    server.app.shutdown.cancel();
    for mut stream in streams {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.expect("an end without a reset");
        assert!(rest.contains("retry: ") && rest.contains(": the server stops"), "{rest}");
        assert!(rest.ends_with("0\r\n\r\n"), "the response is complete: {rest}");
    }
    server_task.await.expect("the server has ended");
    assert_eq!(server.app.services.context.notifier.stream_counts().workers, 0);
}

#[tokio::test]
async fn streams_of_browsers_and_long_polls_end_too() {
    let server = TestServer::start().await;
    let (_, key) = server.create_worker("gpu-1").await;
    server.register(&key, serde_json::json!([])).await;
    let browser = server.open(&Actor::Admin, "GET", "/api/events", Body::empty()).await;
    let polling = server.get(&key, "/api/workers/next?wait=60");
    let (poll_response, ()) = tokio::join!(polling, async { server.app.shutdown.cancel() });
    poll_response.expect_status(200);
    let text = crate::tests::harness::read_response(browser).await.text();
    assert!(text.contains(": the server stops"), "{text}");
}
