//! The views of one thing as links, so that each has an address.

use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::locales::sentence::Text;

/// A link to a view.
pub(crate) struct TabLink {
    pub href: String,
    pub name: Text,
    /// Whether it is the one that is shown.
    pub is_current: bool,
    /// Whether it is a plain page ([`crate::ui::Plain`]).
    pub is_server_rendered: bool,
}

/// The links.
#[component]
pub(crate) fn TabLinks(label: Text, links: Vec<TabLink>) -> impl IntoView {
    let here_is_server_rendered = links.iter().any(|link| link.is_current && link.is_server_rendered);
    let links = links.into_iter().map(|TabLink { href, name, is_current, is_server_rendered }| {
        // From one kind of page to the other the browser loads anew.
        let loads = (is_server_rendered || here_is_server_rendered).then_some("external");
        view! { <li><a class="tab" href=href rel=loads aria-current=is_current.then_some("page")>{name}</a></li> }
    });
    view! { <nav class="tabs" aria-label=label><ul>{links.collect_view()}</ul></nav> }.into_erased()
}
