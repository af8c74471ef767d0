//! How GPUs did over time, and what trainers measured: what agents tell comes back as series.

use app::domain::time::{Millis, Timestamp};
use serde_json::{Value, json};

use super::harness::{By, Events, Server};
use crate::service::gpu_history::Histories;
use crate::store::attempts::PointLimit;

/// A worker that listens, with so many GPUs, each of which a job of its own may have.
async fn worker(server: &Server, gpus: u32) -> (String, By, Events) {
    let (id, key) = server.worker("gpu-1").await;
    let gpu = |n: u32| json!({"index": n, "uuid": format!("GPU-{n}"), "name": "A100", "vram_gb": 80.0});
    let gpus: Vec<Value> = (0..gpus).map(gpu).collect();
    let body =
        json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus, "max_jobs": gpus.len()});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    let mut events = server.stream(&key).await;
    events.of_type("drain").await;
    (id, key, events)
}

/// A heartbeat that tells how busy these GPUs are now.
async fn tell(server: &Server, key: &By, used: &[f64]) {
    let gpu = |(n, used): (usize, &f64)| json!({"uuid": format!("GPU-{n}"), "utilization_percent": used, "power_watts": 100.0});
    let gpus: Vec<Value> = used.iter().enumerate().map(gpu).collect();
    let moment = json!({"at": "2024-01-15T10:30:00Z", "gpus": gpus});
    server.post(key, "/api/workers/heartbeat", json!({"telemetry": [moment]})).await.ok(200);
}

async fn ask(server: &Server, path: &str) -> Value {
    server.get(&By::Admin, path).await.ok(200)
}

/// The values of a column that are known.
fn known(column: &Value) -> Vec<f64> {
    column.as_array().expect("a list").iter().filter_map(Value::as_f64).collect()
}

#[tokio::test]
async fn a_workers_gpus_are_known_by_the_hour_and_the_day() {
    let server = Server::start().await;
    let (id, key, _events) = worker(&server, 2).await;
    let path = |range: &str| format!("/api/admin/workers/{id}/gpus/history{range}");
    assert_eq!(ask(&server, &path("")).await["gpus"], json!([]));
    tell(&server, &key, &[20.0, 100.0]).await;
    server.clock.advance(Millis::seconds(30));
    tell(&server, &key, &[40.0, 0.0]).await;
    let hour = ask(&server, &path("?range=hour")).await;
    let column = hour["gpus"][0]["utilization_percent"].as_array().expect("a list");
    assert_eq!((hour["step_seconds"].as_u64(), column.len()), (Some(15), 240));
    assert_eq!(column[237..], [json!(20.0), Value::Null, json!(40.0)], "what nobody told is not there");
    let gpu = &hour["gpus"][1];
    assert_eq!((&gpu["index"], &gpu["vram_gb"], &gpu["memory_used_gb"]), (&json!(1), &json!(80.0), &json!([])));
    let day = ask(&server, &path("?range=day")).await;
    assert_eq!((day["step_seconds"].as_u64(), known(&day["gpus"][1]["power_watts"])), (Some(120), vec![100.0]));
    assert_eq!(known(&day["gpus"][1]["utilization_peak_percent"]), [100.0]);
    assert_eq!(known(&day["gpus"][1]["utilization_percent"]), [50.0]);
    server.clock.advance(Millis::seconds(3_600));
    assert_eq!(ask(&server, &path("")).await["gpus"][0]["utilization_percent"], json!([]), "an hour later");
    assert_eq!(known(&ask(&server, &path("?range=day")).await["gpus"][0]["utilization_percent"]), [30.0]);
    server.get(&By::Admin, &path("?range=week")).await.problem(400, "invalid_query");
    let nobody = format!("/api/admin/workers/w_{}/gpus/history", "0".repeat(26));
    server.get(&By::Admin, &nobody).await.problem(404, "worker_not_found");
}

#[tokio::test]
async fn a_job_shows_the_gpus_that_it_was_given_and_no_others_while_it_had_them() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = worker(&server, 3).await;
    tell(&server, &key, &[1.0, 1.0, 1.0]).await;
    server.clock.advance(Millis::seconds(60));
    let submit = json!({"config_name": "digits", "gpu_count": 2});
    let job = server.post(&By::Admin, "/api/queue/submit", submit).await.ok(201)["job_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let path = format!("/api/queue/{job}/gpus");
    assert_eq!(ask(&server, &path).await["gpus"], json!([]), "it has not begun");
    let granted = events.offer().await.gpus;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    tell(&server, &key, &[50.0, 60.0, 70.0]).await;
    server.clock.advance(Millis::seconds(60));
    tell(&server, &key, &[52.0, 62.0, 72.0]).await;
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    server.clock.advance(Millis::seconds(60));
    tell(&server, &key, &[1.0, 1.0, 1.0]).await;
    let shown = ask(&server, &path).await;
    let of: Vec<_> =
        shown["gpus"].as_array().expect("a list").iter().map(|gpu| gpu["uuid"].as_str().expect("text")).collect();
    assert_eq!(of, granted);
    assert_eq!(known(&shown["gpus"][0]["utilization_percent"]), [50.0, 52.0], "neither before nor after");
    assert_eq!(shown["gpus"][0]["utilization_percent"].as_array().map(Vec::len), Some(5));
    server.clock.advance(Millis::seconds(3_600));
    assert_eq!(ask(&server, &path).await["step_seconds"], 120, "what was more than an hour ago is known by the day");
    let fleet = ask(&server, "/api/admin/gpus/history?range=day").await;
    assert_eq!((known(&fleet["gpus"]), known(&fleet["busy"])), (vec![3.0; 2], vec![2.0, 2.0]));
}

