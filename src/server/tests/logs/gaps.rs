//! Logs with gaps: every reader sees the gap, and no other data in its place.

use app::protocol::jobs::LogChunk;
use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::files::log_gaps;
use crate::tests::harness::{ADMIN, Actor, EventStreamReader, TestServer};

/// A server with a running job; returns the job and its token.
pub(in crate::tests) async fn start_running_job() -> (TestServer, String, Actor) {
    start_running_job_on(TestServer::start().await).await
}

async fn start_running_job_on(server: TestServer) -> (TestServer, String, Actor) {
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    (server, job, token)
}

fn path(job: &str, query: &str) -> String {
    format!("/api/workers/job/{job}/logs?attempt=1&{query}")
}

/// Returns the text that marks a gap of this many bytes.
fn gap_marker(bytes: u64) -> String {
    format!("\n[{bytes} bytes of this log are missing: the worker could not send them, and had no room to keep them]\n")
}

async fn follow(server: &TestServer, job: &str, resume: &str) -> EventStreamReader {
    let request = Request::builder().uri(format!("/api/queue/{job}/logs?follow=1"));
    let request = request.header(header::AUTHORIZATION, format!("Bearer {ADMIN}")).header("last-event-id", resume);
    let request = request.header(header::HOST, "localhost:8001").body(Body::empty()).expect("a request");
    EventStreamReader::new(server.send(request).await)
}

/// Returns the text of a stream up to this offset.
async fn read_until(events: &mut EventStreamReader, until: u64) -> String {
    let mut text = String::new();
    loop {
        let chunk: LogChunk = serde_json::from_value(events.next().await.expect("a chunk")).expect("a chunk");
        text.push_str(&chunk.text);
        if chunk.next_offset == until {
            return text;
        }
    }
}

#[tokio::test]
async fn every_reader_sees_a_gap() {
    let (server, job, token) = start_running_job().await;
    let put = async |query: &str, text: &'static str| server.call(&token, "PUT", &path(&job, query), text).await;
    put("offset=0", "before\n").await.expect_status(200);
    let mut reader = follow(&server, &job, "").await;
    assert_eq!(read_until(&mut reader, 7).await, "before\n");
    for _ in 0..2 {
        assert_eq!(
            put("offset=9000&dropped=8993", "after €\n").await.expect_status(200)["durable"],
            9_010,
            "a repeated chunk is stored once"
        );
    }
    let (rest, gap) = (format!("{}after €\n", gap_marker(8_993)), gap_marker(8_993));
    let full_text = format!("before\n{rest}");
    assert_eq!(read_until(&mut reader, 9_010).await, rest);
    assert_eq!(read_until(&mut follow(&server, &job, "").await, 9_010).await, full_text);
    assert_eq!(
        read_until(&mut follow(&server, &job, "5000").await, 9_010).await,
        "after €\n",
        "from an offset within the gap"
    );
    assert_eq!(server.get(&Actor::Admin, &format!("/api/queue/{job}/logs?raw=1")).await.text(), full_text);
    let get = async |query: &str| {
        server.get(&Actor::Admin, &format!("/api/queue/{job}/logs{query}")).await.expect_status(200)
    };
    let chunk = get("?offset=0").await;
    let shown = (chunk["text"].as_str(), &chunk["next_offset"], &chunk["size"]);
    assert_eq!(shown, (Some(format!("before\n{gap}").as_str()), &json!(9_000), &json!(9_010)));
    let tail = get("?limit=500").await;
    assert_eq!((&tail["text"], &tail["offset"]), (&json!("after €\n"), &json!(9_000)));
    assert_eq!(server.job(&job).await["attempts"][0]["log_bytes"], 9_010);
    let page = server.get(&Actor::Admin, &format!("/jobs/{job}")).await.text();
    assert!(page.contains("8993 bytes of this log are missing") && !page.contains('\0'), "the page shows the gap");
}

