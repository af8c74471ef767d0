//! The commands on the files of a server, which were tampered with.

use std::path::Path;

use app::domain::audit::verify::Mark;
use app::domain::audit::{Action, Entry};
use app::domain::time::Timestamp;
use serde_json::Value;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::*;
use crate::cli::tests::desk::Leaves;
use crate::files::checkpoints::Kind;
use crate::store::conformance::fresh_database;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;

const NUMBER: i64 = 20;

/// Appends entries to the chain of a server.
async fn write(store: &dyn Store, number: i64) {
    let written = store.write(Box::new(move |tx| {
        Box::pin(async move {
            for n in 0..number {
                let entry = Entry {
                    at: Timestamp(1_705_314_600_000 + n),
                    actor: "admin".to_owned(),
                    action: Action::WorkerCreated,
                    target: format!("w_{n}"),
                    detail: r#"{"name":"gpu"}"#.to_owned(),
                    request_id: None,
                };
                tx.append_audit(entry).await?;
            }
            Ok(())
        })
    }));
    written.await.expect("written");
}

/// A data directory that a server has left.
async fn left_behind() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = SqliteStore::open(directory.path(), "c_1").await.expect("fresh");
    write(&store, NUMBER).await;
    store.close().await;
    directory
}

async fn tamper(directory: &Path, statement: &'static str) {
    let options = SqliteConnectOptions::new().filename(directory.join("orchestrator.db"));
    let mut connection = options.connect().await.expect("a database");
    sqlx::query(statement).execute(&mut connection).await.expect("a statement");
    connection.close().await.expect("closed");
}

fn database(directory: &Path) -> Database {
    Database { data_dir: Some(directory.to_owned()), database_url: None }
}

/// What is printed, and whether it exits with 0.
async fn verified(directory: &Path, json: bool) -> (String, bool) {
    let mut out = Vec::new();
    let code = report(VerifyArgs { database: database(directory), json, quiet: false, against: None }, &mut out)
        .await
        .expect("readable");
    (String::from_utf8(out).expect("text"), code == ExitCode::SUCCESS)
}

#[tokio::test]
async fn an_untouched_trail_is_intact_also_while_its_server_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = SqliteStore::open(directory.path(), "c_1").await.expect("fresh");
    write(&store, NUMBER).await;
    let told = "intact; entries: 20, chains: 1\nno key was found: that the whole was written anew cannot be excluded\n";
    assert_eq!(verified(directory.path(), false).await, (told.to_owned(), true));
    write(&store, 1).await;
    assert!(verified(directory.path(), false).await.0.starts_with("intact; entries: 21"));
    store.close().await;
    assert!(verified(directory.path(), false).await.1, "and after it has stopped");
}

#[tokio::test]
async fn whoever_hears_nothing_is_told_by_the_exit_code() {
    let directory = left_behind().await;
    let quiet = || VerifyArgs { database: database(directory.path()), quiet: true, ..VerifyArgs::default() };
    let mut out = Vec::new();
    assert_eq!(report(quiet(), &mut out).await.expect("readable"), ExitCode::SUCCESS);
    tamper(directory.path(), "DELETE FROM audit WHERE seq = 7").await;
    assert_eq!(report(quiet(), &mut out).await.expect("readable"), ExitCode::from(65));
    assert!(out.is_empty());
    let loud = VerifyArgs { quiet: false, ..quiet() };
    let mut left = Leaves { after: 0, read: Vec::new() };
    assert_eq!(report(loud, &mut left).await.expect("readable"), ExitCode::from(65), "who left is told too");
}

