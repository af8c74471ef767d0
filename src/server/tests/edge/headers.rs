//! Headers of all kinds of responses, cookie attributes, and the origins from which forms are accepted.

use app::ui::prefs::PREFERENCE_COOKIES;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, header};
use serde_json::json;

use crate::http::edge::request::Peer;
use crate::http::ui::form_routes;
use crate::http::user_routes;
use crate::tests::harness::{ADMIN, Actor, PASSWORD, TestResponse, TestServer, read_response};

/// Headers of every response with their values.
const SECURITY_HEADERS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

fn assert_safe(label: &str, headers: &HeaderMap) {
    for (name, value) in SECURITY_HEADERS {
        assert_eq!(headers.get(name).and_then(|value| value.to_str().ok()), Some(value), "{label}: {name}");
    }
    let policies: Vec<_> = headers.get_all(header::CONTENT_SECURITY_POLICY).iter().collect();
    let [policy] = policies[..] else { panic!("{label} has {} policies", policies.len()) };
    let policy = policy.to_str().expect("ascii");
    assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"), "{label}: {policy}");
    for directive in ["object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"] {
        assert!(policy.contains(directive), "{label}: {policy}");
    }
    assert!(policy.starts_with("default-src 'self'") || policy.starts_with("default-src 'none'"), "{label}: {policy}");
    assert!(!headers.contains_key(header::STRICT_TRANSPORT_SECURITY), "{label}: nothing is served over HTTPS here");
    assert!(headers.contains_key("x-request-id"), "{label}");
}

#[tokio::test]
async fn all_responses_have_the_security_headers() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    server.report_status(&token, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let path = format!("/api/workers/job/{job}/artifacts/a.txt?attempt=1");
    server.call(&token, "PUT", &path, "text").await.expect_status(200);
    let ada = server.add_user("ada", "admin").await;
    let kinds: Vec<(&str, &Actor, &str, String, u16)> = vec![
        ("a page", &ada, "GET", "/".to_owned(), 200),
        ("the login page", &Actor::Unauthenticated, "GET", "/login".to_owned(), 200),
        ("an unknown page", &ada, "GET", "/nowhere".to_owned(), 404),
        ("a redirect to the login", &Actor::Unauthenticated, "GET", "/".to_owned(), 303),
        ("a form", &ada, "POST", "/ui/preferences".to_owned(), 303),
        ("a failed login", &Actor::Unauthenticated, "POST", "/ui/login".to_owned(), 303),
        ("JSON", &Actor::Admin, "GET", "/api/queue".to_owned(), 200),
        ("a problem", &Actor::Unauthenticated, "GET", "/api/queue".to_owned(), 401),
        ("an unknown route", &Actor::Admin, "GET", "/api/nowhere".to_owned(), 404),
        ("a wrong method", &Actor::Admin, "PATCH", "/api/queue".to_owned(), 405),
        ("an unknown job", &Actor::Admin, "GET", "/api/queue/j_none".to_owned(), 404),
        ("a bad body", &Actor::Admin, "POST", "/api/queue/submit".to_owned(), 400),
        ("a log as text", &Actor::Admin, "GET", format!("/api/queue/{job}/logs?raw=1"), 200),
        ("a file", &Actor::Admin, "GET", format!("/api/queue/{job}/artifacts/a.txt"), 200),
        ("a response to a worker", &key, "GET", "/api/workers/queue".to_owned(), 200),
        ("a missing worker token", &Actor::Unauthenticated, "POST", "/api/workers/heartbeat".to_owned(), 401),
        ("health", &Actor::Unauthenticated, "GET", "/healthz".to_owned(), 200),
    ];
    for (label, actor, method, path, status) in kinds {
        let response = server.call(actor, method, &path, "").await;
        assert_eq!(response.status, status, "{label}: {}", response.text());
        assert_safe(label, &response.headers);
        let kind = response.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        assert!(response.text().is_empty() || kind.contains('/'), "{label} has a content type");
        assert!(!kind.starts_with("text/") || kind.ends_with("charset=utf-8"), "{label}: {kind}");
    }
    for (label, actor, path) in [
        ("a worker's stream", &key, "/api/workers/stream".to_owned()),
        ("a stream of events", &Actor::Admin, "/api/events".to_owned()),
        ("a log that is followed", &Actor::Admin, format!("/api/queue/{job}/logs?follow=1")),
    ] {
        let response = server.open(actor, "GET", &path, Body::empty()).await;
        assert_eq!(response.status(), 200, "{label}");
        assert_safe(label, response.headers());
    }
    let foreign = Request::builder().method("POST").uri("/ui/preferences").header(header::HOST, "localhost:8001");
    let foreign = foreign.header("sec-fetch-site", "cross-site").body(Body::empty()).expect("a request");
    assert_safe("another site's form", read_response(server.send(foreign).await).await.headers());
}

