//! The lifetime of worker tokens.

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// When a new token expires: one of the two fields, or neither for never. A token also expires if no agent registers
/// with it within the server's limit (30 days).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenLifetime {
    /// At this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// After this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u32>,
}

/// `POST /api/admin/workers/{id}/token`; the body is optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RotateToken {
    /// When the new token expires.
    #[serde(flatten)]
    pub lifetime: TokenLifetime,
    /// The old token stays valid for this many seconds, at most 604800, or until an agent registers with the new one.
    /// If omitted, it is invalid immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_seconds: Option<u32>,
}
