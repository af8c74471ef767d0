//! The family of a job: what it comes from, and what comes from it, by retries and forks.

use serde::{Deserialize, Serialize};

use crate::domain::ids::JobId;
use crate::domain::time::Timestamp;
use crate::protocol::status::JobStatus;

/// The family of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobFamily {
    /// Each job before those that come from it, which are in the order of their submits.
    pub jobs: Vec<FamilyMember>,
    /// Whether there are more jobs than these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
}

/// A job of a family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FamilyMember {
    /// The job.
    pub job_id: JobId,
    /// How many of the listed jobs it comes from.
    pub depth: u32,
    /// Its name, if it has one, else its configuration and number.
    pub title: String,
    /// Its configuration and number.
    pub config: String,
    /// Its status.
    pub status: JobStatus,
    /// Where it started: `scratch`, `newest`, or a checkpoint's name; none for a job that comes from no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<String>,
    /// Who submitted it.
    pub submitted_by: String,
    /// When.
    pub submitted_at: Timestamp,
}

impl JobFamily {
    /// An example for tests and documentation.
    pub fn example() -> Self {
        let member = |number: u8, depth, resume_from: Option<&str>| FamilyMember {
            job_id: JobId::new(Timestamp(1_705_310_000_000), [number; 10]),
            depth,
            title: format!("digits #{number}"),
            config: format!("digits #{number}"),
            status: JobStatus::Completed,
            resume_from: resume_from.map(str::to_owned),
            submitted_by: "ada".to_owned(),
            submitted_at: Timestamp(1_705_310_000_000),
        };
        Self { jobs: vec![member(1, 0, None), member(2, 1, Some("checkpoint-500"))], is_truncated: true }
    }
}
