//! The record that sqlx keeps of migrations.

use async_trait::async_trait;

use super::Session;
use super::statement::sql;
use crate::store::Result;
use crate::store::schema::Schema;

#[async_trait]
impl Schema for Session<'_> {
    async fn schema_version(&mut self) -> Result<i64> {
        let newest = sql("SELECT coalesce(max(version), 0) AS version FROM _sqlx_migrations");
        self.first(newest).await?.map_or(Ok(0), |row| row.get("version"))
    }
}
