//! `/api/configs`

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
    server.call(&By::Admin, "PUT", "/api/configs/a%2Fb", body).await.problem(422, "invalid_name");
}
