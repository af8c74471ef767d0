//! What unauthenticated clients can learn, and what they can write into logs.

use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::tests::harness::{Actor, PASSWORD, TestServer, read_response};

#[tokio::test]
async fn sign_in_does_not_reveal_user_names() {
    let server = TestServer::start().await;
    server.add_user("ada", "viewer").await;
    server.add_user("bob", "viewer").await;
    let path = format!("/api/admin/users/{}", server.user_id("bob").await);
    server.call(&Actor::Admin, "PATCH", &path, r#"{"disabled": true}"#).await.expect_status(200);
    server.post(&Actor::Admin, "/api/admin/users", json!({"name": "eve", "role": "viewer"})).await.expect_status(201);
    let mut pages = Vec::new();
    // A wrong password, an unknown user, a disabled user, and a user without a password.
    for (name, password) in [("ada", "wrong-password"), ("zoe", PASSWORD), ("bob", PASSWORD), ("eve", PASSWORD)] {
        let response =
            server.call(&Actor::Unauthenticated, "POST", "/ui/login", format!("name={name}&password={password}")).await;
        let location = response.headers[header::LOCATION].to_str().expect("ascii").to_owned();
        let cookie = response.headers[header::SET_COOKIE]
            .to_str()
            .expect("ascii")
            .split(';')
            .next()
            .expect("a cookie")
            .to_owned();
        assert!(cookie.starts_with("flash="), "no session: {cookie}");
        let page = server.get(&Actor::Cookie(cookie), &location).await;
        let text = page.text();
        let text = text.split_once("role=\"alert\"").expect("a rejection").1.split_once("<form").expect("a form").0;
        pages.push((response.status, page.status, text.replace(name, "NAME")));
    }
    let first_text = pages[0].2.clone();
    assert!(first_text.contains("Incorrect user name or password"), "{first_text}");
    let first_statuses = (pages[0].0, pages[0].1);
    assert!(pages.iter().all(|page| (page.0, page.1) == first_statuses), "{pages:?}");
    assert!(pages.iter().all(|page| page.2.contains("Incorrect user name or password")), "{pages:?}");
}

/// Captures log output.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for CapturedLog {
    type Writer = Self;
    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn log_lines_cannot_be_injected() {
    let log = CapturedLog::default();
    // With only one subscriber, a line that another test's thread reaches first is disabled for all threads by tracing.
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    let _guard = tracing::subscriber::set_default(subscriber.with_writer(log.clone()).finish());
    let server = TestServer::start().await;
    let (_, key) = server.create_worker("gpu-1").await;
    let forged_lines = "x\n2026-01-01T00:00:00Z ERROR forged\r\n\u{1b}[31mforged";
    let register = json!({"name": forged_lines, "host": forged_lines, "protocol": 1, "labels": {"a": "b\nforged"}});
    for actor in [&key, &Actor::worker("forged"), &Actor::Unauthenticated] {
        let _ = server.post(actor, "/api/workers/register", register.clone()).await;
    }
    server.call(&Actor::Unauthenticated, "POST", "/ui/login", "name=x%0Aforged&password=x%0Aforged").await;
    server.get(&Actor::Admin, "/api/queue/x%0Aforged").await;
    server.get(&Actor::Unauthenticated, "/x%0Aforged?next=%0Aforged").await;
    let request = Request::builder().uri("/api/queue").header(header::HOST, "localhost:8001");
    let request = request.header("x-request-id", "forged by someone").header(header::USER_AGENT, "forged\tagent");
    let response = read_response(server.send(request.body(Body::empty()).expect("a request")).await).await;
    assert_ne!(response.headers["x-request-id"], "forged by someone", "an invalid id is not accepted");
    let text = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
    assert!(text.lines().count() > 5, "something was logged: {text}");
    for line in text.lines() {
        let has_timestamp = line.as_bytes().get(..4).is_some_and(|year| year.iter().all(u8::is_ascii_digit));
        assert!(
            has_timestamp && !line.starts_with("2026-01-01T00:00:00Z ERROR") && !line.contains('\u{1b}'),
            "{line:?}"
        );
    }
}
