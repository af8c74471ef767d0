//! What is given up of ended jobs.

use app::domain::ids::{Attempt, JobId};
use app::domain::job::Job;
use app::domain::time::Timestamp;

use super::{Fresh, NOW, job, on_every_engine};
use crate::store::StoreError;
use crate::store::artifacts::StoredArtifact;
use crate::store::checkpoints::StoredCheckpoint;
use crate::store::retention::{Files, What};

on_every_engine!(
    only_what_ended_long_ago_is_given_up_and_each_once,
    what_is_given_up_is_marked_until_it_is_gone,
    artifacts_are_added_up_and_found_by_age,
    of_an_earlier_checkpoint_every_file_is_given_up_and_marked,
    a_single_file_is_given_up_and_marked,
    whether_a_job_has_many_artifacts_is_told_beside_the_one_that_is_replaced,
);

/// A job that was cancelled then.
async fn ended(fresh: &Fresh, n: u8, at: i64) -> JobId {
    let queued = job(n);
    fresh.insert_job(&queued).await;
    let cancelled: Job = queued.clone().cancelled(Timestamp(NOW.0 + at)).expect("it waits");
    fresh.update_job(&queued, &cancelled).await.expect("unchanged");
    queued.id
}

async fn put(fresh: &Fresh, job: &JobId, size: u64) {
    put_at(fresh, job, 1, "a", size).await;
}

async fn put_at(fresh: &Fresh, job: &JobId, attempt: u32, path: &'static str, size: u64) {
    let job = job.clone();
    let put = fresh.write(move |tx| {
        let job = job.clone();
        Box::pin(async move {
            let artifact = StoredArtifact {
                path: path.to_owned(),
                attempt: Attempt(attempt),
                kind: "final".to_owned(),
                size,
                sha256: String::new(),
                created_at: NOW,
            };
            tx.put_artifact(&job, &artifact).await
        })
    });
    put.await.expect("written");
}

async fn give_up(fresh: &Fresh, what: What, job: &JobId) -> Result<(), StoreError> {
    let job = job.clone();
    fresh
        .write(move |tx| {
            let job = job.clone();
            Box::pin(async move { tx.give_up(what, &job).await })
        })
        .await
}

async fn unmark(fresh: &Fresh, job: &JobId, files: Files) {
    let job = job.clone();
    let unmark = fresh.write(move |tx| {
        let (job, files) = (job.clone(), files.clone());
        Box::pin(async move { tx.unmark(&job, &files).await })
    });
    unmark.await.expect("written");
}

async fn old(fresh: &Fresh, what: What) -> Vec<JobId> {
    fresh.read().await.ended_before(what, Timestamp(NOW.0 + 20_000), 10).await.expect("readable")
}

async fn only_what_ended_long_ago_is_given_up_and_each_once(fresh: &Fresh) {
    let (second, first) = (ended(fresh, 1, 10_001).await, ended(fresh, 2, 10_000).await);
    ended(fresh, 3, 20_000).await;
    fresh.insert_job(&job(4)).await;
    for what in [What::Logs, What::Artifacts, What::Job] {
        assert_eq!(old(fresh, what).await, [first.clone(), second.clone()], "{what:?}");
        give_up(fresh, what, &first).await.expect("there");
        assert_eq!(old(fresh, what).await, std::slice::from_ref(&second), "{what:?}");
    }
    assert_eq!(fresh.read().await.job(&first).await, Ok(None));
    assert_eq!(give_up(fresh, What::Job, &first).await, Err(StoreError::Conflict));
    assert_eq!(fresh.read().await.ended_before(What::Job, Timestamp(i64::MAX), 1).await.map(|jobs| jobs.len()), Ok(1));
}

async fn what_is_given_up_is_marked_until_it_is_gone(fresh: &Fresh) {
    let job = ended(fresh, 1, 10_000).await;
    put(fresh, &job, 5).await;
    give_up(fresh, What::Artifacts, &job).await.expect("there");
    give_up(fresh, What::Job, &job).await.expect("marks may be there already");
    assert_eq!(fresh.read().await.artifacts(&job).await, Ok(Vec::new()));
    let marks = vec![(job.clone(), Files::Artifacts), (job.clone(), Files::Logs)];
    assert_eq!(fresh.read().await.marked(9).await, Ok(marks));
    for files in [Files::Logs, Files::Artifacts] {
        unmark(fresh, &job, files).await;
    }
    assert_eq!(fresh.read().await.marked(9).await, Ok(Vec::new()));
}

async fn artifacts_are_added_up_and_found_by_age(fresh: &Fresh) {
    assert_eq!(fresh.read().await.artifact_bytes().await, Ok(0));
    let (newer, older) = (ended(fresh, 1, 10_001).await, ended(fresh, 2, 10_000).await);
    let living = job(3);
    fresh.insert_job(&living).await;
    for (job, size) in [(&newer, 7), (&older, 5 << 40), (&living.id, 1)] {
        put(fresh, job, size).await;
    }
    assert_eq!(fresh.read().await.artifact_bytes().await, Ok((5 << 40) + 8));
    assert_eq!(fresh.read().await.oldest_artifacts(9).await, Ok(vec![(older, 5 << 40), (newer, 7)]));
}

