//! Queries about a period.

use app::domain::audit::{AuditAction, AuditEvent};
use app::domain::ids::WorkerId;
use app::domain::job::Job;
use app::domain::time::{Millis, Timestamp};
use app::domain::usage::{AttemptUsage, JobWait, TimeWindow};
use app::domain::worker::Worker;

use super::history::{attempt, attempt_end};
use super::{NOW, TestStore, job, on_every_engine, worker};
use crate::store::jobs::attempts::StoredAttempt;
use crate::store::usage::{FailingWorker, FailureStreakQuery, PresenceEvent};

on_every_engine!(
    attempts_and_waits_are_found_by_period,
    recent_ends_are_counted_and_quick_failures_found,
    worker_presence_comes_from_the_audit_log,
    engine_reports_its_version
);

fn at(seconds: i64) -> Timestamp {
    NOW + Millis::from_secs(seconds)
}

fn window(since: i64, until: i64) -> TimeWindow {
    TimeWindow { since: at(since), until: at(until) }
}

/// An attempt of a job, offered at `from`, accepted a second later, and ended at `until`.
async fn insert_attempt(
    store: &TestStore,
    job: &Job,
    number: u32,
    from: i64,
    until: Option<i64>,
    digest: &'static str,
) {
    let new = StoredAttempt { gpus: number + 1, offered_at: at(from), ..attempt(&job.id, number) };
    let write = store.write(move |tx| {
        let new = new.clone();
        Box::pin(async move {
            tx.insert_attempt(&new, digest).await?;
            tx.start_attempt(&new.job, new.attempt, new.offered_at + Millis::from_secs(1)).await?;
            if let Some(until) = until {
                let end = attempt_end(at(until), "lost");
                tx.end_attempt(&new.job, new.attempt, &end).await?;
            }
            Ok(())
        })
    });
    write.await.expect("new");
}

async fn attempts_and_waits_are_found_by_period(store: &TestStore) {
    let (first, second) = (job(1), Job { submitted_by: "eve".to_owned(), ..job(2) });
    store.insert_job(&first).await;
    store.insert_job(&second).await;
    insert_attempt(store, &first, 1, 10, Some(20), "a").await;
    insert_attempt(store, &first, 2, 30, None, "b").await;
    let mut tx = store.read().await;
    let mut numbers = async |since, until, user: Option<&str>| -> Vec<u32> {
        let runs = tx.attempt_usage(window(since, until), user).await.expect("readable");
        let mut numbers: Vec<u32> = runs.iter().map(|run| run.gpus - 1).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(0, 100, None).await, [1, 2]);
    assert_eq!(numbers(0, 100, Some("ada")).await, [1, 2]);
    assert_eq!(numbers(0, 100, Some("eve")).await, [] as [u32; 0]);
    assert_eq!(numbers(20, 30, None).await, [] as [u32; 0], "between the two");
    assert_eq!(numbers(19, 30, None).await, [1]);
    assert_eq!(numbers(500, 501, None).await, [2], "it is still running");
    assert_eq!(numbers(0, 10, None).await, [] as [u32; 0]);
    let runs = tx.attempt_usage(window(0, 25), None).await.expect("readable");
    let run = AttemptUsage {
        job: first.id.clone(),
        user: "ada".to_owned(),
        config_name: "digits".to_owned(),
        labels: first.spec.demand.labels.clone(),
        worker: worker(1).id,
        worker_name: "worker-1".to_owned(),
        gpus: 2,
        offered_at: at(10),
        started_at: Some(at(11)),
        ended_at: Some(at(20)),
    };
    assert_eq!(runs, [run]);
    let ended_wait = JobWait {
        submitted_at: first.submitted_at,
        offered_at: Some(at(10)),
        started_at: Some(at(11)),
        ended_at: None,
    };
    let open_wait = JobWait { submitted_at: second.submitted_at, offered_at: None, started_at: None, ended_at: None };
    let mut waits = async |since, until, user: Option<&str>| {
        let mut waits = tx.job_waits(window(since, until), user).await.expect("readable");
        waits.sort_by_key(|wait| wait.submitted_at);
        waits
    };
    assert_eq!(waits(0, 100, None).await, [ended_wait, open_wait]);
    assert_eq!(waits(12, 100, None).await, [open_wait], "the first had started by then");
    assert_eq!(waits(0, 100, Some("eve")).await, [open_wait]);
    assert_eq!(waits(-100, -50, None).await, [] as [JobWait; 0], "submitted later");
}

