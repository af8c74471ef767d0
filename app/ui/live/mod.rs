//! Change notifications from the server. A message names the topics that have changed but carries no data; components
//! that show a topic fetch it again.
//!
//! The stream of a visible page ([`stream_state`]) always reconnects, and resumes after the last version that it knows.
//! If it has missed too much, the server reports that, and everything is fetched again.

mod refresh;
mod refresh_state;
mod stream_state;

use std::collections::BTreeMap;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

pub(crate) use self::refresh::{RefreshFuture, live_signal, on_change};
pub(crate) use self::refresh_state::retry_delay;
use self::stream_state::{StreamAction, StreamInput, StreamState, Topics};
use super::browser::{self, Unsubscribe};
use super::page_query::query_string;
use super::schedule::after;
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::protocol::topic::Topic;

/// Changes are collected for this time after the last ones were delivered. The first change after a pause is delivered
/// at once.
const THROTTLE: Duration = Duration::from_millis(300);
/// How often the stream is checked for silence.
const WATCHDOG_INTERVAL: Duration = Duration::from_secs(5);

/// The state of the stream, as shown to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamStatus {
    /// Not open yet.
    Connecting,
    /// Open.
    Live,
    /// Lost a moment ago; the time of the next attempt.
    Reconnecting(Timestamp),
    /// Lost, since this time.
    Offline(Timestamp),
    /// The session has ended.
    SignedOut,
}

/// Why something on the page is out of date although the stream is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Staleness {
    /// Requests have failed since this time, and are repeated.
    Stale(Timestamp),
    /// It was deleted, or the user may no longer see it.
    NotFound,
}

/// The change notifications of a page.
#[derive(Clone, Copy)]
pub(crate) struct LiveUpdates {
    status: RwSignal<StreamStatus>,
    /// Number of changes per topic since the page was opened.
    changes: RwSignal<BTreeMap<String, u64>>,
    /// Number of times that everything had to be fetched again.
    resyncs: RwSignal<u64>,
    /// The shown items that are out of date, by their number.
    stale_items: RwSignal<BTreeMap<usize, Staleness>>,
    /// Number of subscribers per topic.
    subscriptions: RwSignal<BTreeMap<String, u32>>,
    state: StoredValue<LiveState>,
}

/// Non-reactive state.
struct LiveState {
    stream: StreamState,
    pending: Vec<String>,
    flush_planned: bool,
    flushed_at: Timestamp,
    unsubscribe: Option<Unsubscribe>,
    /// Number of items shown so far.
    last_item_id: usize,
}

impl LiveUpdates {
    /// Creates the stream. In the browser it opens if a user is signed in, and resumes after `version`.
    pub fn new(version: Option<String>, signed_in: bool) -> Self {
        let live = Self {
            status: RwSignal::new(StreamStatus::Connecting),
            changes: RwSignal::default(),
            resyncs: RwSignal::new(0),
            stale_items: RwSignal::default(),
            // Both lists are always subscribed to, so that navigation seldom needs a new stream.
            subscriptions: RwSignal::new([(Topic::Jobs.to_string(), 1), (Topic::Workers.to_string(), 1)].into()),
            state: StoredValue::new(LiveState {
                stream: StreamState::new(Topics::new(), version),
                pending: Vec::new(),
                flush_planned: false,
                flushed_at: Timestamp::default(),
                unsubscribe: None,
                last_item_id: 0,
            }),
        };
        let topics = Memo::new(move |_| live.subscriptions.with(|counts| counts.keys().cloned().collect::<Topics>()));
        Effect::new(move |previous_run: Option<()>| {
            // Read, not only tracked: a memo that is never read does not notify of changes.
            let topics = topics.get();
            if !signed_in {
                return;
            }
            live.handle(StreamInput::SetTopics(topics));
            if previous_run.is_none() {
                live.start();
            }
        });
        live
    }

    fn start(self) {
        let show = move |visible| self.handle(if visible { StreamInput::Shown } else { StreamInput::Hidden });
        browser::on_visibility_change(show);
        show(browser::is_visible());
        if let Ok(handle) = set_interval_with_handle(move || self.handle(StreamInput::Tick), WATCHDOG_INTERVAL) {
            on_cleanup(move || handle.clear());
        }
    }

    pub fn status(self) -> StreamStatus {
        self.status.get()
    }