async fn of_an_earlier_checkpoint_every_file_is_given_up_and_marked(fresh: &Fresh) {
    let (queued, other) = (job(1), job(2));
    for one in [&queued, &other] {
        fresh.insert_job(one).await;
        for (attempt, path) in [
            (1, "checkpoint-5/a"),
            (1, "checkpoint-5/b/c"),
            (1, "checkpoint-50/a"),
            (1, "Checkpoint-5/a"),
            (2, "checkpoint-5/a"),
            (1, "a"),
        ] {
            put_at(fresh, &one.id, attempt, path, 7).await;
        }
    }
    let id = queued.id.clone();
    let given_up = fresh.write(move |tx| {
        let id = id.clone();
        Box::pin(async move {
            for (attempt, name) in [(1, "checkpoint-5"), (2, "checkpoint-5")] {
                let (attempt, name) = (Attempt(attempt), name.to_owned());
                let checkpoint = StoredCheckpoint { attempt, name, step: 5, files: "[]".to_owned(), created_at: NOW };
                tx.put_checkpoint(&id, &checkpoint).await?;
            }
            tx.give_up_checkpoint(&id, Attempt(1), "checkpoint-5").await?;
            tx.give_up_checkpoint(&id, Attempt(1), "checkpoint-5").await
        })
    });
    given_up.await.expect("what is given up already may be given up again");
    let mut tx = fresh.read().await;
    let file = |attempt: u32, path: &str| (Attempt(attempt), path.to_owned());
    assert_eq!(
        tx.checkpoint_files(&queued.id).await,
        Ok(vec![file(1, "checkpoint-50/a"), file(2, "checkpoint-5/a")]),
        "nobody else's, nor what is only called alike"
    );
    assert_eq!(tx.artifacts_of(&queued.id, Attempt(1)).await.map(|files| files.len()), Ok(3));
    assert_eq!(tx.checkpoint_files(&other.id).await.map(|files| files.len()), Ok(4));
    let left = tx.checkpoints(&queued.id).await.expect("readable");
    assert_eq!(left.iter().map(|checkpoint| checkpoint.attempt).collect::<Vec<_>>(), [Attempt(2)]);
    let one = |path: &str| (queued.id.clone(), Files::Artifact { attempt: Attempt(1), path: path.to_owned() });
    assert_eq!(tx.marked(9).await, Ok(vec![one("checkpoint-5/a"), one("checkpoint-5/b/c")]));
    drop(tx);
    unmark(fresh, &queued.id, one("checkpoint-5/a").1).await;
    let mut tx = fresh.read().await;
    assert_eq!(tx.marked(9).await, Ok(vec![one("checkpoint-5/b/c")]));
    assert_eq!(tx.is_marked(&queued.id, &one("checkpoint-5/b/c").1).await, Ok(true));
    assert_eq!(tx.is_marked(&queued.id, &one("checkpoint-5/a").1).await, Ok(false));
}

async fn a_single_file_is_given_up_and_marked(fresh: &Fresh) {
    let queued = job(1);
    fresh.insert_job(&queued).await;
    for (attempt, path) in [(1, "a"), (2, "a"), (1, "ab")] {
        put_at(fresh, &queued.id, attempt, path, 7).await;
    }
    let id = queued.id.clone();
    let given_up = fresh.write(move |tx| {
        let id = id.clone();
        Box::pin(async move {
            tx.give_up_file(&id, Attempt(1), "a").await?;
            tx.give_up_file(&id, Attempt(1), "never recorded").await
        })
    });
    given_up.await.expect("written");
    let mut tx = fresh.read().await;
    let left: Vec<String> =
        tx.artifacts_of(&queued.id, Attempt(1)).await.expect("readable").into_iter().map(|file| file.path).collect();
    assert_eq!(
        (left, tx.artifacts_of(&queued.id, Attempt(2)).await.map(|files| files.len())),
        (vec!["ab".into()], Ok(1))
    );
    let one = |path: &str| (queued.id.clone(), Files::Artifact { attempt: Attempt(1), path: path.to_owned() });
    assert_eq!(tx.marked(9).await, Ok(vec![one("a"), one("never recorded")]));
}

async fn whether_a_job_has_many_artifacts_is_told_beside_the_one_that_is_replaced(fresh: &Fresh) {
    let (queued, other) = (job(1), job(2));
    for one in [&queued, &other] {
        fresh.insert_job(one).await;
        for (attempt, path) in [(1, "a"), (2, "a"), (1, "b")] {
            put_at(fresh, &one.id, attempt, path, 7).await;
        }
    }
    let mut tx = fresh.read().await;
    for (attempt, path, number) in [(1, "new", 3), (3, "a", 3), (1, "a", 2)] {
        let beside = (Attempt(attempt), path);
        assert_eq!(tx.has_artifacts(&queued.id, beside, number).await, Ok(true), "{path} of {attempt}");
        assert_eq!(tx.has_artifacts(&queued.id, beside, number + 1).await, Ok(false), "{path} of {attempt}");
    }
    assert_eq!(tx.has_artifacts(&queued.id, (Attempt(1), "a"), 0).await, Ok(true));
}
