//! What strangers are refused: on record, but not for each of a thousand times (see [`Flood`]). Each server keeps its own
//! count, in memory.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use app::domain::audit::Action;
use app::domain::audit::flood::{Flood, LeftOut, Refused};
use app::domain::ids::WorkerId;
use app::domain::network::Network;
use app::domain::worker::Link;
use app::protocol::topic::Topic;
use app::protocol::workers::RefusedAgent;
use serde::Deserialize;
use serde_json::{Value, json};

use super::trail::newest;
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::service::unit::Caller;
use crate::store::Tx;
use crate::store::audit::StoredEntry;
use crate::store::known::Known;
use crate::store::workers::StoredWorker;

/// So much is kept of what a stranger wanted, in characters: enough for every path that there is.
const LONGEST_TARGET: usize = 200;

/// See the module.
#[derive(Default)]
pub struct Floods(Mutex<BTreeMap<Refused, Flood<String>>>);

impl Core {
    /// Records that somebody was refused: `target` is what they wanted, or claim to be; `detail` is an object.
    pub async fn record_refused(
        self: &Arc<Self>,
        caller: Caller,
        kind: Refused,
        peer: Option<IpAddr>,
        target: &str,
        mut detail: Value,
    ) {
        let Some(left_out) = self.another(kind, network(peer)) else { return };
        tracing::warn!(?peer, by = caller.actor, what = kind.action().as_str(), reason = %detail["reason"], "refused");
        detail["peer"] = json!(peer.map(|peer| peer.to_string()));
        if left_out > 0 {
            detail["left_out_before"] = json!(left_out);
        }
        let target = target.chars().take(LONGEST_TARGET).collect();
        self.put_on_record(caller, kind, target, detail).await;
    }

    /// Records how much was left out of the record, once it is quiet again.
    pub async fn settle_refused(self: &Arc<Self>) {
        let quiet: Vec<(Refused, LeftOut)> = {
            let mut floods = self.floods.0.lock().expect("no panic while it is held");
            floods.iter_mut().filter_map(|(kind, flood)| Some((*kind, flood.settle(self.now())?))).collect()
        };
        for (kind, LeftOut { times, peers }) in quiet {
            let detail = json!({"left_out": times, "peers": peers});
            self.put_on_record(Caller::system(), kind, String::new(), detail).await;
        }
    }

    /// The worker that has this id or name: somebody may be waiting for its first contact.
    async fn worker_called(&self, name: &str) -> Option<WorkerId> {
        let of_it = |known: &Known| {
            let found = known.workers().find(|one| one.worker.name == name || one.worker.id.as_str() == name);
            found.map(|stored| stored.worker.id.clone())
        };
        self.recent().await.ok()?.see(of_it).await.ok().flatten()
    }

    /// Whether that is to be recorded; if so, how often it was left out before.
    pub fn another(&self, kind: Refused, peer: String) -> Option<u64> {
        self.metrics.refused.note(kind);
        let mut floods = self.floods.0.lock().expect("no panic while it is held");
        floods.entry(kind).or_default().another(peer, self.now())
    }

    /// Whoever is refused is answered in any case.
    async fn put_on_record(self: &Arc<Self>, caller: Caller, kind: Refused, target: String, detail: Value) {
        // Also of somebody who is not let in any more.
        let caller = Caller { admission: None, ..caller };
        let waiting = if kind == Refused::Registration { self.worker_called(&target).await } else { None };
        let recorded = self
            .change(caller, move |unit| {
                let (target, detail, waiting) = (target.clone(), detail.clone(), waiting.clone());
                Box::pin(async move {
                    if let Some(id) = waiting {
                        unit.touch(Topic::Worker(id));
                    }
                    unit.record(kind.action(), &target, &detail).await
                })
            })
            .await;
        if let Err(refusal) = recorded {
            tracing::error!(?refusal, what = kind.action().as_str(), "a refusal is not on record");
        }
    }
}

/// The last time that an agent was refused as a worker that was never heard of: with its token, or under its name.
pub async fn last_refusal(tx: &mut dyn Tx, stored: &StoredWorker) -> Result<Option<RefusedAgent>, Refusal> {
    if stored.worker.link != Link::NeverSeen {
        return Ok(None);
    }
    let (action, since) = (Action::WorkerRegistrationRefused, stored.credential.made_at);
    let with_token = newest(tx, action, stored.worker.id.as_str(), since).await?;
    let by_name = newest(tx, action, &stored.worker.name, since).await?;
    let last = by_name.into_iter().chain(with_token).max_by_key(|entry| entry.at);
    Ok(last.and_then(|entry| agent(&entry)))
}

fn agent(entry: &StoredEntry) -> Option<RefusedAgent> {
    #[derive(Deserialize)]
    struct Detail {
        reason: String,
        peer: Option<String>,
    }
    let Detail { reason, peer } = serde_json::from_str(&entry.detail).ok()?;
    Some(RefusedAgent { at: entry.at, reason, from: peer })
}

/// What counts as one peer: of an IPv6 address its network, because a host has as many addresses in it as it likes.
fn network(peer: Option<IpAddr>) -> String {
    peer.map_or_else(|| "unknown".to_owned(), |peer| Network::of_stranger(peer).to_string())
}

/// A name that a stranger claims, if it is harmless to repeat; else nothing.
pub fn harmless(name: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if name.len() <= 64 && name.bytes().all(plain) { name } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_strangers_are_repeated_only_if_they_are_plain() {
        assert_eq!(
            (harmless("gpu-1.lab"), harmless("a b"), harmless("<x>"), harmless(&"x".repeat(65))),
            ("gpu-1.lab", "", "", "")
        );
    }
}
