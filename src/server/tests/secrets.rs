//! Job secrets: written by users, read by attempts only.

use serde_json::{Value, json};

use super::harness::{Actor, TestServer};
use crate::store::TransactionWork;
use crate::store::secrets::StoredSecret;
use crate::vault::Sealed;

const VALUE: &str = "hf_0123456789abcdef";

async fn put_secret(server: &TestServer, actor: &Actor, name: &str, value: &str, shared: bool) -> Value {
    let put = json!({"value": value, "shared": shared}).to_string();
    server.call(actor, "PUT", &format!("/api/secrets/{name}"), put).await.expect_status(200)
}

/// Submits as this user; returns the job and the token of its offered attempt.
async fn submit_and_offer(server: &TestServer, actor: &Actor, fields: Value) -> (String, Actor) {
    let (_, _, mut events) = server.connect_worker("gpu-1").await;
    let mut submit = json!({"config_name": "digits", "target": "worker"});
    submit.as_object_mut().expect("an object").extend(fields.as_object().cloned().unwrap_or_default());
    let job = server.post(actor, "/api/queue/submit", submit).await.expect_status(201);
    let offer = events.next_offer().await;
    assert_eq!(offer.hf_token, None, "a current agent fetches its secrets");
    (job["job_id"].as_str().expect("text").to_owned(), Actor::Job(offer.upload_token))
}

async fn fetch_job_secrets(server: &TestServer, key: &Actor, job: &str) -> Value {
    server.call(key, "POST", &format!("/api/workers/job/{job}/secrets?attempt=1"), "").await.expect_status(200)["secrets"].clone()
}

#[tokio::test]
async fn job_gets_named_secrets_own_before_shared() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "researcher").await);
    put_secret(&server, &Actor::Admin, "HF_TOKEN", "hf_for_everybody", true).await;
    put_secret(&server, &Actor::Admin, "WANDB_API_KEY", "wandb_for_everybody", true).await;
    put_secret(&server, &ada, "hf_token", &format!(" {VALUE}\n"), false).await;
    put_secret(&server, &eve, "EVES_KEY", "eves_own_value", false).await;
    let (job, key) = submit_and_offer(&server, &ada, json!({"secrets": ["HF_TOKEN", "WANDB_API_KEY"]})).await;
    let delivered = fetch_job_secrets(&server, &key, &job).await;
    assert_eq!(delivered, json!({"HF_TOKEN": VALUE, "WANDB_API_KEY": "wandb_for_everybody"}));

    let list = server.get(&ada, "/api/secrets").await.expect_status(200);
    let row = |secret: &Value| (secret["name"].clone(), secret["shared"].clone(), secret["delivered_at"].is_null());
    let rows: Vec<_> = list["secrets"].as_array().expect("a list").iter().map(row).collect();
    let expected = [("HF_TOKEN", true, true), ("HF_TOKEN", false, false), ("WANDB_API_KEY", true, false)];
    assert_eq!(rows, expected.map(|(name, shared, never)| (json!(name), json!(shared), never)));
    let events = server.get(&ada, &format!("/api/queue/{job}/events")).await.text();
    assert!(events.contains("secret.delivered") && events.contains("WANDB_API_KEY"), "{events}");
}

#[tokio::test]
async fn job_gets_only_named_secrets() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let ada = server.add_user("ada", "researcher").await;
    for name in ["HF_TOKEN", "WANDB_API_KEY"] {
        put_secret(&server, &ada, name, VALUE, false).await;
    }
    let submit_body = |names: Value| json!({"config_name": "digits", "secrets": names});
    let unknown = submit_body(json!(["NOBODYS_KEY"]));
    server.post(&ada, "/api/queue/submit", unknown.clone()).await.expect_problem(404, "secret_not_found");
    let dry_run = json!({"config_name": "digits", "secrets": ["NOBODYS_KEY"], "dry_run": true});
    server.post(&ada, "/api/queue/submit", dry_run).await.expect_problem(404, "secret_not_found");
    let many: Vec<String> = (0..65).map(|n| format!("A{n}_KEY")).collect();
    server.post(&ada, "/api/queue/submit", submit_body(json!(many))).await.expect_problem(422, "too_large");

    let (job, key) = submit_and_offer(&server, &ada, json!({"secrets": ["wandb_api_key"]})).await;
    assert_eq!(fetch_job_secrets(&server, &key, &job).await, json!({"WANDB_API_KEY": VALUE}));
    server.call(&ada, "DELETE", "/api/secrets/WANDB_API_KEY", "").await.expect_status(200);
    let path = format!("/api/workers/job/{job}/secrets?attempt=1");
    server.call(&key, "POST", &path, "").await.expect_problem(409, "secret_deleted");
}

#[tokio::test]
async fn job_without_named_secrets_gets_none() {
    for fields in [json!({}), json!({"secrets": []}), json!({"secrets": null})] {
        let server = TestServer::start().await;
        server.put_config("digits").await;
        let ada = server.add_user("ada", "researcher").await;
        put_secret(&server, &ada, "HF_TOKEN", VALUE, false).await;
        let (job, key) = submit_and_offer(&server, &ada, fields).await;
        assert_eq!(fetch_job_secrets(&server, &key, &job).await, json!({}));
    }
}

