//! The doorbell: topics and the version at which each last changed. Nothing here is true by itself; whoever is rung
//! asks the database.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use app::domain::ids::WorkerId;
use app::protocol::topic::Topic;
use tokio::sync::watch;

/// How many topics are remembered; a listener that is further behind takes everything as changed.
const REMEMBERED: usize = 10_000;

/// The doorbell of one server process.
pub struct Hub {
    state: Mutex<State>,
    newest: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    version: u64,
    by_topic: HashMap<Topic, u64>,
    by_version: BTreeMap<u64, Topic>,
    /// Versions up to this one were forgotten.
    forgotten: u64,
    /// The newest stream of each worker.
    streams: HashMap<WorkerId, u64>,
    next_stream: u64,
}

/// What changed since a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The newest version.
    pub version: u64,
    /// The topics that changed.
    pub topics: Vec<Topic>,
    /// Whether so much happened that everything is to be taken as changed.
    pub resync: bool,
}

impl Default for Hub {
    fn default() -> Self {
        Self { state: Mutex::default(), newest: watch::Sender::new(0) }
    }
}

impl Hub {
    /// Rings for these topics.
    pub fn bump(&self, topics: impl IntoIterator<Item = Topic>) {
        let version = {
            let mut state = self.state.lock().expect("no panic while it is held");
            for topic in topics {
                state.note(topic);
            }
            state.version
        };
        self.newest.send_if_modified(|newest| std::mem::replace(newest, version) != version);
    }

    /// The newest version.
    pub fn version(&self) -> u64 {
        self.state.lock().expect("no panic while it is held").version
    }

    /// What changed after `version`.
    pub fn since(&self, version: u64) -> Changes {
        let state = self.state.lock().expect("no panic while it is held");
        let resync = version < state.forgotten || version > state.version;
        let topics =
            if resync { Vec::new() } else { state.by_version.range(version + 1..).map(|(_, t)| t.clone()).collect() };
        Changes { version: state.version, topics, resync }
    }

    /// A bell that rings at every change from now on.
    pub fn listen(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Makes a new stream the worker's only one; whoever holds an older one finds out by [`Hub::is_current`].
    pub fn open_stream(&self, worker: &WorkerId) -> u64 {
        let stream = {
            let mut state = self.state.lock().expect("no panic while it is held");
            state.next_stream += 1;
            let stream = state.next_stream;
            state.streams.insert(worker.clone(), stream);
            stream
        };
        self.bump([Topic::Worker(worker.clone())]);
        stream
    }

    /// Ends the streams of a worker whose key is no longer good.
    pub fn end_streams(&self, worker: &WorkerId) {
        self.state.lock().expect("no panic while it is held").streams.remove(worker);
        self.bump([Topic::Worker(worker.clone())]);
    }

    /// Whether this stream is the worker's newest.
    pub fn is_current(&self, worker: &WorkerId, stream: u64) -> bool {
        self.state.lock().expect("no panic while it is held").streams.get(worker) == Some(&stream)
    }

    /// Forgets a stream that ended; false if a newer one took its place.
    pub fn close_stream(&self, worker: &WorkerId, stream: u64) -> bool {
        let mut state = self.state.lock().expect("no panic while it is held");
        let current = state.streams.get(worker) == Some(&stream);
        if current {
            state.streams.remove(worker);
        }
        current
    }

    /// How many worker streams are open.
    pub fn open_streams(&self) -> usize {
        self.state.lock().expect("no panic while it is held").streams.len()
    }
}

impl State {
    fn note(&mut self, topic: Topic) {
        self.version += 1;
        if let Some(older) = self.by_topic.insert(topic.clone(), self.version) {
            self.by_version.remove(&older);
        }
        self.by_version.insert(self.version, topic);
        while self.by_version.len() > REMEMBERED {
            if let Some((version, topic)) = self.by_version.pop_first() {
                self.by_topic.remove(&topic);
                self.forgotten = version;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::ids::JobId;
    use app::domain::time::Timestamp;

    #[test]
    fn a_listener_learns_each_topic_once() {
        let hub = Hub::default();
        let start = hub.version();
        hub.bump([Topic::Jobs, Topic::Workers]);
        hub.bump([Topic::Jobs]);
        let changes = hub.since(start);
        assert_eq!((changes.topics, changes.resync), (vec![Topic::Workers, Topic::Jobs], false));
        assert_eq!(hub.since(changes.version).topics, []);
    }

    #[test]
    fn who_is_too_far_behind_or_from_another_life_takes_everything_as_changed() {
        let hub = Hub::default();
        let job = |n: u8, m: u8| Topic::Job(JobId::new(Timestamp(0), [n, m, 0, 0, 0, 0, 0, 0, 0, 0]));
        hub.bump([Topic::Jobs]);
        let start = hub.version();
        assert!(!hub.since(start).resync);
        hub.bump((0..=255).flat_map(|n| (0..40).map(move |m| job(n, m))));
        assert!(hub.since(start).resync);
        assert!(hub.since(hub.version() + 1).resync);
        assert!(!hub.since(hub.version() - 1).resync);
    }

    #[tokio::test]
    async fn the_bell_rings_only_for_changes() {
        let hub = Hub::default();
        let mut bell = hub.listen();
        hub.bump([]);
        assert!(!bell.has_changed().expect("the hub lives"));
        hub.bump([Topic::Jobs]);
        bell.changed().await.expect("the hub lives");
    }

    #[test]
    fn an_old_streams_end_does_not_touch_the_new_one() {
        let hub = Hub::default();
        let worker = WorkerId::new(Timestamp(0), [0; 10]);
        let old = hub.open_stream(&worker);
        let new = hub.open_stream(&worker);
        assert!(!hub.is_current(&worker, old) && hub.is_current(&worker, new));
        assert!(!hub.close_stream(&worker, old));
        assert_eq!(hub.open_streams(), 1);
        assert!(hub.close_stream(&worker, new));
    }
}