impl TestResponse {
    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn cookies(&self) -> Vec<String> {
        let all = self.headers.get_all(header::SET_COOKIE).iter();
        all.map(|cookie| cookie.to_str().expect("ascii").to_owned()).collect()
    }
}

/// Posts a form through a trusted proxy with this protocol of the browser.
async fn post(server: &TestServer, proto: &str, path: &str, form: &str) -> TestResponse {
    let request = Request::builder().method("POST").uri(path).header(header::HOST, "tuner.example");
    let request = request.header("x-forwarded-for", "203.0.113.9").header("x-forwarded-proto", proto);
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request = request.extension(Peer([10, 0, 0, 1].into())).body(Body::from(form.to_owned())).expect("a request");
    read_response(server.send(request).await).await
}

#[tokio::test]
async fn cookies_are_same_site_and_secure_over_https() {
    let server = TestServer::start().await;
    server.add_user("ada", "viewer").await;
    for (path, form, names) in [
        ("/ui/preferences", "theme=light&language=ja&zone=x", &["theme", "language"][..]),
        ("/ui/preferences", "density=compact&keys=off&zone=local", &["density", "zone", "keys"]),
        ("/ui/login", "name=ada&password=wrong", &["flash"]),
        ("/ui/login", &format!("name=ada&password={PASSWORD}"), &["__Host-sid", "__Host-device"]),
    ] {
        let cookies = post(&server, "https", path, form).await.cookies();
        assert_eq!(cookies.len(), names.len(), "{cookies:?}");
        for (cookie, name) in cookies.iter().zip(names) {
            let is_http_only = PREFERENCE_COOKIES.contains(name) || cookie.contains("; HttpOnly");
            let has_attributes = cookie.starts_with(&format!("{name}=")) && cookie.contains("; Path=/") && is_http_only;
            assert!(
                has_attributes && cookie.contains("; SameSite=Lax") && cookie.matches("; Secure").count() == 1,
                "{cookie}"
            );
        }
        let plain = post(&server, "http", path, form).await.cookies();
        assert!(!plain.is_empty() && plain.iter().all(|cookie| !cookie.contains("Secure")), "{plain:?}");
    }
}

