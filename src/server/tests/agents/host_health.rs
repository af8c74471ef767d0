//! An agent that reports its host as unhealthy gets no jobs, and pending jobs show the reason.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

const FULL: &str = "less than 10.0 GiB is free on the disk of /var/lib/w";

async fn heartbeat(server: &TestServer, key: &Actor, unhealthy_reason: Option<&str>) {
    let body = unhealthy_reason.map_or_else(|| json!({}), |reason| json!({"unhealthy_reason": reason}));
    server.post(key, "/api/workers/heartbeat", body).await.expect_status(200);
}

async fn worker_view(server: &TestServer, id: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)
}

async fn recorded_details(server: &TestServer) -> Vec<Value> {
    let page = server.get(&Actor::Admin, "/api/audit?action=worker.health_changed").await.expect_status(200);
    page["entries"].as_array().expect("a list").iter().map(|entry| entry["detail"].clone()).collect()
}

/// Connects a worker without GPUs for two jobs, which reports this health at registration.
async fn connect_worker(
    server: &TestServer,
    unhealthy_reason: Option<&str>,
) -> (String, Actor, crate::tests::harness::EventStreamReader) {
    server.put_config("digits").await;
    let (id, key) = server.create_worker("cpu-1").await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "max_jobs": 2, "unhealthy_reason": unhealthy_reason});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let mut events = server.open_stream(&key).await;
    events.next_of_type("drain").await;
    (id, key, events)
}

#[tokio::test]
async fn unhealthy_host_keeps_its_jobs_and_gets_no_new_ones() {
    let server = TestServer::start().await;
    let (id, key, mut events) = connect_worker(&server, None).await;
    let first = server.submit("digits").await;
    assert_eq!(events.next_offer().await.job_id.as_str(), first);
    server.report_status(&key, &first, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    heartbeat(&server, &key, Some(FULL)).await;
    assert_eq!(
        (server.job_status(&first).await.as_str(), &worker_view(&server, &id).await["unhealthy_reason"]),
        ("running", &json!(FULL))
    );
    let pending = server.submit("digits").await;
    let explained = server.get(&Actor::Admin, &format!("/api/queue/{pending}/explain")).await.expect_status(200);
    let blocker = &explained["workers"][0]["blockers"][0];
    assert_eq!(
        (&explained["verdict"], &blocker["code"], &blocker["found"]),
        (&json!("worker_unavailable"), &json!("host_unhealthy"), &json!(FULL))
    );
    assert_eq!(blocker["text"], format!("The agent accepts no new jobs: {FULL}"));
    assert!(explained["text"].as_str().is_some_and(|text| text.contains(FULL)), "{explained}");
    assert_eq!(server.job_status(&pending).await, "queued");
    heartbeat(&server, &key, None).await;
    assert_eq!(events.next_offer().await.job_id.as_str(), pending, "it is offered at once");
    assert_eq!(worker_view(&server, &id).await.get("unhealthy_reason"), None);
    assert_eq!(recorded_details(&server).await, [json!({"unhealthy_reason": null}), json!({"unhealthy_reason": FULL})]);
}

#[tokio::test]
async fn job_returned_by_an_unhealthy_host_goes_elsewhere_without_a_retry() {
    const REASON: &str = "jobs of 3 configurations in a row failed within 10 s";
    let server = TestServer::start().await;
    let (id, key, mut events) = connect_worker(&server, None).await;
    let job = server.submit("digits").await;
    assert_eq!(events.next_offer().await.job_id.as_str(), job);
    let report = |status| json!({"status": status, "attempt": 1, "unhealthy_reason": REASON, "error": "No CUDA"});
    server.report_status(&key, &job, report("running")).await.expect_status(200);
    assert_eq!(worker_view(&server, &id).await.get("unhealthy_reason"), None, "only with `requeue`");
    server.report_status(&key, &job, report("requeue")).await.expect_status(200);
    assert_eq!(worker_view(&server, &id).await["unhealthy_reason"], REASON);
    let requeued = server.get(&Actor::Admin, &format!("/api/queue/{job}")).await.expect_status(200);
    assert_eq!((&requeued["status"], &requeued["attempts"][0]["error"]), (&json!("queued"), &json!("No CUDA")));
    server.report_status(&key, &job, report("requeue")).await.expect_status(200);
    let overview = server.get(&Actor::Admin, "/api/overview").await.expect_status(200);
    let alerts = overview["attention"].as_array().expect("a list");
    assert!(alerts.iter().any(|alert| alert["kind"] == "host_unhealthy"), "{overview}");
    assert_eq!(recorded_details(&server).await, [json!({"unhealthy_reason": REASON})]);
    let (_, other) = server.create_worker("cpu-2").await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu"});
    server.post(&other, "/api/workers/register", body).await.expect_status(200);
    assert_eq!(server.open_stream(&other).await.next_offer().await.job_id.as_str(), job, "it waits for no back-off");
}

#[tokio::test]
async fn registration_reports_health() {
    let server = TestServer::start().await;
    let (id, key, mut events) = connect_worker(&server, Some("the disk\n is full")).await;
    assert_eq!(
        worker_view(&server, &id).await["unhealthy_reason"],
        "the disk is full",
        "control characters are removed"
    );
    let pending = server.submit("digits").await;
    assert_eq!(server.job_status(&pending).await, "queued");
    heartbeat(&server, &key, None).await;
    assert_eq!(events.next_offer().await.job_id.as_str(), pending);
}

#[tokio::test]
async fn unchanged_health_is_not_written_again() {
    let server = TestServer::start().await;
    let (id, key, _events) = connect_worker(&server, None).await;
    let commits = || server.app.services.context.metrics.commits.sizes.snapshot().count;
    heartbeat(&server, &key, Some("a")).await;
    let before = commits();
    for reason in ["a", "b", "c", "b"] {
        heartbeat(&server, &key, Some(reason)).await;
    }
    assert_eq!(
        (commits(), &worker_view(&server, &id).await["unhealthy_reason"]),
        (before + 1, &json!("b")),
        "only the first change of the reason is written"
    );
    let long = "x".repeat(1_000);
    server.clock.advance(Millis::from_secs(60));
    heartbeat(&server, &key, Some(&long)).await;
    assert_eq!(worker_view(&server, &id).await["unhealthy_reason"].as_str().map(str::len), Some(256));
}

#[tokio::test]
async fn alternating_health_does_not_flood_the_audit_log() {
    let server = TestServer::start_with(|policy| policy.quotas = policy.quotas.with_worker_changes(2)).await;
    let (id, key, _events) = server.connect_worker("gpu-1").await;
    for n in 0..200 {
        let unhealthy_reason = (n % 2 == 0).then_some("the disk is full");
        server
            .post(&key, "/api/workers/heartbeat", json!({"attempts": [], "unhealthy_reason": unhealthy_reason}))
            .await
            .expect_status(200);
    }
    let entries = async || {
        let audit_log = server
            .get(&Actor::Admin, &format!("/api/audit?action=worker.health_changed&target={id}&limit=500"))
            .await
            .expect_status(200);
        audit_log["entries"].as_array().expect("a list").len()
    };
    // Six changes in a burst, two of which were used to come online.
    assert!((2..=12).contains(&entries().await), "{}", entries().await);
    let worker = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!(worker["unhealthy_reason"], "the disk is full", "the worker stays unhealthy, and gets no jobs");
    server.clock.advance(Millis::from_secs(60));
    server.post(&key, "/api/workers/heartbeat", json!({"attempts": []})).await.expect_status(200);
    let worker = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!(worker["unhealthy_reason"], Value::Null);
}

#[tokio::test]
async fn repeated_registrations_are_rate_limited() {
    let server = TestServer::start_with(|policy| policy.quotas = policy.quotas.with_worker_changes(2)).await;
    let (id, key) = server.create_worker("gpu-1").await;
    let register = async |n: usize| {
        let body = json!({"name": "x", "protocol": 1, "persistent": true, "accelerator_type": "cpu", "agent_version": n.to_string()});
        server.post(&key, "/api/workers/register", body).await
    };
    for n in 0..6 {
        register(n).await.expect_status(200);
    }
    let rejected = register(6).await.expect_problem(429, "too_many_requests");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("--worker-change-limit")), "{rejected}");
    register(5).await.expect_status(200);
    server.clock.advance(Millis::from_secs(30));
    register(7).await.expect_status(200);
    let audit_log =
        server.get(&Actor::Admin, &format!("/api/audit?action=worker.registered&target={id}")).await.expect_status(200);
    assert_eq!(audit_log["entries"].as_array().expect("a list").len(), 7);
}

