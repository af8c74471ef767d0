//! Numbers, names, tags and notes of jobs.

use app::domain::job::{Job, JobDescription, JobSpec};

use super::groups::{assert_memory_matches, read_all_state};
use super::{NOW, TestStore, job, on_every_engine, worker};
use crate::store::StoreError;
use crate::store::jobs::retention::RetainedKind;

on_every_engine!(
    description_is_replaced_with_its_tags,
    description_of_a_new_job_is_written_in_the_same_group,
    numbers_continue_after_removed_jobs,
);

fn with_description(n: u8, name: Option<&str>, tags: &[&str]) -> Job {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let description = JobDescription { name: name.map(str::to_owned), tags, notes: Some("notes".to_owned()) };
    Job { description, ..job(n) }
}

async fn describe(store: &TestStore, job: &Job) -> Result<(), StoreError> {
    let job = job.clone();
    let write = store.write(move |tx| {
        let job = job.clone();
        Box::pin(async move { tx.describe_job(&job).await })
    });
    write.await
}

async fn stored_job(store: &TestStore, job: &Job) -> Job {
    store.read().await.job(&job.id).await.expect("readable").expect("a job")
}

async fn description_is_replaced_with_its_tags(store: &TestStore) {
    store.insert_worker(&worker(1), "one").await.expect("new");
    read_all_state(store).await;
    let (first, second) = (with_description(1, Some("one"), &["a", "b"]), with_description(2, None, &["b"]));
    store.insert_job(&first).await;
    store.insert_job(&second).await;
    assert_eq!(stored_job(store, &first).await, first);
    let changed = with_description(1, None, &["c"]);
    describe(store, &changed).await.expect("stored");
    assert_memory_matches(store).await;
    assert_eq!(stored_job(store, &first).await, changed);
    // A job that has ended can be described too.
    let cancelled = second.clone().cancelled(NOW).expect("it waits");
    store.update_job(&second, &cancelled).await.expect("as it was read");
    let described = Job { description: JobDescription::default(), ..cancelled };
    describe(store, &described).await.expect("stored");
    assert_eq!(stored_job(store, &second).await, described);
    assert_memory_matches(store).await;
    assert_eq!(describe(store, &job(3)).await, Err(StoreError::Conflict));
}

async fn description_of_a_new_job_is_written_in_the_same_group(store: &TestStore) {
    store.insert_worker(&worker(1), "one").await.expect("new");
    read_all_state(store).await;
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.insert_job(&with_description(1, None, &["a"])).await?;
            tx.describe_job(&with_description(1, None, &["b"])).await
        })
    });
    write.await.expect("a new id");
    assert_eq!(stored_job(store, &job(1)).await, with_description(1, None, &["b"]));
    assert_memory_matches(store).await;
}

/// Inserts a job with the next number of its configuration, as a submit does; returns the number.
async fn insert_numbered(store: &TestStore, n: u8, config: &'static str) -> Option<u32> {
    let write = store.write(move |tx| {
        Box::pin(async move {
            let number = Some(tx.last_job_number(config).await? + 1);
            tx.insert_job(&Job { number, spec: JobSpec::new(config, 1), ..job(n) }).await
        })
    });
    write.await.expect("a new id");
    stored_job(store, &job(n)).await.number
}

async fn numbers_continue_after_removed_jobs(store: &TestStore) {
    assert_eq!(insert_numbered(store, 1, "digits").await, Some(1));
    assert_eq!(insert_numbered(store, 2, "faces").await, Some(1));
    assert_eq!(insert_numbered(store, 3, "digits").await, Some(2));
    let rolled_back = store.write(|tx| {
        Box::pin(async move {
            let number = Some(tx.last_job_number("digits").await? + 1);
            tx.insert_job(&Job { number, spec: JobSpec::new("digits", 1), ..job(4) }).await?;
            tx.update_job(&job(9), &job(9)).await
        })
    });
    assert_eq!(rolled_back.await, Err(StoreError::Conflict));
    for n in [1, 3] {
        let stored = stored_job(store, &job(n)).await;
        store.update_job(&stored, &stored.clone().cancelled(NOW).expect("it waits")).await.expect("as it was read");
        let remove =
            store.write(move |tx| Box::pin(async move { tx.remove_retained(RetainedKind::Job, &job(n).id).await }));
        remove.await.expect("removed");
    }
    assert_eq!(insert_numbered(store, 5, "digits").await, Some(3));
}

#[tokio::test]
async fn servers_do_not_use_a_number_twice() {
    let first = TestStore::postgres().await;
    let second = first.peer().await;
    let mut numbers = Vec::new();
    for n in 1..=6 {
        numbers.push(insert_numbered(if n % 2 == 0 { &first } else { &second }, n, "digits").await);
    }
    assert_eq!(numbers, (1..=6).map(Some).collect::<Vec<_>>());
}
