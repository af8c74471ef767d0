//! The statements, written once for both engines.
//!
//! They use the SQL that SQLite and PostgreSQL share: `$1` for parameters, `ON CONFLICT (…)`, `IS NOT DISTINCT FROM`.
//! Columns are text, 64-bit integers (times in milliseconds, booleans as 0 and 1) and floats, on both.

mod access;
mod artifacts;
mod audit;
mod cached_state;
mod changed_rows;
mod configs;
pub mod group;
mod jobs;
mod lazy_reader;
pub mod rows;
mod secrets;
mod shares;
pub(super) mod statement;
pub mod system;
mod usage;
mod workers;
mod write_batch;
pub mod writer;

use std::collections::BTreeSet;
use std::sync::Arc;

use app::domain::audit::verify::EntryRef;
use app::threads::wait_for_thread;
use futures_util::TryStreamExt;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Postgres, Sqlite};

pub use self::lazy_reader::LazyReader;
use self::statement::{PlaceholderStyle, SqlValue, Statement, sql};
use self::write_batch::WriteBatch;
use super::{Result, StoreError};
use crate::store::cache::revisions::RevisionCache;
use crate::store::cache::snapshot::CommittedSnapshot;
use crate::store::cache::writer::WriterCache;

pub enum DbConnection<'c> {
    Sqlite(&'c mut SqliteConnection),
    SqliteReader(LazyReader<Sqlite>),
    Postgres(&'c mut PgConnection),
    PostgresReader(LazyReader<Postgres>),
}

/// What the sessions of a store share.
pub struct StoreContext {
    /// The audit chain, and so the name, of this server.
    pub chain: Arc<str>,
    /// The newest schema that this program knows.
    known_schema: i64,
    /// Revisions of configurations that were read before.
    revisions: RevisionCache,
    /// The last committed state.
    pub snapshot: CommittedSnapshot,
}

impl StoreContext {
    pub fn new(chain: &str, known_schema: i64, snapshot: CommittedSnapshot) -> Arc<Self> {
        Arc::new(Self { chain: chain.into(), known_schema, revisions: RevisionCache::default(), snapshot })
    }
}

/// The type that implements the aggregate traits.
pub struct SqlSession<'c> {
    db: DbConnection<'c>,
    shared: Arc<StoreContext>,
    /// Whether a reader may use the committed snapshot.
    uses_snapshot: bool,
    /// The state in the writer's memory.
    cache: Option<&'c mut WriterCache>,
    /// Writes that are not flushed yet.
    batch: WriteBatch,
    /// The number of writes, flushed or not.
    writes: u64,
    /// Whether a statement failed: nothing of the transaction may be committed, even if the error was handled.
    has_failed: bool,
    /// Whether a member of the group requested planning.
    planning_requested: bool,
    /// The newest entry of the audit chain, once this transaction has appended one.
    head: Option<EntryRef>,
    /// The topics that the group has changed.
    topics: BTreeSet<String>,
}

pub enum SqlRow {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// SQLite's statement with its parameters.
fn sqlite_query(statement: Statement) -> Query<'static, Sqlite, SqliteArguments> {
    statement.values.into_iter().fold(sqlx::query(statement.text), |query, value| match value {
        SqlValue::Text(text) => query.bind(text),
        SqlValue::Int(number) => query.bind(number),
        SqlValue::Real(number) => query.bind(number),
        SqlValue::Texts(_) | SqlValue::Ints(_) | SqlValue::Reals(_) => unreachable!("only PostgreSQL has lists"),
    })
}

/// PostgreSQL's statement with its parameters.
///
/// One that returns all columns is not prepared for later: PostgreSQL rejects a prepared one after a newer version's
/// migration has added a column.
fn postgres_query(statement: Statement) -> Query<'static, Postgres, PgArguments> {
    let statement = statement.without_nul();
    let is_reusable = !statement.returns_all_columns();
    let query = sqlx::query(statement.text).persistent(is_reusable);
    statement.values.into_iter().fold(query, |query, value| match value {
        SqlValue::Text(text) => query.bind(text),
        SqlValue::Int(number) => query.bind(number),
        SqlValue::Real(number) => query.bind(number),
        SqlValue::Texts(texts) => query.bind(texts),
        SqlValue::Ints(numbers) => query.bind(numbers),
        SqlValue::Reals(numbers) => query.bind(numbers),
    })
}

impl crate::store::Tx for SqlSession<'_> {}

impl<'c> SqlSession<'c> {
    pub fn new(db: DbConnection<'c>, shared: Arc<StoreContext>) -> Self {
        let (batch, topics) = (WriteBatch::default(), BTreeSet::new());
        Self {
            db,
            shared,
            uses_snapshot: false,
            cache: None,
            batch,
            writes: 0,
            has_failed: false,
            planning_requested: false,
            head: None,
            topics,
        }
    }

    /// Lets a reader use the committed snapshot until its first statement.
    pub fn with_snapshot(self) -> Self {
        Self { uses_snapshot: true, ..self }
    }

    /// Selects the statement for the engine.
    fn for_engine(&self, sqlite: &'static str, postgres: &'static str) -> Statement {
        match self.db {
            DbConnection::Sqlite(_) | DbConnection::SqliteReader(_) => sql(sqlite),
            DbConnection::Postgres(_) | DbConnection::PostgresReader(_) => sql(postgres),
        }
    }

