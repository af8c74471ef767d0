//! `audit` and `audit_heads`.

use app::domain::audit::{Entry, Link, canonical};
use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::rows::Named;
use super::statement::sql;
use super::{Row, Session};
use crate::store::Result;
use crate::store::audit::{Audit, StoredEntry};
use crate::tokens::hex;

#[async_trait]
impl Audit for Session<'_> {
    async fn append_audit(&mut self, entry: &Entry) -> Result<()> {
        self.may_write()?;
        let chain = self.shared.chain.clone();
        let (newest, previous) = self.newest().await?;
        let seq = newest + 1;
        let link = Link { chain: &chain, seq, previous: &previous };
        let hash = hex(&Sha256::digest(canonical(&link, entry)));
        self.pending.audit([
            (&*chain).into(),
            seq.into(),
            entry.at.0.into(),
            (&entry.actor).into(),
            entry.action.as_str().into(),
            (&entry.target).into(),
            (&entry.detail).into(),
            entry.request_id.clone().into(),
            (&previous).into(),
            (&hash).into(),
        ]);
        self.head = Some((seq, hash));
        Ok(())
    }

    async fn audit_of(&mut self, target: &str) -> Result<Vec<StoredEntry>> {
        let select = sql("SELECT * FROM audit WHERE target = $1 ORDER BY at, chain, seq").bind(target);
        self.all(select).await?.iter().map(from_row).collect()
    }
}

impl Session<'_> {
    /// The newest entry of this server's chain, whose only writer this is.
    async fn newest(&mut self) -> Result<(i64, String)> {
        let known = self.head.clone().or_else(|| self.mirror.as_ref().and_then(|mirror| mirror.head.clone()));
        if let Some(known) = known {
            return Ok(known);
        }
        let chain = self.shared.chain.clone();
        let head = self.first(sql("SELECT seq, hash FROM audit_heads WHERE chain = $1").bind(&*chain)).await?;
        head.map_or(Ok((0, String::new())), |head| Ok((head.get("seq")?, head.get("hash")?)))
    }

    /// Keeps the head of the chain apart, once for all that was appended.
    pub(super) async fn keep_head(&mut self) -> Result<()> {
        let Some((seq, hash)) = self.head.take() else { return Ok(()) };
        let chain = self.shared.chain.clone();
        let put = sql("INSERT INTO audit_heads (chain, seq, hash) VALUES ($1, $2, $3)
             ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash");
        self.one(put.bind(&*chain).bind(seq).bind(&hash)).await?;
        if let Some(mirror) = &mut self.mirror {
            mirror.head = Some((seq, hash));
        }
        Ok(())
    }
}

fn from_row(row: &Row) -> Result<StoredEntry> {
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
