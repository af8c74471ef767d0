//! Configurations, access, and transactions.

use app::domain::worker::credential::WorkerCredential;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use app::domain::time::Millis;

use super::{NOW, TestStore, job, on_every_engine, worker};
use crate::clock::{Clock, SystemClock};
use crate::store::StoreError;
use crate::store::configs::{RevisionUsage, StoredConfig, StoredRevision};

on_every_engine!(
    revisions_stay_after_a_configuration_is_deleted,
    rejection_writes_nothing_and_affects_no_others,
    conflict_undoes_earlier_writes,
    concurrent_writers_all_complete,
    readers_see_one_snapshot_and_cannot_write,
    closed_store_reports_an_error,
    schema_is_at_the_newest_migration,
    leader_is_known_during_its_term,
    servers_that_share_a_database_share_its_clock,
);

pub(super) fn config(revision: u32) -> StoredConfig {
    StoredConfig {
        name: "digits".to_owned(),
        revision,
        sha256: format!("{revision:064}"),
        files: [("config.json".to_owned(), format!("{{\"revision\": {revision}}}"))].into(),
        created_at: NOW,
        created_by: Some("eve".to_owned()).filter(|_| revision > 1),
        owner: Some("ada".to_owned()),
    }
}

async fn revisions_stay_after_a_configuration_is_deleted(store: &TestStore) {
    assert_eq!(store.read().await.newest_revision("digits").await, Ok(0));
    for revision in [1, 2] {
        let write = store.write(move |tx| Box::pin(async move { tx.insert_config(&config(revision)).await }));
        write.await.expect("new");
    }
    assert_eq!(store.read().await.configs().await, Ok(vec![config(2)]));
    let mut tx = store.read().await;
    let eves_bytes = tx.config_bytes(Some("eve")).await.expect("readable");
    assert!(eves_bytes > 30, "{eves_bytes}");
    assert_eq!((tx.config_bytes(None).await, tx.config_bytes(Some("unknown-user")).await), (Ok(2 * eves_bytes), Ok(0)));
    drop(tx);
    assert_eq!(store.read().await.config_revision("digits", 1).await, Ok(Some(Arc::new(config(1)))));
    store.insert_job(&job(1)).await;
    let usage = RevisionUsage { revision: 2, state: "queued".to_owned(), jobs: 1 };
    let owner = job(1).submitted_by;
    let mut tx = store.read().await;
    assert_eq!(tx.revision_usage("digits", None).await, Ok(vec![usage.clone()]));
    assert_eq!(tx.revision_usage("digits", Some(&owner)).await, Ok(vec![usage]));
    assert_eq!(
        (tx.revision_usage("digits", Some("unknown-user")).await, tx.revision_usage("other", None).await),
        (Ok(vec![]), Ok(vec![]))
    );
    assert_eq!(
        (tx.last_run_revision("digits", &owner).await, tx.last_run_revision("digits", "unknown-user").await),
        (Ok(Some(2)), Ok(None))
    );
    drop(tx);
    store.write(|tx| Box::pin(async move { tx.remove_config("digits").await })).await.expect("it exists");
    let second_removal = store.write(|tx| Box::pin(async move { tx.remove_config("digits").await })).await;
    assert_eq!(second_removal, Err(StoreError::Conflict));
    let mut tx = store.read().await;
    assert_eq!(tx.config("digits").await, Ok(None));
    assert_eq!(tx.config_revision("digits", 2).await, Ok(Some(Arc::new(config(2)))));
    assert_eq!(tx.newest_revision("digits").await, Ok(2));
    let stored_revision = |revision| {
        let StoredConfig { revision, sha256, created_at, created_by, .. } = config(revision);
        StoredRevision { revision, sha256, created_at, created_by }
    };
    assert_eq!(tx.revisions("digits").await, Ok(vec![stored_revision(2), stored_revision(1)]));
    assert_eq!(tx.revisions("other").await, Ok(vec![]));
}

