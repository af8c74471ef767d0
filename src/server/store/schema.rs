//! Which migrations a database has had.

use async_trait::async_trait;

use sqlx::migrate::Migrator;

use super::Result;

/// The number of the newest of these.
pub fn newest(migrations: &Migrator) -> i64 {
    migrations.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// What an engine says of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// `sqlite` or `postgres`.
    pub engine: &'static str,
    /// The engine's version.
    pub version: String,
    /// How large the database is.
    pub bytes: u64,
    /// How large its write-ahead log is, on SQLite.
    pub wal_bytes: Option<u64>,
}

/// The schema.
#[async_trait]
pub trait Schema {
    /// The number of the newest migration.
    async fn schema_version(&mut self) -> Result<i64>;
    /// What the engine says of itself.
    async fn database(&mut self) -> Result<Facts>;
}
