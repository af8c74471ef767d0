//! Databases that are shared with, or were migrated by, another version.

use super::{TestLocation, TestStore, execute_raw, fresh_database, job, worker};
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;
use crate::store::system::schema::{FIRST_WITH_COMPATIBILITY, OLDEST_COMPATIBLE_SCHEMA};
use crate::store::{StoreError, postgres, sqlite};

/// What a migration of the next version does to the table of migrations.
const NEXT_MIGRATION: &str = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
    SELECT max(version) + 1, 'next', true, 'unknown', 0 FROM _sqlx_migrations";
/// What one does that removes something.
const CONTRACTION: &str = "UPDATE generation SET oldest_schema = (SELECT max(version) FROM _sqlx_migrations)";

impl TestStore {
    /// Opens the database again; returns the error.
    async fn reopen(self) -> Option<String> {
        self.store.close().await;
        match &self.location {
            TestLocation::Database(address) => PostgresStore::open(address, "c_test").await.err(),
            TestLocation::Directory(directory) => {
                // The first store holds the lock of the directory.
                drop(self.store);
                SqliteStore::open(directory.path(), "c_test").await.err()
            }
        }
        .map(|error| format!("{error:#}"))
    }
}

async fn both_engines() -> [TestStore; 2] {
    [TestStore::sqlite().await, TestStore::postgres().await]
}

#[tokio::test]
async fn mark_in_the_database_is_the_programs() {
    for store in both_engines().await {
        let schema = store.read().await.schema().await.expect("readable");
        assert_eq!(schema.oldest_compatible, OLDEST_COMPATIBLE_SCHEMA);
    }
}

#[tokio::test]
async fn database_of_the_next_version_is_opened_if_that_only_added() {
    for store in both_engines().await {
        store.execute_raw(NEXT_MIGRATION).await;
        assert_eq!(store.reopen().await, None);
    }
}

#[tokio::test]
async fn database_of_the_next_version_is_rejected_if_that_removed_something() {
    for store in both_engines().await {
        store.execute_raw(NEXT_MIGRATION).await;
        store.execute_raw(CONTRACTION).await;
        let error = store.reopen().await.expect("an error");
        assert!(error.contains("was migrated by a newer version"), "{error}");
    }
}

#[tokio::test]
async fn server_that_became_too_old_writes_nothing() {
    let store = TestStore::postgres().await;
    let write = |value| store.write(move |tx| Box::pin(async move { tx.put_setting("key", Some(value)).await }));
    write("before").await.expect("written");
    store.execute_raw(NEXT_MIGRATION).await;
    write("between").await.expect("written");
    store.execute_raw(CONTRACTION).await;
    let rejected = write("after").await;
    assert!(matches!(&rejected, Err(StoreError::Unavailable(text)) if text.contains("newer version")), "{rejected:?}");
    assert_eq!(store.read().await.setting("key").await, Ok(Some("between".to_owned())));
}

#[tokio::test]
async fn server_does_not_migrate_while_one_runs_that_would_be_too_old() {
    let address = fresh_database().await;
    let open = || PostgresStore::open(&address, "c_test");
    drop(open().await.expect("a fresh database"));
    let servers = "INSERT INTO servers (id, seen_at, known_schema)
        SELECT 'c_old', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 12";
    execute_raw(&address, servers).await;
    let error = format!("{:#}", open().await.err().expect("an error"));
    assert!(error.contains("c_old") && error.contains("stop them first"), "{error}");
    execute_raw(&address, "UPDATE servers SET seen_at = seen_at - 60000").await;
    open().await.expect("a killed server does not count");
}

/// Adds a column to every table, as migrations of the next version may.
const ADDED_COLUMNS: &str = "DO $$
    DECLARE name TEXT;
    BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
            EXECUTE format('ALTER TABLE %I ADD COLUMN of_next_version TEXT', name);
        END LOOP;
    END $$";

/// Uses statements that read all columns: of the writer, of readers, and for what the other server has changed.
async fn use_statements(first: &TestStore, second: &TestStore, n: u8) {
    let digest = format!("digest-{n}").leak();
    first.insert_worker(&worker(n), digest).await.expect("a new name");
    first.insert_job(&job(n)).await;
    let read = second.write(move |tx| {
        Box::pin(async move {
            assert!(tx.worker(&worker(n).id).await?.is_some() && tx.job(&job(n).id).await?.is_some());
            tx.audit_heads().await.map(drop)
        })
    });
    read.await.expect("readable");
    let mut reader = first.read().await;
    // From now on, all reads are of this snapshot.
    reader.setting("any").await.expect("readable");
    assert!(reader.job(&job(n).id).await.expect("readable").is_some());
    assert!(reader.worker(&worker(n).id).await.expect("readable").is_some());
    reader.attempts(&job(n).id).await.expect("readable");
    reader.users().await.expect("readable");
}

#[tokio::test]
async fn running_servers_do_not_notice_added_columns() {
    let first = TestStore::postgres().await;
    let second = first.peer().await;
    use_statements(&first, &second, 1).await;
    use_statements(&first, &second, 2).await;
    first.execute_raw(ADDED_COLUMNS).await;
    use_statements(&first, &second, 3).await;
}

/// Returns whether servers of the version before still work after this migration.
fn only_adds(migration: &str) -> bool {
    let code: Vec<&str> = migration.lines().filter_map(|line| line.split("--").next()).collect();
    let code = code.join(" ").to_uppercase();
    let statements = code.split(';').map(|statement| statement.split_whitespace().collect::<Vec<_>>());
    statements.filter(|words| !words.is_empty()).all(|words| match words[..] {
        ["CREATE", "TABLE" | "INDEX", ..] => true,
        ["ALTER", "TABLE", _, "ADD", "COLUMN", ref column @ ..] => {
            !column.contains(&"NOT") || column.contains(&"DEFAULT")
        }
        _ => false,
    })
}

#[test]
fn migrations_that_do_not_only_add_raise_the_mark() {
    for added in [
        "-- a comment; more\nCREATE TABLE t (id BIGINT PRIMARY KEY); CREATE INDEX i ON t (id);",
        "ALTER TABLE jobs ADD COLUMN a TEXT; ALTER TABLE jobs ADD COLUMN b BIGINT NOT NULL DEFAULT 0;",
    ] {
        assert!(only_adds(added), "{added}");
    }
    for changed in [
        "ALTER TABLE jobs ADD COLUMN a TEXT NOT NULL",
        "ALTER TABLE jobs RENAME COLUMN a TO b",
        "ALTER TABLE jobs DROP COLUMN a",
        "CREATE UNIQUE INDEX i ON jobs (a)",
        "UPDATE jobs SET state = 'another'",
        "DROP TABLE jobs",
    ] {
        assert!(!only_adds(changed), "{changed}");
    }
    for migrations in [&sqlite::MIGRATIONS, &postgres::MIGRATIONS] {
        for migration in migrations.iter().filter(|migration| migration.version > FIRST_WITH_COMPATIBILITY) {
            let text = migration.sql.as_str();
            let raises_mark = text.contains("UPDATE generation SET oldest_schema");
            assert!(only_adds(text) || raises_mark, "{}", migration.description);
        }
    }
}
