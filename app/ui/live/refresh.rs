//! What is shown and asked for again when there is news of it, and what the page says when it cannot be.

use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::asking::{Action, Asking, Event};
use super::{Link, Live, Old, since, use_live};
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::protocol::topic::Topic;
use crate::ui::browser;
use crate::ui::port::Answer;

/// A value that was fetched with the page and is fetched anew whenever one of the topics changes.
///
/// While a fetch fails the old value stays, and the connection's pill says that it is old.
pub(crate) fn refreshed<T>(first: T, topics: &[Topic], fetch: impl Fn() -> Answer<T> + 'static) -> RwSignal<T>
where
    T: Send + Sync + 'static,
{
    let value = RwSignal::new(first);
    let fetch = move || -> Asked {
        let answer = fetch();
        Box::pin(async move {
            value.try_set(answer.await?);
            Ok(())
        })
    };
    on_news(topics, Box::new(fetch));
    value
}

/// Asks, and shows the answer.
pub(crate) type Asked = Pin<Box<dyn Future<Output = Result<(), Problem>>>>;

/// Asks whenever one of the topics changes, as [`Asking`] says, for as long as the caller's owner lives.
pub(crate) fn on_news(topics: &[Topic], ask: Box<dyn Fn() -> Asked>) {
    let live = use_live();
    let versions: Vec<_> = topics.iter().map(|topic| live.follow(topic)).collect();
    let shown = live.state.try_update_value(|state| {
        state.shown += 1;
        state.shown
    });
    let shown = shown.unwrap_or_default();
    let refresh = Rc::new(Refresh { asking: StoredValue::default(), live, shown, ask });
    Effect::new(move |last: Option<(u64, bool)>| {
        let version = versions.iter().map(Get::get).sum();
        let is_live = live.link.get() == Link::Live;
        if last.is_some_and(|(last, _)| last != version) {
            refresh.clone().on(Event::News);
        }
        if is_live && last.is_some_and(|(_, was_live)| !was_live) {
            refresh.clone().on(Event::Back);
        }
        (version, is_live)
    });
    on_cleanup(move || live.mark(shown, None));
}

struct Refresh {
    /// It is gone with its owner, and so is what was planned.
    asking: StoredValue<Asking>,
    live: Live,
    shown: usize,
    ask: Box<dyn Fn() -> Asked>,
}

impl Refresh {
    fn on(self: Rc<Self>, event: Event) {
        let Some((next, action)) = self.asking.try_get_value().map(|asking| asking.on(event)) else { return };
        self.asking.set_value(next);
        match action {
            None => {}
            Some(Action::Ask) => {
                let began = browser::now();
                let answer = (self.ask)();
                spawn_local(async move {
                    let event = self.judge(answer.await, began);
                    // By then the document is as the new value wants it.
                    let shown = move || self.on(event.unwrap_or_else(|| shown_since(began)));
                    set_timeout(shown, Duration::ZERO);
                });
            }
            Some(Action::Rest(rest)) => set_timeout(move || self.on(Event::Rested), rest),
        }
    }

    /// Says how old what is shown is after an answer; how it failed, if it did.
    fn judge(&self, answer: Result<(), Problem>, began: Timestamp) -> Option<Event> {
        let Err(problem) = answer else {
            self.tell(None);
            return None;
        };
        self.live.heard(&problem);
        match problem.status {
            // With the next news it may be there again.
            403 | 404 => {
                self.tell(Some(Old::Gone));
                return None;
            }
            401 => {}
            _ => {
                let since = self.live.old.try_with_untracked(|all| all.get(&self.shown).copied()).flatten();
                let since = since.filter(|old| *old != Old::Gone);
                self.tell(Some(since.unwrap_or(Old::Stale(began))));
            }
        }
        Some(Event::Failed { again: problem.status != 401 })
    }

    /// Nobody shows it any more once the asking is gone.
    fn tell(&self, old: Option<Old>) {
        if self.asking.try_get_value().is_some() {
            self.live.mark(self.shown, old);
        }
    }
}

fn shown_since(began: Timestamp) -> Event {
    Event::Shown { after: since(began, browser::now()) }
}
