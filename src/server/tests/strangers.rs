//! What strangers can learn, and what they can put into logs.

use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::harness::{By, PASSWORD, Server, read};

#[tokio::test]
async fn a_login_does_not_tell_who_is_there() {
    let server = Server::start().await;
    server.person("ada", "viewer").await;
    server.person("bob", "viewer").await;
    let path = format!("/api/admin/users/{}", server.id_of("bob").await);
    server.call(&By::Admin, "PATCH", &path, r#"{"disabled": true}"#).await.ok(200);
    server.post(&By::Admin, "/api/admin/users", json!({"name": "eve", "role": "viewer"})).await.ok(201);
    let mut pages = Vec::new();
    // A wrong password, nobody of that name, somebody who is shut out, and somebody without a password.
    for (name, password) in [("ada", "wrong-password"), ("zoe", PASSWORD), ("bob", PASSWORD), ("eve", PASSWORD)] {
        let answer = server.call(&By::Nobody, "POST", "/ui/login", format!("name={name}&password={password}")).await;
        let to = answer.headers[header::LOCATION].to_str().expect("ascii").to_owned();
        let cookie =
            answer.headers[header::SET_COOKIE].to_str().expect("ascii").split(';').next().expect("a pair").to_owned();
        assert!(cookie.starts_with("flash="), "no session: {cookie}");
        let page = server.get(&By::Cookie(cookie), &to).await;
        let said = page.text();
        let said = said.split_once("role=\"alert\"").expect("a refusal").1.split_once("<form").expect("a form").0;
        pages.push((answer.status, page.status, said.replace(name, "NAME")));
    }
    let words = pages[0].2.clone();
    assert!(words.contains("do not open anything here"), "{words}");
    let first = (pages[0].0, pages[0].1);
    assert!(pages.iter().all(|page| (page.0, page.1) == first), "{pages:?}");
    assert!(pages.iter().all(|page| page.2.contains("do not open anything here")), "{pages:?}");
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Kept {
    type Writer = Self;
    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn nobody_writes_a_line_of_the_log() {
    let kept = Kept::default();
    // With only one, a line that another test reaches first is taken to interest nobody (tracing asks that thread alone).
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    let _guard = tracing::subscriber::set_default(subscriber.with_writer(kept.clone()).finish());
    let server = Server::start().await;
    let (_, key) = server.worker("gpu-1").await;
    let lines = "x\n2026-01-01T00:00:00Z ERROR forged\r\n\u{1b}[31mforged";
    let register = json!({"name": lines, "host": lines, "protocol": 1, "labels": {"a": "b\nforged"}});
    for by in [&key, &By::worker("forged"), &By::Nobody] {
        let _ = server.post(by, "/api/workers/register", register.clone()).await;
    }
    server.call(&By::Nobody, "POST", "/ui/login", "name=x%0Aforged&password=x%0Aforged").await;
    server.get(&By::Admin, "/api/queue/x%0Aforged").await;
    server.get(&By::Nobody, "/x%0Aforged?next=%0Aforged").await;
    let request = Request::builder().uri("/api/queue").header(header::HOST, "localhost:8001");
    let request = request.header("x-request-id", "forged by someone").header(header::USER_AGENT, "forged\tagent");
    let answer = read(server.send(request.body(Body::empty()).expect("a request")).await).await;
    assert_ne!(answer.headers["x-request-id"], "forged by someone", "an id of one's own is plain or none");
    let text = String::from_utf8(kept.0.lock().expect("no panic").clone()).expect("text");
    assert!(text.lines().count() > 5, "something was logged: {text}");
    for line in text.lines() {
        let begins = line.as_bytes().get(..4).is_some_and(|year| year.iter().all(u8::is_ascii_digit));
        assert!(begins && !line.starts_with("2026-01-01T00:00:00Z ERROR") && !line.contains('\u{1b}'), "{line:?}");
    }
}
