//! After a revocation, credentials are rejected and open streams end.

use std::collections::BTreeSet;

use app::domain::time::Millis;
use axum::body::Body;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, EventStreamReader, PASSWORD, TestServer};

/// Opens the streams of a user: changes, and a log.
async fn open_streams(server: &TestServer, actor: &Actor, job: &str) -> [EventStreamReader; 2] {
    let open = async |path: &str| {
        let response = server.open(actor, "GET", path, Body::empty()).await;
        assert_eq!(response.status(), 200, "{path}");
        EventStreamReader::new(response)
    };
    let mut events = open("/api/events").await;
    events.next().await.expect("the first message");
    [events, open(&format!("/api/queue/{job}/logs?follow=1")).await]
}

/// Checks that all streams end and cannot be resumed.
async fn assert_all_end(streams: [EventStreamReader; 2]) {
    for mut stream in streams {
        while stream.next().await.is_some() {}
    }
}

/// Returns the distinct topics of a stream, up to those of a new worker.
async fn topics_until_workers(stream: &mut EventStreamReader) -> Vec<String> {
    let mut topics = BTreeSet::new();
    while !topics.contains("workers") {
        let event = stream.next().await.expect("event");
        topics.extend(
            event["topics"].as_array().expect("a list").iter().map(|topic| topic.as_str().expect("text").to_owned()),
        );
    }
    topics.retain(|topic: &String| !topic.starts_with("worker:"));
    topics.into_iter().collect()
}

/// Creates an API token of this browser's user; returns the token and its id.
async fn create_token(server: &TestServer, browser: &Actor, body: Value) -> (Actor, String) {
    let created = server.post(browser, "/api/account/tokens", body).await.expect_status(201);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (Actor::Token(text(&created["secret"])), text(&created["id"]))
}

