//! What every kind of answer carries, what cookies are like, and from whose pages forms are taken.

use app::ui::prefs::CHOICES;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, header};
use serde_json::json;

use super::harness::{ADMIN, Answer, By, PASSWORD, Server, read};
use crate::http::people;
use crate::http::request::Peer;
use crate::http::ui::forms;

/// Headers that every answer has, and what they say.
const ALWAYS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

fn assert_safe(what: &str, headers: &HeaderMap) {
    for (name, value) in ALWAYS {
        assert_eq!(headers.get(name).and_then(|value| value.to_str().ok()), Some(value), "{what}: {name}");
    }
    let policies: Vec<_> = headers.get_all(header::CONTENT_SECURITY_POLICY).iter().collect();
    let [policy] = policies[..] else { panic!("{what} has {} policies", policies.len()) };
    let policy = policy.to_str().expect("ascii");
    assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"), "{what}: {policy}");
    for directive in ["object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"] {
        assert!(policy.contains(directive), "{what}: {policy}");
    }
    assert!(policy.starts_with("default-src 'self'") || policy.starts_with("default-src 'none'"), "{what}: {policy}");
    assert!(!headers.contains_key(header::STRICT_TRANSPORT_SECURITY), "{what}: nothing is served over HTTPS here");
    assert!(headers.contains_key("x-request-id"), "{what}");
}

#[tokio::test]
async fn every_kind_of_answer_carries_the_same_protection() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let token = By::Job(events.offer().await.upload_token);
    server.report(&token, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    let path = format!("/api/workers/job/{job}/artifacts/a.txt?attempt=1");
    server.call(&token, "PUT", &path, "text").await.ok(200);
    let ada = server.person("ada", "admin").await;
    let kinds: Vec<(&str, &By, &str, String, u16)> = vec![
        ("a page", &ada, "GET", "/".to_owned(), 200),
        ("the login page", &By::Nobody, "GET", "/login".to_owned(), 200),
        ("a page that is none", &ada, "GET", "/nowhere".to_owned(), 404),
        ("a way to the login", &By::Nobody, "GET", "/".to_owned(), 303),
        ("a form", &ada, "POST", "/ui/preferences".to_owned(), 303),
        ("a form that is refused", &By::Nobody, "POST", "/ui/login".to_owned(), 303),
        ("JSON", &By::Admin, "GET", "/api/queue".to_owned(), 200),
        ("a problem", &By::Nobody, "GET", "/api/queue".to_owned(), 401),
        ("no route", &By::Admin, "GET", "/api/nowhere".to_owned(), 404),
        ("no method", &By::Admin, "PATCH", "/api/queue".to_owned(), 405),
        ("no such job", &By::Admin, "GET", "/api/queue/j_none".to_owned(), 404),
        ("a bad body", &By::Admin, "POST", "/api/queue/submit".to_owned(), 400),
        ("a log as text", &By::Admin, "GET", format!("/api/queue/{job}/logs?raw=1"), 200),
        ("a file", &By::Admin, "GET", format!("/api/queue/{job}/artifacts/a.txt"), 200),
        ("a worker's answer", &key, "GET", "/api/workers/queue".to_owned(), 200),
        ("a worker's refusal", &By::Nobody, "POST", "/api/workers/heartbeat".to_owned(), 401),
        ("health", &By::Nobody, "GET", "/healthz".to_owned(), 200),
    ];
    for (what, by, method, path, status) in kinds {
        let answer = server.call(by, method, &path, "").await;
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        assert_safe(what, &answer.headers);
        let kind = answer.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        assert!(answer.text().is_empty() || kind.contains('/'), "{what} says what it is");
        assert!(!kind.starts_with("text/") || kind.ends_with("charset=utf-8"), "{what}: {kind}");
    }
    for (what, by, path) in [
        ("a worker's stream", &key, "/api/workers/stream".to_owned()),
        ("a stream of events", &By::Admin, "/api/events".to_owned()),
        ("a log that is followed", &By::Admin, format!("/api/queue/{job}/logs?follow=1")),
    ] {
        let answer = server.open(by, "GET", &path, Body::empty()).await;
        assert_eq!(answer.status(), 200, "{what}");
        assert_safe(what, answer.headers());
    }
    let foreign = Request::builder().method("POST").uri("/ui/preferences").header(header::HOST, "localhost:8001");
    let foreign = foreign.header("sec-fetch-site", "cross-site").body(Body::empty()).expect("a request");
    assert_safe("another site's form", read(server.send(foreign).await).await.headers());
}

