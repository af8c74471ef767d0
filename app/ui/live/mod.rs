//! News from the server: which topics changed. A message carries no data; whoever shows a topic asks again.
//!
//! One stream for all tabs of a browser ([`sharing`]). It reconnects for ever and resumes after the last version it knows;
//! when it missed too much, the server says so and everything is asked for anew.

mod asking;
mod sharing;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use serde::{Deserialize, Serialize};

use self::asking::Asking;
use self::sharing::{Action, Event, Note, Tab, Topics};
use super::browser::{self, TabEvent, Tabs, Unsubscribe};
use super::format::query_string;
use super::port::Answer;
use crate::domain::time::Timestamp;
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

/// What the page's end of it remembers between events.
struct Stream {
    tab: Tab,
    tabs: Option<Tabs>,
    pending: Vec<String>,
    flush_planned: bool,
    flushed_at: Timestamp,
    close: Option<Unsubscribe>,
}

impl Live {
    /// Makes the stream. It opens in the browser if somebody is signed in, and resumes after `version`.
    pub fn after(version: Option<String>, signed_in: bool) -> Self {
        let tab = Tab::new(browser::tab_id(), Topics::new(), version);
        let live = Self {
            link: RwSignal::new(Link::Connecting),
            changes: RwSignal::default(),
            resyncs: RwSignal::new(0),
            // The two lists are always followed, so that moving between pages seldom needs a new stream.
            wanted: RwSignal::new([(Topic::Jobs.to_string(), 1), (Topic::Workers.to_string(), 1)].into()),
            state: StoredValue::new(Stream {
                tab,
                tabs: None,
                pending: Vec::new(),
                flush_planned: false,
                flushed_at: Timestamp::default(),
                close: None,
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

/// A value that was fetched with the page and is fetched anew whenever one of the topics changes.
///
/// While a fetch fails the old value stays: the connection's pill says that it is old.
pub(crate) fn refreshed<T>(first: T, topics: &[Topic], fetch: impl Fn() -> Answer<T> + 'static) -> RwSignal<T>
where
    T: Send + Sync + 'static,
{
    let value = RwSignal::new(first);
    let fetch = move || -> Asked {
        let answer = fetch();
        Box::pin(async move {
            if let Ok(fresh) = answer.await {
                value.try_set(fresh);
            }
        })
    };
    on_news(topics, Box::new(fetch));
    value
}

/// Asks, and shows the answer.
pub(crate) type Asked = Pin<Box<dyn Future<Output = ()>>>;

/// Asks whenever one of the topics changes, as [`asking`] says, for as long as the caller's owner lives.
pub(crate) fn on_news(topics: &[Topic], ask: Box<dyn Fn() -> Asked>) {
    let live = use_live();
    let versions: Vec<_> = topics.iter().map(|topic| live.follow(topic)).collect();
    let refresh = Rc::new(Refresh { asking: Cell::default(), ask });
    Effect::new(move |last: Option<u64>| {
        let version = versions.iter().map(Get::get).sum();
        if last.is_some_and(|last| last != version) {
            refresh.clone().on(asking::Event::News);
        }
        version
    });
}

struct Refresh {
    asking: Cell<Asking>,
    ask: Box<dyn Fn() -> Asked>,
}

impl Refresh {
    fn on(self: Rc<Self>, event: asking::Event) {
        let (next, action) = self.asking.get().on(event);
        self.asking.set(next);
        match action {
            None => {}
            Some(asking::Action::Ask) => {
                let began = browser::now();
                let answer = (self.ask)();
                spawn_local(async move {
                    answer.await;
                    // By then the document is as the new value wants it.
                    let shown = move || self.on(asking::Event::Shown { after: since(began, browser::now()) });
                    set_timeout(shown, Duration::ZERO);
                });
            }
            Some(asking::Action::Rest(rest)) => set_timeout(move || self.on(asking::Event::Rested), rest),
        }
    }
}

/// How long after; nothing where a clock was set back.
fn since(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from((now - earlier).0).unwrap_or_default())
}
