//! What in a trail was signed with a key that the database does not have.

use std::collections::BTreeMap;

use app::domain::audit::Action;
use app::domain::audit::verify::Mark;
use app::domain::audit::verify::trust::Trust;
use app::domain::time::{Millis, Timestamp};
use serde::Deserialize;

use crate::files::checkpoints::{Checkpoints, SignedLines};
use crate::store::audit::{Actions, AuditFilter, Reading, StoredEntry};
use crate::store::{StoreError, Tx};

/// How often a server signs.
pub const PERIOD: Millis = Millis::seconds(3_600);
/// So many entries are in memory at once.
const PORTION: u32 = 1_000;

/// What a checkpoint's entry says.
#[derive(Deserialize)]
struct Checkpoint {
    seq: i64,
    key: String,
    mac: String,
}

/// What an entry about retention says.
#[derive(Deserialize)]
struct Expired {
    to: i64,
    hash: String,
}

/// Whether a checkpoint signs the entry before it; none if it was made with another key.
pub fn is_signed(key: &Checkpoints, entry: &StoredEntry) -> Option<bool> {
    let Ok(detail) = serde_json::from_str::<Checkpoint>(&entry.detail) else { return Some(false) };
    if detail.key != key.key_id() {
        return None;
    }
    let expected = key.mac(&entry.chain, entry.seq - 1, &entry.previous);
    Some(detail.seq == entry.seq - 1 && detail.mac == expected)
}

/// Up to which entry each chain is signed by its own checkpoints.
pub async fn chains_signed(tx: &mut dyn Tx, key: &Checkpoints) -> Result<BTreeMap<String, i64>, StoreError> {
    let mut trust = Trust::default();
    read_checkpoints(tx, Some(key), &SignedLines::default(), &mut trust).await?;
    Ok(trust.signed)
}

/// What is vouched for: by the lines of a file, and by checkpoints in the trail that the key has made, if there is one.
///
/// None if the file is one of an earlier version, which signed neither beginnings of chains nor what retention removed.
pub async fn trust(
    tx: &mut dyn Tx,
    key: Option<&Checkpoints>,
    lines: &SignedLines,
    now: Timestamp,
) -> Result<Option<Trust>, StoreError> {
    if !lines.is_complete {
        return Ok(None);
    }
    let due = Timestamp(now.0 - 2 * PERIOD.0);
    let mut trust = Trust { anchors: lines.anchors.clone(), closed: lines.closed.clone(), due, ..Trust::default() };
    for (chain, signed) in &lines.signed {
        trust.sign(chain, signed.keys().max().copied().unwrap_or_default());
    }
    read_checkpoints(tx, key, lines, &mut trust).await?;
    for entry in entries(tx, Action::AuditExpired).await? {
        let is_covered = trust.signed.get(&entry.chain).is_some_and(|until| entry.seq <= *until);
        if let (true, Ok(Expired { to, hash })) = (is_covered, serde_json::from_str(&entry.detail)) {
            trust.anchors.entry(entry.target).or_default().insert(Mark { seq: to, hash });
        }
    }
    Ok(Some(trust))
}

/// A checkpoint's own entry comes after what it signs, and needs no other signature.
async fn read_checkpoints(
    tx: &mut dyn Tx,
    key: Option<&Checkpoints>,
    lines: &SignedLines,
    trust: &mut Trust,
) -> Result<(), StoreError> {
    for entry in entries(tx, Action::AuditCheckpoint).await? {
        let line = lines.signed.get(&entry.chain).and_then(|signed| signed.get(&(entry.seq - 1)));
        match key.map(|key| is_signed(key, &entry)) {
            Some(Some(true)) => trust.sign(&entry.chain, entry.seq),
            _ if line == Some(&entry.previous) => trust.sign(&entry.chain, entry.seq),
            Some(None) => drop(trust.foreign.insert(entry.chain)),
            Some(Some(false)) | None => {}
        }
    }
    Ok(())
}

async fn entries(tx: &mut dyn Tx, action: Action) -> Result<Vec<StoredEntry>, StoreError> {
    let action = Some(Actions::Is(action.as_str().to_owned()));
    let filter = AuditFilter { action, ..AuditFilter::default() };
    let (mut all, mut from) = (Vec::new(), Reading::Forth(None));
    loop {
        let portion = tx.audit_page(&filter, &from, PORTION).await?;
        let Some(last) = portion.last() else { return Ok(all) };
        from = Reading::Forth(Some(last.place()));
        all.extend(portion);
    }
}
