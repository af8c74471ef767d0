//! The job's secrets from the orchestrator: fetched once, passed to the trainer, and masked in its output.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::secret::variable_name;
use app::threads::run_io;

use super::AttemptRunner;
use crate::worker::api::{OrchestratorError, retry_until_answered};
use crate::worker::files::AttemptSecrets;
use crate::worker::secret::Secret;
use crate::worker::secret::mask::Mask;

/// Stored while the attempt lives, so that a restarted agent still masks them; readable only by the owner.
pub const FILE: &str = "given.json";

#[derive(Debug, Default)]
pub struct AttemptJobSecrets {
    /// Environment variables for the trainer.
    pub variables: BTreeMap<String, Secret>,
    /// Masks their values, and the attempt's own tokens.
    pub mask: Mask,
}

impl AttemptJobSecrets {
    /// Ignores names that are not valid for secrets: they could control programs on this host.
    fn new(variables: BTreeMap<String, Secret>, secrets: &AttemptSecrets) -> Self {
        let variables: BTreeMap<_, _> =
            variables.into_iter().filter(|(name, _)| variable_name(name).as_ref() == Some(name)).collect();
        let all = variables.values().chain([&secrets.job_token, &secrets.webhook]).chain(&secrets.hf_token);
        Self { mask: Mask::from_values(all.map(Secret::reveal)), variables }
    }
}

impl AttemptRunner {
    /// The secrets of this attempt; empty before they are fetched.
    pub(super) fn job_secrets(&self) -> &Arc<AttemptJobSecrets> {
        self.job_secrets.get_or_init(|| {
            let variables = self.dir.read_json(FILE).unwrap_or_else(|error| {
                tracing::error!("{}: cannot read its secrets, so they are not masked in its log: {error}", self.key());
                None
            });
            Arc::new(AttemptJobSecrets::new(variables.unwrap_or_default(), &self.secrets))
        })
    }

    /// Fetches and stores the secrets.
    ///
    /// # Errors
    /// From the orchestrator or the disk.
    pub(super) async fn fetch_secrets(&self) -> Result<(), OrchestratorError> {
        let operation = format!("fetching the secrets of {}", self.key());
        let fetched = if self.spec.offer.has_secrets {
            retry_until_answered(&self.context.reconnect_signal, &operation, async || self.api.fetch_secrets().await)
                .await?
        } else {
            BTreeMap::new()
        };
        let mut variables: BTreeMap<String, Secret> =
            fetched.iter().map(|(name, value)| (name.clone(), Secret::new(value))).collect();
        if let Some(token) = &self.secrets.hf_token {
            variables.entry("HF_TOKEN".to_owned()).or_insert_with(|| token.clone());
        }
        let (dir, stored) = (self.dir.clone(), variables.clone());
        let storage_error =
            |error: std::io::Error| OrchestratorError::InvalidResponse(format!("cannot store the secrets: {error}"));
        // Also after a crash of the host, the log is not sent without a mask.
        if !stored.is_empty() {
            run_io(move || dir.write_json(FILE, &stored)).await.map_err(storage_error)?;
        }
        // Earlier calls returned none, but there is no caller before the trainer runs.
        let _ = self.job_secrets.set(Arc::new(AttemptJobSecrets::new(variables, &self.secrets)));
        Ok(())
    }
}
