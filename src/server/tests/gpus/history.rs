//! History of GPUs and trainer metrics: reported values are returned as series.

use app::domain::time::{Millis, Timestamp};
use serde_json::{Value, json};

use crate::service::gpus::history::GpuHistoryStore;
use crate::store::jobs::attempts::PointLimit;
use crate::tests::harness::{Actor, EventStreamReader, TestServer};

/// Connects a worker with this many GPUs for one job each.
async fn connect_gpu_worker(server: &TestServer, gpus: u32) -> (String, Actor, EventStreamReader) {
    let (id, key) = server.create_worker("gpu-1").await;
    let gpu = |n: u32| json!({"index": n, "uuid": format!("GPU-{n}"), "name": "A100", "vram_gb": 80.0});
    let gpus: Vec<Value> = (0..gpus).map(gpu).collect();
    let body =
        json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus, "max_jobs": gpus.len()});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let mut events = server.open_stream(&key).await;
    events.next_of_type("drain").await;
    (id, key, events)
}

/// Sends a heartbeat with the current load of these GPUs.
async fn send_utilization(server: &TestServer, key: &Actor, used: &[f64]) {
    let gpu = |(n, used): (usize, &f64)| json!({"uuid": format!("GPU-{n}"), "utilization_percent": used, "power_watts": 100.0});
    let gpus: Vec<Value> = used.iter().enumerate().map(gpu).collect();
    let readings = json!({"at": "2024-01-15T10:30:00Z", "gpus": gpus});
    server.post(key, "/api/workers/heartbeat", json!({"telemetry": [readings]})).await.expect_status(200);
}

async fn fetch(server: &TestServer, path: &str) -> Value {
    server.get(&Actor::Admin, path).await.expect_status(200)
}

/// Returns the values of a column without gaps.
fn known_values(column: &Value) -> Vec<f64> {
    column.as_array().expect("a list").iter().filter_map(Value::as_f64).collect()
}

#[tokio::test]
async fn gpu_history_has_hour_and_day() {
    let server = TestServer::start().await;
    let (id, key, _events) = connect_gpu_worker(&server, 2).await;
    let path = |range: &str| format!("/api/admin/workers/{id}/gpus/history{range}");
    assert_eq!(fetch(&server, &path("")).await["gpus"], json!([]));
    send_utilization(&server, &key, &[20.0, 100.0]).await;
    server.clock.advance(Millis::from_secs(30));
    send_utilization(&server, &key, &[40.0, 0.0]).await;
    let hour = fetch(&server, &path("?range=hour")).await;
    let column = hour["gpus"][0]["utilization_percent"].as_array().expect("a list");
    assert_eq!((hour["step_seconds"].as_u64(), column.len()), (Some(15), 240));
    assert_eq!(column[237..], [json!(20.0), Value::Null, json!(40.0)], "values that were not reported are null");
    let gpu = &hour["gpus"][1];
    assert_eq!((&gpu["index"], &gpu["vram_gb"], &gpu["memory_used_gb"]), (&json!(1), &json!(80.0), &json!([])));
    let day = fetch(&server, &path("?range=day")).await;
    assert_eq!((day["step_seconds"].as_u64(), known_values(&day["gpus"][1]["power_watts"])), (Some(120), vec![100.0]));
    assert_eq!(known_values(&day["gpus"][1]["utilization_peak_percent"]), [100.0]);
    assert_eq!(known_values(&day["gpus"][1]["utilization_percent"]), [50.0]);
    server.clock.advance(Millis::from_secs(3_600));
    assert_eq!(fetch(&server, &path("")).await["gpus"][0]["utilization_percent"], json!([]), "an hour later");
    assert_eq!(known_values(&fetch(&server, &path("?range=day")).await["gpus"][0]["utilization_percent"]), [30.0]);
    server.get(&Actor::Admin, &path("?range=week")).await.expect_problem(400, "invalid_query");
    let unknown_worker = format!("/api/admin/workers/w_{}/gpus/history", "0".repeat(26));
    server.get(&Actor::Admin, &unknown_worker).await.expect_problem(404, "worker_not_found");
}

