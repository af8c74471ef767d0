//! Databases of earlier versions, on both engines.

use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, raw_sql};

use super::fresh_database;
use crate::store::system::schema::newest_version;
use crate::store::{postgres, sqlite};

/// A configuration created by ada's token and changed by eve, and one that the audit log does not know.
const EARLIER_ROWS: &str = r#"
    INSERT INTO config_revisions VALUES ('digits', 1, 'a', '{}', 1), ('digits', 2, 'b', '{}', 2), ('old', 1, 'c', '{}', 1);
    INSERT INTO audit VALUES
        ('c', 1, 1, 'ada/ci', 'config.stored', 'digits', '{"revision":1,"sha256":"a"}', NULL, '', 'h1'),
        ('c', 2, 2, 'eve', 'config.stored', 'digits', '{"revision":2,"sha256":"b"}', NULL, 'h1', 'h2'),
        ('c', 3, 3, 'eve', 'config.stored', 'digits', '{"revision":11,"sha256":"b"}', NULL, 'h2', 'h3');
"#;
const REVISIONS_QUERY: &str = "SELECT name, revision, created_by, owner FROM config_revisions ORDER BY name, revision";

type RevisionRow = (String, i64, Option<String>, Option<String>);

fn expected() -> Vec<RevisionRow> {
    let text = |name: &str| Some(name.to_owned());
    vec![
        ("digits".to_owned(), 1, text("ada"), text("ada")),
        ("digits".to_owned(), 2, text("eve"), text("ada")),
        ("old".to_owned(), 1, None, None),
    ]
}

#[tokio::test]
async fn sqlite_migration_takes_config_owners_from_the_audit_log() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    for script in [
        include_str!("../sqlite/migrations/0001_start.sql"),
        EARLIER_ROWS,
        include_str!("../sqlite/migrations/0002_bounds.sql"),
        include_str!("../sqlite/migrations/0003_owners.sql"),
    ] {
        raw_sql(script).execute(&mut connection).await.expect("a script");
    }
    let revisions: Vec<RevisionRow> = sqlx::query_as(REVISIONS_QUERY).fetch_all(&mut connection).await.expect("rows");
    assert_eq!(revisions, expected());
}

#[tokio::test]
async fn postgres_migration_takes_config_owners_from_the_audit_log() {
    let mut connection = PgConnection::connect(&fresh_database().await).await.expect("a database");
    for script in [
        include_str!("../postgres/migrations/0001_start.sql"),
        EARLIER_ROWS,
        include_str!("../postgres/migrations/0002_bounds.sql"),
        include_str!("../postgres/migrations/0003_owners.sql"),
    ] {
        raw_sql(script).execute(&mut connection).await.expect("a script");
    }
    let revisions: Vec<RevisionRow> = sqlx::query_as(REVISIONS_QUERY).fetch_all(&mut connection).await.expect("rows");
    assert_eq!(revisions, expected());
}

/// A silent worker whose agent reported an unhealthy host with an unavailable GPU, in the terms of migration 10.
const EARLIER_WORKER: &str = r#"
    INSERT INTO workers (id, name, labels, created_at, token_digest, link, link_since, offline_cause, spent_at, capability)
    VALUES ('w', 'gpu-1', '{}', 1, 'd', 'offline', 2, 'silent', 3, '{"gpus":[{"withheld":{"detail":"XID 79"}}],"unfit":"full"}');
"#;
const WORKER_QUERY: &str = "SELECT connection, connection_since, offline_cause, retired_at, capability FROM workers";

type WorkerRow = (String, i64, Option<String>, Option<i64>, Option<String>);

fn expected_worker() -> WorkerRow {
    let capability = r#"{"gpus":[{"unavailable":{"detail":"XID 79"}}],"unhealthy_reason":"full"}"#;
    ("offline".to_owned(), 2, Some("heartbeat_timeout".to_owned()), Some(3), Some(capability.to_owned()))
}

/// A worker that fell silent with a job, in the terms of migration 12.
const WORKER_WITH_LOST_JOB: &str = "
    INSERT INTO workers (id, name, labels, created_at, token_digest, connection, connection_since, lost_job)
    VALUES ('w', 'gpu-1', '{}', 1, 'd', 'offline', 2, 'j_1');
";
const LOST_JOBS_QUERY: &str = "SELECT lost_jobs FROM workers";
const EXPECTED_LOST_JOBS: &str = r#"["j_1"]"#;

#[test]
fn both_engines_have_the_same_versions_without_a_gap() {
    for migrations in [&sqlite::MIGRATIONS, &postgres::MIGRATIONS] {
        let versions: Vec<i64> = migrations.iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (1..=newest_version(&sqlite::MIGRATIONS)).collect::<Vec<_>>());
    }
}

/// The migrations up to this version.
fn migrations_to(version: i64, all: &Migrator) -> Migrator {
    Migrator::with_migrations(all.iter().filter(|migration| migration.version <= version).cloned().collect())
}

#[tokio::test]
async fn sqlite_migration_renames_what_agents_reported() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    migrations_to(10, &sqlite::MIGRATIONS).run(&mut connection).await.expect("the old schema");
    raw_sql(EARLIER_WORKER).execute(&mut connection).await.expect("a row");
    sqlite::MIGRATIONS.run(&mut connection).await.expect("the new schema");
    let row: WorkerRow = sqlx::query_as(WORKER_QUERY).fetch_one(&mut connection).await.expect("a row");
    assert_eq!(row, expected_worker());
}

#[tokio::test]
async fn postgres_migration_renames_what_agents_reported() {
    let mut connection = PgConnection::connect(&fresh_database().await).await.expect("a database");
    migrations_to(10, &postgres::MIGRATIONS).run(&mut connection).await.expect("the old schema");
    raw_sql(EARLIER_WORKER).execute(&mut connection).await.expect("a row");
    postgres::MIGRATIONS.run(&mut connection).await.expect("the new schema");
    let row: WorkerRow = sqlx::query_as(WORKER_QUERY).fetch_one(&mut connection).await.expect("a row");
    assert_eq!(row, expected_worker());
}

#[tokio::test]
async fn sqlite_migration_lists_the_lost_job() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    migrations_to(12, &sqlite::MIGRATIONS).run(&mut connection).await.expect("the old schema");
    raw_sql(WORKER_WITH_LOST_JOB).execute(&mut connection).await.expect("a row");
    sqlite::MIGRATIONS.run(&mut connection).await.expect("the new schema");
    let (jobs,): (String,) = sqlx::query_as(LOST_JOBS_QUERY).fetch_one(&mut connection).await.expect("a row");
    assert_eq!(jobs, EXPECTED_LOST_JOBS);
}

#[tokio::test]
async fn postgres_migration_lists_the_lost_job() {
    let mut connection = PgConnection::connect(&fresh_database().await).await.expect("a database");
    migrations_to(12, &postgres::MIGRATIONS).run(&mut connection).await.expect("the old schema");
    raw_sql(WORKER_WITH_LOST_JOB).execute(&mut connection).await.expect("a row");
    postgres::MIGRATIONS.run(&mut connection).await.expect("the new schema");
    let (jobs,): (String,) = sqlx::query_as(LOST_JOBS_QUERY).fetch_one(&mut connection).await.expect("a row");
    assert_eq!(jobs, EXPECTED_LOST_JOBS);
}
