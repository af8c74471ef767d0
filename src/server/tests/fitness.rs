//! A host whose agent says that it is fit for no new job: nothing is offered to it, and whoever waits is told why.

use serde_json::{Value, json};

use super::harness::{By, Server};

const FULL: &str = "less than 10.0 GiB is free on the disk of /var/lib/w";

async fn beat(server: &Server, key: &By, unfit: Option<&str>) {
    let body = unfit.map_or_else(|| json!({}), |why| json!({"unfit": why}));
    server.post(key, "/api/workers/heartbeat", body).await.ok(200);
}

async fn show(server: &Server, id: &str) -> Value {
    server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)
}

async fn on_record(server: &Server) -> Vec<Value> {
    let page = server.get(&By::Admin, "/api/audit?action=worker.fitness").await.ok(200);
    page["entries"].as_array().expect("a list").iter().map(|entry| entry["detail"].clone()).collect()
}

/// A worker without GPUs that takes two jobs, and says this when it registers.
async fn online(server: &Server, unfit: Option<&str>) -> (String, By, super::harness::Events) {
    server.config("digits").await;
    let (id, key) = server.worker("cpu-1").await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "max_jobs": 2, "unfit": unfit});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    let mut events = server.stream(&key).await;
    events.of_type("drain").await;
    (id, key, events)
}

#[tokio::test]
async fn it_keeps_what_it_has_and_gets_nothing_until_it_is_fit() {
    let server = Server::start().await;
    let (id, key, mut events) = online(&server, None).await;
    let first = server.submit("digits").await;
    assert_eq!(events.offer().await.job_id.as_str(), first);
    server.report(&key, &first, json!({"status": "running", "attempt": 1})).await.ok(200);
    beat(&server, &key, Some(FULL)).await;
    assert_eq!(
        (server.status_of(&first).await.as_str(), &show(&server, &id).await["unfit"]),
        ("running", &json!(FULL))
    );
    let waits = server.submit("digits").await;
    let explained = server.get(&By::Admin, &format!("/api/queue/{waits}/explain")).await.ok(200);
    let blocker = &explained["workers"][0]["blockers"][0];
    assert_eq!(
        (&explained["verdict"], &blocker["code"], &blocker["found"]),
        (&json!("away"), &json!("unfit"), &json!(FULL))
    );
    assert_eq!(blocker["text"], format!("Its agent takes no new job: {FULL}."));
    assert!(explained["text"].as_str().is_some_and(|text| text.contains(FULL)), "{explained}");
    assert_eq!(server.status_of(&waits).await, "queued");
    beat(&server, &key, None).await;
    assert_eq!(events.offer().await.job_id.as_str(), waits, "it is planned at once");
    assert_eq!(show(&server, &id).await.get("unfit"), None);
    assert_eq!(on_record(&server).await, [json!({"unfit": null}), json!({"unfit": FULL})]);
}

#[tokio::test]
async fn a_registration_says_it_too() {
    let server = Server::start().await;
    let (id, key, mut events) = online(&server, Some("the disk\n is full")).await;
    assert_eq!(show(&server, &id).await["unfit"], "the disk is full", "what moves a cursor is left out");
    let waits = server.submit("digits").await;
    assert_eq!(server.status_of(&waits).await, "queued");
    beat(&server, &key, None).await;
    assert_eq!(events.offer().await.job_id.as_str(), waits);
}

#[tokio::test]
async fn what_is_known_or_only_said_in_other_words_is_not_written_each_time() {
    let server = Server::start().await;
    let (id, key, _events) = online(&server, None).await;
    let commits = || server.app.core.metrics.commits.sizes.counted().count;
    beat(&server, &key, Some("a")).await;
    let before = commits();
    for words in ["a", "b", "c", "b"] {
        beat(&server, &key, Some(words)).await;
    }
    assert_eq!(
        (commits(), &show(&server, &id).await["unfit"]),
        (before + 1, &json!("b")),
        "the first other words only"
    );
    let long = "x".repeat(1_000);
    server.clock.advance(app::domain::time::Millis::seconds(60));
    beat(&server, &key, Some(&long)).await;
    assert_eq!(show(&server, &id).await["unfit"].as_str().map(str::len), Some(256));
}
