//! Filters as links, so that they work without JavaScript, can be shared, and work with the back button.

use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterLink {
    pub href: String,
    pub label: &'static str,
    pub count: Option<u64>,
    pub current: bool,
}

#[component]
pub(crate) fn FilterBar(label: &'static str, filters: Vec<FilterLink>) -> impl IntoView {
    let links = filters.into_iter().map(|filter| {
        let class = if filter.count == Some(0) && !filter.current { "filter is-zero" } else { "filter" };
        view! {
            <li>
                <a class=class href=filter.href aria-current=filter.current.then_some("true")>
                    {filter.label}
                    {filter.count.map(|count| view! { <span class="filter-count">{t().format_integer(count)}</span> })}
                </a>
            </li>
        }
    });
    view! { <nav aria-label=label><ul class="filters">{links.collect_view()}</ul></nav> }.into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        let filters = vec![FilterLink { href: "/jobs".to_owned(), label: "All", count: Some(10_000), current: true }];
        let html = Owner::new().with(|| view! { <FilterBar label="Show" filters=filters/> }.to_html());
        assert!(html.contains(">10,000<"), "{html}");
    }
}
