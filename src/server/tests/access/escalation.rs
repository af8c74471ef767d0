//! Users can only pass on permissions they have, and only until these are revoked.

use std::sync::Arc;

use app::domain::time::Millis;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::service::access::BrowserInfo;
use crate::service::auth_grant::Credential;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::Caller;
use crate::tests::harness::{Actor, PASSWORD, TestServer};
use crate::tokens::digest;

const TOKENS_PATH: &str = "/api/account/tokens";

/// Creates an API token; returns its view, the token, and a browser session opened with it.
async fn create_token(server: &TestServer, actor: &Actor, body: Value) -> (Value, Actor, Actor) {
    let created = server.post(actor, TOKENS_PATH, body).await.expect_status(201);
    let secret = created["secret"].as_str().expect("text").to_owned();
    let browser = server.log_in("", &secret).await.expect("a session");
    (created, Actor::Token(secret), browser)
}

#[tokio::test]
async fn token_cannot_create_stronger_or_longer_credentials() {
    let server = TestServer::start().await;
    let narrow = json!({"name": "metrics", "scopes": ["ops.metrics", "account.manage"], "expires_in_days": 1});
    let (first, key, browser) = create_token(&server, &Actor::Admin, narrow).await;
    for (actor, name) in [(&key, "by-key"), (&browser, "by-browser")] {
        for days in [None, Some(30)] {
            let body = json!({"name": format!("{name}-{}", days.is_some()), "expires_in_days": days});
            let created = server.post(actor, TOKENS_PATH, body).await.expect_status(201);
            assert_eq!(
                (&created["scopes"], &created["expires_at"]),
                (&first["scopes"], &first["expires_at"]),
                "{name}"
            );
            let key = Actor::Token(created["secret"].as_str().expect("text").to_owned());
            server.get(&key, "/api/admin/workers").await.expect_problem(403, "permission_denied");
        }
        let wide = json!({"name": "wide", "scopes": ["admin.workers"]});
        server.post(actor, TOKENS_PATH, wide).await.expect_problem(403, "permission_denied");
    }
    let soon =
        server.post(&browser, TOKENS_PATH, json!({"name": "soon", "expires_in_days": 1})).await.expect_status(201);
    assert_eq!(soon["expires_at"], first["expires_at"], "the earlier of both expiries");
    server.advance(Millis::from_secs(86_400)).await;
    let key = Actor::Token(soon["secret"].as_str().expect("text").to_owned());
    server.get(&key, "/api/session").await.expect_problem(401, "wrong_token");
}

#[tokio::test]
async fn token_scopes_do_not_grow_with_the_users_role() {
    let server = TestServer::start().await;
    let vic = server.add_user("vic", "viewer").await;
    let path = format!("/api/admin/users/{}", server.user_id("vic").await);
    let created = server.post(&Actor::Admin, &format!("{path}/tokens"), json!({"name": "ci"})).await.expect_status(201);
    let key = Actor::Token(created["secret"].as_str().expect("text").to_owned());
    let permissions =
        async |actor: &Actor| server.get(actor, "/api/session").await.expect_status(200)["permissions"].clone();
    let (before, viewer) = (permissions(&key).await, permissions(&vic).await);
    assert!(before.as_array().is_some_and(|all| !all.is_empty()), "{before}");
    server.call(&Actor::Admin, "PATCH", &path, json!({"role": "admin"}).to_string()).await.expect_status(200);
    let ada = server.log_in("vic", PASSWORD).await.expect("a valid password");
    server.get(&ada, "/api/admin/users").await.expect_status(200);
    assert_eq!(permissions(&key).await, before, "the permissions of a viewer were {viewer}");
    for admin_path in ["/api/admin/users", "/api/audit"] {
        server.get(&key, admin_path).await.expect_problem(403, "permission_denied");
    }
    server.call(&Actor::Admin, "PATCH", &path, json!({"role": "viewer"}).to_string()).await.expect_status(200);
    assert_eq!(permissions(&key).await, before);
}

