//! Signed checkpoints: periodically, the newest entry of this server's chain is signed with a key that is not in the
//! database. Write access to the database without the key is then not enough to forge a valid chain.

use std::sync::{Arc, Mutex};

use app::domain::audit::AuditAction;
use app::domain::audit::verify::{ChainHead, EntryRef};
use app::domain::time::Timestamp;
use serde_json::json;

use super::signatures::{SIGNING_PERIOD, signed_chains};
use crate::files::audit_checkpoints::{AuditCheckpointFile, SignedLineKind};
use crate::service::audit::AuditService;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::Caller;

/// Signs the audit log of this server.
pub struct AuditSigner {
    files: AuditCheckpointFile,
    /// The sequence number of the newest checkpoint's own entry; later entries are not signed yet. `None` before the
    /// first.
    newest_checkpoint: Mutex<Option<i64>>,
    /// Held during a verification of the audit log.
    verification_lock: tokio::sync::Mutex<()>,
}

impl AuditSigner {
    /// Uses the key of a data directory.
    pub fn new(files: AuditCheckpointFile) -> Self {
        Self { files, newest_checkpoint: Mutex::default(), verification_lock: tokio::sync::Mutex::default() }
    }

    /// The key and the file of checkpoints.
    pub fn files(&self) -> &AuditCheckpointFile {
        &self.files
    }

    /// Waits until no other verification runs.
    pub async fn lock_verification(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.verification_lock.lock().await
    }

    fn newest_checkpoint(&self) -> Option<i64> {
        *self.newest_checkpoint.lock().expect("no panic while it is held")
    }
}

impl AuditService {
    /// Signs the entries since the last checkpoint, if any: in the chain, and in a file beside the database. The first
    /// time, at the start of a server, signs a chain that may be empty, and the chains of earlier servers.
    pub async fn sign_audit(self: &Arc<Self>) -> Result<(), ServiceError> {
        let previous = self.signer.newest_checkpoint();
        if previous.is_none() {
            self.sign_abandoned_chains().await?;
        }
        let service = Arc::clone(self);
        let signed = self.context.change(Caller::system(), move |unit| {
            let service = Arc::clone(&service);
            Box::pin(async move {
                let newest = unit.tx.newest_audit().await?;
                if previous.is_some_and(|previous| newest.seq <= previous) {
                    return Ok(None);
                }
                let files = &service.signer.files;
                let (chain, mac) = (&unit.context.server, files.mac(&unit.context.server, newest.seq, &newest.hash));
                let line = files.signed_line(unit.now, SignedLineKind::Checkpoint, chain, &newest);
                let detail = json!({"seq": newest.seq, "key": files.key_id(), "mac": mac});
                unit.record(AuditAction::AuditCheckpoint, chain, &detail).await?;
                Ok(Some((newest.seq + 1, line)))
            })
        });
        let Some((newest, line)) = signed.await? else { return Ok(()) };
        *self.signer.newest_checkpoint.lock().expect("no panic while it is held") = Some(newest);
        Ok(self.signer.files.append(&line)?)
    }

    /// Signs that retention has removed the entries of a chain up to this one.
    pub(super) fn sign_removal(&self, chain: &str, entry: &EntryRef) -> Result<(), ServiceError> {
        Ok(self.signer.files.append(&self.signer.files.signed_line(
            self.context.now(),
            SignedLineKind::Removed,
            chain,
            entry,
        ))?)
    }

    /// Signs the end of this server's chain: entries after it are not the server's.
    pub async fn close_audit(self: &Arc<Self>) -> Result<(), ServiceError> {
        let newest =
            self.context.change(Caller::system(), |unit| Box::pin(async move { Ok(unit.tx.newest_audit().await?) }));
        let line = self.signer.files.signed_line(
            self.context.now(),
            SignedLineKind::Closed,
            &self.context.server,
            &newest.await?,
        );
        Ok(self.signer.files.append(&line)?)
    }

    /// Signs the ends of chains whose servers were killed before they could do so. Only entries that were signed before
    /// count, because later ones may be forged. After an earlier version has signed, all entries count, once.
    async fn sign_abandoned_chains(&self) -> Result<(), ServiceError> {
        let files = &self.signer.files;
        let lines = files.read_signed()?;
        let mut tx = self.context.read().await?;
        let signed = signed_chains(&mut *tx, files).await?;
        let live = tx.registered_servers(self.context.policy.server_life).await?;
        let mut chains = Vec::new();
        for (name, head) in tx.audit_heads().await? {
            if name == self.context.server || lines.closed.contains_key(&name) {
                continue;
            }
            let newest = tx.audit_after(&name, head.newest.seq - 1, 1).await?.pop();
            let is_old = newest.is_none_or(|entry| entry.at.0 + SIGNING_PERIOD.0 < self.context.now().0);
            // Servers of a shared database may be unreachable for a short time.
            let has_ended = files.database() == "sqlite" || is_old && !live.iter().any(|server| server.id == name);
            let in_file = lines.signed.get(&name).and_then(|signed| signed.keys().max().copied());
            let signed = in_file.max(signed.get(&name).copied());
            chains.push(AbandonedChain { name, head, signed, has_ended });
        }
        drop(tx);
        for line in closing_lines(files, self.context.now(), lines.is_complete, &chains) {
            files.append(&line)?;
        }
        Ok(())
    }
}

/// A chain of another server, or of an earlier run of this one.
struct AbandonedChain {
    name: String,
    head: ChainHead,
    /// The last signed entry, if any.
    signed: Option<i64>,
    has_ended: bool,
}

/// The checkpoint lines that end the abandoned chains.
fn closing_lines(
    files: &AuditCheckpointFile,
    now: Timestamp,
    is_complete: bool,
    chains: &[AbandonedChain],
) -> Vec<String> {
    let mut lines = Vec::new();
    for AbandonedChain { name, head: ChainHead { newest, removed }, signed, has_ended } in chains {
        let has_entries = newest.seq > removed.seq;
        let is_signed = signed.is_some_and(|until| newest.seq <= until);
        let kind = if *has_ended { SignedLineKind::Closed } else { SignedLineKind::Checkpoint };
        if has_entries && (*has_ended || !is_signed) && (signed.is_some() || !is_complete) {
            lines.push(files.signed_line(now, kind, name, newest));
        }
        if removed.seq > 0 && !is_complete {
            lines.push(files.signed_line(now, SignedLineKind::Removed, name, removed));
        }
    }
    if !is_complete {
        lines.push(files.signed_line(now, SignedLineKind::Complete, "", &EntryRef::default()));
    }
    lines
}
