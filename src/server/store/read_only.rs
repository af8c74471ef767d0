//! A read-only database: for commands beside the server, whether one runs or not.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use app::domain::ids::JobId;
use futures_util::future::BoxFuture;
use sqlx::ConnectOptions;
use sqlx::postgres::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::commit_group::GroupHooks;
use super::sql::{DbConnection, LazyReader, SqlSession, StoreContext, store_error};
use super::{Result, Store, StoreError, TransactionWork, Tx, postgres, sqlite};
use crate::store::cache::snapshot::CommittedSnapshot;
use crate::store::system::schema::newest_version;

pub struct ReadOnlyStore {
    pool: Pool,
    shared: Arc<StoreContext>,
}

enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Pool {
    fn newest_schema(&self) -> i64 {
        match self {
            Self::Sqlite(_) => newest_version(&sqlite::MIGRATIONS),
            Self::Postgres(_) => newest_version(&postgres::MIGRATIONS),
        }
    }
}

impl ReadOnlyStore {
    /// Opens the SQLite database in a data directory. The lock of a running server does not matter, because this only
    /// reads.
    ///
    /// # Errors
    /// With a message for the operator.
    pub async fn open_sqlite(directory: &Path) -> anyhow::Result<Self> {
        let file = directory.join(sqlite::DATABASE_FILE);
        anyhow::ensure!(
            file.is_file(),
            "there is no database in {}; set the server's --data-dir or --database-url",
            directory.display()
        );
        let options = SqliteConnectOptions::new().filename(&file).read_only(true).disable_statement_logging();
        let pool = SqlitePoolOptions::new()
            .max_connections(2)
            .connect_with(options)
            .await
            .with_context(|| format!("cannot read {}; run this as the server's user", file.display()))?;
        Ok(Self::new(Pool::Sqlite(pool)))
    }

    /// Opens a PostgreSQL database.
    ///
    /// # Errors
    /// With a message for the operator.
    pub async fn open_postgres(url: &str) -> anyhow::Result<Self> {
        Ok(Self::new(Pool::Postgres(postgres::reader_pool(&postgres::connect_options(url)?).await?)))
    }

    /// Copies an SQLite database into a new file, as one snapshot; its server can keep running.
    pub async fn copy_to(&self, file: &Path) -> Result<()> {
        let Pool::Sqlite(pool) = &self.pool else {
            return Err(StoreError::Unavailable("only an SQLite database can be copied".to_owned()));
        };
        let file = file.to_string_lossy().into_owned();
        sqlx::query("VACUUM INTO $1").bind(file).execute(pool).await.map_err(store_error).map(drop)
    }

    /// Returns whether a PostgreSQL database has tables, and whether a server is running on it.
    pub async fn usage_state(&self) -> Result<(bool, bool)> {
        let Pool::Postgres(pool) = &self.pool else { return Ok((true, false)) };
        let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()";
        let tables: i64 = sqlx::query_scalar(tables).fetch_one(pool).await.map_err(store_error)?;
        let table_exists = "SELECT to_regclass('servers') IS NOT NULL";
        if !sqlx::query_scalar::<_, bool>(table_exists).fetch_one(pool).await.map_err(store_error)? {
            return Ok((tables > 0, false));
        }
        let live_servers = "SELECT count(*) FROM servers
             WHERE seen_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 10000";
        let live_servers: i64 = sqlx::query_scalar(live_servers).fetch_one(pool).await.map_err(store_error)?;
        Ok((true, live_servers > 0))
    }

    fn new(pool: Pool) -> Self {
        let known_schema = pool.newest_schema();
        Self { pool, shared: StoreContext::new("reader", known_schema, CommittedSnapshot::default()) }
    }
}

impl Store for ReadOnlyStore {
    fn write(&self, _work: TransactionWork) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Err(StoreError::Unavailable("the database was opened read-only".to_owned())) })
    }

    fn set_hooks(&self, _hooks: GroupHooks) {}

    fn read(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        let reader = match &self.pool {
            Pool::Sqlite(pool) => DbConnection::SqliteReader(LazyReader::new(pool, "BEGIN")),
            Pool::Postgres(pool) => DbConnection::PostgresReader(LazyReader::new(pool, postgres::BEGIN_READ)),
        };
        let session = SqlSession::new(reader, Arc::clone(&self.shared));
        Box::pin(async { Ok(Box::new(session) as Box<dyn Tx>) })
    }

    fn read_recent(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        self.read()
    }

    fn take_changed_jobs(&self) -> Option<BTreeSet<JobId>> {
        None
    }

    fn newest_schema(&self) -> i64 {
        self.pool.newest_schema()
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
