//! Files that come in pieces: whoever was cut off goes on where they were, and nothing is stored that is not whole.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use app::domain::time::Millis;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::harness::{Answer, By, Server, read};
use crate::tokens::hex;

struct Story {
    server: Server,
    key: By,
    job: String,
    token: String,
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

impl Story {
    async fn begin() -> Self {
        let server = Server::start().await;
        server.config("digits").await;
        let (_, key, mut events) = server.online("gpu-1").await;
        let job = server.submit("digits").await;
        let token = events.offer().await.upload_token;
        server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
        Self { server, key, job, token }
    }

    /// Sends a piece of a file with this digest.
    async fn put(&self, query: &str, digest: &str, body: impl Into<Body>) -> Answer {
        let uri = format!("/api/workers/job/{}/artifacts/sub/model.bin?attempt=1&kind=final&{query}", self.job);
        let request = Request::builder().method("PUT").uri(uri).header("x-upload-token", &self.token);
        let request = request.header("x-content-sha256", digest).body(body.into()).expect("a request");
        read(self.server.send(request).await).await
    }

    async fn received(&self, size: usize, digest: &str) -> Value {
        let query = format!("attempt=1&size={size}&sha256={digest}");
        let path = format!("/api/workers/job/{}/artifacts/sub/model.bin?{query}", self.job);
        self.server.get(&By::Job(self.token.clone()), &path).await.ok(200)["received"].clone()
    }

    async fn stored(&self) -> Option<Vec<u8>> {
        let answer = self.server.get(&By::Admin, &format!("/api/queue/{}/artifacts/sub/model.bin", self.job)).await;
        (answer.status == 200).then_some(answer.body)
    }

