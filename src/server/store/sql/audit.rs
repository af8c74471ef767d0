//! `audit` and `audit_heads`.

use std::collections::BTreeMap;

use app::domain::audit::verify::{ChainHead, EntryRef};
use app::domain::audit::{AuditAction, AuditEvent};
use app::domain::time::Timestamp;
use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::rows::{NamedRow, to_json};
use super::statement::{PlaceholderStyle, SqlCondition, select, sql};
use super::{SqlRow, SqlSession};
use crate::store::Result;
use crate::store::audit::{ActionFilter, AuditCursor, AuditFilter, AuditOrder, AuditQueries, StoredAuditEntry};
use crate::tokens::hex;

#[async_trait]
impl AuditQueries for SqlSession<'_> {
    async fn append_audit(&mut self, entry: AuditEvent) -> Result<()> {
        self.require_writer()?;
        let chain = self.shared.chain.clone();
        let entry = entry.sanitized();
        let newest = self.newest_audit().await?;
        let seq = newest.seq + 1;
        let hash = hex(&Sha256::digest(entry.to_record(&chain, seq, &newest.hash).canonical_bytes()));
        self.batch.push_audit([
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
        self.head = Some(EntryRef { seq, hash });
        Ok(())
    }

    // This server is its only writer.
    async fn newest_audit(&mut self) -> Result<EntryRef> {
        let head = self.head.clone().or_else(|| self.cache.as_ref().and_then(|cache| cache.head.clone()));
        if let Some(head) = head {
            return Ok(head);
        }
        let chain = self.shared.chain.clone();
        let head = self.fetch_first(sql("SELECT seq, hash FROM audit_heads WHERE chain = $1").bind(&*chain)).await?;
        head.map_or(Ok(EntryRef::default()), |head| entry_ref(&head, "seq", "hash"))
    }

    async fn audit_of_target(&mut self, target: &str) -> Result<Vec<StoredAuditEntry>> {
        let select = sql("SELECT * FROM audit WHERE target = $1 ORDER BY at, chain, seq").bind(target);
        self.fetch_all(select, from_row).await
    }

    async fn audit_by_worker_name(&mut self, name: &str) -> Result<Vec<(String, String)>> {
        let select = sql("SELECT target, detail FROM audit WHERE action IN (
                 'worker.created', 'worker.updated', 'worker.removed', 'worker.deleted') AND replace(detail, $1, '') <> detail");
        let name_field = format!("\"name\":{}", to_json(&name));
        self.fetch_all(select.bind(name_field), |row| Ok((row.get("target")?, row.get("detail")?))).await
    }

    async fn audit_page(
        &mut self,
        filter: &AuditFilter,
        from: &AuditOrder,
        limit: u32,
    ) -> Result<Vec<StoredAuditEntry>> {
        if let (Some(ActionFilter::Prefix(start)), AuditOrder::NewestFirst(_)) = (&filter.action, from) {
            return self.page_by_prefix(filter, start, from, limit).await;
        }
        let after = |text, cursor: &AuditCursor| -> SqlCondition {
            (text, vec![cursor.at.0.into(), (&cursor.chain).into(), cursor.seq.into()])
        };
        let (position, order) = match from {
            AuditOrder::NewestFirst(cursor) => (
                cursor.as_ref().map(|cursor| after("(at, chain, seq) < (?, ?, ?)", cursor)),
                " ORDER BY at DESC, chain DESC, seq DESC LIMIT ?",
            ),
            AuditOrder::OldestFirst(cursor) => (
                cursor.as_ref().map(|cursor| after("(at, chain, seq) > (?, ?, ?)", cursor)),
                " ORDER BY at, chain, seq LIMIT ?",
            ),
        };
        let conditions = self.audit_conditions(filter).into_iter().chain(position).collect();
        let select = select(self.placeholder_style(), "SELECT * FROM audit", conditions, order).bind(limit);
        self.fetch_all(select, from_row).await
    }

    async fn audit_heads(&mut self) -> Result<BTreeMap<String, ChainHead>> {
        let head = |row: &SqlRow| {
            let head = ChainHead {
                newest: entry_ref(row, "seq", "hash")?,
                removed: entry_ref(row, "removed_seq", "removed_hash")?,
            };
            Ok((row.get("chain")?, head))
        };
        Ok(self.fetch_all(sql("SELECT * FROM audit_heads"), head).await?.into_iter().collect())
    }

    async fn newest_audit_at(&mut self) -> Result<Option<Timestamp>> {
        let newest = self.fetch_first(sql("SELECT at FROM audit ORDER BY at DESC LIMIT 1")).await?;
        newest.map(|row| row.get("at").map(Timestamp)).transpose()
    }

    async fn audit_after(&mut self, chain: &str, seq: i64, limit: u32) -> Result<Vec<StoredAuditEntry>> {
        let after = sql("SELECT * FROM audit WHERE (chain, seq) > ($1, $2) ORDER BY chain, seq LIMIT $3");
        self.fetch_all(after.bind(chain).bind(seq).bind(limit), from_row).await
    }

    async fn oldest_audit(&mut self, chain: &str, limit: u32) -> Result<Vec<(Timestamp, EntryRef)>> {
        let oldest = sql("SELECT seq, at, hash FROM audit WHERE chain = $1 ORDER BY seq LIMIT $2");
        let entry = |row: &SqlRow| Ok((Timestamp(row.get("at")?), entry_ref(row, "seq", "hash")?));
        self.fetch_all(oldest.bind(chain).bind(limit), entry).await
    }

    async fn remove_audit(&mut self, chain: &str, through: &EntryRef) -> Result<()> {
        self.require_writer()?;
        let anchor = sql("UPDATE audit_heads SET removed_seq = $2, removed_hash = $3
             WHERE chain = $1 AND removed_seq < $2 AND seq >= $2");
        self.execute_one(anchor.bind(chain).bind(through.seq).bind(&through.hash)).await?;
        self.execute(sql("DELETE FROM audit WHERE chain = $1 AND seq <= $2").bind(chain).bind(through.seq))
            .await
            .map(drop)
    }
}

impl SqlSession<'_> {
    /// A page of all actions with a prefix: a query for each action, because the index orders the entries of one action
    /// by time.
    async fn page_by_prefix(
        &mut self,
        filter: &AuditFilter,
        start: &str,
        from: &AuditOrder,
        limit: u32,
    ) -> Result<Vec<StoredAuditEntry>> {
        let mut entries = Vec::new();
        for action in AuditAction::ALL.iter().map(|action| action.as_str()).filter(|action| action.starts_with(start)) {
            let single_action = AuditFilter { action: Some(ActionFilter::Is(action.to_owned())), ..filter.clone() };
            entries.extend(self.audit_page(&single_action, from, limit).await?);
        }
        entries.sort_by(|a, b| (b.at, &b.chain, b.seq).cmp(&(a.at, &a.chain, a.seq)));
        entries.truncate(limit as usize);
        Ok(entries)
    }

    fn audit_conditions(&self, filter: &AuditFilter) -> Vec<SqlCondition> {
        let target_condition = match self.placeholder_style() {
            PlaceholderStyle::Anonymous => "target IN (SELECT value FROM json_each(?))",
            PlaceholderStyle::Numbered => "target IN (SELECT json_array_elements_text(?::json))",
        };
        conditions(filter, target_condition)
    }

    /// Writes the head of the chain, once for all appended entries.
    pub(super) async fn write_head(&mut self) -> Result<()> {
        let Some(head) = self.head.take() else { return Ok(()) };
        let chain = self.shared.chain.clone();
        let put = sql("INSERT INTO audit_heads (chain, seq, hash) VALUES ($1, $2, $3)
             ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash");
        self.execute_one(put.bind(&*chain).bind(head.seq).bind(&head.hash)).await?;
        if let Some(cache) = &mut self.cache {
            cache.head = Some(head);
        }
        Ok(())
    }
}

/// A user, and what they did with their tokens: `ada`, `ada/ci`. In byte order, `0` follows the slash.
fn actor_condition(actor: &str) -> SqlCondition {
    let (first, end) = (format!("{actor}/"), format!("{actor}0"));
    ("(actor = ? OR (actor >= ? AND actor < ?))", vec![actor.into(), first.into(), end.into()])
}

/// Each filter is a condition of its own, so that an index can be used for it.
fn conditions(filter: &AuditFilter, target_condition: &'static str) -> Vec<SqlCondition> {
    let equals =
        |text, value: &Option<String>| value.as_ref().map(|value| -> SqlCondition { (text, vec![value.into()]) });
    let action = filter.action.as_ref().map(|action| -> SqlCondition {
        match action {
            ActionFilter::Is(name) => ("action = ?", vec![name.into()]),
            // In byte order, the slash follows the dot. Not by the index of actions, which would have to sort all of
            // them by time.
            ActionFilter::Prefix(start) => {
                let end = format!("{}/", start.trim_end_matches('.'));
                ("(action || '') >= ? AND (action || '') < ?", vec![start.into(), end.into()])
            }
        }
    });
    let target = match filter.targets.as_slice() {
        [] => None,
        [target] => Some(("target = ?", vec![target.into()])),
        targets => Some((target_condition, vec![to_json(&targets).into()])),
    };
    let conditions = [
        filter.actor.as_deref().map(actor_condition),
        action,
        target,
        equals("request_id = ?", &filter.request_id),
        filter.since.map(|at| -> SqlCondition { ("at >= ?", vec![at.0.into()]) }),
        filter.until.map(|at| -> SqlCondition { ("at < ?", vec![at.0.into()]) }),
    ];
    conditions.into_iter().flatten().collect()
}

fn entry_ref(row: &SqlRow, seq: &'static str, hash: &'static str) -> Result<EntryRef> {
    Ok(EntryRef { seq: row.get(seq)?, hash: row.get(hash)? })
}

fn from_row(row: &SqlRow) -> Result<StoredAuditEntry> {
    let row = NamedRow::new(row, "audit", "hash")?;
    Ok(StoredAuditEntry {
        chain: row.get("chain")?,
        seq: row.get("seq")?,
        at: row.timestamp("at")?,
        actor: row.get("actor")?,
        action: row.get("action")?,
        target: row.get("target")?,
        detail: row.get("detail")?,
        request_id: row.get("request_id")?,
        previous: row.get("previous")?,
        hash: row.get("hash")?,
    })
}
