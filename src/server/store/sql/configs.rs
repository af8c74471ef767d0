//! `configs` and `config_revisions`.

use std::sync::Arc;

use async_trait::async_trait;

use super::rows::{NamedRow, to_json};
use super::statement::sql;
use super::{SqlRow, SqlSession};
use crate::store::Result;
use crate::store::configs::{ConfigQueries, RevisionUsage, StoredConfig, StoredRevision};

#[async_trait]
impl ConfigQueries for SqlSession<'_> {
    async fn configs(&mut self) -> Result<Vec<StoredConfig>> {
        let select = sql("SELECT r.* FROM configs JOIN config_revisions AS r USING (name, revision) ORDER BY name");
        self.fetch_all(select, from_row).await
    }

    async fn config(&mut self, name: &str) -> Result<Option<Arc<StoredConfig>>> {
        if let Some(revision) = self.cached_revision(name) {
            return self.config_revision(name, revision).await;
        }
        let row = self.fetch_first(sql("SELECT name, revision FROM configs WHERE name = $1").bind(name)).await?;
        let Some(row) = row else { return Ok(None) };
        let revision = NamedRow::new(&row, "configs", "name")?.number("revision")?;
        self.cache_revision(name, revision);
        self.config_revision(name, revision).await
    }

    async fn config_revision(&mut self, name: &str, revision: u32) -> Result<Option<Arc<StoredConfig>>> {
        if let Some(config) = self.shared.revisions.get(name, revision) {
            return Ok(Some(config));
        }
        let select = sql("SELECT * FROM config_revisions WHERE name = $1 AND revision = $2").bind(name).bind(revision);
        let config = self.fetch_first(select).await?.as_ref().map(from_row).transpose()?.map(Arc::new);
        // The value that a writer reads may be rolled back.
        if let (None, Some(config)) = (&self.cache, &config) {
            self.shared.revisions.insert(config);
        }
        Ok(config)
    }

    async fn newest_revision(&mut self, name: &str) -> Result<u32> {
        let select = sql("SELECT * FROM config_revisions WHERE name = $1 ORDER BY revision DESC LIMIT 1").bind(name);
        let newest = self.fetch_first(select).await?;
        newest.as_ref().map(from_row).transpose().map(|newest| newest.map_or(0, |config| config.revision))
    }

    async fn revisions(&mut self, name: &str) -> Result<Vec<StoredRevision>> {
        let select = sql("SELECT name, revision, sha256, created_at, created_by FROM config_revisions WHERE name = $1
             ORDER BY revision DESC");
        let revision_from = |row: &SqlRow| {
            let row = NamedRow::new(row, "config_revisions", "name")?;
            let (revision, sha256) = (row.number("revision")?, row.get("sha256")?);
            let created_by = row.get("created_by")?;
            Ok(StoredRevision { revision, sha256, created_at: row.timestamp("created_at")?, created_by })
        };
        self.fetch_all(select.bind(name), revision_from).await
    }

    async fn revision_usage(&mut self, name: &str, user: Option<&str>) -> Result<Vec<RevisionUsage>> {
        let select = sql("SELECT config_name, config_revision, state, count(*) AS number FROM jobs
             WHERE config_name = $1 AND ($2 IS NULL OR submitted_by = $2)
             GROUP BY config_name, config_revision, state");
        let usage_from = |row: &SqlRow| {
            let row = NamedRow::new(row, "jobs", "config_name")?;
            let jobs = row.get::<i64>("number")?.unsigned_abs();
            Ok(RevisionUsage { revision: row.number("config_revision")?, state: row.get("state")?, jobs })
        };
        self.fetch_all(select.bind(name).bind(user), usage_from).await
    }

    async fn last_run_revision(&mut self, name: &str, user: &str) -> Result<Option<u32>> {
        let select = sql("SELECT config_name, config_revision FROM jobs WHERE config_name = $1 AND submitted_by = $2
             ORDER BY config_revision DESC LIMIT 1");
        let newest = self.fetch_first(select.bind(name).bind(user)).await?;
        newest.map(|row| NamedRow::new(&row, "jobs", "config_name")?.number("config_revision")).transpose()
    }

    async fn config_bytes(&mut self, by: Option<&str>) -> Result<u64> {
        let sum = match by {
            Some(by) => sql("SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM config_revisions
                 WHERE created_by = $1")
            .bind(by),
            None => sql("SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM config_revisions"),
        };
        self.fetch_first(sum).await?.map_or(Ok(0), |row| row.get::<i64>("bytes")).map(i64::unsigned_abs)
    }

    async fn insert_config(&mut self, config: &StoredConfig) -> Result<()> {
        let files = to_json(&config.files);
        let bytes = i64::try_from(files.len()).unwrap_or(i64::MAX);
        let insert = sql("INSERT INTO config_revisions
             (name, revision, sha256, files, created_at, created_by, owner, bytes)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
        let insert = insert.bind(&config.name).bind(config.revision).bind(&config.sha256);
        let insert = insert.bind(files).bind(config.created_at.0);
        self.execute_one(insert.bind(config.created_by.clone()).bind(config.owner.clone()).bind(bytes)).await?;
        let put = sql("INSERT INTO configs (name, revision) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET revision = excluded.revision");
        self.execute_one(put.bind(&config.name).bind(config.revision)).await?;
        self.record_revision(&config.name, Some(config.revision));
        Ok(())
    }

    async fn remove_config(&mut self, name: &str) -> Result<()> {
        self.execute_one(sql("DELETE FROM configs WHERE name = $1").bind(name)).await?;
        self.record_revision(name, None);
        Ok(())
    }
}

fn from_row(row: &SqlRow) -> Result<StoredConfig> {
    let row = NamedRow::new(row, "config_revisions", "name")?;
    Ok(StoredConfig {
        name: row.get("name")?,
        revision: row.number("revision")?,
        sha256: row.get("sha256")?,
        files: row.json("files")?,
        created_at: row.timestamp("created_at")?,
        created_by: row.get("created_by")?,
        owner: row.get("owner")?,
    })
}
