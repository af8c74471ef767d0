//! Whose a configuration is, what somebody runs of what others changed, and which secrets a job is given.

use serde_json::{Value, json};

use super::harness::{Answer, By, Server};

/// Stores a configuration that learns so fast.
async fn store(server: &Server, by: &By, name: &str, rate: &str) -> Answer {
    let files = json!({"config.json": format!("{{\"learning_rate\": {rate}}}")});
    server.call(by, "PUT", &format!("/api/configs/{name}"), json!({"files": files}).to_string()).await
}

async fn submit(server: &Server, by: &By, more: Value) -> Answer {
    let mut body = json!({"config_name": "digits", "target": "worker"});
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    server.post(by, "/api/queue/submit", body).await
}

async fn keep(server: &Server, by: &By, name: &str, value: &str, shared: bool) {
    let put = json!({"value": value, "shared": shared}).to_string();
    server.call(by, "PUT", &format!("/api/secrets/{name}"), put).await.ok(200);
}

#[tokio::test]
async fn researcher_cannot_change_anothers_configuration() {
    let server = Server::start().await;
    let (ada, eve) = (server.person("ada", "researcher").await, server.person("eve", "researcher").await);
    let lea = server.person("lea", "lead").await;
    assert_eq!(store(&server, &ada, "digits", "0.1").await.ok(200)["owner"], "ada");
    let refused = store(&server, &eve, "digits", "9").await.problem(403, "config_not_yours");
    assert_eq!(refused["owner"], "ada");
    server.call(&eve, "DELETE", "/api/configs/digits", "").await.problem(403, "config_not_yours");
    assert_eq!(store(&server, &eve, "digits-eve", "9").await.ok(200)["owner"], "eve");
    let changed = store(&server, &lea, "digits", "0.2").await.ok(200);
    assert_eq!((&changed["owner"], &changed["revision"]), (&json!("ada"), &json!(2)));
    assert_eq!(server.get(&eve, "/api/configs/digits").await.ok(200)["owner"], "ada");
    store(&server, &ada, "digits", "0.3").await.ok(200);
    server.call(&lea, "DELETE", "/api/configs/digits", "").await.ok(200);
}

#[tokio::test]
async fn somebody_elses_change_has_to_be_seen_before_it_runs() {
    let server = Server::start().await;
    let (ada, eve) = (server.person("ada", "researcher").await, server.person("eve", "researcher").await);
    store(&server, &ada, "digits", "0.1").await.ok(200);
    submit(&server, &eve, json!({})).await.ok(201);
    store(&server, &ada, "digits", "0.2").await.ok(200);
    for more in [json!({}), json!({"dry_run": true})] {
        let refused = submit(&server, &eve, more).await.problem(409, "config_changed");
        assert_eq!(
            (&refused["revision"], &refused["reviewed_revision"], &refused["changed_by"]),
            (&json!(2), &json!(1), &json!("ada"))
        );
    }
    submit(&server, &ada, json!({})).await.ok(201);
    for revision in [1, 2] {
        let job = submit(&server, &eve, json!({"config_revision": revision})).await.ok(201)["job_id"].clone();
        assert_eq!(server.job(job.as_str().expect("text")).await["config_revision"], revision, "what is named is run");
    }
    submit(&server, &eve, json!({"config_revision": 3})).await.problem(404, "config_not_found");
    submit(&server, &eve, json!({})).await.ok(201);
    // Also of what is one's own.
    let lea = server.person("lea", "lead").await;
    store(&server, &lea, "digits", "0.3").await.ok(200);
    submit(&server, &ada, json!({})).await.problem(409, "config_changed");
    submit(&server, &lea, json!({})).await.ok(201);
}