#[tokio::test]
async fn user_admins_cannot_create_users_with_more_permissions() {
    let server = TestServer::start().await;
    server.add_user("ada", "admin").await;
    server.add_user("vic", "viewer").await;
    let (ada, vic) = (server.user_id("ada").await, server.user_id("vic").await);
    let scopes = json!(["admin.users", "job.view.all", "config.view", "fleet.view"]);
    let (_, key, _) = create_token(&server, &Actor::Admin, json!({"name": "users", "scopes": scopes})).await;
    let create = async |name: &str, role: &str| {
        let body = json!({"name": name, "role": role, "password": PASSWORD});
        server.post(&key, "/api/admin/users", body).await
    };
    create("eve", "admin").await.expect_problem(403, "permission_denied");
    create("bob", "viewer").await.expect_status(201);
    let path = |user: &str, rest: &str| format!("/api/admin/users/{user}{rest}");
    let reset = json!({"password": "a-new-password"});
    server.post(&key, &path(&ada, "/password"), reset.clone()).await.expect_problem(403, "permission_denied");
    server.post(&key, &path(&vic, "/password"), reset).await.expect_status(200);
    for (user, edit) in [(&vic, json!({"role": "lead"})), (&ada, json!({"role": "viewer"}))] {
        server.call(&key, "PATCH", &path(user, ""), edit.to_string()).await.expect_problem(403, "permission_denied");
    }
}

#[tokio::test]
async fn running_request_is_rejected_after_revocation() {
    let server = TestServer::start().await;
    for (name, by_browser) in [("stolen", false), ("opened", true)] {
        let (created, key, browser) = create_token(&server, &Actor::Admin, json!({"name": name})).await;
        let actor = if by_browser { &browser } else { &key };
        let (started, has_started) = oneshot::channel();
        let (proceed, may_proceed) = oneshot::channel::<()>();
        // The second half of the body waits for the test, and signals that the server has requested it.
        let halves = stream::iter([Bytes::from_static(b"{\"name\": ")]).chain(stream::once(async {
            started.send(()).expect("the request waits");
            may_proceed.await.expect("the test continues");
            Bytes::from_static(b"\"late\"}")
        }));
        let revoke = async {
            has_started.await.expect("the request was authenticated, and its body is read");
            let token = format!("{TOKENS_PATH}/{}", created["id"].as_str().expect("text"));
            server.call(&Actor::Admin, "DELETE", &token, "").await.expect_status(200);
            proceed.send(()).expect("the request waits");
        };
        let body = Body::from_stream(halves.map(Ok::<_, std::io::Error>));
        let (response, ()) = tokio::join!(server.call(actor, "POST", "/api/admin/workers", body), revoke);
        response.expect_problem(401, "not_authenticated");
    }
    assert_eq!(server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200)["total"], 0);
}

#[tokio::test]
async fn concurrent_password_reset_wins() {
    let server = TestServer::start().await;
    server.add_user("ada", "viewer").await;
    let mut password = PASSWORD.to_owned();
    // The order of the two writes depends on the duration of hashing. Both are valid; the reset must be first at least
    // once.
    for n in 0..50 {
        let (by_the_thief, by_an_admin) = (format!("of-the-thief-{n}"), format!("by-an-admin-now-{n}"));
        let changed = change_and_reset(&server, &password, &by_the_thief, &by_an_admin).await;
        assert!(server.log_in("ada", &by_an_admin).await.is_some(), "the password of the admin is valid");
        assert!(server.log_in("ada", &by_the_thief).await.is_none());
        if changed == Err(ServiceError::WrongPassword) {
            return;
        }
        assert_eq!(changed, Ok(()), "the change was first");
        password = by_an_admin;
    }
    panic!("the change was always first");
}

