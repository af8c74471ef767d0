//! Retention of jobs, logs and artifacts.

use std::path::PathBuf;

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::service::policy::job_retention::JobRetention;
use crate::store::jobs::retention::RetainedKind;
use crate::tests::harness::{Actor, TestServer};

const DAY: Millis = Millis::from_secs(86_400);

/// A server with this retention, and a worker that accepts every offer.
async fn start_with_retention(
    retention: JobRetention,
) -> (TestServer, Actor, crate::tests::harness::EventStreamReader) {
    let server = TestServer::start_with(|policy| policy.retention = retention).await;
    server.put_config("digits").await;
    let (_, key, events) = server.connect_worker("gpu-1").await;
    (server, key, events)
}

/// Runs a job with a log and a file.
async fn run_job(server: &TestServer, key: &Actor, events: &mut crate::tests::harness::EventStreamReader) -> String {
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    server.report_status(key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    for path in ["logs?attempt=1&offset=0", "artifacts/sub/model.bin?attempt=1&kind=final"] {
        server.call(&token, "PUT", &format!("/api/workers/job/{job}/{path}"), "12345").await.expect_status(200);
    }
    server.report_status(key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    job
}

fn job_directories(server: &TestServer, job: &str) -> [PathBuf; 2] {
    ["logs", "artifacts"].map(|kind| server.directory.path().join(kind).join(job))
}

async fn swept_counts(server: &TestServer) -> Vec<(String, Value)> {
    let page = server.get(&Actor::Admin, "/api/audit?action=retention.").await.expect_status(200);
    let entries = page["entries"].as_array().expect("a list").clone();
    entries
        .into_iter()
        .map(|entry| (entry["target"].as_str().expect("text").to_owned(), entry["detail"]["jobs"].clone()))
        .collect()
}

#[tokio::test]
async fn by_default_everything_is_kept() {
    let (server, key, mut events) = start_with_retention(JobRetention::default()).await;
    let job = run_job(&server, &key, &mut events).await;
    server.clock.advance(Millis(10_000 * DAY.0));
    assert_eq!(server.app.services.jobs.prune_jobs().await, Ok(0));
    assert_eq!(server.job_status(&job).await, "completed");
    assert!(job_directories(&server, &job).iter().all(|path| path.exists()));
}

#[tokio::test]
async fn logs_artifacts_and_jobs_have_separate_retention() {
    let days = |days: i64| Some(Millis(days * DAY.0));
    let retention = JobRetention { logs: days(1), artifacts: days(2), jobs: days(3), artifact_bytes: None };
    let (server, key, mut events) = start_with_retention(retention).await;
    let job = run_job(&server, &key, &mut events).await;
    let [log, artifacts] = job_directories(&server, &job);
    let prune_after_a_day = async || {
        server.clock.advance(Millis(DAY.0 + 1));
        server.app.services.jobs.prune_jobs().await.expect("a database")
    };
    let text = async |path: &str| server.get(&Actor::Admin, &format!("/api/queue/{job}/{path}")).await;
    assert_eq!((prune_after_a_day().await, log.exists(), artifacts.exists()), (1, false, true));
    assert_eq!(text("logs").await.expect_status(200)["text"], "");
    assert_eq!(text("artifacts/sub/model.bin").await.text(), "12345");
    assert_eq!((prune_after_a_day().await, artifacts.exists()), (1, false));
    text("artifacts/sub/model.bin").await.expect_problem(404, "artifact_not_found");
    assert_eq!(text("artifacts").await.expect_status(200)["artifacts"], json!([]));
    assert_eq!(server.job_status(&job).await, "completed");
    assert_eq!(prune_after_a_day().await, 1);
    server.get(&Actor::Admin, &format!("/api/queue/{job}")).await.expect_problem(404, "job_not_found");
    let expected = [("jobs", 1), ("artifacts", 1), ("logs", 1)].map(|(kind, jobs)| (kind.to_owned(), json!(jobs)));
    assert_eq!(swept_counts(&server).await, expected, "newest first");
    assert_eq!(prune_after_a_day().await, 0);
}

#[tokio::test]
async fn retention_keeps_active_jobs() {
    let (server, key, mut events) =
        start_with_retention(JobRetention { jobs: Some(DAY), ..JobRetention::default() }).await;
    let running = server.submit("digits").await;
    events.next_offer().await;
    server.report_status(&key, &running, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let waiting = server.submit("digits").await;
    server.clock.advance(Millis(9 * DAY.0));
    assert_eq!(server.app.services.jobs.prune_jobs().await, Ok(0));
    assert_eq!(
        (server.job_status(&running).await, server.job_status(&waiting).await),
        ("running".into(), "queued".into())
    );
}

#[tokio::test]
async fn oldest_artifacts_are_deleted_over_the_size_limit() {
    let (server, key, mut events) =
        start_with_retention(JobRetention { artifact_bytes: Some(10), ..JobRetention::default() }).await;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(run_job(&server, &key, &mut events).await);
        server.clock.advance(Millis::from_secs(1));
    }
    assert_eq!(server.app.services.jobs.prune_jobs().await, Ok(2));
    let existing: Vec<bool> = jobs.iter().map(|job| job_directories(&server, job)[1].exists()).collect();
    assert_eq!(existing, [false, false, true, true]);
    assert_eq!(server.app.services.jobs.prune_jobs().await, Ok(0), "the size is within the limit");
}

#[tokio::test]
async fn crash_during_retention_leaves_nothing_dangling() {
    let (server, key, mut events) = start_with_retention(JobRetention::default()).await;
    let job = run_job(&server, &key, &mut events).await;
    let id = app::domain::ids::JobId::parse(&job).expect("an id");
    let marked = server.app.services.context.store.write(Box::new(move |tx| {
        let id = id.clone();
        Box::pin(async move { tx.remove_retained(RetainedKind::Artifacts, &id).await })
    }));
    marked.await.expect("written");
    let [log, artifacts] = job_directories(&server, &job);
    assert!(artifacts.exists(), "the server stopped before it deleted the files");
    server
        .get(&Actor::Admin, &format!("/api/queue/{job}/artifacts/sub/model.bin"))
        .await
        .expect_problem(404, "artifact_not_found");
    assert_eq!(server.app.services.jobs.prune_jobs().await, Ok(0), "the next server deletes them");
    assert_eq!((artifacts.exists(), log.exists()), (false, true));
    assert_eq!(server.app.services.context.read().await.expect("a reader").marked_files(None, 9).await, Ok(Vec::new()));
}
