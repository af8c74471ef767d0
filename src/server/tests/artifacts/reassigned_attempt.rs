//! An attempt that is reassigned during its upload: nothing of it counts, and no existing file is replaced.

use std::path::PathBuf;
use std::time::Duration;

use app::domain::ids::{AttemptNumber, JobId, WorkerId};
use app::domain::job;
use app::domain::time::Millis;
use app::protocol::status::ArtifactKind;
use axum::body::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::service::artifacts::UploadAnnouncement;
use crate::service::attempt_ref::AttemptRef;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::Caller;
use crate::tests::harness::{Actor, EventStreamReader, TestResponse, TestServer};

struct ReassignScenario {
    server: TestServer,
    worker: String,
    key: Actor,
    events: EventStreamReader,
    job: String,
    token: Actor,
}

impl ReassignScenario {
    async fn start() -> Self {
        Self::start_with(1_000).await
    }

    async fn start_with(max_artifacts: u64) -> Self {
        let server = TestServer::start_with(|policy| policy.max_artifacts = max_artifacts).await;
        server.put_config("digits").await;
        let (worker, key, mut events) = server.connect_worker("gpu-1").await;
        let job = server.submit("digits").await;
        let token = Actor::Job(events.next_offer().await.upload_token);
        server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        Self { server, worker, key, events, job, token }
    }

    async fn put(&self, path: &str, body: impl Into<Body>) -> TestResponse {
        let path = format!("/api/workers/job/{}/artifacts/{path}?attempt=1", self.job);
        self.server.call(&self.token, "PUT", &path, body).await
    }

    async fn get(&self) -> TestResponse {
        self.server.get(&Actor::Admin, &format!("/api/queue/{}/artifacts/model.bin", self.job)).await
    }

    /// The attempt is lost, and a newer one is offered.
    async fn reassign(&mut self) {
        self.server
            .report_status(&self.key, &self.job, json!({"status": "requeue", "attempt": 1}))
            .await
            .expect_status(200);
        self.server.advance(Millis::from_secs(60)).await;
        assert_eq!(self.events.next_offer().await.attempt.0, 2);
    }

    /// Returns the file names in the attempt's directory.
    fn file_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory()).into_iter().flatten();
        entries.map(|entry| entry.expect("a directory").file_name().to_string_lossy().into_owned()).collect()
    }

    fn directory(&self) -> PathBuf {
        self.server.directory.path().join("artifacts").join(&self.job).join("1")
    }

    /// Waits until there are this many files.
    async fn wait_for_count(&self, count: usize) {
        let reached = async {
            while self.file_names().len() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let result = tokio::time::timeout(Duration::from_secs(10), reached).await;
        result.unwrap_or_else(|_| panic!("{:?} instead of {count} files", self.file_names()));
    }
}

#[tokio::test]
async fn upload_during_reassignment_replaces_nothing() {
    let mut scenario = ReassignScenario::start().await;
    scenario.put("model.bin", "what was there").await.expect_status(200);
    let (send, mut body) = mpsc::channel::<std::io::Result<&'static str>>(1);
    let path = format!("/api/workers/job/{}/artifacts/model.bin?attempt=1", scenario.job);
    let (router, token) = (scenario.server.router.clone(), scenario.token.clone());
    let Actor::Job(token) = token else { unreachable!("a job's token") };
    let request = axum::http::Request::builder().method("PUT").uri(path).header("x-upload-token", token);
    let request = request
        .body(Body::from_stream(futures_util::stream::poll_fn(move |cx| body.poll_recv(cx))))
        .expect("a request");
    let put = tokio::spawn(async move { tower::ServiceExt::oneshot(router, request).await.expect("a response") });
    send.send(Ok("too")).await.expect("the upload is running");
    scenario.wait_for_count(2).await;
    scenario.reassign().await;
    send.send(Ok(" late")).await.expect("the upload is running");
    drop(send);
    crate::tests::harness::read_response(put.await.expect("no panic")).await.expect_problem(409, "stale_attempt");
    assert_eq!(scenario.get().await.text(), "what was there");
    scenario.wait_for_count(1).await;
}

#[tokio::test]
async fn upload_after_reassignment_is_removed() {
    let mut scenario = ReassignScenario::start().await;
    let job = JobId::parse(&scenario.job).expect("an id");
    let services = &scenario.server.app.services;
    let body = futures_util::stream::iter([Ok::<_, std::io::Error>("late".into())]);
    let received =
        services.artifacts.files.receive((&job, AttemptNumber(1), "model.bin"), body, None, 99).await.expect("a disk");
    let stored = received.commit().await.expect("a disk");
    assert_eq!(scenario.file_names(), ["model.bin"]);
    scenario.reassign().await;
    let worker = WorkerId::parse(&scenario.worker).expect("an id");
    let attempt_ref = AttemptRef { worker, job, attempt: Some(AttemptNumber(1)) };
    let announcement =
        UploadAnnouncement { path: "model.bin".to_owned(), kind: ArtifactKind::Final, sha256: None, size: 0 };
    let recorded = scenario
        .server
        .app
        .services
        .artifacts
        .record_artifact(Caller::system(), attempt_ref, AttemptNumber(1), announcement, stored)
        .await;
    let rejected = ServiceError::JobTransition(job::JobTransitionError::StaleAttempt { current: AttemptNumber(2) });
    assert_eq!(recorded, Err(rejected));
    scenario.get().await.expect_problem(404, "artifact_not_found");
    scenario.wait_for_count(0).await;
}

#[tokio::test]
async fn files_per_job_are_limited_in_number() {
    let scenario = ReassignScenario::start_with(2).await;
    scenario.put("model.bin", "one").await.expect_status(200);
    scenario.put("b", "two").await.expect_status(200);
    scenario.put("c", "three").await.expect_problem(422, "too_large");
    scenario.put("model.bin", "one anew").await.expect_status(200);
    assert_eq!(scenario.get().await.text(), "one anew");
    let list =
        scenario.server.get(&Actor::Admin, &format!("/api/queue/{}/artifacts", scenario.job)).await.expect_status(200);
    let paths: Vec<&Value> = list["artifacts"].as_array().expect("a list").iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["b", "model.bin"]);
    scenario.wait_for_count(2).await;
}
