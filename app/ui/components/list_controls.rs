//! What lists share that are asked in words: the question, and the way to the pages before and after.

use leptos::prelude::*;

use super::icon::{Glyph, Icon};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

/// The question: a form that is loaded anew, so that what is not understood is said in the reader's language. What else the
/// address says stays as it is.
#[component]
pub(crate) fn ListSearch(
    action: &'static str,
    q: Option<String>,
    keeps: Vec<(&'static str, Option<String>)>,
    /// What can be asked.
    hint: Text,
) -> impl IntoView {
    let label = t().workers.search;
    let keeps = keeps
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| view! { <input type="hidden" name=name value=value/> }));
    view! {
        <form method="get" action=action role="search" class="search grow">
            {keeps.collect_view()}
            <Icon glyph=Glyph::Search/>
            <label class="sr-only" for="q">{label}</label>
            <input class="input input-sm w-full" id="q" name="q" type="search" placeholder=hint value=q
                autocomplete="off" autocapitalize="none" spellcheck="false"/>
        </form>
    }
    .into_erased()
}

/// Where a page is in the list.
#[derive(Clone, PartialEq)]
pub(crate) struct PageWindow {
    pub before: u64,
    pub shown: u64,
    pub total: u64,
    /// The cursors of its neighbours.
    pub previous: Option<String>,
    pub next: Option<String>,
}

/// Which part of the list is shown, and links to its neighbours; what else can be done with the list stands between.
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
