//! Names of states, edits that depend on them, and links to next pages.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;

use super::harness::{ADMIN, Answer, By, Server, read};

/// Asks as the admin, with one more header.
async fn ask(server: &Server, method: &str, path: &str, (name, value): (&str, &str), body: &str) -> Answer {
    let request = Request::builder().method(method).uri(path).header("x-api-key", ADMIN).header(name, value);
    read(server.send(request.body(Body::from(body.to_owned())).expect("a request")).await).await
}

fn tag(answer: &Answer) -> String {
    let tag = answer.headers[header::ETAG].to_str().expect("text").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "a strong one: {tag}");
    tag
}

#[tokio::test]
async fn an_edit_of_what_somebody_else_has_changed_is_refused() {
    let server = Server::start().await;
    let (id, key, _events) = server.online("gpu-1").await;
    let path = format!("/api/admin/workers/{id}");
    let seen = tag(&server.get(&By::Admin, &path).await);
    // What agents say is no edit.
    server.register(&key, json!([])).await;
    server.clock.advance(app::domain::time::Millis::seconds(5));
    server.heartbeat(&key, json!([])).await;
    assert_ne!(tag(&server.get(&By::Admin, &path).await), seen, "it is shown that it was heard of");
    let edit = async |seen: &str, team: &str| {
        let body = json!({"labels": {"team": team}}).to_string();
        ask(&server, "PATCH", &path, ("if-match", seen), &body).await
    };
    edit(&seen, "nlp").await.ok(200);
    edit(&seen, "vision").await.problem(412, "precondition_failed");
    assert_eq!(server.get(&By::Admin, &path).await.json()["labels"], json!({"team": "nlp"}));
    let now = tag(&server.get(&By::Admin, &path).await);
    edit(&format!("\"other\", {now}"), "vision").await.ok(200);
    edit(&format!("W/{now}"), "audio").await.problem(412, "precondition_failed");
    edit("*", "audio").await.ok(200);
}

#[tokio::test]
async fn a_configuration_is_changed_and_removed_as_it_was_seen() {
    let server = Server::start().await;
    server.config("one").await;
    let seen = tag(&server.get(&By::Admin, "/api/configs/one").await);
    let bundle = json!({"files": {"config.json": "{}"}}).to_string();
    let with =
        async |method: &str, seen: &str| ask(&server, method, "/api/configs/one", ("if-match", seen), &bundle).await;
    assert_eq!(with("PUT", &seen).await.ok(200)["revision"], 2);
    with("PUT", &seen).await.problem(412, "precondition_failed");
    with("DELETE", &seen).await.problem(412, "precondition_failed");
    let now = tag(&server.get(&By::Admin, "/api/configs/one").await);
    with("DELETE", &now).await.ok(200);
    with("PUT", &now).await.problem(412, "precondition_failed");
    // One that is not there yet is made once.
    let new = async || ask(&server, "PUT", "/api/configs/one", ("if-none-match", "*"), &bundle).await;
    assert_eq!(new().await.ok(200)["revision"], 3);
    new().await.problem(412, "precondition_failed");
}

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let server = Server::start().await;
    let (id, key) = server.worker("gpu-1").await;
    server.config("one").await;
    let job = server.submit("one").await;
    let (worker, job) = (format!("/api/admin/workers/{id}"), format!("/api/queue/{job}"));
    for path in [&worker, &job, "/api/admin/workers", "/api/queue", "/api/configs/one", "/api/openapi.json"] {
        let seen = tag(&server.get(&By::Admin, path).await);
        server.clock.advance(app::domain::time::Millis(5));
        let again = ask(&server, "GET", path, ("if-none-match", &seen), "").await;
        assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
        assert_eq!(tag(&again), seen, "{path}");
        assert_eq!(ask(&server, "GET", path, ("if-none-match", "\"x\""), "").await.status, StatusCode::OK, "{path}");
    }
    let seen = tag(&server.get(&By::Admin, &worker).await);
    server.register(&key, json!([])).await;
    assert_eq!(ask(&server, "GET", &worker, ("if-none-match", &seen), "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_retry_with_a_key_is_one_job_however_often_it_comes() {
    let server = Server::start().await;
    server.config("one").await;
    let job = server.submit("one").await;
    server.post(&By::Admin, &format!("/api/queue/{job}/cancel"), json!({})).await.ok(200);
    let other = server.submit("one").await;
    server.post(&By::Admin, &format!("/api/queue/{other}/cancel"), json!({})).await.ok(200);
    let retry = async |job: &str, key: &str| {
        ask(&server, "POST", &format!("/api/queue/{job}/retry"), ("idempotency-key", key), "").await
    };
    let first = retry(&job, "k").await.ok(201);
    assert_eq!(retry(&job, "k").await.ok(201)["job_id"], first["job_id"]);
    retry(&other, "k").await.problem(422, "idempotency_key_reused");
    retry(&job, "").await.problem(422, "out_of_range");
    assert_ne!(retry(&job, "l").await.ok(201)["job_id"], first["job_id"]);
    assert_eq!(server.get(&By::Admin, "/api/queue").await.ok(200)["total"], 4);
}

#[tokio::test]
async fn a_link_leads_to_the_next_page() {
    let server = Server::start().await;
    for name in ["a b", "c", "d"] {
        server.worker(name).await;
    }
    for name in ["ada", "bob", "cem"] {
        server.person(name, "viewer").await;
    }
    for (path, list) in [
        ("/api/admin/workers?limit=1&q=", "workers"),
        ("/api/admin/users?limit=2", "users"),
        ("/api/audit?limit=3", "entries"),
    ] {
        let first = server.get(&By::Admin, path).await;
        let link = first.headers[header::LINK].to_str().expect("text");
        let next =
            link.strip_prefix('<').and_then(|rest| rest.strip_suffix(">; rel=\"next\"")).expect("a link").to_owned();
        let (first, second) = (first.ok(200), server.get(&By::Admin, &next).await);
        assert_eq!(second.status, StatusCode::OK, "{next}");
        assert_ne!(first[list][0], second.json()[list][0], "{next}");
    }
    let all = server.get(&By::Admin, "/api/admin/users").await;
    assert!(!all.headers.contains_key(header::LINK) && all.headers["api-version"] == "1");
    let names = all.ok(200)["users"].as_array().expect("a list").len();
    assert_eq!(names, 4, "without a limit it is everybody");
}
