//! The store on PostgreSQL: one database, several servers.
//!
//! Every server commits in groups, as on SQLite, and a group holds the lock of one row from its first statement to its
//! commit: groups of all servers are serialized. So what a use case has read cannot change until it has written, and
//! two planners cannot assign one worker twice; a lock shared by many short transactions costs less here than repeating
//! those that conflict. Other servers are notified through `NOTIFY`, which PostgreSQL delivers with the commit.

mod listener;

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::Context;
use app::domain::ids::JobId;
use app::domain::time::Millis;
use futures_util::future::BoxFuture;
use rust_embed::RustEmbed;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Executor};

use super::commit_group::GroupHooks;
use super::sql::group::{CHANNEL, NEWEST_GENERATION};
use super::sql::writer::{GroupEnding, WriteEngine, WriteGroup, WriterHandle};
use super::sql::{DbConnection, LazyReader, SqlSession, StoreContext, store_error};
use super::{ExternalChange, Result, Store, TransactionWork, Tx};
use crate::store::cache::snapshot::CommittedSnapshot;
use crate::store::system::schema::{newest_version, with_shared_migrations};

#[derive(RustEmbed)]
#[folder = "src/server/store/postgres/migrations"]
struct PostgresMigrations;

/// The migrations of the schema.
pub static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(with_shared_migrations::<PostgresMigrations>);
const MAX_READERS: u32 = 8;
/// How long to wait for a free reader, or for the database to answer at all.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Settings of every connection, set after connecting: poolers reject settings in the start-up packet. A transaction
/// that holds the lock and is idle is aborted after 5 s; one that waits for it gives up slightly later. All statements
/// here are short, so that JIT compilation takes longer than running them.
const CONNECTION_SETTINGS: &str =
    "SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '10s'; SET jit = off";
/// The writer and the reader of other servers' changes find rows by their keys. Without this, a plan cached while a
/// table was small would read the whole table forever.
const KEY_SETTINGS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";
/// How long the committed snapshot is valid after this server's last commit; it commits something every 2 s, or has
/// lost the database, and then others may have changed anything.
const SNAPSHOT_MAX_AGE: Duration = Duration::from_secs(5);
/// How long a server that was killed counts as running.
const SERVER_LIFE: Millis = Millis::from_secs(10);
/// The beginning of a read transaction.
pub const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A database that several servers share.
pub struct PostgresStore {
    writer: WriterHandle,
    readers: PgPool,
    shared: Arc<StoreContext>,
    listener: listener::NotificationListener,
    /// Reads the commits of other servers, one after the other.
    peer_reader: tokio::sync::Mutex<PgPool>,
}

impl PostgresStore {
    /// Connects, and migrates the schema; of several servers that start at the same time, one does it.
    ///
    /// `chain` names this process's audit chain, and the server itself among those that share the database.
    ///
    /// # Errors
    /// With a message for the operator.
    pub async fn open(url: &str, chain: &str) -> anyhow::Result<Self> {
        let options = connect_options(url)?;
        let readers = reader_pool(&options).await?;
        // First: a pooler that does not pass notifications on does not keep sessions either, which the rest relies on.
        let listener = listener::listen(&readers, chain, ACQUIRE_TIMEOUT).await?.with_context(|| {
            format!(
                "the database at {} is behind a pooler in transaction mode: servers would not be notified of each other's changes; \
                 use session mode (PgBouncer: pool_mode = session), or connect to PostgreSQL itself",
                describe_address(&options)
            )
        })?;
        let known_schema = newest_version(&MIGRATIONS);
        let shared = StoreContext::new(chain, known_schema, CommittedSnapshot::with_max_age(SNAPSHOT_MAX_AGE));
        let mut connection = readers.acquire().await?;
        let mut session = SqlSession::new(DbConnection::Postgres(&mut connection), Arc::clone(&shared));
        session.check_before_migration(SERVER_LIFE).await?;
        drop(session);
        MIGRATIONS.run(&mut *connection).await?;
        drop(connection);
        let key_pool = pool_options(1, &[CONNECTION_SETTINGS, KEY_SETTINGS]);
        let writer_pool = key_pool.clone().connect_with(options.clone()).await?;
        let peer_reader = tokio::sync::Mutex::new(key_pool.connect_with(options).await?);
        let engine = PostgresEngine { pool: writer_pool };
        let writer = WriterHandle::start(engine, Arc::clone(&shared));
        Ok(Self { writer, readers, shared, listener, peer_reader })
    }
}

/// Parses an address to connection options.
pub fn connect_options(url: &str) -> anyhow::Result<PgConnectOptions> {
    let is_postgres_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    anyhow::ensure!(is_postgres_url, "--database-url must be a postgres:// URL; omit it to use SQLite");
    let options = PgConnectOptions::from_str(url).context("invalid postgres:// URL in --database-url")?;
    // Floats are sent in binary.
    Ok(options.application_name("simpletuner").extra_float_digits(None).disable_statement_logging())
}

