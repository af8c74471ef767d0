//! Authorization of all routes.

use app::domain::access::Permission;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::json;

use crate::http::state::AuthMode;
use crate::http::ui::{form_routes, login_routes};
use crate::tests::harness::{ADMIN, Actor, TestServer, read_response};
use crate::tests::openapi::{assert_reviewed, description, operations};

/// Who may use each operation of the `OpenAPI` document, in letters: viewer, researcher, lead, admin, an admin's token for
/// metrics only, worker, job, unauthenticated. Except for the job, ids are of things that do not exist.
const MATRIX: &str = "src/server/tests/access/access.matrix";

/// What each form of a page requires.
const FORM_MATRIX: &str = "src/server/tests/access/form.matrix";

/// Returns the path of an operation.
fn address(path: &str, id: &str) -> String {
    path.replace("{id}", id).replace("{name}", "none").replace("{path}", "a/b")
}

/// Returns whether the caller is authorized for each operation.
async fn allowed_operations(server: &TestServer, by: &Actor, job: &str, expected: &[&str]) -> Vec<bool> {
    let document = description(server).await;
    let mut all = Vec::new();
    for (method, path, _) in operations(&document) {
        let id = if path.starts_with("/api/workers/job/") { job } else { "x_1" };
        let answer = server.open(by, &method.to_uppercase(), &address(&path, id), "{}").await;
        let out = matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if out {
            let problem = read_response(answer).await.json();
            let code = problem["code"].as_str().unwrap_or_default();
            assert!(expected.contains(&code), "{by:?}: {method} {path}: {problem}");
        }
        all.push(!out);
    }
    all
}

#[tokio::test]
async fn each_operation_allows_the_callers_in_the_matrix() {
    let server = TestServer::start().await;
    let strange = &["not_authenticated", "worker_token_missing", "worker_token_invalid"];
    let known = &["permission_denied", "worker_token_missing"];
    let mut columns = Vec::new();
    for role in ["viewer", "researcher", "lead", "admin"] {
        let user = server.add_user(&format!("{role}-1"), role).await;
        let token = server.post(&user, "/api/account/tokens", json!({"name": "all"})).await.expect_status(201);
        let token = Actor::Token(token["secret"].as_str().expect("text").to_owned());
        let by_browser = allowed_operations(&server, &user, "x_1", known).await;
        let by_token = allowed_operations(&server, &token, "x_1", known).await;
        assert_eq!(by_browser, by_token, "{role}: a token is for all that its owner may do");
        columns.push((&role[..1], by_browser));
    }
    let narrow = json!({"name": "metrics", "scopes": ["ops.metrics"]});
    let narrow = server.post(&Actor::Admin, "/api/account/tokens", narrow).await.expect_status(201);
    let narrow = Actor::Token(narrow["secret"].as_str().expect("text").to_owned());
    columns.push(("m", allowed_operations(&server, &narrow, "x_1", known).await));
    let unauthenticated = allowed_operations(&server, &Actor::Nobody, "x_1", strange).await;
    for secret in ["jt_made-up", "wt_made-up", "sid=made-up"].map(str::to_owned) {
        let by = match &secret[..1] {
            "j" => Actor::Job(secret),
            "w" => Actor::worker(secret),
            _ => Actor::Cookie(secret),
        };
        assert_eq!(allowed_operations(&server, &by, "x_1", strange).await, unauthenticated, "{by:?} is rejected");
    }
    for letter in ["w", "j"] {
        let server = TestServer::start().await;
        let (worker, job, id) = offered_job(&server).await;
        let by = if letter == "w" { &worker } else { &job };
        columns.push((letter, allowed_operations(&server, by, &id, strange).await));
    }
    columns.push(("n", unauthenticated));
    let document = description(&server).await;
    let rows = operations(&document).into_iter().enumerate().map(|(row, (method, path, _))| {
        let letters: String = columns.iter().map(|(letter, all)| if all[row] { *letter } else { "_" }).collect();
        format!("{letters}  {:<6} {path}\n", method.to_uppercase())
    });
    let found: String = rows.collect();
    assert_reviewed(MATRIX, &found);
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
    let wrong = Request::builder().uri("/api/queue").header("x-api-key", "st_made-up").body(Body::empty());
    read_response(server.send(wrong.expect("a request")).await).await.expect_problem(401, "wrong_token");
}

