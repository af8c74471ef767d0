//! `/api/workers/*`: requests of an agent before it has a job.

use app::domain::time::Millis;
use axum::body::Body;
use axum::http::header;
use serde_json::json;

use crate::tests::harness::{Actor, EventStreamReader, TestServer};

#[tokio::test]
async fn worker_connects_streams_and_disconnects() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    let show = async || server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    server.post(&key, "/api/workers/heartbeat", json!({})).await.expect_problem(409, "not_registered");
    server.get(&key, "/api/workers/stream").await.expect_problem(409, "not_registered");
    server.get(&key, "/api/workers/next").await.expect_problem(409, "not_registered");
    let registered = server.register(&key, json!([])).await;
    assert_eq!((&registered["worker_id"], &registered["name"]), (&json!(id), &json!("gpu-1")));
    assert_eq!(registered["heartbeat_interval_seconds"], 30);
    assert_eq!(registered["heartbeat_timeout_seconds"], 120);
    assert_eq!(show().await["status"], "connecting");
    let events = server.open_stream(&key).await;
    assert_eq!(show().await["status"], "idle");
    drop(events);
    server.post(&key, "/api/workers/disconnect", json!({"worker_id": id})).await.expect_status(200);
    assert_eq!(show().await["status"], "offline");
}

#[tokio::test]
async fn registration_accepts_every_documented_spelling() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    let show = async || server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    let flat_body = json!({
        "gpu_count": 2, "gpu_name": "NVIDIA A100-SXM4-80GB", "gpu_vram_gb": 80, "accelerator_type": "cuda"
    });
    server.post(&key, "/api/workers/register", flat_body).await.expect_status(200);
    let flat_view = show().await;
    assert_eq!((&flat_view["gpu_count"], &flat_view["gpu_name"]), (&json!(2), &json!("NVIDIA A100-SXM4-80GB")));
    assert_eq!((&flat_view["gpu_vram_gb"], &flat_view["accelerator_type"]), (&json!(80.0), &json!("cuda")));
    let older_agent = json!({
        "name": "host", "persistent": true, "current_job_id": null,
        "gpu_info": {"name": "RTX 4090", "vram_gb": 24, "count": 1, "driver": "550", "accelerator": "cuda"}
    });
    let response = server.post(&key, "/api/workers/register", older_agent).await.expect_status(200);
    assert_eq!(response.get("abandon_job"), None);
    let nested_view = show().await;
    assert_eq!(
        nested_view["gpu_info"],
        json!({
            "name": "RTX 4090", "vram_gb": 24.0, "count": 1, "driver": "550", "accelerator": "cuda"
        })
    );
    assert_eq!(
        (&nested_view["name"], &nested_view["worker_type"]),
        (&json!("gpu-1"), &json!("ephemeral")),
        "the first reported type stays"
    );
    let current_agent = json!({
        "protocol": 1, "accelerator_type": "cuda", "host": "h", "agent_version": "0.1.0", "labels": {"rack": "7"},
        "gpus": [{"index": 0, "uuid": "GPU-1", "name": "A100", "vram_gb": 80.0}, {"index": 1, "uuid": "GPU-2", "name": "GB10"}]
    });
    server.post(&key, "/api/workers/register", current_agent).await.expect_status(200);
    let current_view = show().await;
    assert_eq!(
        (&current_view["gpu_count"], &current_view["hostname"], &current_view["labels"]["rack"]),
        (&json!(2), &json!("h"), &json!("7"))
    );
}

#[tokio::test]
async fn invalid_requests_are_rejected_and_change_nothing() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    let register = async |body| server.post(&key, "/api/workers/register", body).await;
    register(json!({"gpu_count": 65})).await.expect_problem(422, "too_large");
    register(json!({"gpu_name": "x\u{7}", "gpu_count": 1})).await.expect_problem(422, "invalid_name");
    register(json!({"host": "x".repeat(300)})).await.expect_problem(422, "invalid_name");
    register(json!({"labels": {"": "x"}})).await.expect_problem(422, "invalid_labels");
    register(json!({"attempts": [{"job_id": "../x", "attempt": 1}]})).await.expect_problem(400, "invalid_json");
    let view = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!((&view["status"], &view["accelerator_type"]), (&json!("offline"), &json!(null)));
    server.register(&key, json!([])).await;
    let heartbeat = async |body| server.post(&key, "/api/workers/heartbeat", body).await;
    heartbeat(json!({"status": "banana"})).await.expect_problem(422, "invalid_status");
    heartbeat(json!({"worker_id": "w_other"})).await.expect_problem(422, "other_worker");
    heartbeat(json!({"worker_id": id, "status": "idle", "current_job_id": null})).await.expect_status(200);
}

