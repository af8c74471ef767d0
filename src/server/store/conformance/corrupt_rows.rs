//! A corrupt row is left out of lists, and does not hide others.

use app::domain::job::Job;

use super::{NOW, TestStore, job, on_every_engine, worker};
use crate::store::StoreError;

on_every_engine!(
    corrupt_worker_hides_no_other,
    corrupt_job_hides_no_other,
    corrupt_job_does_not_end_the_index,
    corrupt_lease_hides_no_other,
);

async fn corrupt_worker_hides_no_other(store: &TestStore) {
    for (n, digest) in [(1, "one"), (2, "two"), (3, "three"), (4, "four"), (5, "five")] {
        store.insert_worker(&worker(n), digest).await.expect("new");
    }
    store.execute_raw("UPDATE workers SET labels = 'no JSON' WHERE name = 'worker-1'").await;
    store.execute_raw("UPDATE workers SET connection = 'banana' WHERE name = 'worker-2'").await;
    store.execute_raw("UPDATE workers SET networks = '[\"everywhere\"]' WHERE name = 'worker-4'").await;
    let mut tx = store.read().await;
    let listed = tx.workers().await.expect("readable").into_iter().map(|stored| stored.worker);
    assert_eq!(listed.collect::<Vec<_>>(), [3, 5].map(worker));
    let in_memory =
        tx.with_state(|fleet_state| fleet_state.workers().map(|row| row.worker().clone()).collect::<Vec<_>>()).await;
    assert_eq!(in_memory, Ok([3, 5].map(worker).to_vec()), "planning and the health check read it");
    let result = tx.worker(&worker(1).id).await;
    assert!(matches!(result, Err(StoreError::CorruptRow { table: "workers", .. })), "it exists: {result:?}");
    store.update_worker(&worker(5), &worker(5).drained(NOW, None, None)).await.expect("the others continue");
}

async fn corrupt_job_hides_no_other(store: &TestStore) {
    for n in 1..=5 {
        store.insert_job(&job(n)).await;
    }
    store.execute_raw("UPDATE jobs SET labels = 'no JSON' WHERE submitted_at = 1705314600002").await;
    store.execute_raw("UPDATE jobs SET state = 'banana' WHERE submitted_at = 1705314600004").await;
    let intact = [5, 3, 1].map(job);
    let mut tx = store.read().await;
    assert_eq!(tx.jobs_by_id(&[5, 4, 3, 2, 1].map(|n| job(n).id)).await.as_deref(), Ok(&intact[..]));
    let waiting =
        tx.with_state(|fleet_state| fleet_state.queued_jobs().cloned().collect::<Vec<Job>>()).await.expect("readable");
    assert_eq!(waiting, [1, 3, 5].map(job), "in the order of planning");
    let result = tx.job(&job(2).id).await;
    assert!(matches!(result, Err(StoreError::CorruptRow { table: "jobs", .. })), "it exists: {result:?}");
    store.update_job(&job(3), &job(3).cancelled(NOW).expect("it waits")).await.expect("the others continue");
}

async fn corrupt_job_does_not_end_the_index(store: &TestStore) {
    for n in 1..=5 {
        store.insert_job(&job(n)).await;
    }
    store.execute_raw("UPDATE jobs SET state = 'banana' WHERE submitted_at IN (1705314600002, 1705314600004)").await;
    let mut tx = store.read().await;
    let first = tx.index_rows_after("", 2).await.expect("readable");
    assert_eq!((first.rows.len(), first.last.as_deref()), (1, Some(job(2).id.as_str())));
    let rest = tx.index_rows_after(job(2).id.as_str(), 9).await.expect("readable");
    assert_eq!(rest.rows.iter().map(|row| &row.job.id).collect::<Vec<_>>(), [&job(3).id, &job(5).id]);
    assert_eq!(rest.last, None);
    let ids = [1, 2, 3].map(|n| job(n).id).into();
    assert_eq!(tx.index_rows(&ids).await.map(|rows| rows.len()), Ok(2));
}

async fn corrupt_lease_hides_no_other(store: &TestStore) {
    let offered = |n| job(n).offered(NOW, worker(1).id, vec!["gpu-0".to_owned()], NOW).expect("it waits");
    for n in 1..=3 {
        store.insert_job(&job(n)).await;
        store.update_job(&job(n), &offered(n)).await.expect("as it was");
    }
    store.execute_raw("UPDATE jobs SET gpus = 'no JSON' WHERE submitted_at = 1705314600002").await;
    let leased = store.read().await.leased_jobs(Some(&worker(1).id)).await;
    assert_eq!(leased, Ok(vec![offered(1), offered(3)]));
}
