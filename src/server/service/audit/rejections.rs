//! Rejected requests in the audit log, rate-limited (see [`RejectionLimiter`]). Each server counts for itself, in
//! memory.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use app::domain::alerts::RejectedRegistration;
use app::domain::audit::AuditAction;
use app::domain::audit::rate_limit::{RejectionKind, RejectionLimiter, SuppressedRejections};
use app::domain::ids::WorkerId;
use app::domain::network::Network;
use app::domain::time::Timestamp;
use app::domain::worker::{ConnectionState, Worker};
use app::protocol::topic::Topic;
use app::protocol::workers::RejectedAgentView;
use serde::Deserialize;
use serde_json::{Value, json};

use super::entries::newest_entry;
use crate::service::audit::AuditService;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::Caller;
use crate::store::Tx;
use crate::store::audit::{ActionFilter, AuditFilter, AuditOrder, StoredAuditEntry};
use crate::store::cache::fleet_worker::FleetWorker;
use crate::store::cache::state::FleetState;
use crate::store::workers::StoredWorker;

/// The maximum length of the recorded target, in characters: enough for every path of the API.
const MAX_TARGET_CHARS: usize = 200;

/// The maximum number of entries that are read for recent rejections.
const MAX_ENTRIES_READ: u32 = 200;

/// Limits the records of rejected requests per kind and peer.
#[derive(Default)]
pub struct AuditRateLimiter(Mutex<BTreeMap<RejectionKind, RejectionLimiter<String>>>);

impl AuditService {
    /// Records a rejected request: `target` is what was requested, or the claimed name; `detail` is an object.
    pub async fn record_rejection(
        self: &Arc<Self>,
        caller: Caller,
        kind: RejectionKind,
        peer: Option<IpAddr>,
        target: &str,
        mut detail: Value,
    ) {
        let Some(suppressed) = self.admit_rejection(kind, peer_key(peer)) else { return };
        tracing::warn!(
            ?peer, by = caller.actor, action = kind.action().as_str(), reason = %detail["reason"], "rejected a request"
        );
        detail["peer"] = json!(peer.map(|peer| peer.to_string()));
        if suppressed > 0 {
            detail["left_out_before"] = json!(suppressed);
        }
        let target = target.chars().take(MAX_TARGET_CHARS).collect();
        self.append_rejection(caller, kind, target, detail).await;
    }

    /// Records how many rejections were suppressed, after they have stopped.
    pub async fn flush_suppressed(self: &Arc<Self>) {
        let stopped: Vec<(RejectionKind, SuppressedRejections)> = {
            let mut limiters = self.limiter.0.lock().expect("no panic while it is held");
            limiters
                .iter_mut()
                .filter_map(|(kind, limiter)| Some((*kind, limiter.prune(self.context.now())?)))
                .collect()
        };
        for (kind, SuppressedRejections { count, peers }) in stopped {
            let detail = json!({"left_out": count, "peers": peers});
            self.append_rejection(Caller::system(), kind, String::new(), detail).await;
        }
    }

    /// Finds the worker with this id or name: a user may be waiting for its first contact.
    async fn find_worker_id(&self, name: &str) -> Option<WorkerId> {
        let find_id = |fleet_state: &FleetState| {
            let mut workers = fleet_state.workers().map(FleetWorker::worker);
            workers.find(|worker| worker.name == name || worker.id.as_str() == name).map(|worker| worker.id.clone())
        };
        self.context.read_recent().await.ok()?.with_state(find_id).await.ok().flatten()
    }

    /// Returns whether to record the rejection, and then how many were suppressed before.
    pub fn admit_rejection(&self, kind: RejectionKind, peer: String) -> Option<u64> {
        self.context.metrics.rejections.record(kind);
        let mut limiters = self.limiter.0.lock().expect("no panic while it is held");
        limiters.entry(kind).or_default().record_rejection(peer, self.context.now())
    }

