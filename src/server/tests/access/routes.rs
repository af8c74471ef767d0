//! Authorization of all routes.

use app::domain::access::Permission;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::json;

use crate::http::state::AuthMode;
use crate::http::ui::{form_routes, login_routes};
use crate::tests::harness::{ADMIN, Actor, TestServer, read_response};
use crate::tests::openapi::{assert_reviewed, description, operations};

/// Who may use each operation of the `OpenAPI` document, in letters: viewer, researcher, lead, admin, an admin's token
/// for metrics only, worker, job, unauthenticated. Except for the job, the ids do not exist.
const MATRIX: &str = "src/server/tests/access/access.matrix";

/// What each form of a page requires.
const FORM_MATRIX: &str = "src/server/tests/access/form.matrix";

/// Returns the path of an operation.
fn address(path: &str, id: &str) -> String {
    path.replace("{id}", id).replace("{name}", "none").replace("{path}", "a/b")
}

/// Returns whether the caller is authorized for each operation.
async fn allowed_operations(server: &TestServer, actor: &Actor, job: &str, expected_codes: &[&str]) -> Vec<bool> {
    let document = description(server).await;
    let mut allowed = Vec::new();
    for (method, path, _) in operations(&document) {
        let id = if path.starts_with("/api/workers/job/") { job } else { "x_1" };
        let response = server.open(actor, &method.to_uppercase(), &address(&path, id), "{}").await;
        let is_rejected = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_rejected {
            let problem = read_response(response).await.json();
            let code = problem["code"].as_str().unwrap_or_default();
            assert!(expected_codes.contains(&code), "{actor:?}: {method} {path}: {problem}");
        }
        allowed.push(!is_rejected);
    }
    allowed
}

#[tokio::test]
async fn each_operation_allows_the_callers_in_the_matrix() {
    let server = TestServer::start().await;
    let unauthenticated_codes = &["not_authenticated", "worker_token_missing", "worker_token_invalid"];
    let permission_codes = &["permission_denied", "worker_token_missing"];
    let mut columns = Vec::new();
    for role in ["viewer", "researcher", "lead", "admin"] {
        let user = server.add_user(&format!("{role}-1"), role).await;
        let token = server.post(&user, "/api/account/tokens", json!({"name": "all"})).await.expect_status(201);
        let token = Actor::Token(token["secret"].as_str().expect("text").to_owned());
        let by_browser = allowed_operations(&server, &user, "x_1", permission_codes).await;
        let by_token = allowed_operations(&server, &token, "x_1", permission_codes).await;
        assert_eq!(by_browser, by_token, "{role}: a token has all permissions of its owner");
        columns.push((&role[..1], by_browser));
    }
    let metrics_token = json!({"name": "metrics", "scopes": ["ops.metrics"]});
    let metrics_token = server.post(&Actor::Admin, "/api/account/tokens", metrics_token).await.expect_status(201);
    let metrics_token = Actor::Token(metrics_token["secret"].as_str().expect("text").to_owned());
    columns.push(("m", allowed_operations(&server, &metrics_token, "x_1", permission_codes).await));
    let unauthenticated = allowed_operations(&server, &Actor::Unauthenticated, "x_1", unauthenticated_codes).await;
    for secret in ["jt_made-up", "wt_made-up", "sid=made-up"].map(str::to_owned) {
        let actor = match &secret[..1] {
            "j" => Actor::Job(secret),
            "w" => Actor::worker(secret),
            _ => Actor::Cookie(secret),
        };
        assert_eq!(
            allowed_operations(&server, &actor, "x_1", unauthenticated_codes).await,
            unauthenticated,
            "{actor:?} is rejected"
        );
    }
    for letter in ["w", "j"] {
        let server = TestServer::start().await;
        let (worker, job, id) = offered_job(&server).await;
        let actor = if letter == "w" { &worker } else { &job };
        columns.push((letter, allowed_operations(&server, actor, &id, unauthenticated_codes).await));
    }
    columns.push(("n", unauthenticated));
    let document = description(&server).await;
    let rows = operations(&document).into_iter().enumerate().map(|(row, (method, path, _))| {
        let letters: String = columns.iter().map(|(letter, all)| if all[row] { *letter } else { "_" }).collect();
        format!("{letters}  {:<6} {path}\n", method.to_uppercase())
    });
    let matrix: String = rows.collect();
    assert_reviewed(MATRIX, &matrix);
}

#[tokio::test]
async fn each_form_requires_what_the_matrix_says() {
    let server = TestServer::start().await;
    let (login, forms) = (login_routes(&server.app), form_routes(&server.app));
    let mut rows: Vec<String> =
        login.forms().iter().chain(forms.forms()).map(|(path, access)| format!("{path}  {access:?}\n")).collect();
    rows.sort();
    assert_reviewed(FORM_MATRIX, &rows.concat());
}

/// A worker that was offered a job: its token, the job's token, and the job's id.
async fn offered_job(server: &TestServer) -> (Actor, Actor, String) {
    let (_, worker, mut events) = server.connect_worker("gpu-1").await;
    server.put_config("one").await;
    let job = server.submit("one").await;
    let offer = events.next_offer().await;
    (worker, Actor::Job(offer.upload_token), job)
}

#[tokio::test]
async fn invalid_tokens_have_their_own_problem_codes() {
    let server = TestServer::start().await;
    let request = Request::builder().uri("/api/queue").header("x-api-key", "st_made-up").body(Body::empty());
    read_response(server.send(request.expect("a request")).await).await.expect_problem(401, "wrong_token");
}

