//! Actions that require the password again, and how a form asks for it.

use app::domain::time::Millis;
use axum::http::{StatusCode, header};
use serde_json::{Value, json};

use crate::tests::harness::passkey::{PasskeyUser, passkey_options, user_with_passkey};
use crate::tests::harness::{Actor, PASSWORD, TestServer};

/// A user whose last sign-in is too long ago.
async fn stale_admin(server: &TestServer) -> Actor {
    let ada = server.add_user("ada", "admin").await;
    server.clock.advance(Millis::from_secs(15 * 60));
    ada
}

async fn worker_names(server: &TestServer) -> Vec<String> {
    let page = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    let name = |worker: &Value| worker["name"].as_str().expect("text").to_owned();
    page["workers"].as_array().expect("a list").iter().map(name).collect()
}

#[tokio::test]
async fn tokens_shared_secrets_and_network_lists_require_the_password_again() {
    let server = TestServer::start().await;
    let (worker, _) = server.create_worker("gpu-1").await;
    let ada = stale_admin(&server).await;
    let shared_secret = json!({"value": "hf_0123456789", "shared": true});
    let requests = [
        ("POST", "/api/admin/workers".to_owned(), json!({"name": "gpu-2"})),
        ("PATCH", format!("/api/admin/workers/{worker}"), json!({"allowed_networks": ["10.0.0.0/8"]})),
        ("PUT", "/api/secrets/HF_TOKEN".to_owned(), shared_secret),
        ("DELETE", "/api/secrets/HF_TOKEN?shared=true".to_owned(), json!({})),
    ];
    for (method, path, body) in &requests {
        server.call(&ada, method, path, body.to_string()).await.expect_problem(403, "password_needed");
    }
    // Changes of the user's own secrets require none.
    let own_secret = json!({"value": "hf_0123456789"});
    server.call(&ada, "PUT", "/api/secrets/OWN_TOKEN", own_secret.to_string()).await.expect_status(200);
    let labels = json!({"labels": {"zone": "a"}});
    server.call(&ada, "PATCH", &format!("/api/admin/workers/{worker}"), labels.to_string()).await.expect_status(200);

    server.post(&ada, "/api/session/proof", json!({"password": PASSWORD})).await.expect_status(200);
    for (method, path, body) in &requests {
        let response = server.call(&ada, method, path, body.to_string()).await;
        assert!(response.status.is_success(), "{method} {path}: {}", response.text());
    }
}

#[tokio::test]
async fn scripts_need_no_password_confirmation() {
    let server = TestServer::start().await;
    let (worker, _) = server.create_worker("gpu-1").await;
    server.clock.advance(Millis::from_secs(15 * 60));
    let networks = json!({"allowed_networks": ["10.0.0.0/8"]});
    server
        .call(&Actor::Admin, "PATCH", &format!("/api/admin/workers/{worker}"), networks.to_string())
        .await
        .expect_status(200);
    server
        .call(
            &Actor::Admin,
            "PUT",
            "/api/secrets/HF_TOKEN",
            json!({"value": "hf_0123456789", "shared": true}).to_string(),
        )
        .await
        .expect_status(200);
}

#[tokio::test]
async fn form_asks_for_the_password_and_continues() {
    let server = TestServer::start().await;
    let ada = stale_admin(&server).await;
    let form = "name=gpu-2&worker_type=persistent&networks=10.0.0.0%2F8%2C+%3A%3A1";
    let prompt = server.call(&ada, "POST", "/ui/workers", form).await;
    assert_eq!(prompt.status, StatusCode::FORBIDDEN);
    let page = prompt.text();
    assert!(page.contains("action=\"/ui/workers\"") && page.contains("name=\"confirm_password\""), "{page}");
    for (name, value) in [("name", "gpu-2"), ("worker_type", "persistent"), ("networks", "10.0.0.0/8, ::1")] {
        assert!(page.contains(&format!("name=\"{name}\" value=\"{value}\"")), "{name}: {page}");
    }
    assert_eq!(worker_names(&server).await, Vec::<String>::new(), "no worker was created yet");

    let rejected = server.call(&ada, "POST", "/ui/workers", format!("{form}&confirm_password=not-hers")).await;
    assert_eq!(rejected.status, StatusCode::UNAUTHORIZED);
    let page = rejected.text();
    assert!(page.contains("value=\"gpu-2\"") && !page.contains("not-hers"), "{page}");
    assert_eq!(worker_names(&server).await, Vec::<String>::new());

    let accepted = server.call(&ada, "POST", "/ui/workers", format!("{form}&confirm_password={PASSWORD}")).await;
    assert_eq!(accepted.status, StatusCode::SEE_OTHER, "{}", accepted.text());
    assert_eq!(worker_names(&server).await, ["gpu-2"]);
    // The confirmation is valid for the following requests.
    server.post(&ada, "/api/admin/workers", json!({"name": "gpu-3"})).await.expect_status(201);
}

