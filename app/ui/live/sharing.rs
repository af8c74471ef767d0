//! Which of a browser's tabs holds the stream of news, and what the tabs tell each other: a browser has few connections to a
//! server (six, over HTTP/1.1), and many tabs.
//!
//! One tab that can be seen leads: it holds the stream, for the topics of all, and passes on what comes. A tab that is hidden
//! does not lead, so that with all of them hidden there is no stream. Here is only what is to be done; who leads is the
//! browser's to say ([`crate::ui::browser::Tabs`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Link;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::topic::TopicsChanged;
use crate::ui::browser::StreamEvent;

/// Waits between attempts to connect, in seconds; the last one for ever.
const BACK_OFF: [i64; 5] = [1, 2, 4, 8, 15];
/// From here on a lost connection is called offline.
const OFFLINE_AFTER: Millis = Millis::seconds(20);
/// A stream says something every 15 s at least. One that was silent for so long is dead, and nobody has told the browser: a
/// laptop slept, or a router forgot it.
const SILENT: Millis = Millis::seconds(40);

/// Topics, as text.
pub(super) type Topics = BTreeSet<String>;

/// What one tab tells the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Note {
    /// A tab leads from now on: whoever is there says so.
    Calls,
    /// A tab follows these topics.
    Here { tab: String, topics: Topics },
    /// A tab is closed.
    Gone { tab: String },
    /// How the stream stands, and after which version.
    Stands { version: Option<String>, link: Link },
    /// A message of the stream.
    News(TopicsChanged),
}

/// What happens to a tab.
#[derive(Debug)]
pub(super) enum Event {
    /// The tab shows other topics.
    Wants(Topics),
    /// It can be seen.
    Shown,
    /// It cannot be seen any more.
    Hidden,
    /// It is closed.
    Closed,
    /// The browser lets it lead.
    Leads,
    /// Another tab says something.
    Note(Note),
    /// Of its own stream.
    Stream(StreamEvent),
    /// A question was answered that nobody is signed in.
    Refused,
    /// A wait is over.
    Again,
    /// Some seconds have passed.
    Tick,
}

/// What a tab does about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Asks the browser to lead.
    Ask,
    /// Leads no more.
    StepDown,
    /// Opens the stream, instead of one that is open.
    Open { topics: Topics, after: Option<String> },
    /// Closes it.
    Close,
    /// Tells the other tabs.
    Tell(Note),
    /// Shows how the stream stands.
    Link(Link),
    /// Asks again for what shows these topics.
    Changed(Vec<String>),
    /// Asks again for everything.
    Refetch,
    /// Comes back to it later.
    Wait(Duration),
    /// Asks whether anybody is signed in: a stream does not say why it failed.
    Probe,
}

enum Role {
    Follows,
    Leads {
        others: BTreeMap<String, Topics>,
        /// What the stream was opened for.
        open: Topics,
        /// When it last said something.
        heard: Timestamp,
    },
}

/// One tab of a browser.
pub(super) struct Tab {
    id: String,
    topics: Topics,
    version: Option<String>,
    link: Link,
    is_shown: bool,
    role: Role,
    failures: usize,
    lost_at: Option<Timestamp>,
}

impl Tab {
    /// A tab of a name that no other has, with what was known when its page was made.
    pub fn new(id: String, topics: Topics, version: Option<String>) -> Self {
        let (link, role) = (Link::Connecting, Role::Follows);
        Self { id, topics, version, link, is_shown: false, role, failures: 0, lost_at: None }
    }

    /// What is to be done about it.
    pub fn on(&mut self, event: Event, now: Timestamp) -> Vec<Action> {
        match event {
            Event::Wants(topics) => {
                self.topics = topics;
                self.told_topics(now)
            }
            Event::Shown => self.shown(),
            Event::Hidden => {
                self.is_shown = false;
                self.step_down()
            }
            Event::Closed => vec![Action::Tell(Note::Gone { tab: self.id.clone() })],
            Event::Leads => self.leads(now),
            Event::Note(note) => self.noted(note, now),
            Event::Stream(event) => self.streamed(event, now),
            Event::Refused => self.refused(),
            Event::Again => self.open(now),
            Event::Tick => self.ticked(now),
        }
    }

    fn shown(&mut self) -> Vec<Action> {
        self.is_shown = true;
        match self.role {
            Role::Leads { .. } => Vec::new(),
            // Whoever leads says how it stands, and so whether something was missed.
            Role::Follows => vec![self.here(), Action::Ask],
        }
    }

    fn step_down(&mut self) -> Vec<Action> {
        match std::mem::replace(&mut self.role, Role::Follows) {
            Role::Leads { .. } => vec![Action::Close, Action::StepDown],
            Role::Follows => Vec::new(),
        }
    }

    fn leads(&mut self, now: Timestamp) -> Vec<Action> {
        if !self.is_shown {
            return vec![Action::StepDown];
        }
        self.role = Role::Leads { others: BTreeMap::new(), open: Topics::new(), heard: now };
        let mut actions = vec![Action::Tell(Note::Calls)];
        actions.extend(self.open(now));
        actions
    }

    fn here(&self) -> Action {
        Action::Tell(Note::Here { tab: self.id.clone(), topics: self.topics.clone() })
    }

