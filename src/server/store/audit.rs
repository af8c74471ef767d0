//! The audit trail in the database: append only, chained.

use app::domain::audit::Entry;
use async_trait::async_trait;

use super::Result;

/// One entry as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEntry {
    /// Its number in the chain, from 1.
    pub seq: i64,
    /// When, in milliseconds.
    pub at: i64,
    /// Who.
    pub actor: String,
    /// What.
    pub action: String,
    /// To what.
    pub target: String,
    /// Particulars, as JSON.
    pub detail: String,
    /// The hash of the entry before it.
    pub previous: String,
    /// Its own hash.
    pub hash: String,
}

/// The trail.
#[async_trait]
pub trait Audit {
    /// Appends to this server's chain.
    async fn append_audit(&mut self, entry: &Entry) -> Result<()>;
    /// The entries about one target, oldest first.
    async fn audit_of(&mut self, target: &str) -> Result<Vec<StoredEntry>>;
}
