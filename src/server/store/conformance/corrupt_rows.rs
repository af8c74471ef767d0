//! A corrupt row is left out of lists, and does not hide others.

use app::domain::job::Job;

use super::{NOW, TestStore, job, on_every_engine, worker};
use crate::store::StoreError;
use crate::store::jobs::JobFilter;

on_every_engine!(
    corrupt_worker_hides_no_other,
    corrupt_job_hides_no_other,
    corrupt_job_does_not_end_a_list,
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
    let all = JobFilter { limit: 9, ..JobFilter::default() };
    assert_eq!(tx.jobs(&all).await.as_deref(), Ok(&intact[..]));
    let waiting =
        tx.with_state(|fleet_state| fleet_state.queued_jobs().cloned().collect::<Vec<Job>>()).await.expect("readable");
    assert_eq!(waiting, [1, 3, 5].map(job), "in the order of planning");
    let result = tx.job(&job(2).id).await;
    assert!(matches!(result, Err(StoreError::CorruptRow { table: "jobs", .. })), "it exists: {result:?}");
    store.update_job(&job(3), &job(3).cancelled(NOW).expect("it waits")).await.expect("the others continue");
}

async fn corrupt_job_does_not_end_a_list(store: &TestStore) {
    for n in 1..=7 {
        store.insert_job(&job(n)).await;
    }
    store.execute_raw("UPDATE jobs SET target = 'banana' WHERE submitted_at IN (1705314600004, 1705314600005)").await;
    let mut tx = store.read().await;
    let page = |limit| JobFilter { limit, ..JobFilter::default() };
    assert_eq!(tx.jobs(&page(3)).await.as_deref(), Ok(&[7, 6, 3].map(job)[..]), "as many as requested");
    assert_eq!(tx.jobs(&page(5)).await.as_deref(), Ok(&[7, 6, 3, 2, 1].map(job)[..]));
    assert_eq!(tx.jobs(&page(6)).await.map(|jobs| jobs.len()), Ok(5), "no more exist");
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
