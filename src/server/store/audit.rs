//! The audit trail in the database: append only, chained; only what has been kept for long enough is removed.

use std::collections::BTreeMap;

use app::domain::audit::verify::{Head, Mark};
use app::domain::audit::{Entry, Record};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// One entry as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEntry {
    /// Which chain.
    pub chain: String,
    /// Its number in the chain, from 1.
    pub seq: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What.
    pub action: String,
    /// To what.
    pub target: String,
    /// Particulars, as JSON.
    pub detail: String,
    /// The request it came with.
    pub request_id: Option<String>,
    /// The hash of the entry before it.
    pub previous: String,
    /// Its own hash.
    pub hash: String,
}

impl StoredEntry {
    /// What its hash is taken of.
    pub fn record(&self) -> Record<'_> {
        Record {
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

    /// Its place in the order in which all chains are read together.
    pub fn place(&self) -> Place {
        Place { at: self.at, chain: self.chain.clone(), seq: self.seq }
    }
}

/// Where an entry stands among those of all chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// When it was written.
    pub at: Timestamp,
    /// Its chain.
    pub chain: String,
    /// Its number.
    pub seq: i64,
}

/// Which actions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actions {
    /// This one.
    Is(String),
    /// All whose words begin so; the last character is a dot.
    Under(String),
}

/// Which entries to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// Only by this actor.
    pub actor: Option<String>,
    /// Only these actions.
    pub action: Option<Actions>,
    /// Only about this.
    pub target: Option<String>,
    /// Only of this request.
    pub request_id: Option<String>,
    /// Not earlier.
    pub since: Option<Timestamp>,
    /// Earlier than this.
    pub until: Option<Timestamp>,
}

/// From where on to list, and in which direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Newest first, after this entry.
    Back(Option<Place>),
    /// Oldest first, after this entry.
    Forth(Option<Place>),
}

/// The trail.
#[async_trait]
pub trait Audit {
    /// Appends to this server's chain; what is no text to the database is replaced before it is hashed.
    async fn append_audit(&mut self, entry: Entry) -> Result<()>;
    /// The newest entry of this server's chain, whether it is committed yet or not; number 0 if there is none.
    async fn newest_audit(&mut self) -> Result<Mark>;
    /// The entries about one target, oldest first.
    async fn audit_of(&mut self, target: &str) -> Result<Vec<StoredEntry>>;
    /// Some entries of all chains, in the order of time.
    async fn audit_page(&mut self, filter: &AuditFilter, from: &Reading, limit: u32) -> Result<Vec<StoredEntry>>;
    /// What is kept of each chain beside its entries.
    async fn audit_heads(&mut self) -> Result<BTreeMap<String, Head>>;
    /// When the newest entry of all chains was written.
    async fn newest_audit_at(&mut self) -> Result<Option<Timestamp>>;
    /// Some entries in the order of chains and numbers, from after this one.
    async fn audit_after(&mut self, chain: &str, seq: i64, limit: u32) -> Result<Vec<StoredEntry>>;
    /// When the oldest entries of a chain were written, with their numbers and hashes.
    async fn oldest_audit(&mut self, chain: &str, limit: u32) -> Result<Vec<(Timestamp, Mark)>>;
    /// Removes a chain's beginning, up to an entry that is known from then on as the last that was removed.
    async fn remove_audit(&mut self, chain: &str, through: &Mark) -> Result<()>;
}
