//! Which of a browser's tabs holds the stream of news, and what the tabs tell each other: a browser has few connections to a
//! server (six, over HTTP/1.1), and many tabs.
//!
//! One tab that can be seen leads: it holds the stream, for the topics of all, and passes on what comes. A tab that is hidden
//! does not lead, so that with all of them hidden there is no stream. Here is only what is to be done; who leads is the
//! browser's to say ([`crate::ui::browser::Tabs`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::StreamStatus;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::topic::TopicsChanged;
use crate::ui::browser::StreamEvent;

/// Waits between attempts to connect, in seconds; the last one for ever.
const BACKOFF_SECONDS: [i64; 5] = [1, 2, 4, 8, 15];
/// From here on a lost connection is called offline.
const OFFLINE_AFTER: Millis = Millis::from_secs(20);
/// A stream says something every 15 s at least. One that was silent for so long is dead, and nobody has told the browser: a
/// laptop slept, or a router forgot it.
const SILENCE_TIMEOUT: Millis = Millis::from_secs(40);

/// Topics, as text.
pub(super) type Topics = BTreeSet<String>;

/// What one tab tells the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TabMessage {
    /// A tab leads from now on: whoever is there says so.
    Calls,
    /// A tab follows these topics.
    Here { tab: String, topics: Topics },
    /// A tab is closed.
    Gone { tab: String },
    /// How the stream stands, and after which version.
    Stands { version: Option<String>, link: StreamStatus },
    /// A message of the stream.
    News(TopicsChanged),
}

/// What happens to a tab.
#[derive(Debug)]
pub(super) enum SharingEvent {
    /// The tab shows other topics.
    SetTopics(Topics),
    /// It can be seen.
    Shown,
    /// It cannot be seen any more.
    Hidden,
    /// It is closed.
    Closed,
    /// The browser lets it lead.
    BecameLeader,
    /// Another tab says something.
    Message(TabMessage),
    /// Of its own stream.
    Stream(StreamEvent),
    /// A question was answered that nobody is signed in.
    SignedOut,
    /// A wait is over.
    RetryDue,
    /// Some seconds have passed.
    Tick,
}

/// What a tab does about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SharingAction {
    /// Asks the browser to lead.
    RequestLeadership,
    /// Leads no more.
    StepDown,
    /// Opens the stream, instead of one that is open.
    Open { topics: Topics, after: Option<String> },
    /// Closes it.
    Close,
    /// Tells the other tabs.
    Broadcast(TabMessage),
    /// Shows how the stream stands.
    SetStatus(StreamStatus),
    /// Asks again for what shows these topics.
    Changed(Vec<String>),
    /// Asks again for everything.
    Refetch,
    /// Comes back to it later.
    RetryAfter(Duration),
    /// Asks whether anybody is signed in: a stream does not say why it failed.
    CheckSession,
}

enum TabRole {
    Follower,
    Leader {
        others: BTreeMap<String, Topics>,
        /// What the stream was opened for.
        open_topics: Topics,
        /// When it last said something.
        last_event_at: Timestamp,
    },
}

/// One tab of a browser.
pub(super) struct SharedTab {
    id: String,
    topics: Topics,
    version: Option<String>,
    status: StreamStatus,
    is_visible: bool,
    role: TabRole,
    failures: usize,
    lost_at: Option<Timestamp>,
}

impl SharedTab {
    /// A tab of a name that no other has, with what was known when its page was made.
    pub fn new(id: String, topics: Topics, version: Option<String>) -> Self {
        let (link, role) = (StreamStatus::Connecting, TabRole::Follower);
        Self { id, topics, version, status: link, is_visible: false, role, failures: 0, lost_at: None }
    }

