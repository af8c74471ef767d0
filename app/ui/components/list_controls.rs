//! Controls of searchable lists: the search form, and links to the previous and next page.

use leptos::prelude::*;

use super::icon::Icon;
use crate::protocol::jobs::{JobCompletions, JobCompletionsQuery};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::typing::query_while_typing;

/// The ID of the list of completions.
const COMPLETIONS_ID: &str = "completions";

/// A search form. It loads the page again, so that an error in the query is shown in the user's language.
/// `hidden_fields` are the other query parameters, which do not change.
#[component]
pub(crate) fn ListSearch(
    action: &'static str,
    q: Option<String>,
    hidden_fields: Vec<(String, String)>,
    /// The placeholder of the search field.
    hint: Text,
    /// Whether searches for jobs are completed while they are typed.
    #[prop(optional)]
    completes_jobs: bool,
) -> impl IntoView {
    let label = t().workers.search;
    let (typed, completions) = (RwSignal::new(None), RwSignal::new(JobCompletions::default()));
    let list = completes_jobs.then(|| {
        let query = move || Some(JobCompletionsQuery { q: typed.get()? });
        query_while_typing(query, |backend, query| backend.complete_job_search(query), completions);
        let option = |text: &String| view! { <option value=text.clone()></option> };
        let options = move || completions.with(|found| found.completions.iter().map(option).collect_view());
        view! { <datalist id=COMPLETIONS_ID>{options}</datalist> }
    });
    let hidden_fields =
        hidden_fields.into_iter().map(|(name, value)| view! { <input type="hidden" name=name value=value/> });
    view! {
        <form method="get" action=action role="search" class="search grow">
            {hidden_fields.collect_view()}
            <Icon glyph=Glyph::Search/>
            <label class="sr-only" for="q">{label}</label>
            <input class="input input-sm w-full" id="q" name="q" type="search" placeholder=hint value=q
                list=completes_jobs.then_some(COMPLETIONS_ID) autocomplete="off" autocapitalize="none" spellcheck="false"
                on:input:target=move |event| typed.set(Some(event.target().value()))/>
            {list}
        </form>
    }
    .into_erased()
}

/// The position of a page in its list.
#[derive(Clone, PartialEq)]
pub(crate) struct PageWindow {
    pub before: u64,
    pub shown: u64,
    pub total: u64,
    /// The cursors of the previous and the next page.
    pub previous: Option<String>,
    pub next: Option<String>,
}

/// The range of the list that is shown, and links to the previous and next page, with `between` before them.
#[component]
pub(crate) fn ListPager(
    name: &'static str,
    around: PageWindow,
    to: impl Fn(String) -> String,
    #[prop(optional, into)] between: Option<AnyView>,
) -> impl IntoView {
    let words = &t().workers;
    let PageWindow { before, shown, total, previous, next } = around;
    let format_integer = |number| t().format_integer(number);
    let range = (shown < total && shown > 0).then(|| {
        words.range.with(&[&format_integer(before + 1), &format_integer(before + shown), &format_integer(total)])
    });
    let link = |cursor: Option<String>, label| {
        let href = cursor.map(&to);
        href.map(|href| view! { <a class="btn btn-sm" href=href>{label}</a> })
    };
    view! {
        <nav class="pager" aria-label=name>
            <span class="text-muted">{range.unwrap_or_else(|| words.total.of(total))}</span>
            {between}
            {link(previous, words.previous)}
            {link(next, words.next)}
        </nav>
    }
    .into_erased()
}
