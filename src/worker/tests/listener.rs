//! The webhook, and malicious clients.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::worker::files::AttemptDir;

fn short_limits() -> WebhookLimits {
    let (idle, body_time) = (Duration::from_millis(100), Duration::from_millis(300));
    WebhookLimits { connections: 4, idle, body_time, body: 1_000, ..WebhookLimits::default() }
}

async fn start_listener(limits: WebhookLimits) -> io::Result<(WebhookListener, tempfile::TempDir)> {
    let temp = tempfile::tempdir()?;
    let events = EventRecorder::open(&AttemptDir::from_path(temp.path()), limits.values)?;
    Ok((WebhookListener::start(limits, Secret::new("key"), events).await?, temp))
}

async fn connect(listener: &WebhookListener) -> io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port())).await
}

/// Sends a request, and reads until the connection is closed.
async fn send_request(listener: &WebhookListener, request: &str) -> io::Result<String> {
    let mut stream = connect(listener).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    // Unread parts of the request can reset the connection after the response.
    while let Ok(1..) = stream.read_buf(&mut response).await {}
    Ok(String::from_utf8_lossy(&response).into_owned())
}

fn post(headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST / HTTP/1.1\r\nHost: h\r\nX-API-Key: key\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
}

#[tokio::test]
async fn silent_connections_do_not_keep_the_trainer_out() -> io::Result<()> {
    let (listener, temp) = start_listener(short_limits()).await?;
    let mut silent = Vec::new();
    for _ in 0..3 * short_limits().connections {
        silent.push(connect(&listener).await?);
    }
    let response = send_request(&listener, &post("Connection: close\r\n", r#"{"type": "x"}"#)).await?;
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    assert_eq!(std::fs::read_to_string(AttemptDir::from_path(temp.path()).events_path())?.lines().count(), 1);
    Ok(())
}

#[tokio::test]
async fn idle_connections_are_closed() -> io::Result<()> {
    let (listener, _temp) = start_listener(short_limits()).await?;
    // Without `Connection: close`: the listener itself closes it.
    let response = send_request(&listener, &post("", r#"{"type": "x"}"#)).await?;
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    assert_eq!(send_request(&listener, "POST / HTTP/1.1\r\nHo").await?, "", "an incomplete head");
    Ok(())
}

#[tokio::test]
async fn request_heads_and_bodies_are_limited() -> io::Result<()> {
    let (listener, _temp) = start_listener(short_limits()).await?;
    let long = format!("X-Long: {}\r\n", "x".repeat(2 * short_limits().head));
    for (request, status) in [
        (post(&long, "{}"), "431"),
        (post("", &"x".repeat(1_001)), "413"),
        (post("", "{}").replace("Content-Length: 2", "Content-Length: 1000000000000"), "413"),
        (post("", "{}").replace("Content-Length: 2", "Content-Length: 3"), "408"),
        (
            post("", "{}")
                .replace("Content-Length: 2\r\n", "Transfer-Encoding: chunked\r\n")
                .replace("{}", &format!("3e9\r\n{}\r\n", "x".repeat(1_001))),
            "413",
        ),
        (post("", "{}").replace("X-API-Key: key", "X-API-Key: guess"), "401"),
    ] {
        let response = send_request(&listener, &request).await?;
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {response:?}");
    }
    Ok(())
}

#[tokio::test]
async fn unauthenticated_connections_make_room_for_the_trainer() -> io::Result<()> {
    // They would keep theirs for longer than any test lasts.
    let limits = WebhookLimits { idle: Duration::from_hours(1), ..short_limits() };
    let (listener, _temp) = start_listener(limits).await?;
    let rejected = send_request(&listener, "GET / HTTP/1.1\r\nHost: h\r\n\r\n").await?;
    assert!(rejected.starts_with("HTTP/1.1 405") && rejected.contains("connection: close"), "{rejected}");
    let mut authenticated = connect(&listener).await?;
    authenticated.write_all(post("", "{}").as_bytes()).await?;
    let mut response = [0; 12];
    authenticated.read_exact(&mut response).await?;
    let mut silent = Vec::new();
    for _ in 0..3 * limits.connections {
        silent.push(connect(&listener).await?);
    }
    let response = send_request(&listener, &post("Connection: close\r\n", "{}")).await?;
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    // A client that has sent the key keeps its connection.
    authenticated.write_all(post("Connection: close\r\n", "{}").as_bytes()).await?;
    let mut rest = String::new();
    authenticated.read_to_string(&mut rest).await?;
    assert!(rest.contains("HTTP/1.1 204"), "{rest}");
    Ok(())
}

#[tokio::test]
async fn requests_that_wait_to_be_accepted_are_recorded() -> io::Result<()> {
    let (listener, temp) = start_listener(short_limits()).await?;
    // Nothing is accepted meanwhile, because the listener's task needs this thread.
    for _ in 0..3 {
        let mut stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port()))?;
        io::Write::write_all(&mut stream, post("Connection: close\r\n", r#"{"type": "x"}"#).as_bytes())?;
    }
    listener.finish().await;
    assert_eq!(std::fs::read_to_string(AttemptDir::from_path(temp.path()).events_path())?.lines().count(), 3);
    Ok(())
}
