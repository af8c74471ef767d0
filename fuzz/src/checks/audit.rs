//! The audit trail: a trail with its fields as given is clean, no two entries are hashed alike, and whatever is done to one
//! row is found. A line each: how many entries, what is done to which, and fields.

use std::collections::BTreeMap;

use app::domain::audit::verify::{Head, Mark, Report, Signed, Verifier};
use app::domain::audit::{Action, Entry, Record};
use app::domain::time::Timestamp;
use sha2::{Digest, Sha256};

use crate::clock::hex;

/// An entry as a database has it.
#[derive(Clone, PartialEq)]
struct Row {
    chain: String,
    seq: i64,
    previous: String,
    at: i64,
    actor: String,
    action: String,
    target: String,
    detail: String,
    request_id: Option<String>,
    hash: String,
}

impl Row {
    fn record(&self) -> Record<'_> {
        Record {
            chain: &self.chain,
            seq: self.seq,
            previous: &self.previous,
            at: Timestamp(self.at),
            actor: &self.actor,
            action: &self.action,
            target: &self.target,
            detail: &self.detail,
            request_id: self.request_id.as_deref(),
        }
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// See the module.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines: Vec<&str> = text.split('\n').collect();
    let [plan, fields @ ..] = lines.as_slice() else { return };
    let mut plan = plan.bytes();
    let mut next = || plan.next().unwrap_or_default();
    let rows = written(usize::from(next() % 8) + 1, fields);
    let newest = rows.last().map(|row| Mark { seq: row.seq, hash: row.hash.clone() }).unwrap_or_default();
    let head = Head { newest, removed: Mark::default() };
    assert!(judged(&rows, &head).is_clean());
    rows.iter().for_each(read_back);

    let (what, which) = (next(), usize::from(next()) % rows.len());
    let other = fields.last().copied().unwrap_or_default();
    let mut touched = rows.clone();
    let row = &mut touched[which];
    match what % 12 {
        0 => row.actor = other.to_owned(),
        1 => row.action = other.to_owned(),
        2 => row.target = other.to_owned(),
        3 => row.detail = other.to_owned(),
        4 => row.request_id = Some(other.to_owned()).filter(|_| row.request_id.is_none()),
        5 => row.previous = other.to_owned(),
        6 => row.hash = other.to_owned(),
        7 => row.at = other.parse().unwrap_or_default(),
        8 => row.seq = other.parse().unwrap_or_default(),
        9 => drop(touched.remove(which)),
        10 => touched.swap(which, 0),
        _ => touched.insert(which, rows[0].clone()),
    }
    assert_eq!(judged(&touched, &head).is_clean(), touched == rows, "{what} {which} {other:?}");
}

fn written(count: usize, fields: &[&str]) -> Vec<Row> {
    let mut fields = fields.iter().copied().chain(["x"]).cycle();
    let mut next = || fields.next().unwrap_or_default().to_owned();
    let mut rows = Vec::<Row>::new();
    for seq in (1..).take(count) {
        let action = Action::ALL[next().len() % Action::ALL.len()];
        let (actor, target, detail, request) = (next(), next(), next(), next());
        let request_id = Some(request).filter(|id| !id.is_empty());
        let entry = Entry { at: Timestamp(seq), actor, action, target, detail, request_id }.storable();
        let previous = rows.last().map(|row| row.hash.clone()).unwrap_or_default();
        let hash = hash(&entry.placed("c_1", seq, &previous).canonical());
        let Entry { actor, target, detail, request_id, .. } = entry;
        assert!(![&actor, &target, &detail].iter().any(|text| text.contains('\0')), "no database keeps that");
        let (chain, action) = ("c_1".to_owned(), action.as_str().to_owned());
        rows.push(Row { chain, seq, previous, at: seq, actor, action, target, detail, request_id, hash });
    }
    rows
}

fn judged(rows: &[Row], head: &Head) -> Report {
    let heads = BTreeMap::from([("c_1".to_owned(), head.clone())]);
    let mut verifier = Verifier::new(hash, heads, Signed::default());
    rows.iter().for_each(|row| verifier.read(&row.record(), &row.hash));
    verifier.end()
}

/// What is hashed can be taken apart again, so that no two entries are alike in it.
fn read_back(row: &Row) {
    let bytes = row.record().canonical();
    let mut rest = bytes.as_slice();
    let mut field = || {
        let (length, tail) = rest.split_at(8);
        let length = u64::from_be_bytes(length.try_into().expect("eight bytes"));
        let length = if length == u64::MAX { None } else { Some(usize::try_from(length).expect("a length")) };
        let (text, tail) = tail.split_at(length.unwrap_or_default());
        rest = tail;
        length.map(|_| String::from_utf8(text.to_vec()).expect("text"))
    };
    let (seq, at) = (row.seq.to_string(), row.at.to_string());
    for part in [&row.chain, &seq, &row.previous, &at, &row.actor, &row.action, &row.target, &row.detail] {
        assert_eq!(field().as_ref(), Some(part));
    }
    assert_eq!(field(), row.request_id);
    assert!(rest.is_empty());
}
