//! The command palette, a search dialog over any page. Without JavaScript, its button leads to the search page.

pub(crate) mod entries;

use leptos::html;
use leptos::prelude::*;

use self::entries::{PaletteEntry, PaletteTarget, palette_entries, server_query};
use super::icon::Icon;
use super::modal::use_modal;
use crate::protocol::search::SearchPage;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;
use crate::ui::typing::query_while_typing;

/// Whether the palette is open.
#[derive(Clone, Copy)]
pub(crate) struct PaletteOpen(pub RwSignal<bool>);

/// The button that opens the palette; without JavaScript, a link to the search page.
#[component]
pub(crate) fn SearchButton(#[prop(optional)] small: bool) -> impl IntoView {
    let words = &t().shell;
    let searching = use_context::<PaletteOpen>();
    let open = move |event: leptos::ev::MouseEvent| {
        if let Some(PaletteOpen(open)) = searching.filter(|_| !event.ctrl_key() && !event.meta_key()) {
            event.prevent_default();
            open.set(true);
        }
    };
    let class = if small { "icon-button" } else { "search-button" };
    let command = use_context::<Prefs>().unwrap_or_default().command_key();
    view! {
        <a class=class href="/search" rel="external" aria-label=small.then_some(words.search) on:click=open>
            <Icon glyph=Glyph::Search/>
            {(!small).then(|| view! { <span>{words.search}</span> <kbd class="js-only" aria-hidden="true">{command}" K"</kbd> })}
        </a>
    }
    .into_erased()
}

#[component]
pub(crate) fn Palette(searching: RwSignal<bool>) -> impl IntoView {
    let (dialog, on_close) = use_modal(move || searching.get(), move || searching.set(false));
    let close = Callback::new(move |()| {
        if let Some(dialog) = dialog.get_untracked() {
            dialog.close();
        }
    });
    view! {
        <dialog node_ref=dialog class="palette" closedby="any" aria-label=t().shell.search on:close=on_close>
            {move || searching.get().then(|| view! { <PaletteSearch close=close/> })}
        </dialog>
    }
    .into_erased()
}

#[component]
fn PaletteSearch(close: Callback<()>) -> impl IntoView {
    let words = t();
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let command = prefs.command_key();
    let (search_text, found) = (RwSignal::new(String::new()), RwSignal::new(SearchPage::default()));
    let selected = RwSignal::new(0_usize);
    let query = move || search_text.with(|search_text| server_query(t(), search_text));
    // After an error the previous hits stay: pages and preferences do not need the server.
    query_while_typing(query, |backend, query| backend.search(query), found);
    let entries = Memo::new(move |_| {
        search_text.with(|search_text| found.with(|page| palette_entries(words, &prefs, search_text, &page.found)))
    });
    let on_key = move |event: leptos::ev::KeyboardEvent| {
        let (current, count) = (selected.get_untracked(), entries.with_untracked(Vec::len).max(1));
        match event.key().as_str() {
            "ArrowDown" => selected.set((current + 1) % count),
            "ArrowUp" => selected.set((current + count - 1) % count),
            "Enter" if !event.is_composing() => {
                browser::open_option(&option_id(current), event.ctrl_key() || event.meta_key());
            }
            _ => return,
        }
        event.prevent_default();
        browser::scroll_to_option(&option_id(selected.get_untracked()));
    };
    let input = NodeRef::<html::Input>::new();
    Effect::new(move |_| {
        if let Some(input) = input.get() {
            let _focused = input.focus();
        }
    });
    let set_search_text = Callback::new(move |text: String| {
        search_text.set(text);
        selected.set(0);
        if let Some(input) = input.get_untracked() {
            let _focused = input.focus();
        }
    });
    let options = move || {
        let entries = entries.get().into_iter().enumerate();
        entries
            .map(|(index, entry)| view! { <PaletteRow entry=entry index=index selected=selected close=close set_search_text=set_search_text/> })
            .collect_view()
    };
    view! {
        <div class="palette-field">
            <Icon glyph=Glyph::Search/>
            <input
                node_ref=input
                type="text"
                role="combobox"
                aria-label=words.shell.search
                aria-expanded="true"
                aria-controls="palette-list"
                aria-autocomplete="list"
                aria-activedescendant=move || option_id(selected.get())
                autocomplete="off"
                spellcheck="false"
                placeholder=words.shell.search_hint
                prop:value=search_text
                on:input=move |event| {
                    search_text.set(event_target_value(&event));
                    selected.set(0);
                }
                on:keydown=on_key
            />
        </div>
        <ul id="palette-list" role="listbox" aria-label=words.shell.search>{options}</ul>
        <p class="palette-foot" role="status">
            {move || if entries.with(Vec::is_empty) { words.shell.nothing_found.to_owned() } else { words.shell.palette_hint.replace("Ctrl", command) }}
        </p>
    }
    .into_erased()
}

fn option_id(index: usize) -> String {
    format!("palette-{index}")
}

/// What an entry shows, in the palette and on the search page.
#[component]
pub(crate) fn PaletteEntryText(entry: PaletteEntry) -> impl IntoView {
    let PaletteEntry { glyph, title, note, kind, status, target: _ } = entry;
    view! {
        <Icon glyph=glyph/>
        <span class="palette-title">{title}</span>
        <span class="palette-note">{note}</span>
        {status.map(|style| view! { <span class=style.class><Icon glyph=style.glyph/>{style.label}</span> })}
        <span class="palette-kind">{kind}</span>
    }
    .into_erased()
}

/// An entry of the palette: a link or a button.
#[component]
fn PaletteRow(
    entry: PaletteEntry,
    index: usize,
    selected: RwSignal<usize>,
    close: Callback<()>,
    set_search_text: Callback<String>,
) -> impl IntoView {
    let target = entry.target.clone();
    let text = view! { <PaletteEntryText entry=entry/> };
    let id = option_id(index);
    let aria_selected = move || if selected.get() == index { "true" } else { "false" };
    let on_click = move |event: leptos::ev::MouseEvent| {
        if !event.ctrl_key() && !event.meta_key() {
            close.run(());
        }
    };
    let line = match target {
        PaletteTarget::Page { href, live } => view! {
            <a id=id class="palette-option" role="option" tabindex="-1" aria-selected=aria_selected href=href
                rel=(!live).then_some("external") on:click=on_click>{text}</a>
        }
        .into_erased(),
        PaletteTarget::Search(search_text) => view! {
            <button id=id class="palette-option" role="option" tabindex="-1" type="button" aria-selected=aria_selected
                on:click=move |_| set_search_text.run(search_text.clone())>{text}</button>
        }
        .into_erased(),
        PaletteTarget::Preference { name, value } => {
            let next = browser::path_and_query();
            view! {
                <form method="post" action="/ui/preferences" role="presentation">
                    <input type="hidden" name="next" value=next/>
                    <button id=id class="palette-option" role="option" tabindex="-1" aria-selected=aria_selected name=name value=value>{text}</button>
                </form>
            }
            .into_erased()
        }
    };
    view! { <li role="presentation">{line}</li> }.into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn search_hint_names_the_platforms_shortcut() {
        let button = |mac| {
            Owner::new().with(|| {
                provide_context(Prefs { mac, ..Prefs::default() });
                view! { <SearchButton/> }.to_html().replace("<!>", "")
            })
        };
        assert!(button(true).contains(">⌘ K</kbd>"), "{}", button(true));
        assert!(button(false).contains(">Ctrl K</kbd>"), "{}", button(false));
    }
}
