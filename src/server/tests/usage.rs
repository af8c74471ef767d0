//! `/api/usage`, from a fleet that did something.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{By, PASSWORD, Server};

const HOUR: Millis = Millis::seconds(3_600);

fn near(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 0.001)
}

/// A worker with so many GPUs that listens.
async fn with_gpus(server: &Server, name: &str, gpus: usize) -> (String, By) {
    let (id, key) = server.worker(name).await;
    let gpus: Vec<Value> = (0..gpus)
        .map(|index| json!({"index": index, "uuid": format!("{name}-{index}"), "name": "A100", "vram_gb": 80}))
        .collect();
    let body = json!({"name": name, "protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    (id, key)
}

/// Lets the clock go on while the agent is heard of.
async fn hours(server: &Server, key: &By, number: i64) {
    for _ in 0..number * 60 {
        server.clock.advance(Millis(HOUR.0 / 60));
        server.heartbeat(key, json!([])).await;
    }
}

async fn submit(server: &Server, by: &By, body: Value) -> String {
    server.post(by, "/api/queue/submit", body).await.ok(201)["job_id"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn who_held_what_is_counted_and_a_researcher_is_told_of_their_own() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key) = with_gpus(&server, "rack-1", 2).await;
    let events = server.stream(&key).await;
    let eve = server.person("eve", "researcher").await;
    let labels = json!({"team": "nlp"});
    let job = submit(&server, &eve, json!({"config_name": "digits", "target": "worker"})).await;
    for status in ["starting", "running"] {
        server.report(&key, &job, json!({"status": status, "attempt": 1})).await.ok(200);
    }
    // It fits no worker, so somebody waits. The only worker is busy meanwhile.
    submit(&server, &By::Admin, json!({"config_name": "digits", "target": "worker", "worker_labels": labels})).await;
    let held = async |hours: i64| {
        for _ in 0..hours * 60 {
            server.clock.advance(Millis(HOUR.0 / 60));
            server.heartbeat(&key, json!([{"job_id": job, "attempt": 1, "state": "running"}])).await;
        }
    };
    held(3).await;
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    hours(&server, &key, 1).await;
    let all = server.get(&By::Admin, "/api/usage").await.ok(200);
    assert!(near(&all["total"]["gpu_hours"], 6.0) && near(&all["total"]["run_hours"], 3.0), "{all}");
    assert_eq!((&all["own"], &all["total"]["jobs"]), (&json!(false), &json!(1)));
    assert_eq!(all["groups"][0]["name"], "eve");
    assert!(near(&all["fleet"]["gpu_hours"], 8.0), "two for four hours: {}", all["fleet"]);
    assert!(near(&all["fleet"]["idle_while_queued_minutes"], 60.0), "{}", all["fleet"]);
    assert_eq!(all["waits"]["jobs"], 1);
    assert_eq!(all["week"].as_array().map(Vec::len), Some(168));
    let by_worker = server.get(&By::Admin, "/api/usage?by=worker").await.ok(200);
    assert_eq!((&by_worker["groups"][0]["name"], &by_worker["groups"][0]["worker_id"]), (&json!("rack-1"), &json!(id)));

    // Nobody has used her browser for hours.
    let eve = server.log_in("eve", PASSWORD).await.expect("the password is right");
    let theirs = server.get(&eve, "/api/usage").await.ok(200);
    assert!(near(&theirs["total"]["gpu_hours"], 6.0), "{theirs}");
    assert_eq!((&theirs["own"], theirs.get("fleet")), (&json!(true), None));
    let mallory = server.person("mallory", "researcher").await;
    let nothing = server.get(&mallory, "/api/usage").await.ok(200);
    assert_eq!(
        (&nothing["total"]["jobs"], &nothing["groups"], &nothing["waits"]["jobs"]),
        (&json!(0), &json!([]), &json!(0))
    );

    let csv = server.get(&By::Admin, "/api/usage/export?by=config").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(csv.text(), "config,gpu_hours,run_hours,jobs,attempts\r\ndigits,6.0000,3.0000,1,1\r\n");
    drop(events);
}

#[tokio::test]
async fn only_the_asked_time_counts_and_nonsense_is_refused() {
    let server = Server::start().await;
    let now = server.app.core.now();
    let day = server.get(&By::Admin, &format!("/api/usage?until={}", now + HOUR)).await.ok(200);
    assert_eq!(day["until"], json!(now), "what has not been yet does not count");
    for query in [
        "since=yesterday".to_owned(),
        format!("since={now}"),
        format!("since={now}&until={}", app::domain::time::Timestamp(0)),
        "since=2020-01-01T00:00:00Z".to_owned(),
    ] {
        server.get(&By::Admin, &format!("/api/usage?{query}")).await.problem(422, "out_of_range");
    }
    server.get(&By::Admin, "/api/usage?by=shoe-size").await.problem(400, "invalid_query");
}

#[tokio::test]
async fn of_a_time_that_the_trail_does_not_reach_the_fleet_is_not_told() {
    let server = Server::start_with(|policy| policy.audit_retention = Some(Millis::seconds(86_400))).await;
    let (_, key) = with_gpus(&server, "rack-1", 2).await;
    let _events = server.stream(&key).await;
    for _ in 0..4 {
        hours(&server, &key, 12).await;
        server.worker(&format!("w-{}", server.app.core.now().0)).await;
    }
    while server.app.core.expire_audit().await.expect("a database") > 0 {}
    let since = |hours: i64| format!("/api/usage?since={}", server.app.core.now() + Millis(-hours * HOUR.0));
    assert_eq!(server.get(&By::Admin, &since(40)).await.ok(200).get("fleet"), None);
    let lately = server.get(&By::Admin, &since(10)).await.ok(200);
    assert!(near(&lately["fleet"]["gpu_hours"], 20.0), "it came before, and has stayed: {}", lately["fleet"]);
}
