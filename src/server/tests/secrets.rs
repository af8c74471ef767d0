//! Secrets for jobs: they go in, and come out for an attempt only.

use serde_json::{Value, json};

use super::harness::{By, Server};
use crate::store::Work;
use crate::store::secrets::StoredSecret;
use crate::vault::Sealed;

const VALUE: &str = "hf_0123456789abcdef";

async fn keep(server: &Server, by: &By, name: &str, value: &str, shared: bool) -> Value {
    let put = json!({"value": value, "shared": shared}).to_string();
    server.call(by, "PUT", &format!("/api/secrets/{name}"), put).await.ok(200)
}

/// Submits as somebody; returns the job, and the key of its offered attempt.
async fn offered(server: &Server, by: &By, more: Value) -> (String, By) {
    let (_, _, mut events) = server.online("gpu-1").await;
    let mut submit = json!({"config_name": "digits", "target": "worker"});
    submit.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    let job = server.post(by, "/api/queue/submit", submit).await.ok(201);
    let offer = events.offer().await;
    assert_eq!(offer.hf_token, None, "our agent fetches them");
    (job["job_id"].as_str().expect("text").to_owned(), By::Job(offer.upload_token))
}

async fn taken(server: &Server, key: &By, job: &str) -> Value {
    server.call(key, "POST", &format!("/api/workers/job/{job}/secrets?attempt=1"), "").await.ok(200)["secrets"].clone()
}

#[tokio::test]
async fn a_job_is_given_what_it_names_its_owners_before_shared_ones() {
    let server = Server::start().await;
    server.config("digits").await;
    let (ada, eve) = (server.person("ada", "researcher").await, server.person("eve", "researcher").await);
    keep(&server, &By::Admin, "HF_TOKEN", "hf_for_everybody", true).await;
    keep(&server, &By::Admin, "WANDB_API_KEY", "wandb_for_everybody", true).await;
    keep(&server, &ada, "hf_token", &format!(" {VALUE}\n"), false).await;
    keep(&server, &eve, "EVES_KEY", "eves_own_value", false).await;
    let (job, key) = offered(&server, &ada, json!({"secrets": ["HF_TOKEN", "WANDB_API_KEY"]})).await;
    let given = taken(&server, &key, &job).await;
    assert_eq!(given, json!({"HF_TOKEN": VALUE, "WANDB_API_KEY": "wandb_for_everybody"}));

    let listed = server.get(&ada, "/api/secrets").await.ok(200);
    let row = |secret: &Value| (secret["name"].clone(), secret["shared"].clone(), secret["given_at"].is_null());
    let rows: Vec<_> = listed["secrets"].as_array().expect("a list").iter().map(row).collect();
    let expected = [("HF_TOKEN", true, true), ("HF_TOKEN", false, false), ("WANDB_API_KEY", true, false)];
    assert_eq!(rows, expected.map(|(name, shared, never)| (json!(name), json!(shared), never)));
    let events = server.get(&ada, &format!("/api/queue/{job}/events")).await.text();
    assert!(events.contains("secret.given") && events.contains("WANDB_API_KEY"), "{events}");
}

#[tokio::test]
async fn a_job_that_names_some_is_given_those() {
    let server = Server::start().await;
    server.config("digits").await;
    let ada = server.person("ada", "researcher").await;
    for name in ["HF_TOKEN", "WANDB_API_KEY"] {
        keep(&server, &ada, name, VALUE, false).await;
    }
    let wanted = |names: Value| json!({"config_name": "digits", "secrets": names});
    let unknown = wanted(json!(["NOBODYS_KEY"]));
    server.post(&ada, "/api/queue/submit", unknown.clone()).await.problem(404, "secret_not_found");
    let dry = json!({"config_name": "digits", "secrets": ["NOBODYS_KEY"], "dry_run": true});
    server.post(&ada, "/api/queue/submit", dry).await.problem(404, "secret_not_found");
    let many: Vec<String> = (0..65).map(|n| format!("A{n}_KEY")).collect();
    server.post(&ada, "/api/queue/submit", wanted(json!(many))).await.problem(422, "too_much");

    let (job, key) = offered(&server, &ada, json!({"secrets": ["wandb_api_key"]})).await;
    assert_eq!(taken(&server, &key, &job).await, json!({"WANDB_API_KEY": VALUE}));
    server.call(&ada, "DELETE", "/api/secrets/WANDB_API_KEY", "").await.ok(200);
    let path = format!("/api/workers/job/{job}/secrets?attempt=1");
    server.call(&key, "POST", &path, "").await.problem(409, "secret_gone");
}

#[tokio::test]
async fn a_job_that_names_no_secret_is_given_none() {
    for more in [json!({}), json!({"secrets": []}), json!({"secrets": null})] {
        let server = Server::start().await;
        server.config("digits").await;
        let ada = server.person("ada", "researcher").await;
        keep(&server, &ada, "HF_TOKEN", VALUE, false).await;
        let (job, key) = offered(&server, &ada, more).await;
        assert_eq!(taken(&server, &key, &job).await, json!({}));
    }
}

#[tokio::test]
async fn only_the_attempt_that_holds_the_job_is_given_any() {
    let server = Server::start().await;
    server.config("digits").await;
    keep(&server, &By::Admin, "HF_TOKEN", VALUE, true).await;
    let (job, key) = offered(&server, &By::Admin, json!({})).await;
    let path = format!("/api/workers/job/{job}/secrets?attempt=1");
    let (_, stranger) = server.worker("gpu-2").await;
    server.call(&stranger, "POST", &path, "").await.problem(409, "not_your_attempt");
    server.call(&By::Admin, "POST", &path, "").await.problem(401, "worker_token_missing");
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    server.call(&key, "POST", &path, "").await.problem(409, "job_ended");
}

