//! Tags (`ETag`), conditional edits, and links to next pages.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;

use crate::tests::harness::{ADMIN, Actor, TestResponse, TestServer, read_response};

/// Sends a request as admin with one more header.
async fn send(server: &TestServer, method: &str, path: &str, (name, value): (&str, &str), body: &str) -> TestResponse {
    let request = Request::builder().method(method).uri(path).header("x-api-key", ADMIN).header(name, value);
    read_response(server.send(request.body(Body::from(body.to_owned())).expect("a request")).await).await
}

fn tag(response: &TestResponse) -> String {
    let tag = response.headers[header::ETAG].to_str().expect("text").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "a strong tag: {tag}");
    tag
}

#[tokio::test]
async fn conflicting_edit_is_rejected() {
    let server = TestServer::start().await;
    let (id, key, _events) = server.connect_worker("gpu-1").await;
    let path = format!("/api/admin/workers/{id}");
    let etag = tag(&server.get(&Actor::Admin, &path).await);
    // Reports of agents are no edits.
    server.register(&key, json!([])).await;
    server.clock.advance(app::domain::time::Millis::from_secs(5));
    server.heartbeat(&key, json!([])).await;
    assert_ne!(tag(&server.get(&Actor::Admin, &path).await), etag, "the last contact is part of the view");
    let edit = async |etag: &str, team: &str| {
        let body = json!({"labels": {"team": team}}).to_string();
        send(&server, "PATCH", &path, ("if-match", etag), &body).await
    };
    edit(&etag, "nlp").await.expect_status(200);
    edit(&etag, "vision").await.expect_problem(412, "precondition_failed");
    assert_eq!(server.get(&Actor::Admin, &path).await.json()["labels"], json!({"team": "nlp"}));
    let current_etag = tag(&server.get(&Actor::Admin, &path).await);
    edit(&format!("\"other\", {current_etag}"), "vision").await.expect_status(200);
    edit(&format!("W/{current_etag}"), "audio").await.expect_problem(412, "precondition_failed");
    edit("*", "audio").await.expect_status(200);
}

#[tokio::test]
async fn configuration_edit_and_delete_check_the_etag() {
    let server = TestServer::start().await;
    server.put_config("one").await;
    let etag = tag(&server.get(&Actor::Admin, "/api/configs/one").await);
    let bundle = json!({"files": {"config.json": "{}"}}).to_string();
    let send_if_match =
        async |method: &str, etag: &str| send(&server, method, "/api/configs/one", ("if-match", etag), &bundle).await;
    assert_eq!(send_if_match("PUT", &etag).await.expect_status(200)["revision"], 2);
    send_if_match("PUT", &etag).await.expect_problem(412, "precondition_failed");
    send_if_match("DELETE", &etag).await.expect_problem(412, "precondition_failed");
    let current_etag = tag(&server.get(&Actor::Admin, "/api/configs/one").await);
    send_if_match("DELETE", &current_etag).await.expect_status(200);
    send_if_match("PUT", &current_etag).await.expect_problem(412, "precondition_failed");
    // A new resource is created once.
    let create = async || send(&server, "PUT", "/api/configs/one", ("if-none-match", "*"), &bundle).await;
    assert_eq!(create().await.expect_status(200)["revision"], 3);
    create().await.expect_problem(412, "precondition_failed");
}

#[tokio::test]
async fn unchanged_state_returns_304() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    server.put_config("one").await;
    let job = server.submit("one").await;
    let (worker, job) = (format!("/api/admin/workers/{id}"), format!("/api/queue/{job}"));
    for path in [&worker, &job, "/api/admin/workers", "/api/queue", "/api/configs/one", "/api/openapi.json"] {
        let etag = tag(&server.get(&Actor::Admin, path).await);
        server.clock.advance(app::domain::time::Millis(5));
        let again = send(&server, "GET", path, ("if-none-match", &etag), "").await;
        assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
        assert_eq!(tag(&again), etag, "{path}");
        assert_eq!(send(&server, "GET", path, ("if-none-match", "\"x\""), "").await.status, StatusCode::OK, "{path}");
    }
    let etag = tag(&server.get(&Actor::Admin, &worker).await);
    server.register(&key, json!([])).await;
    assert_eq!(send(&server, "GET", &worker, ("if-none-match", &etag), "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn retry_with_an_idempotency_key_creates_one_job() {
    let server = TestServer::start().await;
    server.put_config("one").await;
    let job = server.submit("one").await;
    server.post(&Actor::Admin, &format!("/api/queue/{job}/cancel"), json!({})).await.expect_status(200);
    let other = server.submit("one").await;
    server.post(&Actor::Admin, &format!("/api/queue/{other}/cancel"), json!({})).await.expect_status(200);
    let retry = async |job: &str, key: &str| {
        send(&server, "POST", &format!("/api/queue/{job}/retry"), ("idempotency-key", key), "").await
    };
    let first = retry(&job, "k").await.expect_status(201);
    assert_eq!(retry(&job, "k").await.expect_status(201)["job_id"], first["job_id"]);
    retry(&other, "k").await.expect_problem(422, "idempotency_key_reused");
    retry(&job, "").await.expect_problem(422, "out_of_range");
    assert_ne!(retry(&job, "l").await.expect_status(201)["job_id"], first["job_id"]);
    assert_eq!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["total"], 4);
}

#[tokio::test]
async fn a_link_leads_to_the_next_page() {
    let server = TestServer::start().await;
    for name in ["a b", "c", "d"] {
        server.create_worker(name).await;
    }
    for name in ["ada", "bob", "cem"] {
        server.add_user(name, "viewer").await;
    }
    for (path, list) in [
        ("/api/admin/workers?limit=1&q=", "workers"),
        ("/api/admin/users?limit=2", "users"),
        ("/api/audit?limit=3", "entries"),
    ] {
        let first = server.get(&Actor::Admin, path).await;
        let link = first.headers[header::LINK].to_str().expect("text");
        let next =
            link.strip_prefix('<').and_then(|rest| rest.strip_suffix(">; rel=\"next\"")).expect("a link").to_owned();
        let (first, second) = (first.expect_status(200), server.get(&Actor::Admin, &next).await);
        assert_eq!(second.status, StatusCode::OK, "{next}");
        assert_ne!(first[list][0], second.json()[list][0], "{next}");
    }
    let all = server.get(&Actor::Admin, "/api/admin/users").await;
    assert!(!all.headers.contains_key(header::LINK) && all.headers["api-version"] == "1");
    let names = all.expect_status(200)["users"].as_array().expect("a list").len();
    assert_eq!(names, 4, "without a limit the list is complete");
}
