//! Runs the commands on files of a server that were manipulated.

use std::path::Path;

use app::domain::audit::verify::EntryRef;
use app::domain::audit::{AuditAction, AuditEvent};
use app::domain::time::Timestamp;
use serde_json::Value;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::*;
use crate::cli::tests::harness::ClosingWriter;
use crate::files::audit_checkpoints::SignedLineKind;
use crate::store::conformance::fresh_database;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;

const ENTRY_COUNT: i64 = 20;

/// Appends entries to the chain of a server.
async fn append_entries(store: &dyn Store, number: i64) {
    let result = store.write(Box::new(move |tx| {
        Box::pin(async move {
            for n in 0..number {
                let entry = AuditEvent {
                    at: Timestamp(1_705_314_600_000 + n),
                    actor: "admin".to_owned(),
                    action: AuditAction::WorkerCreated,
                    target: format!("w_{n}"),
                    detail: r#"{"name":"gpu"}"#.to_owned(),
                    request_id: None,
                };
                tx.append_audit(entry).await?;
            }
            Ok(())
        })
    }));
    result.await.expect("written");
}

/// Creates the data directory of a stopped server.
async fn stopped_server_dir() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = SqliteStore::open(directory.path(), "c_1").await.expect("fresh");
    append_entries(&store, ENTRY_COUNT).await;
    store.close().await;
    directory
}

async fn tamper(directory: &Path, statement: &'static str) {
    let options = SqliteConnectOptions::new().filename(directory.join("orchestrator.db"));
    let mut connection = options.connect().await.expect("a database");
    sqlx::query(statement).execute(&mut connection).await.expect("a statement");
    connection.close().await.expect("closed");
}

fn database(directory: &Path) -> DatabaseLocationArgs {
    DatabaseLocationArgs { data_dir: Some(directory.to_owned()), database_url: None }
}

/// Returns the output, and whether the exit code is 0.
async fn run_verify_on(directory: &Path, json: bool) -> (String, bool) {
    let mut out = Vec::new();
    let code = run_verify(VerifyArgs { database: database(directory), json, quiet: false, against: None }, &mut out)
        .await
        .expect("readable");
    (String::from_utf8(out).expect("text"), code == ExitCode::SUCCESS)
}

#[tokio::test]
async fn unmodified_audit_log_is_intact_while_the_server_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = SqliteStore::open(directory.path(), "c_1").await.expect("fresh");
    append_entries(&store, ENTRY_COUNT).await;
    let report =
        "intact; entries: 20, chains: 1\nno key found: a complete rewrite of the audit log cannot be excluded\n";
    assert_eq!(run_verify_on(directory.path(), false).await, (report.to_owned(), true));
    append_entries(&store, 1).await;
    assert!(run_verify_on(directory.path(), false).await.0.starts_with("intact; entries: 21"));
    store.close().await;
    assert!(run_verify_on(directory.path(), false).await.1, "also after the server has stopped");
}

#[tokio::test]
async fn exit_code_is_set_with_quiet_or_closed_output() {
    let directory = stopped_server_dir().await;
    let quiet = || VerifyArgs { database: database(directory.path()), quiet: true, ..VerifyArgs::default() };
    let mut out = Vec::new();
    assert_eq!(run_verify(quiet(), &mut out).await.expect("readable"), ExitCode::SUCCESS);
    tamper(directory.path(), "DELETE FROM audit WHERE seq = 7").await;
    assert_eq!(run_verify(quiet(), &mut out).await.expect("readable"), ExitCode::from(65));
    assert!(out.is_empty());
    let verbose_args = VerifyArgs { quiet: false, ..quiet() };
    let mut output = ClosingWriter { after: 0, read: Vec::new() };
    assert_eq!(
        run_verify(verbose_args, &mut output).await.expect("readable"),
        ExitCode::from(65),
        "the exit code is set for a closed output, too"
    );
}

