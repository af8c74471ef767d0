//! Problems have one format, and the server survives an unavailable database.

use std::collections::BTreeSet;

use app::ui::problem_sentence::ProblemSentence;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;

use crate::http::problem::codes::CODES;
use crate::store::Store;
use crate::tests::harness::{ADMIN, Actor, TestResponse, TestServer, read_response};

#[tokio::test]
async fn unknown_route_is_a_problem_document() {
    let server = TestServer::start().await;
    for path in ["/api/nowhere", "/api/queue/j_1/nowhere", "/api/admin/nowhere", "/api/workers/no/where", "/api"] {
        let problem = server.get(&Actor::Admin, path).await.expect_problem(404, "no_such_route");
        assert_eq!(problem["detail"], format!("{path:?} not found."), "the problem names the requested path");
    }
    server.call(&Actor::Admin, "PATCH", "/api/queue", "").await.expect_problem(405, "method_not_allowed");
}

#[tokio::test]
async fn unavailable_database_is_503_and_not_ready() {
    let server = TestServer::start().await;
    let (_, key) = server.create_worker("gpu-1").await;
    assert_eq!(server.get(&Actor::Unauthenticated, "/readyz").await.status, StatusCode::OK);
    let store: &std::sync::Arc<dyn Store> = &server.app.services.context.store;
    store.close().await;
    let response = server.get(&Actor::Admin, "/api/queue").await;
    assert_eq!(response.headers[header::RETRY_AFTER], "2");
    let problem = response.expect_problem(503, "database_unavailable");
    assert!(!problem.to_string().to_lowercase().contains("sqlite"), "internal errors are not revealed: {problem}");
    server.post(&key, "/api/workers/heartbeat", json!({})).await.expect_problem(503, "database_unavailable");
    assert_eq!(server.get(&Actor::Unauthenticated, "/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(server.get(&Actor::Unauthenticated, "/healthz").await.status, StatusCode::OK);
}

/// Returns the response to a browser with this language.
async fn browse(server: &TestServer, actor: &Actor, method: &str, path: &str, language: &str) -> TestResponse {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:8001");
    let request = request.header(header::ACCEPT, "text/html,*/*").header(header::ACCEPT_LANGUAGE, language);
    let request = match actor {
        Actor::Cookie(cookie) => request.header(header::COOKIE, cookie),
        _ => request,
    };
    read_response(server.send(request.body(Body::empty()).expect("a request")).await).await
}

#[tokio::test]
async fn problem_pages_are_localized() {
    let server = TestServer::start().await;
    let lea = server.add_user("lea", "lead").await;
    let cases = [
        ("POST", "/jobs", 405, "formularios"),
        ("GET", "/ui/logout", 405, "formularios"),
        ("GET", "/admin/system", 403, "admin.system"),
        ("GET", "/nowhere?x=1", 404, "Revise la dirección"),
    ];
    for (method, path, status, expected) in cases {
        let response = browse(&server, &lea, method, path, "es").await;
        assert_eq!(response.status.as_u16(), status, "{path}");
        let text = response.text();
        assert!(text.contains("lang=\"es\"") && text.contains("</html>"), "{path}: {text}");
        assert!(text.contains(expected), "{path} says {expected}: {text}");
        assert!(!text.contains(" style=\""), "{path}");
        assert!(
            response.headers[header::CONTENT_SECURITY_POLICY]
                .to_str()
                .is_ok_and(|policy| policy.contains("script-src"))
        );
    }
    let denied = browse(&server, &lea, "GET", "/admin/system", "es").await.text();
    assert!(denied.contains("Se requiere el permiso") && denied.contains("(admin)"), "{denied}");
    for (method, path) in [("POST", "/jobs"), ("GET", "/nowhere")] {
        let response = browse(&server, &lea, method, path, "es").await;
        let id = response.headers["x-request-id"].to_str().expect("text").to_owned();
        let page = response.text();
        assert!(
            page.contains("class=\"sidebar\"") && page.contains(">lea<"),
            "the page shows the signed-in user: {page}"
        );
        assert!(page.contains(&format!("ID de la solicitud: {id}")), "{page}");
    }
    // The API always returns JSON.
    browse(&server, &lea, "GET", "/api/nowhere", "es").await.expect_problem(404, "no_such_route");
}

#[tokio::test]
async fn unavailable_database_page_shows_since_when() {
    let server = TestServer::start().await;
    let lea = server.add_user("lea", "lead").await;
    server.app.services.context.store.close().await;
    assert!(server.app.services.system.renew_leadership().await.is_err());
    let since = server.app.services.context.now();
    server.clock.advance(app::domain::time::Millis::from_secs(90));
    assert!(server.app.services.system.renew_leadership().await.is_err(), "the database is still unavailable");
    let response = browse(&server, &lea, "GET", "/jobs", "en").await;
    assert_eq!(
        (response.status.as_u16(), &response.headers[header::RETRY_AFTER]),
        (503, &header::HeaderValue::from_static("2"))
    );
    let id = response.headers["x-request-id"].to_str().expect("text").to_owned();
    let text = response.text();
    assert!(text.contains("Database unavailable") && text.contains(&format!("datetime=\"{since}\"")), "{text}");
    assert!(text.contains(&format!("Request ID: {id}")) && !text.contains("class=\"sidebar\""), "{text}");
}

#[tokio::test]
async fn api_problems_are_in_the_language_that_is_asked_for() {
    let server = TestServer::start().await;
    let Actor::Cookie(session) = server.add_user("lea", "viewer").await else { panic!("a browser") };
    let in_japanese = Actor::Cookie(format!("{session}; language=ja"));
    let response = server.get(&in_japanese, "/api/admin/users").await;
    assert_eq!(response.headers[header::CONTENT_LANGUAGE], "ja");
    let problem = response.expect_problem(403, "permission_denied");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("この操作には権限")), "{problem}");
    assert_eq!((&problem["permission"], &problem["title"]), (&json!("admin.users"), &json!("Forbidden")));
    let english = server.get(&Actor::Cookie(session), "/api/admin/users").await;
    assert!(!english.headers.contains_key(header::CONTENT_LANGUAGE));
    let Actor::Cookie(admin) = server.add_user("ada", "admin").await else { panic!("a browser") };
    // A script gets the language that it asks for, by default English.
    let send = |name: &'static str, value: &str| {
        let request = Request::builder().uri("/api/admin/workers?sort=x").header(header::HOST, "localhost:8001");
        let request = request.header(header::ACCEPT_LANGUAGE, "ja").header(name, value);
        server.send(request.body(Body::empty()).expect("a request"))
    };
    for (name, credential) in [("authorization", format!("Bearer {ADMIN}")), ("cookie", admin)] {
        let rejection = read_response(send(name, &credential).await).await.expect_problem(422, "out_of_range");
        let translated = |detail: &str| detail.contains("sort") && !detail.is_ascii();
        assert!(rejection["detail"].as_str().is_some_and(translated), "{rejection}");
    }
    let default = server.get(&Actor::Admin, "/api/admin/workers?sort=x").await.expect_problem(422, "out_of_range");
    assert!(default["detail"].as_str().is_some_and(str::is_ascii), "{default}");
}

