//! The interactive parts of every page: keyboard shortcuts and their help, the command palette, toasts, and closing
//! popovers on a click elsewhere.

use leptos::ev;
use leptos::prelude::*;

use super::modal::use_modal;
use super::palette::{Palette, PaletteOpen};
use super::toasts::Toasts;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::navigation::visible_pages;
use crate::ui::prefs::{Keys, Prefs};
use crate::ui::shortcuts::{SHORTCUTS, ShortcutAction, interpret};

/// The elements that the filter key focuses: the first selector with a visible element.
const FILTER_TARGETS: [&str; 5] = [
    "main [data-key='/']",
    "main input[type=search]",
    "main form[role=search] input:not([type=hidden])",
    "main .filters a",
    "main select",
];

/// Handles keyboard shortcuts, and renders the palette, the shortcut help and the toasts.
#[component]
pub(crate) fn GlobalShortcuts() -> impl IntoView {
    let Some(PaletteOpen(searching)) = use_context() else { return ().into_erased() };
    let help = RwSignal::new(false);
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let single_keys = prefs.keys == Keys::On;
    Effect::new(move |_| {
        let prefs = prefs.clone();
        let after_go = StoredValue::new(false);
        let keydown_listener = window_event_listener(ev::keydown, move |event| {
            let key = event.key();
            let (action, is_after_go) = interpret(browser::key_press(&event, &key), after_go.get_value(), single_keys);
            after_go.set_value(is_after_go);
            let Some(action) = action else { return };
            event.prevent_default();
            match action {
                ShortcutAction::Search => searching.set(true),
                ShortcutAction::Help => help.set(true),
                ShortcutAction::GoTo(key) => {
                    if let Some(page) = visible_pages(&prefs).find(|page| page.shortcut == key) {
                        browser::go_to(page.href);
                    }
                }
                ShortcutAction::Filter => browser::focus_first(&FILTER_TARGETS),
                ShortcutAction::Next => browser::move_row_focus(true),
                ShortcutAction::Previous => browser::move_row_focus(false),
                ShortcutAction::Press(key) => browser::activate_first(&format!("[data-key={key}]")),
                ShortcutAction::Select => browser::click_in_row("input[type=checkbox]"),
                ShortcutAction::Menu => browser::click_in_row("summary"),
                ShortcutAction::BrowserDefault => {}
            }
        });
        // Not `click`: a confirmation that a palette link opens would be closed by the same click.
        let mousedown_listener = window_event_listener(ev::mousedown, |event| browser::close_popovers(&event));
        on_cleanup(move || {
            keydown_listener.remove();
            mousedown_listener.remove();
        });
    });
    view! {
        <Palette searching=searching/>
        <ShortcutHelp open=help single_keys=single_keys/>
        <Toasts/>
    }
    .into_erased()
}

/// A dialog that lists all keyboard shortcuts.
#[component]
fn ShortcutHelp(open: RwSignal<bool>, single_keys: bool) -> impl IntoView {
    let words = &t().shell;
    let (dialog, on_close) = use_modal(move || open.get(), move || open.set(false));
    view! {
        <dialog node_ref=dialog class="dialog" closedby="any" aria-labelledby="shortcuts" on:close=on_close>
            {move || open.get().then(|| view! {
                <form method="dialog" class="dialog-head">
                    <h2 id="shortcuts">{words.shortcuts}</h2>
                    <button class="btn btn-sm">{words.close}</button>
                </form>
                {(!single_keys).then(|| view! { <p class="mb-3 text-muted">{words.keys_are_off}</p> })}
                <dl class="shortcuts">{shortcut_rows()}</dl>
            })}
        </dialog>
    }
    .into_erased()
}

/// Renders each shortcut with its description.
fn shortcut_rows() -> impl IntoView {
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let words = t();
    let command = prefs.command_key();
    let keys = SHORTCUTS
        .iter()
        .map(|shortcut| (shortcut.keys.replace("Ctrl", command), (shortcut.label)(&words.shell).to_owned()));
    let page_keys =
        visible_pages(&prefs).map(|page| (format!("g {}", page.shortcut), words.shell.go_to.of((page.label)(words))));
    let line = |(keys, label): (String, String)| {
        let keys = keys.split(' ').map(|key| view! { <kbd>{key.to_owned()}</kbd> }).collect_view();
        view! { <div><dt>{keys}</dt><dd>{label}</dd></div> }
    };
    keys.chain(page_keys).map(line).collect_view().into_erased()
}
