//! The writes of a group are flushed together at its end, and are visible to the group immediately.

use std::sync::Arc;

use app::domain::audit::{AuditAction, AuditEvent};
use app::domain::capability::Capability;
use app::domain::ids::{AttemptNumber, WorkerId};
use app::domain::job::{AttemptReport, Job};
use app::domain::shares::ShareRules;
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::credential::WorkerCredential;
use app::domain::worker::{Worker, WorkerKind};

use super::access::{session, token, user};
use super::history::{attempt, attempt_end};
use super::{NOW, TestStore, job, on_every_engine, shares, worker};
use crate::store::access::{LastUsed, StoredUser};
use crate::store::cache::state::FleetState;
use crate::store::jobs::attempts::StoredAttempt;
use crate::store::workers::LastContact;
use crate::store::{StoreError, Tx};

on_every_engine!(
    group_reads_its_own_writes,
    many_rows_are_flushed_together,
    stale_change_inside_a_group_is_a_conflict,
    change_of_a_missing_attempt_fails,
    rejection_after_a_write_writes_nothing,
    failed_statement_cannot_be_ignored,
    memory_equals_the_database,
    rollback_clears_memory,
);

pub(super) fn offer_job(before: &Job) -> Job {
    before.clone().offered(NOW, worker(1).id, vec!["gpu-0".to_owned()], NOW).expect("it waits")
}

async fn group_reads_its_own_writes(store: &TestStore) {
    let write = store.write(|tx| {
        Box::pin(async move {
            let (queued, offered) = (job(1), offer_job(&job(1)));
            let running = offered
                .clone()
                .reported(NOW, &worker(1).id, AttemptNumber(1), AttemptReport::Running)
                .expect("offered");
            tx.insert_job(&queued).await?;
            tx.update_job(&queued, &offered).await?;
            tx.insert_attempt(&attempt(&queued.id, 1), "digest").await?;
            tx.update_job(&offered, &running).await?;
            tx.start_attempt(&queued.id, AttemptNumber(1), Timestamp(5)).await?;
            let entry = AuditEvent {
                at: NOW,
                actor: "admin".to_owned(),
                action: AuditAction::JobSubmitted,
                target: queued.id.to_string(),
                detail: "{}".to_owned(),
                request_id: None,
            };
            tx.append_audit(entry.clone()).await?;
            tx.append_audit(entry).await?;
            let jobs = tx.jobs_by_id(std::slice::from_ref(&queued.id)).await?;
            assert_eq!(jobs, std::slice::from_ref(&running));
            assert_eq!(tx.job(&queued.id).await?, Some(running));
            let started = StoredAttempt { started_at: Some(Timestamp(5)), ..attempt(&queued.id, 1) };
            assert_eq!(tx.attempts(&queued.id).await?, [started]);
            assert_eq!(tx.audit_of_target(queued.id.as_str()).await?.len(), 2);
            // Entries that were flushed in the middle are continued.
            let end = attempt_end(Timestamp(7), "lost");
            tx.end_attempt(&queued.id, AttemptNumber(1), &end).await?;
            tx.start_attempt(&queued.id, AttemptNumber(1), Timestamp(6)).await
        })
    });
    write.await.expect("written");
    let attempts = store.read().await.attempts(&job(1).id).await.expect("readable");
    assert_eq!((attempts[0].started_at, attempts[0].ended_at), (Some(Timestamp(5)), Some(Timestamp(7))));
}

async fn many_rows_are_flushed_together(store: &TestStore) {
    const MANY: u8 = 150;
    let insert = store.write(|tx| {
        Box::pin(async move {
            for n in 1..=MANY {
                tx.insert_job(&job(n)).await?;
            }
            Ok(())
        })
    });
    insert.await.expect("new");
    let offer = store.write(|tx| {
        Box::pin(async move {
            for n in 1..=MANY {
                tx.update_job(&job(n), &offer_job(&job(n))).await?;
                tx.insert_attempt(&attempt(&job(n).id, 1), &format!("digest {n}")).await?;
            }
            Ok(())
        })
    });
    offer.await.expect("as it was read");
    let mut tx = store.read().await;
    let leased = tx.leased_jobs(None).await.expect("readable");
    assert_eq!(leased, (1..=MANY).map(|n| offer_job(&job(n))).collect::<Vec<_>>());
    for n in [1, MANY / 2, MANY] {
        let found = tx.attempt_by_token(&format!("digest {n}")).await;
        assert_eq!(found, Ok(Some((job(n).id, AttemptNumber(1), worker(1).id))));
    }
}

