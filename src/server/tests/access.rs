//! Who gets in.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::json;

use super::harness::{ADMIN, By, Server, read};
use crate::http::access::Mode;

/// Every route for people, and who may use it: viewer, researcher, lead, admin. An id is of something that is not there.
const PEOPLE: &[(&str, &str, &str)] = &[
    ("GET", "/admin/workers", "___a"),
    ("POST", "/admin/workers", "___a"),
    ("GET", "/admin/workers/{id}", "___a"),
    ("PATCH", "/admin/workers/{id}", "___a"),
    ("DELETE", "/admin/workers/{id}", "___a"),
    ("POST", "/admin/workers/{id}/drain", "___a"),
    ("POST", "/admin/workers/{id}/resume", "___a"),
    ("POST", "/admin/workers/{id}/token", "___a"),
    ("GET", "/admin/users", "___a"),
    ("POST", "/admin/users", "___a"),
    ("GET", "/admin/users/{id}", "___a"),
    ("PATCH", "/admin/users/{id}", "___a"),
    ("POST", "/admin/users/{id}/password", "___a"),
    ("POST", "/admin/users/{id}/tokens", "___a"),
    ("POST", "/account/password", "vrla"),
    ("GET", "/account/tokens", "vrla"),
    ("POST", "/account/tokens", "vrla"),
    ("DELETE", "/account/tokens/{id}", "vrla"),
    ("GET", "/account/sessions", "vrla"),
    ("DELETE", "/account/sessions/{id}", "vrla"),
    ("GET", "/audit", "___a"),
    ("GET", "/audit/export", "___a"),
    ("GET", "/queue", "vrla"),
    ("GET", "/queue/stats", "vrla"),
    ("POST", "/queue/submit", "_rla"),
    ("GET", "/queue/{id}", "vrla"),
    ("POST", "/queue/{id}/cancel", "_rla"),
    ("POST", "/queue/{id}/retry", "_rla"),
    ("POST", "/queue/{id}/priority", "__la"),
    ("GET", "/queue/{id}/explain", "vrla"),
    ("GET", "/queue/{id}/logs", "vrla"),
    ("GET", "/queue/{id}/events", "vrla"),
    ("GET", "/queue/{id}/progress", "vrla"),
    ("GET", "/queue/{id}/artifacts", "vrla"),
    ("GET", "/queue/{id}/artifacts/{*path}", "vrla"),
    ("GET", "/configs", "vrla"),
    ("GET", "/configs/{name}", "vrla"),
    ("PUT", "/configs/{name}", "_rla"),
    ("DELETE", "/configs/{name}", "_rla"),
    ("GET", "/events", "vrla"),
    ("GET", "/session", "vrla"),
];

/// Where a row of that table is asked.
fn address(path: &str) -> String {
    format!("/api{}", path.replace("{id}", "x_1").replace("{name}", "none").replace("{*path}", "a/b"))
}

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
    for (method, path, _) in PEOPLE {
        server.call(&By::Nobody, method, &address(path), "{}").await.problem(401, "not_authenticated");
    }
    for (method, path) in WORKERS {
        server.call(&By::Nobody, method, path, "{}").await.problem(401, "worker_token_refused");
    }
}

#[tokio::test]
async fn a_key_opens_its_own_doors_only() {
    let server = Server::start().await;
    let (_, worker) = server.worker("gpu-1").await;
    let job = By::Job("jt_made-up".to_owned());
    let made_up = By::Cookie("sid=made-up".to_owned());
    for (method, path, _) in PEOPLE {
        for by in [&worker, &job, &made_up] {
            server.call(by, method, &address(path), "{}").await.problem(401, "not_authenticated");
        }
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
async fn each_route_lets_in_who_stands_in_the_table() {
    let server = Server::start().await;
    let declared = crate::http::people(&server.app);
    let found: Vec<_> = declared.declared().iter().map(|route| (route.method.as_str(), route.path)).collect();
    assert_eq!(found, PEOPLE.iter().map(|(method, path, _)| (*method, *path)).collect::<Vec<_>>());
    for role in ["viewer", "researcher", "lead", "admin"] {
        let person = server.person(&format!("{role}-1"), role).await;
        let token = server.post(&person, "/api/account/tokens", json!({"name": "all"})).await.ok(201);
        let token = By::Token(token["secret"].as_str().expect("text").to_owned());
        for (method, path, who) in PEOPLE {
            let may = who.contains(&role[..1]);
            for by in [&person, &token] {
                let status = server.open(by, method, &address(path), "{}").await.status();
                let denied = status == StatusCode::FORBIDDEN;
                assert!(denied != may && status != StatusCode::UNAUTHORIZED, "{role}: {method} {path}: {status}");
            }
        }
    }
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
