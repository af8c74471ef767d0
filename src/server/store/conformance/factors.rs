//! Second factors and notices.

use app::domain::ids::UserId;
use app::domain::notice::NoticeKind;
use app::domain::time::Timestamp;

use super::access::{session, user};
use super::{NOW, TestStore, on_every_engine};
use crate::store::StoreError;
use crate::store::access::factors::{StoredRecoveryCode, StoredTotp};
use crate::store::access::notices::StoredNotice;
use crate::vault::Sealed;

on_every_engine!(factors_are_replaced_and_removed, recovery_codes_are_used_once, notices_replace_earlier_ones);

fn totp(owner: u8, last_step: Option<i64>) -> StoredTotp {
    StoredTotp {
        user: user(owner).id,
        sealed: Sealed { key_id: "k".to_owned(), text: "00".to_owned() },
        created_at: NOW,
        confirmed_at: last_step.map(|_| NOW),
        last_step,
    }
}

async fn add_users(store: &TestStore) -> [UserId; 2] {
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.insert_user(&user(1)).await?;
            tx.insert_user(&user(2)).await
        })
    });
    write.await.expect("new");
    [user(1).id, user(2).id]
}

async fn factors_are_replaced_and_removed(store: &TestStore) {
    let [ada, eve] = add_users(store).await;
    let write = store.write(|tx| {
        Box::pin(async move {
            tx.put_totp(&totp(1, None)).await?;
            tx.put_totp(&totp(2, Some(3))).await?;
            tx.put_totp(&totp(1, Some(7))).await?;
            tx.put_recovery_codes(&user(1).id, &["a".to_owned()]).await?;
            tx.put_recovery_codes(&user(2).id, &["b".to_owned()]).await?;
            tx.delete_factors(&user(2).id).await
        })
    });
    write.await.expect("it exists");
    let mut tx = store.read().await;
    assert_eq!((tx.totp(&ada).await, tx.totp(&eve).await), (Ok(Some(totp(1, Some(7)))), Ok(None)));
    assert_eq!(tx.recovery_codes(&ada).await.map(|codes| codes.len()), Ok(1));
    assert_eq!(tx.recovery_codes(&eve).await, Ok(Vec::new()));
}

async fn recovery_codes_are_used_once(store: &TestStore) {
    let [ada, _] = add_users(store).await;
    let codes = ["b", "a"].map(str::to_owned);
    let write = store.write(move |tx| {
        let codes = codes.clone();
        Box::pin(async move {
            tx.put_recovery_codes(&user(1).id, &["old".to_owned()]).await?;
            tx.put_recovery_codes(&user(1).id, &codes).await?;
            tx.put_recovery_codes(&user(2).id, &codes).await?;
            tx.use_recovery_code(&user(1).id, "a", Timestamp(5)).await
        })
    });
    write.await.expect("it exists");
    let code = |digest: &str, used_at| StoredRecoveryCode { digest: digest.to_owned(), used_at };
    let expected = vec![code("a", Some(Timestamp(5))), code("b", None)];
    assert_eq!(store.read().await.recovery_codes(&ada).await, Ok(expected));
    for digest in ["a", "old", ""] {
        let second_use =
            store.write(move |tx| Box::pin(async move { tx.use_recovery_code(&user(1).id, digest, NOW).await }));
        assert_eq!(second_use.await, Err(StoreError::Conflict), "{digest}");
    }
}

fn notice(kind: NoticeKind, host: &str, at: i64) -> StoredNotice {
    StoredNotice {
        user: user(1).id,
        kind,
        host: host.to_owned(),
        user_agent: "A browser".to_owned(),
        actor: "ada".to_owned(),
        at: Timestamp(at),
        session: (kind == NoticeKind::NewBrowser).then(|| session(1, 1, None).id),
    }
}

async fn notices_replace_earlier_ones(store: &TestStore) {
    let [ada, eve] = add_users(store).await;
    let write = store.write(|tx| {
        Box::pin(async move {
            for (host, at) in [("192.0.2.1", 1), ("192.0.2.2", 2), ("192.0.2.3", 3), ("192.0.2.1", 4)] {
                tx.add_notice(&notice(NoticeKind::NewBrowser, host, at), 3).await?;
            }
            tx.add_notice(&notice(NoticeKind::WrongCode, "192.0.2.1", 5), 3).await?;
            for (network, at) in [("10.0.0.0/24", 1), ("192.0.2.0/24", 2), ("10.0.0.0/24", 9)] {
                tx.record_login_network(&user(1).id, network, Timestamp(at), Timestamp(at - 5)).await?;
            }
            Ok(())
        })
    });
    write.await.expect("it exists");
    let newest = [
        notice(NoticeKind::WrongCode, "192.0.2.1", 5),
        notice(NoticeKind::NewBrowser, "192.0.2.1", 4),
        notice(NoticeKind::NewBrowser, "192.0.2.3", 3),
    ];
    let mut tx = store.read().await;
    assert_eq!((tx.notices(&ada).await, tx.notices(&eve).await), (Ok(newest.to_vec()), Ok(Vec::new())));
    assert_eq!(tx.login_networks(&ada).await, Ok(vec!["10.0.0.0/24".to_owned()]), "an old network is deleted");
    assert_eq!(tx.user(&ada).await.map(|user| user.map(|user| user.unread_notices)), Ok(Some(3)));
    drop(tx);
    let clear = store.write(|tx| Box::pin(async move { tx.clear_notices(&user(1).id, Timestamp(4)).await }));
    clear.await.expect("it exists");
    let mut tx = store.read().await;
    assert_eq!(tx.notices(&ada).await, Ok(newest[..1].to_vec()));
    assert_eq!(tx.user(&ada).await.map(|user| user.map(|user| user.unread_notices)), Ok(Some(1)));
}
