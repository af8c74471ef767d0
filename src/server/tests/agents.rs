//! `/api/workers/*`: what an agent does before it has a job.

use axum::body::Body;
use serde_json::json;

use super::harness::{By, Server};

#[tokio::test]
async fn a_worker_connects_listens_and_leaves() {
    let server = Server::start().await;
    let (id, key) = server.worker("gpu-1").await;
    let show = async || server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    server.post(&key, "/api/workers/heartbeat", json!({})).await.problem(409, "not_registered");
    server.get(&key, "/api/workers/stream").await.problem(409, "not_registered");
    server.get(&key, "/api/workers/next").await.problem(409, "not_registered");
    let registered = server.register(&key, json!([])).await;
    assert_eq!((&registered["worker_id"], &registered["name"]), (&json!(id), &json!("gpu-1")));
    assert_eq!(registered["heartbeat_interval_seconds"], 30);
    assert_eq!(registered["heartbeat_timeout_seconds"], 120);
    assert_eq!(show().await["status"], "connecting");
    let events = server.stream(&key).await;
    assert_eq!(show().await["status"], "idle");
    drop(events);
    server.post(&key, "/api/workers/disconnect", json!({"worker_id": id})).await.ok(200);
    assert_eq!(show().await["status"], "offline");
}

#[tokio::test]
async fn registration_takes_every_documented_spelling() {
    let server = Server::start().await;
    let (id, key) = server.worker("gpu-1").await;
    let show = async || server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    let documented = json!({
        "gpu_count": 2, "gpu_name": "NVIDIA A100-SXM4-80GB", "gpu_vram_gb": 80, "accelerator_type": "cuda"
    });
    server.post(&key, "/api/workers/register", documented).await.ok(200);
    let flat = show().await;
    assert_eq!((&flat["gpu_count"], &flat["gpu_name"]), (&json!(2), &json!("NVIDIA A100-SXM4-80GB")));
    assert_eq!((&flat["gpu_vram_gb"], &flat["accelerator_type"]), (&json!(80.0), &json!("cuda")));
    let older = json!({
        "name": "host", "persistent": true, "current_job_id": null,
        "gpu_info": {"name": "RTX 4090", "vram_gb": 24, "count": 1, "driver": "550", "accelerator": "cuda"}
    });
    let answer = server.post(&key, "/api/workers/register", older).await.ok(200);
    assert_eq!(answer.get("abandon_job"), None);
    let nested = show().await;
    assert_eq!(
        nested["gpu_info"],
        json!({
            "name": "RTX 4090", "vram_gb": 24.0, "count": 1, "driver": "550", "accelerator": "cuda"
        })
    );
    assert_eq!(
        (&nested["name"], &nested["worker_type"]),
        (&json!("gpu-1"), &json!("ephemeral")),
        "the first word stays"
    );
    let ours = json!({
        "protocol": 1, "accelerator_type": "cuda", "host": "h", "agent_version": "0.1.0", "labels": {"rack": "7"},
        "gpus": [{"index": 0, "uuid": "GPU-1", "name": "A100", "vram_gb": 80.0}, {"index": 1, "uuid": "GPU-2", "name": "GB10"}]
    });
    server.post(&key, "/api/workers/register", ours).await.ok(200);
    let listed = show().await;
    assert_eq!(
        (&listed["gpu_count"], &listed["hostname"], &listed["labels"]["rack"]),
        (&json!(2), &json!("h"), &json!("7"))
    );
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let server = Server::start().await;
    let (id, key) = server.worker("gpu-1").await;
    let register = async |body| server.post(&key, "/api/workers/register", body).await;
    register(json!({"gpu_count": 65})).await.problem(422, "too_much");
    register(json!({"gpu_name": "x\u{7}", "gpu_count": 1})).await.problem(422, "invalid_name");
    register(json!({"host": "x".repeat(300)})).await.problem(422, "invalid_name");
    register(json!({"labels": {"": "x"}})).await.problem(422, "invalid_labels");
    register(json!({"attempts": [{"job_id": "../x", "attempt": 1}]})).await.problem(400, "invalid_json");
    let view = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!((&view["status"], &view["accelerator_type"]), (&json!("offline"), &json!(null)));
    server.register(&key, json!([])).await;
    let beat = async |body| server.post(&key, "/api/workers/heartbeat", body).await;
    beat(json!({"status": "banana"})).await.problem(422, "invalid_status");
    beat(json!({"worker_id": "w_other"})).await.problem(422, "other_worker");
    beat(json!({"worker_id": id, "status": "idle", "current_job_id": null})).await.ok(200);
}

