//! `sample_votes`.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::sample_votes::{SamplePair, VoteOutcome, VoteTally};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;
use crate::store::cache::state::StateChange;
use crate::store::jobs::sample_votes::SampleVoteQueries;
use crate::store::sql::rows::{NamedRow, to_json};
use crate::store::sql::statement::sql;
use crate::store::sql::{SqlRow, SqlSession};

#[async_trait]
impl SampleVoteQueries for SqlSession<'_> {
    async fn sample_votes(&mut self, voter: &str, jobs: &[JobId]) -> Result<Vec<(SamplePair, VoteOutcome)>> {
        let select = self.for_engine(
            "SELECT * FROM sample_votes WHERE voter = $1 AND first_job IN (SELECT value FROM json_each($2))
             AND second_job IN (SELECT value FROM json_each($2)) ORDER BY voted_at",
            "SELECT * FROM sample_votes WHERE voter = $1 AND first_job IN (SELECT json_array_elements_text($2::json))
             AND second_job IN (SELECT json_array_elements_text($2::json)) ORDER BY voted_at",
        );
        self.fetch_valid(select.bind(voter).bind(to_json(&jobs)), vote_from).await
    }

    async fn put_sample_vote(
        &mut self,
        voter: &str,
        pair: &SamplePair,
        outcome: VoteOutcome,
        at: Timestamp,
    ) -> Result<()> {
        let put = sql("INSERT INTO sample_votes (voter, first_job, second_job, step, sample, outcome, voted_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (voter, first_job, second_job, step, sample) DO UPDATE SET outcome = excluded.outcome,
               voted_at = excluded.voted_at");
        let [first, second] = &pair.jobs;
        let step = i64::try_from(pair.step).unwrap_or(i64::MAX);
        let put = put.bind(voter).bind(first.as_str()).bind(second.as_str()).bind(step).bind(&pair.sample);
        self.execute_one(put.bind(number_of(outcome)).bind(at.0)).await
    }

    async fn number_of_votes(&mut self, voter: &str) -> Result<u64> {
        let count = sql("SELECT count(*) AS number FROM sample_votes WHERE voter = $1").bind(voter);
        let row = self.fetch_first(count).await?;
        row.map_or(Ok(0), |row| Ok(row.get::<i64>("number")?.unsigned_abs()))
    }

    async fn vote_tallies(&mut self, jobs: &[JobId]) -> Result<BTreeMap<JobId, VoteTally>> {
        let mut tallies: BTreeMap<JobId, VoteTally> = BTreeMap::new();
        let first = self.for_engine(
            "SELECT first_job AS job_id, outcome, count(*) AS number FROM sample_votes
             WHERE first_job IN (SELECT value FROM json_each($1)) GROUP BY first_job, outcome",
            "SELECT first_job AS job_id, outcome, count(*) AS number FROM sample_votes
             WHERE first_job IN (SELECT json_array_elements_text($1::json)) GROUP BY first_job, outcome",
        );
        let second = self.for_engine(
            "SELECT second_job AS job_id, outcome, count(*) AS number FROM sample_votes
             WHERE second_job IN (SELECT value FROM json_each($1)) GROUP BY second_job, outcome",
            "SELECT second_job AS job_id, outcome, count(*) AS number FROM sample_votes
             WHERE second_job IN (SELECT json_array_elements_text($1::json)) GROUP BY second_job, outcome",
        );
        for (is_first, select) in [(true, first), (false, second)] {
            let count = |row: &SqlRow| {
                let row = NamedRow::new(row, "sample_votes", "job_id")?;
                Ok((row.job_id("job_id")?, outcome_from(&row)?, row.number("number")?))
            };
            for (job, outcome, number) in self.fetch_valid(select.bind(to_json(&jobs)), count).await? {
                tallies.entry(job).or_default().count(is_first, outcome, number);
            }
        }
        Ok(tallies)
    }

    async fn set_vote_tally(&mut self, job: &Job, tally: VoteTally) -> Result<()> {
        self.require_writer()?;
        let VoteTally { won, lost, tied } = tally;
        let update = sql("UPDATE jobs SET vote_tally = $1 WHERE id = $2").bind(to_json(&[won, lost, tied]));
        self.execute_one(update.bind(job.id.as_str())).await?;
        self.record_change(StateChange::Job(Arc::new(job.clone())));
        Ok(())
    }
}

const fn number_of(outcome: VoteOutcome) -> i64 {
    match outcome {
        VoteOutcome::First => 1,
        VoteOutcome::Second => 2,
        VoteOutcome::Tie => 0,
    }
}

fn outcome_from(row: &NamedRow<'_>) -> Result<VoteOutcome> {
    match row.get::<i64>("outcome")? {
        1 => Ok(VoteOutcome::First),
        2 => Ok(VoteOutcome::Second),
        0 => Ok(VoteOutcome::Tie),
        other => Err(row.corrupt(format!("outcome is {other}"))),
    }
}

fn vote_from(row: &SqlRow) -> Result<(SamplePair, VoteOutcome)> {
    let row = NamedRow::new(row, "sample_votes", "first_job")?;
    let (first, second) = (row.job_id("first_job")?, row.job_id("second_job")?);
    let step = row.get::<i64>("step")?.unsigned_abs();
    let pair = SamplePair::new(first, second, step, row.get("sample")?);
    let pair = pair.ok_or_else(|| row.corrupt("both jobs are the same".to_owned()))?;
    Ok((pair, outcome_from(&row)?))
}
