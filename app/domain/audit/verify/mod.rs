//! Verifies that an audit log is unchanged, and if not, where and how it differs.
//!
//! Each chain is verified by itself: sequence numbers without gaps from the first stored entry, each entry with the
//! hash of the previous one, each hash matching its content, and the last entry matching the head. Someone with write
//! access to the whole database, including heads, can rewrite a chain consistently; this is found only by signatures
//! with a key that they do not have ([`trust`]).

mod kind;
#[cfg(test)]
mod tests;
pub mod trust;

use std::collections::BTreeMap;
use std::fmt;

pub use self::kind::FaultKind;
use self::trust::VerifiedSignatures;
use super::AuditRecord;

/// Maximum number of listed faults.
const MAX_LISTED_FAULTS: usize = 1_000;

/// An entry by sequence number and hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct EntryRef {
    /// Its sequence number.
    pub seq: i64,
    /// Its hash, in hex.
    pub hash: String,
}

/// The stored state of a chain, besides its entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChainHead {
    /// The newest entry.
    pub newest: EntryRef,
    /// The last entry that retention removed; number 0 if none was removed.
    pub removed: EntryRef,
}

/// A fault of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainFault {
    /// The hash of an entry does not match its content.
    Edited(i64),
    /// An entry does not match the hash of the previous entry.
    Replaced(i64),
    /// Entries in the middle are missing.
    Removed {
        /// The first one.
        from: i64,
        /// The last one.
        to: i64,
    },
    /// An entry before the beginning, or a second one with its number.
    Inserted(i64),
    /// Entries at the end are missing.
    Truncated {
        /// The first one.
        from: i64,
        /// The last one.
        to: i64,
    },
    /// There are entries after the newest one of the head.
    Added {
        /// The first one.
        from: i64,
        /// The last one.
        to: i64,
    },
    /// The head does not match the entry with this number.
    HeadMismatch(i64),
    /// There are entries but no head.
    MissingHead,
    /// There is a head with this number but no entry.
    AllEntriesMissing(i64),
    /// The entry does not match the signed one.
    SignedHashMismatch(i64),
    /// A signed entry is missing.
    SignedEntryMissing(i64),
    /// The checkpoint in this entry was not signed with the key.
    BadCheckpoint(i64),
    /// No signature confirms that retention removed the entries up to this one.
    UnsignedAnchor(i64),
    /// The chain has no signature.
    UnsignedChain,
    /// The chain has only signatures of other keys.
    UnknownKey,
    /// Entries are not signed, although they should be by now.
    UnsignedEntries {
        /// The first one.
        from: i64,
        /// The last one.
        to: i64,
    },
}

