//! Modal dialogs.

use leptos::html;
use leptos::prelude::*;

/// Shows a modal dialog while `is_open` returns true. Returns its node reference, and the handler of its `close` event,
/// which calls `on_close`.
pub(crate) fn use_modal(
    is_open: impl Fn() -> bool + 'static,
    on_close: impl Fn() + 'static,
) -> (NodeRef<html::Dialog>, impl Fn(leptos::ev::Event) + 'static) {
    let dialog = NodeRef::<html::Dialog>::new();
    Effect::new(move |_| {
        let Some(dialog) = dialog.get() else { return };
        match (is_open(), dialog.open()) {
            // Fails if the page is being left and the dialog is already removed from the document.
            (true, false) => drop(dialog.show_modal()),
            (false, true) => dialog.close(),
            _ => {}
        }
    });
    let on_close_event = move |_| {
        // The event fires late: the dialog may be open again by then.
        if dialog.get_untracked().is_none_or(|dialog| !dialog.open()) {
            on_close();
        }
    };
    (dialog, on_close_event)
}
