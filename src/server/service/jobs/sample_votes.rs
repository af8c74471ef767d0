//! Blind votes on samples of two jobs, kept as a metric of each.

use std::sync::Arc;

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::ids::JobId;
use app::domain::sample_votes::{SamplePair, VoteOutcome};
use app::domain::text::is_plain;
use app::protocol::jobs::votes::{SampleVote, SampleVotes};
use app::protocol::topic::Topic;

use super::JobService;
use super::compare::requested_ids;
use super::views::visible_jobs_by_id;
use crate::service::access::Principal;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::unit_of_work::Caller;

/// The maximum length of what identifies a sample, in characters.
const MAX_SAMPLE_CHARS: usize = 300;
/// The maximum number of votes of a user.
const MAX_VOTES: u64 = 100_000;

impl JobService {
    /// Returns the votes on samples of these jobs: those of the user, and the numbers of all votes.
    pub async fn sample_votes(&self, principal: &Principal, ids: &str) -> Result<SampleVotes, ServiceError> {
        let ids: Vec<JobId> = requested_ids(ids)?.iter().filter_map(|id| JobId::parse(id).ok()).collect();
        let tx = &mut *self.context.read().await?;
        let jobs = visible_jobs_by_id(tx, principal, &ids).await?;
        let ids: Vec<JobId> = jobs.into_iter().map(|job| job.id).collect();
        let own = tx.sample_votes(&principal.name, &ids).await?.into_iter();
        Ok(SampleVotes {
            own: own.map(|(pair, outcome)| vote_view(pair, outcome)).collect(),
            tallies: tx.vote_tallies(&ids).await?.into_iter().map(|(job, tally)| (job, tally.into())).collect(),
        })
    }

    /// Records a vote of the user.
    pub async fn vote_on_samples(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        vote: SampleVote,
    ) -> Result<(), ServiceError> {
        let (pair, outcome) = parse_vote(vote)?;
        let input = Arc::new((principal.clone(), pair, outcome));
        self.context
            .change(caller, move |unit| {
                let input = Arc::clone(&input);
                Box::pin(async move {
                    let (principal, pair, outcome) = &*input;
                    let jobs = visible_jobs_by_id(unit.tx, principal, &pair.jobs).await?;
                    if let Some(missing) = pair.jobs.iter().find(|id| !jobs.iter().any(|job| job.id == **id)) {
                        return Err(ServiceError::JobNotFound(missing.clone()));
                    }
                    if unit.tx.number_of_votes(&principal.name).await? >= MAX_VOTES {
                        return Err(InvalidInput::TooMuch { items: LimitedItems::Votes, limit: MAX_VOTES }.into());
                    }
                    unit.tx.put_sample_vote(&principal.name, pair, *outcome, unit.now).await?;
                    let tallies = unit.tx.vote_tallies(&pair.jobs).await?;
                    for job in &jobs {
                        unit.tx.set_vote_tally(job, tallies.get(&job.id).copied().unwrap_or_default()).await?;
                        unit.notify(Topic::Job(job.id.clone()));
                    }
                    Ok(())
                })
            })
            .await
    }
}

fn parse_vote(vote: SampleVote) -> Result<(SamplePair, VoteOutcome), InvalidInput> {
    let SampleVote { jobs: [one, other], step, sample, better } = vote;
    if sample.is_empty() || !is_plain(&sample, MAX_SAMPLE_CHARS) {
        let allowed = AllowedValues::VisibleCharacters { min: 1, max: MAX_SAMPLE_CHARS as u64 };
        return Err(InvalidInput::OutOfRange { field: "sample", allowed });
    }
    let not_two = InvalidInput::OutOfRange { field: "jobs", allowed: AllowedValues::JobIds { min: 2, max: 2 } };
    let pair = SamplePair::new(one, other, step, sample).ok_or(not_two)?;
    let outcome = match &better {
        None => VoteOutcome::Tie,
        Some(job) if *job == pair.jobs[0] => VoteOutcome::First,
        Some(job) if *job == pair.jobs[1] => VoteOutcome::Second,
        Some(_) => {
            let allowed = AllowedValues::JobIds { min: 1, max: 1 };
            return Err(InvalidInput::OutOfRange { field: "better", allowed });
        }
    };
    Ok((pair, outcome))
}

fn vote_view(pair: SamplePair, outcome: VoteOutcome) -> SampleVote {
    let better = match outcome {
        VoteOutcome::First => Some(pair.jobs[0].clone()),
        VoteOutcome::Second => Some(pair.jobs[1].clone()),
        VoteOutcome::Tie => None,
    };
    SampleVote { jobs: pair.jobs, step: pair.step, sample: pair.sample, better }
}