#[tokio::test]
async fn job_shows_its_allocated_gpus_only() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = connect_gpu_worker(&server, 3).await;
    send_utilization(&server, &key, &[1.0, 1.0, 1.0]).await;
    server.clock.advance(Millis::from_secs(60));
    let submit = json!({"config_name": "digits", "gpu_count": 2});
    let job = server.post(&Actor::Admin, "/api/queue/submit", submit).await.expect_status(201)["job_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let path = format!("/api/queue/{job}/gpus");
    assert_eq!(fetch(&server, &path).await["gpus"], json!([]), "the job has not started");
    let allocated = events.next_offer().await.gpus;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    send_utilization(&server, &key, &[50.0, 60.0, 70.0]).await;
    server.clock.advance(Millis::from_secs(60));
    send_utilization(&server, &key, &[52.0, 62.0, 72.0]).await;
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    server.clock.advance(Millis::from_secs(60));
    send_utilization(&server, &key, &[1.0, 1.0, 1.0]).await;
    let view = fetch(&server, &path).await;
    let uuids: Vec<_> =
        view["gpus"].as_array().expect("a list").iter().map(|gpu| gpu["uuid"].as_str().expect("text")).collect();
    assert_eq!(uuids, allocated);
    assert_eq!(known_values(&view["gpus"][0]["utilization_percent"]), [50.0, 52.0], "only values during the job");
    assert_eq!(view["gpus"][0]["utilization_percent"].as_array().map(Vec::len), Some(5));
    server.clock.advance(Millis::from_secs(3_600));
    assert_eq!(fetch(&server, &path).await["step_seconds"], 120, "older values come from the history of the day");
    let fleet = fetch(&server, "/api/admin/gpus/history?range=day").await;
    assert_eq!((known_values(&fleet["gpus"]), known_values(&fleet["busy"])), (vec![3.0; 2], vec![2.0, 2.0]));
}

#[tokio::test]
async fn fleet_history_is_the_mean_and_each_gpu_has_a_sparkline() {
    let server = TestServer::start().await;
    let (_, key, _events) = connect_gpu_worker(&server, 2).await;
    send_utilization(&server, &key, &[20.0, 61.0]).await;
    let fleet = fetch(&server, "/api/admin/gpus/history").await;
    assert_eq!((known_values(&fleet["utilization_percent"]), known_values(&fleet["gpus"])), (vec![40.5], vec![2.0]));
    assert_eq!((known_values(&fleet["busy"]), fleet["busy"].as_array().map(Vec::len)), (vec![0.0], Some(240)));
    let sparkline = async |query: &str| {
        fetch(&server, &format!("/api/admin/gpus?{query}")).await["workers"][0]["gpus"][1]["lately"].clone()
    };
    assert_eq!(sparkline("").await, Value::Null, "on request only");
    for range in ["hour", "day"] {
        let sparkline = sparkline(&format!("lately={range}")).await;
        assert_eq!((sparkline.as_array().map(Vec::len), sparkline[47].as_u64()), (Some(48), Some(61)));
    }
}

#[tokio::test]
async fn history_survives_restarts_and_damage() {
    let server = TestServer::start().await;
    let (id, key, _events) = connect_gpu_worker(&server, 1).await;
    send_utilization(&server, &key, &[20.0]).await;
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    let services = &server.app.services;
    services.gpus.save_gpu_history().await.expect("written");
    let to_bytes = |histories: &GpuHistoryStore| histories.to_bytes();
    let reopened = GpuHistoryStore::open(server.directory.path());
    assert_eq!(to_bytes(&reopened), to_bytes(&services.gpus.history));
    let file = server.directory.path().join("gpu-history");
    std::fs::write(&file, b"damaged").expect("written");
    assert_eq!(to_bytes(&GpuHistoryStore::open(server.directory.path())), to_bytes(&GpuHistoryStore::default()));
    services.gpus.save_gpu_history().await.expect("the damaged file is replaced");
    assert_eq!(to_bytes(&GpuHistoryStore::open(server.directory.path())), to_bytes(&services.gpus.history));
    assert!(!id.is_empty());
}

#[tokio::test]
async fn servers_with_a_shared_directory_share_history() {
    let (first, second) = (TestServer::start().await, TestServer::start().await);
    let (_, key, _events) = connect_gpu_worker(&second, 1).await;
    send_utilization(&second, &key, &[70.0]).await;
    second.app.services.gpus.save_gpu_history().await.expect("written");
    std::fs::copy(second.directory.path().join("gpu-history"), first.directory.path().join("gpu-history"))
        .expect("copied");
    first.app.services.gpus.save_gpu_history().await.expect("written");
    assert_eq!(known_values(&fetch(&first, "/api/admin/gpus/history").await["utilization_percent"]), [70.0]);
}

