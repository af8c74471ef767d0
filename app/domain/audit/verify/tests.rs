//! Tests that every single change of a chain is found.

mod trust;

use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;

use super::super::super::time::Timestamp;
use super::super::{AuditAction, AuditEvent, AuditRecord};
use super::*;

/// Short, but reliable enough for tests.
fn hash(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// A stored entry.
#[derive(Debug, Clone, PartialEq)]
struct AuditLogRow {
    chain: String,
    seq: i64,
    entry: AuditEvent,
    previous: String,
    hash: String,
}

impl AuditLogRow {
    fn record(&self) -> AuditRecord<'_> {
        self.entry.to_record(&self.chain, self.seq, &self.previous)
    }

    fn rehashed(mut self) -> Self {
        self.hash = hash(&self.record().canonical_bytes());
        self
    }

    fn entry_ref(&self) -> EntryRef {
        EntryRef { seq: self.seq, hash: self.hash.clone() }
    }
}

/// Description, change, and expected faults.
type Case = (&'static str, fn(&mut AuditLog), &'static [ChainFault]);

/// The content of a database.
#[derive(Debug, Clone, PartialEq)]
struct AuditLog {
    rows: Vec<AuditLogRow>,
    heads: BTreeMap<String, ChainHead>,
    signed: SignedHashes,
}

fn entry(n: i64) -> AuditEvent {
    AuditEvent {
        at: Timestamp(n / 2),
        actor: "admin".to_owned(),
        action: AuditAction::WorkerCreated,
        target: format!("w_{}", n / 3),
        detail: "{}".to_owned(),
        request_id: (n % 2 == 0).then(|| n.to_string()),
    }
}

impl AuditLog {
    /// Creates a chain of this length, of which the oldest entries were removed by retention.
    fn new(chain: &str, number: i64, removed: i64) -> Self {
        let mut rows: Vec<AuditLogRow> = Vec::new();
        for seq in 1..=number {
            let previous = rows.last().map(|row| row.hash.clone()).unwrap_or_default();
            let row = AuditLogRow { chain: chain.to_owned(), seq, entry: entry(seq), previous, hash: String::new() };
            rows.push(row.rehashed());
        }
        let entry_ref = |seq: i64| usize::try_from(seq - 1).map(|at| rows[at].entry_ref()).unwrap_or_default();
        let heads = [(chain.to_owned(), ChainHead { newest: entry_ref(number), removed: entry_ref(removed) })].into();
        let rows = rows.into_iter().filter(|row| row.seq > removed).collect();
        Self { rows, heads, signed: SignedHashes::new() }
    }

    fn head(&mut self) -> &mut ChainHead {
        self.heads.values_mut().next().expect("a head")
    }

    fn report(&self) -> VerifyReport {
        let mut rows = self.rows.clone();
        rows.sort_by(|a, b| (&a.chain, a.seq).cmp(&(&b.chain, b.seq)));
        let mut verifier = Verifier::new(hash, self.heads.clone(), self.signed.clone());
        for row in &rows {
            verifier.verify_record(&row.record(), &row.hash);
        }
        verifier.into_report()
    }

    fn faults(&self) -> Vec<ChainFault> {
        self.report().faults.into_iter().map(|(_, fault)| fault).collect()
    }
}

#[test]
fn each_fault_names_its_entries() {
    let rehashed = |audit_log: &mut AuditLog, at: usize| audit_log.rows[at] = audit_log.rows[at].clone().rehashed();
    let cases: [Case; 14] = [
        ("nothing", |_| {}, &[]),
        ("a field is edited", |t| t.rows[3].entry.actor = "eve".to_owned(), &[ChainFault::Edited(4)]),
        ("a hash is edited", |t| t.rows[3].hash = "0".to_owned(), &[ChainFault::Edited(4)]),
        ("a link is edited", |t| t.rows[3].previous = "0".to_owned(), &[ChainFault::Edited(4)]),
        ("one is removed", |t| drop(t.rows.remove(4)), &[ChainFault::Removed { from: 5, to: 5 }]),
        ("the first two are removed", |t| drop(t.rows.drain(..2)), &[ChainFault::Removed { from: 1, to: 2 }]),
        ("the last two are removed", |t| t.rows.truncate(6), &[ChainFault::Truncated { from: 7, to: 8 }]),
        ("all are removed", |t| t.rows.clear(), &[ChainFault::AllEntriesMissing(8)]),
        ("the head is removed", |t| t.heads.clear(), &[ChainFault::MissingHead]),
        ("the head does not match", |t| t.head().newest.hash = "0".to_owned(), &[ChainFault::HeadMismatch(8)]),
        ("the head is set back", |t| t.head().newest = t.rows[5].entry_ref(), &[ChainFault::Added { from: 7, to: 8 }]),
        (
            "the beginning is moved forward",
            |t| t.head().removed = t.rows[1].entry_ref(),
            &[ChainFault::Inserted(1), ChainFault::Inserted(2)],
        ),
        ("an entry was signed with another hash", |t| sign(t, 3, "0"), &[ChainFault::SignedHashMismatch(3)]),
        ("a later one was signed", |t| sign(t, 9, "0"), &[ChainFault::SignedEntryMissing(9)]),
    ];
    for (name, tamper, expected) in cases {
        let mut audit_log = AuditLog::new("c", 8, 0);
        tamper(&mut audit_log);
        assert_eq!(audit_log.faults(), expected, "{name}");
    }
    let mut audit_log = AuditLog::new("c", 8, 0);
    audit_log.rows[3].entry.actor = "eve".to_owned();
    rehashed(&mut audit_log, 3);
    assert_eq!(audit_log.faults(), [ChainFault::Replaced(5)], "one entry is rewritten");
    audit_log = AuditLog::new("c", 8, 0);
    audit_log.rows[7].entry.actor = "eve".to_owned();
    rehashed(&mut audit_log, 7);
    assert_eq!(audit_log.faults(), [ChainFault::HeadMismatch(8)], "the last entry is rewritten");
}

