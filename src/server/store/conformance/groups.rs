//! What a group decides is written together at its end, and looks as if it had been written at once.

use app::domain::audit::{Action, Entry};
use app::domain::ids::Attempt;
use app::domain::job::{Job, Report};
use app::domain::time::Timestamp;

use super::history::attempt;
use super::{Fresh, NOW, job, on_every_engine, worker};
use crate::store::StoreError;
use crate::store::attempts::{AttemptEnd, StoredAttempt};
use crate::store::jobs::JobFilter;

on_every_engine!(
    a_group_sees_what_it_has_decided,
    many_rows_are_written_together,
    a_late_change_inside_a_group_is_a_conflict,
    an_attempt_must_be_there,
);

fn offered(before: &Job) -> Job {
    before.clone().offered(NOW, worker(1).id, vec!["gpu-0".to_owned()], NOW).expect("it waits")
}

async fn a_group_sees_what_it_has_decided(fresh: &Fresh) {
    let write = fresh.write(|tx| {
        Box::pin(async move {
            let (queued, offered) = (job(1), offered(&job(1)));
            let running = offered.clone().reported(NOW, &worker(1).id, Attempt(1), Report::Running).expect("offered");
            tx.insert_job(&queued).await?;
            tx.update_job(&queued, &offered).await?;
            tx.insert_attempt(&attempt(&queued.id, 1), "digest").await?;
            tx.update_job(&offered, &running).await?;
            tx.start_attempt(&queued.id, Attempt(1), Timestamp(5)).await?;
            let entry = Entry {
                at: NOW,
                actor: "admin".to_owned(),
                action: Action::JobSubmitted,
                target: queued.id.to_string(),
                detail: "{}".to_owned(),
                request_id: None,
            };
            tx.append_audit(&entry).await?;
            tx.append_audit(&entry).await?;
            let all = JobFilter { limit: 9, ..JobFilter::default() };
            assert_eq!(tx.jobs(&all).await?, std::slice::from_ref(&running));
            assert_eq!(tx.job(&queued.id).await?, Some(running));
            let started = StoredAttempt { started_at: Some(Timestamp(5)), ..attempt(&queued.id, 1) };
            assert_eq!(tx.attempts(&queued.id).await?, [started]);
            assert_eq!(tx.audit_of(queued.id.as_str()).await?.len(), 2);
            // What was written in the middle goes on from there.
            let end = AttemptEnd { at: Timestamp(7), outcome: "lost", error: None, exit_code: None };
            tx.end_attempt(&queued.id, Attempt(1), &end).await?;
            tx.start_attempt(&queued.id, Attempt(1), Timestamp(6)).await
        })
    });
    write.await.expect("written");
    let attempts = fresh.read().await.attempts(&job(1).id).await.expect("readable");
    assert_eq!((attempts[0].started_at, attempts[0].ended_at), (Some(Timestamp(5)), Some(Timestamp(7))));
}

async fn many_rows_are_written_together(fresh: &Fresh) {
    const MANY: u8 = 150;
    let insert = fresh.write(|tx| {
        Box::pin(async move {
            for n in 1..=MANY {
                tx.insert_job(&job(n)).await?;
            }
            Ok(())
        })
    });
    insert.await.expect("new");
    let offer = fresh.write(|tx| {
        Box::pin(async move {
            for n in 1..=MANY {
                tx.update_job(&job(n), &offered(&job(n))).await?;
                tx.insert_attempt(&attempt(&job(n).id, 1), &format!("digest {n}")).await?;
            }
            Ok(())
        })
    });
    offer.await.expect("as it was read");
    let mut tx = fresh.read().await;
    let leased = tx.leased_jobs(None).await.expect("readable");
    assert_eq!(leased, (1..=MANY).map(|n| offered(&job(n))).collect::<Vec<_>>());
    for n in [1, MANY / 2, MANY] {
        let found = tx.attempt_by_token(&format!("digest {n}")).await;
        assert_eq!(found, Ok(Some((job(n).id, Attempt(1), worker(1).id))));
    }
}

async fn a_late_change_inside_a_group_is_a_conflict(fresh: &Fresh) {
    fresh.insert_job(&job(1)).await;
    let write = fresh.write(|tx| {
        Box::pin(async move {
            tx.insert_job(&job(2)).await?;
            tx.update_job(&job(1), &offered(&job(1))).await?;
            tx.update_job(&job(1), &job(1).cancelled(NOW).expect("it waits")).await
        })
    });
    assert_eq!(write.await, Err(StoreError::Conflict));
    let mut tx = fresh.read().await;
    assert_eq!(tx.job(&job(1).id).await, Ok(Some(job(1))));
    assert_eq!(tx.job(&job(2).id).await, Ok(None));
}

async fn an_attempt_must_be_there(fresh: &Fresh) {
    let start = fresh.write(|tx| Box::pin(async move { tx.start_attempt(&job(1).id, Attempt(1), NOW).await }));
    assert_eq!(start.await, Err(StoreError::Conflict));
}
