//! The few things that only a browser can do. The server's versions do nothing, and nothing calls them there:
//! these functions are used in effects and event handlers only.

#[cfg(feature = "hydrate")]
mod help;
#[cfg(feature = "hydrate")]
mod keys;
#[cfg(feature = "hydrate")]
mod picked;
#[cfg(feature = "hydrate")]
mod plain;
#[cfg(feature = "hydrate")]
mod real;
#[cfg(feature = "hydrate")]
mod tabs;
#[cfg(feature = "hydrate")]
pub(crate) use help::help;
#[cfg(feature = "hydrate")]
pub(crate) use keys::{attends, click, focus, focus_summary, in_row, open_option, press, reveal, step, stroke};
#[cfg(feature = "hydrate")]
pub(crate) use picked::{count_picked, pick_all};
#[cfg(feature = "hydrate")]
pub(crate) use plain::{Renewal, boot, has_parts, is_plain, mark_stale, mount, tell_moments};
#[cfg(feature = "hydrate")]
pub(crate) use real::{
    address, carried_words, copy, focused, keep, minutes_ahead, now, origin, path, place, recall, refocus, send,
    set_theme, share_of_width, submit_form_of, subscribe, typed,
};

#[cfg(feature = "hydrate")]
pub(crate) use tabs::{Tabs, is_shown, join, tab_id};

#[cfg(not(feature = "hydrate"))]
mod stub;
#[cfg(not(feature = "hydrate"))]
pub(crate) use stub::{
    Tabs, address, attends, click, copy, count_picked, focus, focus_summary, focused, in_row, is_shown, join, keep,
    minutes_ahead, now, open_option, origin, pick_all, place, press, recall, refocus, reveal, send, set_theme,
    share_of_width, step, stroke, submit_form_of, subscribe, tab_id, typed,
};

/// What a subscription tells its listener.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(any(feature = "hydrate", test)), expect(dead_code, reason = "only a browser has events"))]
pub(crate) enum StreamEvent {
    /// The stream is open.
    Opened,
    /// One message's data.
    Message(String),
    /// It has nothing to say, and is there.
    Lives,
    /// The stream broke and was closed.
    Failed,
}

/// Ends its subscription when called.
pub(crate) type Unsubscribe = Box<dyn FnOnce() + Send + Sync>;

/// What a tab learns of itself and the others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "hydrate"), expect(dead_code, reason = "only a browser has tabs"))]
pub(crate) enum TabEvent {
    /// It leads from now on.
    Leads,
    /// It can be seen.
    Shown,
    /// It cannot be seen any more.
    Hidden,
    /// It is closed.
    Closed,
    /// Another one says this.
    Said(String),
}
