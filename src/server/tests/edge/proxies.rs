//! Reverse proxies: which headers are trusted, and from whom. The tests' servers trust 10.0.0.0/8.

use std::net::IpAddr;

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::Value;

use crate::http::edge::request::Peer;
use crate::tests::harness::{ADMIN, TestResponse, TestServer, read_response};

/// Sends a request from this address, with the headers of a proxy.
async fn send_through_proxy(
    server: &TestServer,
    host: [u8; 4],
    proto: &str,
    method: &str,
    path: &str,
    body: &str,
) -> TestResponse {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "tuner.example");
    let request = request.header("x-forwarded-for", "203.0.113.9").header("x-forwarded-proto", proto);
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request = if path.starts_with("/api") {
        request.header(header::AUTHORIZATION, format!("Bearer {ADMIN}"))
    } else {
        request
    };
    let request = request.extension(Peer(IpAddr::from(host))).body(Body::from(body.to_owned())).expect("a request");
    read_response(server.send(request).await).await
}

async fn base_url(server: &TestServer, host: [u8; 4], proto: &str) -> Value {
    send_through_proxy(server, host, proto, "GET", "/api/session", "").await.expect_status(200)["base_url"].clone()
}

#[tokio::test]
async fn trusted_proxy_sets_the_scheme() {
    let server = TestServer::start().await;
    assert_eq!(base_url(&server, [10, 0, 0, 1], "https").await, "https://tuner.example");
    assert_eq!(base_url(&server, [10, 0, 0, 1], "http").await, "http://tuner.example");
    assert_eq!(base_url(&server, [192, 0, 2, 1], "https").await, "http://tuner.example", "anyone can write a header");
}

#[tokio::test]
async fn cookie_is_secure_behind_a_trusted_https_proxy() {
    let server = TestServer::start().await;
    let form = format!("password={ADMIN}");
    let cookie = async |host, proto| {
        let response = send_through_proxy(&server, host, proto, "POST", "/ui/login", &form).await;
        response.headers[header::SET_COOKIE].to_str().expect("ascii").to_owned()
    };
    let secure = cookie([10, 0, 0, 1], "https").await;
    assert!(
        secure.starts_with("__Host-sid=") && secure.ends_with("; Secure") && secure.contains("; Path=/;"),
        "{secure}"
    );
    for (host, proto) in [([10, 0, 0, 1], "http"), ([192, 0, 2, 1], "https")] {
        let plain = cookie(host, proto).await;
        assert!(plain.starts_with("sid=") && !plain.contains("Secure"), "{plain}");
    }
}

#[tokio::test]
async fn fingerprint_is_hidden_behind_a_tls_proxy() {
    let server = TestServer::start().await;
    let session = send_through_proxy(&server, [10, 0, 0, 1], "https", "GET", "/api/session", "").await;
    assert!(!session.headers.contains_key(header::STRICT_TRANSPORT_SECURITY), "the proxy decides about HSTS");
    assert_eq!(session.expect_status(200).get("fingerprint"), None);
}
