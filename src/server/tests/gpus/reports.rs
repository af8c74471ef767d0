//! Reported GPUs: unavailable ones are not allocated, and readings are shown.

use app::domain::time::Millis;
use axum::body::Body;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, EventStreamReader, TestServer};

/// The GPUs of a host: the first `unavailable` of them are in use by other processes.
fn gpus(count: u32, unavailable: u32) -> Vec<Value> {
    let gpu = |n: u32| {
        let mut gpu = json!({"index": n, "uuid": format!("GPU-{n}"), "name": "A100", "vram_gb": 80.0, "memory_kind": "dedicated"});
        if n < unavailable {
            gpu["unavailable"] = in_use();
        }
        gpu
    };
    (0..count).map(gpu).collect()
}

fn in_use() -> Value {
    json!({"reason": "in_use", "detail": "process 4711 (python)"})
}

fn quarantined() -> Value {
    json!({"reason": "quarantined", "detail": "XID 79, it has fallen off the bus"})
}

async fn register(server: &TestServer, key: &Actor, gpus: Vec<Value>, max_jobs: u32) {
    let info = json!({"driver": "580.1", "runtime": "13.0", "count": gpus.len()});
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpu_info": info, "gpus": gpus, "max_jobs": max_jobs});
    server.post(key, "/api/workers/register", body).await.expect_status(200);
}

async fn connect_gpu_worker(
    server: &TestServer,
    gpus: Vec<Value>,
    max_jobs: u32,
) -> (String, Actor, EventStreamReader) {
    server.put_config("digits").await;
    let (id, key) = server.create_worker("gpu-1").await;
    register(server, &key, gpus, max_jobs).await;
    let mut events = server.open_stream(&key).await;
    events.next_of_type("drain").await;
    (id, key, events)
}

async fn worker_view(server: &TestServer, id: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)
}

/// Sends a heartbeat with one reading of these GPUs.
async fn send_gpus(server: &TestServer, key: &Actor, gpus: Value) {
    let readings = json!({"at": "2024-01-15T10:30:00Z", "gpus": gpus});
    server.post(key, "/api/workers/heartbeat", json!({"telemetry": [readings]})).await.expect_status(200);
}

