//! How long workers' tokens last.

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// When a new token ends: one of the two, or neither for never; then it still ends if no agent registers with it for as long
/// as the server is set to (30 days).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenLife {
    /// At this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// After so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u32>,
}

/// `POST /api/admin/workers/{id}/token`; the body may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RotateToken {
    /// When the new token ends.
    #[serde(flatten)]
    pub life: TokenLife,
    /// The old token works for so many seconds more, at most 604800, or until an agent registers with the new one. Left
    /// out, it opens nothing from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_seconds: Option<u32>,
}
