//! An attempt that is given away while its file comes in: nothing of it counts, and nothing that was there is replaced.

use std::path::PathBuf;
use std::time::Duration;

use app::domain::ids::{Attempt, JobId, WorkerId};
use app::domain::job;
use app::domain::time::Millis;
use app::protocol::status::ArtifactKind;
use axum::body::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::harness::{Answer, By, Events, Server};
use crate::service::artifacts::Announced;
use crate::service::refusal::Refusal;
use crate::service::reports::Subject;
use crate::service::unit::Caller;

struct Story {
    server: Server,
    worker: String,
    key: By,
    events: Events,
    job: String,
    token: By,
}

impl Story {
    async fn begin() -> Self {
        Self::with(1_000).await
    }

    async fn with(most_artifacts: u64) -> Self {
        let server = Server::start_with(|policy| policy.most_artifacts = most_artifacts).await;
        server.config("digits").await;
        let (worker, key, mut events) = server.online("gpu-1").await;
        let job = server.submit("digits").await;
        let token = By::Job(events.offer().await.upload_token);
        server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
        Self { server, worker, key, events, job, token }
    }

    async fn put(&self, path: &str, body: impl Into<Body>) -> Answer {
        let path = format!("/api/workers/job/{}/artifacts/{path}?attempt=1", self.job);
        self.server.call(&self.token, "PUT", &path, body).await
    }

    async fn get(&self) -> Answer {
        self.server.get(&By::Admin, &format!("/api/queue/{}/artifacts/model.bin", self.job)).await
    }

    /// The attempt is lost, and a newer one is offered.
    async fn give_away(&mut self) {
        self.server.report(&self.key, &self.job, json!({"status": "requeue", "attempt": 1})).await.ok(200);
        self.server.pass(Millis::seconds(60)).await;
        assert_eq!(self.events.offer().await.attempt.0, 2);
    }

    /// The names in the attempt's directory.
    fn on_disk(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory()).into_iter().flatten();
        entries.map(|entry| entry.expect("a directory").file_name().to_string_lossy().into_owned()).collect()
    }

    fn directory(&self) -> PathBuf {
        self.server.directory.path().join("artifacts").join(&self.job).join("1")
    }

    /// Waits until so many are there.
    async fn until(&self, number: usize) {
        let reached = async {
            while self.on_disk().len() != number {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let within = tokio::time::timeout(Duration::from_secs(10), reached).await;
        within.unwrap_or_else(|_| panic!("{:?} in the place of {number}", self.on_disk()));
    }
}

#[tokio::test]
async fn what_comes_in_while_its_attempt_is_given_away_replaces_nothing() {
    let mut story = Story::begin().await;
    story.put("model.bin", "what was there").await.ok(200);
    let (send, mut body) = mpsc::channel::<std::io::Result<&'static str>>(1);
    let path = format!("/api/workers/job/{}/artifacts/model.bin?attempt=1", story.job);
    let (router, token) = (story.server.router.clone(), story.token.clone());
    let By::Job(token) = token else { unreachable!("a job's token") };
    let request = axum::http::Request::builder().method("PUT").uri(path).header("x-upload-token", token);
    let request = request
        .body(Body::from_stream(futures_util::stream::poll_fn(move |cx| body.poll_recv(cx))))
        .expect("a request");
    let put = tokio::spawn(async move { tower::ServiceExt::oneshot(router, request).await.expect("it answers") });
    send.send(Ok("too")).await.expect("it listens");
    story.until(2).await;
    story.give_away().await;
    send.send(Ok(" late")).await.expect("it listens");
    drop(send);
    super::harness::read(put.await.expect("no panic")).await.problem(409, "old_attempt");
    assert_eq!(story.get().await.text(), "what was there");
    story.until(1).await;
}

#[tokio::test]
async fn what_was_given_away_since_is_not_written_down_and_removed() {
    let mut story = Story::begin().await;
    let job = JobId::parse(&story.job).expect("an id");
    let core = &story.server.app.core;
    let body = futures_util::stream::iter([Ok::<_, std::io::Error>("late".into())]);
    let received = core.artifacts.receive((&job, Attempt(1), "model.bin"), body, None, 99).await.expect("a disk");
    let stored = received.keep().await.expect("a disk");
    assert_eq!(story.on_disk(), ["model.bin"]);
    story.give_away().await;
    let worker = WorkerId::parse(&story.worker).expect("an id");
    let subject = Subject { worker, job, attempt: Some(Attempt(1)) };
    let announced = Announced { path: "model.bin".to_owned(), kind: ArtifactKind::Final, sha256: None, size: 0 };
    let recorded = story.server.app.core.record(Caller::system(), subject, Attempt(1), announced, stored).await;
    let refused = Refusal::Job(job::Refused::OldAttempt { current: Attempt(2) });
    assert_eq!(recorded, Err(refused));
    story.get().await.problem(404, "artifact_not_found");
    story.until(0).await;
}

#[tokio::test]
async fn no_more_files_of_a_job_are_taken_than_a_token_may_fill_the_database_with() {
    let story = Story::with(2).await;
    story.put("model.bin", "one").await.ok(200);
    story.put("b", "two").await.ok(200);
    story.put("c", "three").await.problem(422, "too_much");
    story.put("model.bin", "one anew").await.ok(200);
    assert_eq!(story.get().await.text(), "one anew");
    let listed = story.server.get(&By::Admin, &format!("/api/queue/{}/artifacts", story.job)).await.ok(200);
    let paths: Vec<&Value> = listed["artifacts"].as_array().expect("a list").iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["b", "model.bin"]);
    story.until(2).await;
}
