//! The global search as a page, for links and for browsers without JavaScript.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::protocol::search::SearchPage as Answer;
use crate::ui::backend::use_backend;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::palette::PaletteEntryText;
use crate::ui::components::palette::entries::{PaletteEntry, PaletteTarget, palette_entries, server_query};
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::query_string;
use crate::ui::prefs::Prefs;

#[component]
pub(crate) fn SearchPage() -> impl IntoView {
    let words = t();
    let backend = use_backend();
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let search_text = use_query_map().with_untracked(|query| query.get("q")).unwrap_or_default();
    let query = server_query(words, &search_text);
    let results = Resource::new(
        || (),
        move |()| {
            let request = query.clone().map(|query| backend.search(query));
            async move {
                match request {
                    Some(request) => request.await,
                    None => Ok(Answer::default()),
                }
            }
        },
    );
    let typed_text = search_text.clone();
    let shown = move || {
        let (search_text, prefs) = (search_text.clone(), prefs.clone());
        Suspend::new(async move {
            match results.await {
                Ok(page) => {
                    let entries = palette_entries(words, &prefs, &search_text, &page.found);
                    if entries.is_empty() {
                        return view! { <EmptyPanel glyph=Glyph::Search title=words.shell.nothing_found text=words.shell.search_hint/> }.into_erased();
                    }
                    let lines = entries
                        .into_iter()
                        .map(|entry| view! { <SearchResult entry=entry search_text=search_text.clone()/> });
                    view! { <ul class="rows search-page">{lines.collect_view()}</ul> }.into_erased()
                }
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.shell.search intro=words.server_pages().preferences.search_intro/>
        <form method="get" action="/search" role="search" class="search search-wide">
            <Icon glyph=Glyph::Search/>
            <label class="sr-only" for="q">{words.shell.search}</label>
            <input class="input" id="q" name="q" type="search" maxlength="100" placeholder=words.shell.search_hint value=typed_text autofocus=true/>
            <button class="btn">{words.shell.search}</button>
        </form>
        <section class="panel" aria-label=words.shell.search>
            <Suspense fallback=Skeleton>{shown}</Suspense>
        </section>
    }
    .into_erased()
}

#[component]
fn SearchResult(entry: PaletteEntry, search_text: String) -> impl IntoView {
    let target = entry.target.clone();
    let text = view! { <PaletteEntryText entry=entry/> };
    let search = |search_text: String| format!("/search{}", query_string(&[("q", Some(search_text))]));
    let row = match target {
        PaletteTarget::Page { href, .. } => view! { <a class="palette-option" href=href>{text}</a> }.into_erased(),
        PaletteTarget::Search(search_text) => {
            view! { <a class="palette-option" href=search(search_text)>{text}</a> }.into_erased()
        }
        PaletteTarget::Preference { name, value } => view! {
            <form method="post" action="/ui/preferences">
                <input type="hidden" name="next" value=search(search_text)/>
                <button class="palette-option" name=name value=value>{text}</button>
            </form>
        }
        .into_erased(),
    };
    view! { <li>{row}</li> }.into_erased()
}
