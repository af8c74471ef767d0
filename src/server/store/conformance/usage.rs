//! What is asked about a stretch of time.

use app::domain::audit::{Action, Entry};
use app::domain::ids::WorkerId;
use app::domain::job::Job;
use app::domain::time::{Millis, Timestamp};
use app::domain::usage::{Run, Wait, Window};
use app::domain::worker::Worker;

use super::history::attempt;
use super::{Fresh, NOW, job, on_every_engine, worker};
use crate::store::attempts::{AttemptEnd, StoredAttempt};
use crate::store::usage::{Failing, Sighting, Streak};

on_every_engine!(
    attempts_and_waits_are_found_by_the_time_they_touch,
    what_ended_lately_is_counted_and_what_fails_at_once_is_found,
    workers_are_followed_by_the_trail,
    an_engine_says_what_it_is
);

fn at(seconds: i64) -> Timestamp {
    NOW + Millis::seconds(seconds)
}

fn window(since: i64, until: i64) -> Window {
    Window { since: at(since), until: at(until) }
}

/// An attempt at a job, offered at `from`, taken a second later, and ended at `until`.
async fn attempted(fresh: &Fresh, of: &Job, number: u32, from: i64, until: Option<i64>, digest: &'static str) {
    let new = StoredAttempt { gpus: number + 1, offered_at: at(from), ..attempt(&of.id, number) };
    let write = fresh.write(move |tx| {
        let new = new.clone();
        Box::pin(async move {
            tx.insert_attempt(&new, digest).await?;
            tx.start_attempt(&new.job, new.attempt, new.offered_at + Millis::seconds(1)).await?;
            if let Some(until) = until {
                let end = AttemptEnd { at: at(until), outcome: "lost", error: None, exit_code: None };
                tx.end_attempt(&new.job, new.attempt, &end).await?;
            }
            Ok(())
        })
    });
    write.await.expect("new");
}

async fn attempts_and_waits_are_found_by_the_time_they_touch(fresh: &Fresh) {
    let (first, second) = (job(1), Job { submitted_by: "eve".to_owned(), ..job(2) });
    fresh.insert_job(&first).await;
    fresh.insert_job(&second).await;
    attempted(fresh, &first, 1, 10, Some(20), "a").await;
    attempted(fresh, &first, 2, 30, None, "b").await;
    let mut tx = fresh.read().await;
    let mut numbers = async |since, until, user: Option<&str>| -> Vec<u32> {
        let runs = tx.runs(window(since, until), user).await.expect("readable");
        let mut numbers: Vec<u32> = runs.iter().map(|run| run.gpus - 1).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(0, 100, None).await, [1, 2]);
    assert_eq!(numbers(0, 100, Some("ada")).await, [1, 2]);
    assert_eq!(numbers(0, 100, Some("eve")).await, [] as [u32; 0]);
    assert_eq!(numbers(20, 30, None).await, [] as [u32; 0], "between the two");
    assert_eq!(numbers(19, 30, None).await, [1]);
    assert_eq!(numbers(500, 501, None).await, [2], "it goes on");
    assert_eq!(numbers(0, 10, None).await, [] as [u32; 0]);
    let runs = tx.runs(window(0, 25), None).await.expect("readable");
    let run = Run {
        job: first.id.clone(),
        user: "ada".to_owned(),
        config: "digits".to_owned(),
        labels: first.spec.demand.labels.clone(),
        worker: worker(1).id,
        worker_name: "worker-1".to_owned(),
        gpus: 2,
        offered: at(10),
        started: Some(at(11)),
        ended: Some(at(20)),
    };
    assert_eq!(runs, [run]);
    let had = Wait { submitted: first.submitted_at, offered: Some(at(10)), started: Some(at(11)), ended: None };
    let waits_still = Wait { submitted: second.submitted_at, offered: None, started: None, ended: None };
    let mut waits = async |since, until, user: Option<&str>| {
        let mut waits = tx.waits(window(since, until), user).await.expect("readable");
        waits.sort_by_key(|wait| wait.submitted);
        waits
    };
    assert_eq!(waits(0, 100, None).await, [had, waits_still]);
    assert_eq!(waits(12, 100, None).await, [waits_still], "the first had its worker by then");
    assert_eq!(waits(0, 100, Some("eve")).await, [waits_still]);
    assert_eq!(waits(-100, -50, None).await, [] as [Wait; 0], "submitted later");
}

/// The end of an attempt that was offered at `from`.
async fn ended(
    fresh: &Fresh,
    of: &Job,
    number: u32,
    (from, until): (i64, i64),
    outcome: &'static str,
    digest: &'static str,
) {
    let new = StoredAttempt { offered_at: at(from), ..attempt(&of.id, number) };
    let write = fresh.write(move |tx| {
        let new = new.clone();
        Box::pin(async move {
            tx.insert_attempt(&new, digest).await?;
            tx.start_attempt(&new.job, new.attempt, new.offered_at).await?;
            let end = AttemptEnd { at: at(until), outcome, error: None, exit_code: None };
            tx.end_attempt(&new.job, new.attempt, &end).await
        })
    });
    write.await.expect("new");
}

