//! Functions that need a browser. The versions for the server do nothing and are never called: effects and event
//! handlers, which run in a browser only, are their only callers.

#[cfg(feature = "hydrate")]
mod dom;
#[cfg(feature = "hydrate")]
mod fragments;
#[cfg(feature = "hydrate")]
mod interactions;
#[cfg(feature = "hydrate")]
mod keyboard;
#[cfg(feature = "hydrate")]
mod picture;
#[cfg(feature = "hydrate")]
mod selection;
#[cfg(feature = "hydrate")]
mod visibility;
#[cfg(feature = "hydrate")]
pub(crate) use dom::{
    capture_pointer, check_session, column_widths, copy_to_clipboard, focused_node, load_notifications, now, origin,
    path, path_and_query, pointer_fraction, post_form, restore_focus, save_notifications, set_theme,
    submit_enclosing_form, subscribe, time_zone, top_and_height, utc_offset_minutes,
};
#[cfg(feature = "hydrate")]
pub(crate) use fragments::{
    FragmentRefresher, boot_json, elements, has_fragments, is_server_rendered, mark_stale, mount, update_timestamps,
};
#[cfg(feature = "hydrate")]
pub(crate) use interactions::attach_interactions;
#[cfg(feature = "hydrate")]
pub(crate) use keyboard::{
    activate_first, click_in_row, close_enclosing_popover, close_popovers, focus_first, focus_summary, go_to,
    is_hovered_or_focused, key_press, move_row_focus, open_option, scroll_to_option,
};
#[cfg(feature = "hydrate")]
pub(crate) use picture::save_chart;
#[cfg(feature = "hydrate")]
pub(crate) use selection::{apply_select_all, count_selected};

#[cfg(feature = "hydrate")]
pub(crate) use visibility::{is_visible, on_visibility_change};

#[cfg(not(feature = "hydrate"))]
mod stub;
#[cfg(not(feature = "hydrate"))]
pub(crate) use stub::{
    activate_first, apply_select_all, capture_pointer, check_session, click_in_row, close_enclosing_popover,
    close_popovers, column_widths, copy_to_clipboard, count_selected, focus_first, focus_summary, focused_node, go_to,
    is_hovered_or_focused, is_visible, key_press, load_notifications, move_row_focus, now, on_visibility_change,
    open_option, origin, path_and_query, pointer_fraction, post_form, restore_focus, save_chart, save_notifications,
    scroll_to_option, set_theme, submit_enclosing_form, subscribe, top_and_height,
};

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(any(feature = "hydrate", test)), expect(dead_code, reason = "only a browser has events"))]
pub(crate) enum StreamEvent {
    Opened,
    /// The data of a message.
    Message(String),
    /// The server has no news, but the connection works.
    KeepAlive,
    /// The stream failed and was closed.
    Failed,
}

/// How a chart is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Svg,
    Png,
}

/// Ends the subscription when called.
pub(crate) type Unsubscribe = Box<dyn FnOnce() + Send + Sync>;
