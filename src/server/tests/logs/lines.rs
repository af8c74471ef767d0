//! Log lines and log search.

use std::fmt::Write;

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::time::Millis;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::tests::harness::{Actor, TestServer};
use crate::tests::logs::gaps::start_running_job;

pub(in crate::tests) async fn put(
    server: &TestServer,
    job: &str,
    token: &Actor,
    query: &str,
    text: impl Into<axum::body::Body>,
) {
    server.call(token, "PUT", &format!("/api/workers/job/{job}/logs?attempt=1&{query}"), text).await.expect_status(200);
}

/// Returns a log with this many numbered lines.
fn numbered_lines(lines: u64) -> String {
    (1..=lines).fold(String::new(), |mut text, number| {
        writeln!(text, "line {number}").expect("memory");
        text
    })
}

async fn get_lines(server: &TestServer, job: &str, query: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/queue/{job}/logs/lines?{query}")).await.expect_status(200)
}

async fn search_log(server: &TestServer, job: &str, query: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/queue/{job}/logs/search?{query}")).await.expect_status(200)
}

fn line_texts(response: &Value) -> Vec<&str> {
    response["lines"].as_array().expect("lines").iter().filter_map(|line| line["text"].as_str()).collect()
}

#[tokio::test]
async fn lines_of_a_growing_log_are_returned_by_number() {
    let (server, job, token) = start_running_job().await;
    let empty = get_lines(&server, &job, "").await;
    assert_eq!((&empty["total"], &empty["lines"], &empty["offset"]), (&json!(0), &json!([]), &Value::Null));
    let text = numbered_lines(50_000);
    put(&server, &job, &token, "offset=0", text.clone()).await;
    let page = get_lines(&server, &job, "attempt=1&from=40000&limit=3").await;
    assert_eq!(line_texts(&page), ["line 40000", "line 40001", "line 40002"]);
    assert_eq!((&page["from"], &page["total"], &page["open"]), (&json!(40_000), &json!(50_000), &json!(false)));
    let offset = usize::try_from(page["offset"].as_u64().expect("an offset")).expect("small");
    assert!(text[offset..].starts_with("line 40000\n"));
    let next_chunk = "10%\r20%\rdone\r\n\u{1b}[31mred\u{1b}[0m half";
    put(&server, &job, &token, &format!("offset={}", text.len()), next_chunk).await;
    let last = get_lines(&server, &job, "limit=2&q=D").await;
    assert_eq!(line_texts(&last), ["done", "\u{1b}[31mred\u{1b}[0m half"]);
    assert_eq!((&last["from"], &last["total"], &last["open"]), (&json!(50_001), &json!(50_002), &json!(true)));
    assert_eq!(last["lines"][1]["matches"], json!([[2, 3]]), "escape sequences for colors do not count");
    assert_eq!(get_lines(&server, &job, "from=0&limit=1").await["from"], 1);
    assert_eq!(get_lines(&server, &job, "from=99999999").await["lines"], json!([]));
    server
        .get(&Actor::Admin, &format!("/api/queue/{job}/logs/lines?attempt=2"))
        .await
        .expect_problem(404, "attempt_not_found");
}

#[tokio::test]
async fn arrival_of_each_line_is_returned_on_request() {
    let (server, job, token) = start_running_job().await;
    put(&server, &job, &token, "offset=0", "first\nsec").await;
    let before = get_lines(&server, &job, "times=true").await;
    let arrived = before["lines"][0]["arrived_at"].clone();
    assert!(arrived.as_str().is_some_and(|at| at.ends_with('Z')), "{before}");
    assert_eq!(get_lines(&server, &job, "").await["lines"][0].get("arrived_at"), None);
    server.advance(Millis::from_secs(5)).await;
    put(&server, &job, &token, "offset=9", "ond\n[rank1]: third\n").await;
    put(&server, &job, &token, "offset=9", "ond\n[rank1]: third\n").await;
    let after = get_lines(&server, &job, "times=true").await;
    assert_eq!((&after["lines"][0]["arrived_at"], &after["lines"][1]["arrived_at"]), (&arrived, &arrived));
    assert!(after["lines"][2]["arrived_at"].as_str() > arrived.as_str(), "{after}");
    let rank = get_lines(&server, &job, "times=true&rank=1").await;
    assert_eq!(rank["lines"][0]["arrived_at"], after["lines"][2]["arrived_at"]);
}

