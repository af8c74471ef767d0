//! Adopts the attempts that an earlier agent left.

use std::sync::Arc;

use serde::de::IgnoredAny;

use super::{AttemptRunner, remove_secrets};
use crate::worker::context::AgentContext;
use crate::worker::files::{AttemptDir, AttemptKey, AttemptSecrets, AttemptSpec, AttemptState, VERSION, remove_tree};

/// The state of a directory below `jobs/`.
pub enum AdoptOutcome {
    /// The attempt has not ended, or its end is not reported.
    Active(Arc<AttemptRunner>),
    /// Ended and reported.
    Finished(AttemptKey),
    /// Left untouched: unreadable, or written by a newer version.
    Unrecognized,
}

impl AttemptRunner {
    /// Reads the attempt in a directory.
    pub fn adopt(context: &Arc<AgentContext>, dir: AttemptDir) -> AdoptOutcome {
        let spec: AttemptSpec = match dir.read_json("spec.json") {
            Ok(Some(spec)) => spec,
            Ok(None) => return remove_incomplete(&dir),
            Err(_) if is_damaged(&dir) => return remove_incomplete(&dir),
            Err(error) => {
                tracing::warn!("left alone, because it cannot be read: {error}");
                return AdoptOutcome::Unrecognized;
            }
        };
        if spec.version > VERSION {
            tracing::warn!("left alone, because a newer version created it: {}", dir.path().display());
            return AdoptOutcome::Unrecognized;
        }
        let state: AttemptState = dir.read_json("state.json").ok().flatten().unwrap_or_default();
        if state.delivered {
            // An agent may have been killed just before it removed them.
            remove_secrets(&dir);
            return AdoptOutcome::Finished(spec.key);
        }
        let secrets: AttemptSecrets = match dir.read_json("secrets.json") {
            Ok(Some(secrets)) => secrets,
            _ if has_no_supervisor(&dir) => return remove_incomplete(&dir),
            _ => AttemptSecrets::default(),
        };
        AdoptOutcome::Active(Arc::new(AttemptRunner::new(context, dir, spec, secrets, state)))
    }
}

/// Whether the host crashed before the specification was on disk.
fn is_damaged(dir: &AttemptDir) -> bool {
    let is_json = |bytes: Vec<u8>| serde_json::from_slice::<IgnoredAny>(&bytes).is_ok();
    std::fs::read(dir.join("spec.json")).is_ok_and(|bytes| !is_json(bytes)) && has_no_supervisor(dir)
}

fn has_no_supervisor(dir: &AttemptDir) -> bool {
    matches!(dir.living_supervisor(), Ok(None))
}

/// An agent exited between creating and filling the directory, or the host crashed before its files were on disk. Without
/// them, nothing of the attempt can be sent: the orchestrator notices that it is missing, and offers the job again.
fn remove_incomplete(dir: &AttemptDir) -> AdoptOutcome {
    tracing::debug!("removing {}, which is incomplete", dir.path().display());
    let _ = remove_tree(dir.path());
    AdoptOutcome::Unrecognized
}
