//! English: search, keys, notifications, preferences.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::habits::{Habits, Preferences};

pub(super) const HABITS: Habits = Habits {
    preferences: "Preferences",
    search: "Search",
    search_hint: "Page, worker, job or action",
    nothing_found: "Nothing here is called that.",
    palette_hint: "↑ ↓ to choose, ↵ to open, Ctrl ↵ in a new tab",
    page: "Page",
    action: "Action",
    verb: Phrase("{0} …"),
    choice: Phrase("{0}: {1}"),
    density: "Density",
    comfortable: "Comfortable",
    compact: "Compact",
    zone: "Time zone",
    utc: "UTC",
    local: "Local time",
    keys: "Single-key shortcuts",
    keys_on: "On",
    keys_off: "Off",
    shortcuts: "Keyboard shortcuts",
    go_to: Phrase("Go to {0}"),
    k_palette: "Search for anything",
    k_help: "Show these shortcuts",
    k_filter: "Filter what is on the page",
    k_next: "Next row",
    k_previous: "Previous row",
    k_open: "Open the row",
    k_select: "Select the row",
    k_create: "Create or submit",
    k_drain: "Drain or resume this worker",
    k_undo: "Go to Undo",
    k_menu: "What can be done with the row",
    k_close: "Close",
    keys_are_off: "Single keys are switched off in the preferences.",
    notes: "Notifications",
    notes_none: "Nothing has happened in this tab yet.",
    undo: "Undo",
    close: "Close",
};

pub(super) const PREFERENCES: Preferences = Preferences {
    intro: "How this browser shows its pages. Other browsers have their own.",
    theme_hint: "“As the system” follows light and dark of your device.",
    density_hint: "Compact shows more rows at once.",
    zone_hint: "Local time is that of your browser; without scripts, pages write UTC.",
    keys_hint: "Such as g j for jobs and ? for the list. Off for speech input, or when keys are pressed by accident; Ctrl K stays.",
    save: "Save",
    search_intro: "Pages, workers, jobs and configurations that you may see, and what can be done with them.",
};
