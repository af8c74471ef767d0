//! What strangers are refused: on record, but not for each of a thousand times (see [`Flood`]). Each server keeps its own
//! count, in memory.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use app::domain::audit::flood::{Flood, LeftOut, Refused};
use app::domain::ids::WorkerId;
use serde_json::{Value, json};

use crate::service::Core;
use crate::service::unit::Caller;

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
        detail["peer"] = json!(peer.map(|peer| peer.to_string()));
        if left_out > 0 {
            detail["left_out_before"] = json!(left_out);
        }
        self.put_on_record(caller, kind, target.to_owned(), detail).await;
    }

    /// Raises the alarm: one token, two hosts.
    pub async fn record_token_in_use(self: &Arc<Self>, caller: Caller, worker: &WorkerId, host: Option<&str>) {
        tracing::warn!(%worker, ?host, "a second agent came with a token that is in use; it was refused");
        let Some(left_out) = self.another(Refused::TokenInUse, worker.to_string()) else { return };
        let mut detail = json!({"host": host});
        if left_out > 0 {
            detail["left_out_before"] = json!(left_out);
        }
        self.put_on_record(caller, Refused::TokenInUse, worker.to_string(), detail).await;
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

    fn another(&self, kind: Refused, peer: String) -> Option<u64> {
        self.metrics.refused.note(kind);
        let mut floods = self.floods.0.lock().expect("no panic while it is held");
        floods.entry(kind).or_default().another(peer, self.now())
    }

    /// Whoever is refused is answered in any case.
    async fn put_on_record(self: &Arc<Self>, caller: Caller, kind: Refused, target: String, detail: Value) {
        let recorded = self
            .change(caller, move |unit| {
                let (target, detail) = (target.clone(), detail.clone());
                Box::pin(async move { unit.record(kind.action(), &target, &detail).await })
            })
            .await;
        if let Err(refusal) = recorded {
            tracing::error!(?refusal, what = kind.action().as_str(), "a refusal is not on record");
        }
    }
}

/// What counts as one peer: of an IPv6 address its network, because a host has as many addresses in it as it likes.
fn network(peer: Option<IpAddr>) -> String {
    match peer.map(|peer| peer.to_canonical()) {
        None => "unknown".to_owned(),
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => format!("{:x?}", &address.segments()[..4]),
    }
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
    fn a_peer_is_an_address_or_a_network() {
        let network = |text: &str| network(text.parse().ok());
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.1"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::2:3"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
    }

    #[test]
    fn names_of_strangers_are_repeated_only_if_they_are_plain() {
        assert_eq!(
            (harmless("gpu-1.lab"), harmless("a b"), harmless("<x>"), harmless(&"x".repeat(65))),
            ("gpu-1.lab", "", "", "")
        );
    }
}
