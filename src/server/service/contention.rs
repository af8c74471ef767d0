//! Which workers' streams go from host to host, as this server sees it. A server that starts anew has forgotten it, and
//! learns it again within a minute.

use std::collections::HashMap;
use std::sync::Mutex;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::worker::takeovers::Takeovers;

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

/// The name of a stream: which server holds it, which of its streams it is, and which host opened it.
pub fn stream_name(server: &str, number: &str, host: &str) -> String {
    format!("{server}/{number}@{host}")
}

/// The host in a stream's name.
pub fn host_of(stream: &str) -> Option<&str> {
    stream.rsplit_once('@').map(|(_, host)| host)
}
