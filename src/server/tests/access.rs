//! Who gets in.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::json;

use super::harness::{ADMIN, By, Server, read};
use super::openapi::{as_reviewed, description, operations};
use crate::http::access::Mode;

/// Who may use each operation of the description, in letters: viewer, researcher, lead, admin, an admin's
/// token that is for metrics only, worker, job, nobody. An
/// id is of something that is not there, but for the job's.
const MATRIX: &str = "src/server/tests/access.matrix";

/// Where an operation is asked.
fn address(path: &str, id: &str) -> String {
    path.replace("{id}", id).replace("{name}", "none").replace("{path}", "a/b")
}

/// Whether somebody is let in to each operation.
async fn let_in(server: &Server, by: &By, job: &str, expected: &[&str]) -> Vec<bool> {
    let document = description(server).await;
    let mut all = Vec::new();
    for (method, path, _) in operations(&document) {
        let id = if path.starts_with("/api/workers/job/") { job } else { "x_1" };
        let answer = server.open(by, &method.to_uppercase(), &address(&path, id), "{}").await;
        let out = matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if out {
            let problem = read(answer).await.json();
            let code = problem["code"].as_str().unwrap_or_default();
            assert!(expected.contains(&code), "{by:?}: {method} {path}: {problem}");
        }
        all.push(!out);
    }
    all
}

#[tokio::test]
async fn each_operation_lets_in_who_stands_in_the_matrix() {
    let server = Server::start().await;
    let strange = &["not_authenticated", "worker_token_missing", "worker_token_refused"];
    let known = &["permission_denied", "worker_token_missing"];
    let mut columns = Vec::new();
    for role in ["viewer", "researcher", "lead", "admin"] {
        let person = server.person(&format!("{role}-1"), role).await;
        let token = server.post(&person, "/api/account/tokens", json!({"name": "all"})).await.ok(201);
        let token = By::Token(token["secret"].as_str().expect("text").to_owned());
        let by_browser = let_in(&server, &person, "x_1", known).await;
        let by_token = let_in(&server, &token, "x_1", known).await;
        assert_eq!(by_browser, by_token, "{role}: a token is for all that its owner may do");
        columns.push((&role[..1], by_browser));
    }
    let narrow = json!({"name": "metrics", "scopes": ["ops.metrics"]});
    let narrow = server.post(&By::Admin, "/api/account/tokens", narrow).await.ok(201);
    let narrow = By::Token(narrow["secret"].as_str().expect("text").to_owned());
    columns.push(("m", let_in(&server, &narrow, "x_1", known).await));
    let nobody = let_in(&server, &By::Nobody, "x_1", strange).await;
    for made_up in ["jt_made-up", "wt_made-up", "sid=made-up"].map(str::to_owned) {
        let by = match &made_up[..1] {
            "j" => By::Job(made_up),
            "w" => By::worker(made_up),
            _ => By::Cookie(made_up),
        };
        assert_eq!(let_in(&server, &by, "x_1", strange).await, nobody, "{by:?} opens nothing");
    }
    for letter in ["w", "j"] {
        let server = Server::start().await;
        let (worker, job, id) = at_work(&server).await;
        let by = if letter == "w" { &worker } else { &job };
        columns.push((letter, let_in(&server, by, &id, strange).await));
    }
    columns.push(("n", nobody));
    let document = description(&server).await;
    let rows = operations(&document).into_iter().enumerate().map(|(row, (method, path, _))| {
        let who: String = columns.iter().map(|(letter, all)| if all[row] { *letter } else { "_" }).collect();
        format!("{who}  {:<6} {path}\n", method.to_uppercase())
    });
    let found: String = rows.collect();
    as_reviewed(MATRIX, &found);
}

/// A worker that was offered a job: its key, the job's, and the job's id.
async fn at_work(server: &Server) -> (By, By, String) {
    let (_, worker, mut events) = server.online("gpu-1").await;
    server.config("one").await;
    let job = server.submit("one").await;
    let offer = events.offer().await;
    (worker, By::Job(offer.upload_token), job)
}

#[tokio::test]
async fn a_token_that_is_none_is_refused_by_its_own_name() {
    let server = Server::start().await;
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
