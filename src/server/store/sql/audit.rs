//! `audit` and `audit_heads`.

use std::collections::BTreeMap;

use app::domain::audit::verify::{Head, Mark};
use app::domain::audit::{Action, Entry};
use app::domain::time::Timestamp;
use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::rows::Named;
use super::statement::{Condition, select, sql};
use super::{Row, Session};
use crate::store::Result;
use crate::store::audit::{Actions, Audit, AuditFilter, Place, Reading, StoredEntry};
use crate::tokens::hex;

#[async_trait]
impl Audit for Session<'_> {
    async fn append_audit(&mut self, entry: Entry) -> Result<()> {
        self.may_write()?;
        let chain = self.shared.chain.clone();
        let entry = entry.storable();
        let newest = self.newest_audit().await?;
        let seq = newest.seq + 1;
        let hash = hex(&Sha256::digest(entry.placed(&chain, seq, &newest.hash).canonical()));
        self.pending.audit([
            (&*chain).into(),
            seq.into(),
            entry.at.0.into(),
            entry.actor.into(),
            entry.action.as_str().into(),
            entry.target.into(),
            entry.detail.into(),
            entry.request_id.into(),
            newest.hash.into(),
            (&hash).into(),
        ]);
        self.head = Some(Mark { seq, hash });
        Ok(())
    }

    // Its only writer is this server.
    async fn newest_audit(&mut self) -> Result<Mark> {
        let known = self.head.clone().or_else(|| self.mirror.as_ref().and_then(|mirror| mirror.head.clone()));
        if let Some(known) = known {
            return Ok(known);
        }
        let chain = self.shared.chain.clone();
        let head = self.first(sql("SELECT seq, hash FROM audit_heads WHERE chain = $1").bind(&*chain)).await?;
        head.map_or(Ok(Mark::default()), |head| mark(&head, "seq", "hash"))
    }

    async fn audit_of(&mut self, target: &str) -> Result<Vec<StoredEntry>> {
        let select = sql("SELECT * FROM audit WHERE target = $1 ORDER BY at, chain, seq").bind(target);
        self.all(select, from_row).await
    }

    async fn audit_page(&mut self, filter: &AuditFilter, from: &Reading, limit: u32) -> Result<Vec<StoredEntry>> {
        if let (Some(Actions::Under(start)), Reading::Back(_)) = (&filter.action, from) {
            return self.pages_of_words(filter, start, from, limit).await;
        }
        let after = |words, place: &Place| -> Condition {
            (words, vec![place.at.0.into(), (&place.chain).into(), place.seq.into()])
        };
        let (place, order) = match from {
            Reading::Back(place) => (
                place.as_ref().map(|place| after("(at, chain, seq) < (?, ?, ?)", place)),
                " ORDER BY at DESC, chain DESC, seq DESC LIMIT ?",
            ),
            Reading::Forth(place) => (
                place.as_ref().map(|place| after("(at, chain, seq) > (?, ?, ?)", place)),
                " ORDER BY at, chain, seq LIMIT ?",
            ),
        };
        let conditions = conditions(filter).into_iter().chain(place).collect();
        let select = select(self.places(), "SELECT * FROM audit", conditions, order).bind(limit);
        self.all(select, from_row).await
    }

    async fn audit_heads(&mut self) -> Result<BTreeMap<String, Head>> {
        let head = |row: &Row| {
            let head = Head { newest: mark(row, "seq", "hash")?, removed: mark(row, "removed_seq", "removed_hash")? };
            Ok((row.get("chain")?, head))
        };
        Ok(self.all(sql("SELECT * FROM audit_heads"), head).await?.into_iter().collect())
    }

    async fn newest_audit_at(&mut self) -> Result<Option<Timestamp>> {
        let newest = self.first(sql("SELECT at FROM audit ORDER BY at DESC LIMIT 1")).await?;
        newest.map(|row| row.get("at").map(Timestamp)).transpose()
    }

    async fn audit_after(&mut self, chain: &str, seq: i64, limit: u32) -> Result<Vec<StoredEntry>> {
        let after = sql("SELECT * FROM audit WHERE (chain, seq) > ($1, $2) ORDER BY chain, seq LIMIT $3");
        self.all(after.bind(chain).bind(seq).bind(limit), from_row).await
    }

    async fn oldest_audit(&mut self, chain: &str, limit: u32) -> Result<Vec<(Timestamp, Mark)>> {
        let oldest = sql("SELECT seq, at, hash FROM audit WHERE chain = $1 ORDER BY seq LIMIT $2");
        let of = |row: &Row| Ok((Timestamp(row.get("at")?), mark(row, "seq", "hash")?));
        self.all(oldest.bind(chain).bind(limit), of).await
    }

    async fn remove_audit(&mut self, chain: &str, through: &Mark) -> Result<()> {
        self.may_write()?;
        let anchor = sql("UPDATE audit_heads SET removed_seq = $2, removed_hash = $3
             WHERE chain = $1 AND removed_seq < $2 AND seq >= $2");
        self.one(anchor.bind(chain).bind(through.seq).bind(&through.hash)).await?;
        self.run(sql("DELETE FROM audit WHERE chain = $1 AND seq <= $2").bind(chain).bind(through.seq)).await.map(drop)
    }
}

