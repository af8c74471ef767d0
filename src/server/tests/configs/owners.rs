//! Owners of configurations, jobs with configurations that others have changed, and the secrets of a job.

use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestResponse, TestServer};

/// Stores a configuration with this learning rate.
async fn store_config(server: &TestServer, actor: &Actor, name: &str, rate: &str) -> TestResponse {
    let files = json!({"config.json": format!("{{\"learning_rate\": {rate}}}")});
    server.call(actor, "PUT", &format!("/api/configs/{name}"), json!({"files": files}).to_string()).await
}

async fn submit(server: &TestServer, actor: &Actor, fields: Value) -> TestResponse {
    let mut body = json!({"config_name": "digits", "target": "worker"});
    body.as_object_mut().expect("an object").extend(fields.as_object().cloned().unwrap_or_default());
    server.post(actor, "/api/queue/submit", body).await
}

async fn put_secret(server: &TestServer, actor: &Actor, name: &str, value: &str, shared: bool) {
    let put = json!({"value": value, "shared": shared}).to_string();
    server.call(actor, "PUT", &format!("/api/secrets/{name}"), put).await.expect_status(200);
}

#[tokio::test]
async fn researcher_cannot_change_anothers_configuration() {
    let server = TestServer::start().await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "researcher").await);
    let lea = server.add_user("lea", "lead").await;
    assert_eq!(store_config(&server, &ada, "digits", "0.1").await.expect_status(200)["owner"], "ada");
    let rejected = store_config(&server, &eve, "digits", "9").await.expect_problem(403, "config_not_yours");
    assert_eq!(rejected["owner"], "ada");
    server.call(&eve, "DELETE", "/api/configs/digits", "").await.expect_problem(403, "config_not_yours");
    assert_eq!(store_config(&server, &eve, "digits-eve", "9").await.expect_status(200)["owner"], "eve");
    let changed = store_config(&server, &lea, "digits", "0.2").await.expect_status(200);
    assert_eq!((&changed["owner"], &changed["revision"]), (&json!("ada"), &json!(2)));
    assert_eq!(server.get(&eve, "/api/configs/digits").await.expect_status(200)["owner"], "ada");
    store_config(&server, &ada, "digits", "0.3").await.expect_status(200);
    server.call(&lea, "DELETE", "/api/configs/digits", "").await.expect_status(200);
}

#[tokio::test]
async fn change_by_another_user_must_be_reviewed_before_it_runs() {
    let server = TestServer::start().await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "researcher").await);
    store_config(&server, &ada, "digits", "0.1").await.expect_status(200);
    submit(&server, &eve, json!({})).await.expect_status(201);
    store_config(&server, &ada, "digits", "0.2").await.expect_status(200);
    for fields in [json!({}), json!({"dry_run": true})] {
        let rejected = submit(&server, &eve, fields).await.expect_problem(409, "config_changed");
        assert_eq!(
            (&rejected["revision"], &rejected["reviewed_revision"], &rejected["changed_by"]),
            (&json!(2), &json!(1), &json!("ada"))
        );
    }
    submit(&server, &ada, json!({})).await.expect_status(201);
    for revision in [1, 2] {
        let job =
            submit(&server, &eve, json!({"config_revision": revision})).await.expect_status(201)["job_id"].clone();
        assert_eq!(
            server.job(job.as_str().expect("text")).await["config_revision"],
            revision,
            "the requested revision is used"
        );
    }
    submit(&server, &eve, json!({"config_revision": 3})).await.expect_problem(404, "config_not_found");
    submit(&server, &eve, json!({})).await.expect_status(201);
    // Also for the user's own configuration.
    let lea = server.add_user("lea", "lead").await;
    store_config(&server, &lea, "digits", "0.3").await.expect_status(200);
    submit(&server, &ada, json!({})).await.expect_problem(409, "config_changed");
    submit(&server, &lea, json!({})).await.expect_status(201);
}

