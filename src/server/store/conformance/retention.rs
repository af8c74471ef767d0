//! Retention of ended jobs.

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::{CheckpointRef, Job, JobSpec, StartPoint};
use app::domain::time::Timestamp;

use super::{NOW, TestStore, job, on_every_engine};
use crate::store::StoreError;
use crate::store::artifacts::StoredArtifact;
use crate::store::artifacts::checkpoints::StoredCheckpoint;
use crate::store::jobs::retention::{RemovedFiles, RetainedKind};

on_every_engine!(
    only_old_jobs_are_removed_and_each_once,
    removed_files_are_marked_until_deleted,
    artifacts_are_summed_and_found_by_age,
    resume_source_is_kept_until_its_job_ends,
    all_files_of_a_replaced_checkpoint_are_marked,
    single_file_is_removed_and_marked,
    artifact_count_excludes_the_replaced_file,
);

/// Inserts a job that was cancelled at `at`.
async fn insert_ended_job(fresh: &TestStore, n: u8, at: i64) -> JobId {
    let queued = job(n);
    fresh.insert_job(&queued).await;
    let cancelled: Job = queued.clone().cancelled(Timestamp(NOW.0 + at)).expect("it waits");
    fresh.update_job(&queued, &cancelled).await.expect("unchanged");
    queued.id
}

async fn put_artifact(fresh: &TestStore, job: &JobId, size: u64) {
    put_artifact_at(fresh, job, 1, "a", size).await;
}

