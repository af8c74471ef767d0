//! `GET /api/events`

use axum::body::Body;
use serde_json::json;

use super::harness::{By, Events, Server};

async fn listen(server: &Server, query: &str) -> Events {
    Events::of(server.open(&By::Admin, "GET", &format!("/api/events{query}"), Body::empty()).await)
}

#[tokio::test]
async fn a_listener_is_told_what_changed_and_can_resume() {
    let server = Server::start().await;
    let mut events = listen(&server, "?topics=workers").await;
    let start = events.next().await.expect("the first message always comes");
    assert_eq!((&start["topics"], &start["resync"]), (&json!([]), &json!(false)));
    server.config("digits").await;
    server.submit("digits").await;
    server.worker("gpu-1").await;
    let news = events.next().await.expect("news");
    assert_eq!(news["topics"], json!(["workers"]), "only what was asked for");
    drop(events);
    server.worker("gpu-2").await;
    let after = news["version"].as_str().expect("text");
    let mut resumed = listen(&server, &format!("?topics=workers,jobs&after={after}")).await;
    assert_eq!(resumed.next().await.expect("what was missed")["topics"], json!(["workers"]));
}

#[tokio::test]
async fn a_listener_of_another_life_fetches_everything() {
    let server = Server::start().await;
    for stale in ["otherlife-3", "life1-999999", "nonsense"] {
        let mut events = listen(&server, &format!("?after={stale}")).await;
        assert_eq!(events.next().await.expect("a message")["resync"], true, "{stale}");
    }
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let server = Server::start().await;
    let mut events = listen(&server, "").await;
    events.next().await.expect("the first message");
    let (_, _, mut worker) = server.online("gpu-1").await;
    server.app.shutdown.cancel();
    while events.next().await.is_some() {}
    while worker.next().await.is_some() {}
}