    /// The staleness to show: the earliest [`Staleness::Stale`], else [`Staleness::NotFound`]; none if everything is
    /// current.
    pub fn staleness(self) -> Option<Staleness> {
        self.stale_items.with(|items| items.values().min().copied())
    }

    /// Whether the page may show outdated values.
    pub fn is_stale(self) -> bool {
        matches!(self.status(), StreamStatus::Offline(_) | StreamStatus::SignedOut) || self.staleness().is_some()
    }

    /// Handles the error of a request: with status 401, the session has ended.
    pub fn handle_problem(self, problem: &Problem) {
        if problem.status == 401 {
            self.handle(StreamInput::SignedOut);
        }
    }

    /// Records whether a shown item is out of date.
    fn set_staleness(self, item_id: usize, staleness: Option<Staleness>) {
        if self.stale_items.try_with_untracked(|all| all.get(&item_id).copied()) != Some(staleness) {
            self.stale_items.try_update(|all| match staleness {
                Some(staleness) => all.insert(item_id, staleness),
                None => all.remove(&item_id),
            });
        }
    }

    /// Subscribes to a topic for as long as the caller's owner lives. Returns a number that grows whenever the topic
    /// may have changed.
    pub fn subscribe(self, topic: &Topic) -> Memo<u64> {
        let topic = topic.to_string();
        let subscribed_topic = topic.clone();
        Effect::new(move |_| {
            self.subscriptions.update(|all| *all.entry(subscribed_topic.clone()).or_default() += 1);
            let dropped_topic = subscribed_topic.clone();
            on_cleanup(move || {
                self.subscriptions.try_update(|all| match all.get_mut(&dropped_topic) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => drop(all.remove(&dropped_topic)),
                });
            });
        });
        Memo::new(move |_| self.resyncs.get() + self.changes.with(|all| all.get(&topic).copied().unwrap_or_default()))
    }

    fn handle(self, event: StreamInput) {
        let actions = self.state.try_update_value(|state| state.stream.handle(event, browser::now()));
        for action in actions.unwrap_or_default() {
            self.perform(action);
        }
    }

    fn perform(self, action: StreamAction) {
        match action {
            StreamAction::Open { topics, after } => self.open(&topics, after),
            StreamAction::Close => self.close(None),
            StreamAction::SetStatus(status) => self.status.set(status),
            StreamAction::Changed(topics) => self.queue_changes(topics),
            StreamAction::Refetch => self.resyncs.update(|count| *count += 1),
            StreamAction::RetryAfter(wait) => after(wait, self.state, move || self.handle(StreamInput::RetryDue)),
            StreamAction::CheckSession => spawn_local(async move {
                if let Err(problem) = browser::check_session().await {
                    self.handle_problem(&problem);
                }
            }),
        }
    }

    fn open(self, topics: &Topics, after: Option<String>) {
        let topics = topics.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let url = format!("/api/events{}", query_string(&[("topics", Some(topics)), ("after", after)]));
        self.close(browser::subscribe(&url, move |event| self.handle(StreamInput::Stream(event))));
    }

    /// Closes the open stream, and replaces it with `next`.
    fn close(self, next: Option<Unsubscribe>) {
        let old = self.state.try_update_value(|state| std::mem::replace(&mut state.unsubscribe, next)).flatten();
        if let Some(close) = old {
            close();
        }
    }

    fn queue_changes(self, topics: Vec<String>) {
        let now = browser::now();
        let wait = self.state.try_update_value(|state| {
            state.pending.extend(topics);
            let planned = std::mem::replace(&mut state.flush_planned, true);
            (!planned).then(|| THROTTLE.saturating_sub(elapsed_since(state.flushed_at, now)))
        });
        if let Some(wait) = wait.flatten() {
            after(wait, self.state, move || self.flush());
        }
    }

    fn flush(self) {
        let topics = self.state.try_update_value(|state| {
            state.flush_planned = false;
            state.flushed_at = browser::now();
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
}

/// The change notifications of the current page.
pub(crate) fn use_live() -> LiveUpdates {
    use_context().unwrap_or_else(|| LiveUpdates::new(None, false))
}

/// The time since `earlier`; zero if the clock was set back.
fn elapsed_since(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from((now - earlier).0).unwrap_or_default())
}