async fn put_artifact_at(fresh: &TestStore, job: &JobId, attempt: u32, path: &'static str, size: u64) {
    let job = job.clone();
    let put = fresh.write(move |tx| {
        let job = job.clone();
        Box::pin(async move {
            let artifact = StoredArtifact {
                path: path.to_owned(),
                attempt: AttemptNumber(attempt),
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

async fn remove(fresh: &TestStore, kind: RetainedKind, job: &JobId) -> Result<(), StoreError> {
    let job = job.clone();
    fresh
        .write(move |tx| {
            let job = job.clone();
            Box::pin(async move { tx.remove_retained(kind, &job).await })
        })
        .await
}

async fn unmark(fresh: &TestStore, job: &JobId, files: RemovedFiles) {
    let job = job.clone();
    let unmark = fresh.write(move |tx| {
        let (job, files) = (job.clone(), files.clone());
        Box::pin(async move { tx.unmark(&job, &files).await })
    });
    unmark.await.expect("written");
}

async fn expired_jobs(fresh: &TestStore, kind: RetainedKind) -> Vec<JobId> {
    fresh.read().await.ended_before(kind, Timestamp(NOW.0 + 20_000), 10).await.expect("readable")
}

async fn only_old_jobs_are_removed_and_each_once(fresh: &TestStore) {
    let (second, first) = (insert_ended_job(fresh, 1, 10_001).await, insert_ended_job(fresh, 2, 10_000).await);
    insert_ended_job(fresh, 3, 20_000).await;
    fresh.insert_job(&job(4)).await;
    for kind in [RetainedKind::Logs, RetainedKind::Artifacts, RetainedKind::Job] {
        assert_eq!(expired_jobs(fresh, kind).await, [first.clone(), second.clone()], "{kind:?}");
        remove(fresh, kind, &first).await.expect("there");
        assert_eq!(expired_jobs(fresh, kind).await, std::slice::from_ref(&second), "{kind:?}");
    }
    assert_eq!(fresh.read().await.job(&first).await, Ok(None));
    assert_eq!(remove(fresh, RetainedKind::Job, &first).await, Err(StoreError::Conflict));
    assert_eq!(
        fresh.read().await.ended_before(RetainedKind::Job, Timestamp(i64::MAX), 1).await.map(|jobs| jobs.len()),
        Ok(1)
    );
}

async fn removed_files_are_marked_until_deleted(fresh: &TestStore) {
    let job = insert_ended_job(fresh, 1, 10_000).await;
    put_artifact(fresh, &job, 5).await;
    remove(fresh, RetainedKind::Artifacts, &job).await.expect("there");
    remove(fresh, RetainedKind::Job, &job).await.expect("marks may exist already");
    assert_eq!(fresh.read().await.artifacts(&job).await, Ok(Vec::new()));
    let marks = vec![(job.clone(), RemovedFiles::Artifacts), (job.clone(), RemovedFiles::Logs)];
    assert_eq!(fresh.read().await.marked_files(9).await, Ok(marks));
    for files in [RemovedFiles::Logs, RemovedFiles::Artifacts] {
        unmark(fresh, &job, files).await;
    }
    assert_eq!(fresh.read().await.marked_files(9).await, Ok(Vec::new()));
}

async fn artifacts_are_summed_and_found_by_age(fresh: &TestStore) {
    assert_eq!(fresh.read().await.artifact_bytes().await, Ok(0));
    let (newer, older) = (insert_ended_job(fresh, 1, 10_001).await, insert_ended_job(fresh, 2, 10_000).await);
    let queued = job(3);
    fresh.insert_job(&queued).await;
    for (job, size) in [(&newer, 7), (&older, 5 << 40), (&queued.id, 1)] {
        put_artifact(fresh, job, size).await;
    }
    assert_eq!(fresh.read().await.artifact_bytes().await, Ok((5 << 40) + 8));
    assert_eq!(fresh.read().await.oldest_artifacts(9).await, Ok(vec![(older, 5 << 40), (newer, 7)]));
}

async fn resume_source_is_kept_until_its_job_ends(fresh: &TestStore) {
    let (saved, other) = (insert_ended_job(fresh, 1, 10_000).await, insert_ended_job(fresh, 2, 10_001).await);
    for job in [&saved, &other] {
        put_artifact(fresh, job, 5).await;
    }
    let again = job(3);
    let from = CheckpointRef { job: saved.clone(), attempt: AttemptNumber(1), name: "checkpoint-500".to_owned() };
    let again = Job { spec: JobSpec { start: StartPoint::Checkpoint(from), ..again.spec.clone() }, ..again };
    fresh.insert_job(&again).await;
    let found = async |id: &JobId| {
        let mut tx = fresh.read().await;
        let by_bytes = tx.oldest_artifacts(9).await.expect("readable").iter().any(|(job, _)| job == id);
        let is_start = tx.is_resume_source(id).await.expect("readable");
        drop(tx);
        let mut by_age = Vec::new();
        for kind in [RetainedKind::Logs, RetainedKind::Artifacts, RetainedKind::Job] {
            by_age.push(expired_jobs(fresh, kind).await.contains(id));
        }
        (is_start, by_bytes, by_age)
    };
    assert_eq!(found(&saved).await, (true, false, vec![true, false, false]));
    assert_eq!(found(&other).await, (false, true, vec![true; 3]));
    let over = again.clone().cancelled(Timestamp(NOW.0 + 30_000)).expect("it waits");
    fresh.update_job(&again, &over).await.expect("unchanged");
    assert_eq!(found(&saved).await, (false, true, vec![true; 3]));
}

async fn all_files_of_a_replaced_checkpoint_are_marked(fresh: &TestStore) {
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
            put_artifact_at(fresh, &one.id, attempt, path, 7).await;
        }
    }
    let id = queued.id.clone();
    let given_up = fresh.write(move |tx| {
        let id = id.clone();
        Box::pin(async move {
            for (attempt, name) in [(1, "checkpoint-5"), (2, "checkpoint-5")] {
                let (attempt, name) = (AttemptNumber(attempt), name.to_owned());
                let checkpoint = StoredCheckpoint { attempt, name, step: 5, files: "[]".to_owned(), created_at: NOW };
                tx.put_checkpoint(&id, &checkpoint).await?;
            }
            tx.remove_checkpoint(&id, AttemptNumber(1), "checkpoint-5").await?;
            tx.remove_checkpoint(&id, AttemptNumber(1), "checkpoint-5").await
        })
    });
    given_up.await.expect("what is removed already may be removed again");
    let mut tx = fresh.read().await;
    let file = |attempt: u32, path: &str| (AttemptNumber(attempt), path.to_owned());
    assert_eq!(
        tx.checkpoint_files(&queued.id).await,
        Ok(vec![file(1, "checkpoint-50/a"), file(2, "checkpoint-5/a")]),
        "not those of others, nor of similar names"
    );
    assert_eq!(tx.attempt_artifacts(&queued.id, AttemptNumber(1)).await.map(|files| files.len()), Ok(3));
    assert_eq!(tx.checkpoint_files(&other.id).await.map(|files| files.len()), Ok(4));
    let left = tx.checkpoints(&queued.id).await.expect("readable");
    assert_eq!(left.iter().map(|checkpoint| checkpoint.attempt).collect::<Vec<_>>(), [AttemptNumber(2)]);
    let one =
        |path: &str| (queued.id.clone(), RemovedFiles::Artifact { attempt: AttemptNumber(1), path: path.to_owned() });
    assert_eq!(tx.marked_files(9).await, Ok(vec![one("checkpoint-5/a"), one("checkpoint-5/b/c")]));
    drop(tx);
    unmark(fresh, &queued.id, one("checkpoint-5/a").1).await;
    let mut tx = fresh.read().await;
    assert_eq!(tx.marked_files(9).await, Ok(vec![one("checkpoint-5/b/c")]));
    assert_eq!(tx.is_marked(&queued.id, &one("checkpoint-5/b/c").1).await, Ok(true));
    assert_eq!(tx.is_marked(&queued.id, &one("checkpoint-5/a").1).await, Ok(false));
}

async fn single_file_is_removed_and_marked(fresh: &TestStore) {
    let queued = job(1);
    fresh.insert_job(&queued).await;
    for (attempt, path) in [(1, "a"), (2, "a"), (1, "ab")] {
        put_artifact_at(fresh, &queued.id, attempt, path, 7).await;
    }
    let id = queued.id.clone();
    let given_up = fresh.write(move |tx| {
        let id = id.clone();
        Box::pin(async move {
            tx.remove_artifact(&id, AttemptNumber(1), "a").await?;
            tx.remove_artifact(&id, AttemptNumber(1), "never recorded").await
        })
    });
    given_up.await.expect("written");
    let mut tx = fresh.read().await;
    let left: Vec<String> = tx
        .attempt_artifacts(&queued.id, AttemptNumber(1))
        .await
        .expect("readable")
        .into_iter()
        .map(|file| file.path)
        .collect();
    assert_eq!(
        (left, tx.attempt_artifacts(&queued.id, AttemptNumber(2)).await.map(|files| files.len())),
        (vec!["ab".into()], Ok(1))
    );
    let one =
        |path: &str| (queued.id.clone(), RemovedFiles::Artifact { attempt: AttemptNumber(1), path: path.to_owned() });
    assert_eq!(tx.marked_files(9).await, Ok(vec![one("a"), one("never recorded")]));
}

async fn artifact_count_excludes_the_replaced_file(fresh: &TestStore) {
    let (queued, other) = (job(1), job(2));
    for one in [&queued, &other] {
        fresh.insert_job(one).await;
        for (attempt, path) in [(1, "a"), (2, "a"), (1, "b")] {
            put_artifact_at(fresh, &one.id, attempt, path, 7).await;
        }
    }
    let mut tx = fresh.read().await;
    for (attempt, path, number) in [(1, "new", 3), (3, "a", 3), (1, "a", 2)] {
        let replaced = (AttemptNumber(attempt), path);
        assert_eq!(tx.has_other_artifacts(&queued.id, replaced, number).await, Ok(true), "{path} of {attempt}");
        assert_eq!(tx.has_other_artifacts(&queued.id, replaced, number + 1).await, Ok(false), "{path} of {attempt}");
    }
    assert_eq!(tx.has_other_artifacts(&queued.id, (AttemptNumber(1), "a"), 0).await, Ok(true));
}
