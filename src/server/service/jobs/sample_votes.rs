//! Blind votes on samples of two jobs, stored as a metric of each.

use std::sync::Arc;

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::sample_names::is_image_of;
use app::domain::sample_votes::{SamplePair, VoteOutcome};
use app::protocol::jobs::votes::{SampleVote, SampleVotes};
use app::protocol::status::ArtifactKind;
use app::protocol::topic::Topic;

use super::JobService;
use super::compare::requested_ids;
use super::views::visible_jobs_by_id;
use crate::service::access::Principal;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::unit_of_work::Caller;
use crate::store::Tx;
use crate::store::artifacts::StoredArtifact;

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
        // Jobs can have many files, so this does not delay other changes.
        require_samples(&mut *self.context.read().await?, principal, &pair).await?;
        let input = Arc::new((principal.clone(), pair, outcome));
        self.context
            .change(caller, move |unit| {
                let input = Arc::clone(&input);
                Box::pin(async move {
                    let (principal, pair, outcome) = &*input;
                    let jobs = visible_pair(unit.tx, principal, pair).await?;
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

/// Returns both jobs, if the user may see them.
async fn visible_pair(tx: &mut dyn Tx, principal: &Principal, pair: &SamplePair) -> Result<Vec<Job>, ServiceError> {
    let jobs = visible_jobs_by_id(tx, principal, &pair.jobs).await?;
    match pair.jobs.iter().find(|id| !jobs.iter().any(|job| job.id == **id)) {
        Some(missing) => Err(ServiceError::JobNotFound(missing.clone())),
        None => Ok(jobs),
    }
}

/// Fails unless both jobs have an image of the sample.
async fn require_samples(tx: &mut dyn Tx, principal: &Principal, pair: &SamplePair) -> Result<(), ServiceError> {
    visible_pair(tx, principal, pair).await?;
    let is_image = |file: &StoredArtifact| {
        file.kind == ArtifactKind::Sample.as_str() && is_image_of(&file.path, pair.step, &pair.sample)
    };
    for job in &pair.jobs {
        if !tx.artifacts(job).await?.iter().any(is_image) {
            let allowed = AllowedValues::SharedSample { step: pair.step };
            return Err(InvalidInput::OutOfRange { field: "sample", allowed }.into());
        }
    }
    Ok(())
}

fn parse_vote(vote: SampleVote) -> Result<(SamplePair, VoteOutcome), InvalidInput> {
    let SampleVote { jobs: [one, other], step, sample, better } = vote;
    let not_two = InvalidInput::OutOfRange { field: "jobs", allowed: AllowedValues::JobIds { min: 2, max: 2 } };
    let pair = SamplePair::new(one, other, step, sample).ok_or(not_two)?;
    let outcome = match &better {
        None => VoteOutcome::Tie,
        Some(job) if *job == pair.jobs[0] => VoteOutcome::First,
        Some(job) if *job == pair.jobs[1] => VoteOutcome::Second,
        Some(_) => return Err(InvalidInput::OutOfRange { field: "better", allowed: AllowedValues::ComparedJob }),
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
