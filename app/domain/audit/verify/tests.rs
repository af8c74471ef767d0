//! Any single thing that is done to a chain is found.

mod trust;

use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;

use super::super::super::time::Timestamp;
use super::super::{Action, Entry, Record};
use super::*;

/// Short, but as good as SHA-256 against accidents.
fn hash(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// An entry as a row.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    chain: String,
    seq: i64,
    entry: Entry,
    previous: String,
    hash: String,
}

impl Row {
    fn record(&self) -> Record<'_> {
        self.entry.placed(&self.chain, self.seq, &self.previous)
    }

    fn rehashed(mut self) -> Self {
        self.hash = hash(&self.record().canonical());
        self
    }

    fn mark(&self) -> Mark {
        Mark { seq: self.seq, hash: self.hash.clone() }
    }
}

/// What is done, how, and what is found.
type Case = (&'static str, fn(&mut Trail), &'static [Fault]);

/// What a database holds.
#[derive(Debug, Clone, PartialEq)]
struct Trail {
    rows: Vec<Row>,
    heads: BTreeMap<String, Head>,
    signed: Signed,
}

fn entry(n: i64) -> Entry {
    Entry {
        at: Timestamp(n / 2),
        actor: "admin".to_owned(),
        action: Action::WorkerCreated,
        target: format!("w_{}", n / 3),
        detail: "{}".to_owned(),
        request_id: (n % 2 == 0).then(|| n.to_string()),
    }
}

impl Trail {
    /// A chain of so many entries, of which the oldest were removed because of their age.
    fn of(chain: &str, number: i64, removed: i64) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        for seq in 1..=number {
            let previous = rows.last().map(|row| row.hash.clone()).unwrap_or_default();
            let row = Row { chain: chain.to_owned(), seq, entry: entry(seq), previous, hash: String::new() };
            rows.push(row.rehashed());
        }
        let mark = |seq: i64| usize::try_from(seq - 1).map(|at| rows[at].mark()).unwrap_or_default();
        let heads = [(chain.to_owned(), Head { newest: mark(number), removed: mark(removed) })].into();
        let rows = rows.into_iter().filter(|row| row.seq > removed).collect();
        Self { rows, heads, signed: Signed::new() }
    }

    fn head(&mut self) -> &mut Head {
        self.heads.values_mut().next().expect("a head")
    }

    fn report(&self) -> Report {
        let mut rows = self.rows.clone();
        rows.sort_by(|a, b| (&a.chain, a.seq).cmp(&(&b.chain, b.seq)));
        let mut verifier = Verifier::new(hash, self.heads.clone(), self.signed.clone());
        for row in &rows {
            verifier.read(&row.record(), &row.hash);
        }
        verifier.end()
    }

    fn faults(&self) -> Vec<Fault> {
        self.report().faults.into_iter().map(|(_, fault)| fault).collect()
    }
}

#[test]
fn each_fault_is_named_with_its_place() {
    let rehashed = |trail: &mut Trail, at: usize| trail.rows[at] = trail.rows[at].clone().rehashed();
    let cases: [Case; 14] = [
        ("nothing", |_| {}, &[]),
        ("a field is edited", |t| t.rows[3].entry.actor = "eve".to_owned(), &[Fault::Edited(4)]),
        ("a hash is edited", |t| t.rows[3].hash = "0".to_owned(), &[Fault::Edited(4)]),
        ("a link is edited", |t| t.rows[3].previous = "0".to_owned(), &[Fault::Edited(4)]),
        ("one is removed", |t| drop(t.rows.remove(4)), &[Fault::Removed { from: 5, to: 5 }]),
        ("the first two are removed", |t| drop(t.rows.drain(..2)), &[Fault::Removed { from: 1, to: 2 }]),
        ("the last two are removed", |t| t.rows.truncate(6), &[Fault::Truncated { from: 7, to: 8 }]),
        ("all are removed", |t| t.rows.clear(), &[Fault::Gone(8)]),
        ("the head is removed", |t| t.heads.clear(), &[Fault::NoHead]),
        ("the head names another", |t| t.head().newest.hash = "0".to_owned(), &[Fault::HeadDiffers(8)]),
        ("the head is set back", |t| t.head().newest = t.rows[5].mark(), &[Fault::Added { from: 7, to: 8 }]),
        (
            "the beginning is moved on",
            |t| t.head().removed = t.rows[1].mark(),
            &[Fault::Inserted(1), Fault::Inserted(2)],
        ),
        ("one was signed otherwise", |t| sign(t, 3, "0"), &[Fault::NotAsSigned(3)]),
        ("a later one was signed", |t| sign(t, 9, "0"), &[Fault::SignedGone(9)]),
    ];
    for (what, tamper, expected) in cases {
        let mut trail = Trail::of("c", 8, 0);
        tamper(&mut trail);
        assert_eq!(trail.faults(), expected, "{what}");
    }
    let mut trail = Trail::of("c", 8, 0);
    trail.rows[3].entry.actor = "eve".to_owned();
    rehashed(&mut trail, 3);
    assert_eq!(trail.faults(), [Fault::Replaced(5)], "one is written anew");
    trail = Trail::of("c", 8, 0);
    trail.rows[7].entry.actor = "eve".to_owned();
    rehashed(&mut trail, 7);
    assert_eq!(trail.faults(), [Fault::HeadDiffers(8)], "the last is written anew");
}

