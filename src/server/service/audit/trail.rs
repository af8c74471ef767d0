//! The audit trail as people read it: all chains together, in the order of time.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::protocol::audit::{AuditEntry, AuditFilters, AuditPage, AuditQuery, worker_id};
use futures_util::Stream;
use serde_json::Value;

use crate::service::Core;
use crate::service::refusal::{Invalid, Refusal, moment};
use crate::store::audit::{Actions, AuditFilter, Place, Reading, StoredEntry};
use crate::store::known::Known;
use crate::store::{Store, Tx};

/// Entries on a page if nothing else was asked for.
const PAGE: u32 = 100;
/// Entries on a page at most, and in one portion of an export.
const LONGEST_PAGE: u32 = 1_000;

impl Core {
    /// A page of the trail, newest first.
    pub async fn audit_page(&self, query: &AuditQuery) -> Result<AuditPage, Refusal> {
        let filter = filter(&query.filters)?;
        let from = Reading::Back(query.cursor.as_deref().map(place).transpose()?);
        let limit = query.limit.unwrap_or(PAGE).clamp(1, LONGEST_PAGE);
        let mut entries = self.read().await?.audit_page(&filter, &from, limit + 1).await?;
        let more = entries.len() > limit as usize;
        entries.truncate(limit as usize);
        Ok(AuditPage {
            worker_names: self.recent().await?.see(|known| worker_names(known, &entries)).await?,
            next_cursor: entries.last().filter(|_| more).map(|entry| cursor(&entry.place())),
            entries: entries.into_iter().map(view).collect(),
            server_time: self.now(),
        })
    }
}

/// The newest entry about something of this action, not older than `since`.
pub async fn newest(
    tx: &mut dyn Tx,
    action: Action,
    target: &str,
    since: Option<Timestamp>,
) -> Result<Option<StoredEntry>, Refusal> {
    let action = Some(Actions::Is(action.as_str().to_owned()));
    let filter = AuditFilter { action, target: Some(target.to_owned()), since, ..AuditFilter::default() };
    Ok(tx.audit_page(&filter, &Reading::Back(None), 1).await?.pop())
}

fn worker_names(known: &Known, entries: &[StoredEntry]) -> BTreeMap<String, String> {
    let told = entries.iter().flat_map(|entry| [worker_id(&entry.actor), &entry.target]);
    let workers = told.filter_map(|id| known.worker(&WorkerId::parse(id).ok()?));
    workers.map(|stored| (stored.worker.id.to_string(), stored.worker.name.clone())).collect()
}

/// All entries, oldest first. Each portion is read by itself, so that a slow reader holds nothing up; what comes after
/// `now` is left out, so that it ends.
pub fn export(
    store: Arc<dyn Store>,
    filters: &AuditFilters,
    now: Timestamp,
) -> Result<impl Stream<Item = Result<AuditEntry, Refusal>> + use<>, Refusal> {
    let mut filter = filter(filters)?;
    let end = Timestamp(now.0 + 1);
    filter.until = Some(filter.until.map_or(end, |until| until.min(end)));
    Ok(async_stream::try_stream! {
        let mut from = Reading::Forth(None);
        loop {
            let portion = store.read().await?.audit_page(&filter, &from, LONGEST_PAGE).await?;
            let Some(last) = portion.last() else { break };
            from = Reading::Forth(Some(last.place()));
            for entry in portion {
                yield view(entry);
            }
        }
    })
}

/// What was asked for, checked.
fn filter(asked: &AuditFilters) -> Result<AuditFilter, Refusal> {
    let action = |word: String| if word.ends_with('.') { Actions::Under(word) } else { Actions::Is(word) };
    Ok(AuditFilter {
        actor: asked.actor.clone(),
        action: asked.action.clone().map(action),
        target: asked.target.clone(),
        request_id: asked.request_id.clone(),
        since: moment("since", asked.since.as_deref())?,
        until: moment("until", asked.until.as_deref())?,
    })
}

fn cursor(Place { at, chain, seq }: &Place) -> String {
    format!("{}.{seq}.{chain}", at.0)
}

fn place(cursor: &str) -> Result<Place, Refusal> {
    let parse = || {
        let mut parts = cursor.splitn(3, '.');
        let (at, seq) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Place { at: Timestamp(at), seq, chain: parts.next()?.to_owned() })
    };
    Ok(parse().ok_or(Invalid::Range { field: "cursor", allowed: "a next_cursor of this list" })?)
}

fn view(entry: StoredEntry) -> AuditEntry {
    AuditEntry {
        at: entry.at,
        actor: entry.actor,
        action: entry.action,
        target: entry.target,
        // What is no JSON was tampered with, and is shown as it is.
        detail: serde_json::from_str(&entry.detail).unwrap_or(Value::String(entry.detail)),
        request_id: entry.request_id,
        chain: entry.chain,
        seq: entry.seq,
        previous: entry.previous,
        hash: entry.hash,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_a_place() {
        let here = Place { at: Timestamp(5), chain: "c_1.x".to_owned(), seq: 7 };
        assert_eq!(place(&cursor(&here)), Ok(here));
        for bad in ["", "1", "1.2", "a.2.c", "1.b.c"] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }
}
