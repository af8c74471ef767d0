//! What in an audit log was signed with a key that is not in the database.

use std::collections::BTreeMap;

use app::domain::audit::AuditAction;
use app::domain::audit::verify::EntryRef;
use app::domain::audit::verify::trust::VerifiedSignatures;
use app::domain::time::{Millis, Timestamp};
use serde::Deserialize;

use crate::files::audit_checkpoints::{AuditCheckpointFile, SignedLines};
use crate::store::audit::{ActionFilter, AuditFilter, AuditOrder, StoredAuditEntry};
use crate::store::{StoreError, Tx};

/// The interval between checkpoints.
pub const SIGNING_PERIOD: Millis = Millis::from_secs(3_600);
/// The maximum number of entries in memory.
const BATCH: u32 = 1_000;

/// The detail of a checkpoint's entry.
#[derive(Deserialize)]
struct CheckpointDetail {
    seq: i64,
    key: String,
    mac: String,
}

/// The detail of an entry about retention.
#[derive(Deserialize)]
struct RemovalDetail {
    to: i64,
    hash: String,
}

/// Returns whether a checkpoint signs the entry before it; `None` if it was made with another key.
pub fn is_signed(key: &AuditCheckpointFile, entry: &StoredAuditEntry) -> Option<bool> {
    let Ok(detail) = serde_json::from_str::<CheckpointDetail>(&entry.detail) else { return Some(false) };
    if detail.key != key.key_id() {
        return None;
    }
    let expected = key.mac(&entry.chain, entry.seq - 1, &entry.previous);
    Some(detail.seq == entry.seq - 1 && detail.mac == expected)
}

/// Returns the last entry of each chain that its own checkpoints sign.
pub async fn signed_chains(tx: &mut dyn Tx, key: &AuditCheckpointFile) -> Result<BTreeMap<String, i64>, StoreError> {
    let mut signatures = VerifiedSignatures::default();
    read_checkpoints(tx, Some(key), &SignedLines::default(), &mut signatures).await?;
    Ok(signatures.signed_up_to)
}

/// Collects all signatures: the lines of a file, and the checkpoints in the log that were made with the key, if there
/// is one.
///
/// `None` if the file is from an earlier version, which signed neither beginnings of chains nor removals by retention.
pub async fn collect_signatures(
    tx: &mut dyn Tx,
    key: Option<&AuditCheckpointFile>,
    lines: &SignedLines,
    now: Timestamp,
) -> Result<Option<VerifiedSignatures>, StoreError> {
    if !lines.is_complete {
        return Ok(None);
    }
    let due = Timestamp(now.0 - 2 * SIGNING_PERIOD.0);
    let mut signatures = VerifiedSignatures {
        anchors: lines.anchors.clone(),
        closed_seq: lines.closed.clone(),
        must_be_signed_before: due,
        ..VerifiedSignatures::default()
    };
    for (chain, signed) in &lines.signed {
        signatures.mark_signed(chain, signed.keys().max().copied().unwrap_or_default());
    }
    read_checkpoints(tx, key, lines, &mut signatures).await?;
    for entry in load_entries(tx, AuditAction::AuditExpired).await? {
        let is_covered = signatures.signed_up_to.get(&entry.chain).is_some_and(|until| entry.seq <= *until);
        if let (true, Ok(RemovalDetail { to, hash })) = (is_covered, serde_json::from_str(&entry.detail)) {
            signatures.anchors.entry(entry.target).or_default().insert(EntryRef { seq: to, hash });
        }
    }
    Ok(Some(signatures))
}

/// Reads checkpoints from the log. A checkpoint's own entry comes after what it signs, and needs no other signature.
async fn read_checkpoints(
    tx: &mut dyn Tx,
    key: Option<&AuditCheckpointFile>,
    lines: &SignedLines,
    signatures: &mut VerifiedSignatures,
) -> Result<(), StoreError> {
    for entry in load_entries(tx, AuditAction::AuditCheckpoint).await? {
        let line = lines.signed.get(&entry.chain).and_then(|signed| signed.get(&(entry.seq - 1)));
        match key.map(|key| is_signed(key, &entry)) {
            Some(Some(true)) => signatures.mark_signed(&entry.chain, entry.seq),
            _ if line == Some(&entry.previous) => signatures.mark_signed(&entry.chain, entry.seq),
            Some(None) => drop(signatures.foreign_chains.insert(entry.chain)),
            Some(Some(false)) | None => {}
        }
    }
    Ok(())
}

async fn load_entries(tx: &mut dyn Tx, action: AuditAction) -> Result<Vec<StoredAuditEntry>, StoreError> {
    let action = Some(ActionFilter::Is(action.as_str().to_owned()));
    let filter = AuditFilter { action, ..AuditFilter::default() };
    let (mut all, mut from) = (Vec::new(), AuditOrder::OldestFirst(None));
    loop {
        let batch = tx.audit_page(&filter, &from, BATCH).await?;
        let Some(last) = batch.last() else { return Ok(all) };
        from = AuditOrder::OldestFirst(Some(last.cursor()));
        all.extend(batch);
    }
}