#[tokio::test]
async fn train_page_shows_the_change_and_a_confirmation() {
    let server = TestServer::start().await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "researcher").await);
    store_config(&server, &ada, "digits", "0.123").await.expect_status(200);
    submit(&server, &eve, json!({})).await.expect_status(201);
    let confirmation = "name=\"reviewed\" value=\"digits@2\"";
    assert!(!server.get(&eve, "/train?config=digits").await.text().contains(confirmation));
    store_config(&server, &ada, "digits", "0.456").await.expect_status(200);
    let page = server.get(&eve, "/train?config=digits").await.text();
    assert!(page.contains(confirmation) && page.contains("0.123") && page.contains("0.456"), "{page}");
    // A confirmation applies to the configuration beside it only.
    for form in ["config=digits&target=worker", "config=digits&target=worker&reviewed=other%402"] {
        let rejected = server.call(&eve, "POST", "/ui/jobs", form).await;
        assert_eq!(rejected.headers["location"], "/train", "{form}");
    }
    let accepted = server.call(&eve, "POST", "/ui/jobs", "config=digits&target=worker&reviewed=digits%402").await;
    assert!(accepted.headers["location"].to_str().is_ok_and(|to| to.starts_with("/jobs/")), "{accepted:?}");
}

#[tokio::test]
async fn configuration_card_shows_the_selected_revision() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "researcher").await;
    for rate in ["0.123", "0.456"] {
        store_config(&server, &ada, "digits", rate).await.expect_status(200);
    }
    for (query, revision, rate) in
        [("", 2, "0.456"), ("&revision=digits%401", 1, "0.123"), ("&ran=digits%401", 1, "0.123")]
    {
        let page = server.get(&ada, &format!("/train?config=digits{query}")).await.text();
        let (_, card) = page.split_once("<label for=\"config-digits\"").expect("the card");
        let card = card.split_once("</label>").expect("a closing tag").0.replace("<!>", "");
        assert!(card.contains(&format!("revision {revision}")) && card.contains(rate), "{query}: {card}");
    }
}

#[tokio::test]
async fn editing_another_users_configuration_creates_a_copy() {
    let server = TestServer::start().await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "researcher").await);
    store_config(&server, &ada, "digits", "0.1").await.expect_status(200);
    let own_page = server.get(&ada, "/configs/digits/edit").await.text();
    assert!(own_page.contains("action=\"/ui/configs/digits\""), "{own_page}");
    let copy_page = server.get(&eve, "/configs/digits/edit").await.text();
    assert!(copy_page.contains("action=\"/ui/configs\"") && copy_page.contains("value=\"digits-eve\""), "{copy_page}");
}

#[tokio::test]
async fn retry_of_another_users_job_gets_no_private_secrets_by_default() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, lea) = (server.add_user("ada", "researcher").await, server.add_user("lea", "lead").await);
    put_secret(&server, &Actor::Admin, "HF_TOKEN", "hf_for_everybody", true).await;
    for (actor, value) in [(&ada, "adas_own_value"), (&lea, "leas_own_value")] {
        for name in ["HF_TOKEN", "WANDB_API_KEY"] {
            put_secret(&server, actor, name, value, false).await;
        }
    }
    let secret_names = json!({"secrets": ["HF_TOKEN", "WANDB_API_KEY"]});
    let first = submit(&server, &ada, secret_names.clone()).await.expect_status(201)["job_id"]
        .as_str()
        .expect("text")
        .to_owned();
    server.post(&ada, &format!("/api/queue/{first}/cancel"), json!({})).await.expect_status(200);
    let retry = format!("/api/queue/{first}/retry");
    let cases = [
        (&lea, json!({}), json!({"HF_TOKEN": "hf_for_everybody"})),
        (&lea, secret_names, json!({"HF_TOKEN": "leas_own_value", "WANDB_API_KEY": "leas_own_value"})),
        (&ada, json!({}), json!({"HF_TOKEN": "adas_own_value", "WANDB_API_KEY": "adas_own_value"})),
    ];
    for (index, (actor, body, expected)) in cases.into_iter().enumerate() {
        let (_, worker, mut events) = server.connect_worker(&format!("gpu-{index}")).await;
        let job =
            server.post(actor, &retry, body).await.expect_status(201)["job_id"].as_str().expect("text").to_owned();
        let key = Actor::Job(events.next_offer().await.upload_token);
        let delivered = server
            .call(&key, "POST", &format!("/api/workers/job/{job}/secrets?attempt=1"), "")
            .await
            .expect_status(200);
        assert_eq!(delivered["secrets"], expected);
        server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
        server.post(&worker, "/api/workers/disconnect", json!({})).await.expect_status(200);
    }
    server.post(&lea, &retry, json!({"secrets": ["NOBODYS_KEY"]})).await.expect_problem(404, "secret_not_found");
}
