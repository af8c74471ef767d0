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
pub(in crate::ui) enum Tab {
    Overview,
    Samples,
    Files,
    /// Its configuration never changes: a plain page.
    Configuration,
    /// What happened is read back: a plain page.
    Events,
}

impl Tab {
    const ALL: [Self; 5] = [Self::Overview, Self::Samples, Self::Files, Self::Configuration, Self::Events];

    /// What the address of the living page asks for.
    pub fn shown(params: &ParamsMap) -> Self {
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

    const fn is_plain(self) -> bool {
        matches!(self, Self::Configuration | Self::Events)
    }
}

/// Links to the views.
#[component]
pub(in crate::ui) fn Tabs(id: JobId, tab: Tab) -> impl IntoView {
    let reads = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::ConfigView));
    let shown = Tab::ALL.into_iter().filter(|tab| reads || *tab != Tab::Configuration);
    let link =
        |each: Tab| TabLink { href: each.href(&id), name: each.name(), current: each == tab, plain: each.is_plain() };
    view! { <TabLinks label=t().work.views links=shown.map(link).collect()/> }.erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_what_it_leads_to() {
        for (show, tab) in [("samples", Tab::Samples), ("files", Tab::Files), ("nonsense", Tab::Overview)] {
            let mut params = ParamsMap::new();
            params.insert("show", show.to_owned());
            assert_eq!(Tab::shown(&params), tab);
        }
        let id = JobId::parse("j_1").expect("an id");
        assert_eq!(Tab::Samples.href(&id), "/jobs/j_1?show=samples");
        assert_eq!(Tab::Events.href(&id), "/jobs/j_1/events");
    }
}