/// The end of an attempt that was offered at `from`.
async fn insert_ended_attempt(
    store: &TestStore,
    job: &Job,
    number: u32,
    (from, until): (i64, i64),
    outcome: &'static str,
    digest: &'static str,
) {
    let new = StoredAttempt { offered_at: at(from), ..attempt(&job.id, number) };
    let write = store.write(move |tx| {
        let new = new.clone();
        Box::pin(async move {
            tx.insert_attempt(&new, digest).await?;
            tx.start_attempt(&new.job, new.attempt, new.offered_at).await?;
            let end = attempt_end(at(until), outcome);
            tx.end_attempt(&new.job, new.attempt, &end).await
        })
    });
    write.await.expect("new");
}

async fn recent_ends_are_counted_and_quick_failures_found(store: &TestStore) {
    let (first, second) = (job(1), Job { submitted_by: "eve".to_owned(), ..job(2) });
    let second = second.cancelled(at(50)).expect("it waits");
    store.insert_job(&first).await;
    store.insert_job(&second).await;
    let mut tx = store.read().await;
    let one_cancelled = vec![("cancelled".to_owned(), 1)];
    assert_eq!(tx.ended_since(at(50), None).await, Ok(one_cancelled.clone()));
    assert_eq!(tx.ended_since(at(0), Some("eve")).await, Ok(one_cancelled));
    assert_eq!(tx.ended_since(at(0), Some("ada")).await, Ok(Vec::new()));
    assert_eq!(tx.ended_since(at(51), None).await, Ok(Vec::new()));
    drop(tx);

    let failing_on = async |since, min_failures, worker_filter: Option<Worker>| {
        let streak =
            FailureStreakQuery { since: at(since), now: at(1_000), quick_failure: Millis::from_secs(60), min_failures };
        store
            .read()
            .await
            .failing_workers(streak, worker_filter.as_ref().map(|worker_filter| &worker_filter.id))
            .await
            .expect("readable")
    };
    let failing = async |since, min_failures| failing_on(since, min_failures, None).await;
    let found = |attempts, since| vec![FailingWorker { worker: worker(1).id, attempts, since: at(since) }];
    insert_ended_attempt(store, &first, 1, (100, 105), "failed", "a").await;
    insert_ended_attempt(store, &first, 2, (110, 115), "failed", "b").await;
    assert_eq!(failing(0, 3).await, []);
    insert_ended_attempt(store, &first, 3, (120, 125), "failed", "c").await;
    assert_eq!((failing(0, 3).await, failing(110, 2).await), (found(3, 105), found(2, 115)));
    assert_eq!(failing_on(0, 3, Some(worker(1))).await, found(3, 105));
    assert_eq!(failing_on(0, 1, Some(worker(2))).await, [], "they failed on another worker");
    insert_ended_attempt(store, &first, 4, (130, 190), "failed", "d").await;
    assert_eq!(failing(0, 1).await, [], "an attempt has lasted since");
    insert_ended_attempt(store, &first, 5, (200, 201), "failed", "e").await;
    assert_eq!(failing(0, 1).await, found(1, 201));
    insert_ended_attempt(store, &first, 6, (210, 211), "completed", "f").await;
    assert_eq!(failing(0, 1).await, [], "an attempt has completed");
}

