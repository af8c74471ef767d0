//! Logs of which a worker had to drop something: every reader is told, and none sees anything else in its place.

use app::protocol::queue::LogChunk;
use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use super::harness::{ADMIN, By, Events, Server};

/// A server with a running job; returns the job and its token.
async fn running() -> (Server, String, By) {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let token = By::Job(events.offer().await.upload_token);
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    (server, job, token)
}

fn path(job: &str, query: &str) -> String {
    format!("/api/workers/job/{job}/logs?attempt=1&{query}")
}

/// What stands where these many bytes are missing.
fn mark(bytes: u64) -> String {
    format!("\n[{bytes} bytes of this log are missing: the worker could not send them, and had no room to keep them]\n")
}

async fn follow(server: &Server, job: &str, resume: &str) -> Events {
    let request = Request::builder().uri(format!("/api/queue/{job}/logs?follow=1"));
    let request = request.header(header::AUTHORIZATION, format!("Bearer {ADMIN}")).header("last-event-id", resume);
    let request = request.header(header::HOST, "localhost:8001").body(Body::empty()).expect("a request");
    Events::of(server.send(request).await)
}

/// All that a stream tells, as text, and where it ended.
async fn told(events: &mut Events, until: u64) -> String {
    let mut text = String::new();
    loop {
        let piece: LogChunk = serde_json::from_value(events.next().await.expect("a piece")).expect("a piece");
        text.push_str(&piece.text);
        if piece.next_offset == until {
            return text;
        }
    }
}

#[tokio::test]
async fn every_reader_is_told_of_a_gap() {
    let (server, job, token) = running().await;
    let put = async |query: &str, text: &'static str| server.call(&token, "PUT", &path(&job, query), text).await;
    put("offset=0", "before\n").await.ok(200);
    let mut early = follow(&server, &job, "").await;
    assert_eq!(told(&mut early, 7).await, "before\n");
    for _ in 0..2 {
        assert_eq!(put("offset=9000&dropped=8993", "after €\n").await.ok(200)["durable"], 9_010, "and once");
    }
    let (rest, gap) = (format!("{}after €\n", mark(8_993)), mark(8_993));
    let whole = format!("before\n{rest}");
    assert_eq!(told(&mut early, 9_010).await, rest);
    assert_eq!(told(&mut follow(&server, &job, "").await, 9_010).await, whole);
    assert_eq!(told(&mut follow(&server, &job, "5000").await, 9_010).await, "after €\n", "from within it");
    assert_eq!(server.get(&By::Admin, &format!("/api/queue/{job}/logs?raw=1")).await.text(), whole);
    let get = async |query: &str| server.get(&By::Admin, &format!("/api/queue/{job}/logs{query}")).await.ok(200);
    let piece = get("?offset=0").await;
    let shown = (piece["text"].as_str(), &piece["next_offset"], &piece["size"]);
    assert_eq!(shown, (Some(format!("before\n{gap}").as_str()), &json!(9_000), &json!(9_010)));
    let tail = get("?limit=500").await;
    assert_eq!((&tail["text"], &tail["offset"]), (&json!("after €\n"), &json!(9_000)));
    assert_eq!(server.job(&job).await["attempts"][0]["log_bytes"], 9_010);
    let page = server.get(&By::Admin, &format!("/jobs/{job}")).await.text();
    assert!(page.contains("8993 bytes of this log are missing") && !page.contains('\0'), "the page says so");
}

#[tokio::test]
async fn a_character_that_a_gap_cut_looks_like_no_other_gap() {
    let (server, job, token) = running().await;
    let put = async |query: &str, bytes: &'static [u8]| server.call(&token, "PUT", &path(&job, query), bytes).await;
    put("offset=0", b"a\xe2").await.ok(200);
    put("offset=5000&dropped=4998", b"\x82\xacb").await.ok(200);
    let get = async |offset: &Value| {
        let path = format!("/api/queue/{job}/logs?offset={offset}");
        server.get(&By::Admin, &path).await.ok(200)
    };
    let first = get(&json!(0)).await;
    assert_eq!(first["next_offset"], 5_000);
    let second = get(&first["next_offset"]).await;
    assert_eq!((&second["offset"], &second["next_offset"]), (&json!(5_000), &json!(5_003)));
    assert!(second["text"].as_str().is_some_and(|text| text.ends_with('b')));
}

#[tokio::test]
async fn what_does_not_add_up_is_refused_and_changes_nothing() {
    let (server, job, token) = running().await;
    let put = async |query: &str| server.call(&token, "PUT", &path(&job, query), "x").await;
    put("offset=0").await.ok(200);
    for dropped in ["0", "4095", "10001"] {
        put(&format!("offset=10000&dropped={dropped}")).await.problem(422, "out_of_range");
    }
    put("offset=1099511627777&dropped=1099511627776").await.problem(422, "out_of_range");
    for dropped in [5_000, 10_000] {
        let problem = put(&format!("offset=10000&dropped={dropped}")).await.problem(409, "log_gap");
        assert_eq!(problem["durable"], 1);
    }
    let piece = server.get(&By::Admin, &format!("/api/queue/{job}/logs")).await.ok(200);
    assert_eq!((&piece["text"], &piece["size"]), (&json!("x"), &json!(1)));
    server.report(&token, &job, json!({"status": "completed"})).await.ok(200);
    put("offset=10000&dropped=9999").await.problem(409, "job_ended");
}
