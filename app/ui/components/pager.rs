//! Pagination of a list that is read from its beginning.

use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

/// Links to the first and to the next page, if they exist. `names` are their labels; by default, newer and older.
#[component]
pub(crate) fn Pager(
    label: Text,
    first: Option<String>,
    next: Option<String>,
    /// The total number of entries, as a sentence.
    #[prop(optional, into)]
    total: Option<String>,
    #[prop(optional, into)] names: Option<(Text, Text)>,
    /// What is before the links.
    #[prop(optional, into)]
    between: Option<AnyView>,
) -> impl IntoView {
    let words = &t().common;
    let (to_first, to_next) = names.unwrap_or((words.newer, words.older));
    let is_shown = total.is_some() || first.is_some() || next.is_some();
    let link = |href: Option<String>, name| href.map(|href| view! { <a class="btn btn-sm" href=href>{name}</a> });
    let pager = is_shown.then(|| {
        view! {
            <nav class="pager" aria-label=label>
                <span class="text-muted">{total}</span>
                {between}
                {link(first, to_first)}
                {link(next, to_next)}
            </nav>
        }
    });
    pager.into_erased()
}
