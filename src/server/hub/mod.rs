//! The doorbell: topics and the version at which each last changed. Nothing here is true by itself; whoever is rung
//! asks the store.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

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
    /// Who follows one topic only.
    followers: HashMap<Topic, watch::Sender<u64>>,
    next_stream: u64,
    open_streams: usize,
}

/// How many streams are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// Of workers.
    pub workers: usize,
    /// Of those who hear of everything: browsers.
    pub listeners: usize,
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

    /// A bell that rings at every change of one topic from now on. Who follows little is not woken by the rest.
    pub fn follow(&self, topic: &Topic) -> watch::Receiver<u64> {
        let mut state = self.state.lock().expect("no panic while it is held");
        let version = state.version;
        state.followers.entry(topic.clone()).or_insert_with(|| watch::Sender::new(version)).subscribe()
    }

    /// Takes everything as changed: what happened elsewhere is not known.
    pub fn resync(&self) {
        let version = {
            let mut state = self.state.lock().expect("no panic while it is held");
            state.version += 1;
            state.forgotten = state.version;
            state.by_topic.clear();
            state.by_version.clear();
            let version = state.version;
            state.followers.retain(|_, follower| follower.send(version).is_ok());
            version
        };
        self.newest.send_replace(version);
    }

    /// Counts a worker's stream that opens; returns its number, or none if `most` are open.
    pub fn open_stream(&self, most: usize) -> Option<u64> {
        let mut state = self.state.lock().expect("no panic while it is held");
        if state.open_streams >= most {
            return None;
        }
        state.open_streams += 1;
        state.next_stream += 1;
        Some(state.next_stream)
    }

    /// How many streams are open.
    pub fn open(&self) -> Open {
        let workers = self.state.lock().expect("no panic while it is held").open_streams;
        Open { workers, listeners: self.newest.receiver_count() }
    }

    /// One of them ended.
    pub fn close_stream(&self) {
        let mut state = self.state.lock().expect("no panic while it is held");
        state.open_streams = state.open_streams.saturating_sub(1);
    }
}

impl State {
    fn note(&mut self, topic: Topic) {
        self.version += 1;
        if let Some(follower) = self.followers.get(&topic)
            && follower.send(self.version).is_err()
        {
            self.followers.remove(&topic);
        }
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

    #[tokio::test]
    async fn a_follower_is_rung_for_its_topic_only() {
        let hub = Hub::default();
        let mut follower = hub.follow(&Topic::Workers);
        hub.bump([Topic::Jobs]);
        assert!(!follower.has_changed().expect("the hub lives"));
        hub.bump([Topic::Workers]);
        follower.changed().await.expect("the hub lives");
        drop(follower);
        hub.bump([Topic::Workers]);
        assert!(hub.state.lock().expect("no panic").followers.is_empty());
    }

    #[test]
    fn streams_are_numbered_and_limited() {
        let hub = Hub::default();
        assert_eq!((hub.open_stream(2), hub.open_stream(2), hub.open_stream(2)), (Some(1), Some(2), None));
        hub.close_stream();
        assert_eq!(hub.open_stream(2), Some(3));
    }

    #[test]
    fn after_a_loss_of_news_everything_counts_as_changed() {
        let hub = Hub::default();
        hub.bump([Topic::Jobs]);
        let (version, follower) = (hub.version(), hub.follow(&Topic::Workers));
        hub.resync();
        assert!(hub.since(version).resync && !hub.since(hub.version()).resync);
        assert!(follower.has_changed().expect("the hub lives"));
    }
}