#[tokio::test]
async fn changes_by_sql_are_reported() {
    let cases = [
        ("UPDATE audit SET actor = 'eve' WHERE seq = 7", "c_1: entry 7 was changed"),
        ("UPDATE audit SET request_id = '' WHERE seq = 7", "c_1: entry 7 was changed"),
        ("DELETE FROM audit WHERE seq = 7", "c_1: entries 7 to 7 are missing"),
        ("DELETE FROM audit WHERE seq > 15", "c_1: the end is missing: entries 16 to 20"),
        ("DELETE FROM audit", "c_1: every entry is missing"),
        ("DELETE FROM audit_heads", "c_1: the head is missing"),
        ("UPDATE audit_heads SET hash = 'x'", "c_1: the head does not match entry 20"),
        ("UPDATE audit_heads SET seq = 15", "c_1: entries 16 to 20 are after the head"),
        (
            "INSERT INTO audit SELECT chain, 21, at, actor, action, target, detail, request_id, previous, hash
             FROM audit WHERE seq = 20",
            "c_1: entry 21 was changed",
        ),
    ];
    for (statement, finding) in cases {
        let directory = stopped_server_dir().await;
        tamper(directory.path(), statement).await;
        let (text, intact) = run_verify_on(directory.path(), false).await;
        assert!(text.contains(finding) && text.contains("TAMPERED WITH") && !intact, "{statement}:\n{text}");
    }
}

#[tokio::test]
async fn rewritten_chain_is_detected_by_its_checkpoint() {
    let directory = stopped_server_dir().await;
    let files = AuditCheckpointFile::open(directory.path(), "sqlite", [7; 32]).expect("writable");
    let signed =
        r#"{"database": "sqlite", "chain": "c_1", "seq": 20, "hash": "what it was", "key": "KEY", "mac": "MAC"}"#;
    let mac = files.mac("c_1", 20, "what it was");
    files.append(&signed.replace("KEY", files.key_id()).replace("MAC", &mac)).expect("writable");
    let (text, intact) = run_verify_on(directory.path(), false).await;
    assert!(text.contains("entry 20 does not match its signed checkpoint") && !intact, "{text}");
    tamper(directory.path(), "DELETE FROM audit").await;
    tamper(directory.path(), "DELETE FROM audit_heads").await;
    let (text, intact) = run_verify_on(directory.path(), false).await;
    assert!(text.contains("entry 20 is missing, but a checkpoint has signed it") && !intact, "{text}");
}

#[tokio::test]
async fn unsigned_checkpoint_is_reported() {
    let directory = stopped_server_dir().await;
    let files = AuditCheckpointFile::open(directory.path(), "sqlite", [7; 32]).expect("writable");
    files.append("{}").expect("writable");
    let (text, intact) = run_verify_on(directory.path(), false).await;
    assert!(text.contains("the file of checkpoints: line 1 was not signed") && !intact, "{text}");
}

#[tokio::test]
async fn verify_prints_json() {
    let directory = stopped_server_dir().await;
    tamper(directory.path(), "DELETE FROM audit WHERE seq IN (3, 4)").await;
    let verdict: Value = serde_json::from_str(&run_verify_on(directory.path(), true).await.0).expect("JSON");
    assert_eq!((&verdict["intact"], &verdict["entries"], &verdict["chains"]), (&false.into(), &18.into(), &1.into()));
    let fault = &verdict["faults"][0];
    assert_eq!((&fault["fault"], &fault["from"], &fault["to"]), (&"removed".into(), &3.into(), &4.into()));
}

#[tokio::test]
async fn entries_are_exported_as_json_lines() {
    let directory = stopped_server_dir().await;
    let mut out = Vec::new();
    let target = Some("w_3".to_owned());
    let args = ExportArgs { database: database(directory.path()), target, ..ExportArgs::default() };
    run_export(args, &mut out).await.expect("readable");
    let line: Value = serde_json::from_slice(&out).expect("one line");
    assert_eq!((&line["seq"], &line["detail"]["name"], &line["request_id"]), (&4.into(), &"gpu".into(), &Value::Null));
    out.clear();
    run_export(ExportArgs { database: database(directory.path()), ..ExportArgs::default() }, &mut out)
        .await
        .expect("readable");
    assert_eq!(String::from_utf8(out).expect("text").lines().count(), 20);
}

