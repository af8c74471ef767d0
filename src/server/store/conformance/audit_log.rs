//! The audit log.

use app::domain::audit::verify::{ChainHead, EntryRef, SignedHashes, Verifier};
use app::domain::audit::{AuditAction, AuditEvent};
use app::domain::time::Timestamp;
use sha2::{Digest, Sha256};

use super::{TestStore, on_every_engine};
use crate::store::StoreError;
use crate::store::audit::{ActionFilter, AuditCursor, AuditFilter, AuditOrder, StoredAuditEntry};
use crate::tokens::hex;

on_every_engine!(
    audit_log_is_chained,
    hash_covers_the_stored_entry,
    newest_time_of_all_chains_is_known,
    entries_are_filtered_by_each_field,
    entries_are_paged_in_both_directions,
    removed_beginning_is_recorded,
);

fn entry(n: i64) -> AuditEvent {
    AuditEvent {
        at: Timestamp(n),
        actor: "admin".to_owned(),
        action: AuditAction::WorkerCreated,
        target: "w_1".to_owned(),
        detail: "{}".to_owned(),
        request_id: None,
    }
}

async fn append(store: &TestStore, entry: AuditEvent) {
    let append = store.write(move |tx| {
        let entry = entry.clone();
        Box::pin(async move { tx.append_audit(entry).await })
    });
    append.await.expect("appended");
}

async fn newest_time_of_all_chains_is_known(store: &TestStore) {
    assert_eq!(store.read().await.newest_audit_at().await, Ok(None));
    for at in [5, 9, 7] {
        append(store, entry(at)).await;
    }
    assert_eq!(store.read().await.newest_audit_at().await, Ok(Some(Timestamp(9))));
}

/// The findings of a verification.
async fn faults(store: &TestStore) -> Vec<String> {
    let mut tx = store.read().await;
    let heads = tx.audit_heads().await.expect("readable");
    let mut verifier = Verifier::new(|bytes: &[u8]| hex(&Sha256::digest(bytes)), heads, SignedHashes::new());
    for entry in tx.audit_after("", 0, 100).await.expect("readable") {
        verifier.verify_record(&entry.record(), &entry.hash);
    }
    verifier.into_report().faults.into_iter().map(|(_, fault)| fault.to_string()).collect()
}

