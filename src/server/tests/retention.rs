//! What is kept for how long.

use std::path::PathBuf;

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{By, Server};
use crate::service::retention::Kept;
use crate::store::retention::What;

const DAY: Millis = Millis::seconds(86_400);

/// A server that keeps what, and a worker of it that does whatever it is offered.
async fn keeping(kept: Kept) -> (Server, By, super::harness::Events) {
    let server = Server::start_with(|policy| policy.kept = kept).await;
    server.config("digits").await;
    let (_, key, events) = server.online("gpu-1").await;
    (server, key, events)
}

/// A job that has run, with a log and a file.
async fn done(server: &Server, key: &By, events: &mut super::harness::Events) -> String {
    let job = server.submit("digits").await;
    let token = By::Job(events.offer().await.upload_token);
    server.report(key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    for what in ["logs?attempt=1&offset=0", "artifacts/sub/model.bin?attempt=1&kind=final"] {
        server.call(&token, "PUT", &format!("/api/workers/job/{job}/{what}"), "12345").await.ok(200);
    }
    server.report(key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    job
}

fn files(server: &Server, job: &str) -> [PathBuf; 2] {
    ["logs", "artifacts"].map(|kind| server.directory.path().join(kind).join(job))
}

async fn swept(server: &Server) -> Vec<(String, Value)> {
    let page = server.get(&By::Admin, "/api/audit?action=retention.").await.ok(200);
    let entries = page["entries"].as_array().expect("a list").clone();
    entries
        .into_iter()
        .map(|entry| (entry["target"].as_str().expect("text").to_owned(), entry["detail"]["jobs"].clone()))
        .collect()
}

#[tokio::test]
async fn by_default_everything_is_kept() {
    let (server, key, mut events) = keeping(Kept::default()).await;
    let job = done(&server, &key, &mut events).await;
    server.clock.advance(Millis(10_000 * DAY.0));
    assert_eq!(server.app.core.expire_jobs().await, Ok(0));
    assert_eq!(server.status_of(&job).await, "completed");
    assert!(files(&server, &job).iter().all(|path| path.exists()));
}

#[tokio::test]
async fn logs_artifacts_and_jobs_go_each_at_their_time() {
    let days = |days: i64| Some(Millis(days * DAY.0));
    let kept = Kept { logs: days(1), artifacts: days(2), jobs: days(3), artifact_bytes: None };
    let (server, key, mut events) = keeping(kept).await;
    let job = done(&server, &key, &mut events).await;
    let [log, artifacts] = files(&server, &job);
    let pass = async || {
        server.clock.advance(Millis(DAY.0 + 1));
        server.app.core.expire_jobs().await.expect("a database")
    };
    let text = async |what: &str| server.get(&By::Admin, &format!("/api/queue/{job}/{what}")).await;
    assert_eq!((pass().await, log.exists(), artifacts.exists()), (1, false, true));
    assert_eq!(text("logs").await.ok(200)["text"], "");
    assert_eq!(text("artifacts/sub/model.bin").await.text(), "12345");
    assert_eq!((pass().await, artifacts.exists()), (1, false));
    text("artifacts/sub/model.bin").await.problem(404, "artifact_not_found");
    assert_eq!(text("artifacts").await.ok(200)["artifacts"], json!([]));
    assert_eq!(server.status_of(&job).await, "completed");
    assert_eq!(pass().await, 1);
    server.get(&By::Admin, &format!("/api/queue/{job}")).await.problem(404, "job_not_found");
    let expected = [("jobs", 1), ("artifacts", 1), ("logs", 1)].map(|(what, jobs)| (what.to_owned(), json!(jobs)));
    assert_eq!(swept(&server).await, expected, "newest first");
    assert_eq!(pass().await, 0);
}

#[tokio::test]
async fn what_lives_is_never_given_up() {
    let (server, key, mut events) = keeping(Kept { jobs: Some(DAY), ..Kept::default() }).await;
    let running = server.submit("digits").await;
    events.offer().await;
    server.report(&key, &running, json!({"status": "running", "attempt": 1})).await.ok(200);
    let waiting = server.submit("digits").await;
    server.clock.advance(Millis(9 * DAY.0));
    assert_eq!(server.app.core.expire_jobs().await, Ok(0));
    assert_eq!(
        (server.status_of(&running).await, server.status_of(&waiting).await),
        ("running".into(), "queued".into())
    );
}

#[tokio::test]
async fn the_oldest_artifacts_make_room_for_the_newest() {
    let (server, key, mut events) = keeping(Kept { artifact_bytes: Some(10), ..Kept::default() }).await;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(done(&server, &key, &mut events).await);
        server.clock.advance(Millis::seconds(1));
    }
    assert_eq!(server.app.core.expire_jobs().await, Ok(2));
    let there: Vec<bool> = jobs.iter().map(|job| files(&server, job)[1].exists()).collect();
    assert_eq!(there, [false, false, true, true]);
    assert_eq!(server.app.core.expire_jobs().await, Ok(0), "it fits");
}

#[tokio::test]
async fn a_crash_between_the_mark_and_the_files_leaves_nothing_dangling() {
    let (server, key, mut events) = keeping(Kept::default()).await;
    let job = done(&server, &key, &mut events).await;
    let id = app::domain::ids::JobId::parse(&job).expect("an id");
    let marked = server.app.core.store.write(Box::new(move |tx| {
        let id = id.clone();
        Box::pin(async move { tx.give_up(What::Artifacts, &id).await })
    }));
    marked.await.expect("written");
    let [log, artifacts] = files(&server, &job);
    assert!(artifacts.exists(), "here the server ended");
    server
        .get(&By::Admin, &format!("/api/queue/{job}/artifacts/sub/model.bin"))
        .await
        .problem(404, "artifact_not_found");
    assert_eq!(server.app.core.expire_jobs().await, Ok(0), "and here another one begins");
    assert_eq!((artifacts.exists(), log.exists()), (false, true));
    assert_eq!(server.app.core.read().await.expect("a reader").marked(9).await, Ok(Vec::new()));
}
