//! Users, tokens, sessions and settings.

use app::domain::access::{Permission, Role};
use app::domain::ids::{SessionId, TokenId, UserId};
use app::domain::time::Timestamp;

use super::{NOW, TestStore, on_every_engine};
use crate::store::StoreError;
use crate::store::access::{LastUsed, StoredSession, StoredToken, StoredUser, UserActivity};

on_every_engine!(
    users_are_found_by_id_and_name,
    credentials_resolve_to_their_user,
    sessions_expire_by_age_and_without_use,
    settings_are_replaced_and_removed
);

pub fn user(n: u8) -> StoredUser {
    let role = Role::ALL[usize::from(n) % 4];
    StoredUser {
        id: UserId::new(NOW, [n; 10]),
        name: format!("user-{n}"),
        role,
        created_at: NOW,
        disabled_at: None,
        unread_notices: 0,
    }
}

pub fn token(n: u8, owner: u8) -> StoredToken {
    StoredToken {
        id: TokenId::new(Timestamp(NOW.0 + i64::from(n)), [n; 10]),
        user: user(owner).id,
        name: format!("token-{n}"),
        scopes: n.is_multiple_of(2).then(|| [Permission::JobSubmit, Permission::JobViewAll].into_iter().collect()),
        created_at: Timestamp(NOW.0 + i64::from(n)),
        expires_at: (n > 1).then_some(Timestamp(i64::from(n))),
        used_at: None,
    }
}

pub fn session(n: u8, owner: u8, by: Option<u8>) -> StoredSession {
    StoredSession {
        id: SessionId::new(Timestamp(NOW.0 + i64::from(n)), [n; 10]),
        user: user(owner).id,
        token: by.map(|token_of| token(token_of, owner).id),
        host: "192.0.2.1".to_owned(),
        user_agent: "A browser".to_owned(),
        created_at: Timestamp(NOW.0 + i64::from(n)),
        reauthenticated_at: NOW,
        last_used_at: Timestamp(100 + i64::from(n)),
        expires_at: Timestamp(1_000 * i64::from(n)),
    }
}

async fn users_are_found_by_id_and_name(store: &TestStore) {
    let disabled = StoredUser { disabled_at: Some(Timestamp(9)), role: Role::Lead, ..user(2) };
    let (first, second, changed) = (user(1), user(2), disabled.clone());
    let write = store.write(move |tx| {
        let (first, second, changed) = (first.clone(), second.clone(), changed.clone());
        Box::pin(async move {
            tx.insert_user(&second).await?;
            tx.insert_user(&first).await?;
            tx.update_user(&changed).await?;
            tx.put_password(&first.id, "one").await?;
            tx.put_password(&first.id, "two").await
        })
    });
    write.await.expect("new");
    let mut tx = store.read().await;
    assert_eq!(tx.users().await, Ok(vec![user(1), disabled.clone()]));
    assert_eq!(tx.user(&user(2).id).await, Ok(Some(disabled.clone())));
    assert_eq!(tx.user_by_name("user-2").await, Ok(Some(disabled)));
    assert_eq!((tx.user(&user(3).id).await, tx.user_by_name("user").await), (Ok(None), Ok(None)));
    assert_eq!(tx.password_hash(&user(1).id).await, Ok(Some("two".to_owned())));
    assert_eq!((tx.password_hash(&user(2).id).await, tx.password_hash(&user(3).id).await), (Ok(None), Ok(None)));
    let duplicate = StoredUser { name: "user-1".to_owned(), ..user(3) };
    let second_insert = store.write(move |tx| {
        let duplicate = duplicate.clone();
        Box::pin(async move { tx.insert_user(&duplicate).await })
    });
    assert_eq!(second_insert.await, Err(StoreError::Conflict));
}

