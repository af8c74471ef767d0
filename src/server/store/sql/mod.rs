//! The statements, written once for both engines.
//!
//! They are in the SQL that SQLite and PostgreSQL share: `$1` for parameters, `ON CONFLICT (…)`, `IS NOT DISTINCT
//! FROM`. Columns are text, 64-bit integers (moments in milliseconds, switches as 0 and 1) and floats, on both.

mod access;
mod artifacts;
mod attempts;
mod audit;
mod checkpoints;
mod configs;
mod factors;
mod group;
mod jobs;
pub mod mirror;
mod notices;
mod passkeys;
mod pending;
mod reader;
mod retention;
mod revisions;
mod rows;
mod schema;
mod secrets;
mod servers;
mod statement;
mod usage;
mod workers;
pub mod writer;

use std::collections::BTreeSet;
use std::sync::Arc;

use app::domain::audit::verify::Mark;
use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Postgres, Sqlite};

use self::mirror::Mirror;
use self::pending::Pending;
pub use self::reader::Reader;
use self::revisions::Revisions;
use self::statement::{Places, Statement, Value, sql};
use super::board::Board;
use super::{Result, StoreError};

/// A connection inside a transaction, for writing or for reading.
pub enum Db<'c> {
    /// SQLite, for writing.
    Sqlite(&'c mut SqliteConnection),
    /// SQLite, for reading.
    SqliteReader(Reader<Sqlite>),
    /// PostgreSQL, for writing.
    Postgres(&'c mut PgConnection),
    /// PostgreSQL, for reading.
    PostgresReader(Reader<Postgres>),
}

/// What the sessions of a store share.
pub struct Shared {
    /// The audit chain of this server process.
    chain: Arc<str>,
    /// Revisions of configurations that were read before.
    revisions: Revisions,
    /// What was committed last.
    pub board: Board,
}

impl Shared {
    /// Of a server with this audit chain.
    pub fn new(chain: &str, board: Board) -> Arc<Self> {
        Arc::new(Self { chain: chain.into(), revisions: Revisions::default(), board })
    }
}

/// What the aggregate traits are implemented on.
pub struct Session<'c> {
    db: Db<'c>,
    shared: Arc<Shared>,
    /// Whether a reader may look at the board.
    remembers: bool,
    /// What the writer knows.
    mirror: Option<&'c mut Mirror>,
    /// What is decided and not written yet.
    pending: Pending,
    /// How often something was written, or decided to be.
    writes: u64,
    /// Whether a statement failed: nothing of the transaction may be kept, whatever was made of it.
    failed: bool,
    /// Whether a member of the group asked for planning at its end.
    wants_plan: bool,
    /// The newest entry of the audit chain, once this transaction has appended one.
    head: Option<Mark>,
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
    pub fn new(db: Db<'c>, shared: Arc<Shared>) -> Self {
        let (pending, topics) = (Pending::default(), BTreeSet::new());
        Self {
            db,
            shared,
            remembers: false,
            mirror: None,
            pending,
            writes: 0,
            failed: false,
            wants_plan: false,
            head: None,
            topics,
        }
    }

    /// The same, finding what lives on the board until the first statement.
    pub fn remembering(self) -> Self {
        Self { remembers: true, ..self }
    }

    /// A statement that the engines spell differently.
    fn either(&self, sqlite: &'static str, postgres: &'static str) -> Statement {
        match self.db {
            Db::Sqlite(_) | Db::SqliteReader(_) => sql(sqlite),
            Db::Postgres(_) | Db::PostgresReader(_) => sql(postgres),
        }
    }

    /// How parameters are written in a statement that is put together.
    fn places(&self) -> Places {
        match self.db {
            Db::Sqlite(_) | Db::SqliteReader(_) => Places::Bare,
            Db::Postgres(_) | Db::PostgresReader(_) => Places::Numbered,
        }
    }

    /// Hands over every row as it comes: a row takes several times the room of what is made of it.
    async fn rows(&mut self, statement: Statement, take: impl FnMut(Row) + Send) -> Result<()> {
        self.settle().await?;
        let ended = match &mut self.db {
            Db::Sqlite(connection) => sqlite_rows(connection, statement, take).await,
            Db::SqliteReader(reader) => sqlite_rows(reader.begun().await?, statement, take).await,
            Db::Postgres(connection) => postgres_rows(connection, statement, take).await,
            Db::PostgresReader(reader) => postgres_rows(reader.begun().await?, statement, take).await,
        };
        self.failed |= ended.is_err();
        ended
    }

    /// What is made of every row.
    async fn all<T: Send>(
        &mut self,
        statement: Statement,
        mut of: impl FnMut(&Row) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.rows(statement, |row| all.push(of(&row))).await?;
        all.into_iter().collect()
    }

    /// What is made of every row of which something can be made: one that is broken must not hide the others.
    async fn whole<T: Send>(
        &mut self,
        statement: Statement,
        mut of: impl FnMut(&Row) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let mut whole = Vec::new();
        self.rows(statement, |row| whole.extend(sound(of(&row)))).await?;
        Ok(whole)
    }

    /// The first row, if there is one.
    async fn first(&mut self, statement: Statement) -> Result<Option<Row>> {
        let mut first = None;
        let take = |row| {
            first.get_or_insert(row);
        };
        self.rows(statement, take).await?;
        Ok(first)
    }

    /// Runs a statement; returns how many rows it wrote.
    async fn run(&mut self, statement: Statement) -> Result<u64> {
        self.settle().await?;
        self.execute(statement).await
    }

    /// The same, not minding what is pending.
    async fn execute(&mut self, statement: Statement) -> Result<u64> {
        let run = match &mut self.db {
            Db::Sqlite(connection) => sqlite_run(connection, statement).await,
            Db::SqliteReader(reader) => sqlite_run(reader.begun().await?, statement).await,
            Db::Postgres(connection) => postgres_run(connection, statement).await,
            Db::PostgresReader(reader) => postgres_run(reader.begun().await?, statement).await,
        };
        self.failed |= run.is_err();
        self.writes += run.as_ref().copied().unwrap_or_default();
        run
    }

    /// Runs a statement that must write exactly one row; if it does not, somebody else was quicker.
    async fn one(&mut self, statement: Statement) -> Result<()> {
        if self.run(statement).await? == 1 { Ok(()) } else { Err(StoreError::Conflict) }
    }
}

