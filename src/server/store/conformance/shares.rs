//! Teams, what they have used, and the rules.

use app::domain::shares::{ShareKey, ShareRules, ShareSettings, ShareUsage, Team, TeamMember};
use app::domain::time::{Millis, Timestamp};

use super::groups::{offer_job, read_all_state};
use super::{NOW, TestStore, job, on_every_engine};
use crate::store::StoreError;
use crate::store::cache::shares::share_key;

on_every_engine!(teams_round_trip, usage_is_replaced, running_jobs_count_from_their_offer, corrupt_team_hides_no_other);

pub(super) fn team(name: &str) -> Team {
    let member = TeamMember { since: NOW, settings: ShareSettings { weight: 2, ..ShareSettings::default() } };
    Team {
        name: name.to_owned(),
        description: "Images".to_owned(),
        created_at: NOW,
        settings: ShareSettings::example(),
        members: [("ada".to_owned(), member)].into(),
    }
}

pub(super) fn usage(at: i64) -> ShareUsage {
    ShareUsage { at: Timestamp(NOW.0 + at), gpu_time: 0.1 + 0.2, slot_time: 1e12, month_gpu_time: 7.5 }
}

pub(super) fn key(user: &str) -> ShareKey {
    ShareKey { team: "vision".to_owned(), user: user.to_owned() }
}

async fn teams_round_trip(store: &TestStore) {
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.save_team(&team("vision")).await?;
            tx.save_team(&team("speech")).await?;
            tx.save_team(&Team { settings: ShareSettings::default(), ..team("vision") }).await?;
            tx.put_share_rules(ShareRules { half_life: Millis(5) }).await?;
            tx.delete_team("speech").await
        })
    });
    write.await.expect("valid");
    let mut tx = store.read().await;
    let stored =
        tx.with_state(|state| (state.shares().teams().clone(), state.shares().rules())).await.expect("readable");
    let vision = Team { settings: ShareSettings::default(), ..team("vision") };
    assert_eq!(stored, ([("vision".to_owned(), vision)].into(), ShareRules { half_life: Millis(5) }));
    let again = store.write(|tx| Box::pin(async move { tx.delete_team("speech").await }));
    assert_eq!(again.await, Err(StoreError::Conflict));
}

async fn usage_is_replaced(store: &TestStore) {
    let write = |user: &'static str, at| {
        store.write(move |tx| {
            Box::pin(async move {
                tx.put_share_usage(&key(user), &usage(0)).await?;
                tx.put_share_usage(&key(user), &usage(at)).await
            })
        })
    };
    write("ada", 1).await.expect("valid");
    write("ada", 2).await.expect("valid");
    write("a/b", 3).await.expect("a name with a slash is still found");
    let at = |user: &'static str, at| store_usage(store, user, at);
    assert_eq!((at("ada", 2).await, at("a/b", 3).await), (usage(2), usage(3)));
    assert_eq!(at("eve", 2).await, ShareUsage { at: Timestamp(NOW.0 + 2), ..ShareUsage::default() });
}

async fn store_usage(store: &TestStore, user: &str, at: i64) -> ShareUsage {
    let mut tx = store.read().await;
    tx.with_state(|state| state.shares().usage_at(&key(user), Timestamp(NOW.0 + at))).await.expect("readable")
}

async fn running_jobs_count_from_their_offer(store: &TestStore) {
    read_all_state(store).await;
    store.insert_job(&job(1)).await;
    store.update_job(&job(1), &offer_job(&job(1))).await.expect("as it was read");
    let later = Timestamp(NOW.0 + 3_600_000);
    let used = async |from_memory: bool| {
        let mut tx = if from_memory { store.recent().await } else { store.read().await };
        let key = share_key(&job(1));
        tx.with_state(|state| state.shares().usage_at(&key, later)).await.expect("readable").month_gpu_time
    };
    // The example job is idle, and so it is not counted.
    assert!(used(true).await.abs() < 1e-9 && used(false).await.abs() < 1e-9);
}

async fn corrupt_team_hides_no_other(store: &TestStore) {
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.save_team(&team("vision")).await?;
            tx.save_team(&team("speech")).await
        })
    });
    write.await.expect("valid");
    store.execute_raw("UPDATE teams SET settings = 'no JSON' WHERE name = 'speech'").await;
    let mut tx = store.read().await;
    let names = tx.with_state(|state| state.shares().teams().keys().cloned().collect::<Vec<_>>()).await;
    assert_eq!(names, Ok(vec!["vision".to_owned()]));
}
