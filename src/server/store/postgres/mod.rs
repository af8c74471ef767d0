//! The store on PostgreSQL: one database, several servers.
//!
//! Every server commits in groups, as on SQLite, and a group holds the lock of one row from its first statement to its
//! commit: groups of all servers come one after another. So what a use case reads cannot change until it has written,
//! and two planners cannot give one worker away twice; a lock that many short transactions share costs less here than
//! repeating those that met. Doorbells ring on other servers through `NOTIFY`, which PostgreSQL delivers with the commit.

mod news;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use sqlx::ConnectOptions;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

pub use self::news::CHANNEL;
use super::board::Board;
use super::group::Hooks;
use super::schema::newest;
use super::sql::writer::{Ending, Engine, Group, Writer};
use super::sql::{Db, Reader, Session, Shared, failed};
use super::{News, Result, Store, Tx, Work};

/// How the schema came to be.
pub static MIGRATIONS: Migrator = sqlx::migrate!("src/server/store/postgres/migrations");
const READERS: u32 = 8;
/// How long to wait for a free reader, or for the database to answer at all.
const PATIENCE: Duration = Duration::from_secs(5);
/// Who holds the lock and does nothing is thrown out after this; who waits for it gives up a little later.
const LIMITS: [(&str, &str); 2] = [("idle_in_transaction_session_timeout", "5s"), ("lock_timeout", "10s")];
/// What was committed last is believed for so long after this server's last commit; it commits something every 2 s, or
/// has lost the database, and then others may have changed anything.
const BELIEVED: Duration = Duration::from_secs(5);
/// All statements here are short; compiling them takes longer than running them.
const INTERPRETED: [(&str, &str); 1] = [("jit", "off")];
/// The writer finds rows by their keys. A plan that is kept from when a table was small would read all of it for ever.
const BY_KEY: [(&str, &str); 3] = [("enable_seqscan", "off"), ("enable_hashjoin", "off"), ("enable_mergejoin", "off")];
/// Takes the lock that makes groups come one after another, and tells whether another server has written meanwhile.
const NEXT_GENERATION: &str = "UPDATE generation SET number = number + 1 RETURNING number";
/// How a view for reading begins.
pub const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A database that several servers share.
pub struct PostgresStore {
    writer: Writer,
    readers: PgPool,
    shared: Arc<Shared>,
    news: news::Inbox,
}

impl PostgresStore {
    /// Connects, and brings the schema up to date; of several servers that start at once, one does it.
    ///
    /// `chain` names this process's audit chain, and the server itself among those that share the database.
    ///
    /// # Errors
    /// With a sentence for the operator.
    pub async fn open(url: &str, chain: &str) -> anyhow::Result<Self> {
        let options = options(url)?;
        let readers = readers(&options).await?;
        MIGRATIONS.run(&readers).await?;
        let shared = Shared::new(chain, Board::believed_for(BELIEVED));
        let writing = pool(1).connect_with(options.options(BY_KEY)).await?;
        let news = news::listen(&readers, chain).await?;
        let engine = Writing { pool: writing, shared: Arc::clone(&shared) };
        let writer = Writer::start(engine, Arc::clone(&shared));
        Ok(Self { writer, readers, shared, news })
    }
}

/// How an address is connected to.
pub fn options(url: &str) -> anyhow::Result<PgConnectOptions> {
    let named = url.starts_with("postgres://") || url.starts_with("postgresql://");
    anyhow::ensure!(named, "--database-url must be a postgres:// address; leave it out for SQLite");
    let options = PgConnectOptions::from_str(url).context("--database-url is no usable postgres:// address")?;
    Ok(options.application_name("simpletuner").options(LIMITS).options(INTERPRETED).disable_statement_logging())
}

/// Connections for reading.
pub async fn readers(options: &PgConnectOptions) -> anyhow::Result<PgPool> {
    pool(READERS).connect_with(options.clone()).await.with_context(|| {
        format!(
            "the database at {}:{} does not let this program in; check --database-url, and that it runs",
            options.get_host(),
            options.get_port()
        )
    })
}

fn pool(size: u32) -> PgPoolOptions {
    PgPoolOptions::new().max_connections(size).acquire_timeout(PATIENCE).test_before_acquire(false)
}

impl PostgresStore {
    fn session(&self) -> Session<'static> {
        Session::new(Db::PostgresReader(Reader::new(&self.readers, BEGIN_READ)), Arc::clone(&self.shared))
    }
}

impl Store for PostgresStore {
    fn write(&self, work: Work) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer.submit(work))
    }

    fn attach(&self, hooks: Hooks) {
        self.writer.attach(hooks);
    }

    fn read(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        let session = self.session();
        Box::pin(async { Ok(Box::new(session) as Box<dyn Tx>) })
    }

    fn recent(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>> {
        let session = self.session().remembering();
        Box::pin(async { Ok(Box::new(session) as Box<dyn Tx>) })
    }

    fn news(&self) -> BoxFuture<'_, News> {
        Box::pin(async {
            let heard = self.news.next().await;
            match heard.generation {
                Some(generation) => self.shared.board.heard_of(generation),
                None => self.shared.board.wipe(),
            }
            heard.news
        })
    }

    fn known_schema(&self) -> i64 {
        newest(&MIGRATIONS)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.writer.stop().await;
            self.news.close();
            self.readers.close().await;
        })
    }
}

/// The connection that writes.
struct Writing {
    pool: PgPool,
    shared: Arc<Shared>,
}

impl Engine for Writing {
    fn transact<'a>(&'a mut self, group: Group<'a>) -> BoxFuture<'a, Result<Ending>> {
        Box::pin(async move {
            let mut transaction = match self.pool.begin().await {
                // The connection may have been dead for a while; the pool has noticed, and the next one is new.
                Err(sqlx::Error::Io(_)) => self.pool.begin().await.map_err(failed)?,
                other => other.map_err(failed)?,
            };
            let next = sqlx::query_scalar(NEXT_GENERATION).fetch_one(&mut *transaction).await.map_err(failed)?;
            group.mirror.is_of(next, &self.shared.board);
            let ending = group.run(Db::Postgres(&mut transaction)).await?;
            let ended = match &ending {
                Ending::Commit(_) => transaction.commit().await,
                Ending::RollBack(_) => transaction.rollback().await,
            };
            ended.map_err(failed).map(|()| ending)
        })
    }

    fn close(self) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.pool.close().await })
    }
}
