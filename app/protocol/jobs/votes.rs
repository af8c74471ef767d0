//! Blind votes on samples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::ids::JobId;
use crate::domain::sample_votes::VoteTally;

/// `GET /api/queue/votes`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleVotesQuery {
    /// The IDs of 2 to 20 jobs, separated by commas.
    pub ids: String,
}

/// `POST /api/queue/votes`; also a vote of the caller. A second vote on the same samples replaces the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleVote {
    /// The two jobs.
    pub jobs: [JobId; 2],
    /// The step of both samples.
    pub step: u64,
    /// What identifies the prompt: what follows the step in the names of the files.
    pub sample: String,
    /// The job with the better sample; none if neither is better.
    pub better: Option<JobId>,
}

/// The votes on samples of some jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleVotes {
    /// The votes of the caller between these jobs.
    pub own: Vec<SampleVote>,
    /// The votes of all users on each job, also against other jobs.
    pub tallies: BTreeMap<JobId, VoteCounts>,
}

/// The votes on the samples of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VoteCounts {
    /// How often its sample was preferred.
    pub won: u32,
    /// How often the other one was.
    pub lost: u32,
    /// How often neither was.
    pub tied: u32,
}

impl From<VoteTally> for VoteCounts {
    fn from(VoteTally { won, lost, tied }: VoteTally) -> Self {
        Self { won, lost, tied }
    }
}

impl From<VoteCounts> for VoteTally {
    fn from(VoteCounts { won, lost, tied }: VoteCounts) -> Self {
        Self { won, lost, tied }
    }
}
