//! Every view shows why a job failed.

use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};
use crate::tests::ui::pages::{log_in, page};

const ERROR: &str = "ValueError: <no> images\nTraceback (most recent call last):\n  File \"train.py\", line 3, in main\n    read()\nValueError: <no> images";

fn failed_report(line: impl Into<Value>) -> Value {
    json!({"status": "failed", "attempt": 1, "error": ERROR, "error_line": line.into(), "exit_code": 1})
}

/// A server with a job that has failed with this report.
async fn start_with_failed_job(report: Value) -> (TestServer, String) {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, _events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    server.report_status(&key, &job, report).await.expect_status(200);
    (server, job)
}

#[tokio::test]
async fn attempt_stores_the_error_line() {
    let (server, job) = start_with_failed_job(failed_report(70_123)).await;
    let view = server.job(&job).await;
    assert_eq!((&view["error"], &view["error_line"]), (&json!(ERROR), &json!(70_123)));
    assert_eq!((&view["attempts"][0]["error"], &view["attempts"][0]["error_line"]), (&json!(ERROR), &json!(70_123)));
    let list = server.get(&Actor::Admin, "/api/queue?status=failed").await.expect_status(200);
    assert_eq!(list["jobs"][0]["error_line"], 70_123);
}

#[tokio::test]
async fn invalid_error_line_is_ignored() {
    for line in [json!(0), json!(u64::MAX), Value::Null] {
        let (server, job) = start_with_failed_job(failed_report(line.clone())).await;
        let view = server.job(&job).await;
        assert_eq!((&view["error"], view.get("error_line")), (&json!(ERROR), None), "{line}");
    }
}

#[tokio::test]
async fn retried_attempts_show_the_reason() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, _events) = server.connect_worker("gpu-1").await;
    let body = json!({"config_name": "digits", "target": "worker", "retry_on_failure": true});
    let submitted = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
    let job = submitted["job_id"].as_str().expect("an id").to_owned();
    server.report_status(&key, &job, failed_report(12)).await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["error_line"]), (&json!("queued"), &json!(12)));
    assert!(view["retry_at"].as_str() > view["status_since"].as_str(), "{view}");
    assert_eq!(view["attempts"][0]["error"], ERROR);
    let html = page(&server, &log_in(&server).await, &format!("/jobs/{job}")).await;
    assert!(html.contains(&format!("href=\"/jobs/{job}/log?attempt=1&amp;line=12\"")), "{html}");
}

#[tokio::test]
async fn pages_show_the_error_and_link_to_the_log() {
    let (server, job) = start_with_failed_job(failed_report(70_123)).await;
    let session = log_in(&server).await;
    let page = async |path: &str| page(&server, &session, path).await.replace("<!>", "");
    let html = page(&format!("/jobs/{job}")).await;
    assert!(html.contains("<p class=\"reason-head\">ValueError: &lt;no&gt; images</p>"), "{html}");
    assert!(
        html.contains("<code>Traceback (most recent call last):\n  File \"train.py\", line 3, in main\n"),
        "{html}"
    );
    assert!(html.contains(&format!("href=\"/jobs/{job}/log?attempt=1&amp;line=70123\"")), "{html}");
    let list = page("/jobs?status=failed").await;
    assert!(list.contains("title=\"ValueError: &lt;no&gt; images\"") && !list.contains("line 3, in main</"), "{list}");
    let events = page(&format!("/jobs/{job}/events")).await;
    assert!(events.contains("ValueError: &lt;no&gt; images</p>"), "{events}");
}