#[tokio::test]
async fn admin_labels_and_type_survive_a_registration() {
    let server = TestServer::start().await;
    let body = json!({"name": "w", "worker_type": "persistent", "labels": {"gpu_type": "a100"}});
    let created = server.post(&Actor::Admin, "/api/admin/workers", body).await.expect_status(201);
    let key = Actor::worker(created["token"].as_str().expect("text"));
    let reported = json!({"persistent": false, "labels": {"gpu_type": "lie", "rack": "7"}});
    server.post(&key, "/api/workers/register", reported).await.expect_status(200);
    let view = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200)["workers"][0].clone();
    assert_eq!(
        (&view["worker_type"], &view["labels"]),
        (&json!("persistent"), &json!({"gpu_type": "a100", "rack": "7"}))
    );
}

#[tokio::test]
async fn new_stream_replaces_the_old_one() {
    let server = TestServer::start().await;
    let (id, key, mut old) = server.connect_worker("gpu-1").await;
    assert_eq!(old.next_of_type("drain").await["drain"], false);
    let mut new = server.open_stream(&key).await;
    assert!(old.next().await.is_none(), "the old stream ends");
    drop(old);
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    assert_eq!(new.next_offer().await.job_id.as_str(), job);
    let view = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!(view["status"], "busy");
}

#[tokio::test]
async fn unanswered_offer_is_repeated_on_the_next_stream() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut first) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let offer = first.next_offer().await;
    let mut second = server.open_stream(&key).await;
    assert_eq!(second.next_offer().await, offer, "the same attempt with the same token");
    server.report_status(&key, &job, json!({"status": "starting", "attempt": 1})).await.expect_status(200);
    let mut third = server.open_stream(&key).await;
    assert_eq!(third.next().await.expect("an event")["type"], "drain");
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    assert_eq!(third.next().await.expect("an event")["type"], "job_cancel", "the accepted offer is not repeated");
}

#[tokio::test]
async fn older_agent_of_a_drained_ephemeral_worker_is_stopped_when_idle() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let connect_older_agent = async |name: &str, persistent: bool| {
        let (id, key) = server.create_worker(name).await;
        let body = json!({"name": name, "gpu_info": {"count": 1}, "persistent": persistent});
        server.post(&key, "/api/workers/register", body).await.expect_status(200);
        let mut events = server.open_stream(&key).await;
        events.next_of_type("drain").await;
        (id, key, events)
    };
    let drain = async |id: &str, body: &str| {
        server
            .call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/drain"), body.to_owned())
            .await
            .expect_status(200)
    };
    let resume = async |id: &str| {
        server.call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/resume"), "").await.expect_status(200)
    };
    let (id, key, mut events) = connect_older_agent("spot", false).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "training", "error": null})).await.expect_status(200);
    drain(&id, r#"{"reason": "price"}"#).await;
    assert_eq!(events.next().await, Some(json!({"type": "drain", "drain": true})), "it may finish");
    server.report_status(&key, &job, json!({"status": "requeue"})).await.expect_status(200);
    let event = events.next().await.expect("an event");
    assert_eq!((&event["type"], &event["reason"]), (&json!("shutdown"), &json!("price")));
    resume(&id).await;
    assert_eq!(events.next().await, Some(json!({"type": "drain", "drain": false})), "`shutdown` is not repeated");
    drain(&id, "").await;
    assert_eq!(events.next_of_type("shutdown").await["reason"], "The worker is drained.");
    assert_eq!(server.open_stream(&key).await.next_of_type("shutdown").await["reason"], "The worker is drained.");

    // Persistent workers and current agents get a drain only.
    let (persistent, _, mut persistent_events) = connect_older_agent("persistent", true).await;
    let (newer, _, mut newer_events) = server.connect_worker("current").await;
    newer_events.next_of_type("drain").await;
    for (id, events) in [(persistent, &mut persistent_events), (newer, &mut newer_events)] {
        for drains in [true, false] {
            if drains {
                drain(&id, "").await
            } else {
                resume(&id).await
            };
            assert_eq!(events.next().await, Some(json!({"type": "drain", "drain": drains})));
        }
    }
}

