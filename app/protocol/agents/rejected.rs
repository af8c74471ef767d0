//! Rejected agents, in the view of their worker.

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// Two agents used one token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenConflictView {
    /// When the rejected agent connected.
    pub at: Timestamp,
    /// Its host, if known.
    pub host: String,
}

/// A rejected registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RejectedAgentView {
    /// When it happened.
    pub at: Timestamp,
    /// The code of the problem in the response.
    pub reason: String,
    /// The client's address, if known.
    pub from: Option<String>,
}
