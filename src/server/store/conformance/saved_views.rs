//! Saved views of the list of jobs.

use app::domain::time::Timestamp;

use super::{NOW, TestStore, on_every_engine};
use crate::store::StoreError;
use crate::store::jobs::saved_views::StoredView;

on_every_engine!(saved_views_are_personal_or_shared);

fn view(owner: &str, name: &str, shared: bool) -> StoredView {
    let query = format!("q={name}&sort=name");
    StoredView { owner: owner.to_owned(), name: name.to_owned(), query, shared, saved_at: NOW }
}

async fn saved_views_are_personal_or_shared(store: &TestStore) {
    let write = store.write(|tx| {
        Box::pin(async move {
            for (owner, name, shared) in
                [("ada", "b", false), ("ada", "a", true), ("eve", "c", false), ("eve", "a", true)]
            {
                tx.save_view(&view(owner, name, shared)).await?;
            }
            Ok(())
        })
    });
    write.await.expect("new");
    let shared = [view("ada", "a", true), view("eve", "a", true)];
    assert_eq!(store.read().await.saved_views("bob").await, Ok(shared.to_vec()));
    let found = store.read().await.saved_views("ada").await;
    assert_eq!(found, Ok([shared.as_slice(), &[view("ada", "b", false)]].concat()));

    let changed = StoredView { shared: false, saved_at: Timestamp(NOW.0 + 1), ..view("ada", "a", true) };
    let after = changed.clone();
    let write = store.write(move |tx| {
        let changed = changed.clone();
        Box::pin(async move {
            tx.save_view(&changed).await?;
            tx.delete_view("eve", "a").await
        })
    });
    write.await.expect("it exists");
    assert_eq!(store.read().await.saved_views("bob").await, Ok(vec![]));
    assert_eq!(store.read().await.saved_views("ada").await, Ok(vec![after, view("ada", "b", false)]));
    let again = store.write(|tx| Box::pin(async move { tx.delete_view("eve", "a").await }));
    assert_eq!(again.await, Err(StoreError::Conflict));
}