#[tokio::test]
async fn forms_ask_for_the_password_only_if_required() {
    let server = TestServer::start().await;
    let (worker, _) = server.create_worker("gpu-1").await;
    let ada = stale_admin(&server).await;
    let edit = format!("/ui/workers/{worker}/edit");
    let view = async || server.get(&Actor::Admin, &format!("/api/admin/workers/{worker}")).await.expect_status(200);
    let revision = async || view().await["revision"].as_str().expect("text").to_owned();
    let rename = format!("name=renamed&worker_type=persistent&networks=&revision={}", revision().await);
    let renamed = server.call(&ada, "POST", &edit, rename).await;
    assert_eq!(renamed.status, StatusCode::SEE_OTHER, "{}", renamed.text());
    assert_eq!(worker_names(&server).await, ["renamed"]);
    let networks = format!("name=renamed&worker_type=persistent&networks=10.0.0.0%2F8&revision={}", revision().await);
    let shared_secret = "name=HF_TOKEN&value=hf_0123456789&shared=on".to_owned();
    for (path, form) in [(edit.as_str(), networks), ("/ui/secrets", shared_secret)] {
        let prompt = server.call(&ada, "POST", path, form.clone()).await;
        assert_eq!(prompt.status, StatusCode::FORBIDDEN, "{path}");
        assert!(prompt.text().contains("name=\"confirm_password\""), "{path}");
        let accepted = server.call(&ada, "POST", path, format!("{form}&confirm_password={PASSWORD}")).await;
        assert_eq!(accepted.status, StatusCode::SEE_OTHER, "{path}: {}", accepted.text());
        server.clock.advance(Millis::from_secs(15 * 60));
    }
    assert_eq!(view().await["allowed_networks"], json!(["10.0.0.0/8"]));
    let response = server.call(&ada, "POST", "/ui/secrets", "name=OWN_TOKEN&value=hf_0123456789").await;
    assert_eq!(response.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn multi_value_fields_survive_the_password_prompt() {
    let server = TestServer::start().await;
    let ids = [server.create_worker("gpu-1").await.0, server.create_worker("gpu-2").await.0];
    let ada = stale_admin(&server).await;
    let form = format!("id={}&id={}", ids[0], ids[1]);
    let page = server.call(&ada, "POST", "/ui/workers/bulk/delete", form.clone()).await.text();
    assert!(ids.iter().all(|id| page.contains(&format!("name=\"id\" value=\"{id}\""))), "{page}");
    let form = format!("{form}&confirm_password={PASSWORD}");
    server.call(&ada, "POST", "/ui/workers/bulk/delete", form).await;
    assert_eq!(worker_names(&server).await, Vec::<String>::new());
}

#[tokio::test]
async fn password_confirmation_requires_the_passkey_too() {
    let server = TestServer::start().await;
    let PasskeyUser { browser, mut key, .. } = user_with_passkey(&server, "ada", 1).await;
    let tokens = async || server.get(&browser, "/api/account/tokens").await.expect_status(200)["tokens"].clone();
    server.clock.advance(Millis::from_secs(15 * 60));
    let prompt = server.call(&browser, "POST", "/ui/account/tokens", "name=ci").await;
    let options = passkey_options(&prompt.text()).expect("passkey options");
    let form = format!("name=ci&confirm_password={PASSWORD}");
    let incomplete = server.call(&browser, "POST", "/ui/account/tokens", form.clone()).await;
    assert!(incomplete.text().contains("The second factor is required"), "{}", incomplete.text());
    assert_eq!(
        passkey_options(&incomplete.text()),
        Some(options.clone()),
        "the challenge stays the same until it is used"
    );
    let assertion = key.get(&options);
    let full_form = format!("{form}&confirm_credential={assertion}");
    let wrong_password_form = full_form.replace(PASSWORD, "not-the-password");
    server.call(&browser, "POST", "/ui/account/tokens", wrong_password_form).await;
    assert_eq!(tokens().await, json!([]));
    let accepted = server.call(&browser, "POST", "/ui/account/tokens", full_form.clone()).await;
    assert_eq!(accepted.status, StatusCode::SEE_OTHER, "{}", accepted.text());
    assert_eq!(tokens().await.as_array().map(Vec::len), Some(1));
    server.clock.advance(Millis::from_secs(15 * 60));
    let again = server.call(&browser, "POST", "/ui/account/tokens", full_form.replace("ci", "cd")).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "the challenge was used before");
    assert_eq!(tokens().await.as_array().map(Vec::len), Some(1));
    // Opened directly, the page asks in the same way.
    let options = passkey_options(&server.get(&browser, "/confirm").await.text()).expect("passkey options");
    let form = format!("password={PASSWORD}&next=/account&confirm_credential={}", key.get(&options));
    assert_eq!(server.call(&browser, "POST", "/ui/confirm", form).await.headers[header::LOCATION], "/account");
    server.post(&browser, "/api/account/tokens", json!({"name": "ok"})).await.expect_status(201);
}