async fn credentials_resolve_to_their_user(store: &TestStore) {
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.insert_user(&user(1)).await?;
            tx.insert_user(&user(2)).await?;
            for n in [1, 2, 3] {
                tx.insert_api_token(&token(n, 1), &format!("token-{n}")).await?;
            }
            tx.insert_session(&session(1, 1, None), "cookie-1").await?;
            tx.insert_session(&session(2, 1, Some(2)), "cookie-2").await?;
            tx.insert_session(&session(3, 2, None), "cookie-3").await?;
            tx.delete_api_token(&token(3, 1).id).await?;
            tx.record_last_used(&[
                LastUsed::Token(token(1, 1).id, Timestamp(50)),
                LastUsed::Session(session(1, 1, None).id, Timestamp(500)),
            ])
            .await?;
            tx.record_last_used(&[
                LastUsed::Token(token(1, 1).id, Timestamp(40)),
                LastUsed::Session(session(1, 1, None).id, Timestamp(400)),
            ])
            .await
        })
    });
    write.await.expect("new");
    let mut tx = store.read().await;
    let used_token = StoredToken { used_at: Some(Timestamp(50)), ..token(1, 1) };
    let used_session = StoredSession { last_used_at: Timestamp(500), ..session(1, 1, None) };
    assert_eq!(tx.api_tokens(&user(1).id).await, Ok(vec![used_token.clone(), token(2, 1)]));
    assert_eq!(tx.sessions(&user(1).id).await, Ok(vec![used_session.clone(), session(2, 1, Some(2))]));
    assert_eq!(
        (tx.api_token(&token(2, 1).id).await, tx.api_token(&token(3, 1).id).await),
        (Ok(Some(token(2, 1))), Ok(None))
    );
    assert_eq!(tx.session(&session(3, 2, None).id).await, Ok(Some(session(3, 2, None))));
    let active = |n, at, tokens| UserActivity { user: user(n).id, last_used_at: Some(Timestamp(at)), tokens };
    assert_eq!(tx.user_activity().await, Ok(vec![active(1, 500, 2), active(2, 103, 0)]));
    let resolved = tx.resolve_token("token-1").await.expect("readable").expect("it exists");
    assert_eq!((&*resolved.user, resolved.token.as_deref(), resolved.session), (&user(1), Some(&used_token), None));
    let resolved = tx.resolve_cookie("cookie-2").await.expect("readable").expect("it exists");
    let credential = (resolved.token.as_deref().cloned(), resolved.session.as_deref().cloned());
    assert_eq!((&*resolved.user, credential), (&user(1), (Some(token(2, 1)), Some(session(2, 1, Some(2))))));
    assert_eq!(
        (tx.resolve_token("token-3").await, tx.resolve_token("cookie-1").await, tx.resolve_cookie("token-1").await),
        (Ok(None), Ok(None), Ok(None))
    );
    drop(tx);
    store.write(|tx| Box::pin(async move { tx.delete_api_token(&token(2, 1).id).await })).await.expect("it exists");
    store
        .write(|tx| Box::pin(async move { tx.delete_session(&session(3, 2, None).id).await }))
        .await
        .expect("it exists");
    let mut tx = store.read().await;
    assert_eq!((tx.resolve_cookie("cookie-2").await, tx.resolve_cookie("cookie-3").await), (Ok(None), Ok(None)));
    assert!(tx.resolve_cookie("cookie-1").await.expect("readable").is_some());
}

async fn sessions_expire_by_age_and_without_use(store: &TestStore) {
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.insert_user(&user(1)).await?;
            for n in [1, 2, 3] {
                tx.insert_session(&session(n, 1, None), &format!("cookie-{n}")).await?;
            }
            tx.sweep_sessions(Timestamp(1_000), Timestamp(102)).await
        })
    });
    write.await.expect("new");
    assert_eq!(store.read().await.sessions(&user(1).id).await, Ok(vec![session(3, 1, None)]));
}

async fn settings_are_replaced_and_removed(store: &TestStore) {
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.put_setting("key", Some("one")).await?;
            tx.put_setting("key", Some("two")).await?;
            tx.put_setting("gone", Some("x")).await?;
            tx.put_setting("gone", None).await
        })
    });
    write.await.expect("written");
    let mut tx = store.read().await;
    assert_eq!((tx.setting("key").await, tx.setting("gone").await), (Ok(Some("two".to_owned())), Ok(None)));
}