async fn stale_change_inside_a_group_is_a_conflict(store: &TestStore) {
    store.insert_job(&job(1)).await;
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.insert_job(&job(2)).await?;
            tx.update_job(&job(1), &offer_job(&job(1))).await?;
            tx.update_job(&job(1), &job(1).cancelled(NOW).expect("it waits")).await
        })
    });
    assert_eq!(write.await, Err(StoreError::Conflict));
    let mut tx = store.read().await;
    assert_eq!(tx.job(&job(1).id).await, Ok(Some(job(1))));
    assert_eq!(tx.job(&job(2).id).await, Ok(None));
}

async fn change_of_a_missing_attempt_fails(store: &TestStore) {
    let start = store.write(|tx| Box::pin(async move { tx.start_attempt(&job(1).id, AttemptNumber(1), NOW).await }));
    assert_eq!(start.await, Err(StoreError::Conflict));
}

async fn rejection_after_a_write_writes_nothing(store: &TestStore) {
    let rejected = store.write(|tx| {
        Box::pin(async move {
            tx.insert_job(&job(1)).await?;
            Err(StoreError::Rejected)
        })
    });
    let other = store.write(|tx| Box::pin(async move { tx.insert_job(&job(2)).await }));
    let (rejected, other) = tokio::join!(rejected, other);
    assert_eq!((rejected, other), (Err(StoreError::Rejected), Ok(())));
    let mut tx = store.read().await;
    assert_eq!((tx.job(&job(1).id).await, tx.job(&job(2).id).await), (Ok(None), Ok(Some(job(2)))));
}

async fn failed_statement_cannot_be_ignored(store: &TestStore) {
    store.insert_worker(&worker(1), "one").await.expect("new");
    let write = |result: Result<(), StoreError>| {
        store.write(move |tx| {
            let result = result.clone();
            Box::pin(async move {
                tx.insert_job(&job(1)).await?;
                let same_name = app::domain::worker::Worker { id: worker(2).id, ..worker(1) };
                assert_eq!(
                    tx.insert_worker(&same_name, &WorkerCredential::new("two")).await,
                    Err(StoreError::Conflict)
                );
                result
            })
        })
    };
    assert_eq!(write(Ok(())).await, Err(StoreError::Conflict));
    assert_eq!(write(Err(StoreError::Rejected)).await, Err(StoreError::Rejected));
    let other = store.write(|tx| Box::pin(async move { tx.insert_job(&job(2)).await }));
    let (rejected, other) = tokio::join!(write(Err(StoreError::Rejected)), other);
    assert_eq!((rejected, other), (Err(StoreError::Rejected), Ok(())));
    let mut tx = store.read().await;
    assert_eq!((tx.job(&job(1).id).await, tx.job(&job(2).id).await), (Ok(None), Ok(Some(job(2)))));
    assert_eq!(tx.worker(&worker(2).id).await, Ok(None));
}

/// Reads everything that may come from memory.
async fn read_both(tx: &mut dyn Tx) -> (String, FleetState) {
    let mut found = Vec::new();
    for n in 1..=4 {
        found.push(format!("{:?}", tx.worker(&worker(n).id).await));
        found.push(format!("{:?}", tx.leased_jobs(Some(&worker(n).id)).await));
        found.push(format!("{:?}", tx.job(&job(n).id).await));
        found.push(format!("{:?}", tx.with_state(|state| state.queue_positions(&[&job(n)], NOW)).await));
    }
    for digest in ["one", "two", "three", "four", "none"] {
        found.push(format!("{:?} {:?}", tx.worker_by_token(digest).await, tx.resolve_token(digest).await));
        found.push(format!("{:?}", tx.resolve_cookie(digest).await));
    }
    found.push(format!("{:?}", tx.leased_jobs(None).await));
    (found.join("\n"), tx.with_state(FleetState::clone).await.expect("readable"))
}

/// Compares the state in memory with the one that a reader sees after its first statement.
pub(super) async fn assert_memory_matches(store: &TestStore) {
    let first = async || {
        store
            .recent()
            .await
            .with_state(|fleet_state| fleet_state.workers().next().map(|row| Arc::clone(&row.stored)))
            .await
            .expect("readable")
    };
    let first = async || first().await.expect("a worker");
    assert!(Arc::ptr_eq(&first().await, &first().await), "two readers get the same object, so it comes from memory");
    let mut tx = store.recent().await;
    let from_memory = read_both(&mut *tx).await;
    tx.setting("any").await.expect("readable");
    assert_eq!(from_memory, read_both(&mut *tx).await);
}

