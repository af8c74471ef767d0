//! The links between the views of the fleet.

use leptos::prelude::*;

use super::tab_links::{TabLink, TabLinks};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::page_query::{FLEET, FLEET_GPUS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FleetTab {
    Workers,
    Gpus,
}

#[component]
pub(crate) fn FleetTabs(tab: FleetTab) -> impl IntoView {
    let words = t();
    let link = |href: &str, name, this| TabLink {
        href: href.to_owned(),
        name,
        count: None,
        is_current: tab == this,
        is_server_rendered: false,
    };
    let links =
        vec![link(FLEET, words.workers.title, FleetTab::Workers), link(FLEET_GPUS, words.gpus.title, FleetTab::Gpus)];
    view! { <TabLinks label=words.fleet.title links=links/> }.into_erased()
}