/// An attacker changes ada's password while an admin resets it; returns the response to the attacker. Both hash before
/// anything is written, the admin twice and the attacker three times.
async fn change_and_reset(
    server: &TestServer,
    password: &str,
    by_the_thief: &str,
    by_an_admin: &str,
) -> Result<(), ServiceError> {
    let Some(Actor::Cookie(cookie)) = server.log_in("ada", password).await else { panic!("it is ada's password") };
    let services = &server.app.services;
    let credential = Credential::Cookie(digest(cookie.split_once('=').expect("a value").1));
    let ada = services.access.authenticate(&credential).await.expect("a database").expect("a principal");
    let gate = Arc::new(Notify::new());
    let writer_gate = Arc::clone(&gate);
    let delayed_write = services.context.store.write(Box::new(move |_| {
        let writer_gate = Arc::clone(&writer_gate);
        Box::pin(async move {
            writer_gate.notified().await;
            Ok(())
        })
    }));
    let change = services.access.change_password(Caller::system(), &ada, password, by_the_thief);
    let reset = services.access.reset_password(Caller::system(), ada.account_id().expect("an account"), by_an_admin);
    let open = async {
        for _ in 0..9 {
            let result =
                services.access.log_in(Caller::system(), "nobody", "wrong-password", BrowserInfo::default()).await;
            assert_eq!(result.err(), Some(ServiceError::WrongPassword));
        }
        gate.notify_one();
    };
    let (first, changed, reset, ()) = tokio::join!(delayed_write, change, reset, open);
    assert_eq!((first, reset.map(|_| ())), (Ok(()), Ok(())));
    changed
}

#[tokio::test]
async fn token_of_an_ended_attempt_is_no_contact() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    let path = format!("/api/workers/job/{job}/status");
    let last_heartbeat = async || {
        server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["last_heartbeat"]
            .clone()
    };
    let before = last_heartbeat().await;
    server.clock.advance(Millis::from_secs(10));
    server.post(&token, &path, json!({"status": "running"})).await.expect_status(200);
    assert_ne!(last_heartbeat().await, before, "a report of an active attempt is a contact");
    server.report_status(&key, &job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    let last = last_heartbeat().await;
    server.clock.advance(Millis::from_secs(10));
    server.post(&token, &path, json!({"status": "running"})).await.expect_problem(409, "job_ended");
    assert_eq!(last_heartbeat().await, last);
}

#[tokio::test]
async fn rotated_local_worker_token_survives_a_restart() {
    let server = TestServer::start().await;
    let services = &server.app.services;
    let first = services.workers.local_worker("local-here").await.expect("created");
    assert_eq!(services.workers.local_worker("local-here").await, Ok(first.clone()), "the next start finds the same");
    let page = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    let path = format!("/api/admin/workers/{}/token", page["workers"][0]["id"].as_str().expect("text"));
    let new_token = server.post(&Actor::Admin, &path, json!({})).await.expect_status(200)["token"].clone();
    let second = services.workers.local_worker("local-here").await.expect("a token");
    assert!(new_token == json!(second) && second != first);
    let register = async |token: &str| server.post(&Actor::worker(token), "/api/workers/register", json!({})).await;
    register(&first).await.expect_problem(401, "worker_token_invalid");
    register(&second).await.expect_status(200);
    let audit_log = server.get(&Actor::Admin, "/api/audit?action=worker.token_rotated").await.expect_status(200);
    assert_eq!(audit_log["entries"].as_array().expect("entries").len(), 1, "{audit_log:#}");
}

#[tokio::test]
async fn recorded_request_targets_are_truncated() {
    let server = TestServer::start().await;
    let vic = server.add_user("vic", "viewer").await;
    server
        .get(&vic, &format!("/api/admin/workers/{}/events", "x".repeat(3_000)))
        .await
        .expect_problem(403, "permission_denied");
    let page = server.get(&Actor::Admin, "/api/audit?action=access.denied").await.expect_status(200);
    let target = page["entries"][0]["target"].as_str().expect("text");
    assert!(target.starts_with("GET /api/admin/workers/xxx") && target.len() == 200, "{target}");
}

