//! The views of a worker. Some are part of the hydrated page, others are rendered on the server only.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;

use crate::domain::access::Permission;
use crate::domain::ids::WorkerId;
use crate::ui::components::tab_links::{TabLink, TabLinks};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::permissions::has_permission;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui) enum WorkerTab {
    Overview,
    Gpus,
    /// Attempts are a record of the past, rendered on the server only.
    Jobs,
    /// Events are a record of the past, rendered on the server only.
    Events,
}

impl WorkerTab {
    const ALL: [Self; 4] = [Self::Overview, Self::Gpus, Self::Jobs, Self::Events];

    /// The view of the hydrated page that the address selects.
    pub fn from_params(params: &ParamsMap) -> Self {
        match params.get("show").as_deref() {
            Some("gpus") => Self::Gpus,
            _ => Self::Overview,
        }
    }

    /// The address of the view.
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

/// Links to the views; attempts and events are for admins only.
#[component]
pub(super) fn WorkerTabs(id: WorkerId, tab: WorkerTab) -> impl IntoView {
    let administers = has_permission(Permission::AdminWorkers);
    let link = |each: WorkerTab| TabLink {
        href: each.href(&id),
        name: each.name(),
        count: None,
        is_current: each == tab,
        is_server_rendered: each.is_server_rendered(),
    };
    view! { <TabLinks label=t().worker.views links=WorkerTab::ALL.into_iter().filter(|tab| !tab.is_server_rendered() || administers).map(link).collect()/> }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_selects_its_tab() {
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
