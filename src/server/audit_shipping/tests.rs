//! Shipping of audit checkpoints.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::net::{TcpListener, UdpSocket};

use super::*;
use crate::tests::harness::{Actor, TestServer};

const TIMEOUT: Duration = Duration::from_secs(10);

fn shipper(server: &TestServer, target: &str) -> AuditShipper {
    let target = target.parse().expect("a destination");
    AuditShipper::new(Arc::clone(&server.app.services), target, server.directory.path(), TIMEOUT)
}

async fn sign(server: &TestServer, name: &str) {
    server.create_worker(name).await;
    server.app.services.audit.sign_audit().await.expect("a database");
}

async fn shipped_text(server: &TestServer) -> String {
    fs::read_to_string(server.app.services.audit.signer.files().path()).await.expect("readable")
}

async fn alerts(server: &TestServer) -> String {
    server.get(&Actor::Admin, "/api/overview").await.expect_status(200)["attention"].to_string()
}

#[tokio::test]
async fn file_gets_each_line_once_after_a_restart() {
    let server = TestServer::start().await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file: PathBuf = directory.path().join("lines.jsonl");
    let target = format!("file:{}", file.display());
    shipper(&server, &target).send_all().await.expect("nothing yet");
    assert!(!file.exists());
    for name in ["gpu-1", "gpu-2"] {
        sign(&server, name).await;
        shipper(&server, &target).send_all().await.expect("writable");
        assert_eq!(fs::read_to_string(&file).await.expect("readable"), shipped_text(&server).await);
    }
    // An incomplete line is not sent until it is complete.
    fs::write(server.app.services.audit.signer.files().path(), shipped_text(&server).await + "torn")
        .await
        .expect("writable");
    let before = fs::read_to_string(&file).await.expect("readable");
    shipper(&server, &target).send_all().await.expect("writable");
    assert_eq!(fs::read_to_string(&file).await.expect("readable"), before);
    let lines = server.app.services.context.metrics.shipping.lines.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(lines, before.lines().count() as u64);
}

#[tokio::test]
async fn lines_are_shipped_when_signed() {
    let server = TestServer::start().await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("lines.jsonl");
    let (shipper, shutdown) = (shipper(&server, &format!("file:{}", file.display())), CancellationToken::new());
    let token = shutdown.clone();
    let task = tokio::spawn(async move { shipper.run(token).await });
    for name in ["gpu-1", "gpu-2"] {
        sign(&server, name).await;
        let expected = shipped_text(&server).await;
        tokio::time::timeout(TIMEOUT, async {
            while fs::read_to_string(&file).await.unwrap_or_default() != expected {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("sent in time");
    }
    shutdown.cancel();
    task.await.expect("no panic");
}

#[tokio::test]
async fn syslog_over_udp_gets_a_message_for_each_line() {
    let server = TestServer::start().await;
    let collector = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let address = collector.local_addr().expect("an address");
    sign(&server, "gpu-1").await;
    shipper(&server, &format!("syslog:{address}")).send_all().await.expect("sent");
    for line in shipped_text(&server).await.lines() {
        let mut bytes = [0; 2_048];
        let length = collector.recv(&mut bytes).await.expect("a message");
        let message = String::from_utf8_lossy(&bytes[..length]).into_owned();
        assert!(message.starts_with("<109>1 2024-01-15T10:30:00.000Z - simpletuner ") && message.ends_with(line));
    }
}

#[derive(Default)]
struct WebhookState {
    fails: bool,
    received: String,
}

/// A webhook that fails while the flag is set, and collects the lines that it accepts.
#[derive(Clone, Default)]
struct TestWebhook(Arc<Mutex<WebhookState>>);

async fn receive(State(TestWebhook(state)): State<TestWebhook>, body: String) -> StatusCode {
    let mut state = state.lock().expect("no panic while it is held");
    if state.fails {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    state.received += &body;
    StatusCode::NO_CONTENT
}

async fn start_webhook() -> (TestWebhook, SocketAddr) {
    let (webhook, listener) = (TestWebhook::default(), TcpListener::bind("127.0.0.1:0").await.expect("a socket"));
    let address = listener.local_addr().expect("an address");
    let router = Router::new().route("/audit", post(receive)).with_state(webhook.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (webhook, address)
}

#[tokio::test]
async fn a_webhook_that_redirects_is_not_followed() {
    let server = TestServer::start().await;
    let (webhook, address) = start_webhook().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let redirecting_address = listener.local_addr().expect("an address");
    let target_url = format!("http://{address}/audit");
    let redirect = post(async move || axum::response::Redirect::temporary(&target_url));
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/audit", redirect)).await });
    sign(&server, "gpu-1").await;
    let result = shipper(&server, &format!("http://{redirecting_address}/audit")).send_all().await;
    assert_eq!(webhook.0.lock().expect("no panic").received, "", "nothing is sent to the redirect's target");
    let error = result.expect_err("nothing was accepted").to_string();
    assert!(error.contains("307"), "{error}");
}

#[tokio::test]
async fn failing_webhook_raises_an_alert_and_gets_everything_later() {
    let server = TestServer::start().await;
    let (webhook, address) = start_webhook().await;
    let shipper = shipper(&server, &format!("http://{address}/audit"));
    sign(&server, "gpu-1").await;
    assert!(!alerts(&server).await.contains("audit_not_shipped"));
    webhook.0.lock().expect("no panic").fails = true;
    let error = shipper.send_all().await.expect_err("the webhook fails").to_string();
    assert!(error.contains("503") && !error.contains("/audit"), "{error}");
    assert!(alerts(&server).await.contains("audit_not_shipped"));
    assert_eq!(server.app.services.context.metrics.shipping.failures.load(std::sync::atomic::Ordering::Relaxed), 1);
    webhook.0.lock().expect("no panic").fails = false;
    shipper.send_all().await.expect("the webhook accepts");
    let lines = shipped_text(&server).await;
    assert_eq!(webhook.0.lock().expect("no panic").received, lines);
    assert!(!alerts(&server).await.contains("audit_not_shipped"));
}
