//! Input that is allowed, and that is easily forgotten.

use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

#[tokio::test]
async fn names_of_every_script_are_kept_and_found() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let names = ["Übergröße", "学習 第四", "تجربة", "प्रशिक्षण", "שלום", "Ω≈ç√∫", "👩🏽‍🚀 run", "x".repeat(128).as_str()]
        .map(str::to_owned);
    for name in &names {
        let body = json!({"config_name": "digits", "name": name});
        server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
    }
    for name in &names {
        let query = serde_urlencoded::to_string([("q", format!("name:\"{name}\""))]).expect("a query");
        let found = server.get(&Actor::Admin, &format!("/api/queue?{query}")).await.expect_status(200);
        assert_eq!((&found["total"], &found["jobs"][0]["name"]), (&json!(1), &json!(name)), "{name}");
    }
}

#[tokio::test]
async fn two_hundred_metrics_and_steps_that_go_backwards_are_charts() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    for status in ["starting", "running"] {
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    let metrics = |value: f64| -> Value {
        (0..200).map(|n| (format!("m{n}"), json!(value))).collect::<serde_json::Map<_, _>>().into()
    };
    let point = |step: u64, value: f64| json!({"step": step, "at": "2024-01-15T10:30:00Z", "metrics": metrics(value)});
    let path = format!("/api/workers/job/{job}/progress");
    let report = json!({"attempt": 1, "points": [point(1, 1.0), point(20, 2.0), point(3, 3.0), point(20, 4.0)]});
    server.post(&key, &path, report).await.expect_status(200);
    let charts = server.get(&Actor::Admin, &format!("/api/queue/{job}/metrics")).await.expect_status(200);
    let series = charts["metrics"].as_array().expect("a list");
    let m7 = series.iter().find(|series| series["name"] == "m7").expect("a metric");
    // One point per step, in their order: the newest one replaces the others.
    assert_eq!((&m7["steps"], &m7["values"]), (&json!([1, 3, 20]), &json!([1.0, 3.0, 4.0])));
}

#[tokio::test]
async fn shared_view_of_a_disabled_user_stays_and_can_be_deleted() {
    let server = TestServer::start().await;
    let (ada, eve, lead) = (
        server.add_user("ada", "researcher").await,
        server.add_user("eve", "viewer").await,
        server.add_user("lea", "lead").await,
    );
    for (name, shared) in [("Team", true), ("Mine", false)] {
        let body = json!({"query": "status=failed", "shared": shared}).to_string();
        server.call(&ada, "PUT", &format!("/api/queue/views/{name}"), body).await.expect_status(200);
    }
    let path = format!("/api/admin/users/{}", server.user_id("ada").await);
    server.call(&Actor::Admin, "PATCH", &path, json!({"disabled": true}).to_string()).await.expect_status(200);
    let shown = async || {
        server.get(&eve, "/api/queue/views").await.expect_status(200)["views"].as_array().expect("a list").len()
    };
    assert_eq!(shown().await, 1, "the shared one");
    server.call(&lead, "DELETE", "/api/queue/views/Team?owner=ada", "").await.expect_status(200);
    assert_eq!(shown().await, 0);
}
