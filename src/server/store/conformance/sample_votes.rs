//! Blind votes on samples.

use app::domain::ids::JobId;
use app::domain::sample_votes::{SamplePair, VoteOutcome, VoteTally};
use app::domain::time::Timestamp;

use super::{NOW, TestStore, job, on_every_engine};

on_every_engine!(votes_are_replaced_counted_and_forgotten);

fn pair(one: u8, other: u8, sample: &str) -> SamplePair {
    SamplePair::new(job(one).id, job(other).id, 400, sample.to_owned()).expect("two jobs")
}

async fn votes_are_replaced_counted_and_forgotten(store: &TestStore) {
    for number in 1..4 {
        store.insert_job(&job(number)).await;
    }
    let votes = [
        ("ada", pair(1, 2, "cat"), VoteOutcome::First),
        ("ada", pair(1, 2, "dog"), VoteOutcome::Tie),
        ("ada", pair(2, 3, "cat"), VoteOutcome::First),
        ("eve", pair(1, 2, "cat"), VoteOutcome::Second),
        ("eve", pair(1, 2, "cat"), VoteOutcome::First),
    ];
    let put = votes.clone();
    let write = store.write(move |tx| {
        let put = put.clone();
        Box::pin(async move {
            for ((voter, pair, outcome), at) in put.iter().zip(0..) {
                tx.put_sample_vote(voter, pair, *outcome, Timestamp(NOW.0 + at)).await?;
            }
            tx.set_vote_tally(&job(1), VoteTally { won: 2, lost: 0, tied: 1 }).await
        })
    });
    write.await.expect("valid");
    let ids: Vec<JobId> = [1, 2, 3].map(|number| job(number).id).into();
    let mut tx = store.read().await;
    let found = tx.sample_votes("ada", &ids).await.expect("readable");
    assert_eq!(found, votes[..3].iter().map(|(_, pair, outcome)| (pair.clone(), *outcome)).collect::<Vec<_>>());
    assert_eq!(tx.sample_votes("ada", &ids[1..]).await.expect("readable").len(), 1, "both jobs are among them");
    assert_eq!((tx.number_of_votes("ada").await, tx.number_of_votes("bob").await), (Ok(3), Ok(0)));
    let tallies = tx.vote_tallies(&ids).await.expect("readable");
    let expected = [
        VoteTally { won: 2, lost: 0, tied: 1 },
        VoteTally { won: 1, lost: 2, tied: 1 },
        VoteTally { won: 0, lost: 1, tied: 0 },
    ];
    assert_eq!(tallies.into_values().collect::<Vec<_>>(), expected);
    let rows = tx.index_rows(&[job(1).id].into()).await.expect("readable");
    assert_eq!(rows[0].vote_tally.as_deref(), Some("[2,0,1]"));
}