fn sign(trail: &mut Trail, seq: i64, hash: &str) {
    trail.signed = [("c".to_owned(), [(seq, hash.to_owned())].into())].into();
}

#[test]
fn what_was_written_anew_with_its_head_is_found_by_what_was_signed() {
    let original = Trail::of("c", 8, 0);
    let mut anew = Trail::of("c", 5, 0);
    assert!(anew.report().is_clean(), "nothing in the database tells");
    sign(&mut anew, 8, &original.rows[7].hash);
    assert_eq!(anew.faults(), [Fault::SignedGone(8)]);
    let mut none = Trail { rows: vec![], heads: BTreeMap::new(), signed: anew.signed };
    assert_eq!(none.faults(), [Fault::SignedGone(8)]);
    assert_eq!(none.report().chains, 1);
    none = Trail::of("c", 9, 9);
    sign(&mut none, 8, "0");
    assert!(none.report().is_clean(), "what was removed because of its age is not looked for");
}

#[test]
fn what_was_removed_for_its_age_need_not_be_there_though_it_was_signed() {
    let mut trail = Trail::of("c", 6, 3);
    sign(&mut trail, 3, "as it was");
    assert_eq!(trail.faults(), []);
    sign(&mut trail, 4, "as it was");
    assert_eq!(trail.faults(), [Fault::NotAsSigned(4)]);
}

#[test]
fn without_a_head_nothing_stands_before_the_first() {
    let mut trail = Trail::of("c", 2, 0);
    trail.rows[0].seq = 0;
    trail.rows[0] = trail.rows[0].clone().rehashed();
    trail.heads.clear();
    assert!(trail.faults().contains(&Fault::Inserted(0)), "{:?}", trail.faults());
}

#[test]
fn what_else_is_wrong_can_be_added() {
    let mut verifier = Verifier::new(hash, BTreeMap::new(), Signed::new());
    verifier.note("c", Fault::BadCheckpoint(7));
    assert_eq!(verifier.end().faults, [("c".to_owned(), Fault::BadCheckpoint(7))]);
}

#[test]
fn chains_are_judged_by_themselves_and_counted() {
    let mut both = Trail::of("a", 3, 0);
    let other = Trail::of("b", 4, 2);
    both.rows.extend(other.rows);
    both.heads.extend(other.heads);
    both.heads.insert("quiet".to_owned(), Head::default());
    let report = both.report();
    assert_eq!((report.chains, report.entries, report.is_clean()), (3, 5, true));
    both.rows.retain(|row| row.chain == "b");
    assert_eq!(both.report().faults, [("a".to_owned(), Fault::Gone(3))]);
}

#[test]
fn a_long_list_of_faults_ends_with_a_number() {
    let mut trail = Trail::of("c", 1_005, 0);
    for row in &mut trail.rows {
        row.entry.actor = "eve".to_owned();
    }
    let report = trail.report();
    assert_eq!((report.faults.len(), report.untold), (1_000, 5));
}

