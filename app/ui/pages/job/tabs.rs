//! The views of a job. Some are on the page that lives in the browser, some are plain pages of their own.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;

use crate::domain::access::Permission;
use crate::domain::ids::JobId;
use crate::ui::components::tab_links::{TabLink, TabLinks};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// A view of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui) enum JobTab {
    Overview,
    Samples,
    Files,
    /// Its configuration never changes: a plain page.
    Configuration,
    /// What happened is read back: a plain page.
    Events,
}

impl JobTab {
    const ALL: [Self; 5] = [Self::Overview, Self::Samples, Self::Files, Self::Configuration, Self::Events];

    /// What the address of the living page asks for.
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

/// Links to the views.
#[component]
pub(in crate::ui) fn JobTabs(id: JobId, tab: JobTab) -> impl IntoView {
    let reads = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::ConfigView));
    let shown = JobTab::ALL.into_iter().filter(|tab| reads || *tab != JobTab::Configuration);
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
    fn an_address_shows_what_it_leads_to() {
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
