//! `configs` and `config_revisions`.

use std::ops::DerefMut;

use app::domain::time::Timestamp;
use async_trait::async_trait;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::rows::{Named, to_json};
use super::session::Session;
use super::{exactly_one, failed};
use crate::store::Result;
use crate::store::configs::{Configs, StoredConfig};

#[async_trait]
impl<C: DerefMut<Target = SqliteConnection> + Send> Configs for Session<C> {
    async fn configs(&mut self) -> Result<Vec<StoredConfig>> {
        let query =
            sqlx::query("SELECT r.* FROM configs JOIN config_revisions AS r USING (name, revision) ORDER BY name");
        query.fetch_all(self.db()).await.map_err(failed)?.iter().map(from_row).collect()
    }

    async fn config(&mut self, name: &str) -> Result<Option<StoredConfig>> {
        let query =
            sqlx::query("SELECT r.* FROM configs JOIN config_revisions AS r USING (name, revision) WHERE name = ?");
        query.bind(name).fetch_optional(self.db()).await.map_err(failed)?.as_ref().map(from_row).transpose()
    }

    async fn config_revision(&mut self, name: &str, revision: u32) -> Result<Option<StoredConfig>> {
        let query = sqlx::query("SELECT * FROM config_revisions WHERE name = ? AND revision = ?");
        let query = query.bind(name).bind(revision);
        query.fetch_optional(self.db()).await.map_err(failed)?.as_ref().map(from_row).transpose()
    }

    async fn newest_revision(&mut self, name: &str) -> Result<u32> {
        let query = sqlx::query_scalar("SELECT coalesce(max(revision), 0) FROM config_revisions WHERE name = ?");
        query.bind(name).fetch_one(self.db()).await.map_err(failed)
    }

    async fn insert_config(&mut self, config: &StoredConfig) -> Result<()> {
        let query = sqlx::query(
            "INSERT INTO config_revisions (name, revision, sha256, files, created_at) VALUES (?, ?, ?, ?, ?)",
        );
        query
            .bind(&config.name)
            .bind(config.revision)
            .bind(&config.sha256)
            .bind(to_json(&config.files))
            .bind(config.created_at.0)
            .execute(self.db())
            .await
            .map_err(failed)
            .and_then(|result| exactly_one(&result))?;
        let query = sqlx::query(
            "INSERT INTO configs (name, revision) VALUES (?, ?)
             ON CONFLICT DO UPDATE SET revision = excluded.revision",
        );
        query.bind(&config.name).bind(config.revision).execute(self.db()).await.map_err(failed)?;
        Ok(())
    }

    async fn remove_config(&mut self, name: &str) -> Result<()> {
        let query = sqlx::query("DELETE FROM configs WHERE name = ?").bind(name);
        query.execute(self.db()).await.map_err(failed).and_then(|result| exactly_one(&result))
    }
}

fn from_row(row: &SqliteRow) -> Result<StoredConfig> {
    let row = Named::new(row, "config_revisions", "name")?;
    Ok(StoredConfig {
        name: row.get("name")?,
        revision: row.number("revision")?,
        sha256: row.get("sha256")?,
        files: row.json("files")?,
        created_at: Timestamp(row.get("created_at")?),
    })
}