#[tokio::test]
async fn agents_that_register_at_the_same_time_have_turns() {
    let server = TestServer::start().await;
    let (_, key) = server.create_worker("gpu").await;
    let services = &server.app.services;
    let mut others = Vec::new();
    while let Ok(permit) = services.agents.admission.begin(&services.context) {
        others.push(permit);
    }
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu"});
    let rejected = server.post(&key, "/api/workers/register", body.clone()).await;
    assert_eq!(rejected.headers["retry-after"], "2", "the last of the others has the turn after one second");
    let problem = rejected.expect_problem(503, "too_many_registrations");
    assert_eq!(problem["detail"], "Many agents register at the same time. Try again in 2 s.");
    others.pop();
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
}

#[tokio::test]
async fn streams_per_server_are_limited() {
    let server = TestServer::start().await;
    let mut connected = Vec::new();
    for n in 0..8 {
        connected.push(server.connect_worker(&format!("gpu-{n}")).await);
    }
    let (_, key) = server.create_worker("one-more").await;
    server.register(&key, json!([])).await;
    server.get(&key, "/api/workers/stream").await.expect_problem(503, "too_many_streams");
    server.get(&key, "/api/workers/next?wait=0").await.expect_status(200);
    connected.pop();
    let _events = server.open_stream(&key).await;
}

#[tokio::test]
async fn worker_is_connecting_after_its_stream_ends() {
    let server = TestServer::start().await;
    let (id, _, events) = server.connect_worker("gpu-1").await;
    let mut changes = server.app.services.context.notifier.subscribe();
    drop(events);
    let connecting = async {
        while server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"]
            != "connecting"
        {
            changes.changed().await.expect("a notifier");
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), connecting).await.expect("in time");
}

#[tokio::test]
async fn long_poll_returns_the_same_as_the_stream() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    server.register(&key, json!([])).await;
    let empty = server.get(&key, "/api/workers/next?wait=0").await.expect_status(200);
    assert_eq!(empty["desired"]["offers"], json!([]));
    assert_eq!(
        server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"],
        "idle"
    );
    server.put_config("digits").await;
    let waiting = server.open(&key, "GET", "/api/workers/next?wait=30", Body::empty());
    let submitting = server.submit("digits");
    let (response, job) = tokio::join!(waiting, submitting);
    let desired = crate::tests::harness::read_response(response).await.expect_status(200)["desired"].clone();
    assert_eq!((&desired["offers"][0]["job_id"], &desired["offers"][0]["attempt"]), (&json!(job), &json!(1)));
    assert_eq!(server.get(&key, "/api/workers/queue").await.expect_status(200)["has_jobs"], true);
}

#[tokio::test]
async fn agent_of_a_retired_ephemeral_worker_is_notified() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let body = json!({"name": "once", "worker_type": "ephemeral"});
    let created = server.post(&Actor::Admin, "/api/admin/workers", body).await.expect_status(201);
    let key = Actor::worker(created["token"].as_str().expect("text"));
    server.register(&key, json!([])).await;
    let mut events = server.open_stream(&key).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    assert!(!server.heartbeat(&key, json!([{"job_id": job, "attempt": 1}])).await.retired);
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    assert!(server.heartbeat(&key, json!([])).await.retired);
}

#[tokio::test]
async fn status_report_may_contain_progress() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    let point = json!({"step": 3, "total_steps": 10, "at": "2024-01-15T10:30:00Z", "loss": 0.5});
    let report = json!({"status": "running", "attempt": 1, "progress": point});
    server.report_status(&key, &job, report).await.expect_status(200);
    let progress = &server.job(&job).await["progress"];
    assert_eq!((&progress["step"], &progress["loss"]), (&json!(3), &json!(0.5)), "{progress}");
}

#[tokio::test]
async fn jobs_arrive_by_server_sent_events() {
    let server = TestServer::start().await;
    let (_, key) = server.create_worker("gpu-1").await;
    server.register(&key, json!([])).await;
    let response = server.open(&key, "GET", "/api/workers/stream", Body::empty()).await;
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    let mut events = EventStreamReader::new(response);
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    assert_eq!(events.next_offer().await.job_id.as_str(), job);
}

#[tokio::test]
async fn heartbeat_updates_the_last_contact() {
    let server = TestServer::start().await;
    let (id, key, _events) = server.connect_worker("gpu-1").await;
    let last_heartbeat = async || {
        let view = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
        view["last_heartbeat"].as_str().expect("a time").to_owned()
    };
    let after_registration = last_heartbeat().await;
    server.clock.advance(Millis::from_secs(30));
    assert_eq!(last_heartbeat().await, after_registration, "there was no contact");
    server.heartbeat(&key, json!([])).await;
    let after_heartbeat = last_heartbeat().await;
    assert!(
        after_heartbeat > after_registration && after_heartbeat.ends_with('Z'),
        "{after_registration} {after_heartbeat}"
    );
}