/// Returns the details of audit entries about GPUs, newest first.
async fn recorded_details(server: &TestServer) -> Vec<Value> {
    let page = server.get(&Actor::Admin, "/api/audit?action=worker.gpus_changed").await.expect_status(200);
    page["entries"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn unavailable_gpu_is_not_allocated_and_that_is_explained() {
    let server = TestServer::start().await;
    let mut four_gpus = gpus(4, 0);
    (four_gpus[1]["unavailable"], four_gpus[3]["unavailable"]) = (quarantined(), in_use());
    let (id, _, mut events) = connect_gpu_worker(&server, four_gpus, 4).await;
    let submit = async |count: u32, dry_run: bool| {
        let body = json!({"config_name": "digits", "gpu_count": count, "dry_run": dry_run});
        server.post(&Actor::Admin, "/api/queue/submit", body).await.json()
    };
    let explanation = submit(3, true).await["explanation"].clone();
    assert_eq!(explanation["verdict"], "worker_unavailable");
    let blocker = &explanation["workers"][0]["blockers"][0];
    assert_eq!(
        (&blocker["code"], &blocker["wanted"], &blocker["found"]),
        (&json!("gpus_unavailable"), &json!("3"), &json!("2"))
    );
    assert_eq!(
        blocker["text"],
        "The job requires 3 GPUs; usable matching GPUs: 2. GPU 1 · Quarantined · XID 79, it has fallen off the bus. \
         GPU 3 · In use (external) · process 4711 (python)."
    );
    let job = submit(2, false).await["job_id"].clone();
    let offer = events.next_offer().await;
    assert_eq!((json!(offer.job_id), offer.gpus), (job.clone(), vec!["GPU-0".to_owned(), "GPU-2".to_owned()]));
    let worker = worker_view(&server, &id).await;
    let job_ids: Vec<_> = worker["gpus"].as_array().expect("a list").iter().map(|gpu| gpu["job_id"].clone()).collect();
    assert_eq!(job_ids, [job.clone(), Value::Null, job, Value::Null]);
    assert_eq!(worker["jobs"][0]["gpus"], 2);
    let overview = server.get(&server.add_user("ada", "admin").await, "/").await.text();
    assert!(overview.contains("2 allocated"), "only the GPUs of the job: {overview}");
    assert_eq!((&worker["gpus_unavailable"], &worker["gpu_info"]["runtime"]), (&json!(2), &json!("13.0")));
    let gpu = json!({
        "index": 3, "uuid": "GPU-3", "name": "A100", "vram_gb": 80.0, "memory_kind": "dedicated", "unavailable": in_use(),
        "state": "in_use", "job_id": null, "reading": null
    });
    assert_eq!(worker["gpus"][3], gpu);
    let list_entry = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200)["workers"][0].clone();
    assert_eq!((&list_entry["gpus_unavailable"], list_entry.get("gpus")), (&json!(2), None), "lists contain no GPUs");
}

#[tokio::test]
async fn explanation_lists_a_few_of_many_unavailable_gpus() {
    let server = TestServer::start().await;
    let mut six_gpus = gpus(6, 6);
    six_gpus[0]["unavailable"] = json!({"reason": "in_use", "detail": ""});
    six_gpus[3]["unavailable"] = json!({"reason": "in_use", "detail": "used by process 4711 (python)"});
    six_gpus[1]["unavailable"] = json!({"reason": "quarantined", "detail": "It did not pass the test."});
    six_gpus[2]["unavailable"] = json!({"reason": "quarantined", "detail": ""});
    let (_, _, _events) = connect_gpu_worker(&server, six_gpus, 1).await;
    let job = server.submit("digits").await;
    let explained = server.get(&Actor::Admin, &format!("/api/queue/{job}/explain")).await.expect_status(200);
    let blocker = &explained["workers"][0]["blockers"][0];
    assert_eq!(
        blocker["text"],
        "The job requires 1 GPU; usable matching GPUs: 0. GPU 0 · In use (external). GPU 1 · Quarantined · It did not pass \
         the test. GPU 2 · Quarantined. GPU 3 · In use (external) · used by process 4711 (python). …"
    );
    let third = json!({"index": 3, "reason": "in_use", "detail": "used by process 4711 (python)"});
    assert_eq!(blocker["unavailable"][3], third, "all of them are in the explanation");
    // Not all of them are in use.
    assert_eq!(blocker["change"], "Check the GPUs on the host; they become available again automatically.");
}

#[tokio::test]
async fn job_gets_the_remaining_gpus() {
    let server = TestServer::start().await;
    let (_, _, mut events) = connect_gpu_worker(&server, gpus(3, 1), 1).await;
    server.submit("digits").await;
    assert_eq!(events.next_offer().await.gpus, ["GPU-1", "GPU-2"]);
}

#[tokio::test]
async fn heartbeat_makes_gpus_unavailable_and_available() {
    let server = TestServer::start().await;
    let (id, key, mut events) = connect_gpu_worker(&server, gpus(1, 0), 1).await;
    let first = server.submit("digits").await;
    assert_eq!(events.next_offer().await.job_id.as_str(), first);
    server.report_status(&key, &first, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    send_gpus(&server, &key, json!([{"uuid": "GPU-0", "unavailable": quarantined()}])).await;
    let gpu = worker_view(&server, &id).await["gpus"][0].clone();
    assert_eq!((&gpu["unavailable"], &gpu["job_id"]), (&quarantined(), &json!(first)), "the running job keeps its GPU");
    assert_eq!(server.job_status(&first).await, "running");
    let pending = server.submit("digits").await;
    server.report_status(&key, &first, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    let explained = server.get(&Actor::Admin, &format!("/api/queue/{pending}/explain")).await.expect_status(200);
    assert_eq!(
        (&explained["verdict"], server.job_status(&pending).await.as_str()),
        (&json!("worker_unavailable"), "queued")
    );
    assert!(explained["text"].as_str().is_some_and(|text| text.contains("GPU 0 · Quarantined · XID 79")));
    send_gpus(&server, &key, json!([{"uuid": "GPU-0"}])).await;
    assert_eq!(events.next_offer().await.job_id.as_str(), pending, "the available GPU is allocated");
    let audit_log = recorded_details(&server).await;
    let entry =
        |reason: &Value| json!([{"index": 0, "uuid": "GPU-0", "reason": reason["reason"], "detail": reason["detail"]}]);
    let details: Vec<&Value> = audit_log.iter().map(|entry| &entry["detail"]).collect();
    assert_eq!(
        details,
        [
            &json!({"unavailable": [], "available": entry(&quarantined())}),
            &json!({"unavailable": entry(&quarantined()), "available": []})
        ]
    );
    assert!(
        audit_log.iter().all(|entry| entry["target"] == json!(id) && entry["actor"] == json!(format!("worker:{id}")))
    );
}

#[tokio::test]
async fn heartbeat_without_gpu_changes_writes_nothing() {
    let server = TestServer::start().await;
    let (id, key, _events) = connect_gpu_worker(&server, gpus(2, 1), 1).await;
    let commits = || server.app.services.context.metrics.commits.sizes.snapshot().count;
    let (before, version) = (commits(), server.app.services.context.notifier.version());
    assert!(before > 0, "commits are counted");
    let same = json!([{"uuid": "GPU-0", "unavailable": in_use(), "power_watts": 300.0}, {"uuid": "GPU-1"}]);
    send_gpus(&server, &key, same).await;
    send_gpus(&server, &key, json!([{"uuid": "GPU-9", "unavailable": in_use()}])).await;
    send_gpus(&server, &key, json!([])).await;
    server.post(&key, "/api/workers/heartbeat", json!({"telemetry": []})).await.expect_status(200);
    let older = json!({"at": "2024-01-15T10:30:00Z", "gpus": [{"uuid": "GPU-1", "unavailable": in_use()}]});
    let newer = json!({"at": "2024-01-15T10:30:05Z", "gpus": [{"uuid": "GPU-1"}]});
    server.post(&key, "/api/workers/heartbeat", json!({"telemetry": [older, newer]})).await.expect_status(200);
    assert_eq!((commits(), server.app.services.context.notifier.version()), (before, version));
    assert_eq!(
        (recorded_details(&server).await.len(), &worker_view(&server, &id).await["gpus_unavailable"]),
        (0, &json!(1))
    );
    send_gpus(&server, &key, json!([{"uuid": "GPU-0", "unavailable": quarantined()}])).await;
    assert_eq!((commits(), recorded_details(&server).await.len()), (before + 1, 1), "a changed reason is written");
}

#[tokio::test]
async fn changing_processes_are_shown_but_not_audited() {
    let server = TestServer::start().await;
    let (id, key, _events) = connect_gpu_worker(&server, gpus(1, 0), 1).await;
    let shown = async || worker_view(&server, &id).await["gpus"][0]["unavailable"]["detail"].clone();
    let report_process = async |seconds: i64, process: u32| {
        server.clock.advance(Millis::from_secs(seconds));
        let unavailable = json!({"reason": "in_use", "detail": format!("process {process}")});
        send_gpus(&server, &key, json!([{"uuid": "GPU-0", "unavailable": unavailable}])).await;
        shown().await
    };
    assert_eq!(report_process(0, 1).await, json!("process 1"));
    assert_eq!(report_process(5, 2).await, json!("process 2"));
    assert_eq!(report_process(5, 3).await, json!("process 2"), "a minute has not passed");
    assert_eq!(report_process(55, 3).await, json!("process 3"));
    send_gpus(&server, &key, json!([{"uuid": "GPU-0"}])).await;
    assert_eq!(
        (shown().await, recorded_details(&server).await),
        (Value::Null, vec![]),
        "an available GPU is shown at once"
    );
    for unavailable in [quarantined(), in_use()] {
        send_gpus(&server, &key, json!([{"uuid": "GPU-0", "unavailable": unavailable}])).await;
    }
    let audit_log = recorded_details(&server).await;
    let reasons: Vec<&Value> = audit_log.iter().map(|entry| &entry["detail"]["unavailable"][0]["reason"]).collect();
    assert_eq!(reasons, ["in_use", "quarantined"], "start and end of a quarantine are recorded");
}

#[tokio::test]
async fn valid_readings_are_shown_with_the_servers_time() {
    let server = TestServer::start().await;
    let (id, key, _events) = connect_gpu_worker(&server, gpus(2, 0), 1).await;
    server.clock.advance(Millis::from_secs(7));
    let before = worker_view(&server, &id).await["status_since"].clone();
    let long = json!({"reason": "quarantined", "detail": format!("XID\u{7} 79 {}", "x".repeat(300))});
    let readings = json!([
        {"uuid": "GPU-0", "utilization_percent": 97.0, "memory_used_gb": 61.5, "temperature_celsius": 71.0, "power_watts": 390.5,
         "power_limit_watts": 400.0, "clock_mhz": 1410, "memory_clock_mhz": 1593, "ecc_errors": 2, "unavailable": long},
        {"uuid": "GPU-1", "utilization_percent": 101.0, "memory_used_gb": -1.0, "temperature_celsius": 4e9, "power_watts": -0.1,
         "power_limit_watts": 1e300, "clock_mhz": 4_000_000_000_u32, "memory_clock_mhz": 100_001},
        {"uuid": "GPU-9", "temperature_celsius": 50.0}
    ]);
    send_gpus(&server, &key, readings).await;
    let view = worker_view(&server, &id).await;
    let reading = view["gpus"][0]["reading"].clone();
    assert_ne!(reading["at"], before);
    let received_at = reading["at"].clone();
    assert_eq!(received_at, view["last_heartbeat"], "the time is the server's, not the agent's");
    assert_eq!(
        reading,
        json!({"at": received_at, "utilization_percent": 97.0, "memory_used_gb": 61.5, "temperature_celsius": 71.0,
            "power_watts": 390.5, "power_limit_watts": 400.0, "clock_mhz": 1410, "memory_clock_mhz": 1593, "ecc_errors": 2})
    );
    let empty_reading = view["gpus"][1]["reading"].as_object().expect("a reading");
    assert!(empty_reading.iter().all(|(name, value)| name == "at" || value.is_null()), "{empty_reading:?}");
    assert_eq!(view["gpus"].as_array().map(Vec::len), Some(2));
    let detail = view["gpus"][0]["unavailable"]["detail"].as_str().expect("text");
    assert!(detail.starts_with("XID 79 xxx") && detail.chars().count() == 256, "cut, not rejected: {detail}");
}

#[tokio::test]
async fn too_much_telemetry_is_rejected() {
    let server = TestServer::start().await;
    let (_, key, _events) = connect_gpu_worker(&server, gpus(1, 0), 1).await;
    let readings = |gpus: usize| json!({"at": "2024-01-15T10:30:00Z", "gpus": vec![json!({"uuid": "GPU-0"}); gpus]});
    let heartbeat =
        async |telemetry: Value| server.post(&key, "/api/workers/heartbeat", json!({"telemetry": telemetry})).await;
    heartbeat(json!(vec![readings(64); 12])).await.expect_status(200);
    heartbeat(json!(vec![readings(1); 13])).await.expect_problem(422, "too_large");
    heartbeat(json!([readings(65)])).await.expect_problem(422, "too_large");
    let detail = json!({
        "uuid": "x".repeat(256), "utilization_percent": 100.0, "memory_used_gb": 79.25, "temperature_celsius": 65.0,
        "power_watts": 700.0, "power_limit_watts": 700.0, "clock_mhz": 1980, "memory_clock_mhz": 2619,
        "unavailable": {"reason": "in_use", "detail": "ä".repeat(256)}
    });
    let largest = json!({"at": "2024-01-15T10:30:00Z", "gpus": vec![detail; 64]});
    heartbeat(json!(vec![largest; 12])).await.expect_status(200);
}

#[tokio::test]
async fn registered_values_are_truncated_or_rejected() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    let mut one_gpu = gpus(1, 1);
    one_gpu[0]["unavailable"]["detail"] = json!(format!("\n{}", "x".repeat(500)));
    one_gpu[0]["part_of"] = json!("GPU-9");
    one_gpu[0]["memory_kind"] = json!("unified");
    register(&server, &key, one_gpu.clone(), 1).await;
    let gpu = worker_view(&server, &id).await["gpus"][0].clone();
    assert_eq!((&gpu["part_of"], &gpu["memory_kind"]), (&json!("GPU-9"), &json!("unified")));
    assert_eq!(gpu["unavailable"], json!({"reason": "in_use", "detail": "x".repeat(256)}));
    one_gpu[0]["part_of"] = json!("x".repeat(257));
    let body = json!({"protocol": 1, "gpus": one_gpu});
    server.post(&key, "/api/workers/register", body).await.expect_problem(422, "invalid_name");
    let audit_log = server.get(&Actor::Admin, "/api/audit?action=worker.registered").await.expect_status(200);
    assert_eq!(audit_log["entries"][0]["detail"]["unavailable"][0]["reason"], "in_use");
}

#[tokio::test]
async fn readings_are_deleted_with_the_worker() {
    let server = TestServer::start().await;
    let (id, key, events) = connect_gpu_worker(&server, gpus(1, 0), 1).await;
    let reading = async || worker_view(&server, &id).await["gpus"][0]["reading"].clone();
    let hot = json!([{"uuid": "GPU-0", "temperature_celsius": 90.0}]);
    send_gpus(&server, &key, hot.clone()).await;
    assert_eq!(reading().await["temperature_celsius"], 90.0);
    drop(events);
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    assert_eq!(reading().await, Value::Null);
    register(&server, &key, gpus(1, 0), 1).await;
    assert_eq!(reading().await, Value::Null, "readings from before the disconnect are deleted");
    send_gpus(&server, &key, hot).await;
    server.advance(Millis::from_secs(200)).await;
    assert_eq!(worker_view(&server, &id).await["status"], "offline");
    register(&server, &key, gpus(1, 0), 1).await;
    assert_eq!(reading().await, Value::Null, "readings of an offline worker are deleted");
}

#[tokio::test]
async fn open_pages_get_throttled_reading_notifications() {
    for is_fleet_page in [false, true] {
        let server = TestServer::start().await;
        let (id, key, _events) = connect_gpu_worker(&server, gpus(1, 0), 1).await;
        let topic = if is_fleet_page { "gpus".to_owned() } else { format!("worker:{id}") };
        let page_path = if is_fleet_page { "/api/admin/gpus".to_owned() } else { format!("/api/admin/workers/{id}") };
        let open_page = async || server.get(&Actor::Admin, &page_path).await.expect_status(200);
        let path = format!("/api/events?topics={topic}");
        let mut events = EventStreamReader::new(server.open(&Actor::Admin, "GET", &path, Body::empty()).await);
        events.next().await.expect("the first message");
        let heartbeat = async |seconds: i64| {
            let before = server.app.services.context.notifier.version();
            server.clock.advance(Millis::from_secs(seconds));
            send_gpus(&server, &key, json!([{"uuid": "GPU-0", "temperature_celsius": 50.0}])).await;
            server.app.services.context.notifier.version() - before
        };
        assert_eq!(heartbeat(1).await, 0, "no page is open");
        open_page().await;
        assert_eq!(heartbeat(1).await, 1);
        assert_eq!(events.next().await.expect("a change notification")["topics"], json!([topic]));
        assert_eq!((heartbeat(4).await, heartbeat(1).await), (0, 1), "every 5 s at most");
        let view = open_page().await;
        let gpu = if is_fleet_page { &view["workers"][0]["gpus"][0] } else { &view["gpus"][0] };
        assert_eq!(gpu["reading"]["temperature_celsius"], 50.0);
        assert_eq!(
            (heartbeat(90).await, heartbeat(1).await, heartbeat(10).await),
            (1, 0, 0),
            "idle clients are removed"
        );
    }
}

#[tokio::test]
async fn page_describes_gpus_and_the_list_marks_the_worker() {
    let server = TestServer::start().await;
    let mut three_gpus = gpus(3, 0);
    (three_gpus[1]["memory_kind"], three_gpus[2]["part_of"]) = (json!("unified"), json!("GPU-9"));
    let (id, key, mut events) = connect_gpu_worker(&server, three_gpus, 3).await;
    let ada = server.add_user("ada", "admin").await;
    let page = async |path: &str| server.get(&ada, path).await.text().replace('\u{a0}', " ");
    let path = format!("/admin/workers/{id}?show=gpus");
    let before = page(&path).await;
    assert!(
        before.contains("No reading") && before.contains(">Available<") && !before.contains("GPU unavailable"),
        "{before}"
    );
    let job = server.submit("digits").await;
    let allocated = events.next_offer().await.gpus.remove(0);
    let broken = if allocated == "GPU-1" { "GPU-2" } else { "GPU-1" };
    let full = json!({"uuid": allocated, "utilization_percent": 97.0, "memory_used_gb": 61.5, "temperature_celsius": 71.0,
        "power_watts": 390.0, "power_limit_watts": 400.0, "clock_mhz": 1410, "memory_clock_mhz": 1593});
    let quarantine = json!({"reason": "quarantined", "detail": "XID 79 <fallen>"});
    send_gpus(&server, &key, json!([full, {"uuid": broken, "unavailable": quarantine}])).await;
    let html = page(&path).await;
    let expected = [
        "61.5 / 80 GB",
        "97%",
        "71 °C",
        "390 / 400 W",
        "1410 / 1593 MHz",
        "15 Jan 2024, 10:30:00 UTC",
        ">Quarantined<",
        "XID 79 &lt;fallen",
        ">Allocated<",
        "Part of GPU-9",
        "Unified memory",
        "13.0",
        "1 GPU unavailable",
    ];
    for words in expected.into_iter().chain([format!("href=\"/jobs/{job}\"").as_str()]) {
        assert!(html.contains(words), "{words} in\n{html}");
    }
    assert!(page("/admin/workers").await.contains("1 GPU unavailable"));
    drop(events);
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    let disconnected = page(&path).await;
    assert!(disconnected.contains(">Not connected<") && !disconnected.contains(">Available<"), "{disconnected}");
}

#[tokio::test]
async fn metrics_count_gpus_by_state() {
    let server = TestServer::start().await;
    let count = async |state: &str| {
        let page = server.get(&Actor::Admin, "/metrics").await.text();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(&format!("simpletuner_gpus{{state=\"{state}\"}} ")).map(str::to_owned));
        line.unwrap_or_else(|| panic!("no {state} in\n{page}"))
    };
    assert_eq!(
        (count("free").await, count("quarantined").await),
        ("0.0".to_owned(), "0.0".to_owned()),
        "all states are present without GPUs"
    );
    let mut four_gpus = gpus(4, 1);
    four_gpus[3]["unavailable"] = quarantined();
    let (_, key, mut events) = connect_gpu_worker(&server, four_gpus, 4).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    let states = async || [count("free").await, count("busy").await, count("in_use").await, count("quarantined").await];
    assert_eq!(states().await, ["1.0", "1.0", "1.0", "1.0"]);
    server.report_status(&key, &job, json!({"status": "cancelled", "attempt": 1})).await.expect_status(200);
    assert_eq!(states().await, ["2.0", "0.0", "1.0", "1.0"]);
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    assert_eq!(states().await, ["0.0"; 4]);
}
