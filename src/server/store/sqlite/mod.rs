//! The store on SQLite: one file, one writer, several readers, one server.
//!
//! WAL with `synchronous=FULL`: what was acknowledged survives a power failure. A lock file beside the database
//! prevents a second server, because a second writer would not know the first one's memory.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use app::domain::ids::JobId;
use app::domain::time::Millis;
use app::threads::wait_for_thread;
use futures_util::future::BoxFuture;
use rust_embed::RustEmbed;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::commit_group::GroupHooks;
use super::sql::writer::{GroupEnding, WriteEngine, WriteGroup, WriterHandle};
use super::sql::{DbConnection, LazyReader, SqlSession, StoreContext, store_error};
use super::{Result, Store, TransactionWork, Tx};
use crate::store::cache::snapshot::CommittedSnapshot;
use crate::store::system::schema::{newest_version, with_shared_migrations};

/// The first release without the WAL-reset bug, which could corrupt a database with a reader and a writer.
const MIN_SQLITE_VERSION: (u32, u32, u32) = (3, 51, 3);
/// The database file in its directory.
pub const DATABASE_FILE: &str = "orchestrator.db";
/// Its lock file.
pub const LOCK_FILE: &str = "orchestrator.lock";

#[derive(RustEmbed)]
#[folder = "src/server/store/sqlite/migrations"]
struct SqliteMigrations;

/// The migrations of the schema.
pub static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(with_shared_migrations::<SqliteMigrations>);
// In a simulation, those that are dropped come back to the pool only when other tasks run.
const MAX_READERS: u32 = if cfg!(feature = "simulation") { 1_000 } else { 4 };
/// 32 MiB for the pages that the writer changes all the time, so that it does not read them again.
const WRITER_CACHE_SIZE: &str = "-32768";
/// The WAL is checkpointed every 32 MiB (in pages of 4 KiB), not every 4: a page that many commits change is written
/// once, with fewer waits for the disk.
const WAL_AUTOCHECKPOINT: &str = "8192";

/// The embedded database of one server.
pub struct SqliteStore {
    writer: WriterHandle,
    readers: SqlitePool,
    shared: Arc<StoreContext>,
    /// Held while the store is open; it prevents a second server.
    _lock: DirectoryLock,
}

impl SqliteStore {
    /// Opens or creates `orchestrator.db` in an existing directory, and migrates its schema.
    ///
    /// `chain` names this process's audit chain.
    ///
    /// # Errors
    /// With a message for the operator: the directory is in use or not writable, or the database cannot be used.
    pub async fn open(directory: &Path, chain: &str) -> anyhow::Result<Self> {
        let lock = lock_directory(directory)?;
        let options = SqliteConnectOptions::new()
            .filename(directory.join(DATABASE_FILE))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5))
            .foreign_keys(true)
            .disable_statement_logging();
        let writer_options =
            options.clone().pragma("cache_size", WRITER_CACHE_SIZE).pragma("wal_autocheckpoint", WAL_AUTOCHECKPOINT);
        let mut connection = writer_options.connect().await?;
        require_recent_sqlite(&mut connection).await?;
        let shared = StoreContext::new(chain, newest_version(&MIGRATIONS), CommittedSnapshot::default());
        let mut session = SqlSession::new(DbConnection::Sqlite(&mut connection), Arc::clone(&shared));
        session.check_before_migration(Millis(0)).await?;
        drop(session);
        MIGRATIONS.run(&mut connection).await?;
        let readers = SqlitePoolOptions::new()
            .min_connections(1)
            .max_connections(MAX_READERS)
            .connect_with(options.read_only(true))
            .await?;
        let writer = WriterHandle::start(SqliteEngine { connection }, Arc::clone(&shared));
        Ok(Self { writer, readers, shared, _lock: lock })
    }
}

impl Store for SqliteStore {
    fn write(&self, work: TransactionWork) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer.submit(work))
    }

    fn set_hooks(&self, hooks: GroupHooks) {
        self.writer.set_hooks(hooks);
    }

    // There is no other writer, so this server's last commit is the current state.
    fn read(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        self.read_recent()
    }

    fn read_recent(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        let reader = DbConnection::SqliteReader(LazyReader::new(&self.readers, "BEGIN"));
        let session = SqlSession::new(reader, Arc::clone(&self.shared)).with_snapshot();
        Box::pin(async { Ok(Box::new(session) as Box<dyn Tx>) })
    }

    fn take_changed_jobs(&self) -> Option<BTreeSet<JobId>> {
        self.shared.snapshot.take_changed_jobs()
    }

    fn newest_schema(&self) -> i64 {
        newest_version(&MIGRATIONS)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.writer.stop().await;
            self.readers.close().await;
        })
    }
}

/// The connection of the writer.
struct SqliteEngine {
    connection: SqliteConnection,
}

impl WriteEngine for SqliteEngine {
    fn run_group<'a>(&'a mut self, group: WriteGroup<'a>) -> BoxFuture<'a, Result<GroupEnding>> {
        Box::pin(async move {
            let mut transaction =
                wait_for_thread(self.connection.begin_with("BEGIN IMMEDIATE")).await.map_err(store_error)?;
            let ending = group.run(DbConnection::Sqlite(&mut transaction)).await?;
            let result = match &ending {
                GroupEnding::Commit(_) => wait_for_thread(transaction.commit()).await,
                GroupEnding::RollBack(_) => wait_for_thread(transaction.rollback()).await,
            };
            result.map_err(store_error).map(|()| ending)
        })
    }

    fn close(self) -> BoxFuture<'static, ()> {
        Box::pin(async {
            if let Err(error) = self.connection.close().await {
                tracing::warn!(%error, "the database was not closed cleanly; it recovers at the next start");
            }
        })
    }
}

/// The lock of a directory, against other servers.
pub struct DirectoryLock(File);

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing it is not enough: a child process that is being started briefly has a copy of it.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "failed to unlock the data directory; it stays locked until this process exits");
        }
    }
}

/// Locks a directory against other servers until the lock is dropped.
pub fn lock_directory(directory: &Path) -> anyhow::Result<DirectoryLock> {
    let path = directory.join(LOCK_FILE);
    let file = File::create(&path).map_err(|error| {
        anyhow::anyhow!(
            "cannot write to the data directory {} ({error}); change its owner, or choose another with --data-dir",
            directory.display()
        )
    })?;
    match file.try_lock() {
        Ok(()) => Ok(DirectoryLock(file)),
        Err(TryLockError::WouldBlock) => anyhow::bail!(
            "another simpletuner server uses the data directory {}; stop it, or choose another directory with --data-dir",
            directory.display()
        ),
        Err(TryLockError::Error(error)) => anyhow::bail!(
            "cannot lock the data directory {} ({error}); it must be on a local file system",
            directory.display()
        ),
    }
}

async fn require_recent_sqlite(connection: &mut SqliteConnection) -> anyhow::Result<()> {
    connection.ping().await?;
    let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(connection).await?;
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    let numbers: (u32, u32, u32) = (next(), next(), next());
    anyhow::ensure!(
        numbers >= MIN_SQLITE_VERSION,
        "this build contains SQLite {version}, which can corrupt a database in WAL mode; build with 3.51.3 or newer"
    );
    Ok(())
}
