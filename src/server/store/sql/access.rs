//! `api_tokens`, `sessions` and `settings`.

use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::rows::Named;
use super::statement::sql;
use super::{Row, Session};
use crate::store::Result;
use crate::store::access::{Access, StoredSession};
use crate::store::known::Change;

#[async_trait]
impl Access for Session<'_> {
    async fn api_token(&mut self, digest: &str) -> Result<Option<String>> {
        if let Some(Some(known)) = self.glance(|known| known.api_token(digest).cloned()) {
            return Ok(Some(known));
        }
        let row = self.first(sql("SELECT name FROM api_tokens WHERE digest = $1").bind(digest)).await?;
        row.map(|row| row.get("name")).transpose()
    }

    async fn has_api_tokens(&mut self) -> Result<bool> {
        Ok(self.first(sql("SELECT name FROM api_tokens LIMIT 1")).await?.is_some())
    }

    async fn put_api_token(&mut self, name: &str, digest: &str, at: Timestamp) -> Result<()> {
        let put = sql("INSERT INTO api_tokens (name, digest, created_at) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, created_at = excluded.created_at");
        self.one(put.bind(name).bind(digest).bind(at.0)).await?;
        self.note(Change::ApiToken { name: name.to_owned(), digest: digest.to_owned() });
        Ok(())
    }

    async fn session(&mut self, digest: &str) -> Result<Option<StoredSession>> {
        let row = self.first(sql("SELECT * FROM sessions WHERE digest = $1").bind(digest)).await?;
        row.as_ref().map(from_row).transpose()
    }

    async fn insert_session(&mut self, session: &StoredSession) -> Result<()> {
        let insert = sql("INSERT INTO sessions (digest, name, created_at, expires_at) VALUES ($1, $2, $3, $4)");
        let insert = insert.bind(&session.digest).bind(&session.name);
        self.one(insert.bind(session.created_at.0).bind(session.expires_at.0)).await
    }

    async fn delete_session(&mut self, digest: &str) -> Result<()> {
        self.run(sql("DELETE FROM sessions WHERE digest = $1").bind(digest)).await.map(drop)
    }

    async fn sweep_sessions(&mut self, now: Timestamp) -> Result<()> {
        self.run(sql("DELETE FROM sessions WHERE expires_at <= $1").bind(now.0)).await.map(drop)
    }

    async fn setting(&mut self, key: &str) -> Result<Option<String>> {
        let row = self.first(sql("SELECT value FROM settings WHERE key = $1").bind(key)).await?;
        row.map(|row| row.get("value")).transpose()
    }

    async fn put_setting(&mut self, key: &str, value: Option<&str>) -> Result<()> {
        let put = match value {
            Some(value) => sql("INSERT INTO settings (key, value) VALUES ($1, $2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value")
            .bind(key)
            .bind(value),
            None => sql("DELETE FROM settings WHERE key = $1").bind(key),
        };
        self.run(put).await.map(drop)
    }
}

fn from_row(row: &Row) -> Result<StoredSession> {
    let row = Named::new(row, "sessions", "digest")?;
    Ok(StoredSession {
        digest: row.get("digest")?,
        name: row.get("name")?,
        created_at: row.moment("created_at")?,
        expires_at: row.moment("expires_at")?,
    })
}