async fn what_ended_lately_is_counted_and_what_fails_at_once_is_found(fresh: &Fresh) {
    let (first, gone) = (job(1), Job { submitted_by: "eve".to_owned(), ..job(2) });
    let gone = gone.cancelled(at(50)).expect("it waits");
    fresh.insert_job(&first).await;
    fresh.insert_job(&gone).await;
    let mut tx = fresh.read().await;
    let one = vec![("cancelled".to_owned(), 1)];
    assert_eq!(tx.ended_since(at(50), None).await, Ok(one.clone()));
    assert_eq!(tx.ended_since(at(0), Some("eve")).await, Ok(one));
    assert_eq!(tx.ended_since(at(0), Some("ada")).await, Ok(Vec::new()));
    assert_eq!(tx.ended_since(at(51), None).await, Ok(Vec::new()));
    drop(tx);

    let failing_on = async |since, least, only: Option<Worker>| {
        let streak = Streak { since: at(since), now: at(1_000), quick: Millis::seconds(60), least };
        fresh.read().await.failing(streak, only.as_ref().map(|only| &only.id)).await.expect("readable")
    };
    let failing = async |since, least| failing_on(since, least, None).await;
    let found = |attempts, since| vec![Failing { worker: worker(1).id, attempts, since: at(since) }];
    ended(fresh, &first, 1, (100, 105), "failed", "a").await;
    ended(fresh, &first, 2, (110, 115), "failed", "b").await;
    assert_eq!(failing(0, 3).await, []);
    ended(fresh, &first, 3, (120, 125), "failed", "c").await;
    assert_eq!((failing(0, 3).await, failing(110, 2).await), (found(3, 105), found(2, 115)));
    assert_eq!(failing_on(0, 3, Some(worker(1))).await, found(3, 105));
    assert_eq!(failing_on(0, 1, Some(worker(2))).await, [], "those are another's");
    ended(fresh, &first, 4, (130, 190), "failed", "d").await;
    assert_eq!(failing(0, 1).await, [], "one has lasted since");
    ended(fresh, &first, 5, (200, 201), "failed", "e").await;
    assert_eq!(failing(0, 1).await, found(1, 201));
    ended(fresh, &first, 6, (210, 211), "completed", "f").await;
    assert_eq!(failing(0, 1).await, [], "one went well");
}

async fn workers_are_followed_by_the_trail(fresh: &Fresh) {
    let entries = [
        (5, Action::WorkerOnline, "w_1"),
        (6, Action::JobSubmitted, "j_1"),
        (7, Action::WorkerOffline, "w_1"),
        (9, Action::WorkerOnline, "w_2"),
    ];
    let write = fresh.write(move |tx| {
        Box::pin(async move {
            for (at, action, target) in entries {
                let (actor, target) = ("system".to_owned(), target.to_owned());
                let detail = "{}".to_owned();
                tx.append_audit(Entry { at: Timestamp(at), actor, action, target, detail, request_id: None }).await?;
            }
            Ok(())
        })
    });
    write.await.expect("a trail");
    let words = [Action::WorkerOnline.as_str(), Action::WorkerOffline.as_str()];
    let mut tx = fresh.read().await;
    let seen = |at, action: Action| Sighting {
        at: Timestamp(at),
        worker: "w_1".to_owned(),
        action: action.as_str().to_owned(),
        detail: "{}".to_owned(),
    };
    let all = [seen(5, Action::WorkerOnline), seen(7, Action::WorkerOffline)];
    assert_eq!(tx.sightings(&words, Timestamp(8)).await, Ok(all.to_vec()));
    assert_eq!(tx.sightings(&words, Timestamp(7)).await, Ok(all[..1].to_vec()));
    assert_eq!(tx.sightings(&[], Timestamp(8)).await, Ok(vec![]));
    let one = WorkerId::parse("w_1").expect("an id");
    let [came, went] = all;
    let both = Ok(vec![went.clone(), came]);
    assert_eq!(tx.sightings_of(&one, &words, Timestamp(7), 9).await, both, "the one before is told with it");
    assert_eq!(tx.sightings_of(&one, &words, Timestamp(5), 9).await, both, "nothing was before");
    assert_eq!(tx.sightings_of(&one, &words, Timestamp(8), 9).await, Ok(vec![went.clone()]));
    assert_eq!(tx.sightings_of(&one, &words, Timestamp(7), 1).await, Ok(vec![went]), "the newest");
    assert_eq!(tx.sightings_of(&one, &words[..0], Timestamp(5), 9).await, Ok(vec![]));
}

async fn an_engine_says_what_it_is(fresh: &Fresh) {
    let take_part = fresh.write(|tx| {
        Box::pin(async move {
            tx.living_servers(Millis::seconds(8)).await?;
            tx.lead(Millis::seconds(6)).await.map(drop)
        })
    });
    take_part.await.expect("a database");
    let mut tx = fresh.read().await;
    let facts = tx.database().await.expect("readable");
    assert!(facts.bytes > 10_000 && facts.version.contains('.'), "{facts:?}");
    assert_eq!(facts.engine == "sqlite", facts.wal_bytes.is_some_and(|bytes| bytes > 0), "{facts:?}");
    let servers = tx.known_servers(Millis::seconds(8)).await.expect("readable");
    assert_eq!((servers.len(), servers[0].id.as_str(), servers[0].leads), (1, "c_test", true));
    assert_eq!(facts.engine == "postgres", servers[0].seen_at.is_some());
}