fn sign(audit_log: &mut AuditLog, seq: i64, hash: &str) {
    audit_log.signed = [("c".to_owned(), [(seq, hash.to_owned())].into())].into();
}

#[test]
fn rewritten_chain_is_found_by_signatures() {
    let original = AuditLog::new("c", 8, 0);
    let mut rewritten = AuditLog::new("c", 5, 0);
    assert!(rewritten.report().is_clean(), "the database alone does not reveal it");
    sign(&mut rewritten, 8, &original.rows[7].hash);
    assert_eq!(rewritten.faults(), [ChainFault::SignedEntryMissing(8)]);
    let mut empty = AuditLog { rows: vec![], heads: BTreeMap::new(), signed: rewritten.signed };
    assert_eq!(empty.faults(), [ChainFault::SignedEntryMissing(8)]);
    assert_eq!(empty.report().chains, 1);
    empty = AuditLog::new("c", 9, 9);
    sign(&mut empty, 8, "0");
    assert!(empty.report().is_clean(), "entries removed by retention are not expected");
}

#[test]
fn signed_entries_removed_by_retention_are_not_missing() {
    let mut audit_log = AuditLog::new("c", 6, 3);
    sign(&mut audit_log, 3, "as it was");
    assert_eq!(audit_log.faults(), []);
    sign(&mut audit_log, 4, "as it was");
    assert_eq!(audit_log.faults(), [ChainFault::SignedHashMismatch(4)]);
}

#[test]
fn without_a_head_entries_before_the_first_are_faults() {
    let mut audit_log = AuditLog::new("c", 2, 0);
    audit_log.rows[0].seq = 0;
    audit_log.rows[0] = audit_log.rows[0].clone().rehashed();
    audit_log.heads.clear();
    assert!(audit_log.faults().contains(&ChainFault::Inserted(0)), "{:?}", audit_log.faults());
}

#[test]
fn other_faults_can_be_added() {
    let mut verifier = Verifier::new(hash, BTreeMap::new(), SignedHashes::new());
    verifier.add_fault("c", ChainFault::BadCheckpoint(7));
    assert_eq!(verifier.into_report().faults, [("c".to_owned(), ChainFault::BadCheckpoint(7))]);
}

#[test]
fn chains_are_verified_separately_and_counted() {
    let mut audit_log = AuditLog::new("a", 3, 0);
    let other = AuditLog::new("b", 4, 2);
    audit_log.rows.extend(other.rows);
    audit_log.heads.extend(other.heads);
    audit_log.heads.insert("quiet".to_owned(), ChainHead::default());
    let report = audit_log.report();
    assert_eq!((report.chains, report.entries, report.is_clean()), (3, 5, true));
    audit_log.rows.retain(|row| row.chain == "b");
    assert_eq!(audit_log.report().faults, [("a".to_owned(), ChainFault::AllEntriesMissing(3))]);
}

#[test]
fn long_fault_list_is_limited_and_counted() {
    let mut audit_log = AuditLog::new("c", 1_005, 0);
    for row in &mut audit_log.rows {
        row.entry.actor = "eve".to_owned();
    }
    let report = audit_log.report();
    assert_eq!((report.faults.len(), report.more_faults), (1_000, 5));
}

#[test]
fn every_fault_has_a_code_and_a_description() {
    let faults = [
        ChainFault::Edited(1),
        ChainFault::Replaced(1),
        ChainFault::Removed { from: 1, to: 2 },
        ChainFault::Inserted(1),
        ChainFault::Truncated { from: 1, to: 2 },
        ChainFault::Added { from: 1, to: 2 },
        ChainFault::HeadMismatch(1),
        ChainFault::MissingHead,
        ChainFault::AllEntriesMissing(1),
        ChainFault::SignedHashMismatch(1),
        ChainFault::SignedEntryMissing(1),
        ChainFault::BadCheckpoint(1),
        ChainFault::UnsignedAnchor(1),
        ChainFault::UnsignedChain,
        ChainFault::UnknownKey,
        ChainFault::UnsignedEntries { from: 1, to: 2 },
    ];
    let words: std::collections::BTreeSet<_> = faults.iter().map(|fault| fault.as_str()).collect();
    let sentences: std::collections::BTreeSet<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!((words.len(), sentences.len()), (faults.len(), faults.len()));
    let chain_faults = [ChainFault::MissingHead, ChainFault::UnsignedChain, ChainFault::UnknownKey];
    assert!(faults.iter().all(|fault| fault.entries().is_none() == chain_faults.contains(fault)));
}