    /// The parts that are on disk.
    fn parts(&self) -> Vec<PathBuf> {
        let job = self.server.directory.path().join("uploads").join(&self.job);
        let parts = std::fs::read_dir(job).into_iter().flatten();
        parts.map(|part| part.expect("a directory").path()).collect()
    }
}

#[tokio::test]
async fn a_file_comes_in_pieces_that_may_come_twice() {
    let story = Story::begin().await;
    let bytes: Vec<u8> = (0..900_u16).map(|n| n.to_le_bytes()[0]).collect();
    let digest = sha256(&bytes);
    let put = async |from: usize, to: usize| {
        let query = format!("offset={from}&size={}", bytes.len());
        story.put(&query, &digest.to_uppercase(), bytes[from..to].to_vec()).await
    };
    assert_eq!(story.received(900, &digest).await, 0);
    assert_eq!(put(0, 300).await.ok(200), json!({"received": 300}));
    assert_eq!(put(100, 400).await.ok(200), json!({"received": 400}), "what is there is passed over");
    assert_eq!(put(500, 600).await.problem(409, "upload_gap")["received"], 400);
    assert_eq!((story.received(900, &digest).await, story.stored().await), (json!(400), None));
    let ack = put(400, 900).await.ok(200);
    let expected = json!({"path": "sub/model.bin", "size_bytes": 900, "sha256": digest});
    assert_eq!((&ack, story.stored().await), (&expected, Some(bytes.clone())));
    assert_eq!((story.received(900, &digest).await, story.parts().len()), (json!(900), 0));
    assert_eq!(put(400, 900).await.ok(200), expected, "its answer was lost");
    let listed = story.server.get(&By::Admin, &format!("/api/queue/{}/artifacts", story.job)).await.ok(200);
    assert_eq!(listed["artifacts"][0]["kind"], "final");
}

#[tokio::test]
async fn what_came_before_the_connection_broke_is_not_sent_again() {
    let story = Story::begin().await;
    let digest = sha256(b"one two three");
    let pieces = [Ok("one two "), Err(std::io::Error::other("the network is gone"))];
    let body = Body::from_stream(futures_util::stream::iter(pieces));
    let problem = story.put("offset=0&size=13", &digest, body).await.problem(400, "upload_refused");
    let detail = problem["detail"].as_str().expect("text");
    assert!(detail.ends_with("The first 8 bytes of it are kept: send what follows them."), "{detail}");
    assert_eq!(story.received(13, &digest).await, 8);
    story.put("offset=8&size=13", &digest, "three").await.ok(200);
    assert_eq!(story.stored().await, Some(b"one two three".to_vec()));
}

#[tokio::test]
async fn a_file_that_has_all_its_bytes_is_finished_by_an_empty_piece() {
    let story = Story::begin().await;
    let digest = sha256(b"whole");
    story.put("offset=0&size=5", &digest, "whol").await.ok(200);
    story.put("offset=4&size=5", &digest, "").await.ok(200);
    let part = story.parts().pop().expect("a part");
    std::fs::write(part, "whole").expect("as if the server had ended before it was stored");
    story.put("offset=5&size=5", &digest, "").await.ok(200);
    assert_eq!(story.stored().await, Some(b"whole".to_vec()));
}

#[tokio::test]
async fn who_sends_the_last_piece_again_while_the_file_is_stored_gets_the_same_answer() {
    let story = Story::begin().await;
    for n in 0..20 {
        let bytes = format!("whole {n:02}").into_bytes();
        let digest = sha256(&bytes);
        story.put("offset=0&size=8", &digest, bytes[..4].to_vec()).await.ok(200);
        let all = (0..8).map(|_| story.put("offset=4&size=8", &digest, bytes[4..].to_vec()));
        let answers: Vec<Value> =
            futures_util::future::join_all(all).await.into_iter().map(|answer| answer.ok(200)).collect();
        let expected = json!({"path": "sub/model.bin", "size_bytes": 8, "sha256": digest});
        assert_eq!(answers, vec![expected; 8]);
        assert_eq!((story.stored().await, story.parts().len()), (Some(bytes), 0));
    }
}

#[tokio::test]
async fn what_came_in_pieces_is_not_copied_once_more() {
    let story = Story::begin().await;
    let digest = sha256(b"whole");
    story.put("offset=0&size=5", &digest, "whol").await.ok(200);
    let inode = |path: &std::path::Path| std::fs::metadata(path).expect("there").ino();
    let part = inode(&story.parts()[0]);
    story.put("offset=4&size=5", &digest, "e").await.ok(200);
    let stored = story.server.directory.path().join("artifacts").join(&story.job).join("1/sub/model.bin");
    assert_eq!(inode(&stored), part);
}

#[tokio::test]
async fn what_is_not_what_was_announced_is_dropped() {
    let story = Story::begin().await;
    let digest = sha256(b"other");
    story.put("offset=0&size=5", &digest, "who").await.ok(200);
    let problem = story.put("offset=3&size=5", &digest, "le").await.problem(400, "upload_refused");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.ends_with("Nothing was kept of it.")), "{problem}");
    assert_eq!((story.received(5, &digest).await, story.parts().len()), (json!(0), 0), "it begins anew");
    story.put("offset=0&size=5", &digest, "others").await.problem(400, "upload_refused");
    story.put("offset=0&size=5", &digest, "other").await.ok(200);
    assert_eq!(story.stored().await, Some(b"other".to_vec()));
}

#[tokio::test]
async fn a_file_that_changed_on_its_worker_begins_anew() {
    let story = Story::begin().await;
    story.put("offset=0&size=5", &sha256(b"first"), "fir").await.ok(200);
    let problem = story.put("offset=3&size=6", &sha256(b"second"), "ond").await.problem(409, "upload_gap");
    assert_eq!(problem["received"], 0);
    story.put("offset=0&size=6", &sha256(b"second"), "second").await.ok(200);
    assert_eq!(story.stored().await, Some(b"second".to_vec()));
}

