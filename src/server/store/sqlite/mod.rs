//! The store on SQLite: one file, one writer, several readers, one server.
//!
//! WAL with `synchronous=FULL`: what was acknowledged survives a power cut. A lock file beside the database refuses a
//! second server, because a second writer would not know the first one's memory.

#[cfg(test)]
mod tests;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::board::Board;
use super::group::Hooks;
use super::schema::newest;
use super::sql::writer::{Ending, Engine, Group, Writer};
use super::sql::{Db, Reader, Session, Shared, failed};
use super::{Result, Store, Tx, Work};

/// The first release without the WAL-reset bug, which could corrupt a database with a reader and a writer.
const OLDEST_SQLITE: (u32, u32, u32) = (3, 51, 3);
/// The database in its directory.
pub const FILE: &str = "orchestrator.db";
/// Its lock.
pub const LOCK: &str = "orchestrator.lock";
/// How the schema came to be.
pub static MIGRATIONS: Migrator = sqlx::migrate!("src/server/store/sqlite/migrations");
const READERS: u32 = 4;
/// 32 MiB for the pages that the writer changes all the time; without room it reads them anew.
const WRITER_CACHE: &str = "-32768";
/// The log is folded into the database every 32 MiB (in pages of 4 KiB), not every 4: a page that many commits change
/// is folded once, and the disk is waited for less often.
const CHECKPOINT: &str = "8192";

/// The embedded database of one server.
pub struct SqliteStore {
    writer: Writer,
    readers: SqlitePool,
    shared: Arc<Shared>,
    /// Held as long as the store lives: it is what keeps a second server out.
    _lock: Lock,
}

impl SqliteStore {
    /// Opens, or makes, `orchestrator.db` in a directory that exists, and brings its schema up to date.
    ///
    /// `chain` names this process's audit chain.
    ///
    /// # Errors
    /// With a sentence for the operator: the directory is in use or not writable, or the database cannot be used.
    pub async fn open(directory: &Path, chain: &str) -> anyhow::Result<Self> {
        let lock = lock(directory)?;
        let options = SqliteConnectOptions::new()
            .filename(directory.join(FILE))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5))
            .foreign_keys(true)
            .disable_statement_logging();
        let writing = options.clone().pragma("cache_size", WRITER_CACHE).pragma("wal_autocheckpoint", CHECKPOINT);
        let mut connection = writing.connect().await?;
        require_recent_sqlite(&mut connection).await?;
        MIGRATIONS.run(&mut connection).await?;
        let readers = SqlitePoolOptions::new()
            .min_connections(1)
            .max_connections(READERS)
            .connect_with(options.read_only(true))
            .await?;
        let shared = Shared::new(chain, Board::default());
        let writer = Writer::start(Writing { connection }, Arc::clone(&shared));
        Ok(Self { writer, readers, shared, _lock: lock })
    }
}

impl Store for SqliteStore {
    fn write(&self, work: Work) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer.submit(work))
    }

    fn attach(&self, hooks: Hooks) {
        self.writer.attach(hooks);
    }

    // Nobody else writes, so what this server committed last is what there is.
    fn read(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        self.recent()
    }

    fn recent(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        let reader = Db::SqliteReader(Reader::new(&self.readers, "BEGIN"));
        let session = Session::new(reader, Arc::clone(&self.shared)).remembering();
        Box::pin(async { Ok(Box::new(session) as Box<dyn Tx>) })
    }

    fn known_schema(&self) -> i64 {
        newest(&MIGRATIONS)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.writer.stop().await;
            self.readers.close().await;
        })
    }
}

/// The connection that writes.
struct Writing {
    connection: SqliteConnection,
}

impl Engine for Writing {
    fn transact<'a>(&'a mut self, group: Group<'a>) -> BoxFuture<'a, Result<Ending>> {
        Box::pin(async move {
            let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
            let ending = group.run(Db::Sqlite(&mut transaction)).await?;
            let ended = match &ending {
                Ending::Commit(_) => transaction.commit().await,
                Ending::RollBack(_) => transaction.rollback().await,
            };
            ended.map_err(failed).map(|()| ending)
        })
    }

    fn close(self) -> BoxFuture<'static, ()> {
        Box::pin(async {
            if let Err(error) = self.connection.close().await {
                tracing::warn!(%error, "the database did not close cleanly; it recovers at the next start");
            }
        })
    }
}

/// Keeps servers out of a directory.
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it is not enough: a child process that is being started has a copy of it for a moment.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the data directory is locked until this process ends");
        }
    }
}

/// Keeps servers out of a directory as long as the lock is held.
pub fn lock(directory: &Path) -> anyhow::Result<Lock> {
    let path = directory.join(LOCK);
    let file = File::create(&path).map_err(|error| {
        anyhow::anyhow!(
            "the data directory {} cannot be written ({error}); choose another with --data-dir or change its owner",
            directory.display()
        )
    })?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => anyhow::bail!(
            "another simpletuner server uses the data directory {}; stop it, or give this one its own with --data-dir",
            directory.display()
        ),
        Err(TryLockError::Error(error)) => anyhow::bail!(
            "the data directory {} cannot be locked ({error}); it must be on a local file system",
            directory.display()
        ),
    }
}

async fn require_recent_sqlite(connection: &mut SqliteConnection) -> anyhow::Result<()> {
    connection.ping().await?;
    let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(connection).await?;
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    let found: (u32, u32, u32) = (next(), next(), next());
    anyhow::ensure!(
        found >= OLDEST_SQLITE,
        "this build carries SQLite {version}, which can corrupt a database in WAL mode; build with 3.51.3 or newer"
    );
    Ok(())
}
