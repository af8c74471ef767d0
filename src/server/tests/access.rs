//! Who gets in.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;

use super::harness::{ADMIN, By, Server, read};
use crate::http::access::Mode;

/// Every route for people, with a method it knows.
const PEOPLE: &[(&str, &str)] = &[
    ("GET", "/api/admin/workers"),
    ("POST", "/api/admin/workers"),
    ("GET", "/api/admin/workers/w_1"),
    ("PATCH", "/api/admin/workers/w_1"),
    ("DELETE", "/api/admin/workers/w_1"),
    ("POST", "/api/admin/workers/w_1/drain"),
    ("POST", "/api/admin/workers/w_1/resume"),
    ("POST", "/api/admin/workers/w_1/token"),
    ("GET", "/api/queue"),
    ("GET", "/api/queue/stats"),
    ("POST", "/api/queue/submit"),
    ("GET", "/api/queue/j_1"),
    ("POST", "/api/queue/j_1/cancel"),
    ("POST", "/api/queue/j_1/retry"),
    ("POST", "/api/queue/j_1/priority"),
    ("GET", "/api/queue/j_1/explain"),
    ("GET", "/api/queue/j_1/logs"),
    ("GET", "/api/queue/j_1/progress"),
    ("GET", "/api/queue/j_1/artifacts"),
    ("GET", "/api/queue/j_1/artifacts/a/b"),
    ("GET", "/api/configs"),
    ("GET", "/api/configs/x"),
    ("PUT", "/api/configs/x"),
    ("DELETE", "/api/configs/x"),
    ("GET", "/api/events"),
    ("GET", "/api/session"),
    ("GET", "/api/audit"),
    ("GET", "/api/audit/export"),
];

/// Every route for workers and their jobs.
const WORKERS: &[(&str, &str)] = &[
    ("POST", "/api/workers/register"),
    ("GET", "/api/workers/stream"),
    ("GET", "/api/workers/next"),
    ("POST", "/api/workers/heartbeat"),
    ("GET", "/api/workers/queue"),
    ("POST", "/api/workers/disconnect"),
    ("POST", "/api/workers/job/j_1/status"),
    ("POST", "/api/workers/job/j_1/progress"),
    ("PUT", "/api/workers/job/j_1/logs"),
    ("PUT", "/api/workers/job/j_1/artifacts/a"),
    ("GET", "/api/workers/job/j_1/bundle"),
];

#[tokio::test]
async fn strangers_are_refused_everywhere() {
    let server = Server::start().await;
    for (method, path) in PEOPLE {
        server.call(&By::Nobody, method, path, "{}").await.problem(401, "not_authenticated");
    }
    for (method, path) in WORKERS {
        server.call(&By::Nobody, method, path, "{}").await.problem(401, "worker_token_refused");
    }
}

#[tokio::test]
async fn a_key_opens_its_own_doors_only() {
    let server = Server::start().await;
    let (_, worker) = server.worker("gpu-1").await;
    for (method, path) in PEOPLE {
        server.call(&worker, method, path, "{}").await.problem(401, "not_authenticated");
        server.call(&By::Cookie("sid=made-up".to_owned()), method, path, "{}").await.problem(401, "not_authenticated");
    }
    for (method, path) in WORKERS {
        server.call(&By::Admin, method, path, "{}").await.problem(401, "worker_token_refused");
        let made_up = By::Worker("wt_made-up".to_owned());
        server.call(&made_up, method, path, "{}").await.problem(401, "worker_token_refused");
    }
    let wrong = Request::builder().uri("/api/queue").header("x-api-key", "st_made-up").body(Body::empty());
    read(server.send(wrong.expect("a request")).await).await.problem(401, "wrong_token");
}

#[tokio::test]
async fn both_spellings_of_an_api_token_work() {
    let server = Server::start().await;
    for (name, value) in [("authorization", format!("bearer {ADMIN}")), ("x-api-key", ADMIN.to_owned())] {
        let request = Request::builder().uri("/api/session").header(name, value).body(Body::empty());
        let answer = read(server.send(request.expect("a request")).await).await.ok(200);
        assert_eq!(answer["name"], "admin");
    }
}

