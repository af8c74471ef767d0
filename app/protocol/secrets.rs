//! Secrets for jobs: values that go in and never come out, but into the environment of a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// `PUT /api/secrets/{name}`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PutSecret {
    /// The value: 8 characters or more, 64 KiB at most.
    pub value: String,
    /// Whether everybody's jobs are given it; that takes the permission `secret.manage`.
    #[serde(default)]
    pub shared: bool,
}

/// What is kept of a secret; never its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretView {
    /// The name of the variable that holds it in a job's environment.
    pub name: String,
    /// Whether everybody's jobs are given it.
    pub shared: bool,
    /// When it was set.
    pub updated_at: Timestamp,
    /// Who set it.
    pub updated_by: String,
    /// When a job was last given it; null for never.
    pub given_at: Option<Timestamp>,
}

/// `GET /api/secrets`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretsPage {
    /// The caller's own and the shared ones, by name.
    pub secrets: Vec<SecretView>,
}

/// `DELETE /api/secrets/{name}`, the query string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretQuery {
    /// Whether the shared one is meant.
    #[serde(default)]
    pub shared: bool,
}

/// `POST /api/workers/job/{id}/secrets`: what one attempt is given, opened by its job token.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobSecrets {
    /// Variables of the trainer's environment.
    pub secrets: BTreeMap<String, String>,
}
