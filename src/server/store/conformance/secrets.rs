//! Secrets of jobs.

use app::domain::time::Timestamp;

use super::{NOW, TestStore, on_every_engine};
use crate::store::StoreError;
use crate::store::secrets::StoredSecret;
use crate::vault::Sealed;

on_every_engine!(secrets_are_personal_or_shared);

fn secret(owner: &str, name: &str, text: &str) -> StoredSecret {
    StoredSecret {
        owner: owner.to_owned(),
        name: name.to_owned(),
        sealed: Sealed { key_id: "k".to_owned(), text: text.to_owned() },
        updated_at: NOW,
        updated_by: "ada".to_owned(),
        delivered_at: None,
    }
}

async fn secrets_are_personal_or_shared(store: &TestStore) {
    let write = store.write(|tx| {
        Box::pin(async move {
            for (owner, name, text) in
                [("ada", "B_KEY", "1"), ("", "B_KEY", "2"), ("", "A_KEY", "3"), ("eve", "C_KEY", "4")]
            {
                tx.put_secret(&secret(owner, name, text)).await?;
            }
            tx.record_delivery("", "B_KEY", Timestamp(7)).await?;
            tx.record_delivery("ada", "A_KEY", Timestamp(7)).await
        })
    });
    write.await.expect("new");
    let delivered = StoredSecret { delivered_at: Some(Timestamp(7)), ..secret("", "B_KEY", "2") };
    let mut tx = store.read().await;
    assert_eq!(
        tx.secrets_for("ada").await,
        Ok(vec![secret("", "A_KEY", "3"), delivered.clone(), secret("ada", "B_KEY", "1")])
    );
    assert_eq!(tx.secrets_for("").await, Ok(vec![secret("", "A_KEY", "3"), delivered]));
    drop(tx);

    let write = store.write(|tx| {
        Box::pin(async move {
            tx.put_secret(&secret("", "B_KEY", "5")).await?;
            tx.delete_secret("", "A_KEY").await
        })
    });
    write.await.expect("it exists");
    assert_eq!(store.read().await.secrets_for("").await, Ok(vec![secret("", "B_KEY", "5")]));
    let again = store.write(|tx| Box::pin(async move { tx.delete_secret("eve", "B_KEY").await }));
    assert_eq!(again.await, Err(StoreError::Conflict));
}
