//! `/api/configs`

use axum::http::header;
use serde_json::{Value, json};

use super::harness::{By, Server};

#[tokio::test]
async fn a_change_is_a_revision_and_no_change_is_none() {
    let server = Server::start().await;
    let put = async |text: &str| {
        let body = json!({"files": {"config.json": text, "prompts/a.json": "[]"}});
        server.call(&By::Admin, "PUT", "/api/configs/my-config", body.to_string()).await.ok(200)
    };
    let first = put(r#"{"--model_type": "lora", "max_train_steps": 10}"#).await;
    assert_eq!((&first["revision"], &first["files"]), (&json!(1), &json!(["config.json", "prompts/a.json"])));
    assert_eq!(first["summary"], json!({"model_type": "lora", "max_train_steps": "10"}));
    assert_eq!(put(r#"{"--model_type": "lora", "max_train_steps": 10}"#).await["revision"], 1);
    assert_eq!(put("{}").await["revision"], 2);
    let shown = server.get(&By::Admin, "/api/configs/my-config").await.ok(200);
    assert_eq!(shown["bundle"]["files"]["config.json"], "{}");
    server.call(&By::Admin, "DELETE", "/api/configs/my-config", "").await.ok(200);
    assert_eq!(server.get(&By::Admin, "/api/configs").await.ok(200)["configs"], json!([]));
    server.call(&By::Admin, "DELETE", "/api/configs/my-config", "").await.problem(404, "config_not_found");
    assert_eq!(put("{}").await["revision"], 3);
}

#[tokio::test]
async fn a_configuration_that_cannot_run_is_refused_with_the_reason() {
    let server = Server::start().await;
    let put = async |files: Value| {
        server.call(&By::Admin, "PUT", "/api/configs/c", json!({"files": files}).to_string()).await
    };
    put(json!({"other.json": "{}"})).await.problem(422, "config_json_missing");
    put(json!({"config.json": "{\"a\": }"})).await.problem(422, "config_json_broken");
    put(json!({"config.json": "[]"})).await.problem(422, "config_json_broken");
    put(json!({"config.json": "{}", "../evil": ""})).await.problem(422, "invalid_path");
    put(json!({"config.json": "{}", "/etc/passwd": ""})).await.problem(422, "invalid_path");
    let many: std::collections::BTreeMap<_, _> = (0..201).map(|n| (n.to_string(), "")).collect();
    put(json!(many)).await.problem(422, "too_much");
    put(json!({"config.json": "x".repeat(9 << 20)})).await.problem(422, "too_much");
    put(json!({"config.json": "x".repeat(17 << 20)})).await.problem(413, "body_too_large");
    assert_eq!(server.get(&By::Admin, "/api/configs").await.ok(200)["configs"], json!([]));
    let body = json!({"files": {"config.json": "{}"}}).to_string();
    server.call(&By::Admin, "PUT", "/api/configs/a%2Fb", body.clone()).await.problem(422, "invalid_name");
    server.call(&By::Admin, "PUT", "/api/configs/new", body).await.problem(422, "invalid_name");
}

#[tokio::test]
async fn code_in_a_configuration_is_refused() {
    let server = Server::start().await;
    for name in ["simpletuner/train.py", "json.py", "x.pth", "lib.so.1", "model.PT"] {
        let body = json!({"files": {"config.json": "{}", name: ""}}).to_string();
        let refused = server.call(&By::Admin, "PUT", "/api/configs/c", body).await.problem(422, "config_code");
        assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains(name)), "{refused}");
    }
    assert_eq!(server.get(&By::Admin, "/api/configs").await.ok(200)["configs"], json!([]));
}

#[tokio::test]
async fn revisions_are_listed_with_who_stored_them_and_which_jobs_run_them() {
    let server = Server::start().await;
    let put = async |by: &By, text: &str| {
        let body = json!({"files": {"config.json": text}}).to_string();
        server.call(by, "PUT", "/api/configs/c", body).await.ok(200)
    };
    let (ada, eve) = (server.person("ada", "lead").await, server.person("eve", "researcher").await);
    put(&By::Admin, "{}").await;
    put(&ada, r#"{"a": 1}"#).await;
    server.post(&ada, "/api/queue/submit", json!({"config_name": "c"})).await.ok(201);
    let ended = server.post(&ada, "/api/queue/submit", json!({"config_name": "c"})).await.ok(201);
    let id = ended["job_id"].as_str().expect("an id");
    server.post(&ada, &format!("/api/queue/{id}/cancel"), json!({})).await.ok(200);
    put(&ada, "{}").await;
    let listed = async |by: &By| {
        let page = server.get(by, "/api/configs/c/revisions").await.ok(200);
        let told = |one: &Value| {
            (one["revision"].clone(), one["created_by"].clone(), one["jobs"].clone(), one["active_jobs"].clone())
        };
        (page["revisions"].as_array().expect("a list").iter().map(told).collect::<Vec<_>>(), page["removed"].clone())
    };
    let row =
        |revision: u32, by: &str, jobs: u32, active: u32| (json!(revision), json!(by), json!(jobs), json!(active));
    let (all, removed) = listed(&ada).await;
    assert_eq!((&all[0], &all[1], removed), (&row(3, "ada", 0, 0), &row(2, "ada", 2, 1), json!(false)));
    assert_eq!(listed(&eve).await.0[1], row(2, "ada", 0, 0), "of others' jobs a researcher learns nothing");
    let old = server.get(&eve, "/api/configs/c/revisions/2").await.ok(200);
    assert_eq!((&old["revision"], &old["bundle"]["files"]["config.json"]), (&json!(2), &json!(r#"{"a": 1}"#)));
    server.call(&ada, "DELETE", "/api/configs/c", "").await.ok(200);
    assert_eq!(listed(&ada).await.1, json!(true));
    server.get(&ada, "/api/configs/c/revisions/2").await.ok(200);
    server.get(&ada, "/api/configs/c/revisions/4").await.problem(404, "config_not_found");
    server.get(&ada, "/api/configs/d/revisions").await.problem(404, "config_not_found");
}

#[tokio::test]
async fn refused_configurations_take_so_much_memory_and_the_newest_is_shown_again() {
    let server = Server::start().await;
    let (ada, eve) = (server.person("ada", "researcher").await, server.person("eve", "researcher").await);
    let refuse = async |by: &By, letter: &str| {
        let form = format!("name=c&file.0=other.json&text.0={}", letter.repeat(200_000));
        let answer = server.call(by, "POST", "/ui/configs", form).await;
        assert_eq!(answer.status, 303);
        let cookies = answer.headers.get_all(header::SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
        let flash = cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with("flash="));
        let By::Cookie(session) = by else { panic!("a browser") };
        By::Cookie(format!("{session}; {}", flash.expect("a word for the next page")))
    };
    let eves = refuse(&eve, "e").await;
    let mut last = ada.clone();
    for _ in 0..60 {
        last = refuse(&ada, "a").await;
    }
    assert!(server.app.flashes.bytes() < 2 << 20, "{} bytes", server.app.flashes.bytes());
    assert!(server.get(&last, "/configs/new").await.text().contains(&"a".repeat(200_000)));
    assert!(server.get(&eves, "/configs/new").await.text().contains(&"e".repeat(200_000)), "hers is hers");
}

#[tokio::test]
async fn revisions_of_configurations_have_a_limit_for_each_person_and_for_all() {
    let server = Server::start_with(|policy| {
        (policy.bounds.config_bytes_per_user, policy.bounds.config_bytes) = (3_000, 4_000);
    })
    .await;
    let (ada, bob) = (server.person("ada", "researcher").await, server.person("bob", "researcher").await);
    let put = async |by: &By, name: &str, letter: &str| {
        let text = format!("{{\"a\": \"{}\"}}", letter.repeat(1_000));
        let body = json!({"files": {"config.json": text}}).to_string();
        server.call(by, "PUT", &format!("/api/configs/{name}"), body).await
    };
    put(&ada, "one", "a").await.ok(200);
    put(&ada, "one", "b").await.ok(200);
    put(&ada, "one", "b").await.ok(200);
    let refused = put(&ada, "two", "c").await.problem(422, "limit_reached");
    assert!(
        refused["detail"].as_str().is_some_and(|detail| detail.contains("--max-config-size-per-user")),
        "{refused}"
    );
    put(&bob, "two", "c").await.ok(200);
    let refused = put(&bob, "two", "d").await.problem(422, "limit_reached");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("--max-config-size)")), "{refused}");
}