/// Headers about the origin of a request, and whether it is accepted.
const ORIGIN_CASES: [(&[(&str, &str)], bool); 11] = [
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
async fn changing_routes_reject_cross_site_forms() {
    let server = TestServer::start().await;
    let Actor::Cookie(cookie) = server.add_user("ada", "admin").await else { panic!("a browser") };
    let api = user_routes(&server.app);
    let declared = api.declared_below("/api").into_iter().map(|route| (route.method, route.path));
    let page_forms = form_routes(&server.app);
    let page_forms = page_forms.forms().iter().map(|(path, _)| (Method::POST, path.clone()));
    let public_forms = ["/ui/login", "/ui/login/code", "/ui/login/enrol", "/ui/setup", "/ui/preferences"]
        .map(|path| (Method::POST, path.to_owned()));
    let routes = declared.chain(page_forms).chain(public_forms).filter(|(method, _)| method != Method::GET);
    let mut route_count = 0;
    for (method, path) in routes {
        for (origin_headers, allowed) in ORIGIN_CASES.iter().filter(|(_, allowed)| !allowed || route_count == 0) {
            let request = Request::builder().method(&method).uri(path.replace(['{', '}'], ""));
            let request = request.header(header::HOST, "localhost:8001").header(header::COOKIE, &cookie);
            let request = origin_headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            let response = read_response(server.send(request.body(Body::from("{")).expect("a request")).await).await;
            let rejected = response.status == 403 && response.text().contains("cross_site_request");
            assert_eq!(rejected, !allowed, "{method} {path} from {origin_headers:?}: {}", response.text());
        }
        route_count += 1;
    }
    assert!(route_count > 30, "too few routes: {route_count}");
}

#[tokio::test]
async fn denied_forms_lead_back_to_a_page() {
    let server = TestServer::start().await;
    let viewer = server.add_user("vic", "viewer").await;
    let routes = form_routes(&server.app);
    for (path, _) in routes.forms().iter().filter(|(path, _)| path != "/ui/logout") {
        let response = server.call(&viewer, "POST", &path.replace(['{', '}'], ""), "").await;
        assert!(response.status != 403, "{path}: use forms::empty_routes, not Routes::new: {}", response.text());
    }
}

#[tokio::test]
async fn responses_allow_no_other_origin() {
    let server = TestServer::start().await;
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
        let response = read_response(server.send(request.body(Body::empty()).expect("a request")).await).await;
        let granted: Vec<_> =
            response.headers.keys().filter(|name| name.as_str().starts_with("access-control-")).collect();
        assert!(granted.is_empty(), "{method} {path}: {granted:?}");
    }
}

#[tokio::test]
async fn origin_check_uses_the_browsers_host_behind_a_proxy() {
    let server = TestServer::start().await;
    let post_from = async |origin: &str| {
        let request = Request::builder().method("POST").uri("/api/admin/workers").header(header::HOST, "tuner.example");
        let request = request.header("x-forwarded-for", "203.0.113.9").header("x-forwarded-proto", "https");
        let request = request.header("origin", origin).header("x-api-key", ADMIN).extension(Peer([10, 0, 0, 1].into()));
        read_response(server.send(request.body(Body::from(r#"{"name": "x"}"#)).expect("a request")).await).await
    };
    post_from("https://evil.example").await.expect_problem(403, "cross_site_request");
    post_from("https://tuner.example.evil.example").await.expect_problem(403, "cross_site_request");
    post_from("https://tuner.example").await.expect_status(201);
}

#[tokio::test]
async fn request_with_two_hosts_is_rejected() {
    let server = TestServer::start().await;
    for hosts in [["localhost:8001", "evil.example"], ["localhost:8001", "localhost:8001"]] {
        let request = Request::builder().uri("/healthz").header(header::HOST, hosts[0]).header(header::HOST, hosts[1]);
        let response = read_response(server.send(request.body(Body::empty()).expect("a request")).await).await;
        response.expect_problem(400, "multiple_hosts");
    }
}

#[tokio::test]
async fn unknown_routes_reveal_no_files_and_echo_nothing() {
    let server = TestServer::start().await;
    for path in ["/pkg/", "/.git/config", "/.env", "/configs/", "/api/", "/docs/"] {
        assert_eq!(server.get(&Actor::Admin, path).await.status, 404, "{path}");
    }
    for path in ["/", "/api/queue", "/healthz"] {
        let response = server.call(&Actor::Admin, "TRACE", path, "").await;
        assert!(
            response.status == 405 && !response.text().contains(ADMIN),
            "{path}: {} {}",
            response.status,
            response.text()
        );
    }
}

#[tokio::test]
async fn duplicate_field_is_rejected() {
    let server = TestServer::start().await;
    server.get(&Actor::Admin, "/api/queue?limit=1&limit=2").await.expect_problem(400, "invalid_query");
    let body = Body::from(r#"{"name": "a", "name": "b"}"#);
    server.call(&Actor::Admin, "POST", "/api/admin/workers", body).await.expect_problem(400, "invalid_json");
}

#[tokio::test]
async fn sign_out_clears_the_browsers_data() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "viewer").await;
    let response = server.call(&ada, "POST", "/ui/logout", "").await;
    assert_eq!(response.headers["clear-site-data"], r#""cache", "storage""#);
    assert!(response.cookies().iter().any(|cookie| cookie.starts_with("sid=;") && cookie.contains("Max-Age=0")));
}