async fn worker_presence_comes_from_the_audit_log(store: &TestStore) {
    let entries = [
        (5, AuditAction::WorkerOnline, "w_1"),
        (6, AuditAction::JobSubmitted, "j_1"),
        (7, AuditAction::WorkerOffline, "w_1"),
        (9, AuditAction::WorkerOnline, "w_2"),
    ];
    let write = store.write(move |tx| {
        Box::pin(async move {
            for (at, action, target) in entries {
                let (actor, target) = ("system".to_owned(), target.to_owned());
                let detail = "{}".to_owned();
                tx.append_audit(AuditEvent { at: Timestamp(at), actor, action, target, detail, request_id: None })
                    .await?;
            }
            Ok(())
        })
    });
    write.await.expect("written");
    let actions = [AuditAction::WorkerOnline.as_str(), AuditAction::WorkerOffline.as_str()];
    let mut tx = store.read().await;
    let event = |at, action: AuditAction| PresenceEvent {
        at: Timestamp(at),
        worker: "w_1".to_owned(),
        action: action.as_str().to_owned(),
        detail: "{}".to_owned(),
    };
    let all = [event(5, AuditAction::WorkerOnline), event(7, AuditAction::WorkerOffline)];
    let heads = tx.audit_heads().await.expect("readable");
    let (chain, newest) = heads.iter().next().map(|(chain, head)| (chain.as_str(), head.newest.seq)).expect("a chain");
    let last = newest - 1; // the newest entry is of another worker
    assert_eq!(tx.presence_events(&actions, chain, 0, last).await, Ok(all.to_vec()));
    assert_eq!(tx.presence_events(&actions, chain, 0, last - 1).await, Ok(all[..1].to_vec()));
    assert_eq!(tx.presence_events(&actions, chain, last - 1, last).await, Ok(all[1..].to_vec()));
    assert_eq!(tx.presence_events(&actions, "another", 0, newest).await, Ok(vec![]));
    assert_eq!(tx.presence_events(&[], chain, 0, newest).await, Ok(vec![]));
    let worker = WorkerId::parse("w_1").expect("an id");
    let [first, second] = all;
    let previous_and_last = Ok(vec![second.clone(), first]);
    assert_eq!(
        tx.worker_presence_events(&worker, &actions, Timestamp(7), 9).await,
        previous_and_last,
        "the previous one is included"
    );
    assert_eq!(
        tx.worker_presence_events(&worker, &actions, Timestamp(5), 9).await,
        previous_and_last,
        "there is no earlier event"
    );
    assert_eq!(tx.worker_presence_events(&worker, &actions, Timestamp(8), 9).await, Ok(vec![second.clone()]));
    assert_eq!(tx.worker_presence_events(&worker, &actions, Timestamp(7), 1).await, Ok(vec![second]), "the newest");
    assert_eq!(tx.worker_presence_events(&worker, &actions[..0], Timestamp(5), 9).await, Ok(vec![]));
}

async fn engine_reports_its_version(store: &TestStore) {
    let register_server = store.write(|tx| {
        Box::pin(async move {
            tx.heartbeat_server(Millis::from_secs(8)).await?;
            tx.try_lead(Millis::from_secs(6)).await.map(drop)
        })
    });
    register_server.await.expect("a database");
    let mut tx = store.read().await;
    let info = tx.database_info().await.expect("readable");
    assert!(info.bytes > 10_000 && info.version.contains('.'), "{info:?}");
    assert_eq!(info.engine == "sqlite", info.wal_bytes.is_some_and(|bytes| bytes > 0), "{info:?}");
    let servers = tx.registered_servers(Millis::from_secs(8)).await.expect("readable");
    assert_eq!((servers.len(), servers[0].id.as_str(), servers[0].is_leader), (1, "c_test", true));
    assert_eq!(info.engine == "postgres", servers[0].seen_at.is_some());
}