#[test]
fn every_fault_has_a_word_and_a_sentence() {
    let faults = [
        Fault::Edited(1),
        Fault::Replaced(1),
        Fault::Removed { from: 1, to: 2 },
        Fault::Inserted(1),
        Fault::Truncated { from: 1, to: 2 },
        Fault::Added { from: 1, to: 2 },
        Fault::HeadDiffers(1),
        Fault::NoHead,
        Fault::Gone(1),
        Fault::NotAsSigned(1),
        Fault::SignedGone(1),
        Fault::BadCheckpoint(1),
        Fault::AnchorUnsigned(1),
        Fault::UnsignedChain,
        Fault::UnknownKey,
        Fault::UnsignedEntries { from: 1, to: 2 },
    ];
    let words: std::collections::BTreeSet<_> = faults.iter().map(|fault| fault.as_str()).collect();
    let sentences: std::collections::BTreeSet<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!((words.len(), sentences.len()), (faults.len(), faults.len()));
    let of_the_whole = [Fault::NoHead, Fault::UnsignedChain, Fault::UnknownKey];
    assert!(faults.iter().all(|fault| fault.entries().is_none() == of_the_whole.contains(fault)));
}

/// One thing that is done to a trail; the numbers say where.
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

/// Does it; `one` and `other` are places among the rows.
fn tamper(trail: &mut Trail, what: Tampering, one: usize, other: usize) {
    match what {
        Tampering::Edit { field, rehashed } => {
            let row = &mut trail.rows[one];
            match field {
                0 => row.entry.at = Timestamp(row.entry.at.0 + 1),
                1 => row.entry.actor.push('x'),
                2 => row.entry.action = Action::WorkerDeleted,
                3 => row.entry.target.push('x'),
                4 => row.entry.detail.push('x'),
                5 => row.entry.request_id = row.entry.request_id.take().map_or(Some(String::new()), |_| None),
                6 => row.previous.push('x'),
                7 => row.hash.push('x'),
                _ => row.chain.push('x'),
            }
            // A hash that is edited and then made right is not edited.
            if rehashed && field != 7 {
                *row = row.clone().rehashed();
            }
        }
        Tampering::Remove => drop(trail.rows.remove(one)),
        Tampering::Truncate => trail.rows.truncate(one),
        Tampering::Append { linked } => {
            let last = trail.rows[trail.rows.len() - 1].clone();
            let previous = if linked { last.hash.clone() } else { last.previous.clone() };
            trail.rows.push(Row { seq: last.seq + 1, previous, ..last }.rehashed());
        }
        Tampering::Insert => {
            let copy = trail.rows[one].clone();
            trail.rows.iter_mut().filter(|row| row.seq >= copy.seq).for_each(|row| row.seq += 1);
            trail.rows.push(copy);
        }
        Tampering::Prepend => {
            let first = trail.rows[0].clone();
            trail.rows.push(Row { seq: first.seq - 1, previous: String::new(), ..first }.rehashed());
        }
        Tampering::Swap => {
            let (a, b) = (trail.rows[one].clone(), trail.rows[other].clone());
            trail.rows[one] = Row { seq: a.seq, ..b.clone() };
            trail.rows[other] = Row { seq: b.seq, ..a };
        }
        Tampering::SwapNumbers => {
            let (a, b) = (trail.rows[one].seq, trail.rows[other].seq);
            (trail.rows[one].seq, trail.rows[other].seq) = (b, a);
        }
        Tampering::Head { field } => {
            let head = trail.head();
            match field {
                0 => head.newest.seq += 1,
                1 => head.newest.hash.push('x'),
                2 => head.removed.seq += 1,
                _ => head.removed.hash.push('x'),
            }
        }
        Tampering::NoHead => trail.heads.clear(),
        Tampering::Empty => trail.rows.clear(),
    }
}

proptest! {
    #[test]
    fn any_single_thing_is_found(
        number in 1_i64..12, removed in 0_i64..12, what in tampering(), one in 0_usize..12, other in 0_usize..12,
    ) {
        let original = Trail::of("c", number, removed.min(number - 1));
        prop_assert!(original.report().is_clean());
        let rows = original.rows.len();
        let mut changed = original.clone();
        tamper(&mut changed, what, one % rows, other % rows);
        prop_assert_eq!(changed.report().is_clean(), changed == original, "{:?}", what);
    }
}
