//! The words of what people do on every page: search, keys, notifications, preferences.

use crate::ui::locales::sentence::{Phrase, Text, words};

words! {
    pub(crate) Habits {
        preferences: Text,
        search: Text,
        search_hint: Text,
        nothing_found: Text,
        palette_hint: Text,
        page: Text,
        action: Text,
            verb: Phrase,
        choice: Phrase,
        density: Text,
        comfortable: Text,
        compact: Text,
        zone: Text,
        utc: Text,
        local: Text,
        keys: Text,
        keys_on: Text,
        keys_off: Text,
        shortcuts: Text,
        go_to: Phrase,
        k_palette: Text,
        k_help: Text,
        k_filter: Text,
        k_next: Text,
        k_previous: Text,
        k_open: Text,
        k_select: Text,
        k_create: Text,
        k_drain: Text,
        k_undo: Text,
        k_menu: Text,
        k_close: Text,
        keys_are_off: Text,
        notes: Text,
        notes_none: Text,
        undo: Text,
        close: Text,
    }
}

#[cfg(feature = "ssr")]
words! {
    /// Of the pages of preferences and of search.
    pub(crate) Preferences {
        intro: Text,
        theme_hint: Text,
        density_hint: Text,
        zone_hint: Text,
        keys_hint: Text,
        save: Text,
        search_intro: Text,
    }
}
