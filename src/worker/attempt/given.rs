//! Secrets that the orchestrator keeps for the job: fetched once, given to the trainer, and hidden in what it prints.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::secret::variable;

use super::{Attempt, blocking};
use crate::api::{ApiError, until_answered};
use crate::files::Secrets;
use crate::secret::Secret;
use crate::secret::mask::Mask;

/// Where they are kept while the attempt lives, so that a restarted agent still hides them; for its owner's eyes only.
pub const FILE: &str = "given.json";

/// See the module.
#[derive(Debug, Default)]
pub struct Given {
    /// Variables of the trainer's environment.
    pub variables: BTreeMap<String, Secret>,
    /// Hides their values, and what the attempt itself carries.
    pub mask: Mask,
}

impl Given {
    /// What is no name of a secret is not taken: it could steer programs on this host.
    fn new(variables: BTreeMap<String, Secret>, own: &Secrets) -> Self {
        let variables: BTreeMap<_, _> =
            variables.into_iter().filter(|(name, _)| variable(name).as_ref() == Some(name)).collect();
        let all = variables.values().chain([&own.job_token, &own.webhook]).chain(&own.hf_token);
        Self { mask: Mask::of(all.map(Secret::reveal)), variables }
    }
}

impl Attempt {
    /// Those of this attempt: none before they were fetched.
    pub(super) fn given(&self) -> &Arc<Given> {
        self.given.get_or_init(|| {
            let kept = self.dir.read(FILE).unwrap_or_else(|error| {
                tracing::error!("{}: its secrets cannot be read and so not be hidden in its log: {error}", self.key());
                None
            });
            Arc::new(Given::new(kept.unwrap_or_default(), &self.secrets))
        })
    }

    /// Fetches them.
    ///
    /// # Errors
    /// What the orchestrator says, or the disk.
    pub(super) async fn take_secrets(&self) -> Result<(), ApiError> {
        let what = format!("fetching the secrets of {}", self.key());
        let taken = until_answered(&self.context.online, &what, async || self.api.secrets().await).await?;
        let mut variables: BTreeMap<String, Secret> = taken.iter().map(|(n, v)| (n.clone(), Secret::new(v))).collect();
        if let Some(token) = &self.secrets.hf_token {
            variables.entry("HF_TOKEN".to_owned()).or_insert_with(|| token.clone());
        }
        let (dir, kept) = (self.dir.clone(), variables.clone());
        let disk = |error: std::io::Error| ApiError::Answer(format!("the secrets cannot be kept: {error}"));
        blocking(move || dir.write(FILE, &kept)).await.map_err(disk)?;
        // Whoever asked before was told that there are none; nobody asks before the trainer runs.
        let _ = self.given.set(Arc::new(Given::new(variables, &self.secrets)));
        Ok(())
    }
}
