//! `/api/overview`: state of the fleet and alerts.

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