    fn told_topics(&mut self, now: Timestamp) -> Vec<Action> {
        match self.role {
            Role::Follows => vec![self.here()],
            Role::Leads { .. } => self.open_for_more(now),
        }
    }

    fn all_topics(&self) -> Topics {
        let mut all = self.topics.clone();
        if let Role::Leads { others, .. } = &self.role {
            all.extend(others.values().flatten().cloned());
        }
        all
    }

    /// Topics that nobody follows any more do no harm.
    fn open_for_more(&mut self, now: Timestamp) -> Vec<Action> {
        let all = self.all_topics();
        match &self.role {
            Role::Leads { open, .. } if !all.is_subset(open) => self.open(now),
            _ => Vec::new(),
        }
    }

    fn open(&mut self, now: Timestamp) -> Vec<Action> {
        let topics = self.all_topics();
        let Role::Leads { open, heard, .. } = &mut self.role else { return Vec::new() };
        open.clone_from(&topics);
        *heard = now;
        vec![Action::Open { topics, after: self.version.clone() }]
    }

    fn noted(&mut self, note: Note, now: Timestamp) -> Vec<Action> {
        match (&mut self.role, note) {
            (Role::Leads { others, .. }, Note::Here { tab, topics }) => {
                others.insert(tab, topics);
                let mut actions = vec![self.stands()];
                // Perhaps somebody has signed in there.
                let again = self.link == Link::SignedOut;
                actions.extend(if again { self.open(now) } else { self.open_for_more(now) });
                actions
            }
            (Role::Leads { others, .. }, Note::Gone { tab }) => {
                others.remove(&tab);
                Vec::new()
            }
            (Role::Follows, Note::Calls) => vec![self.here()],
            (Role::Follows, Note::Stands { version, link }) => self.caught_up(version, link),
            (Role::Follows, Note::News(changed)) => self.changed(changed),
            _ => Vec::new(),
        }
    }

    /// Messages and this come in the order in which they were told: another version is one that was missed.
    fn caught_up(&mut self, version: Option<String>, link: Link) -> Vec<Action> {
        let mut actions = self.linked(link);
        if version.is_some() && version != self.version {
            self.version = version;
            actions.push(Action::Refetch);
        }
        actions
    }

    fn changed(&mut self, changed: TopicsChanged) -> Vec<Action> {
        // Without a version to resume after, nobody knows what happened since the page was made.
        let is_first = self.version.replace(changed.version).is_none();
        if changed.resync || is_first { vec![Action::Refetch] } else { vec![Action::Changed(changed.topics)] }
    }

    fn streamed(&mut self, event: StreamEvent, now: Timestamp) -> Vec<Action> {
        let Role::Leads { heard, .. } = &mut self.role else { return Vec::new() };
        *heard = now;
        match event {
            StreamEvent::Lives => Vec::new(),
            StreamEvent::Opened => {
                self.failures = 0;
                self.lost_at = None;
                self.link_told(Link::Live)
            }
            StreamEvent::Message(data) => {
                let Ok(changed) = serde_json::from_str::<TopicsChanged>(&data) else { return Vec::new() };
                let mut actions = vec![Action::Tell(Note::News(changed.clone()))];
                actions.extend(self.changed(changed));
                actions
            }
            StreamEvent::Failed => self.failed(now),
        }
    }

    fn failed(&mut self, now: Timestamp) -> Vec<Action> {
        // Nothing changes that but somebody who signs in, in this tab or in another.
        if self.link == Link::SignedOut {
            return Vec::new();
        }
        let wait = BACK_OFF[self.failures.min(BACK_OFF.len() - 1)];
        self.failures += 1;
        let lost_at = *self.lost_at.get_or_insert(now);
        let is_new = now - lost_at < OFFLINE_AFTER;
        let link = if is_new { Link::Reconnecting(now + Millis::seconds(wait)) } else { Link::Offline(lost_at) };
        let mut actions = self.link_told(link);
        actions.extend([Action::Wait(Duration::from_secs(wait.unsigned_abs())), Action::Probe]);
        actions
    }

    fn refused(&mut self) -> Vec<Action> {
        match self.role {
            // Whoever leads finds out too, and tells everybody.
            Role::Follows => self.linked(Link::SignedOut),
            Role::Leads { .. } => self.link_told(Link::SignedOut),
        }
    }

    fn ticked(&mut self, now: Timestamp) -> Vec<Action> {
        match self.role {
            Role::Leads { heard, .. } if now - heard > SILENT => {
                let mut actions = self.link_told(Link::Reconnecting(now));
                actions.extend(self.open(now));
                actions
            }
            _ => Vec::new(),
        }
    }

    fn stands(&self) -> Action {
        Action::Tell(Note::Stands { version: self.version.clone(), link: self.link })
    }

    fn linked(&mut self, link: Link) -> Vec<Action> {
        if std::mem::replace(&mut self.link, link) == link { Vec::new() } else { vec![Action::Link(link)] }
    }

    fn link_told(&mut self, link: Link) -> Vec<Action> {
        let mut actions = self.linked(link);
        actions.push(self.stands());
        actions
    }
}

#[cfg(test)]
mod tests;
