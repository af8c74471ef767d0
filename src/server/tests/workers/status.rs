//! What the API and the pages say about a worker's connection.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

async fn view(server: &TestServer, id: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)
}

/// Checks that the list and the worker's page show these words.
async fn assert_pages_show(server: &TestServer, id: &str, words: &[&str]) {
    for path in ["/admin/workers".to_owned(), format!("/admin/workers/{id}")] {
        let page = server.get(&Actor::Admin, &path).await.text();
        for word in words {
            assert!(page.contains(&format!(">{word}<")), "{path} lacks {word}: {page}");
        }
    }
}

#[tokio::test]
async fn offline_worker_has_a_cause_until_it_returns() {
    let server = TestServer::start().await;
    let (id, key, _events) = server.connect_worker("gpu-1").await;
    let (never_connected, _) = server.create_worker("gpu-2").await;
    assert_eq!(view(&server, &never_connected).await["offline_cause"], Value::Null);
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    assert_eq!(view(&server, &id).await["offline_cause"], "disconnected");
    assert_pages_show(&server, &id, &["Offline", "Agent shut down."]).await;
    server.register(&key, json!([])).await;
    assert_eq!(view(&server, &id).await["offline_cause"], Value::Null);
    server.advance(Millis::from_secs(121)).await;
    assert_eq!(view(&server, &id).await["offline_cause"], "heartbeat_timeout");
    assert_pages_show(&server, &id, &["Offline", "Heartbeat timeout."]).await;
}

#[tokio::test]
async fn draining_worker_that_lost_its_connection_shows_both() {
    let server = TestServer::start().await;
    let (id, _, events) = server.connect_worker("gpu-1").await;
    server.call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/drain"), "").await.expect_status(200);
    server.drop_stream(&id, events).await;
    let worker = view(&server, &id).await;
    assert_eq!((&worker["status"], &worker["connection_lost"]), (&json!("draining"), &json!(true)));
    assert_pages_show(&server, &id, &["Draining", "Connection lost"]).await;
}
