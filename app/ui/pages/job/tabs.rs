//! The views of a job. Some are part of the hydrated page, others are rendered on the server only.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;

use crate::domain::access::Permission;
use crate::domain::ids::JobId;
use crate::ui::components::tab_links::{TabLink, TabLinks};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui) enum JobTab {
    Overview,
    Samples,
    Files,
    /// The configuration never changes, so it is rendered on the server only.
    Configuration,
    /// Events are a record of the past, rendered on the server only.
    Events,
}

impl JobTab {
    const ALL: [Self; 5] = [Self::Overview, Self::Samples, Self::Files, Self::Configuration, Self::Events];

    /// The view of the hydrated page that the address selects.
    pub fn from_params(params: &ParamsMap) -> Self {
        match params.get("show").as_deref() {
            Some("samples") => Self::Samples,
            Some("files") => Self::Files,
            _ => Self::Overview,
        }
    }

    fn href(self, id: &JobId) -> String {
        let rest = match self {
            Self::Overview => "",
            Self::Samples => "?show=samples",
            Self::Files => "?show=files",
            Self::Configuration => "/configuration",
            Self::Events => "/events",
        };
        format!("/jobs/{id}{rest}")
    }

    fn name(self) -> &'static str {
        let words = t();
        match self {
            Self::Overview => words.nav.overview,
            Self::Samples => words.job.samples,
            Self::Files => words.job.artifacts,
            Self::Configuration => words.job.configuration,
            Self::Events => words.work.events,
        }
    }

    const fn is_server_rendered(self) -> bool {
        matches!(self, Self::Configuration | Self::Events)
    }
}

#[component]
pub(in crate::ui) fn JobTabs(id: JobId, tab: JobTab) -> impl IntoView {
    let sees_configs = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::ConfigView));
    let shown = JobTab::ALL.into_iter().filter(|tab| sees_configs || *tab != JobTab::Configuration);
    let link = |each: JobTab| TabLink {
        href: each.href(&id),
        name: each.name(),
        is_current: each == tab,
        is_server_rendered: each.is_server_rendered(),
    };
    view! { <TabLinks label=t().work.views links=shown.map(link).collect()/> }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_selects_its_tab() {
        for (show, tab) in [("samples", JobTab::Samples), ("files", JobTab::Files), ("nonsense", JobTab::Overview)] {
            let mut params = ParamsMap::new();
            params.insert("show", show.to_owned());
            assert_eq!(JobTab::from_params(&params), tab);
        }
        let id = JobId::parse("j_1").expect("an id");
        assert_eq!(JobTab::Samples.href(&id), "/jobs/j_1?show=samples");
        assert_eq!(JobTab::Events.href(&id), "/jobs/j_1/events");
    }
}
