//! The statements, written once for both engines.
//!
//! They are in the SQL that SQLite and PostgreSQL share: `$1` for parameters, `ON CONFLICT (…)`, `IS NOT DISTINCT
//! FROM`. Columns are text, 64-bit integers (moments in milliseconds, switches as 0 and 1) and floats, on both.

mod access;
mod artifacts;
mod attempts;
mod audit;
mod configs;
mod group;
mod jobs;
pub mod mirror;
mod rows;
mod servers;
mod statement;
mod workers;
pub mod writer;

use std::collections::BTreeSet;
use std::sync::Arc;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Postgres, Sqlite, Transaction};

use self::mirror::Mirror;
use self::statement::{Statement, Value, sql};
use super::{Result, StoreError};

/// A connection inside a transaction, for writing or for reading.
pub enum Db<'c> {
    /// SQLite, for writing.
    Sqlite(&'c mut SqliteConnection),
    /// SQLite, for reading.
    SqliteReader(Transaction<'static, Sqlite>),
    /// PostgreSQL, for writing.
    Postgres(&'c mut PgConnection),
    /// PostgreSQL, for reading.
    PostgresReader(Transaction<'static, Postgres>),
}

/// What the aggregate traits are implemented on.
pub struct Session<'c> {
    db: Db<'c>,
    /// The audit chain of this server process.
    chain: Arc<str>,
    /// What the writer knows; readers ask the database.
    mirror: Option<&'c mut Mirror>,
    /// Whether a member of the group asked for planning at its end.
    wants_plan: bool,
    /// The newest entry of the audit chain, once this transaction has appended one.
    head: Option<(i64, String)>,
    /// What the members of the group have changed.
    topics: BTreeSet<String>,
}

/// A row of either engine.
pub enum Row {
    /// Of SQLite.
    Sqlite(SqliteRow),
    /// Of PostgreSQL.
    Postgres(PgRow),
}

/// A statement of the driver with its parameters.
macro_rules! bound {
    ($statement:expr) => {{
        let statement: Statement = $statement;
        let mut query = sqlx::query(statement.text);
        for value in statement.values {
            query = match value {
                Value::Text(text) => query.bind(text),
                Value::Int(number) => query.bind(number),
                Value::Real(number) => query.bind(number),
            };
        }
        query
    }};
}

impl<'c> Session<'c> {
    /// Wraps a connection that is inside a transaction.
    pub fn new(db: Db<'c>, chain: Arc<str>) -> Self {
        Self { db, chain, mirror: None, wants_plan: false, head: None, topics: BTreeSet::new() }
    }

    /// A statement that the engines spell differently.
    fn either(&self, sqlite: &'static str, postgres: &'static str) -> Statement {
        match self.db {
            Db::Sqlite(_) | Db::SqliteReader(_) => sql(sqlite),
            Db::Postgres(_) | Db::PostgresReader(_) => sql(postgres),
        }
    }

    /// Every row.
    async fn all(&mut self, statement: Statement) -> Result<Vec<Row>> {
        match &mut self.db {
            Db::Sqlite(connection) => sqlite_rows(connection, statement).await,
            Db::SqliteReader(transaction) => sqlite_rows(transaction, statement).await,
            Db::Postgres(connection) => postgres_rows(connection, statement).await,
            Db::PostgresReader(transaction) => postgres_rows(transaction, statement).await,
        }
    }

    /// The first row, if there is one.
    async fn first(&mut self, statement: Statement) -> Result<Option<Row>> {
        Ok(self.all(statement).await?.into_iter().next())
    }

    /// Runs a statement; returns how many rows it wrote.
    async fn run(&mut self, statement: Statement) -> Result<u64> {
        match &mut self.db {
            Db::Sqlite(connection) => sqlite_run(connection, statement).await,
            Db::SqliteReader(transaction) => sqlite_run(transaction, statement).await,
            Db::Postgres(connection) => postgres_run(connection, statement).await,
            Db::PostgresReader(transaction) => postgres_run(transaction, statement).await,
        }
    }

    /// Runs a statement that must write exactly one row; if it does not, somebody else was quicker.
    async fn one(&mut self, statement: Statement) -> Result<()> {
        if self.run(statement).await? == 1 { Ok(()) } else { Err(StoreError::Conflict) }
    }
}

async fn sqlite_rows(connection: &mut SqliteConnection, statement: Statement) -> Result<Vec<Row>> {
    let rows = bound!(statement).fetch_all(connection).await.map_err(failed)?;
    Ok(rows.into_iter().map(Row::Sqlite).collect())
}

async fn sqlite_run(connection: &mut SqliteConnection, statement: Statement) -> Result<u64> {
    Ok(bound!(statement).execute(connection).await.map_err(failed)?.rows_affected())
}

async fn postgres_rows(connection: &mut PgConnection, statement: Statement) -> Result<Vec<Row>> {
    let rows = bound!(statement.printable()).fetch_all(connection).await.map_err(failed)?;
    Ok(rows.into_iter().map(Row::Postgres).collect())
}

async fn postgres_run(connection: &mut PgConnection, statement: Statement) -> Result<u64> {
    Ok(bound!(statement.printable()).execute(connection).await.map_err(failed)?.rows_affected())
}

/// What an error of the driver means to a use case.
#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` takes")]
pub fn failed(error: sqlx::Error) -> StoreError {
    match error.as_database_error() {
        Some(database) if database.is_unique_violation() => StoreError::Conflict,
        _ => StoreError::Unavailable(error.to_string()),
    }
}
