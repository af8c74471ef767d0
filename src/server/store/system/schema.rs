//! Migrations of a database.

use async_trait::async_trait;

use sqlx::migrate::Migrator;

use crate::store::Result;

/// The migrations that both engines run unchanged.
static SHARED_MIGRATIONS: Migrator = sqlx::migrate!("src/server/store/migrations");

/// Returns the migrations of one engine, with the shared ones.
pub fn with_shared_migrations(engine: &Migrator) -> Migrator {
    Migrator::with_migrations(engine.iter().chain(SHARED_MIGRATIONS.iter()).cloned().collect())
}

/// The number of the newest migration.
pub fn newest_version(migrations: &Migrator) -> i64 {
    migrations.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// Facts about the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseInfo {
    pub engine: &'static str,
    pub version: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Size of the write-ahead log, on SQLite.
    pub wal_bytes: Option<u64>,
}

#[async_trait]
pub trait SchemaQueries {
    async fn schema_version(&mut self) -> Result<i64>;
    /// Returns facts about the database.
    async fn database_info(&mut self) -> Result<DatabaseInfo>;
}
