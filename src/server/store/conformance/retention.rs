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
async fn insert_ended_job(store: &TestStore, n: u8, at: i64) -> JobId {
    let queued = job(n);
    store.insert_job(&queued).await;
    let cancelled: Job = queued.clone().cancelled(Timestamp(NOW.0 + at)).expect("it waits");
    store.update_job(&queued, &cancelled).await.expect("unchanged");
    queued.id
}

async fn put_artifact(store: &TestStore, job: &JobId, size: u64) {
    put_artifact_at(store, job, 1, "a", size).await;
}

async fn put_artifact_at(store: &TestStore, job: &JobId, attempt: u32, path: &'static str, size: u64) {
    let job = job.clone();
    let put = store.write(move |tx| {
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

async fn remove(store: &TestStore, kind: RetainedKind, job: &JobId) -> Result<(), StoreError> {
    let job = job.clone();
    store
        .write(move |tx| {
            let job = job.clone();
            Box::pin(async move { tx.remove_retained(kind, &job).await })
        })
        .await
}

async fn unmark(store: &TestStore, job: &JobId, files: RemovedFiles) {
    let job = job.clone();
    let unmark = store.write(move |tx| {
        let (job, files) = (job.clone(), files.clone());
        Box::pin(async move { tx.unmark(&job, &files).await })
    });
    unmark.await.expect("written");
}

async fn expired_jobs(store: &TestStore, kind: RetainedKind) -> Vec<JobId> {
    store.read().await.ended_before(kind, Timestamp(NOW.0 + 20_000), 10).await.expect("readable")
}

async fn only_old_jobs_are_removed_and_each_once(store: &TestStore) {
    let (second, first) = (insert_ended_job(store, 1, 10_001).await, insert_ended_job(store, 2, 10_000).await);
    insert_ended_job(store, 3, 20_000).await;
    store.insert_job(&job(4)).await;
    for kind in [RetainedKind::Logs, RetainedKind::Artifacts, RetainedKind::Job] {
        assert_eq!(expired_jobs(store, kind).await, [first.clone(), second.clone()], "{kind:?}");
        remove(store, kind, &first).await.expect("it exists");
        assert_eq!(expired_jobs(store, kind).await, std::slice::from_ref(&second), "{kind:?}");
    }
    assert_eq!(store.read().await.job(&first).await, Ok(None));
    assert_eq!(remove(store, RetainedKind::Job, &first).await, Err(StoreError::Conflict));
    assert_eq!(
        store.read().await.ended_before(RetainedKind::Job, Timestamp(i64::MAX), 1).await.map(|jobs| jobs.len()),
        Ok(1)
    );
}

async fn removed_files_are_marked_until_deleted(store: &TestStore) {
    let job = insert_ended_job(store, 1, 10_000).await;
    put_artifact(store, &job, 5).await;
    remove(store, RetainedKind::Artifacts, &job).await.expect("it exists");
    remove(store, RetainedKind::Job, &job).await.expect("marks may exist already");
    assert_eq!(store.read().await.artifacts(&job).await, Ok(Vec::new()));
    let marks = vec![(job.clone(), RemovedFiles::Artifacts), (job.clone(), RemovedFiles::Logs)];
    assert_eq!(store.read().await.marked_files(None, 9).await, Ok(marks.clone()));
    let after_first = store.read().await.marked_files(Some(&marks[0]), 9).await;
    assert_eq!(after_first, Ok(marks[1..].to_vec()));
    for files in [RemovedFiles::Logs, RemovedFiles::Artifacts] {
        unmark(store, &job, files).await;
    }
    assert_eq!(store.read().await.marked_files(None, 9).await, Ok(Vec::new()));
}

async fn artifacts_are_summed_and_found_by_age(store: &TestStore) {
    assert_eq!(store.read().await.artifact_bytes().await, Ok(0));
    let (newer, older) = (insert_ended_job(store, 1, 10_001).await, insert_ended_job(store, 2, 10_000).await);
    let queued = job(3);
    store.insert_job(&queued).await;
    for (job, size) in [(&newer, 7), (&older, 5 << 40), (&queued.id, 1)] {
        put_artifact(store, job, size).await;
    }
    assert_eq!(store.read().await.artifact_bytes().await, Ok((5 << 40) + 8));
    assert_eq!(store.read().await.oldest_artifacts(9).await, Ok(vec![(older, 5 << 40), (newer, 7)]));
}

async fn resume_source_is_kept_until_its_job_ends(store: &TestStore) {
    let (saved, other) = (insert_ended_job(store, 1, 10_000).await, insert_ended_job(store, 2, 10_001).await);
    for job in [&saved, &other] {
        put_artifact(store, job, 5).await;
    }
    let resuming = job(3);
    let from = CheckpointRef { job: saved.clone(), attempt: AttemptNumber(1), name: "checkpoint-500".to_owned() };
    let resuming = Job { spec: JobSpec { start: StartPoint::Checkpoint(from), ..resuming.spec.clone() }, ..resuming };
    store.insert_job(&resuming).await;
    let found = async |id: &JobId| {
        let mut tx = store.read().await;
        let by_bytes = tx.oldest_artifacts(9).await.expect("readable").iter().any(|(job, _)| job == id);
        let is_start = tx.is_resume_source(id).await.expect("readable");
        drop(tx);
        let mut by_age = Vec::new();
        for kind in [RetainedKind::Logs, RetainedKind::Artifacts, RetainedKind::Job] {
            by_age.push(expired_jobs(store, kind).await.contains(id));
        }
        (is_start, by_bytes, by_age)
    };
    assert_eq!(found(&saved).await, (true, false, vec![true, false, false]));
    assert_eq!(found(&other).await, (false, true, vec![true; 3]));
    let cancelled = resuming.clone().cancelled(Timestamp(NOW.0 + 30_000)).expect("it waits");
    store.update_job(&resuming, &cancelled).await.expect("unchanged");
    assert_eq!(found(&saved).await, (false, true, vec![true; 3]));
}

async fn all_files_of_a_replaced_checkpoint_are_marked(store: &TestStore) {
    let (queued, other) = (job(1), job(2));
    for job in [&queued, &other] {
        store.insert_job(job).await;
        for (attempt, path) in [
            (1, "checkpoint-5/a"),
            (1, "checkpoint-5/b/c"),
            (1, "checkpoint-50/a"),
            (1, "Checkpoint-5/a"),
            (2, "checkpoint-5/a"),
            (1, "a"),
        ] {
            put_artifact_at(store, &job.id, attempt, path, 7).await;
        }
    }
    let id = queued.id.clone();
    let removal = store.write(move |tx| {
        let id = id.clone();
        Box::pin(async move {
            for (attempt, name) in [(1, "checkpoint-5"), (2, "checkpoint-5")] {
                let (attempt, name) = (AttemptNumber(attempt), name.to_owned());
                let checkpoint = StoredCheckpoint {
                    attempt,
                    name,
                    step: 5,
                    files: "[]".to_owned(),
                    created_at: NOW,
                    interval: None,
                };
                tx.put_checkpoint(&id, &checkpoint).await?;
            }
            tx.remove_checkpoint(&id, AttemptNumber(1), "checkpoint-5").await?;
            tx.remove_checkpoint(&id, AttemptNumber(1), "checkpoint-5").await
        })
    });
    removal.await.expect("what is removed already may be removed again");
    let mut tx = store.read().await;
    let file = |attempt: u32, path: &str| (AttemptNumber(attempt), path.to_owned());
    assert_eq!(
        tx.checkpoint_files(&queued.id).await,
        Ok(vec![file(1, "checkpoint-50/a"), file(2, "checkpoint-5/a")]),
        "not those of others, nor of similar names"
    );
    assert_eq!(tx.attempt_artifacts(&queued.id, AttemptNumber(1)).await.map(|files| files.len()), Ok(3));
    assert_eq!(tx.checkpoint_files(&other.id).await.map(|files| files.len()), Ok(4));
    let remaining = tx.checkpoints(&queued.id).await.expect("readable");
    assert_eq!(remaining.iter().map(|checkpoint| checkpoint.attempt).collect::<Vec<_>>(), [AttemptNumber(2)]);
    let marked_file =
        |path: &str| (queued.id.clone(), RemovedFiles::Artifact { attempt: AttemptNumber(1), path: path.to_owned() });
    assert_eq!(
        tx.marked_files(None, 9).await,
        Ok(vec![marked_file("checkpoint-5/a"), marked_file("checkpoint-5/b/c")])
    );
    drop(tx);
    unmark(store, &queued.id, marked_file("checkpoint-5/a").1).await;
    let mut tx = store.read().await;
    assert_eq!(tx.marked_files(None, 9).await, Ok(vec![marked_file("checkpoint-5/b/c")]));
    assert_eq!(tx.is_marked(&queued.id, &marked_file("checkpoint-5/b/c").1).await, Ok(true));
    assert_eq!(tx.is_marked(&queued.id, &marked_file("checkpoint-5/a").1).await, Ok(false));
}

async fn single_file_is_removed_and_marked(store: &TestStore) {
    let queued = job(1);
    store.insert_job(&queued).await;
    for (attempt, path) in [(1, "a"), (2, "a"), (1, "ab")] {
        put_artifact_at(store, &queued.id, attempt, path, 7).await;
    }
    let id = queued.id.clone();
    let removal = store.write(move |tx| {
        let id = id.clone();
        Box::pin(async move {
            tx.remove_artifact(&id, AttemptNumber(1), "a").await?;
            tx.remove_artifact(&id, AttemptNumber(1), "never recorded").await
        })
    });
    removal.await.expect("written");
    let mut tx = store.read().await;
    let remaining: Vec<String> = tx
        .attempt_artifacts(&queued.id, AttemptNumber(1))
        .await
        .expect("readable")
        .into_iter()
        .map(|file| file.path)
        .collect();
    assert_eq!(
        (remaining, tx.attempt_artifacts(&queued.id, AttemptNumber(2)).await.map(|files| files.len())),
        (vec!["ab".into()], Ok(1))
    );
    let marked_file =
        |path: &str| (queued.id.clone(), RemovedFiles::Artifact { attempt: AttemptNumber(1), path: path.to_owned() });
    assert_eq!(tx.marked_files(None, 9).await, Ok(vec![marked_file("a"), marked_file("never recorded")]));
}

async fn artifact_count_excludes_the_replaced_file(store: &TestStore) {
    let (queued, other) = (job(1), job(2));
    for job in [&queued, &other] {
        store.insert_job(job).await;
        for (attempt, path) in [(1, "a"), (2, "a"), (1, "b")] {
            put_artifact_at(store, &job.id, attempt, path, 7).await;
        }
    }
    let mut tx = store.read().await;
    for (attempt, path, number) in [(1, "new", 3), (3, "a", 3), (1, "a", 2)] {
        let replaced = (AttemptNumber(attempt), path);
        assert_eq!(tx.has_other_artifacts(&queued.id, replaced, number).await, Ok(true), "{path} of {attempt}");
        assert_eq!(tx.has_other_artifacts(&queued.id, replaced, number + 1).await, Ok(false), "{path} of {attempt}");
    }
    assert_eq!(tx.has_other_artifacts(&queued.id, (AttemptNumber(1), "a"), 0).await, Ok(true));
}
