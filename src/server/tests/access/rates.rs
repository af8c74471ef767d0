//! Rate limits: too many requests get 429 with the time to wait, and other clients are not affected.

use std::net::IpAddr;

use app::domain::time::Millis;
use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;

use crate::http::edge::request::Peer;
use crate::service::error::RateLimitKind;
use crate::service::policy::rate_quotas::RateQuotas;
use crate::tests::harness::{ADMIN, Actor, PASSWORD, TestResponse, TestServer, read_response};

/// Sends a GET request from an address, with this header.
async fn get(server: &TestServer, host: &str, path: &str, header_pair: (&str, &str)) -> TestResponse {
    send(server, host, "GET", path, header_pair, String::new()).await
}

async fn send(
    server: &TestServer,
    host: &str,
    method: &str,
    path: &str,
    header_pair: (&str, &str),
    body: String,
) -> TestResponse {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:8001");
    let host: IpAddr = host.parse().expect("an address");
    let request =
        request.header(header_pair.0, header_pair.1).extension(Peer(host)).body(Body::from(body)).expect("a request");
    read_response(server.send(request).await).await
}

async fn log_in(server: &TestServer, host: &str, name: &str, password: &str) -> bool {
    let form = format!("name={name}&password={password}");
    let content_type = ("content-type", "application/x-www-form-urlencoded");
    let response = send(server, host, "POST", "/ui/login", content_type, form).await;
    response.headers.get_all(header::SET_COOKIE).iter().any(|cookie| cookie.as_bytes().starts_with(b"sid="))
}

async fn start_with_limits(caller: u32, unauthenticated: u32, wrong_passwords: u32) -> TestServer {
    TestServer::start_with(|policy| policy.quotas = RateQuotas::new(caller, unauthenticated, wrong_passwords)).await
}

fn rejected_count(server: &TestServer, kind: RateLimitKind) -> u64 {
    let counts = server.app.services.access.authenticator.rate_limits.rejected();
    counts.iter().find(|(rejected_kind, _)| *rejected_kind == kind).expect("each kind").1
}

#[tokio::test]
async fn rate_limit_follows_the_caller_across_addresses() {
    let server = start_with_limits(1, 0, 0).await;
    let admin = ("x-api-key", ADMIN);
    for n in 0..10 {
        get(&server, &format!("192.0.2.{n}"), "/api/queue", admin).await.expect_status(200);
    }
    let response = get(&server, "192.0.2.99", "/api/queue", admin).await;
    assert_eq!(response.headers[header::RETRY_AFTER], "1");
    let problem = response.expect_problem(429, "too_many_requests");
    assert_eq!(problem["retry_after_seconds"], 1);
    assert_eq!(
        (rejected_count(&server, RateLimitKind::Caller), rejected_count(&server, RateLimitKind::Unauthenticated)),
        (1, 0)
    );
    server.clock.advance(Millis::from_secs(1));
    get(&server, "192.0.2.99", "/api/queue", admin).await.expect_status(200);
    server.clock.advance(Millis::from_secs(60));
    let audit_log = get(&server, "192.0.2.99", "/api/audit?action=access.denied", admin).await.expect_status(200);
    assert_eq!(audit_log["entries"][0]["detail"]["reason"], "too_many_requests");
    assert_eq!(audit_log["entries"][0]["actor"], "admin/bootstrap");
}

#[tokio::test]
async fn workers_behind_one_address_have_separate_limits() {
    let server = start_with_limits(1, 1, 1).await;
    let mut tokens = Vec::new();
    for n in 0..50 {
        server.clock.advance(Millis::from_secs(1));
        let (_, Actor::Worker(agent)) = server.create_worker(&format!("gpu-{n}")).await else { panic!("a worker") };
        tokens.push(agent.token().to_owned());
    }
    for token in &tokens {
        let worker = ("x-worker-token", token.as_str());
        let register = json!({"protocol": 1, "persistent": true}).to_string();
        let response =
            send(&server, "192.0.2.1", "POST", "/api/workers/register", worker, register).await.expect_status(200);
        let worker = ("x-worker-token", response["session"].as_str().expect("a session"));
        for _ in 0..9 {
            send(&server, "192.0.2.1", "POST", "/api/workers/heartbeat", worker, "{}".to_owned())
                .await
                .expect_status(200);
        }
    }
    let worker = ("x-worker-token", tokens[0].as_str());
    let one_more = send(&server, "192.0.2.1", "POST", "/api/workers/heartbeat", worker, "{}".to_owned()).await;
    one_more.expect_problem(429, "too_many_requests");
    assert_eq!(RateLimitKind::ALL.map(|kind| rejected_count(&server, kind)), [1, 0, 0, 0, 0]);
}

