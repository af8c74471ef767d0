//! Attempts, points and artifacts.

use std::ops::RangeInclusive;

use app::domain::causes::LossCode;
use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::{AttemptReport, Job, JobSpec};
use app::domain::time::{Millis, Timestamp};

use super::{NOW, TestStore, job, on_every_engine, worker};
use crate::store::artifacts::StoredArtifact;
use crate::store::artifacts::checkpoints::StoredCheckpoint;
use crate::store::jobs::attempts::{AttemptCursor, AttemptEnd, PointLimit, StoredAttempt, StoredPoint};
use crate::store::jobs::retention::RetainedKind;

const ALL_STEPS: RangeInclusive<i64> = 0..=i64::MAX;

on_every_engine!(
    attempts_are_started_ended_and_reopened,
    the_newest_attempts_are_found_together,
    a_workers_attempts_are_paged_and_counted,
    points_are_replaced_and_thinned,
    points_beyond_the_limit_are_thinned_evenly,
    newest_version_of_an_artifact_counts,
    checkpoints_are_ordered_by_step,
    best_metrics_are_replaced,
    jobs_that_retry_others_are_found,
    the_last_completed_job_of_a_configuration_is_found,
);

pub(super) fn attempt(job: &JobId, number: u32) -> StoredAttempt {
    StoredAttempt {
        job: job.clone(),
        attempt: AttemptNumber(number),
        worker: worker(1).id,
        worker_name: "worker-1".to_owned(),
        gpus: 2,
        offered_at: NOW,
        started_at: None,
        ended_at: None,
        outcome: None,
        error: None,
        loss_code: None,
        error_line: None,
        exit_code: None,
        resumed_from_step: None,
        progress: None,
    }
}

/// An end of which nothing else is known.
pub(super) fn attempt_end(at: Timestamp, outcome: &'static str) -> AttemptEnd {
    AttemptEnd { at, outcome, error: None, loss_code: None, exit_code: None }
}

pub(super) async fn insert(store: &TestStore, attempt: StoredAttempt, digest: &'static str) {
    let write = store.write(move |tx| {
        let attempt = attempt.clone();
        Box::pin(async move { tx.insert_attempt(&attempt, digest).await })
    });
    write.await.expect("new");
}

async fn attempts_are_started_ended_and_reopened(store: &TestStore) {
    let id = job(1).id;
    store.insert_job(&job(1)).await;
    insert(store, attempt(&id, 1), "digest").await;
    let write = store.write(|tx| {
        Box::pin(async move {
            let id = job(1).id;
            tx.start_attempt(&id, AttemptNumber(1), Timestamp(5)).await?;
            tx.start_attempt(&id, AttemptNumber(1), Timestamp(6)).await?;
            tx.set_resumed_from(&id, AttemptNumber(1), 500).await?;
            tx.set_error_line(&id, AttemptNumber(1), 1_234).await?;
            let end = AttemptEnd {
                at: Timestamp(7),
                outcome: "lost",
                error: Some("gone".to_owned()),
                loss_code: Some(LossCode::HeartbeatTimeout),
                exit_code: Some(3),
            };
            tx.end_attempt(&id, AttemptNumber(1), &end).await
        })
    });
    write.await.expect("it exists");
    let ended = StoredAttempt {
        started_at: Some(Timestamp(5)),
        resumed_from_step: Some(500),
        ended_at: Some(Timestamp(7)),
        outcome: Some("lost".to_owned()),
        error: Some("gone".to_owned()),
        loss_code: Some(LossCode::HeartbeatTimeout),
        error_line: Some(1_234),
        exit_code: Some(3),
        ..attempt(&id, 1)
    };
    assert_eq!(store.read().await.attempts(&id).await, Ok(vec![ended]));
    let reopen = store.write(|tx| Box::pin(async move { tx.recover_attempt(&job(1).id, AttemptNumber(1)).await }));
    reopen.await.expect("it exists");
    let reopened = StoredAttempt {
        started_at: Some(Timestamp(5)),
        resumed_from_step: Some(500),
        error_line: Some(1_234),
        ..attempt(&id, 1)
    };
    assert_eq!(store.read().await.attempts(&id).await, Ok(vec![reopened]));
    let found = store.read().await.attempt_by_token("digest").await;
    assert_eq!(found, Ok(Some((id, AttemptNumber(1), worker(1).id))));
    assert_eq!(store.read().await.attempt_by_token("other").await, Ok(None));
}