pub async fn reader_pool(options: &PgConnectOptions) -> anyhow::Result<PgPool> {
    pool_options(MAX_READERS, &[CONNECTION_SETTINGS]).connect_with(options.clone()).await.with_context(|| {
        let address = describe_address(options);
        format!(
            "failed to connect to the database at {address}; check --database-url, and that the database is running"
        )
    })
}

fn describe_address(options: &PgConnectOptions) -> String {
    format!("{}:{}", options.get_host(), options.get_port())
}

fn pool_options(size: u32, settings: &'static [&'static str]) -> PgPoolOptions {
    let pool = PgPoolOptions::new().max_connections(size).acquire_timeout(ACQUIRE_TIMEOUT).test_before_acquire(false);
    pool.after_connect(move |connection, _| {
        Box::pin(async move {
            for setting in settings {
                connection.execute(*setting).await?;
            }
            Ok(())
        })
    })
}

impl PostgresStore {
    fn session(&self, pool: &PgPool) -> SqlSession<'static> {
        SqlSession::new(DbConnection::PostgresReader(LazyReader::new(pool, BEGIN_READ)), Arc::clone(&self.shared))
    }

    /// Applies what other servers have committed to the snapshot; returns whether it is as new as the database is now.
    async fn catch_up(&self) -> Result<bool> {
        let snapshot = &self.shared.snapshot;
        let Some(before) = snapshot.generation() else { return Ok(false) };
        let newest: i64 = sqlx::query_scalar(NEWEST_GENERATION).fetch_one(&self.readers).await.map_err(store_error)?;
        if before == newest {
            return Ok(true);
        }
        // Others may have caught up meanwhile.
        let pool = self.peer_reader.lock().await;
        let Some(since) = snapshot.generation() else { return Ok(false) };
        if before < newest && since >= newest {
            return Ok(true);
        }
        match self.session(&pool).external_changes(since).await? {
            Some(external) => snapshot.publish_external(external),
            None => snapshot.invalidate(),
        }
        Ok(snapshot.generation().is_some_and(|at| at >= newest))
    }
}

impl Store for PostgresStore {
    fn write(&self, work: TransactionWork) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer.submit(work))
    }

    fn set_hooks(&self, hooks: GroupHooks) {
        self.writer.set_hooks(hooks);
    }

    fn read(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        Box::pin(async {
            let is_current = self.catch_up().await?;
            let session = self.session(&self.readers);
            let session = if is_current { session.with_snapshot() } else { session };
            Ok(Box::new(session) as Box<dyn Tx>)
        })
    }

    fn read_recent(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        let session = self.session(&self.readers).with_snapshot();
        Box::pin(async { Ok(Box::new(session) as Box<dyn Tx>) })
    }

    fn next_external_change(&self) -> BoxFuture<'_, ExternalChange> {
        Box::pin(async {
            let notification = self.listener.next().await;
            if matches!(notification.change, ExternalChange::Message(_)) {
                return notification.change;
            }
            let is_outdated =
                notification.generation.is_none_or(|generation| self.shared.snapshot.observe_generation(generation));
            if is_outdated && let Err(error) = self.catch_up().await {
                tracing::warn!(%error, "cannot read the changes of another server");
            }
            notification.change
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn send_message(&self, text: String) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let notify = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL);
            let sent = notify.bind(listener::message_payload(&self.shared.chain, &text)).execute(&self.readers).await;
            sent.map(drop).map_err(store_error)
        })
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
            self.listener.close();
            self.readers.close().await;
            self.peer_reader.lock().await.close().await;
        })
    }
}

/// The connection of the writer.
struct PostgresEngine {
    pool: PgPool,
}

impl WriteEngine for PostgresEngine {
    fn run_group<'a>(&'a mut self, group: WriteGroup<'a>) -> BoxFuture<'a, Result<GroupEnding>> {
        Box::pin(async move {
            let mut transaction = match self.pool.begin().await {
                // The connection may have been dead for a while; the pool has noticed, and the next one is new.
                Err(sqlx::Error::Io(_)) => self.pool.begin().await.map_err(store_error)?,
                other => other.map_err(store_error)?,
            };
            let ending = group.run(DbConnection::Postgres(&mut transaction)).await?;
            let result = match &ending {
                GroupEnding::Commit(_) => transaction.commit().await,
                GroupEnding::RollBack(_) => transaction.rollback().await,
            };
            result.map_err(store_error).map(|()| ending)
        })
    }

    fn close(self) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.pool.close().await })
    }
}
