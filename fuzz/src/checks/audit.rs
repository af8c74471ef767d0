//! The audit log: an unchanged log is clean, different entries have different hashes, and each change of a row is
//! found. The first line has the number of entries, the change and its row; each other line is a field.

use std::collections::BTreeMap;

use app::domain::audit::verify::{ChainHead, EntryRef, SignedHashes, Verifier, VerifyReport};
use app::domain::audit::{AuditAction, AuditEvent, AuditRecord};
use app::domain::time::Timestamp;
use sha2::{Digest, Sha256};

use crate::worker::clock::encode_hex;

/// An entry as it is stored in a database.
#[derive(Clone, PartialEq)]
struct AuditLogRow {
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

impl AuditLogRow {
    fn record(&self) -> AuditRecord<'_> {
        AuditRecord {
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
    encode_hex(&Sha256::digest(bytes))
}

/// See the module.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines: Vec<&str> = text.split('\n').collect();
    let [plan, fields @ ..] = lines.as_slice() else { return };
    let mut plan = plan.bytes();
    let mut next = || plan.next().unwrap_or_default();
    let rows = build_audit_log(usize::from(next() % 8) + 1, fields);
    let newest = rows.last().map(|row| EntryRef { seq: row.seq, hash: row.hash.clone() }).unwrap_or_default();
    let head = ChainHead { newest, removed: EntryRef::default() };
    assert!(verify_audit_log(&rows, &head).is_clean());
    rows.iter().for_each(assert_decodable);

    let (change, index) = (next(), usize::from(next()) % rows.len());
    let replacement = fields.last().copied().unwrap_or_default();
    let mut tampered = rows.clone();
    let row = &mut tampered[index];
    match change % 12 {
        0 => row.actor = replacement.to_owned(),
        1 => row.action = replacement.to_owned(),
        2 => row.target = replacement.to_owned(),
        3 => row.detail = replacement.to_owned(),
        4 => row.request_id = Some(replacement.to_owned()).filter(|_| row.request_id.is_none()),
        5 => row.previous = replacement.to_owned(),
        6 => row.hash = replacement.to_owned(),
        7 => row.at = replacement.parse().unwrap_or_default(),
        8 => row.seq = replacement.parse().unwrap_or_default(),
        9 => drop(tampered.remove(index)),
        10 => tampered.swap(index, 0),
        _ => tampered.insert(index, rows[0].clone()),
    }
    assert_eq!(verify_audit_log(&tampered, &head).is_clean(), tampered == rows, "{change} {index} {replacement:?}");
}

fn build_audit_log(count: usize, fields: &[&str]) -> Vec<AuditLogRow> {
    let mut fields = fields.iter().copied().chain(["x"]).cycle();
    let mut next = || fields.next().unwrap_or_default().to_owned();
    let mut rows = Vec::<AuditLogRow>::new();
    for seq in (1..).take(count) {
        let action = AuditAction::ALL[next().len() % AuditAction::ALL.len()];
        let (actor, target, detail, request) = (next(), next(), next(), next());
        let request_id = Some(request).filter(|id| !id.is_empty());
        let event = AuditEvent { at: Timestamp(seq), actor, action, target, detail, request_id }.sanitized();
        let previous = rows.last().map(|row| row.hash.clone()).unwrap_or_default();
        let hash = hash(&event.to_record("c_1", seq, &previous).canonical_bytes());
        let AuditEvent { actor, target, detail, request_id, .. } = event;
        assert!(![&actor, &target, &detail].iter().any(|text| text.contains('\0')), "databases cannot store NUL");
        let (chain, action) = ("c_1".to_owned(), action.as_str().to_owned());
        rows.push(AuditLogRow { chain, seq, previous, at: seq, actor, action, target, detail, request_id, hash });
    }
    rows
}

fn verify_audit_log(rows: &[AuditLogRow], head: &ChainHead) -> VerifyReport {
    let heads = BTreeMap::from([("c_1".to_owned(), head.clone())]);
    let mut verifier = Verifier::new(hash, heads, SignedHashes::default());
    rows.iter().for_each(|row| verifier.verify_record(&row.record(), &row.hash));
    verifier.into_report()
}

/// The hashed bytes can be decoded, so different entries have different bytes.
fn assert_decodable(row: &AuditLogRow) {
    let bytes = row.record().canonical_bytes();
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
