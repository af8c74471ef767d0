//! What somebody has is all that they can pass on, and only until it is taken away.

use std::sync::Arc;

use app::domain::time::Millis;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use super::harness::{By, PASSWORD, Server};
use crate::service::access::{Browser, Ticket};
use crate::service::refusal::Refusal;
use crate::service::unit::Caller;
use crate::tokens::digest;

const MAKE: &str = "/api/account/tokens";

/// A token of somebody's: what is said of it, its key, and a browser that it has opened.
async fn script(server: &Server, by: &By, body: Value) -> (Value, By, By) {
    let made = server.post(by, MAKE, body).await.ok(201);
    let secret = made["secret"].as_str().expect("text").to_owned();
    let browser = server.log_in("", &secret).await.expect("a token logs in");
    (made, By::Token(secret), browser)
}

#[tokio::test]
async fn what_a_token_opens_makes_nothing_that_can_do_more_or_lasts_longer() {
    let server = Server::start().await;
    let narrow = json!({"name": "metrics", "scopes": ["ops.metrics", "account.manage"], "expires_in_days": 1});
    let (first, key, browser) = script(&server, &By::Admin, narrow).await;
    for (by, name) in [(&key, "by-key"), (&browser, "by-browser")] {
        for days in [None, Some(30)] {
            let body = json!({"name": format!("{name}-{}", days.is_some()), "expires_in_days": days});
            let made = server.post(by, MAKE, body).await.ok(201);
            assert_eq!((&made["scopes"], &made["expires_at"]), (&first["scopes"], &first["expires_at"]), "{name}");
            let key = By::Token(made["secret"].as_str().expect("text").to_owned());
            server.get(&key, "/api/admin/workers").await.problem(403, "permission_denied");
        }
        let wide = json!({"name": "wide", "scopes": ["admin.workers"]});
        server.post(by, MAKE, wide).await.problem(403, "permission_denied");
    }
    let soon = server.post(&browser, MAKE, json!({"name": "soon", "expires_in_days": 1})).await.ok(201);
    assert_eq!(soon["expires_at"], first["expires_at"], "the earlier end");
    server.pass(Millis::seconds(86_400)).await;
    let key = By::Token(soon["secret"].as_str().expect("text").to_owned());
    server.get(&key, "/api/session").await.problem(401, "wrong_token");
}

#[tokio::test]
async fn who_sees_to_people_makes_nobody_who_can_do_more() {
    let server = Server::start().await;
    server.person("ada", "admin").await;
    server.person("vic", "viewer").await;
    let (ada, vic) = (server.id_of("ada").await, server.id_of("vic").await);
    let scopes = json!(["admin.users", "job.view.all", "config.view"]);
    let (_, key, _) = script(&server, &By::Admin, json!({"name": "people", "scopes": scopes})).await;
    let create = async |name: &str, role: &str| {
        let body = json!({"name": name, "role": role, "password": PASSWORD});
        server.post(&key, "/api/admin/users", body).await
    };
    create("eve", "admin").await.problem(403, "permission_denied");
    create("bob", "viewer").await.ok(201);
    let path = |user: &str, rest: &str| format!("/api/admin/users/{user}{rest}");
    let reset = json!({"password": "a-new-password"});
    server.post(&key, &path(&ada, "/password"), reset.clone()).await.problem(403, "permission_denied");
    server.post(&key, &path(&vic, "/password"), reset).await.ok(200);
    for (user, edit) in [(&vic, json!({"role": "lead"})), (&ada, json!({"role": "viewer"}))] {
        server.call(&key, "PATCH", &path(user, ""), edit.to_string()).await.problem(403, "permission_denied");
    }
}

#[tokio::test]
async fn a_request_that_is_under_way_does_nothing_for_whom_the_door_was_shut_meanwhile() {
    let server = Server::start().await;
    for (name, by_browser) in [("stolen", false), ("opened", true)] {
        let (made, key, browser) = script(&server, &By::Admin, json!({"name": name})).await;
        let by = if by_browser { &browser } else { &key };
        let (asked, waits) = oneshot::channel();
        let (go_on, goes_on) = oneshot::channel::<()>();
        // The second half comes when it may, and says that it was asked for.
        let halves = stream::iter([Bytes::from_static(b"{\"name\": ")]).chain(stream::once(async {
            asked.send(()).expect("somebody waits");
            goes_on.await.expect("it goes on");
            Bytes::from_static(b"\"late\"}")
        }));
        let other = async {
            waits.await.expect("it was let in, and reads");
            let token = format!("{MAKE}/{}", made["id"].as_str().expect("text"));
            server.call(&By::Admin, "DELETE", &token, "").await.ok(200);
            go_on.send(()).expect("it waits");
        };
        let body = Body::from_stream(halves.map(Ok::<_, std::io::Error>));
        let (answer, ()) = tokio::join!(server.call(by, "POST", "/api/admin/workers", body), other);
        answer.problem(401, "not_authenticated");
    }
    assert_eq!(server.get(&By::Admin, "/api/admin/workers").await.ok(200)["total"], 0);
}