/// Connects a worker whose agent offers the directories of these names to jobs.
async fn connect_with_paths(
    server: &TestServer,
    name: &str,
    paths: Value,
) -> (String, crate::tests::harness::EventStreamReader) {
    let (id, key) = server.create_worker(name).await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "paths": paths});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    (id, server.open_stream(&key).await)
}

#[tokio::test]
async fn a_job_waits_for_a_worker_that_has_its_directories() {
    let server = TestServer::start().await;
    let backend =
        json!([{"instance_data_dir": "{data_root}/cats", "cache_dir_vae": "{output_dir}/vae", "caption": "{x}"}]);
    let files = json!({"files": {"config.json": "{}", "multidatabackend.json": backend.to_string()}});
    server.call(&Actor::Admin, "PUT", "/api/configs/cats", files.to_string()).await.expect_status(200);
    let (bare, _events) = connect_with_paths(&server, "bare", json!([])).await;
    let job = server.submit("cats").await;
    assert_eq!(server.job_status(&job).await, "queued", "no worker has its directories");
    let explained = server.get(&Actor::Admin, &format!("/api/queue/{job}/explain")).await.expect_status(200);
    let worker = explained["workers"].as_array().expect("a list").iter().find(|worker| worker["worker_id"] == bare);
    let blocker = &worker.expect("each worker is listed")["blockers"][0];
    assert_eq!((&blocker["code"], &blocker["found"]), (&json!("lacks_paths"), &json!("{data_root}")));
    let (_, mut events) = connect_with_paths(&server, "with-data", json!(["data_root"])).await;
    assert_eq!(events.next_offer().await.job_id.as_str(), job);
}