/// One change of an audit log; `field` is the number of a field.
#[derive(Debug, Clone, Copy)]
enum Tampering {
    Edit { field: u8, rehashed: bool },
    Remove,
    Truncate,
    Append { linked: bool },
    Insert,
    Prepend,
    Swap,
    SwapNumbers,
    Head { field: u8 },
    NoHead,
    Empty,
}

fn tampering() -> impl Strategy<Value = Tampering> {
    prop_oneof![
        (0_u8..9, any::<bool>()).prop_map(|(field, rehashed)| Tampering::Edit { field, rehashed }),
        any::<bool>().prop_map(|linked| Tampering::Append { linked }),
        (0_u8..4).prop_map(|field| Tampering::Head { field }),
        Just(Tampering::Remove),
        Just(Tampering::Truncate),
        Just(Tampering::Insert),
        Just(Tampering::Prepend),
        Just(Tampering::Swap),
        Just(Tampering::SwapNumbers),
        Just(Tampering::NoHead),
        Just(Tampering::Empty),
    ]
}

/// Applies the change; `index` and `other_index` are indexes of rows.
fn tamper(audit_log: &mut AuditLog, tampering_kind: Tampering, index: usize, other_index: usize) {
    match tampering_kind {
        Tampering::Edit { field, rehashed } => {
            let row = &mut audit_log.rows[index];
            match field {
                0 => row.entry.at = Timestamp(row.entry.at.0 + 1),
                1 => row.entry.actor.push('x'),
                2 => row.entry.action = AuditAction::WorkerDeleted,
                3 => row.entry.target.push('x'),
                4 => row.entry.detail.push('x'),
                5 => row.entry.request_id = row.entry.request_id.take().map_or(Some(String::new()), |_| None),
                6 => row.previous.push('x'),
                7 => row.hash.push('x'),
                _ => row.chain.push('x'),
            }
            // A hash that is edited and then recomputed is unchanged.
            if rehashed && field != 7 {
                *row = row.clone().rehashed();
            }
        }
        Tampering::Remove => drop(audit_log.rows.remove(index)),
        Tampering::Truncate => audit_log.rows.truncate(index),
        Tampering::Append { linked } => {
            let last = audit_log.rows[audit_log.rows.len() - 1].clone();
            let previous = if linked { last.hash.clone() } else { last.previous.clone() };
            audit_log.rows.push(AuditLogRow { seq: last.seq + 1, previous, ..last }.rehashed());
        }
        Tampering::Insert => {
            let copy = audit_log.rows[index].clone();
            audit_log.rows.iter_mut().filter(|row| row.seq >= copy.seq).for_each(|row| row.seq += 1);
            audit_log.rows.push(copy);
        }
        Tampering::Prepend => {
            let first = audit_log.rows[0].clone();
            audit_log.rows.push(AuditLogRow { seq: first.seq - 1, previous: String::new(), ..first }.rehashed());
        }
        Tampering::Swap => {
            let (a, b) = (audit_log.rows[index].clone(), audit_log.rows[other_index].clone());
            audit_log.rows[index] = AuditLogRow { seq: a.seq, ..b.clone() };
            audit_log.rows[other_index] = AuditLogRow { seq: b.seq, ..a };
        }
        Tampering::SwapNumbers => {
            let (a, b) = (audit_log.rows[index].seq, audit_log.rows[other_index].seq);
            (audit_log.rows[index].seq, audit_log.rows[other_index].seq) = (b, a);
        }
        Tampering::Head { field } => {
            let head = audit_log.head();
            match field {
                0 => head.newest.seq += 1,
                1 => head.newest.hash.push('x'),
                2 => head.removed.seq += 1,
                _ => head.removed.hash.push('x'),
            }
        }
        Tampering::NoHead => audit_log.heads.clear(),
        Tampering::Empty => audit_log.rows.clear(),
    }
}

proptest! {
    #[test]
    fn any_single_change_is_found(
        number in 1_i64..12, removed in 0_i64..12, kind in tampering(), index in 0_usize..12,
        other_index in 0_usize..12,
    ) {
        let original = AuditLog::new("c", number, removed.min(number - 1));
        prop_assert!(original.report().is_clean());
        let rows = original.rows.len();
        let mut changed = original.clone();
        tamper(&mut changed, kind, index % rows, other_index % rows);
        prop_assert_eq!(changed.report().is_clean(), changed == original, "{:?}", kind);
    }
}