async fn the_newest_attempts_are_found_together(store: &TestStore) {
    for n in [1, 2, 3] {
        let offered = job(n).offered(NOW, worker(1).id, vec![], NOW).expect("waits");
        store.insert_job(&job(n)).await;
        store.update_job(&job(n), &offered).await.expect("as it was read");
    }
    insert(store, attempt(&job(1).id, 1), "a").await;
    insert(store, attempt(&job(1).id, 2), "b").await;
    insert(store, attempt(&job(2).id, 1), "c").await;
    let found = store.read().await.newest_attempts(&[job(1).id, job(2).id]).await;
    assert_eq!(found, Ok(vec![attempt(&job(1).id, 1), attempt(&job(2).id, 1)]));
    assert_eq!(store.read().await.newest_attempts(&[]).await, Ok(vec![]));
}

async fn a_workers_attempts_are_paged_and_counted(store: &TestStore) {
    let (first_job, second_job, worker_id) = (job(1).id, job(2).id, worker(1).id);
    store.insert_job(&job(1)).await;
    store.insert_job(&Job { spec: JobSpec { config_name: "faces".to_owned(), ..job(2).spec }, ..job(2) }).await;
    let at = |seconds| NOW + Millis::from_secs(seconds);
    insert(store, StoredAttempt { offered_at: at(3), ..attempt(&first_job, 1) }, "a").await;
    // Two at one time, as planning creates them, and one on another worker.
    insert(store, StoredAttempt { offered_at: at(7), ..attempt(&first_job, 2) }, "b").await;
    insert(store, StoredAttempt { offered_at: at(7), ..attempt(&second_job, 1) }, "c").await;
    insert(store, StoredAttempt { worker: worker(2).id, offered_at: at(9), ..attempt(&second_job, 2) }, "d").await;
    let end = store.write(|tx| {
        Box::pin(async move {
            let end = attempt_end(NOW + Millis::from_secs(8), "failed");
            tx.end_attempt(&job(1).id, AttemptNumber(2), &end).await
        })
    });
    end.await.expect("it exists");
    let mut tx = store.read().await;
    let mut page = async |after: Option<AttemptCursor>, limit| {
        let page = tx.worker_attempts(&worker_id, after.as_ref(), limit).await.expect("readable");
        let last = page.last().map(|(attempt, _)| attempt.cursor());
        let fields = |(attempt, config): (StoredAttempt, String)| (attempt.job, attempt.attempt.0, config);
        (page.into_iter().map(fields).collect::<Vec<_>>(), last)
    };
    let all = [
        (second_job, 1, "faces".to_owned()),
        (first_job.clone(), 2, "digits".to_owned()),
        (first_job, 1, "digits".to_owned()),
    ];
    assert_eq!(page(None, 9).await.0, all);
    let (first, last) = page(None, 1).await;
    assert_eq!(first, all[..1]);
    assert_eq!(page(last, 9).await.0, all[1..], "attempts offered at the same time are listed once each");
    let mut outcomes = async |since| {
        let mut outcomes = tx.worker_outcomes(&worker_id, at(since)).await.expect("readable");
        outcomes.sort();
        outcomes
    };
    let failed = (Some("failed".to_owned()), 1);
    assert_eq!(outcomes(0).await, [(None, 2), failed.clone()]);
    assert_eq!(outcomes(7).await, [(None, 1), failed]);
    assert_eq!(outcomes(8).await, []);
}

async fn best_metrics_are_replaced(store: &TestStore) {
    let id = job(1).id;
    store.insert_job(&job(1)).await;
    insert(store, attempt(&id, 1), "digest").await;
    assert_eq!(store.read().await.best_metrics(&id, AttemptNumber(1)).await, Ok(None));
    for best in [r#"{"loss":[0.5,1]}"#, r#"{"loss":[0.25,2]}"#] {
        let write = store
            .write(move |tx| Box::pin(async move { tx.set_best_metrics(&job(1).id, AttemptNumber(1), best).await }));
        write.await.expect("it exists");
        assert_eq!(store.read().await.best_metrics(&id, AttemptNumber(1)).await, Ok(Some(best.to_owned())));
        let rows = store.read().await.index_rows(&[id.clone()].into()).await.expect("readable");
        assert_eq!(rows[0].best_metrics, [best]);
    }
}

