//! `GET /api/queue/compare`: what differs, what is shown to whom, and how long it takes.

use std::time::Instant;

use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

async fn submit(server: &TestServer, actor: &Actor, overrides: Value) -> String {
    let body = json!({"config_name": "digits", "target": "worker", "overrides": overrides});
    let submitted = server.post(actor, "/api/queue/submit", body).await.expect_status(201);
    submitted["job_id"].as_str().expect("text").to_owned()
}

async fn put_config(server: &TestServer, files: Value) {
    server
        .call(&Actor::Admin, "PUT", "/api/configs/digits", json!({"files": files}).to_string())
        .await
        .expect_status(200);
}

async fn compare(server: &TestServer, actor: &Actor, ids: &[&str]) -> Value {
    server.get(actor, &format!("/api/queue/compare?ids={}", ids.join(","))).await.expect_status(200)
}

/// The IDs of the compared jobs.
fn ids(comparison: &Value) -> Vec<&str> {
    let jobs = comparison["jobs"].as_array().expect("a list").iter();
    jobs.map(|job| job["job"]["job_id"].as_str().expect("text")).collect()
}

fn differing(comparison: &Value) -> Vec<(&str, &Value)> {
    let keys = comparison["config"].as_array().expect("a list").iter().filter(|key| key["differs"] == true);
    keys.map(|key| (key["key"].as_str().expect("text"), &key["values"])).collect()
}

async fn token(server: &TestServer, user: &Actor, scopes: &[&str]) -> Actor {
    let created = server.post(user, "/api/account/tokens", json!({"name": "own", "scopes": scopes})).await;
    Actor::Token(created.expect_status(201)["secret"].as_str().expect("text").to_owned())
}

/// Runs the next offered job, with these points of its trainer.
async fn report(server: &TestServer, key: &Actor, job: &str, attempt: u32, points: Value) {
    for status in ["starting", "running"] {
        server.report_status(key, job, json!({"status": status, "attempt": attempt})).await.expect_status(200);
    }
    let path = format!("/api/workers/job/{job}/progress");
    for points in points.as_array().expect("a list").chunks(500) {
        server.post(key, &path, json!({"attempt": attempt, "points": points})).await.expect_status(200);
    }
}

#[tokio::test]
async fn differing_values_are_first_and_include_overrides_and_other_files() {
    let server = TestServer::start().await;
    let config = |more: Value| {
        json!({"learning_rate": 1e-4, "model": {"type": "lora"}, "seeds": [1, 2], "more": more}).to_string()
    };
    put_config(&server, json!({"config.json": config(json!({"a": 1})), "data.json": "[]"})).await;
    let admin = Actor::Admin;
    let first = submit(&server, &admin, json!({})).await;
    let second = submit(&server, &admin, json!({"learning_rate": "2e-4", "seeds": [1]})).await;
    put_config(&server, json!({"config.json": config(json!(1)), "data.json": "[1]"})).await;
    let third = submit(&server, &admin, json!({"learning_rate": "0.0001"})).await;
    let comparison = compare(&server, &admin, &[&third, &first, &second]).await;
    assert_eq!(ids(&comparison), [&third, &first, &second], "in the order of the request");
    let data = differing(&comparison)[0].1.clone();
    assert!(
        data[0].as_str().is_some_and(|digest| digest.starts_with("sha256:"))
            && data[0] != data[1]
            && data[1] == data[2]
    );
    let expected = [
        ("data.json", data),
        ("learning_rate", json!(["0.0001", 1e-4, "2e-4"])),
        ("more", json!([1, null, null])),
        ("more.a", json!([null, 1, 1])),
        ("seeds", json!([[1, 2], [1, 2], [1]])),
    ];
    assert_eq!(differing(&comparison), expected.iter().map(|(key, values)| (*key, values)).collect::<Vec<_>>());
    let keys = comparison["config"].as_array().expect("a list");
    assert_eq!((&keys[5]["key"], &keys[5]["differs"]), (&json!("model.type"), &json!(false)), "the same in all");
    assert_eq!(differing(&compare(&server, &admin, &[&first, &first, &third]).await).len(), 3);
}

