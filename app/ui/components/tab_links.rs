//! The views of one resource as links, so that each has a URL.

use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

pub(crate) struct TabLink {
    pub href: String,
    pub name: Text,
    /// The number of items in it, if it is shown.
    pub count: Option<u64>,
    /// Whether this view is shown.
    pub is_current: bool,
    /// Whether the browser has to load the view, because it is rendered on the server only.
    pub is_server_rendered: bool,
}

#[component]
pub(crate) fn TabLinks(label: Text, links: Vec<TabLink>) -> impl IntoView {
    let current_is_server_rendered = links.iter().any(|link| link.is_current && link.is_server_rendered);
    let links = links.into_iter().map(|TabLink { href, name, count, is_current, is_server_rendered }| {
        // The router navigates only between pages that are rendered in the browser.
        let rel = (is_server_rendered || current_is_server_rendered).then_some("external");
        let count = count.map(|count| view! { " "<span class="tab-count">{t().format_integer(count)}</span> });
        view! { <li><a class="tab" href=href rel=rel aria-current=is_current.then_some("page")>{name}{count}</a></li> }
    });
    view! { <nav class="tabs" aria-label=label><ul>{links.collect_view()}</ul></nav> }.into_erased()
}