#[tokio::test]
async fn every_metric_of_an_attempt_is_a_series() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let path = |query: &str| format!("/api/queue/{job}/metrics{query}");
    let offer = events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let started = Timestamp(1_705_314_600_000);
    let point = |step: i64| {
        let loss = if step == 777 { 100.0 } else { 1.0 };
        json!({"step": step, "at": (started + Millis::from_secs(step)).to_string(), "loss": loss, "metrics": {"vram": 4.0}})
    };
    for part in 0..4 {
        let points: Vec<Value> = (part * 500..part * 500 + 500).map(point).collect();
        let report = json!({"attempt": 1, "points": points});
        server
            .post(&Actor::Job(offer.upload_token.clone()), &format!("/api/workers/job/{job}/progress"), report)
            .await
            .expect_status(200);
    }
    let response = fetch(&server, &path("?attempt=1")).await;
    let names: Vec<_> =
        response["metrics"].as_array().expect("a list").iter().map(|metric| metric["name"].clone()).collect();
    assert_eq!(names, ["loss", "steps_per_second", "vram"]);
    let loss = known_values(&response["metrics"][0]["values"]);
    assert!(loss.len() < 500 && loss.contains(&100.0), "a spike among two thousand is kept: {}", loss.len());
    assert!(known_values(&response["metrics"][1]["values"]).iter().all(|rate| (rate - 1.0).abs() < 1e-9));
    assert_eq!(response["from"], started.to_string());
    assert_eq!(fetch(&server, &path("")).await, response, "the newest");
    // Fewer steps are not downsampled, and keep the times of the attempt.
    let part = fetch(&server, &path("?from=700&to=900")).await;
    let steps: Vec<f64> = known_values(&part["metrics"][0]["steps"]);
    assert_eq!((steps.len(), steps[0], steps[200]), (201, 700.0, 900.0));
    assert_eq!((&part["metrics"][0]["seconds"][0], &part["from"]), (&json!(700.0), &response["from"]));
    let listed = fetch(&server, &format!("/api/queue/{job}/progress?from=1990")).await;
    assert_eq!(listed["points"].as_array().map(Vec::len), Some(10));
    assert_eq!(fetch(&server, &path("?from=900&to=700")).await["metrics"], json!([]));
    let csv = server.get(&Actor::Admin, &format!("/api/queue/{job}/metrics.csv?metric=vram")).await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    assert!(csv.text().starts_with("step,at,vram\r\n0,2024-01-15T10:30:00.000Z,4\r\n1,2024-01-15T10:30:01.000Z,4\r\n"));
    assert_eq!(csv.text().lines().count(), 2_001, "all of them");
    let missing = ["progress", "metrics.csv"].map(|series| format!("/api/queue/{job}/{series}?attempt=2"));
    for path in missing.into_iter().chain([path("?attempt=2")]) {
        server.get(&Actor::Admin, &path).await.expect_problem(404, "attempt_not_found");
    }
}

#[tokio::test]
async fn live_data_is_one_response_with_its_own_topic() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    let live = format!("/api/queue/{job}/live");
    let before = fetch(&server, &live).await;
    assert_eq!((&before["attempt"], &before["log"]), (&json!(0), &Value::Null));
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let offer = events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let events_path = format!("/api/events?topics=job:{job},progress:{job},configs");
    let mut events =
        EventStreamReader::new(server.open(&Actor::Admin, "GET", &events_path, axum::body::Body::empty()).await);
    events.next().await.expect("the first message");
    let points = json!({"attempt": 1, "points": [{"step": 7, "at": "2024-01-15T10:30:01Z", "loss": 0.5}]});
    let actor = Actor::Job(offer.upload_token.clone());
    server.post(&actor, &format!("/api/workers/job/{job}/progress"), points).await.expect_status(200);
    assert_eq!(events.next().await.expect("events")["topics"], json!([format!("progress:{job}")]));
    let response = fetch(&server, &live).await;
    assert_eq!((&response["status"], &response["progress"]["step"]), (&json!("running"), &json!(7)));
    assert_eq!(response["metrics"], fetch(&server, &format!("/api/queue/{job}/metrics")).await);
    assert_eq!(response["gpus"], fetch(&server, &format!("/api/queue/{job}/gpus")).await);
    assert_eq!(response["log"], fetch(&server, &format!("/api/queue/{job}/logs")).await);
    server.get(&Actor::Admin, &format!("{live}?attempt=2")).await.expect_problem(404, "attempt_not_found");
}

#[tokio::test]
async fn points_over_the_limit_are_downsampled_and_marked() {
    let limit = PointLimit { max_points: 100, max_bytes: 1 << 20 };
    let server = TestServer::start_with(|policy| policy.usage_limits.points = limit).await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let send = async |from: u64| {
        let point = |step: u64| json!({"step": step, "at": "2024-01-15T10:30:01Z", "loss": 0.5});
        let points: Vec<_> = (from..from + 50).map(point).collect();
        let body = json!({"attempt": 1, "points": points});
        server.post(&key, &format!("/api/workers/job/{job}/progress"), body).await.expect_status(200);
    };
    let shown = async || server.get(&Actor::Admin, &format!("/api/queue/{job}/metrics")).await.expect_status(200);
    send(0).await;
    assert_eq!(shown().await["kept_every"], serde_json::Value::Null);
    for from in (50..1_000).step_by(50) {
        send(from).await;
    }
    let shown = shown().await;
    assert_eq!(shown["kept_every"], 16, "{shown}");
    let steps = shown["metrics"][0]["steps"].as_array().expect("steps");
    assert_eq!((steps.first(), steps.last()), (Some(&json!(0)), Some(&json!(999))));
    let page = server.get(&Actor::Admin, &format!("/jobs/{job}?show=charts")).await.text();
    assert!(page.contains("one in 16 is kept"), "the page shows it, too");
}