#[tokio::test]
async fn gap_is_a_line_and_numbers_match_the_download() {
    let (server, job, token) = start_running_job().await;
    put(&server, &job, &token, "offset=0", "before").await;
    put(&server, &job, &token, "offset=9000&dropped=8994", "after\n").await;
    let all = get_lines(&server, &job, "from=1").await;
    assert_eq!(line_texts(&all).len(), 3);
    assert_eq!((&all["lines"][1]["gap"], &all["lines"][2]["text"]), (&json!(8_994), &json!("after")));
    let raw = server.get(&Actor::Admin, &format!("/api/queue/{job}/logs?raw=1")).await.text();
    assert_eq!(raw.lines().position(|line| line == "after"), Some(2));
    assert_eq!(search_log(&server, &job, "q=missing").await["count"], 0, "texts that mark gaps are not searched");
}

#[tokio::test]
async fn log_is_searched_in_both_directions_and_counted() {
    let (server, job, token) = start_running_job().await;
    put(&server, &job, &token, "offset=0", numbered_lines(30_000)).await;
    let all = search_log(&server, &job, "q=LINE%20777&limit=2").await;
    let hits: Vec<_> = all["matches"].as_array().expect("matches").iter().map(|hit| hit["line"].as_u64()).collect();
    assert_eq!((hits, &all["next"], &all["total"]), (vec![Some(777), Some(7_770)], &json!(7_771), &json!(30_000)));
    assert_eq!(all["matches"][1]["text"], "line 7770");
    let before = search_log(&server, &job, "q=777&from=20000&backward=true&limit=1").await;
    assert_eq!((&before["matches"][0]["line"], &before["next"]), (&json!(19_777), &json!(19_776)));
    let counted = search_log(&server, &job, "q=777&limit=0&until=7771").await;
    assert_eq!((&counted["count"], &counted["matches"], &counted["next"]), (&json!(8), &json!([]), &Value::Null));
    assert_eq!(search_log(&server, &job, "q=LINE&case=true").await["count"], 0);
    assert_eq!(search_log(&server, &job, "q=%5Eline%20%5Cd%24&regex=true").await["count"], 9);
    let search = format!("/api/queue/{job}/logs/search");
    server.get(&Actor::Admin, &format!("{search}?q=a%28b&regex=true")).await.expect_problem(422, "invalid_pattern");
    server.get(&Actor::Admin, &format!("{search}?q=")).await.expect_problem(422, "out_of_range");
    server.get(&Actor::Admin, &search).await.expect_problem(400, "invalid_query");
}

#[tokio::test]
async fn expensive_pattern_is_rejected_and_lines_are_unmarked() {
    let (server, job, token) = start_running_job().await;
    // Random letters, each of which leads the matcher to a new state.
    let mut seed = 1_u32;
    let mut letter = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b"abcdefghijklmnopqrstuvwxyz "[usize::try_from((seed >> 16) % 27).expect("small")])
    };
    let text: String = (0..100).flat_map(|_| (0..8_000).map(|_| letter()).chain(['\n']).collect::<Vec<_>>()).collect();
    put(&server, &job, &token, "offset=0", text).await;
    let q = "q=%5Ba-z%5D%5Ba-z0-9%20%5D%7B600%7D%5BA-Z%5D&regex=true&case=true";
    let search = format!("/api/queue/{job}/logs/search?{q}");
    let rejected = server.get(&Actor::Admin, &search).await.expect_problem(422, "pattern_too_costly");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("smaller repetitions")), "{rejected}");
    let response = get_lines(&server, &job, &format!("{q}&from=1&limit=100")).await;
    assert_eq!(response["lines"].as_array().map(Vec::len), Some(100), "every line is returned");
    assert!(response["unmarked_from"].as_u64().is_some_and(|line| line >= 1), "{}", response["unmarked_from"]);
    assert_eq!(get_lines(&server, &job, "q=x&from=1&limit=100").await["unmarked_from"], Value::Null);
}

#[tokio::test]
async fn disconnect_stops_the_search_and_frees_its_slot() {
    let (server, job, _token) = start_running_job().await;
    let services = &server.app.services;
    let job = JobId::parse(&job).expect("an id");
    let (started, has_started) = oneshot::channel();
    // One of the user's two slots is held for the whole test.
    let _first_permit = services.logs.searches.acquire_search("ada").await;
    let permit = services.logs.searches.acquire_search("ada").await;
    let search = services.logs.read_log_lines(permit, &job, AttemptNumber(1), move |_, budget| {
        started.send(()).expect("the test waits for it");
        while !budget.is_exhausted() {
            std::thread::yield_now();
        }
        Ok(())
    });
    tokio::select! {
        _ = search => unreachable!("it stops after a disconnect"),
        started = has_started => started.expect("the search has started"),
    }
    let _next_permit = services.logs.searches.acquire_search("ada").await;
}
