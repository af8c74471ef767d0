//! `audit` and `audit_heads`.

use std::ops::DerefMut;

use app::domain::audit::{Entry, Link, canonical};
use async_trait::async_trait;
use sha2::{Digest, Sha256};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::rows::Named;
use super::session::Session;
use super::{exactly_one, failed};
use crate::store::Result;
use crate::store::audit::{Audit, StoredEntry};
use crate::tokens::hex;

#[async_trait]
impl<C: DerefMut<Target = SqliteConnection> + Send> Audit for Session<C> {
    async fn append_audit(&mut self, entry: &Entry) -> Result<()> {
        let chain = self.chain.clone();
        let query = sqlx::query("SELECT seq, hash FROM audit_heads WHERE chain = ?").bind(&*chain);
        let (seq, previous): (i64, String) = match query.fetch_optional(self.db()).await.map_err(failed)? {
            None => (1, String::new()),
            Some(head) => {
                let newest: i64 = head.try_get("seq").map_err(failed)?;
                (newest + 1, head.try_get("hash").map_err(failed)?)
            }
        };
        let link = Link { chain: &chain, seq, previous: &previous };
        let hash = hex(&Sha256::digest(canonical(&link, entry)));
        let query = sqlx::query(
            "INSERT INTO audit (chain, seq, at, actor, action, target, detail, request_id, previous, hash)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        );
        query
            .bind(&*chain)
            .bind(seq)
            .bind(entry.at.0)
            .bind(&entry.actor)
            .bind(entry.action.as_str())
            .bind(&entry.target)
            .bind(&entry.detail)
            .bind(&entry.request_id)
            .bind(&previous)
            .bind(&hash)
            .execute(self.db())
            .await
            .map_err(failed)
            .and_then(|result| exactly_one(&result))?;
        let query = sqlx::query(
            "INSERT INTO audit_heads (chain, seq, hash) VALUES (?, ?, ?)
             ON CONFLICT DO UPDATE SET seq = excluded.seq, hash = excluded.hash",
        );
        query.bind(&*chain).bind(seq).bind(&hash).execute(self.db()).await.map_err(failed)?;
        Ok(())
    }

    async fn audit_of(&mut self, target: &str) -> Result<Vec<StoredEntry>> {
        let query = sqlx::query("SELECT * FROM audit WHERE target = ? ORDER BY at, chain, seq").bind(target);
        query.fetch_all(self.db()).await.map_err(failed)?.iter().map(from_row).collect()
    }
}

fn from_row(row: &SqliteRow) -> Result<StoredEntry> {
    let row = Named::new(row, "audit", "hash")?;
    Ok(StoredEntry {
        seq: row.get("seq")?,
        at: row.get("at")?,
        actor: row.get("actor")?,
        action: row.get("action")?,
        target: row.get("target")?,
        detail: row.get("detail")?,
        previous: row.get("previous")?,
        hash: row.get("hash")?,
    })
}