    /// What is to be done about it.
    pub fn handle(&mut self, event: SharingEvent, now: Timestamp) -> Vec<SharingAction> {
        match event {
            SharingEvent::SetTopics(topics) => {
                self.topics = topics;
                self.on_topics_changed(now)
            }
            SharingEvent::Shown => self.on_visible(),
            SharingEvent::Hidden => {
                self.is_visible = false;
                self.step_down()
            }
            SharingEvent::Closed => vec![SharingAction::Broadcast(TabMessage::Gone { tab: self.id.clone() })],
            SharingEvent::BecameLeader => self.on_leadership(now),
            SharingEvent::Message(note) => self.handle_message(note, now),
            SharingEvent::Stream(event) => self.handle_stream(event, now),
            SharingEvent::SignedOut => self.handle_sign_out(),
            SharingEvent::RetryDue => self.open(now),
            SharingEvent::Tick => self.check_silence(now),
        }
    }

    fn on_visible(&mut self) -> Vec<SharingAction> {
        self.is_visible = true;
        match self.role {
            TabRole::Leader { .. } => Vec::new(),
            // Whoever leads says how it stands, and so whether something was missed.
            TabRole::Follower => vec![self.announce(), SharingAction::RequestLeadership],
        }
    }

    fn step_down(&mut self) -> Vec<SharingAction> {
        match std::mem::replace(&mut self.role, TabRole::Follower) {
            TabRole::Leader { .. } => vec![SharingAction::Close, SharingAction::StepDown],
            TabRole::Follower => Vec::new(),
        }
    }

    fn on_leadership(&mut self, now: Timestamp) -> Vec<SharingAction> {
        if !self.is_visible {
            return vec![SharingAction::StepDown];
        }
        self.role = TabRole::Leader { others: BTreeMap::new(), open_topics: Topics::new(), last_event_at: now };
        let mut actions = vec![SharingAction::Broadcast(TabMessage::Calls)];
        actions.extend(self.open(now));
        actions
    }

    fn announce(&self) -> SharingAction {
        SharingAction::Broadcast(TabMessage::Here { tab: self.id.clone(), topics: self.topics.clone() })
    }

    fn on_topics_changed(&mut self, now: Timestamp) -> Vec<SharingAction> {
        match self.role {
            TabRole::Follower => vec![self.announce()],
            TabRole::Leader { .. } => self.reopen_if_needed(now),
        }
    }

    fn all_topics(&self) -> Topics {
        let mut all = self.topics.clone();
        if let TabRole::Leader { others, .. } = &self.role {
            all.extend(others.values().flatten().cloned());
        }
        all
    }

    /// Topics that nobody follows any more do no harm.
    fn reopen_if_needed(&mut self, now: Timestamp) -> Vec<SharingAction> {
        let all = self.all_topics();
        match &self.role {
            TabRole::Leader { open_topics: open, .. } if !all.is_subset(open) => self.open(now),
            _ => Vec::new(),
        }
    }

    fn open(&mut self, now: Timestamp) -> Vec<SharingAction> {
        let topics = self.all_topics();
        let TabRole::Leader { open_topics: open, last_event_at: heard, .. } = &mut self.role else { return Vec::new() };
        open.clone_from(&topics);
        *heard = now;
        vec![SharingAction::Open { topics, after: self.version.clone() }]
    }

    fn handle_message(&mut self, note: TabMessage, now: Timestamp) -> Vec<SharingAction> {
        match (&mut self.role, note) {
            (TabRole::Leader { others, .. }, TabMessage::Here { tab, topics }) => {
                others.insert(tab, topics);
                let mut actions = vec![self.state_message()];
                // Perhaps somebody has signed in there.
                let again = self.status == StreamStatus::SignedOut;
                actions.extend(if again { self.open(now) } else { self.reopen_if_needed(now) });
                actions
            }
            (TabRole::Leader { others, .. }, TabMessage::Gone { tab }) => {
                others.remove(&tab);
                Vec::new()
            }
            (TabRole::Follower, TabMessage::Calls) => vec![self.announce()],
            (TabRole::Follower, TabMessage::Stands { version, link }) => self.sync_with_leader(version, link),
            (TabRole::Follower, TabMessage::News(changed)) => self.handle_change(changed),
            _ => Vec::new(),
        }
    }

