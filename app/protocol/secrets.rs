//! Secrets for jobs: values that can be written but never read, except by a job in its environment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// `PUT /api/secrets/{name}`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PutSecret {
    /// The value, from 8 characters to 64 KiB.
    pub value: String,
    /// Whether jobs of all users can use it; requires the permission `secret.manage`.
    #[serde(default)]
    pub shared: bool,
}

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretView {
    /// The name of its environment variable in jobs.
    pub name: String,
    /// Whether jobs of all users can use it.
    pub shared: bool,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Who changed it last.
    pub updated_by: String,
    /// When a job last received it; null for never.
    pub delivered_at: Option<Timestamp>,
}

/// `GET /api/secrets`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretsPage {
    /// The caller's own secrets and the shared ones, by name.
    pub secrets: Vec<SecretView>,
}

/// Query string of `DELETE /api/secrets/{name}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretQuery {
    /// Whether to delete the shared secret of this name.
    #[serde(default)]
    pub shared: bool,
}

/// `POST /api/workers/job/{id}/secrets`: the secrets of one attempt; requires its job token.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobSecrets {
    /// Environment variables of the trainer.
    pub secrets: BTreeMap<String, String>,
}