/// What was made of a row; none of one that is broken, which the log names.
fn sound<T>(made: Result<T>) -> Option<T> {
    made.inspect_err(|error| tracing::error!(%error, "a row is left out")).ok()
}

async fn sqlite_rows(connection: &mut SqliteConnection, statement: Statement, mut take: impl FnMut(Row)) -> Result<()> {
    let mut portions = bound!(statement).fetch(connection).try_chunks(PORTION);
    while let Some(portion) = portions.try_next().await.map_err(|error| failed(error.1))? {
        portion.into_iter().map(Row::Sqlite).for_each(&mut take);
    }
    Ok(())
}

async fn sqlite_run(connection: &mut SqliteConnection, statement: Statement) -> Result<u64> {
    Ok(bound!(statement).execute(connection).await.map_err(failed)?.rows_affected())
}

async fn postgres_rows(connection: &mut PgConnection, statement: Statement, mut take: impl FnMut(Row)) -> Result<()> {
    let mut rows = bound!(statement.printable()).fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(failed)? {
        take(Row::Postgres(row));
    }
    Ok(())
}

async fn postgres_run(connection: &mut PgConnection, statement: Statement) -> Result<u64> {
    Ok(bound!(statement.printable()).execute(connection).await.map_err(failed)?.rows_affected())
}

/// So many rows of SQLite are held at once. Its thread allocates them and ours frees them: one by one, each waits for the
/// other all the time, and reading takes twice as long.
const PORTION: usize = 2_500;

/// What an error of the driver means to a use case.
#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` takes")]
pub fn failed(error: sqlx::Error) -> StoreError {
    match error.as_database_error() {
        Some(database) if database.is_unique_violation() => StoreError::Conflict,
        _ => StoreError::Unavailable(error.to_string()),
    }
}
