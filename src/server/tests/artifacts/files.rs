//! Logs, metric points and artifacts, from the worker to the reader.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};

use crate::tests::harness::{ADMIN, Actor, EventStreamReader, TestServer, read_response};
use crate::tokens::hex;

/// A server with a running job; returns the job and its token.
async fn start_running_job() -> (TestServer, String, Actor) {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    (server, job, token)
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    hex(&sha2::Sha256::digest(bytes))
}

#[tokio::test]
async fn log_chunks_are_stored_in_order_and_once() {
    let (server, job, token) = start_running_job().await;
    let put = async |offset: u64, text: &'static str| {
        server.call(&token, "PUT", &format!("/api/workers/job/{job}/logs?attempt=1&offset={offset}"), text).await
    };
    assert_eq!(put(0, "epoch 1\n").await.expect_status(200)["durable"], 8);
    assert_eq!(put(0, "epoch 1\n").await.expect_status(200)["durable"], 8);
    assert_eq!(put(20, "late").await.expect_problem(409, "log_gap")["durable"], 8);
    assert_eq!(put(4, "h 1\nloss 0.5 €\n").await.expect_status(200)["durable"], 21);
    let get = async |query: &str| server.get(&Actor::Admin, &format!("/api/queue/{job}/logs{query}")).await;
    let all = get("").await.expect_status(200);
    assert_eq!((&all["text"], &all["size"], &all["attempt"]), (&json!("epoch 1\nloss 0.5 €\n"), &json!(21), &json!(1)));
    let chunk = get("?offset=8&limit=11").await.expect_status(200);
    assert_eq!((&chunk["text"], &chunk["next_offset"]), (&json!("loss 0.5 "), &json!(17)), "no character is cut");
    assert_eq!(get("?offset=17").await.expect_status(200)["text"], "€\n");
    let raw = get("?raw=1&attempt=1").await;
    assert_eq!((raw.status, raw.text()), (StatusCode::OK, "epoch 1\nloss 0.5 €\n".to_owned()));
    assert!(raw.headers[header::CONTENT_DISPOSITION].to_str().is_ok_and(|value| value.starts_with("attachment")));
    get("?attempt=2").await.expect_problem(404, "attempt_not_found");
    let too_large = vec![b'x'; (1 << 20) + 1];
    let path = format!("/api/workers/job/{job}/logs?attempt=1&offset=21");
    server.call(&token, "PUT", &path, too_large).await.expect_problem(413, "body_too_large");
}

#[tokio::test]
async fn log_stream_ends_with_the_attempt_and_can_resume() {
    let (server, job, token) = start_running_job().await;
    let put = async |offset: u64, text: &'static str| {
        server
            .call(&token, "PUT", &format!("/api/workers/job/{job}/logs?attempt=1&offset={offset}"), text)
            .await
            .expect_status(200)
    };
    let follow = async |resume: &str| {
        let request = Request::builder().uri(format!("/api/queue/{job}/logs?follow=1"));
        let request = request.header(header::AUTHORIZATION, format!("Bearer {ADMIN}")).header("last-event-id", resume);
        let request = request.header(header::HOST, "localhost:8001").body(Body::empty()).expect("a request");
        EventStreamReader::new(server.send(request).await)
    };
    put(0, "epoch 1\n").await;
    let mut reader = follow("").await;
    assert_eq!(reader.next().await.expect("a chunk")["text"], "epoch 1\n");
    put(8, "epoch 2\n").await;
    let chunk = reader.next().await.expect("a chunk");
    assert_eq!((&chunk["text"], &chunk["offset"], &chunk["next_offset"]), (&json!("epoch 2\n"), &json!(8), &json!(16)));
    let mut resumed = follow("8").await;
    assert_eq!(resumed.next().await.expect("a chunk")["text"], "epoch 2\n");
    put(16, "done\n").await;
    let status = json!({"status": "completed", "attempt": 1});
    server.post(&token, &format!("/api/workers/job/{job}/status"), status).await.expect_status(200);
    for mut reader in [reader, resumed, follow("16").await] {
        assert_eq!(reader.next().await.expect("a chunk")["text"], "done\n");
        assert_eq!(reader.next().await, None, "the stream has ended");
    }
}

