//! What lists of jobs are made from: jobs by ID, rows for the index, and which jobs have changed.

use std::collections::{BTreeMap, BTreeSet};

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::{Job, JobDescription};
use app::domain::job_search::index::IndexedJob;
use app::domain::job_status::JobStatus;
use app::domain::plan::urgency;
use app::domain::time::Timestamp;

use super::groups::{offer_job, read_all_state};
use super::history::{attempt, insert};
use super::{NOW, TestStore, job, on_every_engine, worker};
use crate::store::StoreError;
use crate::store::jobs::IndexRow;
use crate::store::jobs::retention::RetainedKind;

on_every_engine!(
    jobs_are_read_in_the_order_of_their_ids,
    index_rows_have_what_is_stored,
    index_rows_are_paged,
    changed_jobs_are_reported_once,
    changes_of_a_rejected_write_are_not_reported,
);

fn ids(numbers: &[u8]) -> Vec<JobId> {
    numbers.iter().map(|n| job(*n).id).collect()
}

async fn jobs_are_read_in_the_order_of_their_ids(store: &TestStore) {
    for n in 1..=4 {
        store.insert_job(&job(n)).await;
    }
    let found = store.read().await.jobs_by_id(&ids(&[3, 1, 9, 4])).await;
    assert_eq!(found, Ok([3, 1, 4].map(job).to_vec()));
    assert_eq!(store.read().await.jobs_by_id(&[]).await, Ok(vec![]));
}

/// The row of a job that was only submitted.
fn submitted_row(job: &Job) -> IndexRow {
    let indexed = IndexedJob {
        id: job.id.clone(),
        number: job.number,
        config: job.spec.config_name.clone(),
        revision: job.spec.config_revision,
        name: job.description.name.clone(),
        tags: job.description.tags.iter().cloned().collect(),
        starred_by: job.starred_by.iter().cloned().collect(),
        user: job.submitted_by.clone(),
        status: JobStatus::Queued,
        submitted_at: job.submitted_at,
        started_at: None,
        ended_at: None,
        priority: job.priority,
        urgency: urgency(job),
        labels: job.spec.demand.labels.clone(),
        gpus: job.spec.demand.gpu_count,
        workers: vec![],
        overrides: BTreeMap::new(),
        metrics: BTreeMap::new(),
    };
    IndexRow {
        job: indexed,
        overrides: job.spec.overrides.clone(),
        progress: None,
        vote_tally: None,
        best_metrics: Vec::new(),
    }
}

async fn index_rows(store: &TestStore, numbers: &[u8]) -> Vec<IndexRow> {
    let ids: BTreeSet<JobId> = ids(numbers).into_iter().collect();
    let mut rows = store.read().await.index_rows(&ids).await.expect("readable");
    rows.sort_by(|a, b| a.job.id.cmp(&b.job.id));
    rows
}

async fn index_rows_have_what_is_stored(store: &TestStore) {
    let plain = Job { number: Some(7), description: JobDescription::default(), ..job(2) };
    for job in [&job(1), &plain, &job(3)] {
        store.insert_job(job).await;
    }
    assert_eq!(index_rows(store, &[1, 2, 9]).await, [submitted_row(&job(1)), submitted_row(&plain)]);
    store.update_job(&job(3), &job(3).cancelled(Timestamp(NOW.0 + 9)).expect("waits")).await.expect("as it was");
    let offered = offer_job(&job(1));
    store.update_job(&job(1), &offered).await.expect("as it was");
    insert(store, attempt(&job(1).id, 1), "one").await;
    let write =
        store.write(|tx| Box::pin(async move { tx.start_attempt(&job(1).id, AttemptNumber(1), Timestamp(5)).await }));
    write.await.expect("written");
    let rows = index_rows(store, &[1, 3]).await;
    let first = &rows[0].job;
    assert_eq!((first.status, first.started_at, first.gpus), (JobStatus::Offered, Some(Timestamp(5)), Some(2)));
    assert_eq!(first.workers, [(worker(1).id, "worker-1".to_owned())]);
    assert_eq!((rows[1].job.status, rows[1].job.ended_at), (JobStatus::Cancelled, Some(Timestamp(NOW.0 + 9))));
}

async fn index_rows_are_paged(store: &TestStore) {
    for n in 1..=5 {
        store.insert_job(&job(n)).await;
    }
    let (mut found, mut after) = (Vec::new(), Some(String::new()));
    while let Some(id) = after {
        let page = store.read().await.index_rows_after(&id, 2).await.expect("readable");
        assert!(page.rows.len() <= 2);
        found.extend(page.rows);
        after = page.last;
    }
    assert_eq!(found, index_rows(store, &[1, 2, 3, 4, 5]).await);
}

fn changed(store: &TestStore) -> Option<Vec<JobId>> {
    store.store.take_changed_jobs().map(|ids| ids.into_iter().collect())
}

async fn changed_jobs_are_reported_once(store: &TestStore) {
    store.insert_worker(&worker(1), "one").await.expect("new");
    store.insert_job(&job(1)).await;
    read_all_state(store).await;
    assert_eq!(changed(store), None, "before the first call any job may have changed");
    assert_eq!(changed(store), Some(vec![]));
    store.insert_job(&job(2)).await;
    store.insert_job(&job(3)).await;
    store.update_job(&job(1), &job(1).cancelled(NOW).expect("waits")).await.expect("as it was");
    assert_eq!(changed(store), Some(ids(&[1, 2, 3])));
    let described = Job { description: JobDescription::default(), ..job(2) };
    let write = store.write(move |tx| {
        let described = described.clone();
        Box::pin(async move {
            tx.describe_job(&described).await?;
            tx.remove_retained(RetainedKind::Job, &job(1).id).await
        })
    });
    write.await.expect("written");
    assert_eq!(changed(store), Some(ids(&[1, 2])));
    assert_eq!(changed(store), Some(vec![]));
}

async fn changes_of_a_rejected_write_are_not_reported(store: &TestStore) {
    read_all_state(store).await;
    changed(store);
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.insert_job(&job(1)).await?;
            Err(StoreError::Rejected)
        })
    });
    assert_eq!(write.await, Err(StoreError::Rejected));
    let reported = changed(store);
    assert!(reported.as_ref().is_none_or(Vec::is_empty), "{reported:?}");
    store.insert_job(&job(2)).await;
    let reported = changed(store);
    assert!(reported.is_none_or(|reported| reported == ids(&[2])));
}
