//! `/api/overview`: how the fleet stands, and what somebody should look at.

use app::domain::time::Millis;
use axum::body::Body;
use serde_json::{Value, json};

use super::harness::{By, Server};

async fn overview(server: &Server) -> Value {
    server.get(&By::Admin, "/api/overview").await.ok(200)
}

/// What is told, as kind and severity.
fn told(overview: &Value) -> Vec<(&str, &str)> {
    let entries = overview["attention"].as_array().expect("a list");
    entries.iter().filter_map(|entry| Some((entry["kind"].as_str()?, entry["severity"].as_str()?))).collect()
}

/// GPUs by state, of which none is busy or in use.
fn gpus(free: u64, quarantined: u64, not_connected: u64) -> Value {
    json!({"busy": 0, "free": free, "in_use": 0, "quarantined": quarantined, "not_connected": not_connected})
}

/// A worker with two GPUs, of which the second shows an error.
async fn broken(server: &Server) -> (String, By) {
    let (id, key) = server.worker("rack-1").await;
    let error = json!({"reason": "quarantined", "detail": "XID 79"});
    let gpus = json!([
        {"index": 0, "uuid": "G0", "name": "A100", "vram_gb": 80},
        {"index": 1, "uuid": "G1", "name": "A100", "vram_gb": 80, "withheld": error},
    ]);
    let body =
        json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus, "tls_verify": false});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    (id, key)
}

#[tokio::test]
async fn a_quiet_server_says_that_nothing_needs_a_look() {
    let server = Server::start().await;
    let now = overview(&server).await;
    assert_eq!((told(&now), &now["more_attention"], &now["fleet"]), (vec![], &json!(0), &json!([])));
    assert_eq!(now["gpus"], gpus(0, 0, 0));
    let lead = server.person("rita", "researcher").await;
    server.call(&lead, "GET", "/api/overview", Body::empty()).await.problem(403, "permission_denied");
}

#[tokio::test]
async fn it_counts_and_tells_what_is_wrong_the_most_urgent_first() {
    let server = Server::start().await;
    server.config("digits").await;
    server.worker("a-never-seen").await;
    let (id, key) = broken(&server).await;
    let events = server.stream(&key).await;
    let now = overview(&server).await;
    assert_eq!(told(&now), [("gpus_withheld", "warning"), ("unverified", "warning")]);
    let first = &now["attention"][0];
    assert_eq!((&first["worker_id"], &first["count"]), (&json!(id), &json!(1)));
    assert!(first["detail"].as_str().is_some_and(|detail| detail.starts_with("GPU 1")), "{first}");
    assert_eq!(now["gpus"], gpus(1, 1, 0));
    let names: Vec<_> = now["fleet"].as_array().expect("a list").iter().map(|worker| &worker["name"]).collect();
    assert_eq!(names, ["rack-1", "a-never-seen"], "who needs a look comes first");

    let job = server.submit("digits").await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    let labels = json!({"team": "nlp"});
    let body = json!({"config_name": "digits", "worker_labels": labels, "gpu_count": 9});
    let stuck = server.post(&By::Admin, "/api/queue/submit", body).await.ok(201)["job_id"].clone();
    let now = overview(&server).await;
    assert_eq!((&now["jobs"]["running"], &now["jobs"]["waiting"]), (&json!(1), &json!(1)));
    assert_eq!(now["jobs"]["oldest_waiting"]["job_id"], stuck);
    assert_eq!(now["workers"]["busy"], 1);
    let shown = server.job(stuck.as_str().expect("text")).await;
    assert_eq!((&shown["queue_position"], &shown["fits_none"]), (&json!(1), &json!(true)));

    drop(events);
    server.pass(Millis::seconds(1_860)).await;
    let now = overview(&server).await;
    let kinds: Vec<_> = told(&now).into_iter().map(|(kind, _)| kind).collect();
    assert!(kinds.starts_with(&["offline_with_job"]) && kinds.contains(&"stuck"), "{kinds:?}");
    assert_eq!((&now["attention"][0]["worker_id"], &now["attention"][0]["job_id"]), (&json!(id), &json!(job)));
    assert_eq!(now["gpus"], gpus(0, 0, 2), "what is gone is counted as that");
}