impl Session<'_> {
    /// A page of all actions that begin alike: of each by itself, which the index has in the order of time, as if only
    /// that one had been asked for.
    async fn pages_of_words(
        &mut self,
        filter: &AuditFilter,
        start: &str,
        from: &Reading,
        limit: u32,
    ) -> Result<Vec<StoredEntry>> {
        let mut found = Vec::new();
        for word in Action::ALL.iter().map(|action| action.as_str()).filter(|word| word.starts_with(start)) {
            let one = AuditFilter { action: Some(Actions::Is(word.to_owned())), ..filter.clone() };
            found.extend(self.audit_page(&one, from, limit).await?);
        }
        found.sort_by(|a, b| (b.at, &b.chain, b.seq).cmp(&(a.at, &a.chain, a.seq)));
        found.truncate(limit as usize);
        Ok(found)
    }

    /// Keeps the head of the chain apart, once for all that was appended.
    pub(super) async fn keep_head(&mut self) -> Result<()> {
        let Some(head) = self.head.take() else { return Ok(()) };
        let chain = self.shared.chain.clone();
        let put = sql("INSERT INTO audit_heads (chain, seq, hash) VALUES ($1, $2, $3)
             ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash");
        self.one(put.bind(&*chain).bind(head.seq).bind(&head.hash)).await?;
        if let Some(mirror) = &mut self.mirror {
            mirror.head = Some(head);
        }
        Ok(())
    }
}

/// Somebody, and what they did with tokens of theirs: `ada`, `ada/ci`. What comes after a slash is a `0`.
fn by_actor(actor: &str) -> Condition {
    let (first, end) = (format!("{actor}/"), format!("{actor}0"));
    ("(actor = ? OR (actor >= ? AND actor < ?))", vec![actor.into(), first.into(), end.into()])
}

/// Only what was asked for stands in the statement, so that an index can be used for it.
fn conditions(filter: &AuditFilter) -> Vec<Condition> {
    let one = |words, value: &Option<String>| value.as_ref().map(|value| -> Condition { (words, vec![value.into()]) });
    let action = filter.action.as_ref().map(|action| -> Condition {
        match action {
            Actions::Is(word) => ("action = ?", vec![word.into()]),
            // What comes after a dot is a slash. Not by the index of actions, which would have all of them sorted by time.
            Actions::Under(start) => {
                let end = format!("{}/", start.trim_end_matches('.'));
                ("(action || '') >= ? AND (action || '') < ?", vec![start.into(), end.into()])
            }
        }
    });
    let asked = [
        filter.actor.as_deref().map(by_actor),
        action,
        one("target = ?", &filter.target),
        one("request_id = ?", &filter.request_id),
        filter.since.map(|at| -> Condition { ("at >= ?", vec![at.0.into()]) }),
        filter.until.map(|at| -> Condition { ("at < ?", vec![at.0.into()]) }),
    ];
    asked.into_iter().flatten().collect()
}

fn mark(row: &Row, seq: &'static str, hash: &'static str) -> Result<Mark> {
    Ok(Mark { seq: row.get(seq)?, hash: row.get(hash)? })
}

fn from_row(row: &Row) -> Result<StoredEntry> {
    let row = Named::new(row, "audit", "hash")?;
    Ok(StoredEntry {
        chain: row.get("chain")?,
        seq: row.get("seq")?,
        at: row.moment("at")?,
        actor: row.get("actor")?,
        action: row.get("action")?,
        target: row.get("target")?,
        detail: row.get("detail")?,
        request_id: row.get("request_id")?,
        previous: row.get("previous")?,
        hash: row.get("hash")?,
    })
}
