//! Quotas of users.

use app::domain::passkey;
use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::tests::harness::passkey::{SoftPasskey, add_passkey, user_with_passkey};
use crate::tests::harness::{Actor, TestResponse, TestServer};

async fn create(server: &TestServer, actor: &Actor, body: Value) -> TestResponse {
    server.post(actor, "/api/account/tokens", body).await
}

#[tokio::test]
async fn api_tokens_are_limited_per_user() {
    let server = TestServer::start_with(|policy| policy.usage_limits.api_tokens_per_user = 2).await;
    let (ada, bob) = (server.add_user("ada", "researcher").await, server.add_user("bob", "researcher").await);
    let first = create(&server, &ada, json!({"name": "one"})).await.expect_status(201)["id"].clone();
    create(&server, &ada, json!({"name": "two"})).await.expect_status(201);
    create(&server, &ada, json!({"name": "two"})).await.expect_problem(409, "name_taken");
    let rejected = create(&server, &ada, json!({"name": "three"})).await.expect_problem(422, "limit_reached");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("2 API tokens")), "{rejected}");
    let user_tokens_path = format!("/api/admin/users/{}/tokens", server.user_id("ada").await);
    server.post(&Actor::Admin, &user_tokens_path, json!({"name": "three"})).await.expect_problem(422, "limit_reached");
    create(&server, &bob, json!({"name": "one"})).await.expect_status(201);
    let path = format!("/api/account/tokens/{}", first.as_str().expect("text"));
    server.call(&ada, "DELETE", &path, "").await.expect_status(200);
    create(&server, &ada, json!({"name": "three"})).await.expect_status(201);
}

#[tokio::test]
async fn expired_api_tokens_do_not_count() {
    let server = TestServer::start_with(|policy| policy.usage_limits.api_tokens_per_user = 2).await;
    server.add_user("ada", "researcher").await;
    let path = format!("/api/admin/users/{}/tokens", server.user_id("ada").await);
    let create = async |body: Value| server.post(&Actor::Admin, &path, body).await;
    create(json!({"name": "short", "expires_in_days": 1})).await.expect_status(201);
    create(json!({"name": "long"})).await.expect_status(201);
    create(json!({"name": "next"})).await.expect_problem(422, "limit_reached");
    server.advance(Millis::from_secs(86_400)).await;
    create(json!({"name": "next"})).await.expect_status(201);
    let detail = server.get(&Actor::Admin, path.trim_end_matches("/tokens")).await.expect_status(200);
    let names: Vec<_> = detail["tokens"].as_array().expect("a list").iter().map(|token| &token["name"]).collect();
    assert_eq!(names, ["long", "next"]);
    let audit_log = server.get(&Actor::Admin, "/api/audit?action=access.token_revoked").await.expect_status(200);
    assert_eq!(audit_log["entries"][0]["detail"]["name"], "short");
}

#[tokio::test]
async fn passkeys_are_limited_per_user() {
    let server = TestServer::start().await;
    let ada = user_with_passkey(&server, "ada", 1).await;
    for number in 2..=u8::try_from(passkey::MAX_PASSKEYS).expect("few") {
        add_passkey(&server, &ada.browser, &SoftPasskey::new(number), &format!("key {number}"))
            .await
            .expect_status(201);
    }
    let response = server.post(&ada.browser, "/api/account/passkeys", json!({})).await;
    response.expect_problem(422, "too_large");
}