#[tokio::test]
async fn the_admins_labels_and_type_survive_a_registration() {
    let server = Server::start().await;
    let body = json!({"name": "w", "worker_type": "persistent", "labels": {"gpu_type": "a100"}});
    let made = server.post(&By::Admin, "/api/admin/workers", body).await.ok(201);
    let key = By::worker(made["token"].as_str().expect("text"));
    let reported = json!({"persistent": false, "labels": {"gpu_type": "lie", "rack": "7"}});
    server.post(&key, "/api/workers/register", reported).await.ok(200);
    let view = server.get(&By::Admin, "/api/admin/workers").await.ok(200)["workers"][0].clone();
    assert_eq!(
        (&view["worker_type"], &view["labels"]),
        (&json!("persistent"), &json!({"gpu_type": "a100", "rack": "7"}))
    );
}

#[tokio::test]
async fn a_new_stream_replaces_the_old_one_and_its_end_does_not_matter() {
    let server = Server::start().await;
    let (id, key, mut old) = server.online("gpu-1").await;
    assert_eq!(old.of_type("drain").await["drain"], false);
    let mut new = server.stream(&key).await;
    assert!(old.next().await.is_none(), "the old stream ends");
    drop(old);
    server.config("digits").await;
    let job = server.submit("digits").await;
    assert_eq!(new.offer().await.job_id.as_str(), job);
    let view = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!(view["status"], "busy");
}

#[tokio::test]
async fn an_offer_is_told_again_on_the_next_stream_until_it_is_answered() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut first) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let offer = first.offer().await;
    let mut second = server.stream(&key).await;
    assert_eq!(second.offer().await, offer, "the same attempt with the same token");
    server.report(&key, &job, json!({"status": "starting", "attempt": 1})).await.ok(200);
    let mut third = server.stream(&key).await;
    assert_eq!(third.next().await.expect("an event")["type"], "drain");
    server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    assert_eq!(third.next().await.expect("an event")["type"], "job_cancel", "no offer came before it");
}

