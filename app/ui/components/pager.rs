//! The ways to newer and older parts of a list.

use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// Links to the newest and to the next older part, as far as there are any.
#[component]
pub(crate) fn Pager(label: &'static str, newest: Option<String>, older: Option<String>) -> impl IntoView {
    let words = &t().common;
    let any = newest.is_some() || older.is_some();
    let pager = any.then(|| {
        view! {
            <nav class="pager" aria-label=label>
                <span></span>
                {newest.map(|href| view! { <a class="btn btn-sm" href=href>{words.newer}</a> })}
                {older.map(|href| view! { <a class="btn btn-sm" href=href>{words.older}</a> })}
            </nav>
        }
    });
    pager.erased()
}
