//! The initial state of a page, which the server passes to the page and the page to the browser.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::clock::PageClock;
use super::components::palette::PaletteOpen;
use super::flash::{CurrentFlash, Flash};
use super::live::LiveUpdates;
use super::notifications::Notifications;
use super::prefs::Prefs;

/// The user's preferences and session, and the flash message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Boot {
    pub prefs: Prefs,
    pub flash: Option<Flash>,
}

impl Boot {
    /// Reads the state from the context. It can be missing, because Leptos also runs the components to list the routes.
    pub fn from_context() -> Self {
        Self { prefs: use_context().unwrap_or_default(), flash: use_context::<Option<Flash>>().flatten() }
    }

    /// Provides the context that all components of a page share.
    pub fn provide(self) {
        let Self { prefs, flash } = self;
        let clock = PageClock::new(&prefs);
        provide_context(clock);
        let user_name = prefs.session.as_ref().map(|session| session.name.clone()).unwrap_or_default();
        provide_context(Notifications::new(user_name, clock));
        provide_context(PaletteOpen(RwSignal::new(false)));
        provide_context(LiveUpdates::new(prefs.version.clone(), prefs.session.is_some()));
        provide_context(CurrentFlash(RwSignal::new(flash)));
        provide_context(prefs);
    }
}
