//! The speed of the disk and the driver alone: successive commits of one row and of 64 rows on one connection, as
//! durable as those of the server. Compare the figures of `load` with these.
//!
//! `cargo run --release --no-default-features --features ssr --example raw [sqlite|postgres]`; for PostgreSQL,
//! `SIMPLETUNER_TEST_POSTGRES` names a server.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

const DURATION: Duration = Duration::from_secs(3);
const GROUP: usize = 64;

fn main() {
    let postgres = std::env::args().any(|argument| argument == "postgres");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (single, grouped) = if postgres { on_postgres().await } else { on_sqlite().await };
        println!(
            "raw commits on {}, this disk and driver: {single:.0}/s of one row, {grouped:.0}/s of {GROUP} rows",
            if postgres { "PostgreSQL" } else { "SQLite" },
        );
    });
}

async fn on_sqlite() -> (f64, f64) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = SqliteConnectOptions::new()
        .filename(directory.path().join("raw.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let mut connection: SqliteConnection = options.connect().await.expect("a database");
    rates(&mut connection).await
}

async fn on_postgres() -> (f64, f64) {
    let server =
        std::env::var("SIMPLETUNER_TEST_POSTGRES").expect("SIMPLETUNER_TEST_POSTGRES names a PostgreSQL server");
    let mut connection = PgConnection::connect(&server).await.expect("a server");
    rates(&mut connection).await
}

/// Returns commits per second, of one row and of a group.
async fn rates<C>(connection: &mut C) -> (f64, f64)
where
    C: Connection,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    connection.execute("CREATE TABLE raw (id BIGINT PRIMARY KEY, text TEXT NOT NULL)").await.expect("a new table");
    let mut next_id = 0;
    (rate(connection, 1, &mut next_id).await, rate(connection, GROUP, &mut next_id).await)
}

async fn rate<C>(connection: &mut C, rows: usize, next_id: &mut usize) -> f64
where
    C: Connection,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    let (started, mut commits) = (Instant::now(), 0_u32);
    while started.elapsed() < DURATION {
        // As long as an entry of the audit log.
        let row = |id: usize| format!("({id}, '{id:0>160}')");
        let values: Vec<String> = (*next_id..*next_id + rows).map(row).collect();
        *next_id += rows;
        connection.execute("BEGIN").await.expect("a transaction");
        let insert = format!("INSERT INTO raw (id, text) VALUES {}", values.join(", "));
        connection.execute(AssertSqlSafe(insert)).await.expect("new rows");
        connection.execute("COMMIT").await.expect("a commit");
        commits += 1;
    }
    f64::from(commits) / started.elapsed().as_secs_f64()
}
