//! Artifacts: the files that a job has uploaded.

pub mod checkpoints;

use serde::{Deserialize, Serialize};

use super::status::ArtifactKind;
use crate::domain::ids::{AttemptNumber, JobId};
use crate::domain::time::Timestamp;

/// `GET /api/queue/{id}/artifacts`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactsPage {
    /// The artifacts, by path.
    pub artifacts: Vec<ArtifactView>,
    /// The checkpoint that the next attempt would resume from, if there is a complete one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_from: Option<ResumePointView>,
}

/// A complete checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumePointView {
    /// The job that created it: this job, or one that it retries.
    pub job_id: JobId,
    /// The attempt that created it.
    pub attempt: AttemptNumber,
    /// The name of its directory.
    pub name: String,
}

/// A file that a job has uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactView {
    /// Path below the job's output directory.
    pub path: String,
    /// The attempt that uploaded it.
    pub attempt: AttemptNumber,
    /// The kind of file.
    pub kind: ArtifactKind,
    /// Size in bytes.
    pub size_bytes: u64,
    /// SHA-256 in hex.
    pub sha256: String,
    /// When it was stored.
    pub created_at: Timestamp,
    /// The URL to download it from.
    pub url: String,
}