#[tokio::test]
async fn a_password_that_was_reset_meanwhile_stays() {
    let server = Server::start().await;
    server.person("ada", "viewer").await;
    let mut password = PASSWORD.to_owned();
    // Which of the two writes first is up to how long they hash: both orders are right, and the one that matters has to come.
    for n in 0..50 {
        let (by_the_thief, by_an_admin) = (format!("of-the-thief-{n}"), format!("by-an-admin-now-{n}"));
        let changed = change_and_reset(&server, &password, &by_the_thief, &by_an_admin).await;
        assert!(server.log_in("ada", &by_an_admin).await.is_some(), "the admin's stays");
        assert!(server.log_in("ada", &by_the_thief).await.is_none());
        if changed == Err(Refusal::WrongPassword) {
            return;
        }
        assert_eq!(changed, Ok(()), "it came first");
        password = by_an_admin;
    }
    panic!("the thief was always first");
}

/// The thief changes ada's password while an admin sets another one: what the thief is answered. Nothing is written until
/// both hash, the admin two times and the thief three.
async fn change_and_reset(server: &Server, now: &str, by_the_thief: &str, by_an_admin: &str) -> Result<(), Refusal> {
    let Some(By::Cookie(cookie)) = server.log_in("ada", now).await else { panic!("it is ada's password") };
    let core = &server.app.core;
    let ticket = Ticket::Cookie(digest(cookie.split_once('=').expect("a value").1));
    let ada = core.authenticate(&ticket).await.expect("a database").expect("logged in");
    let gate = Arc::new(Notify::new());
    let shut = Arc::clone(&gate);
    let gated = core.store.write(Box::new(move |_| {
        let shut = Arc::clone(&shut);
        Box::pin(async move {
            shut.notified().await;
            Ok(())
        })
    }));
    let change = core.change_password(Caller::system(), &ada, now, by_the_thief);
    let reset = core.reset_password(Caller::system(), ada.account().expect("hers"), by_an_admin);
    let open = async {
        for _ in 0..9 {
            let nobody = core.log_in(Caller::system(), "nobody", "wrong-password", Browser::default()).await;
            assert_eq!(nobody.err(), Some(Refusal::WrongPassword));
        }
        gate.notify_one();
    };
    let (first, changed, reset, ()) = tokio::join!(gated, change, reset, open);
    assert_eq!((first, reset.map(|_| ())), (Ok(()), Ok(())));
    changed
}

#[tokio::test]
async fn the_token_of_an_attempt_that_ended_is_no_sign_of_life() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let token = By::Job(events.offer().await.upload_token);
    let path = format!("/api/workers/job/{job}/status");
    let heard =
        async || server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["last_heartbeat"].clone();
    let before = heard().await;
    server.clock.advance(Millis::seconds(10));
    server.post(&token, &path, json!({"status": "running"})).await.ok(200);
    assert_ne!(heard().await, before, "while it is in force, it is one");
    server.report(&key, &job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    let last = heard().await;
    server.clock.advance(Millis::seconds(10));
    server.post(&token, &path, json!({"status": "running"})).await.problem(409, "job_ended");
    assert_eq!(heard().await, last);
}

#[tokio::test]
async fn a_rotation_of_the_servers_own_worker_outlasts_a_restart() {
    let server = Server::start().await;
    let core = &server.app.core;
    let first = core.local_worker("local-here").await.expect("made");
    assert_eq!(core.local_worker("local-here").await, Ok(first.clone()), "the next start finds the same");
    let page = server.get(&By::Admin, "/api/admin/workers").await.ok(200);
    let path = format!("/api/admin/workers/{}/token", page["workers"][0]["id"].as_str().expect("text"));
    let shown = server.post(&By::Admin, &path, json!({})).await.ok(200)["token"].clone();
    let second = core.local_worker("local-here").await.expect("there");
    assert!(shown == json!(second) && second != first);
    let beat = async |token: &str| server.post(&By::worker(token), "/api/workers/register", json!({})).await;
    beat(&first).await.problem(401, "worker_token_refused");
    beat(&second).await.ok(200);
    let trail = server.get(&By::Admin, "/api/audit?action=worker.token_rotated").await.ok(200);
    assert_eq!(trail["entries"].as_array().expect("entries").len(), 1, "{trail:#}");
}

#[tokio::test]
async fn of_what_a_stranger_wanted_so_much_is_kept() {
    let server = Server::start().await;
    let vic = server.person("vic", "viewer").await;
    server.get(&vic, &format!("/api/admin/workers/{}", "x".repeat(3_000))).await.problem(403, "permission_denied");
    let page = server.get(&By::Admin, "/api/audit?action=access.denied").await.ok(200);
    let target = page["entries"][0]["target"].as_str().expect("text");
    assert!(target.starts_with("GET /api/admin/workers/xxx") && target.len() == 200, "{target}");
}

