//! Whether a trail is as it was written, and if not, where and how it differs.
//!
//! A chain is judged by itself: numbers without a gap from the first that is kept, each entry with the hash of the one
//! before it, each hash that of its content, and the last entry the one that the head names. What somebody who can write
//! the whole database, heads included, has made anew is only found by what was signed with a key that they do not have
//! ([`trust`]).

#[cfg(test)]
mod tests;
pub mod trust;

use std::collections::BTreeMap;
use std::fmt;

use self::trust::Trust;
use super::Record;

/// The most faults that are told one by one.
const MOST_TOLD: usize = 1_000;

/// An entry by its number and hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mark {
    /// Its number.
    pub seq: i64,
    /// Its hash, in hex.
    pub hash: String,
}

/// What is kept of a chain beside its entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// Its newest entry.
    pub newest: Mark,
    /// The last one that was removed because of its age; number 0 if none was.
    pub removed: Mark,
}

/// What is wrong with a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An entry's hash is not that of its content.
    Edited(i64),
    /// An entry was written after another one than the one that stands before it.
    Replaced(i64),
    /// Entries between others are gone.
    Removed {
        /// The first.
        from: i64,
        /// The last.
        to: i64,
    },
    /// An entry from before the beginning, or a second one of its number.
    Inserted(i64),
    /// Entries at the end are gone.
    Truncated {
        /// The first.
        from: i64,
        /// The last.
        to: i64,
    },
    /// Entries behind the newest that the head knows.
    Added {
        /// The first.
        from: i64,
        /// The last.
        to: i64,
    },
    /// The head names another entry of this number.
    HeadDiffers(i64),
    /// There are entries, and no head.
    NoHead,
    /// There is a head, of this number, and no entry.
    Gone(i64),
    /// The entry is another one than the one that was signed.
    NotAsSigned(i64),
    /// An entry that was signed is gone.
    SignedGone(i64),
    /// The checkpoint in this entry was not made with the key.
    BadCheckpoint(i64),
    /// Nothing signed says that retention removed the entries up to this one.
    AnchorUnsigned(i64),
    /// The chain has no signature.
    UnsignedChain,
    /// The chain has signatures of other keys only.
    UnknownKey,
    /// Entries that had to be signed by now are not.
    UnsignedEntries {
        /// The first.
        from: i64,
        /// The last.
        to: i64,
    },
}

