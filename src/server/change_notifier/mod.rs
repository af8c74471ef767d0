//! Change notifications: topics and the version at which each last changed. They carry no data; receivers query the
//! store.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use app::protocol::topic::Topic;
use tokio::sync::watch;

/// The maximum number of stored topics; a listener that has missed more treats everything as changed.
const MAX_TOPICS: usize = 10_000;

pub struct ChangeNotifier {
    state: Mutex<NotifierState>,
    newest_version: watch::Sender<u64>,
}

#[derive(Default)]
struct NotifierState {
    version: u64,
    by_topic: HashMap<Topic, u64>,
    by_version: BTreeMap<u64, Topic>,
    /// Versions up to this one were discarded.
    discarded_through: u64,
    /// Subscribers of single topics.
    topic_subscribers: HashMap<Topic, watch::Sender<u64>>,
    next_stream: u64,
    open_streams: usize,
}

/// The number of open streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenStreams {
    /// Streams of workers.
    pub workers: usize,
    /// Streams of browsers, which get all topics.
    pub listeners: usize,
}

/// Changes since a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSet {
    pub version: u64,
    pub topics: Vec<Topic>,
    /// Whether too much happened, so that everything is to be treated as changed.
    pub resync: bool,
}

impl Default for ChangeNotifier {
    fn default() -> Self {
        Self { state: Mutex::default(), newest_version: watch::Sender::new(0) }
    }
}

impl ChangeNotifier {
    /// Notifies these topics.
    pub fn notify(&self, topics: impl IntoIterator<Item = Topic>) {
        let version = {
            let mut state = self.state.lock().expect("no panic while it is held");
            for topic in topics {
                state.record(topic);
            }
            state.version
        };
        self.newest_version.send_if_modified(|newest| std::mem::replace(newest, version) != version);
    }

    pub fn version(&self) -> u64 {
        self.state.lock().expect("no panic while it is held").version
    }

    /// Returns what changed after `version`.
    pub fn changes_since(&self, version: u64) -> ChangeSet {
        let state = self.state.lock().expect("no panic while it is held");
        let resync = version < state.discarded_through || version > state.version;
        let topics =
            if resync { Vec::new() } else { state.by_version.range(version + 1..).map(|(_, t)| t.clone()).collect() };
        ChangeSet { version: state.version, topics, resync }
    }

    /// Subscribes to all changes from now on.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest_version.subscribe()
    }

    /// Subscribes to one topic from now on, without being woken by others.
    pub fn subscribe_topic(&self, topic: &Topic) -> watch::Receiver<u64> {
        let mut state = self.state.lock().expect("no panic while it is held");
        let version = state.version;
        state.topic_subscribers.entry(topic.clone()).or_insert_with(|| watch::Sender::new(version)).subscribe()
    }

    /// Marks everything as changed, after changes elsewhere may have been missed.
    pub fn notify_all(&self) {
        let version = {
            let mut state = self.state.lock().expect("no panic while it is held");
            state.version += 1;
            state.discarded_through = state.version;
            state.by_topic.clear();
            state.by_version.clear();
            let version = state.version;
            state.topic_subscribers.retain(|_, subscriber| subscriber.send(version).is_ok());
            version
        };
        self.newest_version.send_replace(version);
    }

    /// Counts an opened worker stream; returns its number, or `None` if `max` are open.
    pub fn open_stream(&self, max: usize) -> Option<u64> {
        let mut state = self.state.lock().expect("no panic while it is held");
        if state.open_streams >= max {
            return None;
        }
        state.open_streams += 1;
        state.next_stream += 1;
        Some(state.next_stream)
    }

    /// The number of open streams.
    pub fn stream_counts(&self) -> OpenStreams {
        let workers = self.state.lock().expect("no panic while it is held").open_streams;
        OpenStreams { workers, listeners: self.newest_version.receiver_count() }
    }

    /// Counts a closed worker stream.
    pub fn close_stream(&self) {
        let mut state = self.state.lock().expect("no panic while it is held");
        state.open_streams = state.open_streams.saturating_sub(1);
    }
}

