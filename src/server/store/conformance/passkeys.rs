//! Passkeys and their challenges.

use app::domain::ids::PasskeyId;
use app::domain::time::Timestamp;

use super::access::user;
use super::{NOW, TestStore, on_every_engine};
use crate::store::StoreError;
use crate::store::access::factors::StoredTotp;
use crate::store::access::passkeys::{ChallengePurpose, PasskeyChallenge, StoredPasskey};
use crate::vault::Sealed;

on_every_engine!(passkeys_are_added_used_and_removed, challenges_are_answered_once, users_with_factors_are_known);

fn passkey(owner: u8, number: u8) -> StoredPasskey {
    StoredPasskey {
        id: PasskeyId::new(NOW, [number; 10]),
        user: user(owner).id,
        name: "Blue key".to_owned(),
        origin: "https://tuner.example".to_owned(),
        credential_id: format!("c{number}"),
        credential: "{}".to_owned(),
        created_at: NOW,
        used_at: None,
    }
}

fn challenge(owner: u8, state: &str, at: i64) -> PasskeyChallenge {
    PasskeyChallenge {
        user: user(owner).id,
        origin: "https://tuner.example".to_owned(),
        options: "{}".to_owned(),
        state: state.to_owned(),
        created_at: Timestamp(at),
        expires_at: Timestamp(at + 10),
    }
}

async fn add_users(store: &TestStore) {
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.insert_user(&user(1)).await?;
            tx.insert_user(&user(2)).await
        })
    });
    write.await.expect("new");
}

async fn passkeys_are_added_used_and_removed(store: &TestStore) {
    add_users(store).await;
    let write = store.write(|tx| {
        Box::pin(async move {
            for (owner, number) in [(1, 2), (1, 1), (2, 3)] {
                tx.insert_passkey(&passkey(owner, number)).await?;
            }
            tx.record_passkey_use(&passkey(1, 2).id, "{\"counter\":1}", Timestamp(7)).await
        })
    });
    write.await.expect("it exists");
    let used = StoredPasskey { credential: "{\"counter\":1}".to_owned(), used_at: Some(Timestamp(7)), ..passkey(1, 2) };
    let mut tx = store.read().await;
    assert_eq!(tx.passkeys(&user(1).id).await, Ok(vec![passkey(1, 1), used.clone()]));
    assert_eq!((tx.has_credential("c3").await, tx.has_credential("c4").await), (Ok(true), Ok(false)));
    drop(tx);
    // The credential id is unique.
    let duplicate = StoredPasskey { id: PasskeyId::new(NOW, [9; 10]), ..passkey(2, 1) };
    let second_insert = store.write(move |tx| {
        let duplicate = duplicate.clone();
        Box::pin(async move { tx.insert_passkey(&duplicate).await })
    });
    assert_eq!(second_insert.await, Err(StoreError::Conflict));
    let remove = || store.write(|tx| Box::pin(async move { tx.delete_passkey(&passkey(1, 1).id).await }));
    assert_eq!((remove().await, remove().await), (Ok(()), Err(StoreError::Conflict)));
    let update = store.write(|tx| Box::pin(async move { tx.record_passkey_use(&passkey(1, 1).id, "{}", NOW).await }));
    assert_eq!(update.await, Err(StoreError::Conflict));
    let removal = store.write(|tx| Box::pin(async move { tx.delete_factors(&user(1).id).await }));
    removal.await.expect("it exists");
    let mut tx = store.read().await;
    assert_eq!(tx.passkeys(&user(1).id).await, Ok(Vec::new()));
    assert_eq!(tx.passkeys(&user(2).id).await, Ok(vec![passkey(2, 3)]));
}

async fn challenges_are_answered_once(store: &TestStore) {
    add_users(store).await;
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.put_challenge(ChallengePurpose::Login, "a", &challenge(1, "old", 0)).await?;
            tx.put_challenge(ChallengePurpose::Login, "a", &challenge(1, "new", 1)).await?;
            tx.put_challenge(ChallengePurpose::Reauthentication, "a", &challenge(1, "proof", 2)).await?;
            tx.put_challenge(ChallengePurpose::Login, "b", &challenge(2, "b", 3)).await
        })
    });
    write.await.expect("it exists");
    assert_eq!(store.read().await.challenge(ChallengePurpose::Login, "a").await, Ok(Some(challenge(1, "new", 1))));
    let take = |expected: Option<PasskeyChallenge>| {
        store.write(move |tx| {
            let expected = expected.clone();
            Box::pin(async move {
                let found = tx.take_challenge(ChallengePurpose::Login, "a").await?;
                if found == expected { Ok(()) } else { Err(StoreError::Conflict) }
            })
        })
    };
    assert_eq!(take(Some(challenge(1, "new", 1))).await, Ok(()));
    assert_eq!(take(None).await, Ok(()));
    // The next challenge removes expired ones.
    let later = store.write(|tx| {
        Box::pin(async move { tx.put_challenge(ChallengePurpose::Registration, "s", &challenge(1, "later", 12)).await })
    });
    later.await.expect("it exists");
    let mut tx = store.read().await;
    assert_eq!(tx.challenge(ChallengePurpose::Reauthentication, "a").await, Ok(None));
    assert_eq!(tx.challenge(ChallengePurpose::Login, "b").await, Ok(Some(challenge(2, "b", 3))));
    assert_eq!(tx.challenge(ChallengePurpose::Registration, "s").await, Ok(Some(challenge(1, "later", 12))));
}

async fn users_with_factors_are_known(store: &TestStore) {
    add_users(store).await;
    let totp = |confirmed_at| StoredTotp {
        user: user(1).id,
        sealed: Sealed { key_id: "k".to_owned(), text: "00".to_owned() },
        created_at: NOW,
        confirmed_at,
        last_step: None,
    };
    let unconfirmed = store.write(move |tx| {
        let unconfirmed = totp(None);
        Box::pin(async move {
            tx.insert_passkey(&passkey(2, 1)).await?;
            tx.insert_passkey(&passkey(2, 2)).await?;
            tx.put_totp(&unconfirmed).await
        })
    });
    unconfirmed.await.expect("it exists");
    assert_eq!(store.read().await.users_with_factors().await, Ok(vec![user(2).id]), "an unfinished one does not count");
    let confirmed = store.write(move |tx| {
        let confirmed = totp(Some(NOW));
        Box::pin(async move { tx.put_totp(&confirmed).await })
    });
    confirmed.await.expect("it exists");
    assert_eq!(store.read().await.users_with_factors().await, Ok(vec![user(1).id, user(2).id]));
    let removed = store.write(|tx| Box::pin(async move { tx.delete_totp(&user(1).id).await }));
    removed.await.expect("it exists");
    assert_eq!(store.read().await.users_with_factors().await, Ok(vec![user(2).id]));
}