async fn jobs_that_retry_others_are_found(store: &TestStore) {
    for (number, origin) in [(1, None), (2, Some(1)), (3, None), (4, Some(3)), (5, Some(1)), (6, Some(77))] {
        store.insert_job(&Job { retry_of: origin.map(|origin| job(origin).id), ..job(number) }).await;
    }
    let mut tx = store.read().await;
    let mut found = async |origins: &[u8], limit| {
        let origins: Vec<JobId> = origins.iter().map(|number| job(*number).id).collect();
        let found = tx.jobs_that_retry(&origins, limit).await.expect("readable");
        found.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    let ids = |numbers: &[u8]| numbers.iter().map(|number| job(*number).id).collect::<Vec<_>>();
    assert_eq!(found(&[1, 3], 9).await, ids(&[2, 4, 5]));
    assert_eq!(found(&[1, 3], 2).await, ids(&[2, 4]));
    assert_eq!(found(&[2], 9).await, []);
    assert_eq!(found(&[], 9).await, []);
}

async fn the_last_completed_job_of_a_configuration_is_found(store: &TestStore) {
    let end = |number| {
        let (id, until) = (worker(1).id, Timestamp(NOW.0 + 1));
        let offered = job(number).offered(NOW, id.clone(), Vec::new(), until).expect("it is queued");
        offered.reported(NOW, &id, AttemptNumber(1), AttemptReport::Completed).expect("the attempt is current")
    };
    for completed in [end(1), end(2), Job { submitted_by: "eve".to_owned(), ..end(3) }, job(4)] {
        store.insert_job(&completed).await;
    }
    let mut tx = store.read().await;
    let config = job(1).spec.config_name;
    assert_eq!(tx.last_completed_job(&config, None).await, Ok(Some(job(3).id)));
    assert_eq!(tx.last_completed_job(&config, Some(&job(1).submitted_by)).await, Ok(Some(job(2).id)));
    assert_eq!(tx.last_completed_job(&config, Some("bob")).await, Ok(None));
    assert_eq!(tx.last_completed_job("other", None).await, Ok(None));
}

const MANY: PointLimit = PointLimit { max_points: 1_000, max_bytes: 1 << 20 };

async fn points_beyond_the_limit_are_thinned_evenly(store: &TestStore) {
    let id = job(1).id;
    store.insert_job(&job(1)).await;
    insert(store, attempt(&id, 1), "digest").await;
    let limit = PointLimit { max_points: 20, max_bytes: 1 << 20 };
    for from in (0..203).step_by(7) {
        let write = store.write(move |tx| {
            let point = |step: i64| StoredPoint { step, point: format!("{step:0>5}") };
            let points: Vec<_> = (from..from + 7).map(point).collect();
            Box::pin(async move { tx.add_points(&job(1).id, AttemptNumber(1), &points, limit).await })
        });
        write.await.expect("it exists");
    }
    let mut tx = store.read().await;
    let steps: Vec<i64> = tx
        .points(&id, AttemptNumber(1), ALL_STEPS, 1_000)
        .await
        .expect("readable")
        .iter()
        .map(|text| text.parse().expect("a step"))
        .collect();
    assert!((10..=20).contains(&steps.len()), "{steps:?}");
    assert_eq!((steps[0], steps[steps.len() - 1]), (0, 202));
    let stride = tx.point_stride(&id, AttemptNumber(1)).await.expect("readable");
    assert_eq!(stride, 16);
    let spans: Vec<i64> = steps.windows(2).map(|window| window[1] - window[0]).collect();
    assert!(spans[..spans.len() - 1].iter().all(|span| *span == 16), "{steps:?}");
    drop(tx);
    // Also limited by bytes.
    let few = PointLimit { max_points: 1_000, max_bytes: 50 };
    let write = store.write(move |tx| {
        let point = StoredPoint { step: 203, point: "00203".to_owned() };
        Box::pin(async move { tx.add_points(&job(1).id, AttemptNumber(1), &[point], few).await })
    });
    write.await.expect("it exists");
    let texts = store.read().await.points(&id, AttemptNumber(1), ALL_STEPS, 1_000).await.expect("readable");
    assert!(texts.len() <= 10 && texts[0] == "00000" && texts[texts.len() - 1] == "00203", "{texts:?}");
}

async fn points_are_replaced_and_thinned(store: &TestStore) {
    let id = job(1).id;
    store.insert_job(&job(1)).await;
    insert(store, attempt(&id, 1), "digest").await;
    let put = |steps: std::ops::Range<i64>, prefix: &'static str| {
        store.write(move |tx| {
            let point = |step: i64| StoredPoint { step, point: format!("{prefix}{step}") };
            let points: Vec<_> = steps.clone().map(point).collect();
            Box::pin(async move { tx.add_points(&job(1).id, AttemptNumber(1), &points, MANY).await })
        })
    };
    put(0..10, "old").await.expect("it exists");
    put(5..100, "new").await.expect("it exists");
    let mut tx = store.read().await;
    let all = tx.points(&id, AttemptNumber(1), ALL_STEPS, 1_000).await.expect("readable");
    assert_eq!((all.len(), all[4].as_str(), all[5].as_str()), (100, "old4", "new5"));
    for max in 1..=100 {
        let kept = tx.points(&id, AttemptNumber(1), ALL_STEPS, max).await.expect("readable");
        let stride = 100_usize.div_ceil(max as usize);
        let (evenly, newest) = (all.iter().step_by(stride), all.last().filter(|_| 99 % stride != 0));
        assert_eq!(kept, evenly.chain(newest).cloned().collect::<Vec<_>>(), "at most {max}");
    }
    let some = tx.points(&id, AttemptNumber(1), 3..=6, 1_000).await.expect("readable");
    assert_eq!(some, ["old3", "old4", "new5", "new6"]);
    assert_eq!(tx.points(&id, AttemptNumber(1), 100..=200, 10).await, Ok(vec![]));
    assert_eq!(tx.attempts(&id).await.expect("readable")[0].progress.as_deref(), Some("new99"));
    assert_eq!(tx.points(&id, AttemptNumber(2), ALL_STEPS, 10).await, Ok(vec![]));
}

