//! The server's time as the page knows it: fixed while the page is rendered, ticking once it is alive.

use leptos::prelude::*;

use super::browser;
use crate::domain::time::Timestamp;

/// Now, by the server's clock. On both sides of hydration it starts at the moment the page was made.
#[derive(Clone, Copy)]
pub(crate) struct Clock(RwSignal<Timestamp>);

impl Clock {
    /// A clock that starts at `now` and ticks each second in the browser.
    pub fn starting_at(now: Timestamp) -> Self {
        let clock = Self(RwSignal::new(now));
        Effect::new(move |_| {
            let loaded = browser::now();
            let tick = move || clock.0.set(now + (browser::now() - loaded));
            if let Ok(handle) = set_interval_with_handle(tick, std::time::Duration::from_secs(1)) {
                on_cleanup(move || handle.clear());
            }
        });
        clock
    }

    /// The moment, tracked.
    pub fn now(self) -> Timestamp {
        self.0.get()
    }
}

/// The page's clock.
pub(crate) fn use_clock() -> Clock {
    use_context().unwrap_or_else(|| Clock(RwSignal::new(Timestamp::default())))
}