#[tokio::test]
async fn the_train_page_shows_what_changed_and_takes_a_tick() {
    let server = Server::start().await;
    let (ada, eve) = (server.person("ada", "researcher").await, server.person("eve", "researcher").await);
    store(&server, &ada, "digits", "0.123").await.ok(200);
    submit(&server, &eve, json!({})).await.ok(201);
    let tick = "name=\"reviewed\" value=\"digits@2\"";
    assert!(!server.get(&eve, "/train?config=digits").await.text().contains(tick));
    store(&server, &ada, "digits", "0.456").await.ok(200);
    let page = server.get(&eve, "/train?config=digits").await.text();
    assert!(page.contains(tick) && page.contains("0.123") && page.contains("0.456"), "{page}");
    // A tick is for the configuration that it stood beside.
    for form in ["config=digits&target=worker", "config=digits&target=worker&reviewed=other%402"] {
        let refused = server.call(&eve, "POST", "/ui/jobs", form).await;
        assert_eq!(refused.headers["location"], "/train", "{form}");
    }
    let taken = server.call(&eve, "POST", "/ui/jobs", "config=digits&target=worker&reviewed=digits%402").await;
    assert!(taken.headers["location"].to_str().is_ok_and(|to| to.starts_with("/jobs/")), "{taken:?}");
}

#[tokio::test]
async fn editing_anothers_configuration_leads_to_one_of_ones_own() {
    let server = Server::start().await;
    let (ada, eve) = (server.person("ada", "researcher").await, server.person("eve", "researcher").await);
    store(&server, &ada, "digits", "0.1").await.ok(200);
    let own = server.get(&ada, "/configs/digits/edit").await.text();
    assert!(own.contains("action=\"/ui/configs/digits\""), "{own}");
    let copy = server.get(&eve, "/configs/digits/edit").await.text();
    assert!(copy.contains("action=\"/ui/configs\"") && copy.contains("value=\"digits-eve\""), "{copy}");
}

#[tokio::test]
async fn a_retry_of_anothers_job_carries_no_private_secrets_unless_asked() {
    let server = Server::start().await;
    server.config("digits").await;
    let (ada, lea) = (server.person("ada", "researcher").await, server.person("lea", "lead").await);
    keep(&server, &By::Admin, "HF_TOKEN", "hf_for_everybody", true).await;
    for (by, whose) in [(&ada, "adas_own_value"), (&lea, "leas_own_value")] {
        for name in ["HF_TOKEN", "WANDB_API_KEY"] {
            keep(&server, by, name, whose, false).await;
        }
    }
    let named = json!({"secrets": ["HF_TOKEN", "WANDB_API_KEY"]});
    let first = submit(&server, &ada, named.clone()).await.ok(201)["job_id"].as_str().expect("text").to_owned();
    server.post(&ada, &format!("/api/queue/{first}/cancel"), json!({})).await.ok(200);
    let retry = format!("/api/queue/{first}/retry");
    let cases = [
        (&lea, json!({}), json!({"HF_TOKEN": "hf_for_everybody"})),
        (&lea, named, json!({"HF_TOKEN": "leas_own_value", "WANDB_API_KEY": "leas_own_value"})),
        (&ada, json!({}), json!({"HF_TOKEN": "adas_own_value", "WANDB_API_KEY": "adas_own_value"})),
    ];
    for (place, (by, body, expected)) in cases.into_iter().enumerate() {
        let (_, worker, mut events) = server.online(&format!("gpu-{place}")).await;
        let job = server.post(by, &retry, body).await.ok(201)["job_id"].as_str().expect("text").to_owned();
        let key = By::Job(events.offer().await.upload_token);
        let given = server.call(&key, "POST", &format!("/api/workers/job/{job}/secrets?attempt=1"), "").await.ok(200);
        assert_eq!(given["secrets"], expected);
        server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
        server.post(&worker, "/api/workers/disconnect", json!({})).await.ok(200);
    }
    server.post(&lea, &retry, json!({"secrets": ["NOBODYS_KEY"]})).await.problem(404, "secret_not_found");
}
