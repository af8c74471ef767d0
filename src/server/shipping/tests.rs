//! Checkpoints on their way.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::net::{TcpListener, UdpSocket};

use super::*;
use crate::tests::harness::{By, Server};

const PATIENCE: Duration = Duration::from_secs(10);

fn shipper(server: &Server, target: &str) -> Shipper {
    let target = target.parse().expect("a place");
    Shipper::new(Arc::clone(&server.app.core), target, server.directory.path(), PATIENCE)
}

async fn sign(server: &Server, name: &str) {
    server.worker(name).await;
    server.app.core.sign_audit().await.expect("a database");
}

async fn kept(server: &Server) -> String {
    fs::read_to_string(server.app.core.signer.files().file()).await.expect("there")
}

async fn attention(server: &Server) -> String {
    server.get(&By::Admin, "/api/overview").await.ok(200)["attention"].to_string()
}

#[tokio::test]
async fn a_file_gets_each_line_once_also_after_a_restart() {
    let server = Server::start().await;
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let file: PathBuf = elsewhere.path().join("lines.jsonl");
    let target = format!("file:{}", file.display());
    shipper(&server, &target).send_all().await.expect("nothing yet");
    assert!(!file.exists());
    for name in ["gpu-1", "gpu-2"] {
        sign(&server, name).await;
        shipper(&server, &target).send_all().await.expect("writable");
        assert_eq!(fs::read_to_string(&file).await.expect("there"), kept(&server).await);
    }
    // What is torn waits for its end.
    fs::write(server.app.core.signer.files().file(), kept(&server).await + "torn").await.expect("writable");
    let before = fs::read_to_string(&file).await.expect("there");
    shipper(&server, &target).send_all().await.expect("writable");
    assert_eq!(fs::read_to_string(&file).await.expect("there"), before);
    let lines = server.app.core.metrics.shipping.lines.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(lines, before.lines().count() as u64);
}

#[tokio::test]
async fn lines_are_sent_as_they_are_signed() {
    let server = Server::start().await;
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let file = elsewhere.path().join("lines.jsonl");
    let (shipper, shutdown) = (shipper(&server, &format!("file:{}", file.display())), CancellationToken::new());
    let ends = shutdown.clone();
    let kept_up = tokio::spawn(async move { shipper.keep(ends).await });
    for name in ["gpu-1", "gpu-2"] {
        sign(&server, name).await;
        let wanted = kept(&server).await;
        tokio::time::timeout(PATIENCE, async {
            while fs::read_to_string(&file).await.unwrap_or_default() != wanted {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("it was sent");
    }
    shutdown.cancel();
    kept_up.await.expect("it ends");
}

#[tokio::test]
async fn syslog_over_udp_gets_a_message_for_each_line() {
    let server = Server::start().await;
    let collector = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let at = collector.local_addr().expect("an address");
    sign(&server, "gpu-1").await;
    shipper(&server, &format!("syslog:{at}")).send_all().await.expect("sent");
    for line in kept(&server).await.lines() {
        let mut bytes = [0; 2_048];
        let length = collector.recv(&mut bytes).await.expect("a message");
        let message = String::from_utf8_lossy(&bytes[..length]).into_owned();
        assert!(message.starts_with("<109>1 2024-01-15T10:30:00.000Z - simpletuner ") && message.ends_with(line));
    }
}

/// A webhook that fails as long as it is told to.
#[derive(Clone, Default)]
struct Hook(Arc<Mutex<(bool, String)>>);

async fn take(State(Hook(kept)): State<Hook>, body: String) -> StatusCode {
    let mut kept = kept.lock().expect("no panic while it is held");
    if kept.0 {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    kept.1 += &body;
    StatusCode::NO_CONTENT
}

async fn hook() -> (Hook, SocketAddr) {
    let (hook, listener) = (Hook::default(), TcpListener::bind("127.0.0.1:0").await.expect("a socket"));
    let at = listener.local_addr().expect("an address");
    let router = Router::new().route("/audit", post(take)).with_state(hook.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (hook, at)
}

#[tokio::test]
async fn a_webhook_that_redirects_is_not_followed() {
    let server = Server::start().await;
    let (elsewhere, at) = hook().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let first = listener.local_addr().expect("an address");
    let to = format!("http://{at}/audit");
    let redirect = post(async move || axum::response::Redirect::temporary(&to));
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/audit", redirect)).await });
    sign(&server, "gpu-1").await;
    let sent = shipper(&server, &format!("http://{first}/audit")).send_all().await;
    assert_eq!(elsewhere.0.lock().expect("no panic").1, "", "nothing goes where a redirect leads");
    let failed = sent.expect_err("nobody took it").to_string();
    assert!(failed.contains("307"), "{failed}");
}

#[tokio::test]
async fn a_webhook_that_fails_needs_a_look_and_gets_all_of_it_later() {
    let server = Server::start().await;
    let (hook, at) = hook().await;
    let shipper = shipper(&server, &format!("http://{at}/audit"));
    sign(&server, "gpu-1").await;
    assert!(!attention(&server).await.contains("audit_not_shipped"));
    hook.0.lock().expect("no panic").0 = true;
    let failed = shipper.send_all().await.expect_err("it says no").to_string();
    assert!(failed.contains("503") && !failed.contains("/audit"), "{failed}");
    assert!(attention(&server).await.contains("audit_not_shipped"));
    assert_eq!(server.app.core.metrics.shipping.failures.load(std::sync::atomic::Ordering::Relaxed), 1);
    hook.0.lock().expect("no panic").0 = false;
    shipper.send_all().await.expect("it takes it");
    let all = kept(&server).await;
    assert_eq!(hook.0.lock().expect("no panic").1, all);
    assert!(!attention(&server).await.contains("audit_not_shipped"));
}