#[tokio::test]
async fn progress_becomes_a_percentage_and_a_chart() {
    let (server, job, token) = start_running_job().await;
    let point = |step: u64, loss: f64| {
        json!({"step": step, "total_steps": 200, "at": "2024-01-15T10:30:00Z", "loss": loss,
        "learning_rate": 0.001, "metrics": {"accuracy": 0.5}})
    };
    let post = async |points: Value| {
        server.post(&token, &format!("/api/workers/job/{job}/progress"), json!({"attempt": 1, "points": points})).await
    };
    post(json!([point(1, 2.0), point(2, 1.5)])).await.expect_status(200);
    post(json!([point(50, 0.5)])).await.expect_status(200);
    post(json!([])).await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["progress"]["percent"], &view["progress"]["loss"]), (&json!(25.0), &json!(0.5)));
    let series = server.get(&Actor::Admin, &format!("/api/queue/{job}/progress")).await.expect_status(200);
    let steps: Vec<_> =
        series["points"].as_array().expect("a list").iter().map(|point| point["step"].clone()).collect();
    assert_eq!(steps, [1, 2, 50]);
    post(json!(vec![point(1, 1.0); 501])).await.expect_problem(422, "too_large");
    post(json!([{"step": 1, "at": "yesterday"}])).await.expect_problem(400, "invalid_json");
    let list = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(list["workers"][0]["jobs"][0]["percent"], 25.0);
}

#[tokio::test]
async fn file_upload_and_download_are_identical() {
    let (server, job, token) = start_running_job().await;
    let bytes = b"\x89PNG not really".to_vec();
    let put = async |path: &str, digest: &str, body: Vec<u8>| {
        let Actor::Job(token) = &token else { unreachable!("a job's token") };
        let uri = format!("/api/workers/job/{job}/artifacts/{path}?attempt=1&kind=sample");
        let request = Request::builder().method("PUT").uri(uri).header("x-upload-token", token);
        read_response(
            server.send(request.header("x-content-sha256", digest).body(Body::from(body)).expect("a request")).await,
        )
        .await
    };
    let stored = put("validation_images/a%20b.png", &sha256(&bytes), bytes.clone()).await.expect_status(200);
    assert_eq!((&stored["path"], &stored["size_bytes"]), (&json!("validation_images/a b.png"), &json!(bytes.len())));
    put("x.bin", &sha256(b"other"), bytes.clone()).await.expect_problem(400, "upload_rejected");
    put("large.bin", &sha256(&[0; 1_001]), vec![0; 1_001]).await.expect_problem(413, "upload_rejected");
    put("%2e%2e/escape", "", bytes.clone()).await.expect_problem(422, "invalid_path");
    put("a/%2e%2e/%2e%2e/escape", "", bytes.clone()).await.expect_problem(422, "invalid_path");
    let list = server.get(&Actor::Admin, &format!("/api/queue/{job}/artifacts")).await.expect_status(200);
    let artifacts = list["artifacts"].as_array().expect("a list");
    assert_eq!((artifacts.len(), &artifacts[0]["kind"]), (1, &json!("sample")));
    let url = artifacts[0]["url"].as_str().expect("a url");
    let download = server.get(&Actor::Admin, url).await;
    assert_eq!((download.status, &download.body), (StatusCode::OK, &bytes));
    assert_eq!(download.headers[header::CONTENT_TYPE], "image/png");
    assert_eq!(download.headers[header::ETAG], format!("\"{}\"", sha256(&bytes)));
    let again =
        Request::builder().uri(url).header("x-api-key", ADMIN).header("if-none-match", &download.headers[header::ETAG]);
    assert_eq!(server.send(again.body(Body::empty()).expect("a request")).await.status(), StatusCode::NOT_MODIFIED);
    server
        .get(&Actor::Admin, &format!("/api/queue/{job}/artifacts/none"))
        .await
        .expect_problem(404, "artifact_not_found");
}

#[tokio::test]
async fn active_content_is_download_only() {
    let (server, job, token) = start_running_job().await;
    let path = format!("/api/workers/job/{job}/artifacts/page.html?attempt=1&kind=other");
    server.call(&token, "PUT", &path, "<script>alert(1)</script>").await.expect_status(200);
    let download = server.get(&Actor::Admin, &format!("/api/queue/{job}/artifacts/page.html")).await;
    assert_eq!(download.headers[header::CONTENT_TYPE], "application/octet-stream");
    assert!(download.headers[header::CONTENT_DISPOSITION].to_str().is_ok_and(|value| value.starts_with("attachment")));
    let policy = download.headers[header::CONTENT_SECURITY_POLICY].to_str().expect("ascii");
    assert!(policy.starts_with("default-src 'none';") && policy.ends_with("; sandbox"), "{policy}");
}

