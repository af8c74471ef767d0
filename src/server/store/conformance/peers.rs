//! Two servers on one database: each applies what the other one has changed.

use std::pin::pin;
use std::sync::Arc;

use app::domain::job::Job;
use app::domain::worker::Worker;
use app::domain::worker::credential::WorkerCredential;
use futures_util::poll;
use tokio::sync::Semaphore;

use super::groups::{assert_memory_matches, change_every_cached_row, offer_job, read_all_state};
use super::misc::config;
use super::{NOW, TestStore, job, worker};
use crate::store::StoreError;
use crate::store::cache::state::FleetState;
use crate::store::workers::StoredWorker;

/// Two servers that have both loaded workers 1 to 3, 5 and job 1.
async fn two_servers() -> (TestStore, TestStore) {
    let first = TestStore::postgres().await;
    for (n, digest) in [(1, "one"), (2, "two"), (3, "three"), (5, "five")] {
        first.insert_worker(&worker(n), digest).await.expect("new");
    }
    first.insert_job(&job(1)).await;
    let second = first.peer().await;
    for store in [&first, &second] {
        read_all_state(store).await;
    }
    (first, second)
}

/// The state that a writer decides by.
async fn written_state(store: &TestStore) -> FleetState {
    let (sender, mut states) = tokio::sync::mpsc::unbounded_channel();
    let write = store.write(move |tx| {
        let sender = sender.clone();
        Box::pin(async move {
            let _ = sender.send(tx.with_state(FleetState::clone).await?);
            Ok(())
        })
    });
    write.await.expect("readable");
    states.recv().await.expect("a state")
}

/// The state in the database.
async fn stored_state(store: &TestStore) -> FleetState {
    let mut tx = store.recent().await;
    tx.setting("any").await.expect("readable");
    tx.with_state(FleetState::clone).await.expect("readable")
}

/// The same object as before if the worker was not read again.
async fn unchanged_worker(store: &TestStore) -> Arc<StoredWorker> {
    let read = |state: &FleetState| state.worker(&worker(5).id).map(Arc::clone);
    store.recent().await.with_state(read).await.expect("readable").expect("worker 5")
}

async fn generation(store: &TestStore) -> i64 {
    store.query_number("SELECT number FROM generation").await
}

#[tokio::test]
async fn notified_changes_are_applied_without_reading_other_rows() {
    let (first, second) = two_servers().await;
    let before = unchanged_worker(&second).await;
    change_every_cached_row(&first).await;
    while second.recent().await.worker(&worker(4).id).await.expect("readable").is_none()
        || second.recent().await.with_state(|state| state.worker(&worker(4).id).is_none()).await.expect("readable")
    {
        second.store.next_external_change().await;
    }
    assert_memory_matches(&second).await;
    assert!(Arc::ptr_eq(&before, &unchanged_worker(&second).await), "only changed rows are read again");
}

#[tokio::test]
async fn jobs_that_another_server_has_changed_are_reported() {
    let (first, second) = two_servers().await;
    for store in [&first, &second] {
        store.store.take_changed_jobs();
    }
    second.insert_job(&job(2)).await;
    second.update_job(&job(1), &job(1).cancelled(NOW).expect("waits")).await.expect("as it was");
    drop(first.read().await);
    assert_eq!(first.store.take_changed_jobs(), Some([job(1).id, job(2).id].into()));
    first.insert_job(&job(3)).await;
    drop(second.read().await);
    assert_eq!(second.store.take_changed_jobs(), Some([1, 2, 3].map(|n| job(n).id).into()));
}

#[tokio::test]
async fn reader_applies_changes_that_were_not_notified() {
    let (first, second) = two_servers().await;
    let before = unchanged_worker(&second).await;
    change_every_cached_row(&first).await;
    let in_memory = second.read().await.with_state(FleetState::clone).await.expect("readable");
    assert_eq!(in_memory, stored_state(&second).await);
    assert_memory_matches(&second).await;
    assert!(Arc::ptr_eq(&before, &unchanged_worker(&second).await), "only changed rows are read again");
}

#[tokio::test]
async fn writer_applies_changes_before_it_decides() {
    let (first, second) = two_servers().await;
    let before = unchanged_worker(&second).await;
    change_every_cached_row(&first).await;
    assert_eq!(written_state(&second).await, stored_state(&second).await);
    assert_memory_matches(&second).await;
    assert!(Arc::ptr_eq(&before, &unchanged_worker(&second).await), "only changed rows are read again");
}

#[tokio::test]
async fn servers_that_write_in_turns_stay_equal() {
    let (first, second) = two_servers().await;
    for n in 2..30 {
        let (store, other) = if n % 3 == 0 { (&first, &second) } else { (&second, &first) };
        store.insert_job(&job(n)).await;
        let offered = offer_job(&job(n));
        if n % 2 == 0 {
            other.update_job(&job(n), &offered).await.expect("as it was read");
            // A rollback drops what the writer has in memory.
            assert_eq!(store.update_job(&job(n), &offered).await, Err(StoreError::Conflict));
        }
        if n % 4 == 0 {
            let ended: Job = offered.clone().cancelled(NOW).expect("it has not ended");
            store.update_job(&offered, &ended).await.expect("as it was read");
        }
        let drained: Worker = worker(1).drained(NOW, Some(format!("after job {n}")), None);
        other.update_worker(&worker(1), &drained).await.expect("as it was read");
        assert_eq!(written_state(store).await, stored_state(store).await, "job {n}");
        other.update_worker(&drained, &worker(1)).await.expect("as it was read");
    }
    for store in [&first, &second] {
        assert_eq!(written_state(store).await, stored_state(store).await);
        assert_memory_matches(store).await;
    }
}

