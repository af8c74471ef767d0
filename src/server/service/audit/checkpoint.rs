//! Signed checkpoints: at times, the newest entry of this server's chain is signed with a key that is not in the database.
//! Who can write the database but does not have the key can then not make another chain that holds.

use std::sync::{Arc, Mutex};

use app::domain::audit::Action;
use app::domain::audit::verify::{Head, Mark};
use app::domain::time::Timestamp;
use serde_json::json;

use super::evidence::{PERIOD, chains_signed};
use crate::files::checkpoints::{Checkpoints, Kind};
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::service::unit::Caller;

/// Signs for this server.
pub struct Signer {
    files: Checkpoints,
    /// The number of the newest checkpoint's own entry: what comes after it is not signed yet. None before the first.
    newest: Mutex<Option<i64>>,
    /// Held by whoever verifies the trail.
    verifying: tokio::sync::Mutex<()>,
}

impl Signer {
    /// With the key of a data directory.
    pub fn new(files: Checkpoints) -> Self {
        Self { files, newest: Mutex::default(), verifying: tokio::sync::Mutex::default() }
    }

    /// The key, and what was signed with it.
    pub fn files(&self) -> &Checkpoints {
        &self.files
    }

    /// Whoever verifies the trail waits for its turn.
    pub async fn verifying(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.verifying.lock().await
    }

    fn newest(&self) -> Option<i64> {
        *self.newest.lock().expect("no panic while it is held")
    }
}

impl Core {
    /// Signs what has come since the last time, if anything has: in the chain, and in a file beside the database. The first
    /// time, which is when a server starts, a chain is signed that may have no entry yet, and what earlier servers left.
    pub async fn sign_audit(self: &Arc<Self>) -> Result<(), Refusal> {
        let before = self.signer.newest();
        if before.is_none() {
            self.sign_what_was_left().await?;
        }
        let signed = self.change(Caller::system(), move |unit| {
            Box::pin(async move {
                let mark = unit.tx.newest_audit().await?;
                if before.is_some_and(|before| mark.seq <= before) {
                    return Ok(None);
                }
                let files = &unit.core.signer.files;
                let (chain, mac) = (&unit.core.server, files.mac(&unit.core.server, mark.seq, &mark.hash));
                let line = files.line(unit.now, Kind::Checkpoint, chain, &mark);
                let detail = json!({"seq": mark.seq, "key": files.key_id(), "mac": mac});
                unit.record(Action::AuditCheckpoint, chain, &detail).await?;
                Ok(Some((mark.seq + 1, line)))
            })
        });
        let Some((newest, line)) = signed.await? else { return Ok(()) };
        *self.signer.newest.lock().expect("no panic while it is held") = Some(newest);
        Ok(self.signer.files.append(&line)?)
    }

    /// Signs that retention removed the entries of a chain up to this one.
    pub(super) fn sign_removal(&self, chain: &str, mark: &Mark) -> Result<(), Refusal> {
        Ok(self.signer.files.append(&self.signer.files.line(self.now(), Kind::Removed, chain, mark))?)
    }

    /// Signs that this server's chain has ended: what is added behind it is not ours.
    pub async fn close_audit(self: &Arc<Self>) -> Result<(), Refusal> {
        let newest = self.change(Caller::system(), |unit| Box::pin(async move { Ok(unit.tx.newest_audit().await?) }));
        let line = self.signer.files.line(self.now(), Kind::Closed, &self.server, &newest.await?);
        Ok(self.signer.files.append(&line)?)
    }

    /// Signs the ends of chains whose servers were killed before they could. Only chains that were signed before count: what
    /// somebody else has added is not vouched for. Where an earlier version has signed, everything there is counts, once.
    async fn sign_what_was_left(&self) -> Result<(), Refusal> {
        let files = &self.signer.files;
        let known = files.signed()?;
        let mut tx = self.read().await?;
        let signed = chains_signed(&mut *tx, files).await?;
        let live = tx.known_servers(self.policy.server_life).await?;
        let mut chains = Vec::new();
        for (name, head) in tx.audit_heads().await? {
            if name == self.server || known.closed.contains_key(&name) {
                continue;
            }
            let newest = tx.audit_after(&name, head.newest.seq - 1, 1).await?.pop();
            let is_old = newest.is_none_or(|entry| entry.at.0 + PERIOD.0 < self.now().0);
            // Of servers that share a database, one may have been away for a moment only.
            let has_ended = files.database() == "sqlite" || is_old && !live.iter().any(|server| server.id == name);
            let in_file = known.signed.get(&name).and_then(|signed| signed.keys().max().copied());
            let signed = in_file.max(signed.get(&name).copied());
            chains.push(Left { name, head, signed, has_ended });
        }
        drop(tx);
        for line in lines(files, self.now(), known.is_complete, &chains) {
            files.append(&line)?;
        }
        Ok(())
    }
}

/// A chain of another server, or of an earlier life of this one.
struct Left {
    name: String,
    head: Head,
    /// Up to which entry it is signed, if it was signed at all.
    signed: Option<i64>,
    has_ended: bool,
}

/// The lines for what is left.
fn lines(files: &Checkpoints, now: Timestamp, is_complete: bool, chains: &[Left]) -> Vec<String> {
    let mut lines = Vec::new();
    for Left { name, head: Head { newest, removed }, signed, has_ended } in chains {
        let is_there = newest.seq > removed.seq;
        let is_signed = signed.is_some_and(|until| newest.seq <= until);
        let kind = if *has_ended { Kind::Closed } else { Kind::Checkpoint };
        if is_there && (*has_ended || !is_signed) && (signed.is_some() || !is_complete) {
            lines.push(files.line(now, kind, name, newest));
        }
        if removed.seq > 0 && !is_complete {
            lines.push(files.line(now, Kind::Removed, name, removed));
        }
    }
    if !is_complete {
        lines.push(files.line(now, Kind::Complete, "", &Mark::default()));
    }
    lines
}
