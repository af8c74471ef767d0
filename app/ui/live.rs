//! News from the server: which topics changed. A message carries no data; whoever shows a topic asks again.
//!
//! One stream for the whole page, opened once it is alive. It reconnects for ever and resumes after the last version
//! it knows; when it missed too much, the server says so and everything is asked for anew.

use std::collections::BTreeMap;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::browser::{self, StreamEvent, Unsubscribe};
use super::format::query_string;
use super::port::Answer;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::topic::{Topic, TopicsChanged};

/// Refetches at most this often, however many messages come.
const THROTTLE: Duration = Duration::from_millis(300);
/// Waits between attempts to connect, in seconds; the last one for ever.
const BACK_OFF: [u64; 5] = [1, 2, 4, 8, 15];
/// From here on a lost connection is called offline.
const OFFLINE_AFTER: Millis = Millis::seconds(20);

/// Whether news arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Not open yet.
    Connecting,
    /// News arrive.
    Live,
    /// Lost a moment ago.
    Reconnecting,
    /// Lost, since then.
    Offline(Timestamp),
}

/// The page's stream of news.
#[derive(Clone, Copy)]
pub(crate) struct Live {
    link: RwSignal<Link>,
    /// How often each topic changed since the page was opened.
    changes: RwSignal<BTreeMap<String, u64>>,
    /// How often everything changed.
    resyncs: RwSignal<u64>,
    /// Who follows what, counted.
    wanted: RwSignal<BTreeMap<String, u32>>,
    state: StoredValue<Stream>,
}

/// What the stream remembers between events.
#[derive(Default)]
struct Stream {
    version: Option<String>,
    pending: Vec<String>,
    flush_planned: bool,
    failures: usize,
    lost_at: Option<Timestamp>,
    close: Option<Unsubscribe>,
}

impl Live {
    /// Makes the stream. It opens in the browser if somebody is signed in, and resumes after `version`.
    pub fn after(version: Option<String>, signed_in: bool) -> Self {
        let live = Self {
            link: RwSignal::new(Link::Connecting),
            changes: RwSignal::default(),
            resyncs: RwSignal::new(0),
            // The two lists are always followed, so that moving between pages seldom needs a new stream.
            wanted: RwSignal::new([(Topic::Jobs.to_string(), 1), (Topic::Workers.to_string(), 1)].into()),
            state: StoredValue::new(Stream { version, ..Stream::default() }),
        };
        let topics =
            Memo::new(move |_| live.wanted.with(|wanted| wanted.keys().cloned().collect::<Vec<_>>().join(",")));
        Effect::new(move |_| {
            // Read, not only tracked: a memo that nobody reads never learns of changes.
            if topics.with(|topics| !topics.is_empty()) && signed_in {
                live.open();
            }
        });
        live
    }

    /// Whether news arrive.
    pub fn link(self) -> Link {
        self.link.get()
    }

    /// A number that grows whenever the topic may have changed, for as long as the caller's owner lives.
    pub fn follow(self, topic: &Topic) -> Memo<u64> {
        let topic = topic.to_string();
        let wanted = topic.clone();
        Effect::new(move |_| {
            self.wanted.update(|all| *all.entry(wanted.clone()).or_default() += 1);
            let left = wanted.clone();
            on_cleanup(move || {
                self.wanted.try_update(|all| match all.get_mut(&left) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => drop(all.remove(&left)),
                });
            });
        });
        Memo::new(move |_| self.resyncs.get() + self.changes.with(|all| all.get(&topic).copied().unwrap_or_default()))
    }

    fn open(self) {
        let topics = self.wanted.with_untracked(|all| all.keys().cloned().collect::<Vec<_>>().join(","));
        let after = self.state.with_value(|state| state.version.clone());
        let url = format!("/api/events{}", query_string(&[("topics", Some(topics)), ("after", after)]));
        let close = browser::subscribe(&url, move |event| self.on_event(event));
        let old = self.state.try_update_value(|state| std::mem::replace(&mut state.close, close)).flatten();
        if let Some(close) = old {
            close();
        }
    }

    fn on_event(self, event: StreamEvent) {
        match event {
            StreamEvent::Opened => {
                self.state.update_value(|state| {
                    state.failures = 0;
                    state.lost_at = None;
                });
                self.link.set(Link::Live);
            }
            StreamEvent::Message(data) => {
                if let Ok(changed) = serde_json::from_str(&data) {
                    self.on_changed(changed);
                }
            }
            StreamEvent::Failed => self.on_failed(),
        }
    }

    fn on_changed(self, changed: TopicsChanged) {
        let mut first = false;
        let plan = self.state.try_update_value(|state| {
            first = state.version.replace(changed.version).is_none();
            state.pending.extend(changed.topics);
            !std::mem::replace(&mut state.flush_planned, true)
        });
        // Without a version to resume after, nobody knows what happened since the page was made.
        if changed.resync || first {
            self.resyncs.update(|count| *count += 1);
        }
        if plan == Some(true) {
            set_timeout(move || self.flush(), THROTTLE);
        }
    }

    fn flush(self) {
        let topics = self.state.try_update_value(|state| {
            state.flush_planned = false;
            std::mem::take(&mut state.pending)
        });
        let Some(mut topics) = topics.filter(|topics| !topics.is_empty()) else { return };
        topics.sort_unstable();
        topics.dedup();
        self.changes.update(|all| {
            for topic in topics {
                *all.entry(topic).or_default() += 1;
            }
        });
    }

    fn on_failed(self) {
        let now = browser::now();
        let (wait, lost_at) = self
            .state
            .try_update_value(|state| {
                let wait = BACK_OFF[state.failures.min(BACK_OFF.len() - 1)];
                state.failures += 1;
                (wait, *state.lost_at.get_or_insert(now))
            })
            .unwrap_or((BACK_OFF[0], now));
        let link = if now - lost_at < OFFLINE_AFTER { Link::Reconnecting } else { Link::Offline(lost_at) };
        self.link.set(link);
        set_timeout(move || self.open(), Duration::from_secs(wait));
    }
}

/// The page's stream of news.
pub(crate) fn use_live() -> Live {
    use_context().unwrap_or_else(|| Live::after(None, false))
}

/// A value that was fetched with the page and is fetched anew whenever one of the topics changes.
///
/// While a fetch fails the old value stays: the connection's pill says that it is old.
pub(crate) fn refreshed<T>(first: T, topics: &[Topic], fetch: impl Fn() -> Answer<T> + 'static) -> RwSignal<T>
where
    T: Send + Sync + 'static,
{
    let live = use_live();
    let value = RwSignal::new(first);
    let versions: Vec<_> = topics.iter().map(|topic| live.follow(topic)).collect();
    let asked = StoredValue::new(0_u64);
    Effect::new(move |last: Option<u64>| {
        let version = versions.iter().map(Get::get).sum();
        if last.is_some_and(|last| last != version) {
            let number = asked.get_value() + 1;
            asked.set_value(number);
            let answer = fetch();
            spawn_local(async move {
                let answer = answer.await;
                // An older question may be answered after a newer one.
                if let (Ok(fresh), true) = (answer, asked.try_get_value() == Some(number)) {
                    value.try_set(fresh);
                }
            });
        }
        version
    });
    value
}