#[tokio::test]
async fn row_that_was_deleted_soon_after_its_change_is_removed() {
    let (first, second) = two_servers().await;
    first.insert_worker(&worker(6), "six").await.expect("new");
    first
        .write(|tx| Box::pin(async move { tx.delete_worker(&worker(6).id).await }))
        .await
        .expect("it is not connected");
    let cancelled = job(1).cancelled(NOW).expect("it waits");
    first.update_job(&job(1), &cancelled).await.expect("as it was read");
    first.execute_raw("DELETE FROM jobs").await;
    assert_eq!(written_state(&second).await, stored_state(&second).await);
    assert_memory_matches(&second).await;
}

/// Drains worker 1 without the stores; both find it.
async fn assert_found(drain: &'static str) {
    let (first, second) = two_servers().await;
    first.execute_raw(drain).await;
    let is_drained =
        |state: &FleetState| state.worker(&worker(1).id).is_some_and(|stored| stored.worker.drain.is_some());
    assert_eq!(first.read().await.with_state(is_drained).await, Ok(true));
    assert!(is_drained(&written_state(&second).await));
    assert_memory_matches(&second).await;
}

#[tokio::test]
async fn changes_by_a_server_that_records_none_are_found() {
    assert_found(
        "WITH next AS (UPDATE generation SET number = number + 1)
            UPDATE workers SET drain_since = 5 WHERE name = 'worker-1'",
    )
    .await;
}

#[tokio::test]
async fn database_that_was_restored_is_read_completely() {
    assert_found(
        "WITH earlier AS (UPDATE generation SET number = 1)
            UPDATE workers SET drain_since = 5 WHERE name = 'worker-1'",
    )
    .await;
}

/// Inserts job 2 in a group that holds the lock from `has_begun` until `may_end`.
async fn write_slowly(store: &TestStore, has_begun: &Arc<Semaphore>, may_end: &Arc<Semaphore>) {
    let (has_begun, may_end) = (Arc::clone(has_begun), Arc::clone(may_end));
    let write = store.write(move |tx| {
        let (has_begun, may_end) = (Arc::clone(&has_begun), Arc::clone(&may_end));
        Box::pin(async move {
            has_begun.add_permits(1);
            may_end.acquire().await.expect("open").forget();
            tx.insert_job(&job(2)).await
        })
    });
    write.await.expect("new");
}

#[tokio::test]
async fn work_that_arrives_while_a_group_waits_for_another_server_joins_it() {
    const WAITING_GROUPS: &str = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let (first, second) = two_servers().await;
    let before = generation(&first).await;
    let (has_begun, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let write_two = async {
        let jobs = [job(3), job(4)];
        let (mut waiting, mut arrived) = (pin!(first.insert_job(&jobs[0])), pin!(first.insert_job(&jobs[1])));
        has_begun.acquire().await.expect("open").forget();
        assert!(poll!(waiting.as_mut()).is_pending());
        while first.query_number(WAITING_GROUPS).await == 0 {}
        assert!(poll!(arrived.as_mut()).is_pending());
        may_end.add_permits(1);
        tokio::join!(waiting, arrived);
    };
    tokio::join!(write_slowly(&second, &has_begun, &may_end), write_two);
    assert_eq!(generation(&first).await, before + 2, "one group of each server");
    assert_eq!(written_state(&second).await, stored_state(&second).await);
}

#[tokio::test]
async fn newest_revision_is_known_to_other_servers() {
    let (first, second) = two_servers().await;
    let insert = async |store: &TestStore, revision| {
        let write = store.write(move |tx| Box::pin(async move { tx.insert_config(&config(revision)).await }));
        write.await.expect("new");
    };
    let newest = async |store: &TestStore| {
        let (sender, mut revisions) = tokio::sync::mpsc::unbounded_channel();
        let write = store.write(move |tx| {
            let sender = sender.clone();
            Box::pin(async move {
                let config = tx.config("digits").await?;
                let _ = sender.send(config.map(|config| config.revision));
                Ok(())
            })
        });
        write.await.expect("readable");
        revisions.recv().await.expect("a revision")
    };
    insert(&first, 1).await;
    assert_eq!((newest(&first).await, newest(&second).await), (Some(1), Some(1)));
    insert(&second, 2).await;
    assert_eq!(newest(&first).await, Some(2));
    first.write(|tx| Box::pin(async move { tx.remove_config("digits").await })).await.expect("it exists");
    assert_eq!(newest(&second).await, None);
}

#[tokio::test]
async fn group_that_writes_nothing_begins_no_generation() {
    let (first, _) = two_servers().await;
    let before = generation(&first).await;
    read_all_state(&first).await;
    assert_eq!(first.write(|_| Box::pin(async { Err(StoreError::Rejected) })).await, Err(StoreError::Rejected));
    assert_eq!(generation(&first).await, before);
    first.insert_worker(&worker(7), "seven").await.expect("new");
    assert_eq!(generation(&first).await, before + 1);
    let put =
        first.write(|tx| Box::pin(async move { tx.put_credential(&worker(7).id, &WorkerCredential::new("8")).await }));
    put.await.expect("it exists");
    assert_eq!(generation(&first).await, before + 2);
}

#[tokio::test]
async fn old_records_are_deleted() {
    let (first, second) = two_servers().await;
    let before = generation(&first).await;
    first.execute_raw("UPDATE generation_changes SET at = at - 61000").await;
    for n in 0..64 {
        let value = n.to_string();
        let write = first.write(move |tx| {
            let value = value.clone();
            Box::pin(async move { tx.put_setting("key", Some(&value)).await })
        });
        write.await.expect("written");
    }
    let oldest = first.query_number("SELECT min(generation) FROM generation_changes").await;
    assert_eq!(oldest, before + 1);
    assert_eq!(written_state(&second).await, stored_state(&second).await);
}
