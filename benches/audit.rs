//! How fast the audit trail is verified: `simpletuner audit verify`, the program in `dist/`, on a database with many
//! entries.
//!
//! `cargo run --release --no-default-features --features ssr --example audit`; `SIMPLETUNER_DIST` names the program.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use app::domain::audit::verify::Mark;
use app::domain::audit::{Action, Entry};
use app::domain::time::Timestamp;
use sha2::{Digest, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Executor};

const ENTRIES: i64 = 1_000_000;
const ROUNDS: usize = 3;
const SCHEMA: &str = include_str!("../src/server/store/sqlite/migrations/0001_start.sql");

fn main() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(fill(directory.path()));
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| verify(directory.path())).collect();
    times.sort();
    let time = times[ROUNDS / 2].as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = ENTRIES as f64 / time;
    println!(
        "verifying {ENTRIES} audit entries: {time:.1} s, {rate:.0} entries/s (target >= 200000/s); {ROUNDS} rounds"
    );
}

fn entry(n: i64) -> Entry {
    Entry {
        at: Timestamp(1_705_314_600_000 + n),
        actor: format!("worker:w_01hm{:022}", n % 1_000),
        action: Action::JobRunning,
        target: format!("j_01hm{n:022}"),
        detail: format!(r#"{{"attempt":1,"gpus":["GPU-{n:08}"],"worker_id":"w_01hm{:022}"}}"#, n % 1_000),
        request_id: Some(format!("{n:024x}")),
    }
}

async fn fill(directory: &Path) {
    let options = SqliteConnectOptions::new()
        .filename(directory.join("orchestrator.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Off);
    let mut connection: SqliteConnection = options.connect().await.expect("a database");
    connection.execute(SCHEMA).await.expect("a schema");
    connection.execute("BEGIN").await.expect("a transaction");
    let mut newest = Mark::default();
    for n in 1..=ENTRIES {
        let entry = entry(n);
        let record = entry.placed("c_1", n, &newest.hash);
        let hash = Sha256::digest(record.canonical()).iter().fold(String::new(), |mut hash, byte| {
            let _ = write!(hash, "{byte:02x}");
            hash
        });
        let insert = sqlx::query("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
        let insert = insert.bind(record.chain).bind(n).bind(entry.at.0).bind(record.actor).bind(record.action);
        let insert = insert.bind(record.target).bind(record.detail).bind(record.request_id).bind(record.previous);
        insert.bind(&hash).execute(&mut connection).await.expect("a new row");
        newest = Mark { seq: n, hash };
    }
    let head = sqlx::query("INSERT INTO audit_heads (chain, seq, hash) VALUES ('c_1', ?, ?)");
    head.bind(newest.seq).bind(newest.hash).execute(&mut connection).await.expect("a new row");
    connection.execute("COMMIT").await.expect("a commit");
    connection.close().await.expect("closed");
}

fn verify(directory: &Path) -> Duration {
    let dist = std::env::var_os("SIMPLETUNER_DIST").map_or_else(|| PathBuf::from("dist"), PathBuf::from);
    let began = Instant::now();
    let told = Command::new(dist.join("simpletuner")).args(["audit", "verify", "--data-dir"]).arg(directory).output();
    let told = told.expect("the program in dist/");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stdout));
    began.elapsed()
}
