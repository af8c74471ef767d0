//! `/api/usage` of an active fleet.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{Actor, TestServer};

const HOUR: Millis = Millis::from_secs(3_600);

fn is_close(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 0.001)
}

/// Connects a worker with this many GPUs.
async fn connect_worker_with_gpus(server: &TestServer, name: &str, gpus: usize) -> (String, Actor) {
    let (id, key) = server.create_worker(name).await;
    let gpus: Vec<Value> = (0..gpus)
        .map(|index| json!({"index": index, "uuid": format!("{name}-{index}"), "name": "A100", "vram_gb": 80}))
        .collect();
    let body = json!({"name": name, "protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    (id, key)
}

/// Advances the clock while the agent sends heartbeats.
async fn advance_hours(server: &TestServer, key: &Actor, hours: i64) {
    for _ in 0..hours * 60 {
        server.clock.advance(Millis(HOUR.0 / 60));
        server.heartbeat(key, json!([])).await;
    }
}

async fn submit(server: &TestServer, actor: &Actor, body: Value) -> String {
    server.post(actor, "/api/queue/submit", body).await.expect_status(201)["job_id"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn usage_is_counted_and_limited_to_visible_jobs() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key) = connect_worker_with_gpus(&server, "rack-1", 2).await;
    let events = server.open_stream(&key).await;
    // What happens after this is read in addition.
    server.get(&Actor::Admin, "/api/usage").await.expect_status(200);
    let eve = server.restricted_token("eve").await;
    let labels = json!({"team": "nlp"});
    let job = submit(&server, &eve, json!({"config_name": "digits", "target": "worker"})).await;
    for status in ["starting", "running"] {
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    // This job matches no worker, so it stays pending. The only worker is busy.
    submit(&server, &Actor::Admin, json!({"config_name": "digits", "target": "worker", "worker_labels": labels})).await;
    let run_job = async |hours: i64| {
        for _ in 0..hours * 60 {
            server.clock.advance(Millis(HOUR.0 / 60));
            server.heartbeat(&key, json!([{"job_id": job, "attempt": 1, "state": "running"}])).await;
        }
    };
    run_job(3).await;
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    advance_hours(&server, &key, 1).await;
    let all = server.get(&Actor::Admin, "/api/usage").await.expect_status(200);
    assert!(is_close(&all["total"]["gpu_hours"], 6.0) && is_close(&all["total"]["run_hours"], 3.0), "{all}");
    assert_eq!((&all["own"], &all["total"]["jobs"]), (&json!(false), &json!(1)));
    assert_eq!(all["groups"][0]["name"], "eve");
    assert!(is_close(&all["fleet"]["gpu_hours"], 8.0), "two for four hours: {}", all["fleet"]);
    assert!(is_close(&all["fleet"]["idle_while_queued_minutes"], 60.0), "{}", all["fleet"]);
    assert_eq!(all["waits"]["jobs"], 1);
    assert_eq!(all["week"].as_array().map(Vec::len), Some(168));
    let by_worker = server.get(&Actor::Admin, "/api/usage?by=worker").await.expect_status(200);
    assert_eq!((&by_worker["groups"][0]["name"], &by_worker["groups"][0]["worker_id"]), (&json!("rack-1"), &json!(id)));

    let own_usage = server.get(&eve, "/api/usage").await.expect_status(200);
    assert!(is_close(&own_usage["total"]["gpu_hours"], 6.0), "{own_usage}");
    assert_eq!((&own_usage["own"], own_usage.get("fleet")), (&json!(true), None));
    let bob = server.add_user("bob", "viewer").await;
    assert_eq!(
        server.get(&bob, "/api/usage").await.expect_status(200)["fleet"],
        all["fleet"],
        "all users see the fleet"
    );
    let mallory = server.restricted_token("mallory").await;
    let empty_usage = server.get(&mallory, "/api/usage").await.expect_status(200);
    assert_eq!(
        (&empty_usage["total"]["jobs"], &empty_usage["groups"], &empty_usage["waits"]["jobs"]),
        (&json!(0), &json!([]), &json!(0))
    );

    let csv = server.get(&Actor::Admin, "/api/usage/export?by=config").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(csv.text(), "config,gpu_hours,run_hours,jobs,attempts\r\ndigits,6.0000,3.0000,1,1\r\n");
    drop(events);
}

#[tokio::test]
async fn usage_counts_the_requested_range_and_rejects_invalid_ones() {
    let server = TestServer::start().await;
    let now = server.app.services.context.now();
    let day = server.get(&Actor::Admin, &format!("/api/usage?until={}", now + HOUR)).await.expect_status(200);
    assert_eq!(day["until"], json!(now), "the future does not count");
    for query in [
        "since=yesterday".to_owned(),
        format!("since={now}"),
        format!("since={now}&until={}", app::domain::time::Timestamp(0)),
        "since=2020-01-01T00:00:00Z".to_owned(),
    ] {
        server.get(&Actor::Admin, &format!("/api/usage?{query}")).await.expect_problem(422, "out_of_range");
    }
    server.get(&Actor::Admin, "/api/usage?by=shoe-size").await.expect_problem(400, "invalid_query");
}

#[tokio::test]
async fn fleet_usage_is_unknown_before_the_audit_log_begins() {
    let server = TestServer::start_with(|policy| policy.audit_retention = Some(Millis::from_secs(86_400))).await;
    let (_, key) = connect_worker_with_gpus(&server, "rack-1", 2).await;
    let _events = server.open_stream(&key).await;
    for _ in 0..4 {
        advance_hours(&server, &key, 12).await;
        server.create_worker(&format!("w-{}", server.app.services.context.now().0)).await;
    }
    while server.app.services.audit.prune_audit().await.expect("a database") > 0 {}
    let since =
        |hours: i64| format!("/api/usage?since={}", server.app.services.context.now() + Millis(-hours * HOUR.0));
    assert_eq!(server.get(&Actor::Admin, &since(40)).await.expect_status(200).get("fleet"), None);
    let recent = server.get(&Actor::Admin, &since(10)).await.expect_status(200);
    assert!(
        is_close(&recent["fleet"]["gpu_hours"], 20.0),
        "the worker was online for the full range: {}",
        recent["fleet"]
    );
}