/// Requests with the problem that they get, and a part of its Japanese sentence.
const IN_JAPANESE: [(&str, &str, &str, u16, &str, &str); 10] = [
    ("GET", "/api/queue/j_none", "", 404, "job_not_found", "ジョブ j_none が見つかりません"),
    ("GET", "/api/queue/none", "", 404, "job_not_found", "ジョブ none が見つかりません"),
    ("GET", "/api/configs/none", "", 404, "config_not_found", "設定「none」が見つかりません"),
    ("GET", "/api/nowhere", "", 404, "no_such_route", "「/api/nowhere」が見つかりません"),
    ("PATCH", "/api/queue", "", 405, "method_not_allowed", "このルートはこのメソッドに対応していません"),
    ("GET", "/api/queue?limit=x", "", 400, "invalid_query", "クエリ文字列が正しくありません"),
    ("POST", "/api/queue/submit", "{", 400, "invalid_json", "ボディが想定されたJSONではありません"),
    (
        "POST",
        "/api/queue/submit",
        r#"{"config_name": "a", "target": "moon"}"#,
        400,
        "invalid_json",
        "`moon`は指定できません",
    ),
    ("POST", "/api/admin/workers", r#"{"name": ""}"#, 422, "invalid_name", "「」は名前として使えません"),
    (
        "POST",
        "/api/admin/workers/bulk/drain",
        r#"{"ids": ["none"]}"#,
        200,
        "worker_not_found",
        "ワーカー none が見つかりません",
    ),
];

#[tokio::test]
async fn every_kind_of_problem_is_told_in_japanese() {
    let server = TestServer::start().await;
    for (method, path, body, status, code, sentence) in IN_JAPANESE {
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:8001");
        let request =
            request.header(header::ACCEPT_LANGUAGE, "ja").header(header::AUTHORIZATION, format!("Bearer {ADMIN}"));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let response = read_response(server.send(request.body(Body::from(body)).expect("a request")).await).await;
        let language = response.headers.get(header::CONTENT_LANGUAGE).cloned();
        let document = response.expect_status(status);
        let problem = if status == 200 { &document["results"][0]["problem"] } else { &document };
        assert_eq!(problem["code"], code, "{method} {path}: {document}");
        assert!(
            problem["detail"].as_str().is_some_and(|detail| detail.contains(sentence)),
            "{method} {path}: {document}"
        );
        assert_eq!(status == 200, language.is_none(), "{method} {path}: a problem document names its language");
    }
    let anonymous = Request::builder().uri("/api/queue").header(header::HOST, "localhost:8001");
    let anonymous = anonymous.header(header::ACCEPT_LANGUAGE, "ja").body(Body::empty()).expect("a request");
    let rejected = read_response(server.send(anonymous).await).await.expect_problem(401, "not_authenticated");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("APIトークンを")), "{rejected}");
}