#[tokio::test]
async fn both_headers_of_an_api_token_work() {
    let server = TestServer::start().await;
    for (name, value) in [("authorization", format!("bearer {ADMIN}")), ("x-api-key", ADMIN.to_owned())] {
        let request = Request::builder().uri("/api/session").header(name, value).body(Body::empty());
        let response = read_response(server.send(request.expect("a request")).await).await.expect_status(200);
        assert_eq!(response["name"], "admin");
    }
}

#[tokio::test]
async fn cross_site_forms_are_rejected() {
    for mode in [AuthMode::Accounts, AuthMode::SingleUser] {
        let server = TestServer::start_as(mode).await;
        let post = |headers: &[(&'static str, &'static str)]| {
            let mut request =
                Request::builder().method("POST").uri("/api/admin/workers").header("host", "localhost:8001");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            server.send(request.header("x-api-key", ADMIN).body(Body::from(r#"{"name": ""}"#)).expect("a request"))
        };
        for cross_site in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
        ] {
            read_response(post(cross_site).await).await.expect_problem(403, "cross_site_request");
        }
        for same_site in [&[("sec-fetch-site", "same-origin")][..], &[("origin", "http://localhost:8001")], &[]] {
            assert_ne!(read_response(post(same_site).await).await.status, StatusCode::FORBIDDEN);
        }
    }
}

#[tokio::test]
async fn single_user_mode_accepts_loopback_names_only() {
    let server = TestServer::start_as(AuthMode::SingleUser).await;
    let get = |host: &'static str| {
        server.send(Request::builder().uri("/api/queue").header("host", host).body(Body::empty()).expect("a request"))
    };
    for local_host in ["localhost:8001", "127.0.0.1:8001", "[::1]:8001"] {
        assert_eq!(read_response(get(local_host).await).await.status, StatusCode::OK, "{local_host}");
    }
    for foreign_host in ["evil.example:8001", "192.0.2.1", "localhost.evil.example"] {
        read_response(get(foreign_host).await).await.expect_problem(421, "unknown_host");
    }
}

#[tokio::test]
async fn documented_examples_without_token_work_in_single_user_mode() {
    let server = TestServer::start_as(AuthMode::SingleUser).await;
    let labels = json!({"name": "worker-1", "labels": {"location": "us-west", "gpu_type": "a100", "team": "nlp"}});
    let created = server.post(&Actor::Unauthenticated, "/api/admin/workers", labels).await.expect_status(201);
    assert!(created["worker_id"].as_str().is_some_and(|id| id.starts_with("w_")));
    assert!(created["token"].as_str().is_some_and(|token| token.starts_with("wt_")));
    let list = server.get(&Actor::Unauthenticated, "/api/admin/workers").await.expect_status(200);
    assert_eq!(list["workers"][0]["labels"]["team"], "nlp");
}

#[test]
fn all_worker_routes_share_one_prefix() {
    let mut worker_route_count = 0;
    for row in include_str!("access.matrix").lines() {
        let (callers, path) = (&row[..8], row.split_whitespace().last().expect("a path"));
        let is_worker_route = callers.contains(['w', 'j']) && !callers.contains('n');
        assert_eq!(is_worker_route, path.starts_with("/api/workers/"), "{row}");
        assert!(
            !is_worker_route || callers.trim_matches(['w', 'j', '_']).is_empty(),
            "no other caller is authorized: {row}"
        );
        worker_route_count += usize::from(is_worker_route);
    }
    assert!(worker_route_count >= 5, "the document names five");
}

#[tokio::test]
async fn worker_changes_require_admin_workers_only() {
    let server = TestServer::start().await;
    let token = async |name: &str, scopes: Vec<&str>| {
        let created = server
            .post(&Actor::Admin, "/api/account/tokens", json!({"name": name, "scopes": scopes}))
            .await
            .expect_status(201);
        Actor::Token(created["secret"].as_str().expect("text").to_owned())
    };
    let names = Permission::ALL.map(Permission::as_str);
    let other_scopes_token = token("others", names.into_iter().filter(|name| *name != "admin.workers").collect()).await;
    let (id, _) = server.create_worker("gpu-1").await;
    for (method, path) in [
        ("POST", "/api/admin/workers".to_owned()),
        ("POST", format!("/api/admin/workers/{id}/drain")),
        ("POST", format!("/api/admin/workers/{id}/token")),
        ("DELETE", format!("/api/admin/workers/{id}")),
    ] {
        let rejected = server
            .call(&other_scopes_token, method, &path, r#"{"name": "x"}"#)
            .await
            .expect_problem(403, "permission_denied");
        assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("admin.workers")), "{rejected}");
    }

    let admin = token("workers", vec!["admin.workers"]).await;
    let created = server.post(&admin, "/api/admin/workers", json!({"name": "gpu-2"})).await.expect_status(201);
    let worker = format!("/api/admin/workers/{}", created["worker_id"].as_str().expect("text"));
    let list = server.get(&admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(list["total"], 2);
    assert_eq!(server.call(&admin, "POST", &format!("{worker}/drain"), "").await.expect_status(200)["draining"], true);
    let rotated = server.call(&admin, "POST", &format!("{worker}/token"), "").await.expect_status(200);
    assert_ne!(rotated["token"], created["token"]);
    server.call(&admin, "DELETE", &worker, "").await.expect_status(200);
}
