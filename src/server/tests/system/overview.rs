//! `/api/overview`: state of the fleet and alerts.

use std::collections::BTreeSet;

use app::domain::time::Millis;
use axum::body::Body;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

async fn overview(server: &TestServer) -> Value {
    server.get(&Actor::Admin, "/api/overview").await.expect_status(200)
}

/// Returns the kind and severity of alerts.
fn alerts(overview: &Value) -> Vec<(&str, &str)> {
    let entries = overview["attention"].as_array().expect("a list");
    entries.iter().filter_map(|entry| Some((entry["kind"].as_str()?, entry["severity"].as_str()?))).collect()
}

/// Returns GPUs by state, with none busy or in use.
fn gpus(free: u64, quarantined: u64, not_connected: u64) -> Value {
    json!({"busy": 0, "free": free, "in_use": 0, "quarantined": quarantined, "not_connected": not_connected})
}

/// A worker with two GPUs, of which the second reports an error.
async fn worker_with_bad_gpu(server: &TestServer) -> (String, Actor) {
    let (id, key) = server.create_worker("rack-1").await;
    let error = json!({"reason": "quarantined", "detail": "XID 79"});
    let gpus = json!([
        {"index": 0, "uuid": "G0", "name": "A100", "vram_gb": 80},
        {"index": 1, "uuid": "G1", "name": "A100", "vram_gb": 80, "unavailable": error},
    ]);
    let body =
        json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus, "tls_verify": false});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    (id, key)
}

#[tokio::test]
async fn idle_server_has_no_alerts() {
    let server = TestServer::start().await;
    let now = overview(&server).await;
    assert_eq!((alerts(&now), &now["more_attention"], &now["fleet"]), (vec![], &json!(0), &json!([])));
    assert_eq!(now["gpus"], gpus(0, 0, 0));
    let researcher = server.add_user("rita", "researcher").await;
    server.call(&researcher, "GET", "/api/overview", Body::empty()).await.expect_problem(403, "permission_denied");
}

#[tokio::test]
async fn overview_counts_and_lists_alerts_by_severity() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    server.create_worker("a-never-seen").await;
    let (id, key) = worker_with_bad_gpu(&server).await;
    let events = server.open_stream(&key).await;
    let now = overview(&server).await;
    assert_eq!(alerts(&now), [("gpus_unavailable", "warning"), ("tls_unverified", "warning")]);
    let first = &now["attention"][0];
    assert_eq!((&first["worker_id"], &first["count"]), (&json!(id), &json!(1)));
    assert!(first["detail"].as_str().is_some_and(|detail| detail.starts_with("GPU 1")), "{first}");
    assert_eq!((&now["gpus"], &now["gpus_measured"]), (&gpus(1, 1, 0), &json!(0)));
    let readings = json!([{"uuid": "G0", "utilization_percent": 40.0}, {"uuid": "G1", "unavailable": {"reason": "quarantined", "detail": "XID 79"}}]);
    let telemetry = json!({"telemetry": [{"at": "2024-01-15T10:30:00Z", "gpus": readings}]});
    server.post(&key, "/api/workers/heartbeat", telemetry).await.expect_status(200);
    assert_eq!(overview(&server).await["gpus_measured"], 1);
    let names: Vec<_> = now["fleet"].as_array().expect("a list").iter().map(|worker| &worker["name"]).collect();
    assert_eq!(names, ["rack-1", "a-never-seen"], "workers that need attention come first");

    let job = server.submit("digits").await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let labels = json!({"team": "nlp"});
    let body = json!({"config_name": "digits", "worker_labels": labels, "gpu_count": 9});
    let stuck = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201)["job_id"].clone();
    let now = overview(&server).await;
    assert_eq!((&now["jobs"]["running"], &now["jobs"]["waiting"]), (&json!(1), &json!(1)));
    assert_eq!(now["jobs"]["oldest_waiting"]["job_id"], stuck);
    assert_eq!(now["workers"]["busy"], 1);
    let view = server.job(stuck.as_str().expect("text")).await;
    assert_eq!((&view["queue_position"], &view["fits_none"]), (&json!(1), &json!(true)));

    drop(events);
    server.advance(Millis::from_secs(1_860)).await;
    let now = overview(&server).await;
    let kinds: Vec<_> = alerts(&now).into_iter().map(|(kind, _)| kind).collect();
    assert!(kinds.starts_with(&["offline_with_job"]) && kinds.contains(&"stuck"), "{kinds:?}");
    assert_eq!((&now["attention"][0]["worker_id"], &now["attention"][0]["job_id"]), (&json!(id), &json!(job)));
    assert_eq!(now["gpus"], gpus(0, 0, 2), "offline ones are counted as offline");
    assert_eq!(now["gpus_measured"], 0, "GPUs of offline workers are not measured");
}

/// The alerts about offline workers.
async fn offline_alerts(server: &TestServer) -> Vec<(String, String)> {
    let now = overview(server).await;
    let found = alerts(&now).into_iter().filter(|(kind, _)| kind.starts_with("offline"));
    found.map(|(kind, severity)| (kind.to_owned(), severity.to_owned())).collect()
}

fn expected_alert(kind: &str, severity: &str) -> Vec<(String, String)> {
    vec![(kind.to_owned(), severity.to_owned())]
}

