//! Whether the user sees the page.

use leptos::prelude::{document, window};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, UnwrapThrowExt};
use web_sys::{EventTarget, VisibilityState};

/// Whether the page is visible, at least in part.
pub(crate) fn is_visible() -> bool {
    document().visibility_state() == VisibilityState::Visible
}

/// Calls the listener when the page becomes visible or hidden, and when its window gets the focus, for as long as the
/// page is open.
pub(crate) fn on_visibility_change(listener: impl Fn(bool) + 'static) {
    let callback = Closure::<dyn Fn()>::new(move || listener(is_visible())).into_js_value();
    let add_listener = |target: &EventTarget, event| {
        target.add_event_listener_with_callback(event, callback.unchecked_ref()).unwrap_throw();
    };
    add_listener(&document(), "visibilitychange");
    add_listener(&window(), "focus");
}