async fn newest_version_of_an_artifact_counts(store: &TestStore) {
    let id = job(1).id;
    store.insert_job(&job(1)).await;
    let file = |path: &str, attempt: u32, size: u64| StoredArtifact {
        path: path.to_owned(),
        attempt: AttemptNumber(attempt),
        kind: "final".to_owned(),
        size,
        sha256: "00".to_owned(),
        created_at: NOW,
    };
    let files = [file("b", 1, 1), file("a/x", 1, u64::from(u32::MAX) * 9), file("b", 2, 3), file("b", 2, 4)];
    let put = store.write(move |tx| {
        let files = files.clone();
        Box::pin(async move {
            for file in &files {
                tx.put_artifact(&job(1).id, file).await?;
            }
            Ok(())
        })
    });
    put.await.expect("it exists");
    let mut tx = store.read().await;
    assert_eq!(tx.artifacts(&id).await, Ok(vec![file("a/x", 1, u64::from(u32::MAX) * 9), file("b", 2, 4)]));
    let first_files = tx.attempt_artifacts(&id, AttemptNumber(1)).await;
    assert_eq!(first_files, Ok(vec![file("a/x", 1, u64::from(u32::MAX) * 9), file("b", 1, 1)]));
    let all = u64::from(u32::MAX) * 9 + 5;
    assert_eq!(tx.other_artifact_bytes(&id, (AttemptNumber(2), "b")).await, Ok(all - 4));
    assert_eq!(tx.other_artifact_bytes(&id, (AttemptNumber(9), "b")).await, Ok(all));
    assert_eq!(
        (tx.user_artifact_bytes(&job(1).submitted_by).await, tx.user_artifact_bytes("unknown-user").await),
        (Ok(all), Ok(0))
    );
    assert_eq!(tx.artifact(&id, "b").await, Ok(Some(file("b", 2, 4))));
    assert_eq!(tx.artifact(&id, "c").await, Ok(None));
}

async fn checkpoints_are_ordered_by_step(store: &TestStore) {
    let id = job(1).id;
    store.insert_job(&job(1)).await;
    store.insert_job(&job(2)).await;
    let checkpoint = |attempt, step: i64, files: &str| StoredCheckpoint {
        attempt: AttemptNumber(attempt),
        name: format!("checkpoint-{step}"),
        step,
        files: files.to_owned(),
        created_at: NOW,
        interval: Some(Millis(step)),
    };
    let all =
        [checkpoint(1, 900, "[]"), checkpoint(1, 1_000, "[1]"), checkpoint(2, 900, "[]"), checkpoint(1, 1_000, "[2]")];
    let put = store.write(move |tx| {
        let all = all.clone();
        Box::pin(async move {
            for checkpoint in &all {
                tx.put_checkpoint(&job(1).id, checkpoint).await?;
            }
            Ok(())
        })
    });
    put.await.expect("it exists");
    let found = store.read().await.checkpoints(&id).await;
    assert_eq!(found, Ok(vec![checkpoint(1, 1_000, "[2]"), checkpoint(2, 900, "[]"), checkpoint(1, 900, "[]")]));
    assert_eq!(store.read().await.checkpoints(&job(2).id).await, Ok(vec![]));
    let removal =
        store.write(|tx| Box::pin(async move { tx.remove_retained(RetainedKind::Artifacts, &job(1).id).await }));
    removal.await.expect("it exists");
    assert_eq!(store.read().await.checkpoints(&id).await, Ok(vec![]), "checkpoints are deleted with their files");
}
