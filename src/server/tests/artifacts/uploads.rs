//! Uploads in chunks: interrupted ones resume, and only complete files are stored.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use app::domain::time::Millis;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::tests::harness::{Actor, TestResponse, TestServer, read_response};
use crate::tokens::hex;

struct UploadScenario {
    server: TestServer,
    key: Actor,
    job: String,
    token: String,
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

impl UploadScenario {
    async fn start() -> Self {
        let server = TestServer::start().await;
        server.put_config("digits").await;
        let (_, key, mut events) = server.connect_worker("gpu-1").await;
        let job = server.submit("digits").await;
        let token = events.next_offer().await.upload_token;
        server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        Self { server, key, job, token }
    }

    /// Sends a chunk of a file with this digest.
    async fn put(&self, query: &str, digest: &str, body: impl Into<Body>) -> TestResponse {
        let uri = format!("/api/workers/job/{}/artifacts/sub/model.bin?attempt=1&kind=final&{query}", self.job);
        let request = Request::builder().method("PUT").uri(uri).header("x-upload-token", &self.token);
        let request = request.header("x-content-sha256", digest).body(body.into()).expect("a request");
        read_response(self.server.send(request).await).await
    }

    async fn upload_progress(&self, size: usize, digest: &str) -> Value {
        let query = format!("attempt=1&size={size}&sha256={digest}");
        let path = format!("/api/workers/job/{}/artifacts/sub/model.bin?{query}", self.job);
        self.server.get(&Actor::Job(self.token.clone()), &path).await.expect_status(200)["received"].clone()
    }

    async fn stored_bytes(&self) -> Option<Vec<u8>> {
        let response =
            self.server.get(&Actor::Admin, &format!("/api/queue/{}/artifacts/sub/model.bin", self.job)).await;
        (response.status == 200).then_some(response.body)
    }

