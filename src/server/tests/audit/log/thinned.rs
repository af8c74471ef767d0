//! Audit logs that an attacker has changed with write access to the database, but without the key.

use app::domain::audit::{AuditAction, AuditEvent};
use app::domain::time::{Millis, Timestamp};
use serde_json::{Value, json};
use sqlx::Connection;

use super::DAY;
use crate::store::Store;
use crate::store::sqlite::SqliteStore;
use crate::tests::harness::{Actor, TestServer};

/// Runs statements on the database, bypassing the server.
async fn tamper(server: &TestServer, statements: &[&'static str]) {
    let file = format!("sqlite:{}", server.directory.path().join("orchestrator.db").display());
    let mut connection = sqlx::SqliteConnection::connect(&file).await.expect("a database");
    for statement in statements {
        sqlx::query(*statement).execute(&mut connection).await.expect("a statement");
    }
    connection.close().await.expect("closed");
}

/// Returns the codes of the faults that are found.
async fn faults(server: &TestServer) -> Vec<String> {
    let verdict = server.get(&Actor::Admin, "/api/audit/verify").await.expect_status(200);
    let faults: Vec<String> = verdict["faults"].as_array().expect("a list").iter().map(describe_fault).collect();
    assert_eq!(verdict["intact"], json!(faults.is_empty()), "{verdict:#}");
    faults
}

fn describe_fault(fault: &Value) -> String {
    let text = |field: &str| fault[field].as_str().expect("text").to_owned();
    format!("{} {}", text("chain"), text("fault"))
}

/// A server whose chain has two signatures.
async fn start_signed_twice() -> TestServer {
    let server = TestServer::start().await;
    for name in ["gpu-1", "gpu-2"] {
        server.create_worker(name).await;
        server.app.services.audit.sign_audit().await.expect("a database");
    }
    assert_eq!(faults(&server).await, Vec::<String>::new());
    server
}

#[tokio::test]
async fn removed_oldest_entries_with_a_moved_anchor_are_detected() {
    let server = start_signed_twice().await;
    let anchor = "UPDATE audit_heads SET removed_seq = 2, removed_hash =
                  (SELECT hash FROM audit WHERE chain = 'c_test' AND seq = 2)";
    tamper(&server, &[anchor, "DELETE FROM audit WHERE seq <= 2"]).await;
    assert_eq!(faults(&server).await, ["c_test anchor_unsigned"]);
}

#[tokio::test]
async fn removed_signed_chain_is_detected() {
    let server = start_signed_twice().await;
    let moved = ["UPDATE audit_heads SET removed_seq = seq, removed_hash = hash", "DELETE FROM audit"];
    tamper(&server, &moved).await;
    assert_eq!(faults(&server).await, ["c_test anchor_unsigned"]);
    tamper(&server, &["DELETE FROM audit_heads"]).await;
    assert_eq!(faults(&server).await, ["c_test signed_missing"]);
}

#[tokio::test]
async fn forged_chain_is_detected() {
    let server = start_signed_twice().await;
    // A chain that is valid by itself.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = SqliteStore::open(directory.path(), "c_forged").await.expect("a new database");
    let entry = |n: i64| AuditEvent {
        at: Timestamp(n),
        actor: "ada".to_owned(),
        action: AuditAction::WorkerCreated,
        target: "w_forged".to_owned(),
        detail: "{}".to_owned(),
        request_id: None,
    };
    let written = store.write(Box::new(move |tx| {
        Box::pin(async move {
            for n in 0..3 {
                tx.append_audit(entry(n)).await?;
            }
            Ok(())
        })
    }));
    written.await.expect("written");
    store.close().await;
    let file = directory.path().join("orchestrator.db");
    let attach: &'static str = Box::leak(format!("ATTACH '{}' AS other", file.display()).into_boxed_str());
    let forged = [
        attach,
        "INSERT INTO main.audit SELECT * FROM other.audit",
        "INSERT INTO main.audit_heads SELECT * FROM other.audit_heads",
    ];
    tamper(&server, &forged).await;
    assert_eq!(faults(&server).await, ["c_forged unsigned_chain"]);
}

#[tokio::test]
async fn entries_unsigned_for_two_periods_are_detected() {
    let server = start_signed_twice().await;
    server.create_worker("gpu-3").await;
    server.clock.advance(Millis::from_secs(2 * 3_600));
    assert_eq!(faults(&server).await, Vec::<String>::new(), "not yet");
    server.clock.advance(Millis(1));
    assert_eq!(faults(&server).await, ["c_test unsigned_entries"]);
    server.app.services.audit.sign_audit().await.expect("a database");
    assert_eq!(faults(&server).await, Vec::<String>::new());
}

#[tokio::test]
async fn entries_after_the_end_of_a_chain_are_detected() {
    let server = start_signed_twice().await;
    server.app.services.audit.close_audit().await.expect("a disk");
    assert_eq!(faults(&server).await, Vec::<String>::new());
    server.create_worker("gpu-3").await;
    assert_eq!(faults(&server).await, ["c_test unsigned_entries"]);
}

#[tokio::test]
async fn entries_removed_by_retention_are_no_fault() {
    let server = TestServer::start_with(|policy| policy.audit_retention = Some(DAY)).await;
    let services = &server.app.services;
    services.audit.sign_audit().await.expect("a database");
    server.clock.advance(Millis(2 * DAY.0));
    server.create_worker("gpu-1").await;
    assert!(services.audit.prune_audit().await.expect("a database") > 0);
    assert_eq!(faults(&server).await, Vec::<String>::new());
}