    /// Appends the record in the background: the response does not wait for it.
    async fn append_rejection(self: &Arc<Self>, caller: Caller, kind: RejectionKind, target: String, detail: Value) {
        // Also for a caller who is no longer authorized.
        let caller = Caller { grant: None, ..caller };
        let worker = if kind == RejectionKind::Registration { self.find_worker_id(&target).await } else { None };
        let recorded = self
            .context
            .change(caller, move |unit| {
                let (target, detail, worker) = (target.clone(), detail.clone(), worker.clone());
                Box::pin(async move {
                    if let Some(id) = worker {
                        unit.notify(Topic::Worker(id));
                        unit.notify(Topic::Workers);
                    }
                    unit.record(kind.action(), &target, &detail).await
                })
            })
            .await;
        if let Err(error) = recorded {
            tracing::error!(?error, action = kind.action().as_str(), "audit: failed to record a rejected request");
        }
    }
}

/// Returns the last rejection of an agent for a worker that has never connected: of its token, or under its name.
pub async fn last_rejection(tx: &mut dyn Tx, stored: &StoredWorker) -> Result<Option<RejectedAgentView>, ServiceError> {
    if stored.worker.connection != ConnectionState::NeverConnected {
        return Ok(None);
    }
    let (action, since) = (AuditAction::WorkerRegistrationRejected, stored.credential.issued_at);
    let with_token = newest_entry(tx, action, stored.worker.id.as_str(), since).await?;
    let by_name = newest_entry(tx, action, &stored.worker.name, since).await?;
    let last = by_name.into_iter().chain(with_token).max_by_key(|entry| entry.at);
    Ok(last.and_then(|entry| rejected_agent(&entry)))
}

/// The newest rejected registration of each agent, by the ID of its worker, or by the name that it claimed.
pub struct RecentRejections(HashMap<String, RejectedRegistration>);

impl RecentRejections {
    /// Reads those since this time.
    pub async fn load(tx: &mut dyn Tx, since: Timestamp) -> Result<Self, ServiceError> {
        let action = Some(ActionFilter::Is(AuditAction::WorkerRegistrationRejected.as_str().to_owned()));
        let filter = AuditFilter { action, since: Some(since), ..AuditFilter::default() };
        let mut newest = HashMap::new();
        for entry in tx.audit_page(&filter, &AuditOrder::NewestFirst(None), MAX_ENTRIES_READ).await? {
            if let Some(RejectedAgentView { at, reason, .. }) = rejected_agent(&entry) {
                newest.entry(entry.target).or_insert(RejectedRegistration { at, reason });
            }
        }
        Ok(Self(newest))
    }

    /// Returns that of a worker's agent.
    pub fn newest_for(&self, worker: &Worker) -> Option<&RejectedRegistration> {
        let found = [worker.id.as_str(), &worker.name].into_iter().filter_map(|target| self.0.get(target));
        found.max_by_key(|rejection| rejection.at)
    }
}

fn rejected_agent(entry: &StoredAuditEntry) -> Option<RejectedAgentView> {
    #[derive(Deserialize)]
    struct Detail {
        reason: String,
        peer: Option<String>,
    }
    let Detail { reason, peer } = serde_json::from_str(&entry.detail).ok()?;
    Some(RejectedAgentView { at: entry.at, reason, from: peer })
}

/// The key of a peer: of an IPv6 address its network, because one host has many addresses.
fn peer_key(peer: Option<IpAddr>) -> String {
    peer.map_or_else(|| "unknown".to_owned(), |peer| Network::from_client(peer).to_string())
}

/// Returns a claimed name if it is harmless to repeat, else an empty text.
pub fn printable_name(name: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if name.len() <= 64 && name.bytes().all(plain) { name } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_names_are_recorded_only_if_plain() {
        assert_eq!(
            (
                printable_name("gpu-1.lab"),
                printable_name("a b"),
                printable_name("<x>"),
                printable_name(&"x".repeat(65))
            ),
            ("gpu-1.lab", "", "", "")
        );
    }
}
