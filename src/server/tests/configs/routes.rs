//! `/api/configs`

use axum::http::header;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

#[tokio::test]
async fn only_changes_create_revisions() {
    let server = TestServer::start().await;
    let put = async |text: &str| {
        let body = json!({"files": {"config.json": text, "prompts/a.json": "[]"}});
        server.call(&Actor::Admin, "PUT", "/api/configs/my-config", body.to_string()).await.expect_status(200)
    };
    let first = put(r#"{"--model_type": "lora", "max_train_steps": 10}"#).await;
    assert_eq!((&first["revision"], &first["files"]), (&json!(1), &json!(["config.json", "prompts/a.json"])));
    assert_eq!(first["summary"], json!({"model_type": "lora", "max_train_steps": "10"}));
    assert_eq!(put(r#"{"--model_type": "lora", "max_train_steps": 10}"#).await["revision"], 1);
    assert_eq!(put("{}").await["revision"], 2);
    let view = server.get(&Actor::Admin, "/api/configs/my-config").await.expect_status(200);
    assert_eq!(view["bundle"]["files"]["config.json"], "{}");
    server.call(&Actor::Admin, "DELETE", "/api/configs/my-config", "").await.expect_status(200);
    assert_eq!(server.get(&Actor::Admin, "/api/configs").await.expect_status(200)["configs"], json!([]));
    server.call(&Actor::Admin, "DELETE", "/api/configs/my-config", "").await.expect_problem(404, "config_not_found");
    assert_eq!(put("{}").await["revision"], 3);
}

#[tokio::test]
async fn invalid_configuration_is_rejected_with_the_reason() {
    let server = TestServer::start().await;
    let put = async |files: Value| {
        server.call(&Actor::Admin, "PUT", "/api/configs/c", json!({"files": files}).to_string()).await
    };
    put(json!({"other.json": "{}"})).await.expect_problem(422, "config_json_missing");
    put(json!({"config.json": "{\"a\": }"})).await.expect_problem(422, "config_json_broken");
    put(json!({"config.json": "[]"})).await.expect_problem(422, "config_json_broken");
    put(json!({"config.json": "{}", "../evil": ""})).await.expect_problem(422, "invalid_path");
    put(json!({"config.json": "{}", "/etc/passwd": ""})).await.expect_problem(422, "invalid_path");
    let many: std::collections::BTreeMap<_, _> = (0..201).map(|n| (n.to_string(), "")).collect();
    put(json!(many)).await.expect_problem(422, "too_large");
    put(json!({"config.json": "x".repeat(9 << 20)})).await.expect_problem(422, "too_large");
    put(json!({"config.json": "x".repeat(17 << 20)})).await.expect_problem(413, "body_too_large");
    assert_eq!(server.get(&Actor::Admin, "/api/configs").await.expect_status(200)["configs"], json!([]));
    let body = json!({"files": {"config.json": "{}"}}).to_string();
    server.call(&Actor::Admin, "PUT", "/api/configs/a%2Fb", body.clone()).await.expect_problem(422, "invalid_name");
    server.call(&Actor::Admin, "PUT", "/api/configs/new", body).await.expect_problem(422, "invalid_name");
}

#[tokio::test]
async fn code_in_a_configuration_is_rejected() {
    let server = TestServer::start().await;
    for name in ["simpletuner/train.py", "json.py", "x.pth", "lib.so.1", "model.PT"] {
        let body = json!({"files": {"config.json": "{}", name: ""}}).to_string();
        let rejected =
            server.call(&Actor::Admin, "PUT", "/api/configs/c", body).await.expect_problem(422, "config_code");
        assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains(name)), "{rejected}");
    }
    assert_eq!(server.get(&Actor::Admin, "/api/configs").await.expect_status(200)["configs"], json!([]));
}

#[tokio::test]
async fn revisions_are_listed_with_author_and_jobs() {
    let server = TestServer::start().await;
    let put = async |actor: &Actor, text: &str| {
        let body = json!({"files": {"config.json": text}}).to_string();
        server.call(actor, "PUT", "/api/configs/c", body).await.expect_status(200)
    };
    let (ada, eve) = (server.add_user("ada", "lead").await, server.restricted_token("eve").await);
    put(&Actor::Admin, "{}").await;
    put(&ada, r#"{"a": 1}"#).await;
    server.post(&ada, "/api/queue/submit", json!({"config_name": "c"})).await.expect_status(201);
    let ended_job = server.post(&ada, "/api/queue/submit", json!({"config_name": "c"})).await.expect_status(201);
    let id = ended_job["job_id"].as_str().expect("an id");
    server.post(&ada, &format!("/api/queue/{id}/cancel"), json!({})).await.expect_status(200);
    put(&ada, "{}").await;
    let list_revisions = async |actor: &Actor| {
        let page = server.get(actor, "/api/configs/c/revisions").await.expect_status(200);
        let summary = |entry: &Value| {
            (
                entry["revision"].clone(),
                entry["created_by"].clone(),
                entry["jobs"].clone(),
                entry["active_jobs"].clone(),
            )
        };
        (page["revisions"].as_array().expect("a list").iter().map(summary).collect::<Vec<_>>(), page["removed"].clone())
    };
    let row = |revision: u32, author: &str, jobs: u32, active: u32| {
        (json!(revision), json!(author), json!(jobs), json!(active))
    };
    let (all, removed) = list_revisions(&ada).await;
    assert_eq!((&all[0], &all[1], removed), (&row(3, "ada", 0, 0), &row(2, "ada", 2, 1), json!(false)));
    assert_eq!(
        list_revisions(&eve).await.0[1],
        row(2, "ada", 0, 0),
        "jobs of other users are not counted without permission"
    );
    let old = server.get(&eve, "/api/configs/c/revisions/2").await.expect_status(200);
    assert_eq!((&old["revision"], &old["bundle"]["files"]["config.json"]), (&json!(2), &json!(r#"{"a": 1}"#)));
    server.call(&ada, "DELETE", "/api/configs/c", "").await.expect_status(200);
    assert_eq!(list_revisions(&ada).await.1, json!(true));
    server.get(&ada, "/api/configs/c/revisions/2").await.expect_status(200);
    server.get(&ada, "/api/configs/c/revisions/4").await.expect_problem(404, "config_not_found");
    server.get(&ada, "/api/configs/d/revisions").await.expect_problem(404, "config_not_found");
}

#[tokio::test]
async fn unknown_name_error_suggests_similar_names() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    server.put_config("sdxl").await;
    let submit = json!({"config_name": "digtis"});
    let problem = server.post(&Actor::Admin, "/api/queue/submit", submit).await.expect_problem(404, "config_not_found");
    let detail = problem["detail"].as_str().expect("text").to_owned();
    assert!(
        detail.contains("Did you mean digits?") && detail.contains("configs push") && !detail.contains("sdxl"),
        "{detail}"
    );
    let problem = server.get(&Actor::Admin, "/api/configs/my-training").await.expect_problem(404, "config_not_found");
    assert!(!problem["detail"].as_str().expect("text").contains("Did you mean"), "{problem}");
    let page = server.get(&server.add_user("vic", "viewer").await, "/configs/digtis").await;
    assert_eq!(page.status, axum::http::StatusCode::NOT_FOUND);
    let text = page.text();
    assert!(text.contains("href=\"/configs/digits\"") && !text.contains("href=\"/configs/sdxl\""), "{text}");
}

#[tokio::test]
async fn rejected_form_input_has_a_memory_limit() {
    let server = TestServer::start().await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "researcher").await);
    let submit_invalid = async |actor: &Actor, letter: &str| {
        let form = format!("name=c&file.0=other.json&text.0={}", letter.repeat(200_000));
        let response = server.call(actor, "POST", "/ui/configs", form).await;
        assert_eq!(response.status, 303);
        let cookies = response.headers.get_all(header::SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
        let flash = cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with("flash="));
        let Actor::Cookie(session) = actor else { panic!("a browser") };
        Actor::Cookie(format!("{session}; {}", flash.expect("a flash cookie")))
    };
    let other_browser = submit_invalid(&eve, "e").await;
    let mut last_browser = ada.clone();
    for _ in 0..60 {
        last_browser = submit_invalid(&ada, "a").await;
    }
    assert!(server.app.flashes.bytes() < 2 << 20, "{} bytes", server.app.flashes.bytes());
    assert!(server.get(&last_browser, "/configs/new").await.text().contains(&"a".repeat(200_000)));
    assert!(
        server.get(&other_browser, "/configs/new").await.text().contains(&"e".repeat(200_000)),
        "the input of another user is unchanged"
    );
}

#[tokio::test]
async fn configuration_size_is_limited_per_user_and_in_total() {
    let server = TestServer::start_with(|policy| {
        (policy.usage_limits.config_bytes_per_user, policy.usage_limits.config_bytes) = (3_000, 4_000);
    })
    .await;
    let (ada, bob) = (server.add_user("ada", "researcher").await, server.add_user("bob", "researcher").await);
    let put = async |actor: &Actor, name: &str, letter: &str| {
        let text = format!("{{\"a\": \"{}\"}}", letter.repeat(1_000));
        let body = json!({"files": {"config.json": text}}).to_string();
        server.call(actor, "PUT", &format!("/api/configs/{name}"), body).await
    };
    put(&ada, "one", "a").await.expect_status(200);
    put(&ada, "one", "b").await.expect_status(200);
    put(&ada, "one", "b").await.expect_status(200);
    let rejected = put(&ada, "two", "c").await.expect_problem(422, "limit_reached");
    assert!(
        rejected["detail"].as_str().is_some_and(|detail| detail.contains("--max-config-size-per-user")),
        "{rejected}"
    );
    put(&bob, "two", "c").await.expect_status(200);
    let rejected = put(&bob, "two", "d").await.expect_problem(422, "limit_reached");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("--max-config-size)")), "{rejected}");
}