#[tokio::test]
async fn what_was_done_by_sql_is_named() {
    let cases = [
        ("UPDATE audit SET actor = 'eve' WHERE seq = 7", "c_1: entry 7 was changed"),
        ("UPDATE audit SET request_id = '' WHERE seq = 7", "c_1: entry 7 was changed"),
        ("DELETE FROM audit WHERE seq = 7", "c_1: entries 7 to 7 are missing"),
        ("DELETE FROM audit WHERE seq > 15", "c_1: the end is missing: entries 16 to 20"),
        ("DELETE FROM audit", "c_1: every entry is missing"),
        ("DELETE FROM audit_heads", "c_1: the head is missing"),
        ("UPDATE audit_heads SET hash = 'x'", "c_1: the head names another entry 20"),
        ("UPDATE audit_heads SET seq = 15", "c_1: entries 16 to 20 stand behind the head"),
        (
            "INSERT INTO audit SELECT chain, 21, at, actor, action, target, detail, request_id, previous, hash
             FROM audit WHERE seq = 20",
            "c_1: entry 21 was changed",
        ),
    ];
    for (statement, told) in cases {
        let directory = left_behind().await;
        tamper(directory.path(), statement).await;
        let (text, intact) = verified(directory.path(), false).await;
        assert!(text.contains(told) && text.contains("TAMPERED WITH") && !intact, "{statement}:\n{text}");
    }
}

#[tokio::test]
async fn a_chain_that_was_written_anew_is_found_by_its_checkpoint() {
    let directory = left_behind().await;
    let files = Checkpoints::open(directory.path(), "sqlite", [7; 32]).expect("writable");
    let signed =
        r#"{"database": "sqlite", "chain": "c_1", "seq": 20, "hash": "what it was", "key": "KEY", "mac": "MAC"}"#;
    let mac = files.mac("c_1", 20, "what it was");
    files.append(&signed.replace("KEY", files.key_id()).replace("MAC", &mac)).expect("writable");
    let (text, intact) = verified(directory.path(), false).await;
    assert!(text.contains("entry 20 is not the one that a checkpoint has signed") && !intact, "{text}");
    tamper(directory.path(), "DELETE FROM audit").await;
    tamper(directory.path(), "DELETE FROM audit_heads").await;
    let (text, intact) = verified(directory.path(), false).await;
    assert!(text.contains("entry 20 is missing, which a checkpoint has signed") && !intact, "{text}");
}

#[tokio::test]
async fn a_line_that_was_not_signed_is_named() {
    let directory = left_behind().await;
    let files = Checkpoints::open(directory.path(), "sqlite", [7; 32]).expect("writable");
    files.append("{}").expect("writable");
    let (text, intact) = verified(directory.path(), false).await;
    assert!(text.contains("the file of checkpoints: line 1 was not signed") && !intact, "{text}");
}

#[tokio::test]
async fn the_verdict_is_told_to_programs_too() {
    let directory = left_behind().await;
    tamper(directory.path(), "DELETE FROM audit WHERE seq IN (3, 4)").await;
    let verdict: Value = serde_json::from_str(&verified(directory.path(), true).await.0).expect("JSON");
    assert_eq!((&verdict["intact"], &verdict["entries"], &verdict["chains"]), (&false.into(), &18.into(), &1.into()));
    let fault = &verdict["faults"][0];
    assert_eq!((&fault["fault"], &fault["from"], &fault["to"]), (&"removed".into(), &3.into(), &4.into()));
}

#[tokio::test]
async fn entries_are_exported_as_lines() {
    let directory = left_behind().await;
    let mut out = Vec::new();
    let target = Some("w_3".to_owned());
    let args = ExportArgs { database: database(directory.path()), target, ..ExportArgs::default() };
    export(args, &mut out).await.expect("readable");
    let line: Value = serde_json::from_slice(&out).expect("one line");
    assert_eq!((&line["seq"], &line["detail"]["name"], &line["request_id"]), (&4.into(), &"gpu".into(), &Value::Null));
    out.clear();
    export(ExportArgs { database: database(directory.path()), ..ExportArgs::default() }, &mut out)
        .await
        .expect("readable");
    assert_eq!(String::from_utf8(out).expect("text").lines().count(), 20);
}