#[tokio::test]
async fn both_headers_of_an_api_token_work() {
    let server = TestServer::start().await;
    for (name, value) in [("authorization", format!("bearer {ADMIN}")), ("x-api-key", ADMIN.to_owned())] {
        let request = Request::builder().uri("/api/session").header(name, value).body(Body::empty());
        let answer = read_response(server.send(request.expect("a request")).await).await.expect_status(200);
        assert_eq!(answer["name"], "admin");
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
        for foreign in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
        ] {
            read_response(post(foreign).await).await.expect_problem(403, "cross_site_request");
        }
        for own in [&[("sec-fetch-site", "same-origin")][..], &[("origin", "http://localhost:8001")], &[]] {
            assert_ne!(read_response(post(own).await).await.status, StatusCode::FORBIDDEN);
        }
    }
}

#[tokio::test]
async fn single_user_mode_accepts_loopback_names_only() {
    let server = TestServer::start_as(AuthMode::SingleUser).await;
    let get = |host: &'static str| {
        server.send(Request::builder().uri("/api/queue").header("host", host).body(Body::empty()).expect("a request"))
    };
    for own in ["localhost:8001", "127.0.0.1:8001", "[::1]:8001"] {
        assert_eq!(read_response(get(own).await).await.status, StatusCode::OK, "{own}");
    }
    for foreign in ["evil.example:8001", "192.0.2.1", "localhost.evil.example"] {
        read_response(get(foreign).await).await.expect_problem(421, "unknown_host");
    }
}

#[tokio::test]
async fn documented_examples_without_token_work_in_single_user_mode() {
    let server = TestServer::start_as(AuthMode::SingleUser).await;
    let labels = json!({"name": "worker-1", "labels": {"location": "us-west", "gpu_type": "a100", "team": "nlp"}});
    let created = server.post(&Actor::Nobody, "/api/admin/workers", labels).await.expect_status(201);
    assert!(created["worker_id"].as_str().is_some_and(|id| id.starts_with("w_")));
    assert!(created["token"].as_str().is_some_and(|token| token.starts_with("wt_")));
    let listed = server.get(&Actor::Nobody, "/api/admin/workers").await.expect_status(200);
    assert_eq!(listed["workers"][0]["labels"]["team"], "nlp");
}

#[test]
fn all_worker_routes_share_one_prefix() {
    let mut of_workers = 0;
    for row in include_str!("access.matrix").lines() {
        let (callers, path) = (&row[..8], row.split_whitespace().last().expect("a path"));
        let by_worker = callers.contains(['w', 'j']) && !callers.contains('n');
        assert_eq!(by_worker, path.starts_with("/api/workers/"), "{row}");
        assert!(!by_worker || callers.trim_matches(['w', 'j', '_']).is_empty(), "no other caller is authorized: {row}");
        of_workers += usize::from(by_worker);
    }
    assert!(of_workers >= 5, "the document names five");
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
    let named = Permission::ALL.map(Permission::as_str);
    let others = token("others", named.into_iter().filter(|name| *name != "admin.workers").collect()).await;
    let (id, _) = server.create_worker("gpu-1").await;
    for (method, path) in [
        ("POST", "/api/admin/workers".to_owned()),
        ("POST", format!("/api/admin/workers/{id}/drain")),
        ("POST", format!("/api/admin/workers/{id}/token")),
        ("DELETE", format!("/api/admin/workers/{id}")),
    ] {
        let rejected =
            server.call(&others, method, &path, r#"{"name": "x"}"#).await.expect_problem(403, "permission_denied");
        assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("admin.workers")), "{rejected}");
    }

    let admin = token("workers", vec!["admin.workers"]).await;
    let created = server.post(&admin, "/api/admin/workers", json!({"name": "gpu-2"})).await.expect_status(201);
    let worker = format!("/api/admin/workers/{}", created["worker_id"].as_str().expect("text"));
    let listed = server.get(&admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(listed["total"], 2);
    assert_eq!(server.call(&admin, "POST", &format!("{worker}/drain"), "").await.expect_status(200)["draining"], true);
    let rotated = server.call(&admin, "POST", &format!("{worker}/token"), "").await.expect_status(200);
    assert_ne!(rotated["token"], created["token"]);
    server.call(&admin, "DELETE", &worker, "").await.expect_status(200);
}