#[tokio::test]
async fn worker_that_fell_silent_with_a_job_is_an_alert_until_a_drain() {
    let server = TestServer::start().await;
    let (id, _, _events, job) = server.connect_busy_worker().await;
    server.advance(Millis::from_secs(121)).await;
    assert_eq!(offline_alerts(&server).await, expected_alert("offline_with_job", "critical"));
    let (_, other, mut other_events) = server.connect_worker("gpu-2").await;
    server.advance(Millis::from_secs(10)).await;
    other_events.next_offer().await;
    assert_eq!(
        offline_alerts(&server).await,
        expected_alert("offline_with_job", "critical"),
        "its offer is unanswered"
    );
    server.report_status(&other, &job, json!({"status": "running", "attempt": 2})).await.expect_status(200);
    assert_eq!(offline_alerts(&server).await, expected_alert("offline", "warning"));
    let now = overview(&server).await;
    assert_eq!((&now["attention"][0]["worker_id"], &now["attention"][0]["job_id"]), (&json!(id), &json!(job)));
    server.call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/drain"), "").await.expect_status(200);
    assert_eq!(offline_alerts(&server).await, []);
}

/// Starts jobs on a worker, which then falls silent; returns their IDs.
async fn silent_worker_with_jobs(server: &TestServer, number: usize) -> BTreeSet<String> {
    server.put_config("digits").await;
    let (_, key) = server.create_worker("gpu-1").await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "max_jobs": number});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let mut events = server.open_stream(&key).await;
    let mut jobs = BTreeSet::new();
    for _ in 0..number {
        let job = server.submit("digits").await;
        events.next_offer().await;
        server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        jobs.insert(job);
    }
    server.advance(Millis::from_secs(121)).await;
    jobs
}

/// The number of jobs of the first alert, and those that it names.
async fn lost_jobs(server: &TestServer) -> (u64, BTreeSet<String>) {
    let now = overview(server).await;
    let alert = &now["attention"][0];
    assert_eq!((&alert["kind"], &alert["job_id"]), (&json!("offline_with_job"), &alert["job_ids"][0]));
    let named = alert["job_ids"].as_array().expect("a list").iter();
    (alert["count"].as_u64().expect("a number"), named.map(|id| id.as_str().expect("an ID").to_owned()).collect())
}

#[tokio::test]
async fn alert_names_all_jobs_of_a_worker_that_fell_silent() {
    let server = TestServer::start().await;
    let mut jobs = silent_worker_with_jobs(&server, 3).await;
    assert_eq!(lost_jobs(&server).await, (3, jobs.clone()));

    // One runs elsewhere, and the others wait.
    let (_, other, mut other_events) = server.connect_worker("gpu-2").await;
    server.advance(Millis::from_secs(10)).await;
    let offer = other_events.next_offer().await;
    let moved = offer.job_id.as_str();
    server.report_status(&other, moved, json!({"status": "running", "attempt": 2})).await.expect_status(200);
    assert!(jobs.remove(moved), "{moved}");
    assert_eq!(lost_jobs(&server).await, (2, jobs));
}

#[tokio::test]
async fn alert_names_twenty_jobs_and_counts_the_others() {
    let server = TestServer::start().await;
    let jobs = silent_worker_with_jobs(&server, 22).await;
    let (count, named) = lost_jobs(&server).await;
    assert_eq!((count, named.len()), (22, 20));
    assert!(named.is_subset(&jobs), "{named:?}");
}

#[tokio::test]
async fn rejected_agent_is_an_alert_until_it_registers() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    let rejected = async || {
        let now = overview(&server).await;
        let entries = now["attention"].as_array().expect("a list").clone();
        entries.into_iter().find(|entry| entry["kind"] == "registration_rejected")
    };
    let register = json!({"name": "gpu-1", "protocol": 1, "persistent": true, "accelerator_type": "cpu"});
    let path = "/api/workers/register";
    server
        .post(&Actor::worker("wt_cut"), path, json!({"name": "another"}))
        .await
        .expect_problem(401, "worker_token_invalid");
    assert_eq!(rejected().await, None, "no worker has this name");
    server.post(&Actor::worker("wt_cut"), path, register.clone()).await.expect_problem(401, "worker_token_invalid");
    let alert = rejected().await.expect("an alert");
    assert_eq!(
        (&alert["worker_id"], &alert["name"], &alert["severity"], &alert["detail"]),
        (&json!(id), &json!("gpu-1"), &json!("warning"), &json!("worker_token_invalid"))
    );
    server.post(&key, path, register).await.expect_status(200);
    assert_eq!(rejected().await, None);
}

#[tokio::test]
async fn disconnect_is_no_alert_before_its_job_is_lost() {
    let server = TestServer::start().await;
    let (_, key, _events, job) = server.connect_busy_worker().await;
    let body = json!({"left_running": [{"job_id": job, "attempt": 1}]});
    server.post(&key, "/api/workers/disconnect", body).await.expect_status(200);
    assert_eq!(offline_alerts(&server).await, []);
    server.advance(Millis::from_secs(121)).await;
    assert_eq!(offline_alerts(&server).await, expected_alert("offline_with_job", "critical"));
}
