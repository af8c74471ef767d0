//! `simpletuner jobs …`, except for following logs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::harness::{CliHarness, ClosingWriter, client, mask_ids};
use crate::boot::connections::ConnectionLimiter;
use crate::boot::serve::{ConnectionTimeouts, serve_with_timeouts};
use crate::tests::harness::ADMIN;

#[tokio::test]
async fn job_is_submitted_listed_shown_and_cancelled() {
    let harness = CliHarness::start().await;
    harness.server.put_config("digits").await;
    let submitted = harness.run(&["jobs", "submit", "digits", "--target", "worker", "--priority", "20"]).await;
    assert!(submitted.err.contains("queued at position 1"), "{}", submitted.err);
    let job = submitted.single_line();
    let table = "\
JOB   STATUS  PROGRESS  CONFIG  USER   WORKER  PRIORITY  NO  SUBMITTED
j_ID  queued  place 1   digits  admin          20        #1  just now
";
    assert_eq!(
        mask_ids(&harness.run(&["jobs", "list"]).await.expect_success())
            .replace("JOB                           ", "JOB   "),
        table
    );
    assert_eq!(harness.run(&["jobs", "list", "--active", "-q"]).await.single_line(), job);
    assert_eq!(harness.run(&["jobs", "list", "--config", "digits", "-q"]).await.single_line(), job);
    assert_eq!(harness.run(&["jobs", "list", "GIT", "-q"]).await.single_line(), job);
    assert!(harness.run(&["jobs", "list", "--config", "dig"]).await.expect_success().is_empty());
    let ended_jobs = harness.run(&["jobs", "list", "--ended"]).await;
    assert!(ended_jobs.err.contains("No jobs.") && ended_jobs.expect_success().is_empty());

    let output = harness.run(&["jobs", "show", &job]).await.expect_success();
    for line in
        ["status       queued", "config       digits #1 (revision 1)", "user         admin", "attempt      0 of 4"]
    {
        assert!(output.contains(line), "{line}: {output}");
    }
    assert_eq!(harness.run(&["jobs", "show", &job, "--json"]).await.json()["priority"], 20);
    let change = ["jobs", "describe", &job, "--name", "rank 16", "--tag", "b", "--tag", "a", "--remove-tag", "x"];
    let output = harness.run(&change).await.expect_success();
    assert!(output.contains("name         rank 16\ntags         a, b\n"), "{output}");
    assert_eq!(harness.run(&["jobs", "list", "--tag", "a", "-q"]).await.single_line(), job);
    assert!(harness.run(&["jobs", "list"]).await.expect_success().contains("rank 16"));
    harness.run(&["jobs", "describe", &job]).await.expect_failure(2, "--name");
    harness
        .run(&["jobs", "describe", &job, "--name", "", "--remove-tag", "a", "--remove-tag", "b"])
        .await
        .expect_success();
    assert_eq!(harness.run(&["jobs", "priority", &job, "5", "--json"]).await.json()["priority"], 5);
    assert_eq!(harness.run(&["jobs", "priority", &job, "6", "-q"]).await.single_line(), job);
    harness.run(&["jobs", "priority", &job, "51"]).await.expect_failure(2, "51 is not in 0..=50");

    let cancelled = harness.run(&["jobs", "cancel", &job]).await;
    assert!(cancelled.err.contains("is cancelled") && cancelled.expect_success().is_empty());
    harness.run(&["jobs", "cancel", &job, "--json"]).await.expect_failure(1, "(");
    let retried_job = harness.run(&["jobs", "retry", &job, "--json"]).await.json();
    assert_eq!((&retried_job["status"], retried_job["job_id"] == job.as_str()), (&json!("queued"), false));
    let exclusive =
        harness.run(&["jobs", "submit", "digits", "--exclusive", "--checkpoints", "all"]).await.single_line();
    let output = harness.run(&["jobs", "show", &exclusive, "--json"]).await.json();
    assert_eq!((&output["exclusive"], &output["checkpoints"]), (&json!(true), &json!("all")));
    assert!(harness.run(&["jobs", "show", &exclusive]).await.expect_success().contains("exclusive    yes"));
    harness.run(&["jobs", "submit", "digits", "--checkpoints", "some"]).await.expect_failure(2, "some");
    harness.run(&["jobs", "show", "j_none"]).await.expect_failure(1, "Job j_none not found. (job_not_found)");
}

#[tokio::test]
async fn failure_reason_is_shown_in_details_and_list() {
    let harness = CliHarness::start().await;
    harness.server.put_config("digits").await;
    let (_, key, _stream) = harness.server.connect_worker("gpu-1").await;
    let job = harness.server.submit("digits").await;
    let error = "ValueError: no images\nTraceback (most recent call last):\n  File \"train.py\", line 3";
    let failed = json!({"status": "failed", "attempt": 1, "exit_code": 1, "error": error, "error_line": 70_123});
    harness.server.report_status(&key, &job, failed).await.expect_status(200);
    let output = harness.run(&["jobs", "show", &job]).await.expect_success();
    let reason = "\
reason       ValueError: no images
             Traceback (most recent call last):
               File \"train.py\", line 3
error at     line 70123 of the log of attempt 1
";
    assert!(output.contains(reason), "{output}");
    let list = harness.run(&["jobs", "list"]).await.expect_success();
    assert!(list.contains("SUBMITTED  REASON\n") && list.trim_end().ends_with("ValueError: no images …"), "{list}");
    assert!(!format!("{output}{list}").contains('\u{fffd}'), "{output}{list}");
}

