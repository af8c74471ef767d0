//! The search for anything, over whatever page is open. Without scripts its button leads to a page that does the same.

use std::time::Duration;

use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::icon::{Glyph, Icon};
use super::modal::modal;
use crate::protocol::search::Found;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::palette::{Entry, Goal, asked, entries};
use crate::ui::port::SharedPort;
use crate::ui::prefs::Prefs;

/// How long the reader's fingers have to rest before a server is asked.
const REST: Duration = Duration::from_millis(120);

/// Whether the search is open.
#[derive(Clone, Copy)]
pub(crate) struct Searching(pub RwSignal<bool>);

/// The button, which is a link where nothing listens.
#[component]
pub(crate) fn SearchButton(#[prop(optional)] small: bool) -> impl IntoView {
    let words = &t().habits;
    let searching = use_context::<Searching>();
    let open = move |event: leptos::ev::MouseEvent| {
        if let Some(Searching(open)) = searching.filter(|_| !event.ctrl_key() && !event.meta_key()) {
            event.prevent_default();
            open.set(true);
        }
    };
    let class = if small { "icon-button" } else { "search-button" };
    view! {
        <a class=class href="/search" rel="external" aria-label=small.then_some(words.search) on:click=open>
            <Icon glyph=Glyph::Search/>
            {(!small).then(|| view! { <span>{words.search}</span> <kbd class="js-only" aria-hidden="true">"Ctrl K"</kbd> })}
        </a>
    }
    .erased()
}

/// The dialog.
#[component]
pub(crate) fn Palette(searching: RwSignal<bool>) -> impl IntoView {
    let (dialog, closed) = modal(move || searching.get(), move || searching.set(false));
    let close = Callback::new(move |()| {
        if let Some(dialog) = dialog.get_untracked() {
            dialog.close();
        }
    });
    view! {
        <dialog node_ref=dialog class="palette" closedby="any" aria-label=t().habits.search on:close=closed>
            {move || searching.get().then(|| view! { <Search close=close/> })}
        </dialog>
    }
    .erased()
}

#[component]
fn Search(close: Callback<()>) -> impl IntoView {
    let words = t();
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let (question, found) = (RwSignal::new(String::new()), RwSignal::new(Vec::<Found>::new()));
    let chosen = RwSignal::new(0_usize);
    look(question, found);
    let offered =
        Memo::new(move |_| question.with(|question| found.with(|found| entries(words, &prefs, question, found))));
    let on_key = move |event: leptos::ev::KeyboardEvent| {
        let (now, count) = (chosen.get_untracked(), offered.with_untracked(Vec::len).max(1));
        match event.key().as_str() {
            "ArrowDown" => chosen.set((now + 1) % count),
            "ArrowUp" => chosen.set((now + count - 1) % count),
            "Enter" if !event.is_composing() => {
                browser::open_option(&option_id(now), event.ctrl_key() || event.meta_key());
            }
            _ => return,
        }
        event.prevent_default();
        browser::reveal(&option_id(chosen.get_untracked()));
    };
    let input = NodeRef::<html::Input>::new();
    Effect::new(move |_| {
        if let Some(input) = input.get() {
            let _focused = input.focus();
        }
    });
    let ask = Callback::new(move |text: String| {
        question.set(text);
        chosen.set(0);
        if let Some(input) = input.get_untracked() {
            let _focused = input.focus();
        }
    });
    let options = move || {
        let entries = offered.get().into_iter().enumerate();
        entries
            .map(|(index, entry)| view! { <Line entry=entry index=index chosen=chosen close=close ask=ask/> })
            .collect_view()
    };
    view! {
        <div class="palette-field">
            <Icon glyph=Glyph::Search/>
            <input
                node_ref=input
                type="text"
                role="combobox"
                aria-label=words.habits.search
                aria-expanded="true"
                aria-controls="palette-list"
                aria-autocomplete="list"
                aria-activedescendant=move || option_id(chosen.get())
                autocomplete="off"
                spellcheck="false"
                placeholder=words.habits.search_hint
                prop:value=question
                on:input=move |event| {
                    question.set(event_target_value(&event));
                    chosen.set(0);
                }
                on:keydown=on_key
            />
        </div>
        <ul id="palette-list" role="listbox" aria-label=words.habits.search>{options}</ul>
        <p class="palette-foot" role="status">
            {move || if offered.with(Vec::is_empty) { words.habits.nothing_found } else { words.habits.palette_hint }}
        </p>
    }
    .erased()
}

fn option_id(index: usize) -> String {
    format!("palette-{index}")
}

/// Asks a server what answers the question, when the reader's fingers rest.
fn look(question: RwSignal<String>, found: RwSignal<Vec<Found>>) {
    let port = use_context::<SharedPort>();
    let asked_last = StoredValue::new(0_u32);
    Effect::new(move |_| {
        let query = question.with(|question| asked(t(), question));
        let number = asked_last.get_value() + 1;
        asked_last.set_value(number);
        let Some((query, port)) = query.zip(port.clone()) else {
            found.set(Vec::new());
            return;
        };
        let ask = move || {
            if asked_last.try_get_value() != Some(number) {
                return;
            }
            let answer = port.search(query);
            spawn_local(async move {
                // Of an answer that failed, what is there stays: pages and choices need none.
                if let (Ok(page), true) = (answer.await, asked_last.try_get_value() == Some(number)) {
                    found.try_set(page.found);
                }
            });
        };
        set_timeout(ask, REST);
    });
}

/// One line: a link, or the button of a form.
#[component]
fn Line(
    entry: Entry,
    index: usize,
    chosen: RwSignal<usize>,
    close: Callback<()>,
    ask: Callback<String>,
) -> impl IntoView {
    let Entry { glyph, title, note, kind, look, goal } = entry;
    let text = view! {
        <Icon glyph=glyph/>
        <span class="palette-title">{title}</span>
        <span class="palette-note">{note}</span>
        {look.map(|look| view! { <span class=look.class><Icon glyph=look.glyph/>{look.word}</span> })}
        <span class="palette-kind">{kind}</span>
    };
    let id = option_id(index);
    let selected = move || if chosen.get() == index { "true" } else { "false" };
    let left = move |event: leptos::ev::MouseEvent| {
        if !event.ctrl_key() && !event.meta_key() {
            close.run(());
        }
    };
    let line = match goal {
        Goal::Page { href, live } => view! {
            <a id=id class="palette-option" role="option" tabindex="-1" aria-selected=selected href=href
                rel=(!live).then_some("external") on:click=left>{text}</a>
        }
        .erased(),
        Goal::Ask(question) => view! {
            <button id=id class="palette-option" role="option" tabindex="-1" type="button" aria-selected=selected
                on:click=move |_| ask.run(question.clone())>{text}</button>
        }
        .erased(),
        Goal::Choice { name, value } => {
            let next = browser::address();
            view! {
                <form method="post" action="/ui/preferences" role="presentation">
                    <input type="hidden" name="next" value=next/>
                    <button id=id class="palette-option" role="option" tabindex="-1" aria-selected=selected name=name value=value>{text}</button>
                </form>
            }
            .erased()
        }
    };
    view! { <li role="presentation">{line}</li> }.erased()
}
