//! `simpletuner jobs …`, but for following logs.

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

use super::desk::{Desk, Leaves, client, masked};
use crate::boot::connections::Connections;
use crate::boot::serve::{Patience, serve_within};
use crate::tests::harness::ADMIN;

#[tokio::test]
async fn a_job_is_submitted_listed_shown_and_cancelled() {
    let desk = Desk::open().await;
    desk.server.config("digits").await;
    let submitted = desk.run(&["jobs", "submit", "digits", "--target", "worker", "--priority", "20"]).await;
    assert!(submitted.err.contains("waits at place 1"), "{}", submitted.err);
    let job = submitted.line();
    let table = "\
JOB   STATUS  PROGRESS  CONFIG  BY     WORKER  PRIORITY  SUBMITTED
j_ID  queued  place 1   digits  admin          20        just now
";
    assert_eq!(
        masked(&desk.run(&["jobs", "list"]).await.ok()).replace("JOB                           ", "JOB   "),
        table
    );
    assert_eq!(desk.run(&["jobs", "list", "--active", "-q"]).await.line(), job);
    let ended = desk.run(&["jobs", "list", "--ended"]).await;
    assert!(ended.err.contains("No jobs.") && ended.ok().is_empty());

    let shown = desk.run(&["jobs", "show", &job]).await.ok();
    for line in ["status     queued", "config     digits (revision 1)", "by         admin", "attempt    0 of 4"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(desk.run(&["jobs", "show", &job, "--json"]).await.json()["priority"], 20);
    assert_eq!(desk.run(&["jobs", "priority", &job, "5", "--json"]).await.json()["priority"], 5);
    assert_eq!(desk.run(&["jobs", "priority", &job, "6", "-q"]).await.line(), job);
    desk.run(&["jobs", "priority", &job, "51"]).await.refused(2, "51 is not in 0..=50");

    let cancelled = desk.run(&["jobs", "cancel", &job]).await;
    assert!(cancelled.err.contains("is cancelled") && cancelled.ok().is_empty());
    desk.run(&["jobs", "cancel", &job, "--json"]).await.refused(1, "(");
    let again = desk.run(&["jobs", "retry", &job, "--json"]).await.json();
    assert_eq!((&again["status"], again["job_id"] == job.as_str()), (&json!("queued"), false));
    let alone = desk.run(&["jobs", "submit", "digits", "--exclusive", "--checkpoints", "all"]).await.line();
    let shown = desk.run(&["jobs", "show", &alone, "--json"]).await.json();
    assert_eq!((&shown["exclusive"], &shown["checkpoints"]), (&json!(true), &json!("all")));
    assert!(desk.run(&["jobs", "show", &alone]).await.ok().contains("exclusive  yes"));
    desk.run(&["jobs", "submit", "digits", "--checkpoints", "some"]).await.refused(2, "some");
    desk.run(&["jobs", "show", "j_none"]).await.refused(1, "There is no job j_none. (job_not_found)");
}

#[tokio::test]
async fn why_a_job_failed_is_said_in_lines_and_in_a_table_in_one() {
    let desk = Desk::open().await;
    desk.server.config("digits").await;
    let (_, key, _stream) = desk.server.online("gpu-1").await;
    let job = desk.server.submit("digits").await;
    let error = "ValueError: no images\nTraceback (most recent call last):\n  File \"train.py\", line 3";
    let failed = json!({"status": "failed", "attempt": 1, "exit_code": 1, "error": error, "error_line": 70_123});
    desk.server.report(&key, &job, failed).await.ok(200);
    let shown = desk.run(&["jobs", "show", &job]).await.ok();
    let why = "\
why        ValueError: no images
           Traceback (most recent call last):
             File \"train.py\", line 3
said in    line 70123 of the log of attempt 1
";
    assert!(shown.contains(why), "{shown}");
    let listed = desk.run(&["jobs", "list"]).await.ok();
    assert!(listed.contains("SUBMITTED  WHY\n") && listed.trim_end().ends_with("ValueError: no images …"), "{listed}");
    assert!(!format!("{shown}{listed}").contains('\u{fffd}'), "{shown}{listed}");
}

#[tokio::test]
async fn why_a_job_waits_is_said_before_and_after() {
    let desk = Desk::open().await;
    desk.server.config("digits").await;
    let (_, _, _stream) = desk.server.online("gpu-1").await;
    let asked = ["jobs", "submit", "digits", "--gpus", "2", "--label", "room=b"];
    let preview = desk.run(&[&asked[..], &["--dry-run"]].concat()).await.ok();
    assert!(preview.contains("WORKER  FITS") && preview.contains("gpu-1") && preview.contains("no"), "{preview}");
    let document = desk.run(&[&asked[..], &["--dry-run", "--json"]].concat()).await.json();
    assert_eq!(document["dry_run"], true);
    assert!(desk.run(&["jobs", "list"]).await.ok().is_empty(), "nothing was submitted");

    let job = desk.run(&asked).await.line();
    let explained = desk.run(&["jobs", "explain", &job]).await.ok();
    assert_eq!(explained, preview);
    let document = desk.run(&["jobs", "explain", &job, "--json"]).await.json();
    assert_eq!(document["workers"][0]["fits"], false);
    let why = document["summary"]["text"].as_str().expect("text");
    assert_eq!(why, "1 worker: 0 have room=b.");
    assert!(explained.contains(&format!("\n{why}\n")), "{explained}");
    let again = desk.run(&asked).await;
    assert!(again.err.contains(&format!("no worker can take it. {why}")), "{}", again.err);
    let listed = desk.run(&["jobs", "list"]).await.ok();
    assert!(listed.contains("fits no worker") && !listed.contains("place 1"), "{listed}");
    let local = desk.run(&["jobs", "submit", "digits", "--target", "local"]).await.err;
    assert!(local.contains("This server runs no jobs itself") && local.contains("--local on"), "{local}");
    assert!(desk.run(&["jobs", "explain", &job, "-q"]).await.ok().is_empty(), "nobody takes it");
}

#[tokio::test]
async fn lists_are_complete_over_all_pages_and_their_reader_may_leave() {
    let desk = Desk::open().await;
    desk.server.config("digits").await;
    for _ in 0..7 {
        desk.server.submit("digits").await;
    }
    let page = ["queue"];
    let query = json!({"limit": 3});
    let whole = desk.client.list(&page, &query, "jobs", None).await.expect("a list");
    assert_eq!(whole["jobs"].as_array().map(Vec::len), Some(7));
    assert!(whole.get("next_cursor").is_none(), "{whole}");
    assert_eq!(desk.run(&["jobs", "list", "--limit", "4", "-q"]).await.ok().lines().count(), 4);
    assert_eq!(desk.run(&["jobs", "list", "--json"]).await.json()["jobs"].as_array().map(Vec::len), Some(7));

    let mut head = Leaves { after: 0, read: Vec::new() };
    let left = desk.print(&desk.client, &["jobs", "list"], &[], &mut head, &mut Vec::new()).await;
    assert_eq!(left.expect_err("nobody reads").code(), 0, "which is no failure");
}

#[tokio::test]
async fn a_submit_whose_answer_was_lost_makes_one_job() {
    let desk = Desk::open().await;
    desk.server.config("digits").await;
    let lost = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lost);
    // A proxy that does what it is asked and loses the first two answers.
    let losing = from_fn(move |request: Request, next: Next| {
        let counted = Arc::clone(&counted);
        async move {
            let answer = next.run(request).await;
            let is_lost = counted.fetch_add(1, Ordering::SeqCst) < 2;
            if is_lost { StatusCode::BAD_GATEWAY.into_response() } else { answer }
        }
    });
    let router = Router::new().merge(desk.server.router.clone()).layer(losing);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let room = Arc::new(Connections::new(64, 64, Vec::new()));
        serve_within(Patience::default(), listener, router, None, &room, &CancellationToken::new()).await;
    });
    let through = client(address, Some(ADMIN));
    let job = desk.run_by(&through, &["jobs", "submit", "digits"]).await.line();
    assert_eq!(lost.load(Ordering::SeqCst), 3);
    assert_eq!(desk.run(&["jobs", "list", "-q"]).await.line(), job);

    // What cannot be told from another wish is not repeated.
    lost.store(0, Ordering::SeqCst);
    desk.run_by(&through, &["workers", "create", "gpu-1"]).await.refused(75, "answers 502");
    assert_eq!(lost.load(Ordering::SeqCst), 1);
    let key = ["jobs", "submit", "digits", "--idempotency-key", "k1"];
    assert_eq!(desk.run(&key).await.line(), desk.run(&key).await.line());
}