impl ChainFault {
    /// Returns the fault's code.
    pub const fn as_str(self) -> &'static str {
        self.kind().as_str()
    }

    /// Returns the fault's kind.
    pub const fn kind(self) -> FaultKind {
        match self {
            Self::Edited(_) => FaultKind::Edited,
            Self::Replaced(_) => FaultKind::Replaced,
            Self::Removed { .. } => FaultKind::Removed,
            Self::Inserted(_) => FaultKind::Inserted,
            Self::Truncated { .. } => FaultKind::Truncated,
            Self::Added { .. } => FaultKind::Added,
            Self::HeadMismatch(_) => FaultKind::HeadMismatch,
            Self::MissingHead => FaultKind::MissingHead,
            Self::AllEntriesMissing(_) => FaultKind::AllEntriesMissing,
            Self::SignedHashMismatch(_) => FaultKind::SignedHashMismatch,
            Self::SignedEntryMissing(_) => FaultKind::SignedEntryMissing,
            Self::BadCheckpoint(_) => FaultKind::BadCheckpoint,
            Self::UnsignedAnchor(_) => FaultKind::UnsignedAnchor,
            Self::UnsignedChain => FaultKind::UnsignedChain,
            Self::UnknownKey => FaultKind::UnknownKey,
            Self::UnsignedEntries { .. } => FaultKind::UnsignedEntries,
        }
    }

    /// Returns the first and the last affected entry; none if the whole chain is affected.
    pub const fn entries(self) -> Option<(i64, i64)> {
        match self {
            Self::Removed { from, to }
            | Self::Truncated { from, to }
            | Self::Added { from, to }
            | Self::UnsignedEntries { from, to } => Some((from, to)),
            Self::Edited(seq)
            | Self::Replaced(seq)
            | Self::Inserted(seq)
            | Self::HeadMismatch(seq)
            | Self::SignedHashMismatch(seq)
            | Self::SignedEntryMissing(seq)
            | Self::BadCheckpoint(seq) => Some((seq, seq)),
            Self::AllEntriesMissing(seq) | Self::UnsignedAnchor(seq) => Some((1, seq)),
            Self::MissingHead | Self::UnsignedChain | Self::UnknownKey => None,
        }
    }
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edited(seq) => write!(f, "entry {seq} was changed: its hash does not match its content"),
            Self::Replaced(seq) => {
                write!(f, "entry {seq} does not match the hash of the previous entry: one of them was replaced")
            }
            Self::Removed { from, to } => write!(f, "entries {from} to {to} are missing"),
            Self::Inserted(seq) => write!(f, "entry {seq} was inserted before the beginning of the chain"),
            Self::Truncated { from, to } => write!(f, "the end is missing: entries {from} to {to}"),
            Self::Added { from, to } => {
                write!(f, "entries {from} to {to} are after the head: they were added, or the head was reset")
            }
            Self::HeadMismatch(seq) => write!(f, "the head does not match entry {seq}"),
            Self::MissingHead => f.write_str("the head is missing"),
            Self::AllEntriesMissing(seq) => write!(f, "every entry is missing; the head refers to entry {seq}"),
            Self::SignedHashMismatch(seq) => write!(f, "entry {seq} does not match its signed checkpoint"),
            Self::SignedEntryMissing(seq) => write!(f, "entry {seq} is missing, but a checkpoint has signed it"),
            Self::BadCheckpoint(seq) => write!(f, "the checkpoint in entry {seq} was not signed with this key"),
            Self::UnsignedAnchor(seq) => {
                write!(f, "entries up to {seq} are missing, and no signed entry confirms that retention removed them")
            }
            Self::UnsignedChain => {
                f.write_str("the chain was never signed: it was added, or its signatures were removed")
            }
            Self::UnknownKey => f.write_str("the chain was signed only with other keys, which are not available"),
            Self::UnsignedEntries { from, to } => {
                write!(f, "entries {from} to {to} are not signed, although they should be by now")
            }
        }
    }
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Number of chains.
    pub chains: u64,
    /// Number of entries that were read.
    pub entries: u64,
    /// The faults, each with its chain.
    pub faults: Vec<(String, ChainFault)>,
    /// Number of further faults that are not listed.
    pub more_faults: u64,
}

impl VerifyReport {
    /// Returns whether there are no faults.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds a fault.
    pub fn add(&mut self, chain: &str, fault: ChainFault) {
        if self.faults.len() < MAX_LISTED_FAULTS {
            self.faults.push((chain.to_owned(), fault));
        } else {
            self.more_faults += 1;
        }
    }
}

/// Hashes of signed entries, by chain and sequence number.
pub type SignedHashes = BTreeMap<String, BTreeMap<i64, String>>;

/// Verifies an audit log, entry by entry, in the order of chains and sequence numbers.
pub struct Verifier<H> {
    hash: H,
    heads: BTreeMap<String, ChainHead>,
    signed: SignedHashes,
    trust: Option<VerifiedSignatures>,
    chain: Option<ChainReader>,
    report: VerifyReport,
}

/// The chain that is being read.
struct ChainReader {
    chain: String,
    head: Option<ChainHead>,
    signed: BTreeMap<i64, String>,
    /// The previous entry; none at an unknown beginning.
    last: Option<LastEntry>,
    is_empty: bool,
    /// The first entry that should be signed but is not.
    unsigned_from: Option<i64>,
}

struct LastEntry {
    /// The entry as stored.
    stored: EntryRef,
    /// The hash computed from its content.
    computed: String,
}

impl LastEntry {
    /// Returns whether this hash is the one of the entry. A row with an edited hash is reported separately.
    fn matches_hash(&self, hash: &str) -> bool {
        self.stored.hash == hash || self.computed == hash
    }
}

impl<H: Fn(&[u8]) -> String> Verifier<H> {
    /// Creates a verifier for chains with these heads; `hash` returns SHA-256 in hex.
    pub fn new(hash: H, heads: BTreeMap<String, ChainHead>, signed: SignedHashes) -> Self {
        Self { hash, heads, signed, trust: None, chain: None, report: VerifyReport::default() }
    }

    /// Also requires signatures for each chain, and for what retention removed of it.
    #[must_use]
    pub fn with_signatures(self, trust: VerifiedSignatures) -> Self {
        Self { trust: Some(trust), ..self }
    }

    /// Verifies the next entry, given its stored hash.
    pub fn verify_record(&mut self, record: &AuditRecord<'_>, hash: &str) {
        if self.chain.as_ref().is_none_or(|reader| reader.chain != record.chain) {
            self.finish_chain();
            self.begin_chain(record.chain);
        }
        self.report.entries += 1;
        let computed = (self.hash)(&record.canonical_bytes());
        if let Some(reader) = &mut self.chain {
            reader.verify_record(record, hash, computed, &mut self.report);
            if self.trust.as_ref().is_some_and(|trust| trust.is_overdue(record.chain, record.seq, record.at)) {
                reader.unsigned_from.get_or_insert(record.seq);
            }
        }
    }