#[tokio::test]
async fn what_says_too_little_or_too_much_is_refused() {
    let story = Story::begin().await;
    let digest = sha256(b"x");
    story.put("offset=0", &digest, "x").await.problem(422, "out_of_range");
    story.put("offset=0&size=1", "", "x").await.problem(422, "out_of_range");
    story.put("offset=0&size=1", &"z".repeat(64), "x").await.problem(422, "out_of_range");
    story.put("offset=0&size=1001", &digest, "x").await.problem(413, "upload_refused");
    story.put("offset=-1&size=1", &digest, "x").await.problem(400, "invalid_query");
    let path = |path: &str| format!("/api/workers/job/{}/artifacts/{path}?size=1&sha256={digest}", story.job);
    let token = By::Job(story.token.clone());
    story.server.get(&token, &path("%2e%2e/escape")).await.problem(422, "invalid_path");
    let escape = format!("{}&offset=0", path("a/%2e%2e/%2e%2e/escape"));
    story.server.call(&token, "PUT", &escape, "x").await.problem(422, "invalid_path");
    story.server.get(&token, &path("x").replace("size=1&", "")).await.problem(422, "out_of_range");
    assert!(story.parts().is_empty());
}

#[tokio::test]
async fn an_attempt_that_is_over_sends_no_more_and_its_parts_go() {
    let story = Story::begin().await;
    let digest = sha256(b"whole");
    story.put("offset=0&size=5", &digest, "who").await.ok(200);
    let sweep = async || story.server.app.core.sweep_uploads().await.expect("a disk");
    assert_eq!(sweep().await, 0, "it may go on");
    story.server.report(&story.key, &story.job, json!({"status": "failed", "attempt": 1})).await.ok(200);
    story.put("offset=3&size=5", &digest, "le").await.problem(409, "job_ended");
    let path = format!("/api/workers/job/{}/artifacts/sub/model.bin?size=5&sha256={digest}", story.job);
    story.server.get(&By::Job(story.token.clone()), &path).await.problem(409, "job_ended");
    assert_eq!((sweep().await, story.parts().len(), sweep().await), (1, 0, 0));
}

#[tokio::test]
async fn a_part_that_nobody_goes_on_with_for_a_day_goes() {
    let story = Story::begin().await;
    story.put("offset=0&size=5", &sha256(b"whole"), "who").await.ok(200);
    let ago = |span: Millis| {
        let at = Duration::from_millis((story.server.app.core.now().0 - span.0).unsigned_abs());
        let part = File::options().write(true).open(&story.parts()[0]).expect("a part");
        part.set_modified(UNIX_EPOCH + at).expect("a file's time");
    };
    ago(Millis::seconds(86_400));
    assert_eq!(story.server.app.core.sweep_uploads().await, Ok(0));
    ago(Millis::seconds(86_401));
    assert_eq!(story.server.app.core.sweep_uploads().await, Ok(1));
    assert!(story.parts().is_empty());
}

#[tokio::test]
async fn a_full_disk_takes_no_piece_of_what_is_new() {
    let story = Story::begin().await;
    story.server.clock.advance(Millis(1));
    story.server.disk.set_free(1 << 30);
    story.server.app.core.look_at_disk().expect("a disk by hand");
    let digest = sha256(b"whole");
    story.put("offset=0&size=5", &digest, "who").await.ok(200);
    story.server.report(&story.key, &story.job, json!({"status": "requeue", "attempt": 1})).await.ok(200);
    let _events = story.server.stream(&story.key).await;
    story.server.pass(Millis::seconds(10)).await;
    story.server.report(&story.key, &story.job, json!({"status": "running", "attempt": 2})).await.ok(200);
    let path = format!("/api/workers/job/{}/artifacts/new?offset=0&size=5", story.job);
    let By::Worker(key) = &story.key else { unreachable!("a worker's key") };
    let (name, value) = key.header(&story.server, &path).await;
    let request = Request::builder().method("PUT").uri(path).header(name, value);
    let request = request.header("x-content-sha256", digest).body("who".into()).expect("a request");
    read(story.server.send(request).await).await.problem(507, "disk_full");
}