#[tokio::test]
async fn the_setup_code_opens_once_and_makes_the_admins_token() {
    let server = Server::start_as(Mode::SingleUser).await;
    let core = &server.app.core;
    let stale = core.setup_code().await.expect("a database").expect("nobody can log in yet");
    let fresh = core.setup_code().await.expect("a database").expect("nobody can log in yet");
    assert_ne!(stale, fresh);
    let log_in = async |secret: &str| core.log_in(crate::service::unit::Caller::system(), secret).await;
    assert!(log_in(&stale).await.is_err() && log_in("").await.is_err());
    let opened = log_in(&format!("  {fresh} ")).await.expect("the code is right");
    let token = opened.new_token.expect("the first admin gets a token");
    assert_eq!(core.authenticate_session(&opened.cookie).await, Ok(Some("admin".to_owned())));
    assert_eq!(core.authenticate_token(&token).await, Ok("admin".to_owned()));
    assert!(log_in(&fresh).await.is_err());
    assert_eq!(core.setup_code().await, Ok(None));
    assert!(log_in(&token).await.expect("a token logs in").new_token.is_none());
}

#[tokio::test]
async fn a_session_ends_by_logout_and_by_age() {
    let server = Server::start().await;
    let form = format!("token={ADMIN}&next=/jobs");
    let answer = server.call(&By::Nobody, "POST", "/ui/login", form.clone()).await;
    assert_eq!(
        (answer.status, &answer.headers[header::LOCATION]),
        (StatusCode::SEE_OTHER, &"/jobs".parse().expect("ascii"))
    );
    let cookie = answer.headers[header::SET_COOKIE].to_str().expect("ascii").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"));
    let session = By::Cookie(cookie.split(';').next().expect("a pair").to_owned());
    assert_eq!(server.get(&session, "/api/session").await.status, StatusCode::OK);
    server.call(&session, "POST", "/ui/logout", "").await;
    server.get(&session, "/api/session").await.problem(401, "not_authenticated");

    let answer = server.call(&By::Nobody, "POST", "/ui/login", form).await;
    let cookie = answer.headers[header::SET_COOKIE].to_str().expect("ascii").to_owned();
    let session = By::Cookie(cookie.split(';').next().expect("a pair").to_owned());
    server.pass(app::domain::time::Millis::seconds(7 * 24 * 3_600)).await;
    server.get(&session, "/api/session").await.problem(401, "not_authenticated");
}

#[tokio::test]
async fn other_sites_forms_are_not_carried_out() {
    for mode in [Mode::Accounts, Mode::SingleUser] {
        let server = Server::start_as(mode).await;
        let post = |headers: &[(&'static str, &'static str)]| {
            let mut request =
                Request::builder().method("POST").uri("/api/admin/workers").header("host", "localhost:8001");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            server.send(request.header("x-api-key", ADMIN).body(Body::from(r#"{"name": ""}"#)).expect("a request"))
        };
        for foreign in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
        ] {
            read(post(foreign).await).await.problem(403, "cross_site_request");
        }
        for own in [&[("sec-fetch-site", "same-origin")][..], &[("origin", "http://localhost:8001")], &[]] {
            assert_ne!(read(post(own).await).await.status, StatusCode::FORBIDDEN);
        }
    }
}

#[tokio::test]
async fn single_user_mode_answers_to_loopback_names_only() {
    let server = Server::start_as(Mode::SingleUser).await;
    let ask = |host: &'static str| {
        server.send(Request::builder().uri("/api/queue").header("host", host).body(Body::empty()).expect("a request"))
    };
    for own in ["localhost:8001", "127.0.0.1:8001", "[::1]:8001"] {
        assert_eq!(read(ask(own).await).await.status, StatusCode::OK, "{own}");
    }
    for foreign in ["evil.example:8001", "192.0.2.1", "localhost.evil.example"] {
        read(ask(foreign).await).await.problem(421, "unknown_host");
    }
}

#[tokio::test]
async fn the_documents_examples_without_a_token_work_in_single_user_mode() {
    let server = Server::start_as(Mode::SingleUser).await;
    let labels = json!({"name": "worker-1", "labels": {"location": "us-west", "gpu_type": "a100", "team": "nlp"}});
    let made = server.post(&By::Nobody, "/api/admin/workers", labels).await.ok(201);
    assert!(made["worker_id"].as_str().is_some_and(|id| id.starts_with("w_")));
    assert!(made["token"].as_str().is_some_and(|token| token.starts_with("wt_")));
    let listed = server.get(&By::Nobody, "/api/admin/workers").await.ok(200);
    assert_eq!(listed["workers"][0]["labels"]["team"], "nlp");
}
