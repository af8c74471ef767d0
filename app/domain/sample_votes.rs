//! Blind votes: which of two jobs has the better sample of the same prompt at the same step.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::domain::ids::JobId;

/// Two samples: of the same prompt at the same step, from two jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SamplePair {
    /// The jobs, in the order of their IDs.
    pub jobs: [JobId; 2],
    /// The step.
    pub step: u64,
    /// Identifies the prompt; the same in both jobs.
    pub sample: String,
}

impl SamplePair {
    /// Creates a pair of the samples of two jobs; none if they are the same job.
    pub fn new(one: JobId, other: JobId, step: u64, sample: String) -> Option<Self> {
        let mut jobs = [one, other];
        jobs.sort();
        (jobs[0] != jobs[1]).then_some(Self { jobs, step, sample })
    }
}

/// What a voter prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoteOutcome {
    /// The sample of the first job of the pair.
    First,
    /// The sample of the second job of the pair.
    Second,
    /// Neither.
    Tie,
}

/// The votes on the samples of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VoteTally {
    /// How often its sample was preferred.
    pub won: u32,
    /// How often the other one was.
    pub lost: u32,
    /// How often neither was.
    pub tied: u32,
}

impl VoteTally {
    /// The number of votes.
    pub const fn total(self) -> u32 {
        self.won.saturating_add(self.lost).saturating_add(self.tied)
    }

    /// The share of votes for it, from 0 to 1; a tie counts as half a vote. None without votes.
    pub fn share(self) -> Option<f64> {
        (self.total() > 0).then(|| (f64::from(self.won) + f64::from(self.tied) / 2.0) / f64::from(self.total()))
    }

    /// Counts votes on a pair for one of its jobs.
    pub fn count(&mut self, is_first: bool, outcome: VoteOutcome, number: u32) {
        let votes = match (outcome, is_first) {
            (VoteOutcome::Tie, _) => &mut self.tied,
            (VoteOutcome::First, true) | (VoteOutcome::Second, false) => &mut self.won,
            (VoteOutcome::First, false) | (VoteOutcome::Second, true) => &mut self.lost,
        };
        *votes = votes.saturating_add(number);
    }
}

/// Returns all pairs of samples of these jobs.
pub fn sample_pairs(jobs: &BTreeMap<JobId, BTreeSet<(u64, String)>>) -> Vec<SamplePair> {
    let mut pairs = Vec::new();
    let mut rest = jobs.iter();
    while let Some((job, samples)) = rest.next() {
        for (other, others) in rest.clone() {
            let common = samples.intersection(others);
            let pair = |(step, sample): &(u64, String)| SamplePair {
                jobs: [job.clone(), other.clone()],
                step: *step,
                sample: sample.clone(),
            };
            pairs.extend(common.map(pair));
        }
    }
    pairs
}

/// Returns the next pair for a voter, and whether its second sample is shown first. The order is the same for one voter,
/// and independent of the jobs.
pub fn next_pair<'p>(
    pairs: &'p [SamplePair],
    done: &BTreeSet<SamplePair>,
    voter: &str,
) -> Option<(&'p SamplePair, bool)> {
    let place = |pair: &SamplePair| {
        let mut hasher = DefaultHasher::new();
        (voter, pair).hash(&mut hasher);
        hasher.finish()
    };
    let pair = pairs.iter().filter(|pair| !done.contains(pair)).min_by_key(|pair| place(pair))?;
    Some((pair, place(pair) % 2 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::job_id as id;

    fn samples(names: &[(u64, &str)]) -> BTreeSet<(u64, String)> {
        names.iter().map(|(step, name)| (*step, (*name).to_owned())).collect()
    }

    #[test]
    fn pairs_have_the_same_prompt_and_step() {
        let jobs = BTreeMap::from([
            (id(1), samples(&[(100, "cat"), (200, "cat"), (200, "dog")])),
            (id(2), samples(&[(200, "cat"), (200, "dog")])),
            (id(3), samples(&[(100, "cat")])),
        ]);
        let found: Vec<_> = sample_pairs(&jobs).into_iter().map(|pair| (pair.jobs, pair.step, pair.sample)).collect();
        let expected = [
            ([id(1), id(2)], 200, "cat".to_owned()),
            ([id(1), id(2)], 200, "dog".to_owned()),
            ([id(1), id(3)], 100, "cat".to_owned()),
        ];
        assert_eq!(found, expected);
        assert_eq!(sample_pairs(&BTreeMap::from([(id(1), samples(&[(1, "cat")]))])), []);
        assert_eq!(SamplePair::new(id(1), id(1), 1, String::new()), None);
    }

    #[test]
    fn each_pair_is_shown_once_in_an_order_of_the_voter() {
        let jobs = [1, 2, 3].map(|n| (id(n), samples(&[(1, "a"), (1, "b"), (2, "a"), (2, "b")])));
        let pairs = sample_pairs(&jobs.into());
        let order = |voter: &str| {
            let (mut voted, mut order, mut swapped) = (BTreeSet::new(), Vec::new(), 0);
            while let Some((pair, is_swapped)) = next_pair(&pairs, &voted, voter) {
                voted.insert(pair.clone());
                order.push(pair.clone());
                swapped += usize::from(is_swapped);
            }
            assert!(swapped > 0 && swapped < pairs.len(), "both jobs are shown first: {swapped}");
            order
        };
        assert_eq!(order("ada").len(), 12);
        assert_eq!(order("ada"), order("ada"));
        assert_ne!(order("ada"), order("eve"));
    }

    #[test]
    fn tie_is_half_a_vote() {
        let mut tally = VoteTally::default();
        assert_eq!(tally.share(), None);
        tally.count(true, VoteOutcome::First, 2);
        tally.count(false, VoteOutcome::First, 1);
        tally.count(false, VoteOutcome::Tie, 1);
        assert_eq!(tally, VoteTally { won: 2, lost: 1, tied: 1 });
        assert_eq!(tally.share(), Some(0.625));
    }
}
