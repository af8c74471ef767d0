//! The conformance suite of both stores. Each check gets an empty store.

mod access;
mod audit_log;
mod compatibility;
mod corrupt_rows;
mod descriptions;
mod factors;
mod groups;
mod history;
mod lists;
mod migrations;
mod misc;
mod passkeys;
mod peers;
mod retention;
mod sample_votes;
mod saved_views;
mod secrets;
mod shares;
mod state_round_trip;
mod usage;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Job, JobDescription, JobSpec};
use app::domain::labels::Labels;
use app::domain::time::{Millis, Timestamp};
use app::domain::trace_context::TraceContext;
use app::domain::worker::Worker;
use app::domain::worker::credential::WorkerCredential;
use futures_util::future::BoxFuture;
use sqlx::migrate::MigrateDatabase;
use sqlx::{Connection, PgConnection, Postgres, SqliteConnection};

use super::postgres::PostgresStore;
use super::sqlite::{self, SqliteStore};
use super::{Result, Store, Tx};

/// The address of a new, empty database on the PostgreSQL of the tests, which is dropped with its server.
pub async fn fresh_database() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var("SIMPLETUNER_TEST_POSTGRES")
        .expect("SIMPLETUNER_TEST_POSTGRES names a PostgreSQL server; scripts/test starts one");
    let name = format!("t_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
    let address = server.replacen("/postgres?", &format!("/{name}?"), 1);
    Postgres::create_database(&address).await.expect("the server can create a database");
    address
}

/// The start time of the tests.
const NOW: Timestamp = Timestamp(1_705_314_600_000);

/// The lease of agents in the tests.
const LEASE: Millis = Millis::from_secs(120);

/// Changes a PostgreSQL database without the store.
pub async fn execute_raw(address: &str, statement: &'static str) {
    let mut connection = PgConnection::connect(address).await.expect("a database");
    sqlx::query(statement).execute(&mut connection).await.expect("a statement");
}

enum TestLocation {
    Directory(tempfile::TempDir),
    Database(String),
}

struct TestStore {
    store: Arc<dyn Store>,
    location: TestLocation,
}

impl TestStore {
    async fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = SqliteStore::open(directory.path(), "c_test").await.expect("a fresh directory");
        Self { store: Arc::new(store), location: TestLocation::Directory(directory) }
    }

    async fn postgres() -> Self {
        let address = fresh_database().await;
        let store = PostgresStore::open(&address, "c_test").await.expect("a fresh database");
        Self { store: Arc::new(store), location: TestLocation::Database(address) }
    }

    /// Another server on the same PostgreSQL database.
    async fn peer(&self) -> Self {
        let TestLocation::Database(address) = &self.location else { panic!("SQLite serves one server") };
        let store = PostgresStore::open(address, "c_peer").await.expect("a database");
        Self { store: Arc::new(store), location: TestLocation::Database(address.clone()) }
    }

    /// Changes the database without the store, which must not have loaded its state before.
    async fn execute_raw(&self, statement: &'static str) {
        match &self.location {
            TestLocation::Database(address) => execute_raw(address, statement).await,
            TestLocation::Directory(directory) => {
                let file = format!("sqlite:{}", directory.path().join(sqlite::DATABASE_FILE).display());
                let mut connection = SqliteConnection::connect(&file).await.expect("a database");
                sqlx::query(statement).execute(&mut connection).await.expect("a statement");
            }
        }
    }

    /// A number in the PostgreSQL database.
    async fn query_number(&self, select: &'static str) -> i64 {
        let TestLocation::Database(address) = &self.location else { panic!("only on PostgreSQL") };
        let mut connection = PgConnection::connect(address).await.expect("a database");
        sqlx::query_scalar(select).fetch_one(&mut connection).await.expect("a number")
    }

    async fn write<F>(&self, work: F) -> Result<()>
    where
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<()>> + Send + Sync + 'static,
    {
        self.store.write(Box::new(work)).await
    }

    async fn read(&self) -> Box<dyn Tx> {
        self.store.read().await.expect("a reader")
    }

    async fn recent(&self) -> Box<dyn Tx> {
        self.store.read_recent().await.expect("a reader")
    }

    async fn insert_worker(&self, worker: &Worker, digest: &'static str) -> Result<()> {
        let worker = worker.clone();
        self.write(move |tx| {
            let worker = worker.clone();
            Box::pin(async move { tx.insert_worker(&worker, &WorkerCredential::new(digest)).await })
        })
        .await
    }

    async fn insert_job(&self, job: &Job) {
        let job = job.clone();
        let write = self.write(move |tx| {
            let job = job.clone();
            Box::pin(async move { tx.insert_job(&job).await })
        });
        write.await.expect("a new id");
    }

    async fn update_job(&self, before: &Job, after: &Job) -> Result<()> {
        let (before, after) = (before.clone(), after.clone());
        self.write(move |tx| {
            let (before, after) = (before.clone(), after.clone());
            Box::pin(async move { tx.update_job(&before, &after).await })
        })
        .await
    }

    async fn update_worker(&self, before: &Worker, after: &Worker) -> Result<()> {
        let (before, after) = (before.clone(), after.clone());
        self.write(move |tx| {
            let (before, after) = (before.clone(), after.clone());
            Box::pin(async move { tx.update_worker(&before, &after).await })
        })
        .await
    }
}

fn worker(n: u8) -> Worker {
    let labels = Labels([("team".to_owned(), "nlp".to_owned())].into());
    Worker { labels, ..Worker::new(WorkerId::new(NOW, [n; 10]), format!("worker-{n}"), NOW) }
}

fn job(n: u8) -> Job {
    let at = Timestamp(NOW.0 + i64::from(n));
    let job = Job::submitted(JobId::new(at, [n; 10]), JobSpec::example(), at, "ada".to_owned());
    Job {
        priority: 20,
        description: JobDescription::example(),
        starred_by: ["eve".to_owned()].into(),
        retry_of: Some(JobId::new(NOW, [99; 10])),
        trace: Some(TraceContext::new_root([7; 24])),
        ..job
    }
}

/// Runs each check on each engine, under the engine's name.
macro_rules! on_every_engine {
    ($($check:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $check() {
                    super::$check(&super::super::TestStore::sqlite().await).await;
                }
            )+
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $check() {
                    super::$check(&super::super::TestStore::postgres().await).await;
                }
            )+
        }
    };
}
use on_every_engine;
