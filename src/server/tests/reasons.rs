//! Why a job failed, wherever somebody asks.

use serde_json::{Value, json};

use super::harness::{By, Server};
use super::pages::{log_in, page};

const ERROR: &str = "ValueError: <no> images\nTraceback (most recent call last):\n  File \"train.py\", line 3, in main\n    read()\nValueError: <no> images";

fn failed(line: impl Into<Value>) -> Value {
    json!({"status": "failed", "attempt": 1, "error": ERROR, "error_line": line.into(), "exit_code": 1})
}

/// A server with a job that has failed so.
async fn with_failed(report: Value) -> (Server, String) {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, _events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    server.report(&key, &job, report).await.ok(200);
    (server, job)
}

#[tokio::test]
async fn an_attempt_keeps_the_line_that_says_why() {
    let (server, job) = with_failed(failed(70_123)).await;
    let view = server.job(&job).await;
    assert_eq!((&view["error"], &view["error_line"]), (&json!(ERROR), &json!(70_123)));
    assert_eq!((&view["attempts"][0]["error"], &view["attempts"][0]["error_line"]), (&json!(ERROR), &json!(70_123)));
    let listed = server.get(&By::Admin, "/api/queue?status=failed").await.ok(200);
    assert_eq!(listed["jobs"][0]["error_line"], 70_123);
}

#[tokio::test]
async fn a_line_that_cannot_be_is_none() {
    for line in [json!(0), json!(u64::MAX), Value::Null] {
        let (server, job) = with_failed(failed(line.clone())).await;
        let view = server.job(&job).await;
        assert_eq!((&view["error"], view.get("error_line")), (&json!(ERROR), None), "{line}");
    }
}

#[tokio::test]
async fn what_is_tried_again_says_why_too() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, _events) = server.online("gpu-1").await;
    let body = json!({"config_name": "digits", "target": "worker", "retry_on_failure": true});
    let submitted = server.post(&By::Admin, "/api/queue/submit", body).await.ok(201);
    let job = submitted["job_id"].as_str().expect("an id").to_owned();
    server.report(&key, &job, failed(12)).await.ok(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["error_line"]), (&json!("queued"), &json!(12)));
    assert_eq!(view["attempts"][0]["error"], ERROR);
    let shown = page(&server, &log_in(&server).await, &format!("/jobs/{job}")).await;
    assert!(shown.contains(&format!("href=\"/jobs/{job}/log?attempt=1&amp;line=12\"")), "{shown}");
}

#[tokio::test]
async fn pages_show_the_headline_and_lead_to_the_log() {
    let (server, job) = with_failed(failed(70_123)).await;
    let session = log_in(&server).await;
    let page = async |path: &str| page(&server, &session, path).await.replace("<!>", "");
    let shown = page(&format!("/jobs/{job}")).await;
    assert!(shown.contains("<p class=\"reason-head\">ValueError: &lt;no&gt; images</p>"), "{shown}");
    assert!(
        shown.contains("<code>Traceback (most recent call last):\n  File \"train.py\", line 3, in main\n"),
        "{shown}"
    );
    assert!(shown.contains(&format!("href=\"/jobs/{job}/log?attempt=1&amp;line=70123\"")), "{shown}");
    let list = page("/jobs?status=failed").await;
    assert!(list.contains("title=\"ValueError: &lt;no&gt; images\"") && !list.contains("line 3, in main</"), "{list}");
    let events = page(&format!("/jobs/{job}/events")).await;
    assert!(events.contains("ValueError: &lt;no&gt; images</p>"), "{events}");
}
