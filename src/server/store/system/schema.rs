//! Migrations of a database, and which versions work with it.

use std::borrow::Cow;
use std::str;

use async_trait::async_trait;
use rust_embed::RustEmbed;
use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use crate::store::Result;

/// The migrations that both engines run unchanged.
#[derive(RustEmbed)]
#[folder = "src/server/store/migrations"]
struct SharedMigrations;

/// The first schema in which servers and database say with which versions they work.
pub const FIRST_WITH_COMPATIBILITY: i64 = 15;

/// The oldest schema whose servers still work on a database that this program has migrated. A migration that removes or
/// changes what they use raises it, here and in the database.
pub const OLDEST_COMPATIBLE_SCHEMA: i64 = 13;

/// Returns the migrations in the folder of one engine, with the shared ones. Migrations of a newer version are no
/// error: whether this program works with them is decided before.
pub fn with_shared_migrations<Engine: RustEmbed>() -> Migrator {
    let mut migrator = Migrator::with_migrations(files::<Engine>().chain(files::<SharedMigrations>()).collect());
    migrator.set_ignore_missing(true);
    migrator
}

/// The files `<version>_<description>.sql` of a folder.
fn files<Folder: RustEmbed>() -> impl Iterator<Item = Migration> {
    Folder::iter().map(|name| {
        let (version, description) =
            name.strip_suffix(".sql").and_then(|stem| stem.split_once('_')).expect("the name of a migration");
        let Cow::Borrowed(sql) = Folder::get(&name).expect("a file of this folder").data else {
            unreachable!("embedded files are constants")
        };
        let sql: &'static str = str::from_utf8(sql).expect("SQL in UTF-8");
        Migration::new(
            version.parse().expect("a migration starts with its number"),
            description.replace('_', " ").into(),
            MigrationType::Simple,
            sql.into_sql_str(),
            false,
        )
    })
}

/// The number of the newest migration.
pub fn newest_version(migrations: &Migrator) -> i64 {
    migrations.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// The schema of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseSchema {
    /// The newest applied migration; 0 if the database is empty.
    pub version: i64,
    /// The oldest schema whose servers still work with it.
    pub oldest_compatible: i64,
}

/// A database that this program must not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IncompatibleSchema {
    pub database: DatabaseSchema,
    /// The newest schema that this program knows.
    pub known: i64,
}

impl DatabaseSchema {
    /// Checks that a program that knows schemas up to `known` works with this database, migrated if it is older.
    pub fn check_compatible(self, known: i64) -> std::result::Result<(), IncompatibleSchema> {
        if self.oldest_compatible <= known { Ok(()) } else { Err(IncompatibleSchema { database: self, known }) }
    }
}

impl std::fmt::Display for IncompatibleSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { database: DatabaseSchema { version, oldest_compatible }, known } = self;
        write!(
            f,
            "the database was migrated by a newer version (schema {version}, which needs a program that knows schema \
             {oldest_compatible}; this program knows {known}); use the newer version, or restore the backup from before \
             the upgrade"
        )
    }
}

impl std::error::Error for IncompatibleSchema {}

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
    async fn schema(&mut self) -> Result<DatabaseSchema>;
    /// Returns facts about the database.
    async fn database_info(&mut self) -> Result<DatabaseInfo>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_of_a_newer_version_is_used_if_that_version_allows_it() {
        let schema = |version, oldest_compatible| DatabaseSchema { version, oldest_compatible };
        for compatible in [schema(0, 0), schema(14, 0), schema(15, 13), schema(16, 13), schema(17, 15)] {
            assert_eq!(compatible.check_compatible(15), Ok(()), "{compatible:?}");
        }
        let contracted = schema(17, 16);
        assert_eq!(contracted.check_compatible(15), Err(IncompatibleSchema { database: contracted, known: 15 }));
    }
}
