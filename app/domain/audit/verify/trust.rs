//! Verified signatures, made with a key that is not in the database.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChainFault, ChainHead, EntryRef};
use crate::domain::time::Timestamp;

/// The last entries that retention removed, by chain.
pub type RetentionAnchors = BTreeMap<String, BTreeSet<EntryRef>>;

/// Verified signatures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifiedSignatures {
    /// The last signed entry of each chain; number 0 if only its beginning is signed.
    pub signed_up_to: BTreeMap<String, i64>,
    /// Ended chains, each with its last entry.
    pub closed_seq: BTreeMap<String, i64>,
    /// Chains with signatures of other keys.
    pub foreign_chains: BTreeSet<String>,
    /// The last entries that retention removed.
    pub anchors: RetentionAnchors,
    /// Entries before this time must be signed.
    pub must_be_signed_before: Timestamp,
}

impl VerifiedSignatures {
    /// Records that a chain is signed up to this entry.
    pub fn mark_signed(&mut self, chain: &str, seq: i64) {
        let until = self.signed_up_to.entry(chain.to_owned()).or_insert(seq);
        *until = (*until).max(seq);
    }

    /// Returns whether an entry must be signed but is not: it is old, or was added after its chain had ended.
    pub fn is_overdue(&self, chain: &str, seq: i64, at: Timestamp) -> bool {
        let has_ended = self.closed_seq.get(chain).is_some_and(|last| seq > *last);
        has_ended || at < self.must_be_signed_before && self.signed_up_to.get(chain).is_none_or(|until| seq > *until)
    }

    /// Returns the first fault of a chain that has a head or entries, given its first overdue entry and its last entry.
    pub fn check_chain(
        &self,
        chain: &str,
        head: Option<&ChainHead>,
        overdue: Option<(i64, i64)>,
    ) -> Option<ChainFault> {
        let removed = head.map(|head| &head.removed).filter(|removed| removed.seq > 0);
        let is_anchored = |anchor: &EntryRef| self.anchors.get(chain).is_some_and(|anchors| anchors.contains(anchor));
        if let Some(removed) = removed.filter(|anchor| !is_anchored(anchor)) {
            return Some(ChainFault::UnsignedAnchor(removed.seq));
        }
        // The rest of a chain whose beginning was removed by retention may have no signature of its own.
        if removed.is_none() && !self.signed_up_to.contains_key(chain) {
            let foreign = self.foreign_chains.contains(chain);
            return Some(if foreign { ChainFault::UnknownKey } else { ChainFault::UnsignedChain });
        }
        overdue.map(|(from, to)| ChainFault::UnsignedEntries { from, to })
    }
}
