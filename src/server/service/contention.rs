//! Which workers go from host to host, as this server sees it. A server that starts anew has forgotten it, and
//! learns it again within a minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::worker::takeovers::Takeovers;
use app::domain::worker::{Refused, Worker};

use super::Core;
use super::refusal::Refusal;

/// See the module.
#[derive(Default)]
pub struct Contention(Mutex<HashMap<WorkerId, Takeovers>>);

impl Contention {
    /// Whether an agent on another host than the one that listens may take its place now.
    pub fn may_take_over(&self, worker: &WorkerId, now: Timestamp) -> bool {
        let mut takeovers = self.0.lock().expect("no panic while it is held");
        takeovers.entry(worker.clone()).or_default().may_take_over(now)
    }

    /// Forgets a worker that was removed.
    pub fn forget(&self, worker: &WorkerId) {
        self.0.lock().expect("no panic while it is held").remove(worker);
    }
}

impl Core {
    /// Lets an agent take the place of one that listens, but not again and again. `host` is where it comes from; one that
    /// comes back to where it was takes nobody's place. None where that is not known: older agents register without saying
    /// which of two on a host they are.
    pub(super) async fn take_turn(&self, worker: &WorkerId, host: Option<&str>) -> Result<(), Refusal> {
        let stored = self.recent().await?.worker(worker).await?;
        let holder = stored.as_ref().and_then(|stored| host_of(stored.worker.stream()?));
        let displaces = holder.is_some_and(|holder| host != Some(holder));
        let may = !displaces || self.contention.may_take_over(worker, self.now());
        if may { Ok(()) } else { Err(Refused::TokenInUse.into()) }
    }
}

/// Whether the worker's agent listens right now, on another host than this one.
pub fn listens_elsewhere(worker: &Worker, host: &str) -> bool {
    worker.stream().and_then(host_of).is_some_and(|holder| holder != host)
}

/// The host that asks, as far as it is known. Agents behind one address are one host.
pub fn host_at(peer: Option<IpAddr>) -> String {
    peer.map_or_else(|| "unknown".to_owned(), |address| address.to_string())
}

/// The name of a stream: which server holds it, which of its streams it is, and which host opened it.
pub fn stream_name(server: &str, number: &str, host: &str) -> String {
    format!("{server}/{number}@{host}")
}

/// The host in a stream's name.
pub fn host_of(stream: &str) -> Option<&str> {
    stream.rsplit_once('@').map(|(_, host)| host)
}
