//! Takeovers of workers' streams by other hosts, as this server sees them. A restarted server learns them again within
//! a minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::worker::takeovers::StreamTakeovers;
use app::domain::worker::{Worker, WorkerTransitionError};

use crate::service::error::ServiceError;
use crate::service::workers::WorkerService;

#[derive(Default)]
pub struct TakeoverTracker(Mutex<HashMap<WorkerId, StreamTakeovers>>);

impl TakeoverTracker {
    /// Returns whether an agent on another host may take over now.
    pub fn try_take_over(&self, worker: &WorkerId, now: Timestamp) -> bool {
        let mut takeovers = self.0.lock().expect("no panic while it is held");
        takeovers.entry(worker.clone()).or_default().try_take_over(now)
    }

    /// Forgets a deleted worker.
    pub fn forget(&self, worker: &WorkerId) {
        self.0.lock().expect("no panic while it is held").remove(worker);
    }
}

impl WorkerService {
    /// Lets an agent take over from a connected one, but not repeatedly. `host` is where it connects from; one that
    /// returns to its previous host takes nothing over. `None` if the host is unknown: two older agents on one host
    /// cannot be told apart when they register.
    pub(in crate::service) async fn check_takeover(
        &self,
        worker: &WorkerId,
        host: Option<&str>,
    ) -> Result<(), ServiceError> {
        let stored = self.context.read_recent().await?.worker(worker).await?;
        let holder = stored.as_ref().and_then(|stored| host_of_stream(stored.worker.stream_id()?));
        let displaces = holder.is_some_and(|holder| host != Some(holder));
        let is_allowed = !displaces || self.takeovers.try_take_over(worker, self.context.now());
        if is_allowed { Ok(()) } else { Err(WorkerTransitionError::TokenInUse.into()) }
    }
}

/// Returns whether the worker's agent is connected now, from another host than this one.
pub fn has_stream_on_other_host(worker: &Worker, host: &str) -> bool {
    worker.stream_id().and_then(host_of_stream).is_some_and(|holder| holder != host)
}

/// The requesting host, as far as known. Agents behind one address count as one host.
pub fn host_of_peer(peer: Option<IpAddr>) -> String {
    peer.map_or_else(|| "unknown".to_owned(), |address| address.to_string())
}

/// The name of a stream: its server, its number there, and the host that opened it.
pub fn stream_name(server: &str, number: &str, host: &str) -> String {
    format!("{server}/{number}@{host}")
}

/// The host in a stream's name.
pub fn host_of_stream(stream: &str) -> Option<&str> {
    stream.rsplit_once('@').map(|(_, host)| host)
}
