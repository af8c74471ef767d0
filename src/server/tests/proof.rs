//! What takes the password once more, and how a form asks for it.

use app::domain::time::Millis;
use axum::http::{StatusCode, header};
use serde_json::{Value, json};

use super::harness::passkey::{Keyed, keyed, options};
use super::harness::{By, PASSWORD, Server};

/// Somebody whose password was given too long ago.
async fn stale_admin(server: &Server) -> By {
    let ada = server.person("ada", "admin").await;
    server.clock.advance(Millis::seconds(15 * 60));
    ada
}

async fn names(server: &Server) -> Vec<String> {
    let page = server.get(&By::Admin, "/api/admin/workers").await.ok(200);
    let name = |worker: &Value| worker["name"].as_str().expect("text").to_owned();
    page["workers"].as_array().expect("a list").iter().map(name).collect()
}

#[tokio::test]
async fn making_a_token_a_shared_secret_or_a_network_list_takes_the_password_once_more() {
    let server = Server::start().await;
    let (worker, _) = server.worker("gpu-1").await;
    let ada = stale_admin(&server).await;
    let shared = json!({"value": "hf_0123456789", "shared": true});
    let acts = [
        ("POST", "/api/admin/workers".to_owned(), json!({"name": "gpu-2"})),
        ("PATCH", format!("/api/admin/workers/{worker}"), json!({"allowed_networks": ["10.0.0.0/8"]})),
        ("PUT", "/api/secrets/HF_TOKEN".to_owned(), shared),
        ("DELETE", "/api/secrets/HF_TOKEN?shared=true".to_owned(), json!({})),
    ];
    for (method, path, body) in &acts {
        server.call(&ada, method, path, body.to_string()).await.problem(403, "password_needed");
    }
    // What is one's own, or opens nothing, takes none.
    let own = json!({"value": "hf_0123456789"});
    server.call(&ada, "PUT", "/api/secrets/OWN_TOKEN", own.to_string()).await.ok(200);
    let labels = json!({"labels": {"zone": "a"}});
    server.call(&ada, "PATCH", &format!("/api/admin/workers/{worker}"), labels.to_string()).await.ok(200);

    server.post(&ada, "/api/session/proof", json!({"password": PASSWORD})).await.ok(200);
    for (method, path, body) in &acts {
        let answer = server.call(&ada, method, path, body.to_string()).await;
        assert!(answer.status.is_success(), "{method} {path}: {}", answer.text());
    }
}

#[tokio::test]
async fn scripts_are_not_asked_for_a_password() {
    let server = Server::start().await;
    let (worker, _) = server.worker("gpu-1").await;
    server.clock.advance(Millis::seconds(15 * 60));
    let networks = json!({"allowed_networks": ["10.0.0.0/8"]});
    server.call(&By::Admin, "PATCH", &format!("/api/admin/workers/{worker}"), networks.to_string()).await.ok(200);
    server
        .call(&By::Admin, "PUT", "/api/secrets/HF_TOKEN", json!({"value": "hf_0123456789", "shared": true}).to_string())
        .await
        .ok(200);
}

#[tokio::test]
async fn a_form_asks_for_the_password_in_place_and_goes_on() {
    let server = Server::start().await;
    let ada = stale_admin(&server).await;
    let form = "name=gpu-2&worker_type=persistent&networks=10.0.0.0%2F8%2C+%3A%3A1";
    let asked = server.call(&ada, "POST", "/ui/workers", form).await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN);
    let page = asked.text();
    assert!(page.contains("action=\"/ui/workers\"") && page.contains("name=\"confirm_password\""), "{page}");
    for (name, value) in [("name", "gpu-2"), ("worker_type", "persistent"), ("networks", "10.0.0.0/8, ::1")] {
        assert!(page.contains(&format!("name=\"{name}\" value=\"{value}\"")), "{name}: {page}");
    }
    assert_eq!(names(&server).await, Vec::<String>::new(), "nothing is done yet");

    let wrong = server.call(&ada, "POST", "/ui/workers", format!("{form}&confirm_password=not-hers")).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    let page = wrong.text();
    assert!(page.contains("value=\"gpu-2\"") && !page.contains("not-hers"), "{page}");
    assert_eq!(names(&server).await, Vec::<String>::new());

    let right = server.call(&ada, "POST", "/ui/workers", format!("{form}&confirm_password={PASSWORD}")).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER, "{}", right.text());
    assert_eq!(names(&server).await, ["gpu-2"]);
    // It counts for what follows.
    server.post(&ada, "/api/admin/workers", json!({"name": "gpu-3"})).await.ok(201);
}

