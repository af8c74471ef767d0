//! `api_tokens`, `sessions` and `settings`.

use std::ops::DerefMut;

use app::domain::time::Timestamp;
use async_trait::async_trait;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::rows::Named;
use super::session::Session;
use super::{exactly_one, failed};
use crate::store::Result;
use crate::store::access::{Access, StoredSession};

#[async_trait]
impl<C: DerefMut<Target = SqliteConnection> + Send> Access for Session<C> {
    async fn api_token(&mut self, digest: &str) -> Result<Option<String>> {
        let query = sqlx::query_scalar("SELECT name FROM api_tokens WHERE digest = ?").bind(digest);
        query.fetch_optional(self.db()).await.map_err(failed)
    }

    async fn has_api_tokens(&mut self) -> Result<bool> {
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM api_tokens)").fetch_one(self.db()).await.map_err(failed)
    }

    async fn put_api_token(&mut self, name: &str, digest: &str, at: Timestamp) -> Result<()> {
        let query = sqlx::query(
            "INSERT INTO api_tokens (name, digest, created_at) VALUES (?, ?, ?)
             ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, created_at = excluded.created_at",
        );
        query.bind(name).bind(digest).bind(at.0).execute(self.db()).await.map_err(failed)?;
        Ok(())
    }

    async fn session(&mut self, digest: &str) -> Result<Option<StoredSession>> {
        let query = sqlx::query("SELECT * FROM sessions WHERE digest = ?").bind(digest);
        query.fetch_optional(self.db()).await.map_err(failed)?.as_ref().map(from_row).transpose()
    }

    async fn insert_session(&mut self, session: &StoredSession) -> Result<()> {
        let query = sqlx::query("INSERT INTO sessions (digest, name, created_at, expires_at) VALUES (?, ?, ?, ?)");
        query
            .bind(&session.digest)
            .bind(&session.name)
            .bind(session.created_at.0)
            .bind(session.expires_at.0)
            .execute(self.db())
            .await
            .map_err(failed)
            .and_then(|result| exactly_one(&result))
    }

    async fn delete_session(&mut self, digest: &str) -> Result<()> {
        let query = sqlx::query("DELETE FROM sessions WHERE digest = ?").bind(digest);
        query.execute(self.db()).await.map_err(failed)?;
        Ok(())
    }

    async fn sweep_sessions(&mut self, now: Timestamp) -> Result<()> {
        let query = sqlx::query("DELETE FROM sessions WHERE expires_at <= ?").bind(now.0);
        query.execute(self.db()).await.map_err(failed)?;
        Ok(())
    }

    async fn setting(&mut self, key: &str) -> Result<Option<String>> {
        let query = sqlx::query_scalar("SELECT value FROM settings WHERE key = ?").bind(key);
        query.fetch_optional(self.db()).await.map_err(failed)
    }

    async fn put_setting(&mut self, key: &str, value: Option<&str>) -> Result<()> {
        let query = match value {
            Some(value) => sqlx::query(
                "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            )
            .bind(key)
            .bind(value),
            None => sqlx::query("DELETE FROM settings WHERE key = ?").bind(key),
        };
        query.execute(self.db()).await.map_err(failed)?;
        Ok(())
    }
}

fn from_row(row: &SqliteRow) -> Result<StoredSession> {
    let row = Named::new(row, "sessions", "digest")?;
    Ok(StoredSession {
        digest: row.get("digest")?,
        name: row.get("name")?,
        created_at: Timestamp(row.get("created_at")?),
        expires_at: Timestamp(row.get("expires_at")?),
    })
}
