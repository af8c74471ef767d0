//! Blind votes on samples.

use std::collections::BTreeMap;

use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::sample_votes::{SamplePair, VoteOutcome, VoteTally};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;

#[async_trait]
pub trait SampleVoteQueries {
    /// The votes of a user between these jobs, the oldest first.
    async fn sample_votes(&mut self, voter: &str, jobs: &[JobId]) -> Result<Vec<(SamplePair, VoteOutcome)>>;
    /// Inserts a vote, or replaces the one of the same voter on the same samples.
    async fn put_sample_vote(
        &mut self,
        voter: &str,
        pair: &SamplePair,
        outcome: VoteOutcome,
        at: Timestamp,
    ) -> Result<()>;
    /// The number of votes of a user.
    async fn number_of_votes(&mut self, voter: &str) -> Result<u64>;
    /// The votes of all users on each of these jobs, without jobs that have none.
    async fn vote_tallies(&mut self, jobs: &[JobId]) -> Result<BTreeMap<JobId, VoteTally>>;
    /// Writes the votes on a job to its row, for the index of jobs.
    async fn set_vote_tally(&mut self, job: &Job, tally: VoteTally) -> Result<()>;
}
