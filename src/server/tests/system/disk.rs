//! Low disk space: new jobs are rejected and running ones continue.

use app::domain::time::Millis;
use axum::http::{StatusCode, header};
use futures_util::StreamExt;
use serde_json::json;

use crate::tests::harness::{Actor, TestServer};

const GIB: u64 = 1 << 30;

/// Sets the free disk space.
fn set_free_space(server: &TestServer, bytes: u64) {
    server.disk.set_free(bytes);
    server.app.services.context.refresh_disk_space().expect("a manual disk");
}

#[tokio::test]
async fn low_disk_space_rejects_new_jobs_with_hysteresis() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let ended_job = server.submit("digits").await;
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{ended_job}/cancel"), "").await.expect_status(200);
    let body = json!({"config_name": "digits", "target": "worker"});
    let submit = async || server.post(&Actor::Admin, "/api/queue/submit", body.clone()).await;
    set_free_space(&server, 2 * GIB - 1);
    let response = submit().await;
    assert_eq!(response.headers[header::RETRY_AFTER], "60");
    let problem = response.expect_problem(507, "disk_full");
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains("2047 MiB are free")), "{problem}");
    server
        .call(&Actor::Admin, "POST", &format!("/api/queue/{ended_job}/retry"), "")
        .await
        .expect_problem(507, "disk_full");
    let dry_run = json!({"config_name": "digits", "dry_run": true});
    server.post(&Actor::Admin, "/api/queue/submit", dry_run).await.expect_status(200);
    assert_eq!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["disk_full"], true);
    set_free_space(&server, 2 * GIB + 1);
    submit().await.expect_problem(507, "disk_full");
    set_free_space(&server, 3 * GIB);
    submit().await.expect_status(201);
    assert_eq!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["disk_full"], false);
}

#[tokio::test]
async fn repeated_submit_is_answered_despite_low_disk_space() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let send = async || {
        let request = axum::http::Request::builder().method("POST").uri("/api/queue/submit");
        let request = request.header("x-api-key", crate::tests::harness::ADMIN).header("idempotency-key", "k");
        let request = request.body(json!({"config_name": "digits"}).to_string().into()).expect("a request");
        crate::tests::harness::read_response(server.send(request).await).await.expect_status(201)["job_id"].clone()
    };
    let job = send().await;
    set_free_space(&server, 0);
    assert_eq!(send().await, job);
}

#[tokio::test]
async fn running_jobs_continue_with_low_disk_space() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let running = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    server.report_status(&key, &running, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let waiting = server.submit("digits").await;
    server.clock.advance(Millis::from_secs(1));
    set_free_space(&server, GIB);
    let put = async |actor: &Actor, job: &str, path: &str| {
        server.call(actor, "PUT", &format!("/api/workers/job/{job}/{path}"), "bytes").await
    };
    put(&token, &running, "logs?attempt=1&offset=0").await.expect_status(200);
    put(&token, &running, "artifacts/model.bin?attempt=1&kind=final").await.expect_status(200);
    let points = json!({"attempt": 1, "points": [{"step": 1, "at": "2024-01-15T10:30:01Z", "loss": 0.5}]});
    server.post(&key, &format!("/api/workers/job/{running}/progress"), points).await.expect_status(200);
    server.report_status(&key, &running, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    let offer = events.next_offer().await;
    assert_eq!(offer.job_id.as_str(), waiting, "accepted jobs are offered");
    let token = Actor::Job(offer.upload_token);
    server.report_status(&key, &waiting, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    put(&token, &waiting, "artifacts/model.bin?attempt=1").await.expect_problem(507, "disk_full");
    put(&token, &waiting, "logs?attempt=1&offset=0").await.expect_status(200);
    set_free_space(&server, 3 * GIB);
    put(&token, &waiting, "artifacts/model.bin?attempt=1").await.expect_status(200);
}

#[tokio::test]
async fn overview_and_readiness_show_low_disk_space() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "researcher").await;
    let overview = async || server.get(&ada, "/").await.text();
    assert!(!overview().await.contains("almost full"));
    set_free_space(&server, GIB);
    assert!(overview().await.contains("disk is almost full"));
    let ready = server.get(&Actor::Unauthenticated, "/readyz").await;
    assert_eq!(ready.status, StatusCode::OK, "agents must be able to report");
    let ready = ready.json();
    assert_eq!((&ready["status"], &ready["checks"]["disk"]["status"]), (&json!("warning"), &json!("warning")));
}

#[tokio::test]
async fn configurations_are_rejected_with_low_disk_space() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    set_free_space(&server, GIB);
    let put = async |text: &str| {
        let body = json!({"files": {"config.json": text}}).to_string();
        server.call(&Actor::Admin, "PUT", "/api/configs/other", body).await
    };
    put("{}").await.expect_problem(507, "disk_full");
    set_free_space(&server, 3 * GIB);
    put("{}").await.expect_status(200);
    set_free_space(&server, GIB);
    put("{}").await.expect_status(200);
    put("{\"a\": 1}").await.expect_problem(507, "disk_full");
}

#[tokio::test]
async fn running_jobs_cannot_fill_the_disk_but_can_end() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let put = async |path: &str| server.call(&token, "PUT", &format!("/api/workers/job/{job}/{path}"), "bytes").await;
    let progress = async || {
        let points = json!({"attempt": 1, "points": [{"step": 1, "at": "2024-01-15T10:30:01Z", "loss": 0.5}]});
        server.post(&key, &format!("/api/workers/job/{job}/progress"), points).await
    };
    server.clock.advance(Millis::from_secs(1));
    set_free_space(&server, (512 << 20) - 1);
    let rejected = put("logs?attempt=1&offset=0").await.expect_problem(507, "disk_full");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("--disk-min-free-running")), "{rejected}");
    put("artifacts/model.bin?attempt=1").await.expect_problem(507, "disk_full");
    progress().await.expect_problem(507, "disk_full");
    set_free_space(&server, 512 << 20);
    put("logs?attempt=1&offset=0").await.expect_status(200);
    put("artifacts/model.bin?attempt=1").await.expect_status(200);
    progress().await.expect_status(200);
    set_free_space(&server, 0);
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
}

/// A running upload cannot fill the disk, however large it is.
#[tokio::test]
async fn upload_is_aborted_when_the_disk_is_full() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    server.clock.advance(Millis::from_secs(1));
    let app = server.app.clone();
    let disk = std::sync::Arc::clone(&server.disk);
    let chunks = futures_util::stream::iter(0..3).map(move |n| {
        if n == 1 {
            disk.set_free(0);
            app.services.context.refresh_disk_space().expect("a manual disk");
        }
        Ok::<_, std::convert::Infallible>(bytes::Bytes::from_static(b"piece"))
    });
    let path = format!("/api/workers/job/{job}/artifacts/model.bin?attempt=1");
    server.call(&token, "PUT", &path, axum::body::Body::from_stream(chunks)).await.expect_problem(507, "disk_full");
}