impl Answer {
    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn cookies(&self) -> Vec<String> {
        let all = self.headers.get_all(header::SET_COOKIE).iter();
        all.map(|cookie| cookie.to_str().expect("ascii").to_owned()).collect()
    }
}

/// Posts a form through a proxy that is listed, over what it says that the browser speaks.
async fn post(server: &Server, proto: &str, path: &str, form: &str) -> Answer {
    let request = Request::builder().method("POST").uri(path).header(header::HOST, "tuner.example");
    let request = request.header("x-forwarded-for", "203.0.113.9").header("x-forwarded-proto", proto);
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request = request.extension(Peer([10, 0, 0, 1].into())).body(Body::from(form.to_owned())).expect("a request");
    read(server.send(request).await).await
}

#[tokio::test]
async fn every_cookie_is_for_this_site_and_over_https_for_https_only() {
    let server = Server::start().await;
    server.person("ada", "viewer").await;
    for (path, form, names) in [
        ("/ui/preferences", "theme=light&language=ja&zone=x", &["theme", "language"][..]),
        ("/ui/preferences", "density=compact&keys=off&zone=local", &["density", "zone", "keys"]),
        ("/ui/login", "name=ada&password=wrong", &["flash"]),
        ("/ui/login", &format!("name=ada&password={PASSWORD}"), &["__Host-sid", "__Host-device"]),
    ] {
        let cookies = post(&server, "https", path, form).await.cookies();
        assert_eq!(cookies.len(), names.len(), "{cookies:?}");
        for (cookie, name) in cookies.iter().zip(names) {
            let hidden = CHOICES.contains(name) || cookie.contains("; HttpOnly");
            let fine = cookie.starts_with(&format!("{name}=")) && cookie.contains("; Path=/") && hidden;
            assert!(fine && cookie.contains("; SameSite=Lax") && cookie.matches("; Secure").count() == 1, "{cookie}");
        }
        let plain = post(&server, "http", path, form).await.cookies();
        assert!(!plain.is_empty() && plain.iter().all(|cookie| !cookie.contains("Secure")), "{plain:?}");
    }
}