#[tokio::test]
async fn a_shared_database_is_read_by_its_address() {
    let (url, directory) = (fresh_database().await, tempfile::tempdir().expect("a temporary directory"));
    let store = PostgresStore::open(&url, "c_1").await.expect("a database");
    write(&store, NUMBER).await;
    let shared = || Database { database_url: Some(Secret(url.clone())), ..database(directory.path()) };
    let verified = async || {
        let mut out = Vec::new();
        let code =
            report(VerifyArgs { database: shared(), ..VerifyArgs::default() }, &mut out).await.expect("readable");
        (String::from_utf8(out).expect("text"), code == ExitCode::SUCCESS)
    };
    let (text, intact) = verified().await;
    assert!(text.starts_with("intact; entries: 20, chains: 1") && intact, "{text}");
    let mut connection = PgConnection::connect(&url).await.expect("a database");
    sqlx::query("DELETE FROM audit WHERE seq > 15").execute(&mut connection).await.expect("a statement");
    let (text, intact) = verified().await;
    assert!(text.contains("the end is missing: entries 16 to 20") && !intact, "{text}");
    let mut out = Vec::new();
    export(ExportArgs { database: shared(), ..ExportArgs::default() }, &mut out).await.expect("readable");
    assert_eq!(String::from_utf8(out).expect("text").lines().count(), 15);
}

#[tokio::test]
async fn what_cannot_be_read_is_said() {
    let empty = tempfile::tempdir().expect("a temporary directory");
    let exit = report(VerifyArgs { database: database(empty.path()), ..VerifyArgs::default() }, &mut Vec::new()).await;
    let told = format!("{:?}", exit.expect_err("there is no database"));
    assert!(told.contains("there is no database in") && told.contains("--data-dir"), "{told}");
    let database = Database { data_dir: None, database_url: Some(Secret("mysql://x".to_owned())) };
    let exit = report(VerifyArgs { database, ..VerifyArgs::default() }, &mut Vec::new()).await;
    assert!(format!("{:?}", exit.expect_err("no PostgreSQL")).contains("postgres://"));
    let since = Some("x".to_owned());
    let directory = left_behind().await;
    let args = ExportArgs {
        database: super::Database { data_dir: Some(directory.path().to_owned()), database_url: None },
        since,
        ..ExportArgs::default()
    };
    let exit = export(args, &mut Vec::new()).await;
    assert!(format!("{:?}", exit.expect_err("no moment")).contains("`since` must be a moment"));
}

#[tokio::test]
async fn what_was_shipped_finds_who_has_the_key_too() {
    let directory = left_behind().await;
    let files = Checkpoints::open(directory.path(), "sqlite", [7; 32]).expect("writable");
    let store = SqliteStore::open(directory.path(), "c_2").await.expect("there");
    write(&store, 1).await;
    let heads = store.read().await.expect("a reader").audit_heads().await.expect("readable");
    store.close().await;
    let sign = |chain: &str| {
        let line = files.line(SystemClock.now(), Kind::Checkpoint, chain, &heads[chain].newest);
        files.append(&line).expect("writable");
    };
    ["c_1", "c_2"].into_iter().for_each(sign);
    files.append(&files.line(SystemClock.now(), Kind::Complete, "", &Mark::default())).expect("writable");
    let shipped = directory.path().join("shipped.jsonl");
    fs::copy(files.file(), &shipped).expect("a copy");
    let verified = async |against: Option<&Path>| {
        let (mut out, against) = (Vec::new(), against.map(Path::to_owned));
        let args = VerifyArgs { database: database(directory.path()), against, ..VerifyArgs::default() };
        let code = report(args, &mut out).await.expect("readable");
        (String::from_utf8(out).expect("text"), code == ExitCode::SUCCESS)
    };
    for against in [None, Some(shipped.as_path())] {
        let (text, intact) = verified(against).await;
        assert!(intact, "{text}");
    }
    // Somebody removes a chain, and signs what is left.
    tamper(directory.path(), "DELETE FROM audit WHERE chain = 'c_1'").await;
    tamper(directory.path(), "DELETE FROM audit_heads WHERE chain = 'c_1'").await;
    fs::write(files.file(), "").expect("writable");
    sign("c_2");
    files.append(&files.line(SystemClock.now(), Kind::Complete, "", &Mark::default())).expect("writable");
    let (text, intact) = verified(None).await;
    assert!(intact, "here nothing tells: {text}");
    let (text, intact) = verified(Some(&shipped)).await;
    assert!(!intact && text.contains("c_1: entry 20 is missing, which a checkpoint has signed"), "{text}");
}
