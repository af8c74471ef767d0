//! The audit log for users: all chains together, ordered by time.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::allowed_values::AllowedValues;
use app::domain::audit::AuditAction;
use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::protocol::audit::{AuditEntry, AuditFilters, AuditPage, AuditQuery, strip_worker_prefix};
use futures_util::Stream;
use serde_json::Value;

use crate::service::audit::AuditService;
use crate::service::error::{InvalidInput, ServiceError, parse_time};
use crate::store::audit::{ActionFilter, AuditCursor, AuditFilter, AuditOrder, StoredAuditEntry};
use crate::store::cache::state::FleetState;
use crate::store::{Store, Tx};

/// Default number of entries per page.
const DEFAULT_PAGE: u32 = 100;
/// Maximum number of entries per page, and per batch of an export.
const MAX_PAGE: u32 = 1_000;

impl AuditService {
    /// Returns a page of the log, newest first.
    pub async fn audit_page(&self, query: &AuditQuery) -> Result<AuditPage, ServiceError> {
        let mut filter = parse_filter(&query.filters)?;
        let from = AuditOrder::NewestFirst(query.cursor.as_deref().map(parse_cursor).transpose()?);
        let limit = query.limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE);
        let mut tx = self.context.read().await?;
        let resolved = resolve_worker_name(&mut *tx, &mut filter).await?;
        let mut entries = tx.audit_page(&filter, &from, limit + 1).await?;
        drop(tx);
        let has_more = entries.len() > limit as usize;
        entries.truncate(limit as usize);
        Ok(AuditPage {
            worker_names: self
                .context
                .read_recent()
                .await?
                .with_state(|fleet_state| worker_names(fleet_state, &entries, resolved))
                .await?,
            next_cursor: entries.last().filter(|_| has_more).map(|entry| format_cursor(&entry.cursor())),
            entries: entries.into_iter().map(entry_view).collect(),
            server_time: self.context.now(),
        })
    }
}

/// Returns the newest entry with this target and action, not older than `since`.
pub async fn newest_entry(
    tx: &mut dyn Tx,
    action: AuditAction,
    target: &str,
    since: Option<Timestamp>,
) -> Result<Option<StoredAuditEntry>, ServiceError> {
    let action = Some(ActionFilter::Is(action.as_str().to_owned()));
    let filter = AuditFilter { action, targets: vec![target.to_owned()], since, ..AuditFilter::default() };
    Ok(tx.audit_page(&filter, &AuditOrder::NewestFirst(None), 1).await?.pop())
}

/// Resolves a worker's name to all workers that had it, including deleted ones: entries are about ids. Returns the
/// requested name by id.
async fn resolve_worker_name(
    tx: &mut dyn Tx,
    filter: &mut AuditFilter,
) -> Result<BTreeMap<String, String>, ServiceError> {
    let mut names = BTreeMap::new();
    let [name] = filter.targets.as_slice() else { return Ok(names) };
    // An id is not a name.
    if WorkerId::is_generated(name) {
        return Ok(names);
    }
    for (id, detail) in tx.audit_by_worker_name(name).await? {
        if name_in_detail(&detail).as_ref() == Some(name) {
            names.insert(id, name.clone());
        }
    }
    filter.targets.extend(names.keys().cloned());
    Ok(names)
}

/// The worker's name in the detail of an entry.
fn name_in_detail(detail: &str) -> Option<String> {
    Some(serde_json::from_str::<Value>(detail).ok()?["name"].as_str()?.to_owned())
}

/// Returns the names of workers; for deleted ones the one in `resolved`, or the one in the entries themselves.
fn worker_names(
    fleet_state: &FleetState,
    entries: &[StoredAuditEntry],
    resolved: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let deleted =
        entries.iter().filter(|entry| entry.action.starts_with("worker.") && WorkerId::parse(&entry.target).is_ok());
    let deleted = deleted.rev().filter_map(|entry| Some((entry.target.clone(), name_in_detail(&entry.detail)?)));
    let ids = entries.iter().flat_map(|entry| [strip_worker_prefix(&entry.actor), &entry.target]);
    let workers = ids.filter_map(|id| fleet_state.worker(&WorkerId::parse(id).ok()?));
    let workers = workers.map(|stored| (stored.worker.id.to_string(), stored.worker.name.clone()));
    resolved.into_iter().chain(deleted).chain(workers).collect()
}

/// Exports all entries, oldest first. Each batch is read separately, so that a slow reader blocks nothing; entries
/// after `now` are left out, so that the export ends.
pub fn export(
    store: Arc<dyn Store>,
    filters: &AuditFilters,
    now: Timestamp,
) -> Result<impl Stream<Item = Result<AuditEntry, ServiceError>> + use<>, ServiceError> {
    let mut filter = parse_filter(filters)?;
    let end = Timestamp(now.0 + 1);
    filter.until = Some(filter.until.map_or(end, |until| until.min(end)));
    Ok(async_stream::try_stream! {
        resolve_worker_name(&mut *store.read().await?, &mut filter).await?;
        let mut from = AuditOrder::OldestFirst(None);
        loop {
            let batch = store.read().await?.audit_page(&filter, &from, MAX_PAGE).await?;
            let Some(last) = batch.last() else { break };
            from = AuditOrder::OldestFirst(Some(last.cursor()));
            for entry in batch {
                yield entry_view(entry);
            }
        }
    })
}

/// Validates the filters.
fn parse_filter(query: &AuditFilters) -> Result<AuditFilter, ServiceError> {
    let action = |text: String| if text.ends_with('.') { ActionFilter::Prefix(text) } else { ActionFilter::Is(text) };
    Ok(AuditFilter {
        actor: query.actor.clone(),
        action: query.action.clone().map(action),
        targets: query.target.iter().cloned().collect(),
        request_id: query.request_id.clone(),
        since: parse_time("since", query.since.as_deref())?,
        until: parse_time("until", query.until.as_deref())?,
    })
}

fn format_cursor(AuditCursor { at, chain, seq }: &AuditCursor) -> String {
    format!("{}.{seq}.{chain}", at.0)
}

fn parse_cursor(cursor: &str) -> Result<AuditCursor, ServiceError> {
    let parse = || {
        let mut parts = cursor.splitn(3, '.');
        let (at, seq) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(AuditCursor { at: Timestamp(at), seq, chain: parts.next()?.to_owned() })
    };
    Ok(parse().ok_or(InvalidInput::OutOfRange { field: "cursor", allowed: AllowedValues::Cursor })?)
}

fn entry_view(entry: StoredAuditEntry) -> AuditEntry {
    AuditEntry {
        at: entry.at,
        actor: entry.actor,
        action: entry.action,
        target: entry.target,
        // A detail that is not JSON was tampered with, and is shown as it is.
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
    fn cursor_round_trips() {
        let cursor = AuditCursor { at: Timestamp(5), chain: "c_1.x".to_owned(), seq: 7 };
        assert_eq!(parse_cursor(&format_cursor(&cursor)), Ok(cursor));
        for bad in ["", "1", "1.2", "a.2.c", "1.b.c"] {
            assert!(parse_cursor(bad).is_err(), "{bad}");
        }
    }
}