async fn start_with_job() -> (TestServer, String) {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    (server, job)
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams() {
    let (server, job) = start_with_job().await;
    let ada = server.add_user("ada", "lead").await;
    let (token, id) = create_token(&server, &ada, json!({"name": "ci"})).await;
    let (revoked, mut browser_streams) =
        (open_streams(&server, &token, &job).await, open_streams(&server, &ada, &job).await);
    server.call(&ada, "DELETE", &format!("/api/account/tokens/{id}"), "").await.expect_status(200);
    assert_all_end(revoked).await;
    server.get(&token, "/api/queue").await.expect_problem(401, "wrong_token");
    server.create_worker("gpu-1").await;
    assert_eq!(
        topics_until_workers(&mut browser_streams[0]).await,
        ["account", "workers"],
        "the stream of the browser stays open"
    );
}

#[tokio::test]
async fn ended_session_ends_its_streams() {
    let (server, job) = start_with_job().await;
    let ada = server.add_user("ada", "lead").await;
    let streams = open_streams(&server, &ada, &job).await;
    server.call(&ada, "POST", "/ui/logout", "").await;
    assert_all_end(streams).await;

    let new_browser = server.log_in("ada", PASSWORD).await.expect("a valid password");
    let streams = open_streams(&server, &new_browser, &job).await;
    let path = format!("/api/admin/users/{}/password", server.user_id("ada").await);
    server.post(&Actor::Admin, &path, json!({"password": "another-long-one"})).await.expect_status(200);
    assert_all_end(streams).await;
    server.get(&new_browser, "/api/queue").await.expect_problem(401, "not_authenticated");
}

#[tokio::test]
async fn disabling_or_role_change_ends_streams() {
    let (server, job) = start_with_job().await;
    let ada = server.add_user("ada", "lead").await;
    let (token, _) = create_token(&server, &ada, json!({"name": "ci"})).await;
    let path = format!("/api/admin/users/{}", server.user_id("ada").await);
    let edit =
        async |body: Value| server.call(&Actor::Admin, "PATCH", &path, body.to_string()).await.expect_status(200);

    let streams = open_streams(&server, &token, &job).await;
    edit(json!({"role": "researcher"})).await;
    assert_all_end(streams).await;

    let streams = open_streams(&server, &token, &job).await;
    edit(json!({"disabled": true})).await;
    assert_all_end(streams).await;
    server.get(&token, "/api/queue").await.expect_problem(401, "wrong_token");
}

#[tokio::test]
async fn expired_token_ends_its_streams() {
    let (server, job) = start_with_job().await;
    let ada = server.add_user("ada", "lead").await;
    let (token, _) = create_token(&server, &ada, json!({"name": "ci", "expires_in_days": 1})).await;
    server.clock.advance(Millis(86_400_000 - 500));
    let streams = open_streams(&server, &token, &job).await;
    server.clock.advance(Millis(500));
    assert_all_end(streams).await;
    server.get(&token, "/api/queue").await.expect_problem(401, "wrong_token");
}

#[tokio::test]
async fn revocations_send_no_event_to_others() {
    let (server, job) = start_with_job().await;
    let (eve, ada) = (server.add_user("eve", "viewer").await, server.add_user("ada", "lead").await);
    let mut events = open_streams(&server, &eve, &job).await;
    server.call(&ada, "POST", "/ui/logout", "").await;
    server.create_worker("gpu-1").await;
    assert_eq!(topics_until_workers(&mut events[0]).await, ["workers"]);
}

#[tokio::test]
async fn admin_reset_revokes_tokens_but_own_password_change_keeps_them() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "researcher").await;
    let (first, _) = create_token(&server, &ada, json!({"name": "ci"})).await;
    let (second, _) = create_token(&server, &ada, json!({"name": "laptop"})).await;
    let Actor::Token(secret) = &second else { panic!("a token") };
    let token_browser = server.log_in("", secret).await.expect("a session");
    let is_signed_in = async |actor: &Actor| server.get(actor, "/api/session").await.status == 200;

    let change = json!({"old": PASSWORD, "new": "another-good-one"});
    server.post(&ada, "/api/account/password", change).await.expect_status(200);
    assert!(
        is_signed_in(&ada).await
            && is_signed_in(&first).await
            && is_signed_in(&second).await
            && !is_signed_in(&token_browser).await
    );

    let id = server.user_id("ada").await;
    let path = format!("/api/admin/users/{id}/password");
    let response = server.post(&Actor::Admin, &path, json!({"password": "given-by-an-admin"})).await.expect_status(200);
    assert_eq!(response, json!({"success": true, "sessions_ended": 1, "tokens_revoked": 2}));
    assert!(!is_signed_in(&ada).await && !is_signed_in(&first).await && !is_signed_in(&second).await);
    let detail = server.get(&Actor::Admin, &format!("/api/admin/users/{id}")).await.expect_status(200);
    assert_eq!((&detail["sessions"], &detail["tokens"]), (&json!([]), &json!([])));
    let audit_log = server.get(&Actor::Admin, "/api/audit?action=access.token_revoked").await.expect_status(200);
    let entries = audit_log["entries"].as_array().expect("a list").iter();
    let revoked: BTreeSet<_> = entries.map(|entry| entry["detail"]["name"].as_str().expect("text")).collect();
    assert_eq!(revoked, BTreeSet::from(["ci", "laptop"]));

    let ada = server.log_in("ada", "given-by-an-admin").await.expect("a valid password");
    let account = server.get(&ada, "/account").await.text();
    assert!(account.contains("your sessions ended and your API tokens were revoked"), "{account}");
    let form = format!("/ui/users/{id}/password");
    let redirect = server.call(&Actor::Admin, "POST", &form, "new=given-by-an-admin").await;
    let flash = redirect.headers["set-cookie"].to_str().expect("ascii").split(';').next().expect("a cookie").to_owned();
    let admin = server.log_in("", crate::tests::harness::ADMIN).await.expect("a session");
    let Actor::Cookie(session) = &admin else { panic!("a browser") };
    let page = server.get(&Actor::Cookie(format!("{session}; {flash}")), &format!("/admin/users/{id}")).await.text();
    assert!(page.contains("sessions ended and API tokens were revoked."), "{page}");
}
