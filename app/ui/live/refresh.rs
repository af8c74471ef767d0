//! Fetches values again when their topics change, and reports those that are out of date.

use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::refresh_state::{RefreshAction, RefreshEvent, RefreshState};
use super::{LiveUpdates, Staleness, StreamStatus, elapsed_since, use_live};
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::protocol::topic::Topic;
use crate::ui::backend::BackendFuture;
use crate::ui::browser;
use crate::ui::schedule::after;

/// A value that was fetched with the page and is fetched again whenever one of the topics changes.
///
/// While requests fail, the old value stays, and the connection indicator shows that it is out of date.
pub(crate) fn live_signal<T>(first: T, topics: &[Topic], fetch: impl Fn() -> BackendFuture<T> + 'static) -> RwSignal<T>
where
    T: Send + Sync + 'static,
{
    let value = RwSignal::new(first);
    let fetch = move || -> RefreshFuture {
        let response = fetch();
        Box::pin(async move {
            value.try_set(response.await?);
            Ok(())
        })
    };
    on_change(topics, Duration::ZERO, Box::new(fetch));
    value
}

/// Fetches a value and shows it.
pub(crate) type RefreshFuture = Pin<Box<dyn Future<Output = Result<(), Problem>>>>;

/// Calls `fetch` whenever one of the topics changes, for as long as the caller's owner lives: at once after a pause, and
/// not again within `pace`. The details are in [`RefreshState`].
pub(crate) fn on_change(topics: &[Topic], pace: Duration, fetch: Box<dyn Fn() -> RefreshFuture>) {
    let live = use_live();
    let versions: Vec<_> = topics.iter().map(|topic| live.subscribe(topic)).collect();
    let item_id = live.state.try_update_value(|state| {
        state.last_item_id += 1;
        state.last_item_id
    });
    let item_id = item_id.unwrap_or_default();
    let refresh = Rc::new(Refresher { state: StoredValue::default(), live, item_id, min_interval: pace, fetch });
    Effect::new(move |last: Option<(u64, bool)>| {
        let version = versions.iter().map(Get::get).sum();
        let is_live = live.status.get() == StreamStatus::Live;
        if last.is_some_and(|(last, _)| last != version) {
            refresh.clone().handle(RefreshEvent::Changed);
        }
        if is_live && last.is_some_and(|(_, was_live)| !was_live) {
            refresh.clone().handle(RefreshEvent::Reconnected);
        }
        (version, is_live)
    });
    on_cleanup(move || live.set_staleness(item_id, None));
}

struct Refresher {
    /// It is disposed with its owner; timers that are still planned then do nothing.
    state: StoredValue<RefreshState>,
    live: LiveUpdates,
    item_id: usize,
    /// The minimum time between a response and the next request.
    min_interval: Duration,
    fetch: Box<dyn Fn() -> RefreshFuture>,
}

impl Refresher {
    fn handle(self: Rc<Self>, event: RefreshEvent) {
        let Some((next, action)) = self.state.try_get_value().map(|state| state.handle(event)) else { return };
        self.state.set_value(next);
        match action {
            None => {}
            Some(RefreshAction::Fetch) => {
                let started_at = browser::now();
                let response = (self.fetch)();
                spawn_local(async move {
                    let event = self.classify_result(response.await, started_at);
                    // By then the new value is rendered.
                    after(Duration::ZERO, self.state, move || {
                        let rendered = RefreshEvent::Rendered {
                            after: elapsed_since(started_at, browser::now()),
                            pace: self.min_interval,
                        };
                        self.handle(event.unwrap_or(rendered));
                    });
                });
            }
            Some(RefreshAction::Wait(pause)) => {
                after(pause, self.state, move || self.handle(RefreshEvent::TimerElapsed));
            }
        }
    }

    /// Records whether the value is out of date after a response. Returns a failure event, unless there is a value or
    /// it is known to be deleted.
    fn classify_result(&self, response: Result<(), Problem>, started_at: Timestamp) -> Option<RefreshEvent> {
        let Err(problem) = response else {
            self.set_staleness(None);
            return None;
        };
        self.live.handle_problem(&problem);
        match problem.status {
            // It may exist again with the next change.
            403 | 404 => {
                self.set_staleness(Some(Staleness::NotFound));
                return None;
            }
            401 => {}
            _ => {
                let since = self.live.stale_items.try_with_untracked(|all| all.get(&self.item_id).copied()).flatten();
                let since = since.filter(|old| *old != Staleness::NotFound);
                self.set_staleness(Some(since.unwrap_or(Staleness::Stale(started_at))));
            }
        }
        Some(RefreshEvent::Failed { again: problem.status != 401 })
    }

    /// Does nothing once the owner is disposed: the value is no longer shown.
    fn set_staleness(&self, staleness: Option<Staleness>) {
        if self.state.try_get_value().is_some() {
            self.live.set_staleness(self.item_id, staleness);
        }
    }
}
