//! The views of a worker. Some are on the page that lives in the browser, some are plain pages of their own.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;

use crate::domain::access::Permission;
use crate::domain::ids::WorkerId;
use crate::ui::components::tab_links::{TabLink, TabLinks};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::permissions::has_permission;

/// A view of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui) enum WorkerTab {
    Overview,
    Gpus,
    /// What it did is read back: a plain page.
    Jobs,
    /// What happened with it is read back: a plain page.
    Events,
}

impl WorkerTab {
    const ALL: [Self; 4] = [Self::Overview, Self::Gpus, Self::Jobs, Self::Events];

    /// What the address of the living page asks for.
    pub fn from_params(params: &ParamsMap) -> Self {
        match params.get("show").as_deref() {
            Some("gpus") => Self::Gpus,
            _ => Self::Overview,
        }
    }

    /// Where it is.
    pub fn href(self, id: &WorkerId) -> String {
        let rest = match self {
            Self::Overview => "",
            Self::Gpus => "?show=gpus",
            Self::Jobs => "/jobs",
            Self::Events => "/events",
        };
        format!("/admin/workers/{id}{rest}")
    }

    fn name(self) -> &'static str {
        let words = t();
        match self {
            Self::Overview => words.nav.overview,
            Self::Gpus => words.worker.gpus,
            Self::Jobs => words.worker.jobs,
            Self::Events => words.work.events,
        }
    }

    const fn is_server_rendered(self) -> bool {
        matches!(self, Self::Jobs | Self::Events)
    }
}

/// Links to the views; what a worker did, and what happened with it, is for its admins.
#[component]
pub(super) fn WorkerTabs(id: WorkerId, tab: WorkerTab) -> impl IntoView {
    let administers = has_permission(Permission::AdminWorkers);
    let link = |each: WorkerTab| TabLink {
        href: each.href(&id),
        name: each.name(),
        is_current: each == tab,
        is_server_rendered: each.is_server_rendered(),
    };
    view! { <TabLinks label=t().worker.views links=WorkerTab::ALL.into_iter().filter(|tab| !tab.is_server_rendered() || administers).map(link).collect()/> }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_what_it_leads_to() {
        let id = WorkerId::parse("w_1").expect("an id");
        for tab in WorkerTab::ALL.into_iter().filter(|tab| !tab.is_server_rendered()) {
            let mut params = ParamsMap::new();
            if let Some((_, show)) = tab.href(&id).split_once("?show=") {
                params.insert("show", show.to_owned());
            }
            assert_eq!(WorkerTab::from_params(&params), tab);
        }
        let mut odd = ParamsMap::new();
        odd.insert("show", "nonsense".to_owned());
        assert_eq!(WorkerTab::from_params(&odd), WorkerTab::Overview);
        assert_eq!(WorkerTab::Events.href(&id), "/admin/workers/w_1/events");
    }
}