#[tokio::test]
async fn shared_database_is_read_by_its_url() {
    let (url, directory) = (fresh_database().await, tempfile::tempdir().expect("a temporary directory"));
    let store = PostgresStore::open(&url, "c_1").await.expect("a database");
    append_entries(&store, ENTRY_COUNT).await;
    let location =
        || DatabaseLocationArgs { database_url: Some(SecretString(url.clone())), ..database(directory.path()) };
    let verify = async || {
        let mut out = Vec::new();
        let code =
            run_verify(VerifyArgs { database: location(), ..VerifyArgs::default() }, &mut out).await.expect("readable");
        (String::from_utf8(out).expect("text"), code == ExitCode::SUCCESS)
    };
    let (text, intact) = verify().await;
    assert!(text.starts_with("intact; entries: 20, chains: 1") && intact, "{text}");
    let mut connection = PgConnection::connect(&url).await.expect("a database");
    sqlx::query("DELETE FROM audit WHERE seq > 15").execute(&mut connection).await.expect("a statement");
    let (text, intact) = verify().await;
    assert!(text.contains("the end is missing: entries 16 to 20") && !intact, "{text}");
    let mut out = Vec::new();
    run_export(ExportArgs { database: location(), ..ExportArgs::default() }, &mut out).await.expect("readable");
    assert_eq!(String::from_utf8(out).expect("text").lines().count(), 15);
}

#[tokio::test]
async fn unreadable_audit_log_is_reported() {
    let empty = tempfile::tempdir().expect("a temporary directory");
    let exit =
        run_verify(VerifyArgs { database: database(empty.path()), ..VerifyArgs::default() }, &mut Vec::new()).await;
    let message = format!("{:?}", exit.expect_err("there is no database"));
    assert!(message.contains("there is no database in") && message.contains("--data-dir"), "{message}");
    let database = DatabaseLocationArgs { data_dir: None, database_url: Some(SecretString("mysql://x".to_owned())) };
    let exit = run_verify(VerifyArgs { database, ..VerifyArgs::default() }, &mut Vec::new()).await;
    assert!(format!("{:?}", exit.expect_err("no PostgreSQL")).contains("postgres://"));
    let since = Some("x".to_owned());
    let directory = stopped_server_dir().await;
    let args = ExportArgs {
        database: super::DatabaseLocationArgs { data_dir: Some(directory.path().to_owned()), database_url: None },
        since,
        ..ExportArgs::default()
    };
    let exit = run_export(args, &mut Vec::new()).await;
    assert!(format!("{:?}", exit.expect_err("not a time")).contains("`since` must be a UTC time"));
}

#[tokio::test]
async fn shipped_checkpoints_detect_an_attacker_with_the_key() {
    let directory = stopped_server_dir().await;
    let files = AuditCheckpointFile::open(directory.path(), "sqlite", [7; 32]).expect("writable");
    let store = SqliteStore::open(directory.path(), "c_2").await.expect("a database");
    append_entries(&store, 1).await;
    let heads = store.read().await.expect("a reader").audit_heads().await.expect("readable");
    store.close().await;
    let sign = |chain: &str| {
        let line = files.signed_line(SystemClock.now(), SignedLineKind::Checkpoint, chain, &heads[chain].newest);
        files.append(&line).expect("writable");
    };
    ["c_1", "c_2"].into_iter().for_each(sign);
    files
        .append(&files.signed_line(SystemClock.now(), SignedLineKind::Complete, "", &EntryRef::default()))
        .expect("writable");
    let shipped = directory.path().join("shipped.jsonl");
    fs::copy(files.path(), &shipped).expect("a copy");
    let verify = async |against: Option<&Path>| {
        let (mut out, against) = (Vec::new(), against.map(Path::to_owned));
        let args = VerifyArgs { database: database(directory.path()), against, ..VerifyArgs::default() };
        let code = run_verify(args, &mut out).await.expect("readable");
        (String::from_utf8(out).expect("text"), code == ExitCode::SUCCESS)
    };
    for against in [None, Some(shipped.as_path())] {
        let (text, intact) = verify(against).await;
        assert!(intact, "{text}");
    }
    // Removes a chain and signs the rest.
    tamper(directory.path(), "DELETE FROM audit WHERE chain = 'c_1'").await;
    tamper(directory.path(), "DELETE FROM audit_heads WHERE chain = 'c_1'").await;
    fs::write(files.path(), "").expect("writable");
    sign("c_2");
    files
        .append(&files.signed_line(SystemClock.now(), SignedLineKind::Complete, "", &EntryRef::default()))
        .expect("writable");
    let (text, intact) = verify(None).await;
    assert!(intact, "without the shipped checkpoints it looks intact: {text}");
    let (text, intact) = verify(Some(&shipped)).await;
    assert!(!intact && text.contains("c_1: entry 20 is missing, but a checkpoint has signed it"), "{text}");
}
