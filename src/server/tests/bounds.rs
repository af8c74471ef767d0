//! How much a person may have of what they make themselves.

use app::domain::passkey;
use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::passkey::{SoftKey, add, keyed};
use super::harness::{Answer, By, Server};

async fn create(server: &Server, by: &By, body: Value) -> Answer {
    server.post(by, "/api/account/tokens", body).await
}

#[tokio::test]
async fn a_person_has_so_many_api_tokens_and_nobody_else_has_fewer_for_it() {
    let server = Server::start_with(|policy| policy.bounds.api_tokens_per_user = 2).await;
    let (ada, bob) = (server.person("ada", "researcher").await, server.person("bob", "researcher").await);
    let first = create(&server, &ada, json!({"name": "one"})).await.ok(201)["id"].clone();
    create(&server, &ada, json!({"name": "two"})).await.ok(201);
    create(&server, &ada, json!({"name": "two"})).await.problem(409, "name_taken");
    let refused = create(&server, &ada, json!({"name": "three"})).await.problem(422, "limit_reached");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("2 API tokens")), "{refused}");
    let for_ada = format!("/api/admin/users/{}/tokens", server.id_of("ada").await);
    server.post(&By::Admin, &for_ada, json!({"name": "three"})).await.problem(422, "limit_reached");
    create(&server, &bob, json!({"name": "one"})).await.ok(201);
    let path = format!("/api/account/tokens/{}", first.as_str().expect("text"));
    server.call(&ada, "DELETE", &path, "").await.ok(200);
    create(&server, &ada, json!({"name": "three"})).await.ok(201);
}

#[tokio::test]
async fn expired_api_tokens_make_room_for_new_ones() {
    let server = Server::start_with(|policy| policy.bounds.api_tokens_per_user = 2).await;
    server.person("ada", "researcher").await;
    let path = format!("/api/admin/users/{}/tokens", server.id_of("ada").await);
    let create = async |body: Value| server.post(&By::Admin, &path, body).await;
    create(json!({"name": "short", "expires_in_days": 1})).await.ok(201);
    create(json!({"name": "long"})).await.ok(201);
    create(json!({"name": "next"})).await.problem(422, "limit_reached");
    server.pass(Millis::seconds(86_400)).await;
    create(json!({"name": "next"})).await.ok(201);
    let detail = server.get(&By::Admin, path.trim_end_matches("/tokens")).await.ok(200);
    let names: Vec<_> = detail["tokens"].as_array().expect("a list").iter().map(|token| &token["name"]).collect();
    assert_eq!(names, ["long", "next"]);
    let trail = server.get(&By::Admin, "/api/audit?action=access.token_revoked").await.ok(200);
    assert_eq!(trail["entries"][0]["detail"]["name"], "short");
}

#[tokio::test]
async fn a_person_has_so_many_passkeys() {
    let server = Server::start().await;
    let ada = keyed(&server, "ada", 1).await;
    for number in 2..=u8::try_from(passkey::MOST).expect("few") {
        add(&server, &ada.browser, &SoftKey::new(number), &format!("key {number}")).await.ok(201);
    }
    let begun = server.post(&ada.browser, "/api/account/passkeys", json!({})).await;
    begun.problem(422, "too_much");
}