#[tokio::test]
async fn character_cut_by_a_gap_is_no_other_gap() {
    let (server, job, token) = start_running_job().await;
    let put = async |query: &str, bytes: &'static [u8]| server.call(&token, "PUT", &path(&job, query), bytes).await;
    put("offset=0", b"a\xe2").await.expect_status(200);
    put("offset=5000&dropped=4998", b"\x82\xacb").await.expect_status(200);
    let get = async |offset: &Value| {
        let path = format!("/api/queue/{job}/logs?offset={offset}");
        server.get(&Actor::Admin, &path).await.expect_status(200)
    };
    let first = get(&json!(0)).await;
    assert_eq!(first["next_offset"], 5_000);
    let second = get(&first["next_offset"]).await;
    assert_eq!((&second["offset"], &second["next_offset"]), (&json!(5_000), &json!(5_003)));
    assert!(second["text"].as_str().is_some_and(|text| text.ends_with('b')));
}

#[tokio::test]
async fn inconsistent_gaps_are_rejected_and_change_nothing() {
    let (server, job, token) = start_running_job().await;
    let put = async |query: &str| server.call(&token, "PUT", &path(&job, query), "x").await;
    put("offset=0").await.expect_status(200);
    for dropped in ["0", "4095", "10001"] {
        put(&format!("offset=10000&dropped={dropped}")).await.expect_problem(422, "out_of_range");
    }
    for dropped in [5_000, 10_000] {
        let problem = put(&format!("offset=10000&dropped={dropped}")).await.expect_problem(409, "log_gap");
        assert_eq!(problem["durable"], 1);
    }
    let chunk = server.get(&Actor::Admin, &format!("/api/queue/{job}/logs")).await.expect_status(200);
    assert_eq!((&chunk["text"], &chunk["size"]), (&json!("x"), &json!(1)));
    server.report_status(&token, &job, json!({"status": "completed"})).await.expect_status(200);
    put("offset=10000&dropped=9999").await.expect_problem(409, "job_ended");
}

#[tokio::test]
async fn log_size_limit_includes_gaps_and_the_job_can_end() {
    let (server, job, token) =
        start_running_job_on(TestServer::start_with(|policy| policy.log_limit = 10_000).await).await;
    let put = async |query: &str| server.call(&token, "PUT", &path(&job, query), "12345").await;
    put("offset=0").await.expect_status(200);
    for query in ["offset=9996&dropped=9991", "offset=9996", "offset=18446744073709551615&dropped=9991"] {
        put(query).await.expect_problem(422, "too_large");
    }
    assert_eq!(server.job(&job).await["attempts"][0]["log_bytes"], 5, "rejected chunks do not count");
    put("offset=9995&dropped=9990").await.expect_status(200);
    server.report_status(&token, &job, json!({"status": "completed"})).await.expect_status(200);
    assert_eq!(server.job_status(&job).await, "completed");
}

#[tokio::test]
async fn gaps_per_log_are_limited() {
    let (server, job, token) = start_running_job().await;
    let put = async |query: &str, text: &'static str| server.call(&token, "PUT", &path(&job, query), text).await;
    put("offset=5000&dropped=5000", "x").await.expect_status(200);
    // Simulates a longer log with more gaps.
    let log = server.directory.path().join("logs").join(&job).join("1.log");
    let gap = |n: u64| format!("{{\"from\":{},\"to\":{}}}\n", n * 5_000, n * 5_000 + 4_999);
    let gap_lines: String = (0..log_gaps::MAX_GAPS as u64).map(gap).collect();
    std::fs::write(log.with_extension("log.gaps"), gap_lines).expect("a disk");
    let length = log_gaps::MAX_GAPS as u64 * 5_000;
    std::fs::File::options().write(true).open(&log).expect("a log").set_len(length).expect("a disk");
    let next = format!("offset={}&dropped=5000", length + 5_000);
    put(&next, "one too many").await.expect_problem(422, "too_large");
    let repeated = format!("offset={}&dropped=4999", length - 1);
    put(&repeated, "").await.expect_status(200);
    assert_eq!(put(&format!("offset={length}"), "further").await.expect_status(200)["durable"], length + 7);
}