#[tokio::test]
async fn unauthenticated_clients_share_the_limit_of_their_network() {
    let server = start_with_limits(0, 1, 0).await;
    let accept_header = ("accept", "*/*");
    for n in 0..10 {
        get(&server, &format!("2001:db8::{n}"), "/api/queue", accept_header)
            .await
            .expect_problem(401, "not_authenticated");
    }
    for path in ["/api/queue", "/login", "/", "/no/such/page"] {
        get(&server, "2001:db8::99", path, accept_header).await.expect_problem(429, "too_many_requests");
    }
    get(&server, "2001:db8:0:1::1", "/api/queue", accept_header).await.expect_problem(401, "not_authenticated");
    get(&server, "2001:db8::99", "/api/queue", ("x-api-key", ADMIN)).await.expect_status(200);
    get(&server, "2001:db8::99", "/healthz", accept_header).await.expect_status(200);
    assert_eq!(rejected_count(&server, RateLimitKind::Unauthenticated), 4);
}

#[tokio::test]
async fn health_requests_are_rate_limited() {
    let server = start_with_limits(0, 2, 0).await;
    for _ in 0..20 {
        get(&server, "192.0.2.1", "/readyz", ("accept", "*/*")).await.expect_status(200);
        get(&server, "192.0.2.1", "/healthz", ("accept", "*/*")).await.expect_status(200);
    }
    get(&server, "192.0.2.1", "/readyz", ("accept", "*/*")).await.expect_problem(429, "too_many_requests");
    get(&server, "192.0.2.2", "/readyz", ("accept", "*/*")).await.expect_status(200);
}

#[tokio::test]
async fn invalid_tokens_are_rate_limited() {
    let server = start_with_limits(0, 2, 0).await;
    for n in 0..6 {
        let token = format!("made-up-{n}");
        get(&server, "192.0.2.1", "/api/queue", ("x-api-key", &token)).await.expect_problem(401, "wrong_token");
    }
    let path = "/api/workers/queue";
    for name in ["x-worker-token", "x-api-key"] {
        let path = if name == "x-api-key" { "/api/queue" } else { path };
        get(&server, "192.0.2.1", path, (name, "made-up")).await.expect_problem(429, "too_many_requests");
    }
    get(&server, "192.0.2.2", path, ("x-worker-token", "made-up")).await.expect_problem(401, "worker_token_invalid");
    get(&server, "192.0.2.1", "/api/queue", ("x-api-key", ADMIN)).await.expect_status(200);
}

#[tokio::test]
async fn current_password_guesses_are_rate_limited() {
    let server = start_with_limits(0, 0, 3).await;
    let ada = server.add_user("ada", "viewer").await;
    let guess = async |old: &str| {
        let body = json!({"old": old, "new": "another-password"});
        server.post(&ada, "/api/account/password", body).await
    };
    for n in 0..3 {
        guess(&format!("wrong-password-{n}")).await.expect_problem(401, "wrong_password");
    }
    guess(PASSWORD).await.expect_problem(429, "too_many_requests");
    let form = server.call(&ada, "POST", "/ui/account/password", format!("old={PASSWORD}&new=another-password")).await;
    assert_eq!(form.status, 303);
    assert!(
        log_in(&server, "192.0.2.1", "ada", "another-password").await.eq(&false),
        "the form did not change the password"
    );
    let audit_log = server.get(&Actor::Admin, "/api/audit?action=access.login_failed").await.text();
    assert!(audit_log.contains("wrong_password"), "{audit_log}");
    server.clock.advance(Millis::from_secs(60));
    guess(PASSWORD).await.expect_status(200);
}

