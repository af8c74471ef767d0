//! The server's time as the page knows it: fixed while the page is rendered, ticking once it is alive.

use leptos::prelude::*;

use super::browser;
use super::i18n::t;
use super::prefs::Zone;
use crate::domain::time::{Millis, Timestamp};

/// Now, by the server's clock, and by whose clock moments are written. On both sides of hydration it starts at the
/// moment the page was made, in UTC: only a browser knows its reader's zone.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    now: RwSignal<Timestamp>,
    local: RwSignal<bool>,
}

impl Clock {
    /// A clock that starts at `now` and ticks each second in the browser.
    pub fn starting_at(now: Timestamp, zone: Zone) -> Self {
        let clock = Self { now: RwSignal::new(now), local: RwSignal::new(false) };
        Effect::new(move |_| {
            let loaded = browser::now();
            let tick = move || clock.now.set(now + (browser::now() - loaded));
            if let Ok(handle) = set_interval_with_handle(tick, std::time::Duration::from_secs(1)) {
                on_cleanup(move || handle.clear());
            }
            clock.local.set(zone == Zone::Local);
        });
        clock
    }

    /// The moment, tracked.
    pub fn now(self) -> Timestamp {
        self.now.get()
    }

    /// The moment, for what is written down once.
    pub fn now_untracked(self) -> Timestamp {
        self.now.get_untracked()
    }

    /// A moment in full, as the reader likes it.
    pub fn moment(self, at: Timestamp) -> String {
        t().moment_ahead(at, self.ahead(at))
    }

    /// A moment of today: `10:31`.
    pub fn hour_and_minute(self, at: Timestamp) -> String {
        let ahead = Millis::seconds(i64::from(self.ahead(at).unwrap_or_default()) * 60);
        (at + ahead).to_string()[11..16].to_owned()
    }

    /// How many seconds the reader's clock is ahead of UTC, for the hours of a chart; tracked.
    pub fn seconds_ahead(self) -> Signal<f64> {
        Signal::derive(move || f64::from(self.ahead(self.now_untracked()).unwrap_or_default()) * 60.0)
    }

    /// How many minutes the reader's clock is ahead of UTC; none if UTC is what they like.
    fn ahead(self, at: Timestamp) -> Option<i32> {
        self.local.get().then(|| browser::minutes_ahead(at))
    }
}

/// The page's clock.
pub(crate) fn use_clock() -> Clock {
    use_context().unwrap_or_else(|| Clock::starting_at(Timestamp::default(), Zone::Utc))
}