/// What a browser says of the page that a request comes from, and whether it is carried out.
const FROM: [(&[(&str, &str)], bool); 11] = [
    (&[("sec-fetch-site", "same-origin")], true),
    (&[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:8001")], true),
    (&[("sec-fetch-site", "none")], true),
    (&[("origin", "http://localhost:8001")], true),
    (&[], true),
    (&[("sec-fetch-site", "same-site")], false),
    (&[("sec-fetch-site", "cross-site")], false),
    (&[("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")], false),
    (&[("origin", "https://evil.example")], false),
    (&[("origin", "http://localhost:8002")], false),
    (&[("origin", "null")], false),
];

#[tokio::test]
async fn no_route_that_changes_something_takes_another_sites_form() {
    let server = Server::start().await;
    let By::Cookie(cookie) = server.person("ada", "admin").await else { panic!("a browser") };
    let api = people(&server.app);
    let declared = api.declared("/api").into_iter().map(|route| (route.method, route.path));
    let of_pages = forms(&server.app);
    let of_pages = of_pages.forms().iter().map(|path| (Method::POST, path.clone()));
    let open = ["/ui/login", "/ui/login/code", "/ui/login/enrol", "/ui/setup", "/ui/preferences"]
        .map(|path| (Method::POST, path.to_owned()));
    let routes = declared.chain(of_pages).chain(open).filter(|(method, _)| method != Method::GET);
    let mut changed = 0;
    for (method, path) in routes {
        for (said, taken) in FROM.iter().filter(|(_, taken)| !taken || changed == 0) {
            let request = Request::builder().method(&method).uri(path.replace(['{', '}'], ""));
            let request = request.header(header::HOST, "localhost:8001").header(header::COOKIE, &cookie);
            let request = said.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            let answer = read(server.send(request.body(Body::from("{")).expect("a request")).await).await;
            let refused = answer.status == 403 && answer.text().contains("cross_site_request");
            assert_eq!(refused, !taken, "{method} {path} from {said:?}: {}", answer.text());
        }
        changed += 1;
    }
    assert!(changed > 30, "all of them: {changed}");
}

#[tokio::test]
async fn no_other_origin_may_read_an_answer() {
    let server = Server::start().await;
    for (method, path) in [
        ("OPTIONS", "/api/queue"),
        ("GET", "/api/queue"),
        ("GET", "/api/session"),
        ("GET", "/api/openapi.json"),
        ("GET", "/login"),
        ("OPTIONS", "/api/workers/heartbeat"),
        ("POST", "/api/queue/submit"),
    ] {
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:8001");
        let request = request.header("origin", "https://evil.example").header("x-api-key", ADMIN);
        let request = request.header("access-control-request-method", "POST");
        let request = request.header("access-control-request-headers", "x-api-key,content-type");
        let answer = read(server.send(request.body(Body::empty()).expect("a request")).await).await;
        let granted: Vec<_> =
            answer.headers.keys().filter(|name| name.as_str().starts_with("access-control-")).collect();
        assert!(granted.is_empty(), "{method} {path}: {granted:?}");
    }
}

#[tokio::test]
async fn behind_a_proxy_the_name_that_the_browser_uses_counts() {
    let server = Server::start().await;
    let from = async |origin: &str| {
        let request = Request::builder().method("POST").uri("/api/admin/workers").header(header::HOST, "tuner.example");
        let request = request.header("x-forwarded-for", "203.0.113.9").header("x-forwarded-proto", "https");
        let request = request.header("origin", origin).header("x-api-key", ADMIN).extension(Peer([10, 0, 0, 1].into()));
        read(server.send(request.body(Body::from(r#"{"name": "x"}"#)).expect("a request")).await).await
    };
    from("https://evil.example").await.problem(403, "cross_site_request");
    from("https://tuner.example.evil.example").await.problem(403, "cross_site_request");
    from("https://tuner.example").await.ok(201);
}

#[tokio::test]
async fn a_request_with_two_hosts_is_refused() {
    let server = Server::start().await;
    for hosts in [["localhost:8001", "evil.example"], ["localhost:8001", "localhost:8001"]] {
        let request = Request::builder().uri("/healthz").header(header::HOST, hosts[0]).header(header::HOST, hosts[1]);
        let answer = read(server.send(request.body(Body::empty()).expect("a request")).await).await;
        answer.problem(400, "several_hosts");
    }
}

#[tokio::test]
async fn what_is_no_route_shows_no_files_and_repeats_no_request() {
    let server = Server::start().await;
    for path in ["/pkg/", "/.git/config", "/.env", "/configs/", "/api/", "/docs/"] {
        assert_eq!(server.get(&By::Admin, path).await.status, 404, "{path}");
    }
    for path in ["/", "/api/queue", "/healthz"] {
        let answer = server.call(&By::Admin, "TRACE", path, "").await;
        assert!(answer.status == 405 && !answer.text().contains(ADMIN), "{path}: {} {}", answer.status, answer.text());
    }
}

#[tokio::test]
async fn a_field_that_is_given_twice_is_refused() {
    let server = Server::start().await;
    server.get(&By::Admin, "/api/queue?limit=1&limit=2").await.problem(400, "invalid_query");
    let body = Body::from(r#"{"name": "a", "name": "b"}"#);
    server.call(&By::Admin, "POST", "/api/admin/workers", body).await.problem(400, "invalid_json");
}

#[tokio::test]
async fn a_logout_empties_what_the_browser_keeps() {
    let server = Server::start().await;
    let ada = server.person("ada", "viewer").await;
    let answer = server.call(&ada, "POST", "/ui/logout", "").await;
    assert_eq!(answer.headers["clear-site-data"], r#""cache", "storage""#);
    assert!(answer.cookies().iter().any(|cookie| cookie.starts_with("sid=;") && cookie.contains("Max-Age=0")));
}
