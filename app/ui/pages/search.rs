//! The global search as a page, for links and for browsers without JavaScript.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::{Skeleton, use_backend};
use crate::protocol::search::SearchPage as Answer;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::page_query::query_string;
use crate::ui::palette::{PaletteEntry, PaletteTarget, palette_entries, server_query};
use crate::ui::prefs::Prefs;

#[component]
pub(crate) fn SearchPage() -> impl IntoView {
    let words = t();
    let port = use_backend();
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let question = use_query_map().with_untracked(|query| query.get("q")).unwrap_or_default();
    let query = server_query(words, &question);
    let answer = Resource::new(
        || (),
        move |()| {
            let answer = query.clone().map(|query| port.search(query));
            async move {
                match answer {
                    Some(answer) => answer.await,
                    None => Ok(Answer::default()),
                }
            }
        },
    );
    let asked = question.clone();
    let shown = move || {
        let (asked, prefs) = (asked.clone(), prefs.clone());
        Suspend::new(async move {
            match answer.await {
                Ok(page) => {
                    let entries = palette_entries(words, &prefs, &asked, &page.found);
                    if entries.is_empty() {
                        return view! { <EmptyPanel glyph=Glyph::Search title=words.habits.nothing_found text=words.habits.search_hint/> }.into_erased();
                    }
                    let lines =
                        entries.into_iter().map(|entry| view! { <SearchResult entry=entry asked=asked.clone()/> });
                    view! { <ul class="rows search-page">{lines.collect_view()}</ul> }.into_erased()
                }
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.habits.search intro=words.plain().preferences.search_intro/>
        <form method="get" action="/search" role="search" class="search search-wide">
            <Icon glyph=Glyph::Search/>
            <label class="sr-only" for="q">{words.habits.search}</label>
            <input class="input" id="q" name="q" type="search" maxlength="100" placeholder=words.habits.search_hint value=question autofocus=true/>
            <button class="btn">{words.habits.search}</button>
        </form>
        <section class="panel" aria-label=words.habits.search>
            <Suspense fallback=Skeleton>{shown}</Suspense>
        </section>
    }
    .into_erased()
}

#[component]
fn SearchResult(entry: PaletteEntry, asked: String) -> impl IntoView {
    let PaletteEntry { glyph, title, note, kind, status, target } = entry;
    let text = view! {
        <Icon glyph=glyph/>
        <span class="palette-title">{title}</span>
        <span class="palette-note">{note}</span>
        {status.map(|look| view! { <span class=look.class><Icon glyph=look.glyph/>{look.label}</span> })}
        <span class="palette-kind">{kind}</span>
    };
    let search = |question: String| format!("/search{}", query_string(&[("q", Some(question))]));
    let line = match target {
        PaletteTarget::Page { href, .. } => view! { <a class="palette-option" href=href>{text}</a> }.into_erased(),
        PaletteTarget::Search(question) => {
            view! { <a class="palette-option" href=search(question)>{text}</a> }.into_erased()
        }
        PaletteTarget::Preference { name, value } => view! {
            <form method="post" action="/ui/preferences">
                <input type="hidden" name="next" value=search(asked)/>
                <button class="palette-option" name=name value=value>{text}</button>
            </form>
        }
        .into_erased(),
    };
    view! { <li>{line}</li> }.into_erased()
}
