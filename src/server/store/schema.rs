//! Which migrations a database has had.

use async_trait::async_trait;

use sqlx::migrate::Migrator;

use super::Result;

/// The number of the newest of these.
pub fn newest(migrations: &Migrator) -> i64 {
    migrations.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// The schema.
#[async_trait]
pub trait Schema {
    /// The number of the newest migration.
    async fn schema_version(&mut self) -> Result<i64>;
}