#[tokio::test]
async fn pending_reason_is_shown_before_and_after_submit() {
    let harness = CliHarness::start().await;
    harness.server.put_config("digits").await;
    let (_, _, _stream) = harness.server.connect_worker("gpu-1").await;
    let args = ["jobs", "submit", "digits", "--gpus", "2", "--label", "room=b"];
    let preview = harness.run(&[&args[..], &["--dry-run"]].concat()).await.expect_success();
    assert!(preview.contains("WORKER  MATCH") && preview.contains("gpu-1") && preview.contains("no"), "{preview}");
    let document = harness.run(&[&args[..], &["--dry-run", "--json"]].concat()).await.json();
    assert_eq!(document["dry_run"], true);
    assert!(harness.run(&["jobs", "list"]).await.expect_success().is_empty(), "nothing was submitted");

    let job = harness.run(&args).await.single_line();
    let explained = harness.run(&["jobs", "explain", &job]).await.expect_success();
    assert_eq!(explained, preview);
    let document = harness.run(&["jobs", "explain", &job, "--json"]).await.json();
    assert_eq!(document["workers"][0]["fits"], false);
    let reason = document["summary"]["text"].as_str().expect("text");
    assert_eq!(reason, "1 worker: 0 have room=b.");
    assert!(explained.contains(&format!("\n{reason}\n")), "{explained}");
    let again = harness.run(&args).await;
    assert!(again.err.contains(&format!("no worker matches. {reason}")), "{}", again.err);
    let list = harness.run(&["jobs", "list"]).await.expect_success();
    assert!(list.contains("no match") && !list.contains("place 1"), "{list}");
    let local = harness.run(&["jobs", "submit", "digits", "--target", "local"]).await.err;
    assert!(local.contains("This server runs no jobs itself") && local.contains("--local on"), "{local}");
    assert!(harness.run(&["jobs", "explain", &job, "-q"]).await.expect_success().is_empty(), "no worker matches");
}

#[tokio::test]
async fn lists_read_all_pages_and_output_may_close() {
    let harness = CliHarness::start().await;
    harness.server.put_config("digits").await;
    for _ in 0..7 {
        harness.server.submit("digits").await;
    }
    let page = ["queue"];
    let query = json!({"limit": 3});
    let list = harness.client.list_all(&page, &query, "jobs", None).await.expect("a list");
    assert_eq!(list["jobs"].as_array().map(Vec::len), Some(7));
    assert!(list.get("next_cursor").is_none(), "{list}");
    assert_eq!(harness.run(&["jobs", "list", "--limit", "4", "-q"]).await.expect_success().lines().count(), 4);
    assert_eq!(harness.run(&["jobs", "list", "--json"]).await.json()["jobs"].as_array().map(Vec::len), Some(7));

    let mut head = ClosingWriter { after: 0, read: Vec::new() };
    let result = harness.run_into(&harness.client, &["jobs", "list"], &[], &mut head, &mut Vec::new()).await;
    assert_eq!(result.expect_err("the output is closed").code(), 0, "that is no failure");
}

#[tokio::test]
async fn submit_with_lost_response_creates_one_job() {
    let harness = CliHarness::start().await;
    harness.server.put_config("digits").await;
    let request_count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&request_count);
    // A proxy that forwards requests but drops the first two responses.
    let drop_responses = from_fn(move |request: Request, next: Next| {
        let counter = Arc::clone(&counter);
        async move {
            let response = next.run(request).await;
            let is_lost = counter.fetch_add(1, Ordering::SeqCst) < 2;
            if is_lost { StatusCode::BAD_GATEWAY.into_response() } else { response }
        }
    });
    let router = Router::new().merge(harness.server.router.clone()).layer(drop_responses);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let connections = Arc::new(ConnectionLimiter::new(64, 64, Vec::new()));
        serve_with_timeouts(
            ConnectionTimeouts::default(),
            listener,
            router,
            None,
            &connections,
            &CancellationToken::new(),
        )
        .await;
    });
    let proxied_client = client(address, Some(ADMIN));
    let job = harness.run_as(&proxied_client, &["jobs", "submit", "digits"]).await.single_line();
    assert_eq!(request_count.load(Ordering::SeqCst), 3);
    assert_eq!(harness.run(&["jobs", "list", "-q"]).await.single_line(), job);

    // Requests that are not idempotent are not repeated.
    request_count.store(0, Ordering::SeqCst);
    harness.run_as(&proxied_client, &["workers", "create", "gpu-1"]).await.expect_failure(75, "responds with 502");
    assert_eq!(request_count.load(Ordering::SeqCst), 1);
    let key = ["jobs", "submit", "digits", "--idempotency-key", "k1"];
    assert_eq!(harness.run(&key).await.single_line(), harness.run(&key).await.single_line());
}