#[tokio::test]
async fn bundle_is_the_submitted_revision() {
    let (server, job, token) = start_running_job().await;
    let changed = json!({"files": {"config.json": "{\"changed\": true}"}});
    server.call(&Actor::Admin, "PUT", "/api/configs/digits", changed.to_string()).await.expect_status(200);
    let bundle = server.get(&token, &format!("/api/workers/job/{job}/bundle?attempt=1")).await;
    assert_eq!(bundle.json()["files"]["config.json"], "{\"--num_processes\": 1}");
    assert_eq!(server.job(&job).await["config_revision"], 1);
}

#[tokio::test]
async fn offer_contains_a_small_bundle_and_what_need_not_be_requested() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, _, mut events) = server.connect_worker("gpu-1").await;
    for (size, is_inline) in [(10, true), (20_000, false)] {
        let config = json!({"note": "x".repeat(size)}).to_string();
        let bundle = json!({"files": {"config.json": config}}).to_string();
        server.call(&Actor::Admin, "PUT", "/api/configs/digits", bundle).await.expect_status(200);
        let job = server.submit("digits").await;
        let offer = events.next_offer().await;
        let token = Actor::Job(offer.upload_token);
        let download = server.get(&token, &offer.bundle.url).await.text();
        assert_eq!(offer.bundle.body, is_inline.then_some(download));
        assert_eq!((offer.has_secrets, offer.may_have_checkpoint), (false, false));
        server.report_status(&token, &job, json!({"status": "failed", "attempt": 1})).await.expect_status(200);
        let path = format!("/api/queue/{job}/retry");
        let retry = server.post(&Actor::Admin, &path, json!({})).await.expect_status(201);
        let offer = events.next_offer().await;
        assert_eq!((offer.has_secrets, offer.may_have_checkpoint), (false, true));
        let (job, token) = (retry["job_id"].as_str().expect("text").to_owned(), Actor::Job(offer.upload_token));
        server.report_status(&token, &job, json!({"status": "failed", "attempt": 1})).await.expect_status(200);
    }
}

#[tokio::test]
async fn ended_attempt_cannot_upload() {
    let (server, job, token) = start_running_job().await;
    server.report_status(&token, &job, json!({"status": "completed"})).await.expect_status(200);
    let base = format!("/api/workers/job/{job}");
    server.call(&token, "PUT", &format!("{base}/logs?offset=0"), "late").await.expect_problem(409, "job_ended");
    server.call(&token, "PUT", &format!("{base}/artifacts/late"), "late").await.expect_problem(409, "job_ended");
    let late = json!({"attempt": 1, "points": []});
    server.post(&token, &format!("{base}/progress"), late).await.expect_problem(409, "job_ended");
    server.get(&token, &format!("{base}/bundle")).await.expect_problem(409, "job_ended");
    assert_eq!(
        server.get(&Actor::Admin, &format!("/api/queue/{job}/artifacts")).await.expect_status(200)["artifacts"],
        json!([])
    );
}

#[tokio::test]
async fn files_are_limited_per_job_and_per_user() {
    let server = TestServer::start_with(|policy| {
        (policy.usage_limits.file_bytes_per_job, policy.usage_limits.file_bytes_per_user) = (1_000, 1_500);
    })
    .await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let mut start_running_job = async || {
        let job = server.submit("digits").await;
        let token = Actor::Job(events.next_offer().await.upload_token);
        server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        (job, token)
    };
    let put = async |job: &str, token: &Actor, name: &str, bytes: usize| {
        let path = format!("/api/workers/job/{job}/artifacts/{name}?attempt=1");
        server.call(token, "PUT", &path, "x".repeat(bytes)).await
    };
    let (first, token) = start_running_job().await;
    put(&first, &token, "a", 600).await.expect_status(200);
    let rejected = put(&first, &token, "b", 600).await.expect_problem(422, "limit_reached");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("--max-file-size-per-job")), "{rejected}");
    put(&first, &token, "a", 900).await.expect_status(200);
    server.report_status(&key, &first, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    let (second, token) = start_running_job().await;
    put(&second, &token, "a", 500).await.expect_status(200);
    let rejected = put(&second, &token, "b", 400).await.expect_problem(422, "limit_reached");
    assert!(
        rejected["detail"].as_str().is_some_and(|detail| detail.contains("--max-file-size-per-user")),
        "{rejected}"
    );
}
