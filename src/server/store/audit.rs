//! The audit log in the database: append-only and chained; only retention removes entries.

use std::collections::BTreeMap;

use app::domain::audit::verify::{ChainHead, EntryRef};
use app::domain::audit::{AuditEvent, AuditRecord};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAuditEntry {
    pub chain: String,
    /// Sequence number in the chain, from 1.
    pub seq: i64,
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    pub target: String,
    /// Details, as JSON.
    pub detail: String,
    /// The id of the request.
    pub request_id: Option<String>,
    /// The hash of the previous entry.
    pub previous: String,
    /// Its own hash.
    pub hash: String,
}

impl StoredAuditEntry {
    pub fn record(&self) -> AuditRecord<'_> {
        AuditRecord {
            chain: &self.chain,
            seq: self.seq,
            previous: &self.previous,
            at: self.at,
            actor: &self.actor,
            action: &self.action,
            target: &self.target,
            detail: &self.detail,
            request_id: self.request_id.as_deref(),
        }
    }

    /// Returns its position in the order of all chains.
    pub fn cursor(&self) -> AuditCursor {
        AuditCursor { at: self.at, chain: self.chain.clone(), seq: self.seq }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCursor {
    pub at: Timestamp,
    pub chain: String,
    pub seq: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionFilter {
    Is(String),
    /// All actions with this prefix; its last character is a dot.
    Prefix(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// Only by this actor.
    pub actor: Option<String>,
    /// Only these actions.
    pub action: Option<ActionFilter>,
    /// Only about one of these; empty: all.
    pub targets: Vec<String>,
    /// Only of this request.
    pub request_id: Option<String>,
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditOrder {
    /// Newest first, after this entry.
    NewestFirst(Option<AuditCursor>),
    /// Oldest first, after this entry.
    OldestFirst(Option<AuditCursor>),
}

#[async_trait]
pub trait AuditQueries {
    /// Appends to this server's chain; replaces characters that the database cannot store before the entry is hashed.
    async fn append_audit(&mut self, entry: AuditEvent) -> Result<()>;
    /// Returns target and detail of entries that may be about workers of this name: the name is in the detail.
    async fn audit_by_worker_name(&mut self, name: &str) -> Result<Vec<(String, String)>>;
    /// The newest entry of this server's chain, committed or not; sequence number 0 if there is none.
    async fn newest_audit(&mut self) -> Result<EntryRef>;
    /// The entries about one target, oldest first.
    async fn audit_of_target(&mut self, target: &str) -> Result<Vec<StoredAuditEntry>>;
    /// A page of the entries of all chains, by time.
    async fn audit_page(
        &mut self,
        filter: &AuditFilter,
        from: &AuditOrder,
        limit: u32,
    ) -> Result<Vec<StoredAuditEntry>>;
    /// What is stored about each chain besides its entries.
    async fn audit_heads(&mut self) -> Result<BTreeMap<String, ChainHead>>;
    /// The time of the newest entry of all chains.
    async fn newest_audit_at(&mut self) -> Result<Option<Timestamp>>;
    /// Entries ordered by chain and sequence number, after this one.
    async fn audit_after(&mut self, chain: &str, seq: i64, limit: u32) -> Result<Vec<StoredAuditEntry>>;
    /// The times of a chain's oldest entries, with their sequence numbers and hashes.
    async fn oldest_audit(&mut self, chain: &str, limit: u32) -> Result<Vec<(Timestamp, EntryRef)>>;
    /// Removes the beginning of a chain, up to an entry that is stored as the last removed one.
    async fn remove_audit(&mut self, chain: &str, through: &EntryRef) -> Result<()>;
}
