//! News from the server: which topics changed. A message carries no data; whoever shows a topic asks again.
//!
//! One stream for all tabs of a browser ([`sharing`]). It reconnects for ever and resumes after the last version it knows;
//! when it missed too much, the server says so and everything is asked for anew.

mod asking;
mod refresh;
mod sharing;

use std::collections::BTreeMap;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use serde::{Deserialize, Serialize};

pub(crate) use self::asking::pause;
pub(crate) use self::refresh::{Asked, on_news, refreshed};
use self::sharing::{Action, Event, Note, Tab, Topics};
use super::browser::{self, TabEvent, Tabs, Unsubscribe};
use super::format::query_string;
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::protocol::topic::Topic;

/// After news were told, the next are gathered for so long. The first after a silence are told at once.
const THROTTLE: Duration = Duration::from_millis(300);
/// How often it is looked whether the stream is dead.
const TICK: Duration = Duration::from_secs(5);

/// Whether news arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Link {
    /// Not open yet.
    Connecting,
    /// News arrive.
    Live,
    /// Lost a moment ago; the next attempt is then.
    Reconnecting(Timestamp),
    /// Lost, since then.
    Offline(Timestamp),
    /// Nobody is signed in any more.
    SignedOut,
}

/// Why something on the page is older than the news of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Old {
    /// It could not be asked for again, since then; that is tried again.
    Stale(Timestamp),
    /// It is not there any more, or not for this reader.
    Gone,
}

/// The page's stream of news.
#[derive(Clone, Copy)]
pub(crate) struct Live {
    link: RwSignal<Link>,
    /// How often each topic changed since the page was opened.
    changes: RwSignal<BTreeMap<String, u64>>,
    /// How often everything changed.
    resyncs: RwSignal<u64>,
    /// What is old, by whoever shows it.
    old: RwSignal<BTreeMap<usize, Old>>,
    /// Who follows what, counted.
    wanted: RwSignal<BTreeMap<String, u32>>,
    state: StoredValue<Stream>,
}

/// What the page's end of it remembers between events.
struct Stream {
    tab: Tab,
    tabs: Option<Tabs>,
    pending: Vec<String>,
    flush_planned: bool,
    flushed_at: Timestamp,
    close: Option<Unsubscribe>,
    /// How many have shown something so far.
    shown: usize,
}

impl Live {
    /// Makes the stream. It opens in the browser if somebody is signed in, and resumes after `version`.
    pub fn after(version: Option<String>, signed_in: bool) -> Self {
        let tab = Tab::new(browser::tab_id(), Topics::new(), version);
        let live = Self {
            link: RwSignal::new(Link::Connecting),
            changes: RwSignal::default(),
            resyncs: RwSignal::new(0),
            old: RwSignal::default(),
            // The two lists are always followed, so that moving between pages seldom needs a new stream.
            wanted: RwSignal::new([(Topic::Jobs.to_string(), 1), (Topic::Workers.to_string(), 1)].into()),
            state: StoredValue::new(Stream {
                tab,
                tabs: None,
                pending: Vec::new(),
                flush_planned: false,
                flushed_at: Timestamp::default(),
                close: None,
                shown: 0,
            }),
        };
        let topics = Memo::new(move |_| live.wanted.with(|wanted| wanted.keys().cloned().collect::<Topics>()));
        Effect::new(move |begun: Option<()>| {
            // Read, not only tracked: a memo that nobody reads never learns of changes.
            let topics = topics.get();
            if !signed_in {
                return;
            }
            live.on(Event::Wants(topics));
            if begun.is_none() {
                live.begin();
            }
        });
        live
    }

