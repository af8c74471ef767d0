//! sqlx's table of migrations.

use async_trait::async_trait;

use crate::store::sql::SqlSession;
use crate::store::sql::statement::sql;
use crate::store::system::schema::{DatabaseInfo, SchemaQueries};
use crate::store::{Result, StoreError};

#[async_trait]
impl SchemaQueries for SqlSession<'_> {
    async fn schema_version(&mut self) -> Result<i64> {
        let newest = sql("SELECT coalesce(max(version), 0) AS version FROM _sqlx_migrations");
        self.fetch_first(newest).await?.map_or(Ok(0), |row| row.get("version"))
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
