//! Filters as links, so that they work without JavaScript, can be shared, and go back with the back button.

use leptos::prelude::*;

use crate::ui::erase::Erase;

/// One filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    pub href: String,
    pub label: &'static str,
    pub count: Option<u64>,
    pub current: bool,
}

/// A row of filters.
#[component]
pub(crate) fn Filters(label: &'static str, filters: Vec<Filter>) -> impl IntoView {
    let links = filters.into_iter().map(|filter| {
        let class = if filter.count == Some(0) && !filter.current { "filter is-zero" } else { "filter" };
        view! {
            <li>
                <a class=class href=filter.href aria-current=filter.current.then_some("true")>
                    {filter.label}
                    {filter.count.map(|count| view! { <span class="filter-count">{count}</span> })}
                </a>
            </li>
        }
    });
    view! { <nav aria-label=label><ul class="filters">{links.collect_view()}</ul></nav> }.erased()
}
