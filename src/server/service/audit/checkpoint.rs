//! Signed checkpoints: at times, the newest entry of this server's chain is signed with a key that is not in the database.
//! Who can write the database but does not have the key can then not make another chain that holds.

use std::sync::{Arc, Mutex};

use app::domain::audit::Action;
use app::domain::audit::verify::Mark;
use serde_json::json;

use crate::files::checkpoints::Checkpoints;
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::service::unit::Caller;

/// Signs for this server.
pub struct Signer {
    files: Checkpoints,
    /// The number of the newest checkpoint's own entry: what comes after it is not signed yet.
    newest: Mutex<i64>,
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
}

impl Core {
    /// Signs what has come since the last time, if anything has: in the chain, and in a file beside the database.
    pub async fn sign_audit(self: &Arc<Self>) -> Result<(), Refusal> {
        let before = *self.signer.newest.lock().expect("no panic while it is held");
        let signed = self.change(Caller::system(), move |unit| {
            Box::pin(async move {
                let Mark { seq, hash } = unit.tx.newest_audit().await?;
                if seq <= before {
                    return Ok(None);
                }
                let files = &unit.core.signer.files;
                let (chain, mac) = (&unit.core.server, files.mac(&unit.core.server, seq, &hash));
                let line = json!({
                    "at": unit.now,
                    "database": files.database(),
                    "chain": chain,
                    "seq": seq,
                    "hash": hash,
                    "key": files.key_id(),
                    "mac": mac,
                });
                let detail = json!({"seq": seq, "key": files.key_id(), "mac": mac});
                unit.record(Action::AuditCheckpoint, chain, &detail).await?;
                Ok(Some((seq + 1, line.to_string())))
            })
        });
        let Some((newest, line)) = signed.await? else { return Ok(()) };
        *self.signer.newest.lock().expect("no panic while it is held") = newest;
        Ok(self.signer.files.append(&line)?)
    }
}