#[tokio::test]
async fn an_older_agent_of_a_drained_ephemeral_worker_is_told_to_end_when_it_is_idle() {
    let server = Server::start().await;
    server.config("digits").await;
    let older = async |name: &str, persistent: bool| {
        let (id, key) = server.worker(name).await;
        let body = json!({"name": name, "gpu_info": {"count": 1}, "persistent": persistent});
        server.post(&key, "/api/workers/register", body).await.ok(200);
        let mut events = server.stream(&key).await;
        events.of_type("drain").await;
        (id, key, events)
    };
    let drain = async |id: &str, body: &str| {
        server.call(&By::Admin, "POST", &format!("/api/admin/workers/{id}/drain"), body.to_owned()).await.ok(200)
    };
    let resume =
        async |id: &str| server.call(&By::Admin, "POST", &format!("/api/admin/workers/{id}/resume"), "").await.ok(200);
    let (id, key, mut events) = older("spot", false).await;
    let job = server.submit("digits").await;
    events.offer().await;
    server.report(&key, &job, json!({"status": "training", "error": null})).await.ok(200);
    drain(&id, r#"{"reason": "price"}"#).await;
    assert_eq!(events.next().await, Some(json!({"type": "drain", "drain": true})), "it may finish");
    server.report(&key, &job, json!({"status": "requeue"})).await.ok(200);
    let told = events.next().await.expect("an event");
    assert_eq!((&told["type"], &told["reason"]), (&json!("shutdown"), &json!("price")));
    resume(&id).await;
    assert_eq!(events.next().await, Some(json!({"type": "drain", "drain": false})), "once was enough");
    drain(&id, "").await;
    assert_eq!(events.of_type("shutdown").await["reason"], "The worker is drained.");
    assert_eq!(server.stream(&key).await.of_type("shutdown").await["reason"], "The worker is drained.");

    // Those that stay, and those that know what a drain is, are told of the drain alone.
    let (stays, _, mut of_stays) = older("own", true).await;
    let (ours, _, mut of_ours) = server.online("ours").await;
    of_ours.of_type("drain").await;
    for (id, events) in [(stays, &mut of_stays), (ours, &mut of_ours)] {
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
async fn one_server_holds_so_many_streams() {
    let server = Server::start().await;
    let mut open = Vec::new();
    for n in 0..8 {
        open.push(server.online(&format!("gpu-{n}")).await);
    }
    let (_, key) = server.worker("one-more").await;
    server.register(&key, json!([])).await;
    server.get(&key, "/api/workers/stream").await.problem(503, "too_many_streams");
    server.get(&key, "/api/workers/next?wait=0").await.ok(200);
    open.pop();
    let _events = server.stream(&key).await;
}

#[tokio::test]
async fn a_stream_that_ends_leaves_the_worker_connecting() {
    let server = Server::start().await;
    let (id, _, events) = server.online("gpu-1").await;
    let mut bell = server.app.core.hub.listen();
    drop(events);
    let connecting = async {
        while server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"] != "connecting" {
            bell.changed().await.expect("the hub lives");
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), connecting).await.expect("in time");
}

#[tokio::test]
async fn a_long_poll_gives_the_same_as_the_stream() {
    let server = Server::start().await;
    let (id, key) = server.worker("gpu-1").await;
    server.register(&key, json!([])).await;
    let empty = server.get(&key, "/api/workers/next?wait=0").await.ok(200);
    assert_eq!(empty["desired"]["offers"], json!([]));
    assert_eq!(server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"], "idle");
    server.config("digits").await;
    let waiting = server.open(&key, "GET", "/api/workers/next?wait=30", Body::empty());
    let submitting = server.submit("digits");
    let (answer, job) = tokio::join!(waiting, submitting);
    let desired = super::harness::read(answer).await.ok(200)["desired"].clone();
    assert_eq!((&desired["offers"][0]["job_id"], &desired["offers"][0]["attempt"]), (&json!(job), &json!(1)));
    assert_eq!(server.get(&key, "/api/workers/queue").await.ok(200)["has_jobs"], true);
}

#[tokio::test]
async fn an_agent_is_told_that_its_ephemeral_worker_has_run_its_job() {
    let server = Server::start().await;
    server.config("digits").await;
    let body = json!({"name": "once", "worker_type": "ephemeral"});
    let made = server.post(&By::Admin, "/api/admin/workers", body).await.ok(201);
    let key = By::worker(made["token"].as_str().expect("text"));
    server.register(&key, json!([])).await;
    let mut events = server.stream(&key).await;
    let job = server.submit("digits").await;
    events.offer().await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    assert!(!server.heartbeat(&key, json!([{"job_id": job, "attempt": 1}])).await.spent);
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    assert!(server.heartbeat(&key, json!([])).await.spent);
}

#[tokio::test]
async fn a_status_may_say_how_the_training_stands() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    events.offer().await;
    let point = json!({"step": 3, "total_steps": 10, "at": "2024-01-15T10:30:00Z", "loss": 0.5});
    let report = json!({"status": "running", "attempt": 1, "progress": point});
    server.report(&key, &job, report).await.ok(200);
    let progress = &server.job(&job).await["progress"];
    assert_eq!((&progress["step"], &progress["loss"]), (&json!(3), &json!(0.5)), "{progress}");
}
