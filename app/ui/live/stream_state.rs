//! When a page opens, resumes, and closes its event stream.
//!
//! A hidden page has no stream, because a browser opens only six HTTP/1.1 connections to a server, for all of its tabs.
//! When the page is visible again, it resumes after the last version that it knows.

use std::collections::BTreeSet;
use std::time::Duration;

use super::StreamStatus;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::topic::TopicsChanged;
use crate::ui::browser::StreamEvent;

/// Delays between attempts to connect, in seconds; the last one repeats.
const BACKOFF_SECONDS: [i64; 5] = [1, 2, 4, 8, 15];
/// After this time a lost connection counts as offline.
const OFFLINE_AFTER: Millis = Millis::from_secs(20);
/// A stream that was silent for this time is dead: the server sends an event every 15 s, but a browser does not notice
/// that a laptop slept or that a router dropped the connection.
const SILENCE_TIMEOUT: Millis = Millis::from_secs(40);

pub(super) type Topics = BTreeSet<String>;

#[derive(Debug)]
pub(super) enum StreamInput {
    /// The page shows other topics.
    SetTopics(Topics),
    /// The page is visible, or its window has the focus.
    Shown,
    /// The page is hidden.
    Hidden,
    /// An event of the open stream.
    Stream(StreamEvent),
    /// A response showed that the session has ended.
    SignedOut,
    /// The delay before an attempt is over.
    RetryDue,
    /// Some seconds have passed.
    Tick,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamAction {
    /// Open a stream, and close the current one.
    Open {
        topics: Topics,
        after: Option<String>,
    },
    Close,
    /// Show the status of the stream.
    SetStatus(StreamStatus),
    /// Fetch what depends on these topics.
    Changed(Vec<String>),
    /// Fetch everything.
    Refetch,
    /// Send [`StreamInput::RetryDue`] after this time.
    RetryAfter(Duration),
    /// Check the session: a stream does not report why it failed.
    CheckSession,
}

/// The stream that is open or being opened.
struct OpenStream {
    topics: Topics,
    last_event_at: Timestamp,
}

/// The state of a page's stream.
pub(super) struct StreamState {
    topics: Topics,
    version: Option<String>,
    status: StreamStatus,
    is_visible: bool,
    stream: Option<OpenStream>,
    failures: usize,
    lost_at: Option<Timestamp>,
}

impl StreamState {
    /// The state of a page that was rendered at `version`.
    pub fn new(topics: Topics, version: Option<String>) -> Self {
        let status = StreamStatus::Connecting;
        Self { topics, version, status, is_visible: false, stream: None, failures: 0, lost_at: None }
    }

    pub fn handle(&mut self, input: StreamInput, now: Timestamp) -> Vec<StreamAction> {
        match input {
            StreamInput::SetTopics(topics) => {
                self.topics = topics;
                self.open_if_needed(now)
            }
            StreamInput::Shown => {
                self.is_visible = true;
                self.open_if_needed(now)
            }
            StreamInput::Hidden => {
                self.is_visible = false;
                self.close().into_iter().collect()
            }
            StreamInput::Stream(event) => self.handle_stream(event, now),
            StreamInput::SignedOut => {
                let mut actions = self.set_status(StreamStatus::SignedOut);
                actions.extend(self.close());
                actions
            }
            StreamInput::RetryDue if self.status == StreamStatus::SignedOut => Vec::new(),
            StreamInput::RetryDue => self.open_if_needed(now),
            StreamInput::Tick => self.check_silence(now),
        }
    }

    /// Opens a stream, unless the current one covers all topics of the page; additional ones do no harm.
    fn open_if_needed(&mut self, now: Timestamp) -> Vec<StreamAction> {
        let covers_topics = self.stream.as_ref().is_some_and(|open| self.topics.is_subset(&open.topics));
        if self.is_visible && !covers_topics { self.open(now) } else { Vec::new() }
    }

    fn open(&mut self, now: Timestamp) -> Vec<StreamAction> {
        let topics = self.topics.clone();
        self.stream = Some(OpenStream { topics: topics.clone(), last_event_at: now });
        vec![StreamAction::Open { topics, after: self.version.clone() }]
    }

    fn close(&mut self) -> Option<StreamAction> {
        self.stream.take().map(|_| StreamAction::Close)
    }

    fn handle_stream(&mut self, event: StreamEvent, now: Timestamp) -> Vec<StreamAction> {
        let Some(open) = &mut self.stream else { return Vec::new() };
        open.last_event_at = now;
        match event {
            StreamEvent::KeepAlive => Vec::new(),
            StreamEvent::Opened => {
                (self.failures, self.lost_at) = (0, None);
                self.set_status(StreamStatus::Live)
            }
            StreamEvent::Message(data) => match serde_json::from_str::<TopicsChanged>(&data) {
                Ok(changed) => vec![self.handle_change(changed)],
                Err(_) => Vec::new(),
            },
            StreamEvent::Failed => self.handle_failure(now),
        }
    }

    fn handle_change(&mut self, changed: TopicsChanged) -> StreamAction {
        // Without a version to resume after, changes since the page was rendered may be missing.
        let is_first = self.version.replace(changed.version).is_none();
        if changed.resync || is_first { StreamAction::Refetch } else { StreamAction::Changed(changed.topics) }
    }

    fn handle_failure(&mut self, now: Timestamp) -> Vec<StreamAction> {
        self.stream = None;
        // It stays so until the user signs in, here or in another tab.
        if self.status == StreamStatus::SignedOut {
            return Vec::new();
        }
        let wait = BACKOFF_SECONDS[self.failures.min(BACKOFF_SECONDS.len() - 1)];
        self.failures += 1;
        let lost_at = *self.lost_at.get_or_insert(now);
        let is_new = now - lost_at < OFFLINE_AFTER;
        let mut actions = self.set_status(if is_new {
            StreamStatus::Reconnecting(now + Millis::from_secs(wait))
        } else {
            StreamStatus::Offline(lost_at)
        });
        actions
            .extend([StreamAction::RetryAfter(Duration::from_secs(wait.unsigned_abs())), StreamAction::CheckSession]);
        actions
    }

    fn check_silence(&mut self, now: Timestamp) -> Vec<StreamAction> {
        if self.stream.as_ref().is_none_or(|open| now - open.last_event_at <= SILENCE_TIMEOUT) {
            return Vec::new();
        }
        let mut actions = self.set_status(StreamStatus::Reconnecting(now));
        actions.extend(self.open(now));
        actions
    }

    fn set_status(&mut self, status: StreamStatus) -> Vec<StreamAction> {
        if std::mem::replace(&mut self.status, status) == status {
            Vec::new()
        } else {
            vec![StreamAction::SetStatus(status)]
        }
    }
}

#[cfg(test)]
mod tests;