    fn begin(self) {
        let tabs = browser::join(move |event| match event {
            TabEvent::Leads => self.on(Event::Leads),
            TabEvent::Shown => self.on(Event::Shown),
            TabEvent::Hidden => self.on(Event::Hidden),
            TabEvent::Closed => self.on(Event::Closed),
            TabEvent::Said(text) => {
                if let Ok(note) = serde_json::from_str::<Note>(&text) {
                    self.on(Event::Note(note));
                }
            }
        });
        self.state.update_value(|state| state.tabs = Some(tabs));
        if browser::is_shown() {
            self.on(Event::Shown);
        }
        if let Ok(handle) = set_interval_with_handle(move || self.on(Event::Tick), TICK) {
            on_cleanup(move || handle.clear());
        }
    }

    /// Whether news arrive.
    pub fn link(self) -> Link {
        self.link.get()
    }

    /// What is oldest on the page although news arrive, if anything is.
    pub fn old(self) -> Option<Old> {
        self.old.with(|old| old.values().min().copied())
    }

    /// Whether what is shown may be old.
    pub fn is_stale(self) -> bool {
        matches!(self.link(), Link::Offline(_) | Link::SignedOut) || self.old().is_some()
    }

    /// Notes what a question was answered: nobody may be signed in any more.
    pub fn heard(self, problem: &Problem) {
        if problem.status == 401 {
            self.on(Event::Refused);
        }
    }

    /// Notes whether something that is shown is old.
    fn mark(self, shown: usize, old: Option<Old>) {
        if self.old.try_with_untracked(|all| all.get(&shown).copied()) != Some(old) {
            self.old.try_update(|all| match old {
                Some(old) => all.insert(shown, old),
                None => all.remove(&shown),
            });
        }
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

    fn on(self, event: Event) {
        let actions = self.state.try_update_value(|state| state.tab.on(event, browser::now()));
        for action in actions.unwrap_or_default() {
            self.act(action);
        }
    }

    fn act(self, action: Action) {
        match action {
            Action::Open { topics, after } => self.open(&topics, after),
            Action::Close => self.close(None),
            Action::Link(link) => self.link.set(link),
            Action::Changed(topics) => self.changed(topics),
            Action::Refetch => self.resyncs.update(|count| *count += 1),
            Action::Wait(wait) => set_timeout(move || self.on(Event::Again), wait),
            Action::Probe => spawn_local(async move {
                if let Err(problem) = browser::send("GET", "/api/session".to_owned(), None).await {
                    self.heard(&problem);
                }
            }),
            Action::Ask => self.with_tabs(Tabs::ask),
            Action::StepDown => self.with_tabs(Tabs::step_down),
            Action::Tell(note) => {
                let note = serde_json::to_string(&note).unwrap_or_default();
                self.with_tabs(|tabs| tabs.tell(&note));
            }
        }
    }

    fn with_tabs(self, act: impl FnOnce(&Tabs)) {
        let tabs = self.state.with_value(|state| state.tabs.clone());
        if let Some(tabs) = tabs {
            act(&tabs);
        }
    }

    fn open(self, topics: &Topics, after: Option<String>) {
        let topics = topics.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let url = format!("/api/events{}", query_string(&[("topics", Some(topics)), ("after", after)]));
        self.close(browser::subscribe(&url, move |event| self.on(Event::Stream(event))));
    }

    /// Closes the stream that is open, for another one.
    fn close(self, next: Option<Unsubscribe>) {
        let old = self.state.try_update_value(|state| std::mem::replace(&mut state.close, next)).flatten();
        if let Some(close) = old {
            close();
        }
    }

    fn changed(self, topics: Vec<String>) {
        let now = browser::now();
        let wait = self.state.try_update_value(|state| {
            state.pending.extend(topics);
            let planned = std::mem::replace(&mut state.flush_planned, true);
            (!planned).then(|| THROTTLE.saturating_sub(since(state.flushed_at, now)))
        });
        if let Some(wait) = wait.flatten() {
            set_timeout(move || self.flush(), wait);
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

/// The page's stream of news.
pub(crate) fn use_live() -> Live {
    use_context().unwrap_or_else(|| Live::after(None, false))
}

/// How long after; nothing where a clock was set back.
fn since(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from((now - earlier).0).unwrap_or_default())
}
