//! The webhook, and who means it no good.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::files::AttemptDir;

fn short() -> WebhookBounds {
    let (idle, body_time) = (Duration::from_millis(100), Duration::from_millis(300));
    WebhookBounds { connections: 4, idle, body_time, body: 1_000, ..WebhookBounds::default() }
}

async fn listening(bounds: WebhookBounds) -> io::Result<(Listener, tempfile::TempDir)> {
    let temp = tempfile::tempdir()?;
    let events = Events::open(&AttemptDir::at(temp.path()), bounds.values)?;
    Ok((Listener::start(bounds, Secret::new("key"), events).await?, temp))
}

async fn connect(listener: &Listener) -> io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port())).await
}

/// Sends this, and reads all that comes until the connection is closed.
async fn told(listener: &Listener, request: &str) -> io::Result<String> {
    let mut stream = connect(listener).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // What was not read of the request can reset the connection behind the answer.
    while let Ok(1..) = stream.read_buf(&mut answer).await {}
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn post(more: &str, body: &str) -> String {
    let length = body.len();
    format!("POST / HTTP/1.1\r\nHost: h\r\nX-API-Key: key\r\nContent-Length: {length}\r\n{more}\r\n{body}")
}

#[tokio::test]
async fn silent_connections_do_not_keep_the_trainer_out() -> io::Result<()> {
    let (listener, temp) = listening(short()).await?;
    let mut silent = Vec::new();
    for _ in 0..3 * short().connections {
        silent.push(connect(&listener).await?);
    }
    let answer = told(&listener, &post("Connection: close\r\n", r#"{"type": "x"}"#)).await?;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert_eq!(std::fs::read_to_string(AttemptDir::at(temp.path()).events())?.lines().count(), 1);
    Ok(())
}

#[tokio::test]
async fn who_asks_nothing_more_is_let_go() -> io::Result<()> {
    let (listener, _temp) = listening(short()).await?;
    // Without `Connection: close`: it is the listener that ends it.
    let answer = told(&listener, &post("", r#"{"type": "x"}"#)).await?;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert_eq!(told(&listener, "POST / HTTP/1.1\r\nHo").await?, "", "half of a head");
    Ok(())
}

#[tokio::test]
async fn heads_and_bodies_have_a_limit() -> io::Result<()> {
    let (listener, _temp) = listening(short()).await?;
    let long = format!("X-Long: {}\r\n", "x".repeat(2 * short().head));
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
        let answer = told(&listener, &request).await?;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn strangers_hold_no_place_against_the_trainer() -> io::Result<()> {
    // They would keep theirs for longer than any test lasts.
    let bounds = WebhookBounds { idle: Duration::from_hours(1), ..short() };
    let (listener, _temp) = listening(bounds).await?;
    let refused = told(&listener, "GET / HTTP/1.1\r\nHost: h\r\n\r\n").await?;
    assert!(refused.starts_with("HTTP/1.1 405") && refused.contains("connection: close"), "{refused}");
    let mut known = connect(&listener).await?;
    known.write_all(post("", "{}").as_bytes()).await?;
    let mut answer = [0; 12];
    known.read_exact(&mut answer).await?;
    let mut silent = Vec::new();
    for _ in 0..3 * bounds.connections {
        silent.push(connect(&listener).await?);
    }
    let answer = told(&listener, &post("Connection: close\r\n", "{}")).await?;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    // Who has shown the key keeps its connection.
    known.write_all(post("Connection: close\r\n", "{}").as_bytes()).await?;
    let mut rest = String::new();
    known.read_to_string(&mut rest).await?;
    assert!(rest.contains("HTTP/1.1 204"), "{rest}");
    Ok(())
}