    /// The placeholder style of generated statements.
    fn placeholder_style(&self) -> PlaceholderStyle {
        match self.db {
            DbConnection::Sqlite(_) | DbConnection::SqliteReader(_) => PlaceholderStyle::Anonymous,
            DbConnection::Postgres(_) | DbConnection::PostgresReader(_) => PlaceholderStyle::Numbered,
        }
    }

    /// Passes on each row as it arrives: a row takes several times the memory of its value.
    async fn for_each_row(&mut self, statement: Statement, handle_row: impl FnMut(SqlRow) + Send) -> Result<()> {
        self.flush().await?;
        let result = match &mut self.db {
            DbConnection::Sqlite(connection) => wait_for_thread(sqlite_rows(connection, statement, handle_row)).await,
            DbConnection::SqliteReader(reader) => {
                let connection = reader.connection().await?;
                wait_for_thread(sqlite_rows(connection, statement, handle_row)).await
            }
            DbConnection::Postgres(connection) => postgres_rows(connection, statement, handle_row).await,
            DbConnection::PostgresReader(reader) => {
                postgres_rows(reader.connection().await?, statement, handle_row).await
            }
        };
        self.has_failed |= result.is_err();
        result
    }

    /// Converts every row.
    async fn fetch_all<T: Send>(
        &mut self,
        statement: Statement,
        mut parse: impl FnMut(&SqlRow) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.for_each_row(statement, |row| all.push(parse(&row))).await?;
        all.into_iter().collect()
    }

    /// Converts every valid row: a corrupt one must not hide the others.
    async fn fetch_valid<T: Send>(
        &mut self,
        statement: Statement,
        mut parse: impl FnMut(&SqlRow) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let mut valid = Vec::new();
        self.for_each_row(statement, |row| valid.extend(valid_or_log(parse(&row)))).await?;
        Ok(valid)
    }

    /// Returns the first row, if there is one.
    async fn fetch_first(&mut self, statement: Statement) -> Result<Option<SqlRow>> {
        let mut first = None;
        let keep_first = |row| {
            first.get_or_insert(row);
        };
        self.for_each_row(statement, keep_first).await?;
        Ok(first)
    }

    /// Runs a statement; returns the number of rows it wrote.
    async fn execute(&mut self, statement: Statement) -> Result<u64> {
        self.flush().await?;
        self.execute_unflushed(statement).await
    }

    /// Runs a statement without flushing the batch.
    async fn execute_unflushed(&mut self, statement: Statement) -> Result<u64> {
        let result = match &mut self.db {
            DbConnection::Sqlite(connection) => wait_for_thread(sqlite_execute(connection, statement)).await,
            DbConnection::SqliteReader(reader) => {
                let connection = reader.connection().await?;
                wait_for_thread(sqlite_execute(connection, statement)).await
            }
            DbConnection::Postgres(connection) => postgres_execute(connection, statement).await,
            DbConnection::PostgresReader(reader) => postgres_execute(reader.connection().await?, statement).await,
        };
        self.has_failed |= result.is_err();
        self.writes += result.as_ref().copied().unwrap_or_default();
        result
    }

    /// Runs a statement that must write exactly one row; otherwise another transaction was first.
    async fn execute_one(&mut self, statement: Statement) -> Result<()> {
        if self.execute(statement).await? == 1 { Ok(()) } else { Err(StoreError::Conflict) }
    }
}

/// Returns a valid row's value; logs a corrupt row, and returns `None`.
fn valid_or_log<T>(result: Result<T>) -> Option<T> {
    result.inspect_err(|error| tracing::error!(%error, "skipped a corrupt row")).ok()
}

async fn sqlite_rows(
    connection: &mut SqliteConnection,
    statement: Statement,
    mut handle_row: impl FnMut(SqlRow),
) -> Result<()> {
    let mut chunks = sqlite_query(statement).fetch(connection).try_chunks(SQLITE_ROW_BATCH);
    while let Some(chunk) = chunks.try_next().await.map_err(|error| store_error(error.1))? {
        chunk.into_iter().map(SqlRow::Sqlite).for_each(&mut handle_row);
    }
    Ok(())
}

async fn sqlite_execute(connection: &mut SqliteConnection, statement: Statement) -> Result<u64> {
    Ok(sqlite_query(statement).execute(connection).await.map_err(store_error)?.rows_affected())
}

async fn postgres_rows(
    connection: &mut PgConnection,
    statement: Statement,
    mut handle_row: impl FnMut(SqlRow),
) -> Result<()> {
    let mut rows = postgres_query(statement).fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(store_error)? {
        handle_row(SqlRow::Postgres(row));
    }
    Ok(())
}

async fn postgres_execute(connection: &mut PgConnection, statement: Statement) -> Result<u64> {
    Ok(postgres_query(statement).execute(connection).await.map_err(store_error)?.rows_affected())
}

/// The number of SQLite rows that are passed on together. SQLite's thread allocates them and the reading one frees
/// them; if they were passed on one by one, both threads would wait for each other, and reading would take twice as
/// long.
const SQLITE_ROW_BATCH: usize = 2_500;

/// Converts an error of the driver.
#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` requires")]
pub fn store_error(error: sqlx::Error) -> StoreError {
    match error.as_database_error() {
        Some(database) if database.is_unique_violation() => StoreError::Conflict,
        _ => StoreError::Unavailable(error.to_string()),
    }
}