#[tokio::test]
async fn an_older_agent_finds_the_hubs_token_in_the_offer() {
    let server = Server::start().await;
    server.config("digits").await;
    keep(&server, &By::Admin, "HF_TOKEN", VALUE, true).await;
    let (_, key) = server.worker("old").await;
    server.post(&key, "/api/workers/register", json!({"name": "old", "persistent": true})).await.ok(200);
    let mut events = server.stream(&key).await;
    let named = json!({"config_name": "digits", "target": "worker", "secrets": ["HF_TOKEN"]});
    server.post(&By::Admin, "/api/queue/submit", named).await.ok(201);
    assert_eq!(events.offer().await.hf_token.as_deref(), Some(VALUE));
}

#[tokio::test]
async fn nobody_reads_a_value_back() {
    let server = Server::start().await;
    let ada = server.person("ada", "researcher").await;
    let shown = keep(&server, &ada, "HF_TOKEN", VALUE, false).await;
    assert_eq!(shown["name"], "HF_TOKEN");
    let mut said = shown.to_string();
    for path in ["/api/secrets", "/api/audit", "/secrets", "/account"] {
        let by = if path == "/api/audit" { &By::Admin } else { &ada };
        said += &server.get(by, path).await.text();
    }
    assert!(said.contains("HF_TOKEN") && !said.contains(VALUE), "{said}");
    for file in std::fs::read_dir(server.directory.path()).expect("there") {
        let path = file.expect("there").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(!bytes.windows(VALUE.len()).any(|found| found == VALUE.as_bytes()), "{}", path.display());
    }
}

#[tokio::test]
async fn what_everybodys_jobs_are_given_is_the_admins_to_change() {
    let server = Server::start().await;
    let lead = server.person("leo", "lead").await;
    let put = json!({"value": VALUE, "shared": true}).to_string();
    let refused = server.call(&lead, "PUT", "/api/secrets/HF_TOKEN", put).await.problem(403, "permission_denied");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("secret.manage")));
    keep(&server, &By::Admin, "HF_TOKEN", VALUE, true).await;
    let shared = "/api/secrets/HF_TOKEN?shared=true";
    server.call(&lead, "DELETE", shared, "").await.problem(403, "permission_denied");
    server.call(&lead, "DELETE", "/api/secrets/HF_TOKEN", "").await.problem(404, "secret_not_found");
    server.call(&By::Admin, "DELETE", shared, "").await.ok(200);
    server.call(&By::Admin, "DELETE", shared, "").await.problem(404, "secret_not_found");
}

#[tokio::test]
async fn names_and_values_that_are_none() {
    let server = Server::start().await;
    let put = |value: Value| json!({"value": value}).to_string();
    for name in ["PATH", "LD_PRELOAD", "SIMPLETUNER_UPLOAD_TOKEN", "HF-TOKEN", "X"] {
        let answer = server.call(&By::Admin, "PUT", &format!("/api/secrets/{name}"), put(json!(VALUE))).await;
        answer.problem(422, "invalid_secret_name");
    }
    for value in ["", "short", " seven77 ", &"x".repeat(65_537), "nul\0nul\0nul"] {
        server.call(&By::Admin, "PUT", "/api/secrets/A_KEY", put(json!(value))).await.problem(422, "out_of_range");
    }
    server.call(&By::Admin, "PUT", "/api/secrets/A_KEY", put(json!(7))).await.problem(400, "invalid_json");
    for n in 0..64 {
        keep(&server, &By::Admin, &format!("A{n}_KEY"), VALUE, false).await;
    }
    server.call(&By::Admin, "PUT", "/api/secrets/ONE_MORE_KEY", put(json!(VALUE))).await.problem(422, "too_much");
    keep(&server, &By::Admin, "A0_KEY", VALUE, false).await;
}

#[tokio::test]
async fn a_lost_key_is_said_and_a_new_value_mends_it() {
    let server = Server::start().await;
    server.config("digits").await;
    keep(&server, &By::Admin, "HF_TOKEN", VALUE, true).await;
    let (job, key) = offered(&server, &By::Admin, json!({"secrets": ["HF_TOKEN"]})).await;
    // As after a restored backup, with a key made anew.
    let sealed = Sealed { key_id: "another".to_owned(), text: "00".to_owned() };
    let forged = StoredSecret {
        owner: String::new(),
        name: "HF_TOKEN".to_owned(),
        sealed,
        updated_at: server.app.core.now(),
        updated_by: "admin".to_owned(),
        given_at: None,
    };
    let write: Work = Box::new(move |tx| {
        let forged = forged.clone();
        Box::pin(async move { tx.put_secret(&forged).await })
    });
    server.app.core.store.write(write).await.expect("a database");
    let path = format!("/api/workers/job/{job}/secrets?attempt=1");
    let problem = server.call(&key, "POST", &path, "").await.problem(409, "secret_unreadable");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("set the secret again")), "{problem}");
    keep(&server, &By::Admin, "HF_TOKEN", VALUE, true).await;
    assert_eq!(taken(&server, &key, &job).await["HF_TOKEN"], VALUE);
}
