//! Adopts the attempts that an earlier agent left.

use std::sync::Arc;

use super::{AttemptRunner, remove_secrets};
use crate::context::AgentContext;
use crate::files::{AttemptDir, AttemptKey, AttemptSecrets, AttemptSpec, AttemptState, VERSION, remove_tree};

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
            // The host crashed before it was on disk, so its trainer had hardly begun.
            Err(_) if dir.join("spec.json").metadata().is_ok_and(|file| file.len() == 0) => {
                return remove_incomplete(&dir);
            }
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
        let secrets: AttemptSecrets = dir.read_json("secrets.json").ok().flatten().unwrap_or_default();
        AdoptOutcome::Active(Arc::new(AttemptRunner::new(context, dir, spec, secrets, state)))
    }
}

/// An agent exited between creating and filling the directory: the offer was not accepted yet, or is offered again.
fn remove_incomplete(dir: &AttemptDir) -> AdoptOutcome {
    tracing::debug!("removing {}, which is incomplete", dir.path().display());
    let _ = remove_tree(dir.path());
    AdoptOutcome::Unrecognized
}