#[tokio::test]
async fn a_scoped_token_sees_and_revokes_itself_only() {
    let server = Server::start().await;
    let (automation, full, _) = script(&server, &By::Admin, json!({"name": "automation"})).await;
    let sessions = server.get(&full, "/api/account/sessions").await.ok(200);
    let session = format!("/api/account/sessions/{}", sessions["sessions"][0]["id"].as_str().expect("text"));
    let other = format!("{MAKE}/{}", automation["id"].as_str().expect("text"));
    let narrow = json!({"name": "metrics", "scopes": ["ops.metrics"]});
    let (metrics, key, browser) = script(&server, &By::Admin, narrow).await;
    for by in [&key, &browser] {
        for path in [MAKE, "/api/account/sessions", "/api/search?q=a", "/api/events"] {
            server.get(by, path).await.problem(403, "permission_denied");
        }
        for path in [&other, &session] {
            server.call(by, "DELETE", path, "").await.problem(403, "permission_denied");
        }
        server.post(by, MAKE, json!({"name": "more"})).await.problem(403, "permission_denied");
        let change = json!({"old": PASSWORD, "new": "a-new-password"});
        server.post(by, "/api/account/password", change).await.problem(403, "permission_denied");
    }
    let itself = server.get(&key, "/api/session").await.ok(200);
    assert_eq!(itself["token_id"], metrics["id"]);
    let own = format!("{MAKE}/{}", metrics["id"].as_str().expect("text"));
    server.call(&key, "DELETE", &own, "").await.ok(200);
    server.get(&key, "/api/session").await.problem(401, "wrong_token");
    server.get(&full, "/api/session").await.ok(200);
}

#[tokio::test]
async fn a_token_for_account_manage_opens_the_account() {
    let server = Server::start().await;
    let (other, _, _) = script(&server, &By::Admin, json!({"name": "other"})).await;
    let (_, key, _) = script(&server, &By::Admin, json!({"name": "keys", "scopes": ["account.manage"]})).await;
    server.get(&key, MAKE).await.ok(200);
    server.get(&key, "/api/account/sessions").await.ok(200);
    server.call(&key, "DELETE", &format!("{MAKE}/{}", other["id"].as_str().expect("text")), "").await.ok(200);
}

#[tokio::test]
async fn who_sees_to_people_takes_nothing_from_people_who_can_do_more() {
    let server = Server::start().await;
    let (ada, vic) = (server.person("ada", "admin").await, server.person("vic", "viewer").await);
    for by in [&ada, &vic] {
        script(&server, by, json!({"name": "hers"})).await;
    }
    let scopes = json!(["admin.users", "job.view.all", "config.view"]);
    let (_, key, _) = script(&server, &By::Admin, json!({"name": "people", "scopes": scopes})).await;
    for (name, status) in [("ada", 403), ("vic", 200)] {
        let user = server.get(&key, &format!("/api/admin/users/{}", server.id_of(name).await)).await.ok(200);
        // A session that the token has opened ends with it.
        for list in ["sessions", "tokens"] {
            for one in user[list].as_array().expect("a list") {
                let path = format!("/api/account/{list}/{}", one["id"].as_str().expect("text"));
                let answer = server.call(&key, "DELETE", &path, "").await;
                assert_eq!(answer.status, status, "{name} {list}: {}", answer.text());
            }
        }
    }
    server.get(&ada, "/api/session").await.ok(200);
    server.get(&vic, "/api/session").await.problem(401, "not_authenticated");
}

#[tokio::test]
async fn a_token_for_somebody_else_takes_full_rights_and_is_marked_in_the_trail() {
    let server = Server::start().await;
    server.person("bob", "researcher").await;
    let path = format!("/api/admin/users/{}/tokens", server.id_of("bob").await);
    let scopes = json!(["admin.users", "job.submit"]);
    let (_, key, _) = script(&server, &By::Admin, json!({"name": "people", "scopes": scopes})).await;
    let imitation = json!({"name": "imp", "scopes": ["job.submit"]});
    server.post(&key, &path, imitation.clone()).await.problem(403, "permission_denied");
    server.post(&By::Admin, &path, imitation).await.ok(201);
    script(&server, &By::Admin, json!({"name": "own"})).await;
    let trail = server.get(&By::Admin, "/api/audit?action=access.token_created").await.ok(200);
    let marks = ["for_another", "token"].map(|field| trail["entries"][1]["detail"][field].clone());
    assert_eq!((&marks[0], marks[1].is_string()), (&json!(true), true), "{trail:#}");
    assert_eq!(trail["entries"][0]["detail"]["for_another"], false);
}
