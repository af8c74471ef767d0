//! Taking up what an earlier agent left.

use std::sync::Arc;

use super::{Attempt, forget_secrets};
use crate::files::{AttemptDir, Key, Secrets, Spec, State, VERSION, remove_tree};
use crate::session::Context;

/// What a directory below `jobs/` is.
pub enum Found {
    /// Something is left to do for it.
    Live(Arc<Attempt>),
    /// It is over and reported.
    Over(Key),
    /// Not to be touched: unreadable, or of a newer version.
    Foreign,
}

impl Attempt {
    /// Looks at a directory.
    pub fn adopt(context: &Arc<Context>, dir: AttemptDir) -> Found {
        let spec: Spec = match dir.read("spec.json") {
            Ok(Some(spec)) => spec,
            Ok(None) => {
                // An agent ended between making the directory and writing it: nothing was accepted yet.
                tracing::debug!("removing {}, which is unfinished", dir.path().display());
                let _ = remove_tree(dir.path());
                return Found::Foreign;
            }
            Err(error) => {
                tracing::warn!("left alone, as it cannot be read: {error}");
                return Found::Foreign;
            }
        };
        if spec.version > VERSION {
            tracing::warn!("left alone, as a newer version made it: {}", dir.path().display());
            return Found::Foreign;
        }
        let state: State = dir.read("state.json").ok().flatten().unwrap_or_default();
        if state.delivered {
            // An agent may have been killed just before it did.
            forget_secrets(&dir);
            return Found::Over(spec.key);
        }
        let secrets: Secrets = dir.read("secrets.json").ok().flatten().unwrap_or_default();
        Found::Live(Arc::new(Attempt::new(context, dir, spec, secrets, state)))
    }
}