    /// Returns the partial files on disk.
    fn partial_files(&self) -> Vec<PathBuf> {
        let job = self.server.directory.path().join("uploads").join(&self.job);
        let parts = std::fs::read_dir(job).into_iter().flatten();
        parts.map(|part| part.expect("a directory").path()).collect()
    }
}

#[tokio::test]
async fn file_is_uploaded_in_chunks_that_may_repeat() {
    let scenario = UploadScenario::start().await;
    let bytes: Vec<u8> = (0..900_u16).map(|n| n.to_le_bytes()[0]).collect();
    let digest = sha256(&bytes);
    let put = async |from: usize, to: usize| {
        let query = format!("offset={from}&size={}", bytes.len());
        scenario.put(&query, &digest.to_uppercase(), bytes[from..to].to_vec()).await
    };
    assert_eq!(scenario.upload_progress(900, &digest).await, 0);
    assert_eq!(put(0, 300).await.expect_status(200), json!({"received": 300}));
    assert_eq!(put(100, 400).await.expect_status(200), json!({"received": 400}), "stored bytes are skipped");
    assert_eq!(put(500, 600).await.expect_problem(409, "upload_gap")["received"], 400);
    assert_eq!((scenario.upload_progress(900, &digest).await, scenario.stored_bytes().await), (json!(400), None));
    let ack = put(400, 900).await.expect_status(200);
    let expected = json!({"path": "sub/model.bin", "size_bytes": 900, "sha256": digest});
    assert_eq!((&ack, scenario.stored_bytes().await), (&expected, Some(bytes.clone())));
    assert_eq!((scenario.upload_progress(900, &digest).await, scenario.partial_files().len()), (json!(900), 0));
    assert_eq!(put(400, 900).await.expect_status(200), expected, "the response was lost");
    let list =
        scenario.server.get(&Actor::Admin, &format!("/api/queue/{}/artifacts", scenario.job)).await.expect_status(200);
    assert_eq!(list["artifacts"][0]["kind"], "final");
}

#[tokio::test]
async fn interrupted_chunk_keeps_the_received_bytes() {
    let scenario = UploadScenario::start().await;
    let digest = sha256(b"one two three");
    let chunks = [Ok("one two "), Err(std::io::Error::other("the network is down"))];
    let body = Body::from_stream(futures_util::stream::iter(chunks));
    let problem = scenario.put("offset=0&size=13", &digest, body).await.expect_problem(400, "upload_rejected");
    let detail = problem["detail"].as_str().expect("text");
    assert!(detail.ends_with("The first 8 bytes are stored: continue after them."), "{detail}");
    assert_eq!(scenario.upload_progress(13, &digest).await, 8);
    scenario.put("offset=8&size=13", &digest, "three").await.expect_status(200);
    assert_eq!(scenario.stored_bytes().await, Some(b"one two three".to_vec()));
}

#[tokio::test]
async fn complete_file_is_finished_by_an_empty_chunk() {
    let scenario = UploadScenario::start().await;
    let digest = sha256(b"whole");
    scenario.put("offset=0&size=5", &digest, "whol").await.expect_status(200);
    scenario.put("offset=4&size=5", &digest, "").await.expect_status(200);
    let part = scenario.partial_files().pop().expect("a partial file");
    std::fs::write(part, "whole").expect("written, as by a server that stopped before it stored the file");
    scenario.put("offset=5&size=5", &digest, "").await.expect_status(200);
    assert_eq!(scenario.stored_bytes().await, Some(b"whole".to_vec()));
}

#[tokio::test]
async fn repeated_last_chunk_gets_the_same_response() {
    let scenario = UploadScenario::start().await;
    for n in 0..20 {
        let bytes = format!("whole {n:02}").into_bytes();
        let digest = sha256(&bytes);
        scenario.put("offset=0&size=8", &digest, bytes[..4].to_vec()).await.expect_status(200);
        let uploads = (0..8).map(|_| scenario.put("offset=4&size=8", &digest, bytes[4..].to_vec()));
        let responses: Vec<Value> = futures_util::future::join_all(uploads)
            .await
            .into_iter()
            .map(|response| response.expect_status(200))
            .collect();
        let expected = json!({"path": "sub/model.bin", "size_bytes": 8, "sha256": digest});
        assert_eq!(responses, vec![expected; 8]);
        assert_eq!((scenario.stored_bytes().await, scenario.partial_files().len()), (Some(bytes), 0));
    }
}

#[tokio::test]
async fn chunked_file_is_not_copied_again() {
    let scenario = UploadScenario::start().await;
    let digest = sha256(b"whole");
    scenario.put("offset=0&size=5", &digest, "whol").await.expect_status(200);
    let inode = |path: &std::path::Path| std::fs::metadata(path).expect("a file").ino();
    let part = inode(&scenario.partial_files()[0]);
    scenario.put("offset=4&size=5", &digest, "e").await.expect_status(200);
    let stored = scenario.server.directory.path().join("artifacts").join(&scenario.job).join("1/sub/model.bin");
    assert_eq!(inode(&stored), part);
}

#[tokio::test]
async fn file_that_differs_from_its_digest_is_dropped() {
    let scenario = UploadScenario::start().await;
    let digest = sha256(b"other");
    scenario.put("offset=0&size=5", &digest, "who").await.expect_status(200);
    let problem = scenario.put("offset=3&size=5", &digest, "le").await.expect_problem(400, "upload_rejected");
    assert!(
        problem["detail"].as_str().is_some_and(|detail| detail.ends_with("Nothing of it was stored.")),
        "{problem}"
    );
    assert_eq!(
        (scenario.upload_progress(5, &digest).await, scenario.partial_files().len()),
        (json!(0), 0),
        "the upload starts again"
    );
    scenario.put("offset=0&size=5", &digest, "others").await.expect_problem(400, "upload_rejected");
    scenario.put("offset=0&size=5", &digest, "other").await.expect_status(200);
    assert_eq!(scenario.stored_bytes().await, Some(b"other".to_vec()));
}

#[tokio::test]
async fn changed_file_starts_a_new_upload() {
    let scenario = UploadScenario::start().await;
    scenario.put("offset=0&size=5", &sha256(b"first"), "fir").await.expect_status(200);
    let problem = scenario.put("offset=3&size=6", &sha256(b"second"), "ond").await.expect_problem(409, "upload_gap");
    assert_eq!(problem["received"], 0);
    scenario.put("offset=0&size=6", &sha256(b"second"), "second").await.expect_status(200);
    assert_eq!(scenario.stored_bytes().await, Some(b"second".to_vec()));
}

#[tokio::test]
async fn incomplete_or_contradictory_parameters_are_rejected() {
    let scenario = UploadScenario::start().await;
    let digest = sha256(b"x");
    scenario.put("offset=0", &digest, "x").await.expect_problem(422, "out_of_range");
    scenario.put("offset=0&size=1", "", "x").await.expect_problem(422, "out_of_range");
    scenario.put("offset=0&size=1", &"z".repeat(64), "x").await.expect_problem(422, "out_of_range");
    scenario.put("offset=0&size=1001", &digest, "x").await.expect_problem(413, "upload_rejected");
    scenario.put("offset=-1&size=1", &digest, "x").await.expect_problem(400, "invalid_query");
    let path = |path: &str| format!("/api/workers/job/{}/artifacts/{path}?size=1&sha256={digest}", scenario.job);
    let token = Actor::Job(scenario.token.clone());
    scenario.server.get(&token, &path("%2e%2e/escape")).await.expect_problem(422, "invalid_path");
    let escape = format!("{}&offset=0", path("a/%2e%2e/%2e%2e/escape"));
    scenario.server.call(&token, "PUT", &escape, "x").await.expect_problem(422, "invalid_path");
    scenario.server.get(&token, &path("x").replace("size=1&", "")).await.expect_problem(422, "out_of_range");
    assert!(scenario.partial_files().is_empty());
}

#[tokio::test]
async fn ended_attempt_cannot_upload_and_its_chunks_are_removed() {
    let scenario = UploadScenario::start().await;
    let digest = sha256(b"whole");
    scenario.put("offset=0&size=5", &digest, "who").await.expect_status(200);
    let sweep = async || scenario.server.app.services.artifacts.sweep_uploads().await.expect("a disk");
    assert_eq!(sweep().await, 0, "the upload may continue");
    scenario
        .server
        .report_status(&scenario.key, &scenario.job, json!({"status": "failed", "attempt": 1}))
        .await
        .expect_status(200);
    scenario.put("offset=3&size=5", &digest, "le").await.expect_problem(409, "job_ended");
    let path = format!("/api/workers/job/{}/artifacts/sub/model.bin?size=5&sha256={digest}", scenario.job);
    scenario.server.get(&Actor::Job(scenario.token.clone()), &path).await.expect_problem(409, "job_ended");
    assert_eq!((sweep().await, scenario.partial_files().len(), sweep().await), (1, 0, 0));
}

#[tokio::test]
async fn abandoned_upload_is_removed_after_a_day() {
    let scenario = UploadScenario::start().await;
    scenario.put("offset=0&size=5", &sha256(b"whole"), "who").await.expect_status(200);
    let set_age = |age: Millis| {
        let modified = Duration::from_millis((scenario.server.app.services.context.now().0 - age.0).unsigned_abs());
        let part = File::options().write(true).open(&scenario.partial_files()[0]).expect("a partial file");
        part.set_modified(UNIX_EPOCH + modified).expect("a file's time");
    };
    set_age(Millis::from_secs(86_400));
    assert_eq!(scenario.server.app.services.artifacts.sweep_uploads().await, Ok(0));
    set_age(Millis::from_secs(86_401));
    assert_eq!(scenario.server.app.services.artifacts.sweep_uploads().await, Ok(1));
    assert!(scenario.partial_files().is_empty());
}

#[tokio::test]
async fn full_disk_rejects_new_uploads() {
    let scenario = UploadScenario::start().await;
    scenario.server.clock.advance(Millis(1));
    scenario.server.disk.set_free(1 << 30);
    scenario.server.app.services.context.refresh_disk_space().expect("a manual disk");
    let digest = sha256(b"whole");
    scenario.put("offset=0&size=5", &digest, "who").await.expect_status(200);
    scenario
        .server
        .report_status(&scenario.key, &scenario.job, json!({"status": "requeue", "attempt": 1}))
        .await
        .expect_status(200);
    let _events = scenario.server.open_stream(&scenario.key).await;
    scenario.server.advance(Millis::from_secs(10)).await;
    scenario
        .server
        .report_status(&scenario.key, &scenario.job, json!({"status": "running", "attempt": 2}))
        .await
        .expect_status(200);
    let path = format!("/api/workers/job/{}/artifacts/new?offset=0&size=5", scenario.job);
    let Actor::Worker(key) = &scenario.key else { unreachable!("a worker's key") };
    let (name, value) = key.auth_header(&scenario.server, &path).await;
    let request = Request::builder().method("PUT").uri(path).header(name, value);
    let request = request.header("x-content-sha256", digest).body("who".into()).expect("a request");
    read_response(scenario.server.send(request).await).await.expect_problem(507, "disk_full");
}
