//! A database that is only read: what commands beside the server look at, whether one runs or not.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use futures_util::future::BoxFuture;
use sqlx::ConnectOptions;
use sqlx::postgres::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::board::Board;
use super::group::Hooks;
use super::schema::newest;
use super::sql::{Db, Reader, Session, Shared, failed};
use super::{Result, Store, StoreError, Tx, Work, postgres, sqlite};

/// See the module.
pub struct Archive {
    pool: Pool,
    shared: Arc<Shared>,
}

enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Archive {
    /// The SQLite database in a data directory. The lock of a server that runs does not matter: it writes, this reads.
    ///
    /// # Errors
    /// With a sentence for the operator.
    pub async fn in_directory(directory: &Path) -> anyhow::Result<Self> {
        let file = directory.join(sqlite::FILE);
        anyhow::ensure!(
            file.is_file(),
            "there is no database in {}; name the server's data directory with --data-dir, or its --database-url",
            directory.display()
        );
        let options = SqliteConnectOptions::new().filename(&file).read_only(true).disable_statement_logging();
        let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await.with_context(|| {
            format!("{} cannot be read; this needs the rights of the server's user", file.display())
        })?;
        Ok(Self::new(Pool::Sqlite(pool)))
    }

    /// A PostgreSQL database.
    ///
    /// # Errors
    /// With a sentence for the operator.
    pub async fn at(url: &str) -> anyhow::Result<Self> {
        Ok(Self::new(Pool::Postgres(postgres::readers(&postgres::options(url)?).await?)))
    }

    /// Copies an SQLite database into a new file, as it is at one moment; its server goes on meanwhile.
    pub async fn copy_to(&self, file: &Path) -> Result<()> {
        let Pool::Sqlite(pool) = &self.pool else {
            return Err(StoreError::Unavailable("only SQLite copies itself".to_owned()));
        };
        let file = file.to_string_lossy().into_owned();
        sqlx::query("VACUUM INTO $1").bind(file).execute(pool).await.map_err(failed).map(drop)
    }

    /// Whether a PostgreSQL database has tables of ours, and whether a server lives on it.
    pub async fn is_used(&self) -> Result<(bool, bool)> {
        let Pool::Postgres(pool) = &self.pool else { return Ok((true, false)) };
        let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()";
        let tables: i64 = sqlx::query_scalar(tables).fetch_one(pool).await.map_err(failed)?;
        let there = "SELECT to_regclass('servers') IS NOT NULL";
        if !sqlx::query_scalar::<_, bool>(there).fetch_one(pool).await.map_err(failed)? {
            return Ok((tables > 0, false));
        }
        let living = "SELECT count(*) FROM servers
             WHERE seen_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 10000";
        let living: i64 = sqlx::query_scalar(living).fetch_one(pool).await.map_err(failed)?;
        Ok((true, living > 0))
    }

    fn new(pool: Pool) -> Self {
        Self { pool, shared: Shared::new("reader", Board::default()) }
    }
}

impl Store for Archive {
    fn write(&self, _work: Work) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Err(StoreError::Unavailable("the database was opened for reading".to_owned())) })
    }

    fn attach(&self, _hooks: Hooks) {}

    fn read(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        let reader = match &self.pool {
            Pool::Sqlite(pool) => Db::SqliteReader(Reader::new(pool, "BEGIN")),
            Pool::Postgres(pool) => Db::PostgresReader(Reader::new(pool, postgres::BEGIN_READ)),
        };
        let session = Session::new(reader, Arc::clone(&self.shared));
        Box::pin(async { Ok(Box::new(session) as Box<dyn Tx>) })
    }

    fn recent(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        self.read()
    }

    fn known_schema(&self) -> i64 {
        match &self.pool {
            Pool::Sqlite(_) => newest(&sqlite::MIGRATIONS),
            Pool::Postgres(_) => newest(&postgres::MIGRATIONS),
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            match &self.pool {
                Pool::Sqlite(pool) => pool.close().await,
                Pool::Postgres(pool) => pool.close().await,
            }
        })
    }
}