#[tokio::test]
async fn password_guesses_are_limited_without_locking_out_the_owner() {
    let server = start_with_limits(0, 0, 3).await;
    server.add_user("ada", "lead").await;
    for _ in 0..20 {
        assert!(log_in(&server, "192.0.2.1", "ada", PASSWORD).await, "correct passwords do not count");
    }
    // Three per minute from a network, burst nine; one per name there, burst three; nine per name, burst 27.
    for n in 0..9 {
        for _ in 0..3 {
            assert!(!log_in(&server, &format!("198.51.100.{n}"), "ada", "wrong-password").await);
        }
    }
    assert!(!log_in(&server, "198.51.100.9", "ada", PASSWORD).await, "too many guesses for this name");
    assert!(log_in(&server, "192.0.2.1", "ada", PASSWORD).await, "another network is not affected");
    assert_eq!(rejected_count(&server, RateLimitKind::WrongPasswords), 1);
    server.clock.advance(Millis::from_secs(60));
    assert!(log_in(&server, "198.51.100.9", "ada", PASSWORD).await);

    server.clock.advance(Millis::from_secs(600));
    server.add_user("bob", "viewer").await;
    for n in 0..9 {
        assert!(!log_in(&server, "203.0.113.1", &format!("guess-{n}"), "wrong-password").await);
    }
    assert!(!log_in(&server, "203.0.113.1", "bob", PASSWORD).await, "too many guesses from this network");
    assert!(log_in(&server, "203.0.113.2", "bob", PASSWORD).await);
    let audit_log = server.get(&Actor::Admin, "/api/audit?action=access.login_failed").await.text();
    assert!(audit_log.contains("too_many_requests"), "{audit_log}");
}

/// Signs in with a browser; returns the cookie that identifies it.
async fn known_browser(server: &TestServer, host: &str, name: &str) -> String {
    let form = format!("name={name}&password={PASSWORD}");
    let content_type = ("content-type", "application/x-www-form-urlencoded");
    let response = send(server, host, "POST", "/ui/login", content_type, form).await;
    let cookies = response.headers.get_all(header::SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
    let device = cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with("device="));
    device.expect("a device cookie").to_owned()
}

/// Signs in with an existing cookie.
async fn log_in_again(server: &TestServer, host: &str, (name, password): (&str, &str), cookie: &str) -> bool {
    let request = Request::builder().method("POST").uri("/ui/login").header(header::HOST, "localhost:8001");
    let request = request.header("content-type", "application/x-www-form-urlencoded").header("cookie", cookie);
    let host: IpAddr = host.parse().expect("an address");
    let body = Body::from(format!("name={name}&password={password}"));
    let response = read_response(server.send(request.extension(Peer(host)).body(body).expect("a request")).await).await;
    response.headers.get_all(header::SET_COOKIE).iter().any(|cookie| cookie.as_bytes().starts_with(b"sid="))
}

#[tokio::test]
async fn guesses_in_one_network_do_not_block_another() {
    let server = start_with_limits(0, 0, 10).await;
    server.add_user("ada", "lead").await;
    for _ in 0..40 {
        assert!(!log_in(&server, "198.51.100.1", "ada", "wrong-password").await);
    }
    assert!(!log_in(&server, "198.51.100.1", "ada", PASSWORD).await, "too many guesses from this network");
    assert!(log_in(&server, "203.0.113.9", "ada", PASSWORD).await, "another network is not affected");
}

#[tokio::test]
async fn guesses_from_many_networks_are_limited_but_known_browsers_sign_in() {
    let server = start_with_limits(0, 0, 10).await;
    server.add_user("ada", "lead").await;
    server.add_user("eve", "viewer").await;
    let device = known_browser(&server, "192.0.2.1", "ada").await;
    let other = known_browser(&server, "192.0.2.2", "eve").await;
    // The sessions of these sign-ins expire: only the cookie identifies the browser.
    server.advance(Millis::from_secs(8 * 86_400)).await;
    for n in 0..200 {
        assert!(!log_in(&server, &format!("198.51.100.{n}"), "ada", "wrong-password").await);
    }
    assert!(!log_in(&server, "203.0.113.9", "ada", PASSWORD).await, "guesses from many networks are limited, too");
    let ada = ("ada", PASSWORD);
    for cookie in [other.as_str(), "device=made-up", &format!("{device}x")] {
        assert!(
            !log_in_again(&server, "203.0.113.9", ada, cookie).await,
            "{cookie} does not identify a browser of this user"
        );
    }
    assert!(log_in_again(&server, "203.0.113.9", ada, &device).await, "the browser is known");
    // A stolen cookie does not allow unlimited guesses.
    for _ in 0..40 {
        assert!(!log_in_again(&server, "203.0.113.7", ("ada", "wrong-password"), &device).await);
    }
    assert!(!log_in_again(&server, "203.0.113.7", ada, &device).await, "a known browser guesses no more than others");
}