impl Fault {
    /// The word for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edited(_) => "edited",
            Self::Replaced(_) => "replaced",
            Self::Removed { .. } => "removed",
            Self::Inserted(_) => "inserted",
            Self::Truncated { .. } => "truncated",
            Self::Added { .. } => "added",
            Self::HeadDiffers(_) => "head_differs",
            Self::NoHead => "no_head",
            Self::Gone(_) => "gone",
            Self::NotAsSigned(_) => "not_as_signed",
            Self::SignedGone(_) => "signed_gone",
            Self::BadCheckpoint(_) => "bad_checkpoint",
            Self::AnchorUnsigned(_) => "anchor_unsigned",
            Self::UnsignedChain => "unsigned_chain",
            Self::UnknownKey => "unknown_key",
            Self::UnsignedEntries { .. } => "unsigned_entries",
        }
    }

    /// The entries that are meant, first and last; none where it is the whole chain.
    pub const fn entries(self) -> Option<(i64, i64)> {
        match self {
            Self::Removed { from, to }
            | Self::Truncated { from, to }
            | Self::Added { from, to }
            | Self::UnsignedEntries { from, to } => Some((from, to)),
            Self::Edited(seq)
            | Self::Replaced(seq)
            | Self::Inserted(seq)
            | Self::HeadDiffers(seq)
            | Self::NotAsSigned(seq)
            | Self::SignedGone(seq)
            | Self::BadCheckpoint(seq) => Some((seq, seq)),
            Self::Gone(seq) | Self::AnchorUnsigned(seq) => Some((1, seq)),
            Self::NoHead | Self::UnsignedChain | Self::UnknownKey => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edited(seq) => write!(f, "entry {seq} was changed: its hash is not that of its content"),
            Self::Replaced(seq) => {
                write!(f, "entry {seq} does not follow from the one before it: one of them was replaced")
            }
            Self::Removed { from, to } => write!(f, "entries {from} to {to} are missing"),
            Self::Inserted(seq) => write!(f, "entry {seq} was inserted: it stands before the chain's beginning"),
            Self::Truncated { from, to } => write!(f, "the end is missing: entries {from} to {to}"),
            Self::Added { from, to } => {
                write!(f, "entries {from} to {to} stand behind the head: they were added, or the head was set back")
            }
            Self::HeadDiffers(seq) => write!(f, "the head names another entry {seq} than the one that is there"),
            Self::NoHead => f.write_str("the head is missing"),
            Self::Gone(seq) => write!(f, "every entry is missing; the head knows of {seq}"),
            Self::NotAsSigned(seq) => write!(f, "entry {seq} is not the one that a checkpoint has signed"),
            Self::SignedGone(seq) => write!(f, "entry {seq} is missing, which a checkpoint has signed"),
            Self::BadCheckpoint(seq) => write!(f, "the checkpoint in entry {seq} was not signed with this key"),
            Self::AnchorUnsigned(seq) => {
                write!(
                    f,
                    "entries up to {seq} are missing, and nothing that was signed says that retention removed them"
                )
            }
            Self::UnsignedChain => {
                f.write_str("the chain was never signed: it was added, or its signatures were removed")
            }
            Self::UnknownKey => f.write_str("the chain was signed with other keys only, which are not here"),
            Self::UnsignedEntries { from, to } => {
                write!(f, "entries {from} to {to} have not been signed, although they had to be by now")
            }
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// How many chains there are.
    pub chains: u64,
    /// How many entries were read.
    pub entries: u64,
    /// What is wrong, each with its chain.
    pub faults: Vec<(String, Fault)>,
    /// How many more faults there are than are told.
    pub untold: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds a fault.
    pub fn add(&mut self, chain: &str, fault: Fault) {
        if self.faults.len() < MOST_TOLD {
            self.faults.push((chain.to_owned(), fault));
        } else {
            self.untold += 1;
        }
    }
}

/// The hashes of entries that were signed, by chain and number.
pub type Signed = BTreeMap<String, BTreeMap<i64, String>>;

/// Reads a trail, entry by entry, in the order of chains and numbers.
pub struct Verifier<H> {
    hash: H,
    heads: BTreeMap<String, Head>,
    signed: Signed,
    trust: Option<Trust>,
    reading: Option<Reading>,
    report: Report,
}

/// The chain that is being read.
struct Reading {
    chain: String,
    head: Option<Head>,
    signed: BTreeMap<i64, String>,
    /// The entry before; none at a beginning that nobody knows.
    last: Option<Last>,
    empty: bool,
    /// The first entry that had to be signed and is not.
    overdue: Option<i64>,
}

struct Last {
    /// As the row says.
    mark: Mark,
    /// What its hash should be.
    computed: String,
}

impl Last {
    /// Whether this is what somebody else knows as the entry of its number. A row whose hash was edited is told about by
    /// itself.
    fn is(&self, hash: &str) -> bool {
        self.mark.hash == hash || self.computed == hash
    }
}

impl<H: Fn(&[u8]) -> String> Verifier<H> {
    /// For chains with these heads; `hash` is SHA-256 in hex.
    pub fn new(hash: H, heads: BTreeMap<String, Head>, signed: Signed) -> Self {
        Self { hash, heads, signed, trust: None, reading: None, report: Report::default() }
    }

    /// The same, which also asks that each chain, and what was removed of it, is vouched for.
    #[must_use]
    pub fn trusting(self, trust: Trust) -> Self {
        Self { trust: Some(trust), ..self }
    }

    /// The next entry, with the hash that stands in it.
    pub fn read(&mut self, record: &Record<'_>, hash: &str) {
        if self.reading.as_ref().is_none_or(|reading| reading.chain != record.chain) {
            self.finish();
            self.begin(record.chain);
        }
        self.report.entries += 1;
        let computed = (self.hash)(&record.canonical());
        if let Some(reading) = &mut self.reading {
            reading.read(record, hash, computed, &mut self.report);
            if self.trust.as_ref().is_some_and(|trust| trust.is_overdue(record.chain, record.seq, record.at)) {
                reading.overdue.get_or_insert(record.seq);
            }
        }
    }

    /// Something that is wrong beside the chain's own rules.
    pub fn note(&mut self, chain: &str, fault: Fault) {
        self.report.add(chain, fault);
    }

    /// That was all.
    pub fn end(mut self) -> Report {
        self.finish();
        let without_entries: Vec<String> = self.heads.keys().chain(self.signed.keys()).cloned().collect();
        for chain in without_entries {
            if self.heads.contains_key(&chain) || self.signed.contains_key(&chain) {
                self.begin(&chain);
                self.finish();
            }
        }
        self.report
    }

    fn begin(&mut self, chain: &str) {
        let head = self.heads.remove(chain);
        let removed = head.as_ref().map(|head| head.removed.clone());
        let signed = self.signed.remove(chain).unwrap_or_default();
        self.reading = Some(Reading {
            chain: chain.to_owned(),
            // What was removed because of its age cannot be compared any more.
            signed: signed.into_iter().filter(|(seq, _)| removed.as_ref().is_none_or(|mark| *seq > mark.seq)).collect(),
            last: removed.map(|mark| Last { computed: mark.hash.clone(), mark }),
            head,
            empty: true,
            overdue: None,
        });
        self.report.chains += 1;
    }

    fn finish(&mut self) {
        let Some(reading) = self.reading.take() else { return };
        let is_there = reading.head.is_some() || !reading.empty;
        if let Some(trust) = self.trust.as_ref().filter(|_| is_there) {
            let overdue = reading.overdue.zip(reading.last.as_ref().map(|last| last.mark.seq));
            if let Some(fault) = trust.judge(&reading.chain, reading.head.as_ref(), overdue) {
                self.report.add(&reading.chain, fault);
            }
        }
        reading.finish(&mut self.report);
    }
}

impl Reading {
    fn read(&mut self, record: &Record<'_>, hash: &str, computed: String, report: &mut Report) {
        self.empty = false;
        let seq = record.seq;
        let edited = computed != hash;
        match &self.last {
            Some(last) if seq <= last.mark.seq => return report.add(&self.chain, Fault::Inserted(seq)),
            Some(last) if seq > last.mark.seq + 1 => {
                report.add(&self.chain, Fault::Removed { from: last.mark.seq + 1, to: seq - 1 });
            }
            Some(last) if !edited && !last.is(record.previous) => {
                report.add(&self.chain, Fault::Replaced(seq));
            }
            None if seq <= 0 => report.add(&self.chain, Fault::Inserted(seq)),
            Some(_) | None => {}
        }
        if edited {
            report.add(&self.chain, Fault::Edited(seq));
        }
        if self.signed.remove(&seq).is_some_and(|signed| signed != hash) {
            report.add(&self.chain, Fault::NotAsSigned(seq));
        }
        self.last = Some(Last { mark: Mark { seq, hash: hash.to_owned() }, computed });
    }

    fn finish(self, report: &mut Report) {
        let mut add = |fault| report.add(&self.chain, fault);
        let newest = self.head.map(|head| head.newest);
        match (&newest, &self.last) {
            (Some(head), Some(last)) if last.mark.seq < head.seq && self.empty => add(Fault::Gone(head.seq)),
            (Some(head), Some(last)) if last.mark.seq < head.seq => {
                add(Fault::Truncated { from: last.mark.seq + 1, to: head.seq });
            }
            (Some(head), Some(last)) if last.mark.seq > head.seq => {
                add(Fault::Added { from: head.seq + 1, to: last.mark.seq });
            }
            (Some(head), Some(last)) if !last.is(&head.hash) => add(Fault::HeadDiffers(head.seq)),
            (None, _) if !self.empty => add(Fault::NoHead),
            _ => {}
        }
        // Of what the head knows to be missing it was said already.
        let nothing = if self.empty { -1 } else { 0 };
        let known = newest.map_or(nothing, |head| head.seq);
        if let Some(seq) = self.signed.into_keys().filter(|seq| *seq > known).max() {
            add(Fault::SignedGone(seq));
        }
    }
}
