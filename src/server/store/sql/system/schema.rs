//! sqlx's table of migrations.

use app::domain::time::Millis;
use async_trait::async_trait;

use crate::store::sql::SqlSession;
use crate::store::sql::statement::sql;
use crate::store::system::schema::{
    DatabaseInfo, DatabaseSchema, FIRST_WITH_COMPATIBILITY, OLDEST_COMPATIBLE_SCHEMA, SchemaQueries,
};
use crate::store::{Result, StoreError};

impl SqlSession<'_> {
    /// Checks that this program may migrate the database: it is not too new, and no server runs on it that would not
    /// work with the migrated schema. `server_life` is how long a killed server counts as running.
    ///
    /// # Errors
    /// With a message for the operator.
    pub async fn check_before_migration(&mut self, server_life: Millis) -> anyhow::Result<()> {
        let known = self.shared.known_schema;
        let schema = self.schema().await?;
        schema.check_compatible(known)?;
        if schema.version > known {
            tracing::warn!(
                schema = schema.version,
                known,
                "a newer version has migrated the database; this version works with it until the upgrade is complete"
            );
        }
        let older_servers = self.older_servers(schema, server_life).await?;
        anyhow::ensure!(
            older_servers.is_empty(),
            "servers run on the database that are too old for this version's schema ({}); stop them first",
            older_servers.join(", ")
        );
        Ok(())
    }

    /// The running servers that do not work with a database that this program has migrated.
    async fn older_servers(&mut self, schema: DatabaseSchema, server_life: Millis) -> Result<Vec<String>> {
        // Before that, all servers on a database knew its schema.
        let are_all_equal = schema.version < FIRST_WITH_COMPATIBILITY;
        let is_old_enough = are_all_equal && schema.version >= OLDEST_COMPATIBLE_SCHEMA;
        if self.is_single_server() || schema.version == 0 || is_old_enough {
            return Ok(Vec::new());
        }
        let select = if are_all_equal {
            sql("SELECT id FROM servers
                 WHERE seen_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1 ORDER BY id")
            .bind(server_life.0)
        } else {
            sql("SELECT id FROM servers WHERE known_schema < $2
                 AND seen_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1 ORDER BY id")
            .bind(server_life.0)
            .bind(OLDEST_COMPATIBLE_SCHEMA)
        };
        self.fetch_all(select, |row| row.get("id")).await
    }
}

#[async_trait]
impl SchemaQueries for SqlSession<'_> {
    async fn schema(&mut self) -> Result<DatabaseSchema> {
        let is_migrated = self.for_engine(
            "SELECT count(*) AS tables FROM sqlite_master WHERE name = '_sqlx_migrations'",
            "SELECT CAST(to_regclass('_sqlx_migrations') IS NOT NULL AS INTEGER)::bigint AS tables",
        );
        let tables = self.fetch_first(is_migrated).await?.map_or(Ok(0), |row| row.get::<i64>("tables"))?;
        let mut schema = DatabaseSchema { version: 0, oldest_compatible: 0 };
        if tables > 0 {
            let newest = sql("SELECT coalesce(max(version), 0) AS version FROM _sqlx_migrations");
            schema.version = self.fetch_first(newest).await?.map_or(Ok(0), |row| row.get("version"))?;
        }
        if schema.version >= FIRST_WITH_COMPATIBILITY {
            let oldest = sql("SELECT oldest_schema FROM generation");
            schema.oldest_compatible = self.fetch_first(oldest).await?.map_or(Ok(0), |row| row.get("oldest_schema"))?;
        }
        Ok(schema)
    }

    async fn database_info(&mut self) -> Result<DatabaseInfo> {
        let engine = if self.is_single_server() { "sqlite" } else { "postgres" };
        let select = self.for_engine(
            "SELECT sqlite_version() AS version, pages.page_count * size.page_size AS bytes, list.file || '-wal' AS wal
             FROM pragma_page_count() AS pages, pragma_page_size() AS size, pragma_database_list() AS list
             WHERE list.name = 'main'",
            "SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS bytes,
                 NULL::text AS wal",
        );
        let Some(row) = self.fetch_first(select).await? else {
            return Err(StoreError::Unavailable("it returned no version".to_owned()));
        };
        let wal: Option<String> = row.get("wal")?;
        Ok(DatabaseInfo {
            engine,
            version: row.get("version")?,
            bytes: row.get::<i64>("bytes")?.unsigned_abs(),
            // It does not exist if nothing was written since the last start.
            wal_bytes: wal.map(|file| std::fs::metadata(file).map_or(0, |metadata| metadata.len())),
        })
    }
}