async fn rejection_writes_nothing_and_affects_no_others(store: &TestStore) {
    let rejected = store.write(|_| Box::pin(async { Err(StoreError::Rejected) }));
    let new_worker = worker(1);
    let accepted = store.insert_worker(&new_worker, "digest");
    let (rejected, accepted) = tokio::join!(rejected, accepted);
    assert_eq!((rejected, accepted), (Err(StoreError::Rejected), Ok(())));
    assert_eq!(store.read().await.workers().await.map(|all| all.len()), Ok(1));
}

async fn conflict_undoes_earlier_writes(store: &TestStore) {
    store.insert_worker(&worker(1), "digest").await.expect("new");
    let conflicting = store.write(|tx| {
        Box::pin(async move {
            tx.put_setting("half", Some("written")).await?;
            tx.insert_worker(&worker(1), &WorkerCredential::new("digest")).await
        })
    });
    let other = store.write(|tx| Box::pin(async move { tx.put_setting("other", Some("written")).await }));
    let (conflicting, other) = tokio::join!(conflicting, other);
    assert_eq!((conflicting, other), (Err(StoreError::Conflict), Ok(())));
    assert_eq!(store.read().await.setting("half").await, Ok(None));
    assert_eq!(store.read().await.setting("other").await, Ok(Some("written".to_owned())));
}

async fn concurrent_writers_all_complete(store: &TestStore) {
    store.insert_job(&job(1)).await;
    let runs = Arc::new(AtomicU32::new(0));
    let write = |n: u32| {
        let runs = Arc::clone(&runs);
        store.write(move |tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            let key = format!("key-{n}");
            Box::pin(async move { tx.put_setting(&key, Some("x")).await })
        })
    };
    let results = futures_util::future::join_all((0..300).map(write)).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(runs.load(Ordering::SeqCst), 300);
    assert_eq!(store.read().await.setting("key-299").await, Ok(Some("x".to_owned())));
}

async fn readers_see_one_snapshot_and_cannot_write(store: &TestStore) {
    let mut snapshot = store.read().await;
    assert_eq!(snapshot.setting("key").await, Ok(None));
    store.write(|tx| Box::pin(async move { tx.put_setting("key", Some("x")).await })).await.expect("written");
    assert_eq!(snapshot.setting("key").await, Ok(None));
    assert_eq!(store.read().await.setting("key").await, Ok(Some("x".to_owned())));
    let attempt = store.read().await.put_setting("key", Some("y")).await;
    assert!(matches!(attempt, Err(StoreError::Unavailable(_))));
}

async fn schema_is_at_the_newest_migration(store: &TestStore) {
    let version = store.read().await.schema().await.expect("readable").version;
    assert!(version > 0 && version == store.store.newest_schema(), "{version}");
}

async fn leader_is_known_during_its_term(store: &TestStore) {
    store
        .write(|tx| Box::pin(async move { tx.try_lead(Millis::from_secs(60)).await.map(drop) }))
        .await
        .expect("written");
    assert_eq!(store.read().await.has_leader().await, Ok(true));
    store.write(|tx| Box::pin(async move { tx.remove_server().await })).await.expect("written");
    let has_leader = store.read().await.has_leader().await.expect("readable");
    let is_single_server =
        store.read().await.heartbeat_server(Millis::from_secs(1)).await.is_ok_and(|servers| servers.len() == 1);
    assert_eq!(has_leader, is_single_server, "on a shared database, no server leads now");
}

async fn servers_that_share_a_database_share_its_clock(store: &TestStore) {
    let is_single_server =
        store.read().await.heartbeat_server(Millis::from_secs(1)).await.is_ok_and(|servers| servers.len() == 1);
    let mut tx = store.read().await;
    let first = tx.database_time().await.expect("readable");
    assert_eq!(first.is_none(), is_single_server, "{first:?}");
    let Some(first) = first else { return };
    assert!((SystemClock.now() - first).0.abs() < 60_000, "the time is in ms: {first:?}");
    // The clock advances, also within a transaction.
    while tx.database_time().await.expect("readable") <= Some(first) {}
}

async fn closed_store_reports_an_error(store: &TestStore) {
    store.store.close().await;
    let result = store.write(|_| Box::pin(async { Ok(()) })).await;
    assert!(matches!(result, Err(StoreError::Unavailable(_))));
}
