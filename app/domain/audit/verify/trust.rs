//! What was vouched for with a key that the database does not have.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fault, Head, Mark};
use crate::domain::time::Timestamp;

/// The ends of what retention has removed, by chain.
pub type Anchors = BTreeMap<String, BTreeSet<Mark>>;

/// Signatures that were checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trust {
    /// Up to which entry each chain is signed; number 0 if that is its beginning.
    pub signed: BTreeMap<String, i64>,
    /// Chains that have ended, each with its last entry.
    pub closed: BTreeMap<String, i64>,
    /// Chains that have signatures of other keys.
    pub foreign: BTreeSet<String>,
    /// What retention has removed.
    pub anchors: Anchors,
    /// What is older than this has to be signed.
    pub due: Timestamp,
}

impl Trust {
    /// Notes that a chain is signed up to this entry.
    pub fn sign(&mut self, chain: &str, seq: i64) {
        let until = self.signed.entry(chain.to_owned()).or_insert(seq);
        *until = (*until).max(seq);
    }

    /// Whether an entry has to be signed and is not: it is old, or came after its chain has ended.
    pub fn is_overdue(&self, chain: &str, seq: i64, at: Timestamp) -> bool {
        let has_ended = self.closed.get(chain).is_some_and(|last| seq > *last);
        has_ended || at < self.due && self.signed.get(chain).is_none_or(|until| seq > *until)
    }

    /// What is wrong with a chain that has a head, or entries, of which the first that is overdue and the last are known.
    pub fn judge(&self, chain: &str, head: Option<&Head>, overdue: Option<(i64, i64)>) -> Option<Fault> {
        let removed = head.map(|head| &head.removed).filter(|removed| removed.seq > 0);
        let is_anchored = |mark: &Mark| self.anchors.get(chain).is_some_and(|marks| marks.contains(mark));
        if let Some(removed) = removed.filter(|mark| !is_anchored(mark)) {
            return Some(Fault::AnchorUnsigned(removed.seq));
        }
        // What is left of a chain whose beginning retention has removed may have no signature of its own.
        if removed.is_none() && !self.signed.contains_key(chain) {
            let foreign = self.foreign.contains(chain);
            return Some(if foreign { Fault::UnknownKey } else { Fault::UnsignedChain });
        }
        overdue.map(|(from, to)| Fault::UnsignedEntries { from, to })
    }
}