/// A code without a sentence, and a sentence without a code, are errors of the build or of this test.
#[test]
fn codes_are_those_that_have_a_sentence() {
    let described: BTreeSet<&str> = CODES.iter().map(|code| code.name).collect();
    let codes: BTreeSet<&str> = ProblemSentence::codes().collect();
    assert_eq!(codes, described, "server_pages.problems in app/locales/en.json, and http/problem/codes.rs");
}

#[tokio::test]
async fn form_errors_are_localized() {
    let server = TestServer::start().await;
    let Actor::Cookie(session) = server.add_user("ada", "admin").await else { panic!("a browser") };
    let post = async |path: &str, form: &str| -> String {
        let actor = Actor::Cookie(format!("{session}; language=ja"));
        let response = server.call(&actor, "POST", path, form.to_owned()).await;
        let flash = response.headers[header::SET_COOKIE]
            .to_str()
            .expect("text")
            .split(';')
            .next()
            .expect("a cookie")
            .to_owned();
        let location = response.headers[header::LOCATION].to_str().expect("text").to_owned();
        browse(&server, &Actor::Cookie(format!("{session}; {flash}")), "GET", &location, "ja").await.text()
    };
    let duplicate = post("/ui/users", "name=ada&role=viewer").await;
    assert!(duplicate.contains("この名前はすでに使われています"), "{duplicate}");
    let wrong_password = post("/ui/account/password", "old=not-the-password&new=another-good-one").await;
    assert!(wrong_password.contains("ユーザー名またはパスワードが正しくありません"), "{wrong_password}");
    let labels = post("/ui/workers", "name=x&labels=%3D1").await;
    assert!(labels.contains("ラベルが正しくありません"), "{labels}");
}
