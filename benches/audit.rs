//! The speed at which `simpletuner audit verify`, the program in `dist/`, verifies an audit log with many entries.
//!
//! `cargo run --release --no-default-features --features ssr --example audit [sqlite|postgres]`; `SIMPLETUNER_DIST`
//! names the program and, for PostgreSQL, `SIMPLETUNER_TEST_POSTGRES` a server.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use app::domain::audit::verify::EntryRef;
use app::domain::audit::{AuditAction, AuditEvent, AuditRecord};
use app::domain::time::Timestamp;
use sha2::{Digest, Sha256};
use sqlx::migrate::MigrateDatabase;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Executor};

const ENTRIES: i64 = 1_000_000;
const ROUNDS: usize = 3;
/// The size of a chunk that is sent to PostgreSQL, in bytes.
const COPY_CHUNK_BYTES: usize = 1 << 20;

fn main() {
    let postgres = std::env::args().any(|argument| argument == "postgres");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let address = runtime.block_on(async {
        if postgres {
            return Some(fill_postgres().await);
        }
        fill_sqlite(directory.path()).await;
        None
    });
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| verify(directory.path(), address.as_deref())).collect();
    times.sort();
    let time = times[ROUNDS / 2].as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for display")]
    let rate = ENTRIES as f64 / time;
    println!(
        "verifying {ENTRIES} audit entries on {}: {time:.1} s, {rate:.0} entries/s (target >= 200000/s); {ROUNDS} rounds",
        if postgres { "PostgreSQL" } else { "SQLite" }
    );
}

fn entry(n: i64) -> AuditEvent {
    AuditEvent {
        at: Timestamp(1_705_314_600_000 + n),
        actor: format!("worker:w_01hm{:022}", n % 1_000),
        action: AuditAction::JobRunning,
        target: format!("j_01hm{n:022}"),
        detail: format!(r#"{{"attempt":1,"gpus":["GPU-{n:08}"],"worker_id":"w_01hm{:022}"}}"#, n % 1_000),
        request_id: Some(format!("{n:024x}")),
    }
}

/// An entry of the chain, with its hashes.
struct ChainEntry {
    seq: i64,
    entry: AuditEvent,
    previous: String,
    hash: String,
}

impl ChainEntry {
    fn record(&self) -> AuditRecord<'_> {
        self.entry.to_record("c_1", self.seq, &self.previous)
    }
}

/// Returns the chain, from its first entry.
fn chain() -> impl Iterator<Item = ChainEntry> {
    let mut newest = EntryRef::default().hash;
    (1..=ENTRIES).map(move |seq| {
        let mut chained = ChainEntry { seq, entry: entry(seq), previous: newest.clone(), hash: String::new() };
        newest = Sha256::digest(chained.record().canonical_bytes()).iter().fold(String::new(), |mut hash, byte| {
            let _ = write!(hash, "{byte:02x}");
            hash
        });
        chained.hash.clone_from(&newest);
        chained
    })
}

/// Creates a SQLite database in this directory.
async fn fill_sqlite(directory: &Path) {
    let options = SqliteConnectOptions::new()
        .filename(directory.join("orchestrator.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Off);
    let mut connection: SqliteConnection = options.connect().await.expect("a database");
    connection.execute(include_str!("../src/server/store/sqlite/migrations/0001_start.sql")).await.expect("a schema");
    connection.execute("BEGIN").await.expect("a transaction");
    let mut newest = String::new();
    for chained in chain() {
        let record = chained.record();
        let insert = sqlx::query("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
        let insert = insert.bind(record.chain).bind(record.seq).bind(record.at.0).bind(record.actor);
        let insert = insert.bind(record.action).bind(record.target).bind(record.detail).bind(record.request_id);
        insert.bind(record.previous).bind(&chained.hash).execute(&mut connection).await.expect("a new row");
        newest = chained.hash;
    }
    let head = sqlx::query("INSERT INTO audit_heads (chain, seq, hash) VALUES ('c_1', ?, ?)");
    head.bind(ENTRIES).bind(newest).execute(&mut connection).await.expect("a new row");
    connection.execute("COMMIT").await.expect("a commit");
    connection.close().await.expect("a closed connection");
}

/// Creates a PostgreSQL database; returns its address.
async fn fill_postgres() -> String {
    let server =
        std::env::var("SIMPLETUNER_TEST_POSTGRES").expect("SIMPLETUNER_TEST_POSTGRES names a PostgreSQL server");
    let address = server.replacen("/postgres?", &format!("/audit_{}?", std::process::id()), 1);
    sqlx::Postgres::create_database(&address).await.expect("a new database");
    let mut connection = PgConnection::connect(&address).await.expect("a database");
    connection.execute(include_str!("../src/server/store/postgres/migrations/0001_start.sql")).await.expect("a schema");
    let mut copy = connection.copy_in_raw("COPY audit FROM STDIN").await.expect("a copy");
    let (mut lines, mut newest) = (String::new(), String::new());
    for chained in chain() {
        let (record, hash) = (chained.record(), &chained.hash);
        // The fields contain no character that COPY would require to be escaped.
        let request = record.request_id.unwrap_or("\\N");
        let _ = writeln!(
            lines,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{request}\t{}\t{hash}",
            record.chain,
            record.seq,
            record.at.0,
            record.actor,
            record.action,
            record.target,
            record.detail,
            record.previous
        );
        newest = chained.hash;
        if lines.len() > COPY_CHUNK_BYTES {
            copy.send(std::mem::take(&mut lines).into_bytes()).await.expect("a written chunk");
        }
    }
    copy.send(lines.into_bytes()).await.expect("a written chunk");
    copy.finish().await.expect("a written chunk");
    let head = sqlx::query("INSERT INTO audit_heads (chain, seq, hash) VALUES ('c_1', $1, $2)");
    head.bind(ENTRIES).bind(newest).execute(&mut connection).await.expect("a new row");
    connection.close().await.expect("a closed connection");
    address
}

fn verify(directory: &Path, address: Option<&str>) -> Duration {
    let dist = std::env::var_os("SIMPLETUNER_DIST").map_or_else(|| PathBuf::from("dist"), PathBuf::from);
    let mut command = Command::new(dist.join("simpletuner"));
    command.args(["audit", "verify", "--data-dir"]).arg(directory);
    command.envs(address.map(|address| ("SIMPLETUNER_DATABASE_URL", address)));
    let started = Instant::now();
    let output = command.output().expect("the program in dist/");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    started.elapsed()
}