#[tokio::test]
async fn only_the_current_attempt_gets_secrets() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    put_secret(&server, &Actor::Admin, "HF_TOKEN", VALUE, true).await;
    let (job, key) = submit_and_offer(&server, &Actor::Admin, json!({})).await;
    let path = format!("/api/workers/job/{job}/secrets?attempt=1");
    let (_, other_worker) = server.create_worker("gpu-2").await;
    server.call(&other_worker, "POST", &path, "").await.expect_problem(409, "not_your_attempt");
    server.call(&Actor::Admin, "POST", &path, "").await.expect_problem(401, "worker_token_missing");
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    server.call(&key, "POST", &path, "").await.expect_problem(409, "job_ended");
}

#[tokio::test]
async fn older_agent_gets_the_hub_token_in_the_offer() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    put_secret(&server, &Actor::Admin, "HF_TOKEN", VALUE, true).await;
    let (_, key) = server.create_worker("old").await;
    server.post(&key, "/api/workers/register", json!({"name": "old", "persistent": true})).await.expect_status(200);
    let mut events = server.open_stream(&key).await;
    let submit_body = json!({"config_name": "digits", "target": "worker", "secrets": ["HF_TOKEN"]});
    server.post(&Actor::Admin, "/api/queue/submit", submit_body).await.expect_status(201);
    assert_eq!(events.next_offer().await.hf_token.as_deref(), Some(VALUE));
}

#[tokio::test]
async fn secret_values_cannot_be_read_back() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "researcher").await;
    let view = put_secret(&server, &ada, "HF_TOKEN", VALUE, false).await;
    assert_eq!(view["name"], "HF_TOKEN");
    let mut text = view.to_string();
    for path in ["/api/secrets", "/api/audit", "/secrets", "/account"] {
        let actor = if path == "/api/audit" { &Actor::Admin } else { &ada };
        text += &server.get(actor, path).await.text();
    }
    assert!(text.contains("HF_TOKEN") && !text.contains(VALUE), "{text}");
    for file in std::fs::read_dir(server.directory.path()).expect("a directory") {
        let path = file.expect("an entry").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(!bytes.windows(VALUE.len()).any(|found| found == VALUE.as_bytes()), "{}", path.display());
    }
}

#[tokio::test]
async fn shared_secrets_require_permission_to_change() {
    let server = TestServer::start().await;
    let lead = server.add_user("leo", "lead").await;
    let put = json!({"value": VALUE, "shared": true}).to_string();
    let rejected =
        server.call(&lead, "PUT", "/api/secrets/HF_TOKEN", put).await.expect_problem(403, "permission_denied");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("secret.manage")));
    put_secret(&server, &Actor::Admin, "HF_TOKEN", VALUE, true).await;
    let shared = "/api/secrets/HF_TOKEN?shared=true";
    server.call(&lead, "DELETE", shared, "").await.expect_problem(403, "permission_denied");
    server.call(&lead, "DELETE", "/api/secrets/HF_TOKEN", "").await.expect_problem(404, "secret_not_found");
    server.call(&Actor::Admin, "DELETE", shared, "").await.expect_status(200);
    server.call(&Actor::Admin, "DELETE", shared, "").await.expect_problem(404, "secret_not_found");
}

#[tokio::test]
async fn invalid_secret_names_and_values() {
    let server = TestServer::start().await;
    let put = |value: Value| json!({"value": value}).to_string();
    for name in ["PATH", "LD_PRELOAD", "SIMPLETUNER_UPLOAD_TOKEN", "HF-TOKEN", "X"] {
        let response = server.call(&Actor::Admin, "PUT", &format!("/api/secrets/{name}"), put(json!(VALUE))).await;
        response.expect_problem(422, "invalid_secret_name");
    }
    for value in ["", "short", " seven77 ", &"x".repeat(65_537), "nul\0nul\0nul"] {
        server
            .call(&Actor::Admin, "PUT", "/api/secrets/A_KEY", put(json!(value)))
            .await
            .expect_problem(422, "out_of_range");
    }
    server.call(&Actor::Admin, "PUT", "/api/secrets/A_KEY", put(json!(7))).await.expect_problem(400, "invalid_json");
    for n in 0..64 {
        put_secret(&server, &Actor::Admin, &format!("A{n}_KEY"), VALUE, false).await;
    }
    server
        .call(&Actor::Admin, "PUT", "/api/secrets/ONE_MORE_KEY", put(json!(VALUE)))
        .await
        .expect_problem(422, "too_large");
    put_secret(&server, &Actor::Admin, "A0_KEY", VALUE, false).await;
}

#[tokio::test]
async fn lost_key_is_reported_and_a_new_value_fixes_it() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    put_secret(&server, &Actor::Admin, "HF_TOKEN", VALUE, true).await;
    let (job, key) = submit_and_offer(&server, &Actor::Admin, json!({"secrets": ["HF_TOKEN"]})).await;
    // As after a restore of a backup without its key.
    let sealed = Sealed { key_id: "another".to_owned(), text: "00".to_owned() };
    let forged = StoredSecret {
        owner: String::new(),
        name: "HF_TOKEN".to_owned(),
        sealed,
        updated_at: server.app.services.context.now(),
        updated_by: "admin".to_owned(),
        delivered_at: None,
    };
    let write: TransactionWork = Box::new(move |tx| {
        let forged = forged.clone();
        Box::pin(async move { tx.put_secret(&forged).await })
    });
    server.app.services.context.store.write(write).await.expect("a database");
    let path = format!("/api/workers/job/{job}/secrets?attempt=1");
    let problem = server.call(&key, "POST", &path, "").await.expect_problem(409, "secret_unreadable");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("set the secret again")), "{problem}");
    put_secret(&server, &Actor::Admin, "HF_TOKEN", VALUE, true).await;
    assert_eq!(fetch_job_secrets(&server, &key, &job).await["HF_TOKEN"], VALUE);
}