async fn audit_log_is_chained(store: &TestStore) {
    for n in 1..=3 {
        append(store, entry(n)).await;
    }
    let audit_log = store.read().await.audit_of_target("w_1").await.expect("readable");
    assert_eq!(audit_log.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(audit_log[0].previous, "");
    assert!(audit_log.windows(2).all(|pair| pair[1].previous == pair[0].hash && pair[0].hash != pair[1].hash));
    let first = &audit_log[0];
    assert_eq!((first.action.as_str(), first.at, first.actor.as_str()), ("worker.created", Timestamp(1), "admin"));
    assert_eq!(faults(store).await, Vec::<String>::new());
    let heads = store.read().await.audit_heads().await.expect("readable");
    let newest = EntryRef { seq: 3, hash: audit_log[2].hash.clone() };
    assert_eq!(heads, [("c_test".to_owned(), ChainHead { newest, removed: EntryRef::default() })].into());
}

async fn hash_covers_the_stored_entry(store: &TestStore) {
    let special_characters = "a\0b\u{1}\r\n\u{feff}é\u{202e}\\'\"";
    let texts = |text: &str| AuditEvent {
        actor: text.to_owned(),
        target: text.to_owned(),
        detail: text.to_owned(),
        request_id: Some(text.to_owned()),
        ..entry(1)
    };
    append(store, texts(special_characters)).await;
    append(store, texts("")).await;
    append(store, AuditEvent { request_id: None, ..texts("") }).await;
    assert_eq!(faults(store).await, Vec::<String>::new());
    let entries = store.read().await.audit_after("", 0, 9).await.expect("readable");
    assert_eq!(entries[0].detail, special_characters.replace('\0', "\u{fffd}"));
    assert_eq!((entries[1].request_id.as_deref(), entries[2].request_id.as_deref()), (Some(""), None));
}

async fn entries_are_filtered_by_each_field(store: &TestStore) {
    append(store, entry(1)).await;
    append(store, AuditEvent { actor: "eve".to_owned(), ..entry(2) }).await;
    append(store, AuditEvent { action: AuditAction::JobSubmitted, ..entry(3) }).await;
    append(store, AuditEvent { target: "w_2".to_owned(), ..entry(4) }).await;
    append(store, AuditEvent { request_id: Some("r".to_owned()), ..entry(5) }).await;
    let all = AuditFilter::default;
    let cases = [
        (all(), vec![5, 4, 3, 2, 1]),
        (AuditFilter { actor: Some("eve".to_owned()), ..all() }, vec![2]),
        (AuditFilter { action: Some(ActionFilter::Is("job.submitted".to_owned())), ..all() }, vec![3]),
        (AuditFilter { action: Some(ActionFilter::Prefix("worker.".to_owned())), ..all() }, vec![5, 4, 2, 1]),
        (AuditFilter { action: Some(ActionFilter::Prefix("work.".to_owned())), ..all() }, vec![]),
        (AuditFilter { targets: vec!["w_2".to_owned()], ..all() }, vec![4]),
        (AuditFilter { targets: vec!["w_2".to_owned(), "w_9".to_owned()], ..all() }, vec![4]),
        (AuditFilter { request_id: Some("r".to_owned()), ..all() }, vec![5]),
        (AuditFilter { since: Some(Timestamp(4)), ..all() }, vec![5, 4]),
        (AuditFilter { since: Some(Timestamp(2)), until: Some(Timestamp(4)), ..all() }, vec![3, 2]),
        (AuditFilter { actor: Some("eve".to_owned()), targets: vec!["w_2".to_owned()], ..all() }, vec![]),
    ];
    let mut tx = store.read().await;
    for (filter, expected) in cases {
        let found = tx.audit_page(&filter, &AuditOrder::NewestFirst(None), 9).await.expect("readable");
        assert_eq!(found.iter().map(|entry| entry.seq).collect::<Vec<_>>(), expected, "{filter:?}");
    }
}

async fn entries_are_paged_in_both_directions(store: &TestStore) {
    for _ in 1..=2 {
        append(store, entry(1)).await;
        append(store, entry(2)).await;
    }
    let mut tx = store.read().await;
    let all = AuditFilter::default();
    let newest_first = tx.audit_page(&all, &AuditOrder::NewestFirst(None), 9).await.expect("readable");
    let cursors: Vec<AuditCursor> = newest_first.iter().map(StoredAuditEntry::cursor).collect();
    let in_order: Vec<(i64, i64)> = cursors.iter().map(|cursor| (cursor.at.0, cursor.seq)).collect();
    assert_eq!(in_order, [(2, 4), (2, 2), (1, 3), (1, 1)], "by time, then by number");
    let rest = tx.audit_page(&all, &AuditOrder::NewestFirst(Some(cursors[1].clone())), 1).await.expect("readable");
    assert_eq!(rest, newest_first[2..3]);
    let oldest_first =
        tx.audit_page(&all, &AuditOrder::OldestFirst(Some(cursors[2].clone())), 9).await.expect("readable");
    assert_eq!(oldest_first.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 4]);
    let filter = AuditFilter { action: Some(ActionFilter::Prefix("worker.".to_owned())), ..all };
    let oldest_first = tx.audit_page(&filter, &AuditOrder::OldestFirst(None), 9).await.expect("readable");
    assert_eq!(oldest_first.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 3, 2, 4]);
    let after = tx.audit_after("c_test", 2, 1).await.expect("readable");
    assert_eq!(after.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [3]);
}

async fn removed_beginning_is_recorded(store: &TestStore) {
    for n in 1..=5 {
        append(store, entry(n)).await;
    }
    let oldest = store.read().await.oldest_audit("c_test", 3).await.expect("readable");
    assert_eq!(oldest.iter().map(|(at, entry)| (at.0, entry.seq)).collect::<Vec<_>>(), [(1, 1), (2, 2), (3, 3)]);
    let remove = |through: EntryRef| {
        store.write(move |tx| {
            let through = through.clone();
            Box::pin(async move {
                assert_eq!(tx.newest_audit().await?.seq, 5);
                tx.remove_audit("c_test", &through).await
            })
        })
    };
    let third = oldest[2].1.clone();
    remove(third.clone()).await.expect("it exists");
    assert_eq!(remove(oldest[1].1.clone()).await, Err(StoreError::Conflict), "it is already removed");
    assert_eq!(
        remove(EntryRef { seq: 9, ..EntryRef::default() }).await,
        Err(StoreError::Conflict),
        "it does not exist"
    );
    append(store, entry(6)).await;
    let remaining = store.read().await.audit_after("", 0, 9).await.expect("readable");
    assert_eq!(remaining.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(store.read().await.audit_heads().await.expect("readable")["c_test"].removed, third);
    assert_eq!(faults(store).await, Vec::<String>::new());
    let attempt = store.read().await.remove_audit("c_test", &EntryRef { seq: 4, ..EntryRef::default() }).await;
    assert!(matches!(attempt, Err(StoreError::Unavailable(_))), "a view for reading removes nothing");
}
