//! Controls of searchable lists: the search form, and links to the previous and next page.

use leptos::prelude::*;

use super::icon::Icon;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

/// A search form. It loads the page again, so that an error in the query is shown in the user's language.
/// `hidden_fields` are the other query parameters, which do not change.
#[component]
pub(crate) fn ListSearch(
    action: &'static str,
    q: Option<String>,
    hidden_fields: Vec<(String, String)>,
    /// The placeholder of the search field.
    hint: Text,
) -> impl IntoView {
    let label = t().workers.search;
    let hidden_fields =
        hidden_fields.into_iter().map(|(name, value)| view! { <input type="hidden" name=name value=value/> });
    view! {
        <form method="get" action=action role="search" class="search grow">
            {hidden_fields.collect_view()}
            <Icon glyph=Glyph::Search/>
            <label class="sr-only" for="q">{label}</label>
            <input class="input input-sm w-full" id="q" name="q" type="search" placeholder=hint value=q
                autocomplete="off" autocapitalize="none" spellcheck="false"/>
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