    /// Adds a fault that was found outside of the chain's own rules.
    pub fn add_fault(&mut self, chain: &str, fault: ChainFault) {
        self.report.add(chain, fault);
    }

    /// Finishes the verification.
    pub fn into_report(mut self) -> VerifyReport {
        self.finish_chain();
        let without_entries: Vec<String> = self.heads.keys().chain(self.signed.keys()).cloned().collect();
        for chain in without_entries {
            if self.heads.contains_key(&chain) || self.signed.contains_key(&chain) {
                self.begin_chain(&chain);
                self.finish_chain();
            }
        }
        self.report
    }

    fn begin_chain(&mut self, chain: &str) {
        let head = self.heads.remove(chain);
        let removed = head.as_ref().map(|head| head.removed.clone());
        let signed = self.signed.remove(chain).unwrap_or_default();
        self.chain = Some(ChainReader {
            chain: chain.to_owned(),
            // Entries removed by retention can no longer be compared.
            signed: signed
                .into_iter()
                .filter(|(seq, _)| removed.as_ref().is_none_or(|removed| *seq > removed.seq))
                .collect(),
            last: removed.map(|stored| LastEntry { computed: stored.hash.clone(), stored }),
            head,
            is_empty: true,
            unsigned_from: None,
        });
        self.report.chains += 1;
    }

    fn finish_chain(&mut self) {
        let Some(reader) = self.chain.take() else { return };
        let exists = reader.head.is_some() || !reader.is_empty;
        if let Some(trust) = self.trust.as_ref().filter(|_| exists) {
            let overdue = reader.unsigned_from.zip(reader.last.as_ref().map(|last| last.stored.seq));
            if let Some(fault) = trust.check_chain(&reader.chain, reader.head.as_ref(), overdue) {
                self.report.add(&reader.chain, fault);
            }
        }
        reader.finish(&mut self.report);
    }
}

impl ChainReader {
    fn verify_record(&mut self, record: &AuditRecord<'_>, hash: &str, computed: String, report: &mut VerifyReport) {
        self.is_empty = false;
        let seq = record.seq;
        let edited = computed != hash;
        match &self.last {
            Some(last) if seq <= last.stored.seq => return report.add(&self.chain, ChainFault::Inserted(seq)),
            Some(last) if seq > last.stored.seq + 1 => {
                report.add(&self.chain, ChainFault::Removed { from: last.stored.seq + 1, to: seq - 1 });
            }
            Some(last) if !edited && !last.matches_hash(record.previous) => {
                report.add(&self.chain, ChainFault::Replaced(seq));
            }
            None if seq <= 0 => report.add(&self.chain, ChainFault::Inserted(seq)),
            Some(_) | None => {}
        }
        if edited {
            report.add(&self.chain, ChainFault::Edited(seq));
        }
        if self.signed.remove(&seq).is_some_and(|signed| signed != hash) {
            report.add(&self.chain, ChainFault::SignedHashMismatch(seq));
        }
        self.last = Some(LastEntry { stored: EntryRef { seq, hash: hash.to_owned() }, computed });
    }

    fn finish(self, report: &mut VerifyReport) {
        let mut add = |fault| report.add(&self.chain, fault);
        let newest = self.head.map(|head| head.newest);
        match (&newest, &self.last) {
            (Some(head), Some(last)) if last.stored.seq < head.seq && self.is_empty => {
                add(ChainFault::AllEntriesMissing(head.seq));
            }
            (Some(head), Some(last)) if last.stored.seq < head.seq => {
                add(ChainFault::Truncated { from: last.stored.seq + 1, to: head.seq });
            }
            (Some(head), Some(last)) if last.stored.seq > head.seq => {
                add(ChainFault::Added { from: head.seq + 1, to: last.stored.seq });
            }
            (Some(head), Some(last)) if !last.matches_hash(&head.hash) => add(ChainFault::HeadMismatch(head.seq)),
            (None, _) if !self.is_empty => add(ChainFault::MissingHead),
            _ => {}
        }
        // Entries that the head shows as missing are already reported.
        let before_first = if self.is_empty { -1 } else { 0 };
        let reported_up_to = newest.map_or(before_first, |head| head.seq);
        if let Some(seq) = self.signed.into_keys().filter(|seq| *seq > reported_up_to).max() {
            add(ChainFault::SignedEntryMissing(seq));
        }
    }
}
