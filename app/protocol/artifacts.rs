//! The files that a job made.

use serde::{Deserialize, Serialize};

use super::status::ArtifactKind;
use crate::domain::ids::{Attempt, JobId};
use crate::domain::time::Timestamp;

/// `GET /api/queue/{id}/artifacts`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactsPage {
    /// By path.
    pub artifacts: Vec<ArtifactView>,
    /// From where an attempt that follows would go on, if there is a whole checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_from: Option<ResumePoint>,
}

/// A whole checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumePoint {
    /// The job that made it: this one, or one that it tries again.
    pub job_id: JobId,
    /// The attempt that made it.
    pub attempt: Attempt,
    /// Its directory's name.
    pub name: String,
}

/// A file that a job made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactView {
    /// Path below the job's output directory.
    pub path: String,
    /// Which attempt made it.
    pub attempt: Attempt,
    /// What it is.
    pub kind: ArtifactKind,
    /// Size in bytes.
    pub size_bytes: u64,
    /// SHA-256 in hex.
    pub sha256: String,
    /// When it arrived.
    pub created_at: Timestamp,
    /// Where to download it.
    pub url: String,
}