#[tokio::test]
async fn metrics_are_of_the_newest_attempt_that_has_any() {
    let server = TestServer::start().await;
    put_config(&server, json!({"config.json": "{}"})).await;
    let (admin, (_, key, mut events)) = (Actor::Admin, server.connect_worker("gpu-1").await);
    let first = submit(&server, &admin, json!({})).await;
    events.next_offer().await;
    let at = "2024-01-15T10:30:00Z";
    let points = json!([
        {"step": 1, "at": at, "loss": 0.5, "metrics": {"fid": 7.0}},
        {"step": 1_000_000_000, "at": at, "loss": 0.25},
    ]);
    report(&server, &key, &first, 1, points).await;
    server.report_status(&key, &first, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    let second = submit(&server, &admin, json!({})).await;
    events.next_offer().await;
    report(
        &server,
        &key,
        &second,
        1,
        json!([{"step": 1, "at": at, "loss": 1.0}, {"step": 2, "at": at, "loss_is_nan": true}]),
    )
    .await;
    let waiting = submit(&server, &admin, json!({})).await;
    let comparison = compare(&server, &admin, &[&first, &second, &waiting]).await;
    let finals: Vec<&Value> = (0..3).map(|number| &comparison["jobs"][number]["final_metrics"]).collect();
    assert_eq!(finals, [&json!({"fid": 7.0, "loss": 0.25}), &json!({"loss": null}), &json!({})]);
    assert_eq!(comparison["jobs"][0]["metrics"]["metrics"][0]["steps"], json!([1, 1_000_000_000]));
    assert_eq!(comparison["jobs"][1]["metrics"]["loss_nan_since"], 2);
    assert_eq!(comparison["jobs"][2]["job"]["status"], "queued");
}

#[tokio::test]
async fn only_visible_jobs_and_permitted_values_are_compared() {
    let server = TestServer::start().await;
    put_config(&server, json!({"config.json": "{\"a\": 1}"})).await;
    let user = server.add_user("ada", "researcher").await;
    let own = token(&server, &user, &["job.submit", "job.view.own"]).await;
    let (mine, also_mine) = (submit(&server, &own, json!({})).await, submit(&server, &own, json!({})).await);
    let other = submit(&server, &Actor::Admin, json!({"a": 2})).await;
    let comparison = compare(&server, &own, &[&mine, &other, "j_unknown", &also_mine]).await;
    assert_eq!(ids(&comparison), [&mine, &also_mine]);
    assert_eq!(comparison["missing"], json!([other, "j_unknown"]));
    assert_eq!(comparison.get("config"), None, "the token may not read configurations");
    assert_eq!(comparison["jobs"][0]["job"].get("overrides"), None);
    let all = compare(&server, &Actor::Admin, &[&mine, &other]).await;
    assert_eq!((ids(&all), &all["missing"]), (vec![mine.as_str(), other.as_str()], &json!([])));
    assert_eq!(differing(&all), [("a", &json!([1, 2]))]);
    // Nothing is left to compare, and that is no error.
    assert_eq!(ids(&compare(&server, &own, &[&other, "j_unknown"]).await), [] as [&str; 0]);
}

#[tokio::test]
async fn two_to_twenty_jobs_can_be_compared() {
    let server = TestServer::start().await;
    let many = |number: usize| (0..number).map(|id| format!("j_{id}")).collect::<Vec<_>>().join(",");
    for ids in [String::new(), "j_1".to_owned(), "j_1,j_1".to_owned(), many(21)] {
        let problem = server
            .get(&Actor::Admin, &format!("/api/queue/compare?ids={ids}"))
            .await
            .expect_problem(422, "out_of_range");
        assert_eq!(problem["detail"], "`ids` must be 2 to 20 job IDs, separated by commas.");
    }
    server.get(&Actor::Admin, "/api/queue/compare").await.expect_problem(400, "invalid_query");
    assert_eq!(compare(&server, &Actor::Admin, &[&many(20)]).await["missing"].as_array().map(Vec::len), Some(20));
}

#[tokio::test]
async fn twenty_long_trainings_are_compared_quickly() {
    let server = TestServer::start().await;
    put_config(&server, json!({"config.json": "{}"})).await;
    let mut jobs = Vec::new();
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    for number in 0..20 {
        let job = submit(&server, &Actor::Admin, json!({"seed": number})).await;
        events.next_offer().await;
        let point = |step: u32| {
            let loss = 1.0 / f64::from(step + number + 1);
            json!({"step": step, "at": "2024-01-15T10:30:00Z", "loss": loss, "learning_rate": 0.1, "metrics": {"grad_norm": loss}})
        };
        report(&server, &key, &job, 1, (0..10_000).map(point).collect()).await;
        server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
        jobs.push(job);
    }
    let ids: Vec<&str> = jobs.iter().map(String::as_str).collect();
    let started = Instant::now();
    let comparison = compare(&server, &Actor::Admin, &ids).await;
    println!("20 jobs of 10,000 points: {:?}, {} bytes", started.elapsed(), comparison.to_string().len());
    let values: usize = comparison["jobs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|job| {
            let metrics = job["metrics"]["metrics"].as_array().expect("a list").iter();
            metrics.map(|metric| metric["values"].as_array().map_or(0, Vec::len)).sum::<usize>()
        })
        .sum();
    assert!((5_000..=65_000).contains(&values), "{values}");
    let last = comparison["jobs"][3]["final_metrics"]["loss"].as_f64().expect("a number");
    assert!((last - 1.0 / 10_003.0).abs() < 1e-12, "{last}");
}