#[tokio::test]
async fn forms_ask_only_for_what_needs_it() {
    let server = Server::start().await;
    let (worker, _) = server.worker("gpu-1").await;
    let ada = stale_admin(&server).await;
    let edit = format!("/ui/workers/{worker}/edit");
    let view = async || server.get(&By::Admin, &format!("/api/admin/workers/{worker}")).await.ok(200);
    let revision = async || view().await["revision"].as_str().expect("text").to_owned();
    let rename = format!("name=renamed&worker_type=persistent&networks=&revision={}", revision().await);
    let renamed = server.call(&ada, "POST", &edit, rename).await;
    assert_eq!(renamed.status, StatusCode::SEE_OTHER, "{}", renamed.text());
    assert_eq!(names(&server).await, ["renamed"]);
    let networks = format!("name=renamed&worker_type=persistent&networks=10.0.0.0%2F8&revision={}", revision().await);
    let shared = "name=HF_TOKEN&value=hf_0123456789&shared=on".to_owned();
    for (path, form) in [(edit.as_str(), networks), ("/ui/secrets", shared)] {
        let asked = server.call(&ada, "POST", path, form.clone()).await;
        assert_eq!(asked.status, StatusCode::FORBIDDEN, "{path}");
        assert!(asked.text().contains("name=\"confirm_password\""), "{path}");
        let done = server.call(&ada, "POST", path, format!("{form}&confirm_password={PASSWORD}")).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{path}: {}", done.text());
        server.clock.advance(Millis::seconds(15 * 60));
    }
    assert_eq!(view().await["allowed_networks"], json!(["10.0.0.0/8"]));
    let own = server.call(&ada, "POST", "/ui/secrets", "name=OWN_TOKEN&value=hf_0123456789").await;
    assert_eq!(own.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn fields_with_several_values_are_kept_while_the_password_is_asked_for() {
    let server = Server::start().await;
    let ids = [server.worker("gpu-1").await.0, server.worker("gpu-2").await.0];
    let ada = stale_admin(&server).await;
    let form = format!("id={}&id={}", ids[0], ids[1]);
    let page = server.call(&ada, "POST", "/ui/workers/bulk/delete", form.clone()).await.text();
    assert!(ids.iter().all(|id| page.contains(&format!("name=\"id\" value=\"{id}\""))), "{page}");
    let form = format!("{form}&confirm_password={PASSWORD}");
    server.call(&ada, "POST", "/ui/workers/bulk/delete", form).await;
    assert_eq!(names(&server).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_takes_the_password_once_more_takes_the_passkey_too() {
    let server = Server::start().await;
    let Keyed { browser, mut key, .. } = keyed(&server, "ada", 1).await;
    let tokens = async || server.get(&browser, "/api/account/tokens").await.ok(200)["tokens"].clone();
    server.clock.advance(Millis::seconds(15 * 60));
    let asked = server.call(&browser, "POST", "/ui/account/tokens", "name=ci").await;
    let asks = options(&asked.text()).expect("a passkey is asked for");
    let form = format!("name=ci&confirm_password={PASSWORD}");
    let without = server.call(&browser, "POST", "/ui/account/tokens", form.clone()).await;
    assert!(without.text().contains("Your second factor is needed"), "{}", without.text());
    assert_eq!(options(&without.text()), Some(asks.clone()), "it asks for the same until it is answered");
    let signed = key.get(&asks);
    let with = format!("{form}&confirm_credential={signed}");
    let wrong = with.replace(PASSWORD, "not-the-password");
    server.call(&browser, "POST", "/ui/account/tokens", wrong).await;
    assert_eq!(tokens().await, json!([]));
    let done = server.call(&browser, "POST", "/ui/account/tokens", with.clone()).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text());
    assert_eq!(tokens().await.as_array().map(Vec::len), Some(1));
    server.clock.advance(Millis::seconds(15 * 60));
    let again = server.call(&browser, "POST", "/ui/account/tokens", with.replace("ci", "cd")).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "it was answered");
    assert_eq!(tokens().await.as_array().map(Vec::len), Some(1));
    // By itself the page asks in the same way.
    let asks = options(&server.get(&browser, "/confirm").await.text()).expect("asked");
    let form = format!("password={PASSWORD}&next=/account&confirm_credential={}", key.get(&asks));
    assert_eq!(server.call(&browser, "POST", "/ui/confirm", form).await.headers[header::LOCATION], "/account");
    server.post(&browser, "/api/account/tokens", json!({"name": "ok"})).await.ok(201);
}