#[tokio::test]
async fn a_scoped_token_sees_and_revokes_itself_only() {
    let server = TestServer::start().await;
    let (automation, full, _) = create_token(&server, &Actor::Admin, json!({"name": "automation"})).await;
    let sessions = server.get(&full, "/api/account/sessions").await.expect_status(200);
    let session = format!("/api/account/sessions/{}", sessions["sessions"][0]["id"].as_str().expect("text"));
    let automation_path = format!("{TOKENS_PATH}/{}", automation["id"].as_str().expect("text"));
    let narrow = json!({"name": "metrics", "scopes": ["ops.metrics"]});
    let (metrics, key, browser) = create_token(&server, &Actor::Admin, narrow).await;
    for actor in [&key, &browser] {
        for path in [TOKENS_PATH, "/api/account/sessions", "/api/search?q=a", "/api/events"] {
            server.get(actor, path).await.expect_problem(403, "permission_denied");
        }
        for path in [&automation_path, &session] {
            server.call(actor, "DELETE", path, "").await.expect_problem(403, "permission_denied");
        }
        server.post(actor, TOKENS_PATH, json!({"name": "more"})).await.expect_problem(403, "permission_denied");
        let change = json!({"old": PASSWORD, "new": "a-new-password"});
        server.post(actor, "/api/account/password", change).await.expect_problem(403, "permission_denied");
    }
    let session_view = server.get(&key, "/api/session").await.expect_status(200);
    assert_eq!(session_view["token_id"], metrics["id"]);
    let metrics_path = format!("{TOKENS_PATH}/{}", metrics["id"].as_str().expect("text"));
    server.call(&key, "DELETE", &metrics_path, "").await.expect_status(200);
    server.get(&key, "/api/session").await.expect_problem(401, "wrong_token");
    server.get(&full, "/api/session").await.expect_status(200);
}

#[tokio::test]
async fn token_with_account_manage_can_manage_the_account() {
    let server = TestServer::start().await;
    let (other, _, _) = create_token(&server, &Actor::Admin, json!({"name": "other"})).await;
    let (_, key, _) = create_token(&server, &Actor::Admin, json!({"name": "keys", "scopes": ["account.manage"]})).await;
    server.get(&key, TOKENS_PATH).await.expect_status(200);
    server.get(&key, "/api/account/sessions").await.expect_status(200);
    server
        .call(&key, "DELETE", &format!("{TOKENS_PATH}/{}", other["id"].as_str().expect("text")), "")
        .await
        .expect_status(200);
}

#[tokio::test]
async fn user_admins_cannot_change_users_with_more_permissions() {
    let server = TestServer::start().await;
    let (ada, vic) = (server.add_user("ada", "admin").await, server.add_user("vic", "viewer").await);
    for actor in [&ada, &vic] {
        create_token(&server, actor, json!({"name": "hers"})).await;
    }
    let scopes = json!(["admin.users", "job.view.all", "config.view", "fleet.view"]);
    let (_, key, _) = create_token(&server, &Actor::Admin, json!({"name": "users", "scopes": scopes})).await;
    for (name, status) in [("ada", 403), ("vic", 200)] {
        let user =
            server.get(&key, &format!("/api/admin/users/{}", server.user_id(name).await)).await.expect_status(200);
        // A session that was opened with the token ends with it.
        for list in ["sessions", "tokens"] {
            for item in user[list].as_array().expect("a list") {
                let path = format!("/api/account/{list}/{}", item["id"].as_str().expect("text"));
                let response = server.call(&key, "DELETE", &path, "").await;
                assert_eq!(response.status, status, "{name} {list}: {}", response.text());
            }
        }
    }
    server.get(&ada, "/api/session").await.expect_status(200);
    server.get(&vic, "/api/session").await.expect_problem(401, "not_authenticated");
}

#[tokio::test]
async fn token_for_another_user_requires_full_permissions_and_is_recorded() {
    let server = TestServer::start().await;
    server.add_user("bob", "researcher").await;
    let path = format!("/api/admin/users/{}/tokens", server.user_id("bob").await);
    let scopes = json!(["admin.users", "job.submit"]);
    let (_, key, _) = create_token(&server, &Actor::Admin, json!({"name": "users", "scopes": scopes})).await;
    let token_body = json!({"name": "imp", "scopes": ["job.submit"]});
    server.post(&key, &path, token_body.clone()).await.expect_problem(403, "permission_denied");
    server.post(&Actor::Admin, &path, token_body).await.expect_status(201);
    create_token(&server, &Actor::Admin, json!({"name": "own"})).await;
    let audit_log = server.get(&Actor::Admin, "/api/audit?action=access.token_created").await.expect_status(200);
    let marks = ["for_another", "token"].map(|field| audit_log["entries"][1]["detail"][field].clone());
    assert_eq!((&marks[0], marks[1].is_string()), (&json!(true), true), "{audit_log:#}");
    assert_eq!(audit_log["entries"][0]["detail"]["for_another"], false);
}