#[tokio::test]
async fn the_fleet_is_the_mean_of_all_and_each_gpu_has_a_sparkline() {
    let server = Server::start().await;
    let (_, key, _events) = worker(&server, 2).await;
    tell(&server, &key, &[20.0, 61.0]).await;
    let fleet = ask(&server, "/api/admin/gpus/history").await;
    assert_eq!((known(&fleet["utilization_percent"]), known(&fleet["gpus"])), (vec![40.5], vec![2.0]));
    assert_eq!((known(&fleet["busy"]), fleet["busy"].as_array().map(Vec::len)), (vec![0.0], Some(240)));
    let lately = async |query: &str| {
        ask(&server, &format!("/api/admin/gpus?{query}")).await["workers"][0]["gpus"][1]["lately"].clone()
    };
    assert_eq!(lately("").await, Value::Null, "only for whoever asks");
    for range in ["hour", "day"] {
        let lately = lately(&format!("lately={range}")).await;
        assert_eq!((lately.as_array().map(Vec::len), lately[47].as_u64()), (Some(48), Some(61)));
    }
}

#[tokio::test]
async fn what_was_heard_is_known_after_a_restart_also_of_workers_that_are_gone_and_damage_is_no_reason_not_to_start() {
    let server = Server::start().await;
    let (id, key, _events) = worker(&server, 1).await;
    tell(&server, &key, &[20.0]).await;
    server.post(&key, "/api/workers/disconnect", json!({})).await.ok(200);
    let core = &server.app.core;
    core.keep_histories().await.expect("written");
    let known = |histories: &Histories| histories.bytes();
    let again = Histories::at(server.directory.path());
    assert_eq!(known(&again), known(&core.histories));
    let file = server.directory.path().join("gpu-history");
    std::fs::write(&file, b"damaged").expect("written");
    assert_eq!(known(&Histories::at(server.directory.path())), known(&Histories::default()));
    core.keep_histories().await.expect("what is damaged is replaced");
    assert_eq!(known(&Histories::at(server.directory.path())), known(&core.histories));
    assert!(!id.is_empty());
}

#[tokio::test]
async fn servers_that_share_a_directory_learn_what_the_others_were_told() {
    let (ours, theirs) = (Server::start().await, Server::start().await);
    let (_, key, _events) = worker(&theirs, 1).await;
    tell(&theirs, &key, &[70.0]).await;
    theirs.app.core.keep_histories().await.expect("written");
    std::fs::copy(theirs.directory.path().join("gpu-history"), ours.directory.path().join("gpu-history"))
        .expect("copied");
    ours.app.core.keep_histories().await.expect("written");
    assert_eq!(known(&ask(&ours, "/api/admin/gpus/history").await["utilization_percent"]), [70.0]);
}

#[tokio::test]
async fn every_number_of_an_attempt_is_a_series() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let path = |query: &str| format!("/api/queue/{job}/metrics{query}");
    let offer = events.offer().await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    let started = Timestamp(1_705_314_600_000);
    let point = |step: i64| {
        let loss = if step == 777 { 100.0 } else { 1.0 };
        json!({"step": step, "at": (started + Millis::seconds(step)).to_string(), "loss": loss, "metrics": {"vram": 4.0}})
    };
    for part in 0..4 {
        let points: Vec<Value> = (part * 500..part * 500 + 500).map(point).collect();
        let report = json!({"attempt": 1, "points": points});
        server
            .post(&By::Job(offer.upload_token.clone()), &format!("/api/workers/job/{job}/progress"), report)
            .await
            .ok(200);
    }
    let told = ask(&server, &path("?attempt=1")).await;
    let names: Vec<_> = told["metrics"].as_array().expect("a list").iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["loss", "steps_per_second", "vram"]);
    let loss = known(&told["metrics"][0]["values"]);
    assert!(loss.len() < 500 && loss.contains(&100.0), "a spike among two thousand is kept: {}", loss.len());
    assert!(known(&told["metrics"][1]["values"]).iter().all(|rate| (rate - 1.0).abs() < 1e-9));
    assert_eq!(told["from"], started.to_string());
    assert_eq!(ask(&server, &path("")).await, told, "the newest");
    for path in [path("?attempt=2"), format!("/api/queue/{job}/progress?attempt=2")] {
        server.get(&By::Admin, &path).await.problem(404, "attempt_not_found");
    }
}

#[tokio::test]
async fn points_beyond_the_limit_are_thinned_and_the_answer_says_so() {
    let limit = PointLimit { most: 100, bytes: 1 << 20 };
    let server = Server::start_with(|policy| policy.bounds.points = limit).await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    events.offer().await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    let send = async |from: u64| {
        let point = |step: u64| json!({"step": step, "at": "2024-01-15T10:30:01Z", "loss": 0.5});
        let points: Vec<_> = (from..from + 50).map(point).collect();
        let body = json!({"attempt": 1, "points": points});
        server.post(&key, &format!("/api/workers/job/{job}/progress"), body).await.ok(200);
    };
    let shown = async || server.get(&By::Admin, &format!("/api/queue/{job}/metrics")).await.ok(200);
    send(0).await;
    assert_eq!(shown().await["kept_every"], serde_json::Value::Null);
    for from in (50..1_000).step_by(50) {
        send(from).await;
    }
    let shown = shown().await;
    assert_eq!(shown["kept_every"], 16, "{shown}");
    let steps = shown["metrics"][0]["steps"].as_array().expect("steps");
    assert_eq!((steps.first(), steps.last()), (Some(&json!(0)), Some(&json!(999))));
    let page = server.get(&By::Admin, &format!("/jobs/{job}")).await.text();
    assert!(page.contains("one in 16 is kept"), "the page says it, too");
}