/// Lets the writer load its state, as planning does.
pub(super) async fn read_all_state(store: &TestStore) {
    store.write(|tx| Box::pin(async move { tx.read_state(&mut |_| {}).await })).await.expect("readable");
}

pub(super) fn with_stream(worker: &Worker) -> Worker {
    let registered = worker.clone().registered(NOW, Capability::default(), WorkerKind::Persistent);
    registered.stream_opened(NOW, "c_test/1").expect("registered")
}

async fn memory_equals_the_database(store: &TestStore) {
    for (n, digest) in [(1, "one"), (2, "two"), (3, "three")] {
        store.insert_worker(&worker(n), digest).await.expect("new");
    }
    store.insert_job(&job(1)).await;
    read_all_state(store).await;
    assert_memory_matches(store).await;
    change_every_cached_row(store).await;
    assert_memory_matches(store).await;
    store.update_job(&offer_job(&job(1)), &job(1)).await.expect("as it was read");
    assert_memory_matches(store).await;
    let offered = job(1).offered(NOW, worker(4).id, vec![], NOW).expect("it waits");
    store.update_job(&job(1), &offered).await.expect("as it was read");
    assert_memory_matches(store).await;
    let missing = store.read().await.worker(&WorkerId::new(NOW, [77; 10])).await;
    assert_eq!(missing, Ok(None));
}

/// Makes each kind of change of cached rows; there must be workers 1 to 3 and job 1.
pub(super) async fn change_every_cached_row(store: &TestStore) {
    let changes = store.write(|tx| {
        Box::pin(async move {
            tx.insert_job(&job(2)).await?;
            tx.insert_job(&job(3)).await?;
            tx.update_job(&job(1), &offer_job(&job(1))).await?;
            tx.update_job(&job(3), &job(3).cancelled(NOW).expect("it waits")).await?;
            tx.insert_worker(&worker(4), &WorkerCredential::new("four")).await?;
            tx.put_credential(&worker(2).id, &WorkerCredential::issued("none", NOW, "ada")).await?;
            tx.delete_worker(&worker(3).id).await?;
            let contact = |at| LastContact { at: Timestamp(at), from: None };
            tx.flush_last_seen(&[(worker(1).id, contact(9)), (worker(2).id, contact(8))]).await?;
            let drained = worker(1).drained(NOW, Some("upgrade".to_owned()), None);
            tx.update_worker(&worker(1), &drained).await?;
            tx.update_worker(&worker(4), &with_stream(&worker(4))).await?;
            tx.insert_user(&user(1)).await?;
            tx.insert_api_token(&token(1, 1), "one").await?;
            tx.insert_api_token(&token(2, 1), "two").await?;
            tx.insert_api_token(&token(3, 1), "three").await?;
            tx.insert_session(&session(1, 1, None), "one").await?;
            tx.insert_session(&session(2, 1, Some(3)), "two").await?;
            tx.insert_session(&session(3, 1, None), "three").await?;
            tx.insert_session(&session(4, 1, None), "four").await?;
            tx.delete_api_token(&token(3, 1).id).await?;
            tx.delete_session(&session(3, 1, None).id).await?;
            tx.sweep_sessions(Timestamp(1_000), Timestamp(0)).await?;
            tx.save_team(&shares::team("vision")).await?;
            tx.save_team(&shares::team("speech")).await?;
            tx.delete_team("speech").await?;
            tx.put_share_usage(&shares::key("ada"), &shares::usage(0)).await?;
            tx.put_share_rules(ShareRules { half_life: Millis(77) }).await?;
            tx.update_user(&StoredUser { disabled_at: Some(Timestamp(5)), ..user(1) }).await?;
            tx.record_last_used(&[LastUsed::Token(token(1, 1).id, NOW), LastUsed::Session(session(4, 1, None).id, NOW)])
                .await
        })
    });
    changes.await.expect("as it was read");
}

async fn rollback_clears_memory(store: &TestStore) {
    store.insert_worker(&worker(1), "one").await.expect("new");
    store.insert_job(&job(1)).await;
    read_all_state(store).await;
    let conflicting = store.write(|tx| {
        Box::pin(async move {
            tx.put_credential(&worker(1).id, &WorkerCredential::new("two")).await?;
            tx.insert_job(&job(2)).await?;
            tx.update_job(&offer_job(&job(1)), &job(1)).await
        })
    });
    assert_eq!(conflicting.await, Err(StoreError::Conflict));
    assert_memory_matches(store).await;
    read_all_state(store).await;
    assert_memory_matches(store).await;
}