    /// Messages and this come in the order in which they were told: another version is one that was missed.
    fn sync_with_leader(&mut self, version: Option<String>, link: StreamStatus) -> Vec<SharingAction> {
        let mut actions = self.set_status(link);
        if version.is_some() && version != self.version {
            self.version = version;
            actions.push(SharingAction::Refetch);
        }
        actions
    }

    fn handle_change(&mut self, changed: TopicsChanged) -> Vec<SharingAction> {
        // Without a version to resume after, nobody knows what happened since the page was made.
        let is_first = self.version.replace(changed.version).is_none();
        if changed.resync || is_first {
            vec![SharingAction::Refetch]
        } else {
            vec![SharingAction::Changed(changed.topics)]
        }
    }

    fn handle_stream(&mut self, event: StreamEvent, now: Timestamp) -> Vec<SharingAction> {
        let TabRole::Leader { last_event_at: heard, .. } = &mut self.role else { return Vec::new() };
        *heard = now;
        match event {
            StreamEvent::KeepAlive => Vec::new(),
            StreamEvent::Opened => {
                self.failures = 0;
                self.lost_at = None;
                self.broadcast_status(StreamStatus::Live)
            }
            StreamEvent::Message(data) => {
                let Ok(changed) = serde_json::from_str::<TopicsChanged>(&data) else { return Vec::new() };
                let mut actions = vec![SharingAction::Broadcast(TabMessage::News(changed.clone()))];
                actions.extend(self.handle_change(changed));
                actions
            }
            StreamEvent::Failed => self.handle_failure(now),
        }
    }

    fn handle_failure(&mut self, now: Timestamp) -> Vec<SharingAction> {
        // Nothing changes that but somebody who signs in, in this tab or in another.
        if self.status == StreamStatus::SignedOut {
            return Vec::new();
        }
        let wait = BACKOFF_SECONDS[self.failures.min(BACKOFF_SECONDS.len() - 1)];
        self.failures += 1;
        let lost_at = *self.lost_at.get_or_insert(now);
        let is_new = now - lost_at < OFFLINE_AFTER;
        let link = if is_new {
            StreamStatus::Reconnecting(now + Millis::from_secs(wait))
        } else {
            StreamStatus::Offline(lost_at)
        };
        let mut actions = self.broadcast_status(link);
        actions
            .extend([SharingAction::RetryAfter(Duration::from_secs(wait.unsigned_abs())), SharingAction::CheckSession]);
        actions
    }

    fn handle_sign_out(&mut self) -> Vec<SharingAction> {
        match self.role {
            // Whoever leads finds out too, and tells everybody.
            TabRole::Follower => self.set_status(StreamStatus::SignedOut),
            TabRole::Leader { .. } => self.broadcast_status(StreamStatus::SignedOut),
        }
    }

    fn check_silence(&mut self, now: Timestamp) -> Vec<SharingAction> {
        match self.role {
            TabRole::Leader { last_event_at: heard, .. } if now - heard > SILENCE_TIMEOUT => {
                let mut actions = self.broadcast_status(StreamStatus::Reconnecting(now));
                actions.extend(self.open(now));
                actions
            }
            _ => Vec::new(),
        }
    }

    fn state_message(&self) -> SharingAction {
        SharingAction::Broadcast(TabMessage::Stands { version: self.version.clone(), link: self.status })
    }

    fn set_status(&mut self, link: StreamStatus) -> Vec<SharingAction> {
        if std::mem::replace(&mut self.status, link) == link {
            Vec::new()
        } else {
            vec![SharingAction::SetStatus(link)]
        }
    }

    fn broadcast_status(&mut self, link: StreamStatus) -> Vec<SharingAction> {
        let mut actions = self.set_status(link);
        actions.push(self.state_message());
        actions
    }
}

#[cfg(test)]
mod tests;
