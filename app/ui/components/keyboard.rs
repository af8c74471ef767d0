//! What every page that lives in the browser has: keys, the search for anything, the list of keys, and notes.

use leptos::ev;
use leptos::prelude::*;

use super::modal::modal;
use super::palette::{Palette, Searching};
use super::toasts::Toasts;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::places::places;
use crate::ui::prefs::{Keys, Prefs};
use crate::ui::shortcuts::{Act, SHORTCUTS, read};

/// Listens to the keys, and holds what they open.
#[component]
pub(crate) fn Habits() -> impl IntoView {
    let Some(Searching(searching)) = use_context() else { return ().erased() };
    let help = RwSignal::new(false);
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let single_keys = prefs.keys == Keys::On;
    Effect::new(move |_| {
        let prefs = prefs.clone();
        let after_go = StoredValue::new(false);
        let listener = window_event_listener(ev::keydown, move |event| {
            let key = event.key();
            let (act, goes) = read(browser::stroke(&event, &key), after_go.get_value(), single_keys);
            after_go.set_value(goes);
            let Some(act) = act else { return };
            event.prevent_default();
            match act {
                Act::Search => searching.set(true),
                Act::Help => help.set(true),
                // The link of the navigation knows how.
                Act::Go(key) => {
                    if let Some(place) = places(&prefs).find(|place| place.key == key) {
                        browser::click(&format!(".sidebar nav a[href='{}']", place.href));
                    }
                }
                Act::Filter => browser::focus(&["main input[type=search]", "main .filters a", "main select"]),
                Act::Next => browser::step(true),
                Act::Previous => browser::step(false),
                Act::Press(key) => browser::press(&format!("[data-key={key}]")),
                Act::Select => browser::in_row("input[type=checkbox]"),
                Act::Menu => browser::in_row("summary"),
                Act::Native => {}
            }
        });
        on_cleanup(move || listener.remove());
    });
    view! {
        <Palette searching=searching/>
        <Help open=help single_keys=single_keys/>
        <Toasts/>
    }
    .erased()
}

/// The list of keys.
#[component]
fn Help(open: RwSignal<bool>, single_keys: bool) -> impl IntoView {
    let words = &t().habits;
    let (dialog, closed) = modal(move || open.get(), move || open.set(false));
    view! {
        <dialog node_ref=dialog class="dialog" closedby="any" aria-labelledby="shortcuts" on:close=closed>
            {move || open.get().then(|| view! {
                <form method="dialog" class="dialog-head">
                    <h2 id="shortcuts">{words.shortcuts}</h2>
                    <button class="btn btn-sm">{words.close}</button>
                </form>
                {(!single_keys).then(|| view! { <p class="mb-3 text-muted">{words.keys_are_off}</p> })}
                <dl class="shortcuts">{lines()}</dl>
            })}
        </dialog>
    }
    .erased()
}

/// Each key with what it does.
fn lines() -> impl IntoView {
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let words = t();
    let keys = SHORTCUTS.iter().map(|shortcut| (shortcut.keys.to_owned(), (shortcut.label)(&words.habits).to_owned()));
    let places = places(&prefs).map(|place| (format!("g {}", place.key), words.habits.go_to.of((place.label)(words))));
    let line = |(keys, label): (String, String)| {
        let keys = keys.split(' ').map(|key| view! { <kbd>{key.to_owned()}</kbd> }).collect_view();
        view! { <div><dt>{keys}</dt><dd>{label}</dd></div> }
    };
    keys.chain(places).map(line).collect_view().erased()
}