impl NotifierState {
    fn record(&mut self, topic: Topic) {
        self.version += 1;
        if let Some(subscriber) = self.topic_subscribers.get(&topic)
            && subscriber.send(self.version).is_err()
        {
            self.topic_subscribers.remove(&topic);
        }
        if let Some(previous_version) = self.by_topic.insert(topic.clone(), self.version) {
            self.by_version.remove(&previous_version);
        }
        self.by_version.insert(self.version, topic);
        while self.by_version.len() > MAX_TOPICS {
            if let Some((version, topic)) = self.by_version.pop_first() {
                self.by_topic.remove(&topic);
                self.discarded_through = version;
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
    fn each_changed_topic_is_reported_once() {
        let notifier = ChangeNotifier::default();
        let start = notifier.version();
        notifier.notify([Topic::Jobs, Topic::Workers]);
        notifier.notify([Topic::Jobs]);
        let changes = notifier.changes_since(start);
        assert_eq!((changes.topics, changes.resync), (vec![Topic::Workers, Topic::Jobs], false));
        assert_eq!(notifier.changes_since(changes.version).topics, []);
    }

    #[test]
    fn outdated_or_unknown_version_resyncs_everything() {
        let notifier = ChangeNotifier::default();
        let job = |n: u8, m: u8| Topic::Job(JobId::new(Timestamp(0), [n, m, 0, 0, 0, 0, 0, 0, 0, 0]));
        notifier.notify([Topic::Jobs]);
        let start = notifier.version();
        assert!(!notifier.changes_since(start).resync);
        notifier.notify((0..=255).flat_map(|n| (0..40).map(move |m| job(n, m))));
        assert!(notifier.changes_since(start).resync);
        assert!(notifier.changes_since(notifier.version() + 1).resync);
        assert!(!notifier.changes_since(notifier.version() - 1).resync);
    }

    #[tokio::test]
    async fn subscriber_wakes_only_for_changes() {
        let notifier = ChangeNotifier::default();
        let mut receiver = notifier.subscribe();
        notifier.notify([]);
        assert!(!receiver.has_changed().expect("the notifier exists"));
        notifier.notify([Topic::Jobs]);
        receiver.changed().await.expect("the notifier exists");
    }

    #[tokio::test]
    async fn topic_subscriber_wakes_for_its_topic_only() {
        let notifier = ChangeNotifier::default();
        let mut subscriber = notifier.subscribe_topic(&Topic::Workers);
        notifier.notify([Topic::Jobs]);
        assert!(!subscriber.has_changed().expect("the notifier exists"));
        notifier.notify([Topic::Workers]);
        subscriber.changed().await.expect("the notifier exists");
        drop(subscriber);
        notifier.notify([Topic::Workers]);
        assert!(notifier.state.lock().expect("no panic").topic_subscribers.is_empty());
    }

    #[test]
    fn streams_are_numbered_and_limited() {
        let notifier = ChangeNotifier::default();
        assert_eq!(
            (notifier.open_stream(2), notifier.open_stream(2), notifier.open_stream(2)),
            (Some(1), Some(2), None)
        );
        notifier.close_stream();
        assert_eq!(notifier.open_stream(2), Some(3));
    }

    #[test]
    fn notify_all_marks_everything_as_changed() {
        let notifier = ChangeNotifier::default();
        notifier.notify([Topic::Jobs]);
        let (version, subscriber) = (notifier.version(), notifier.subscribe_topic(&Topic::Workers));
        notifier.notify_all();
        assert!(notifier.changes_since(version).resync && !notifier.changes_since(notifier.version()).resync);
        assert!(subscriber.has_changed().expect("the notifier exists"));
    }
}
