//! The views of a job. Some are part of the hydrated page, others are rendered on the server only.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;

use crate::domain::access::Permission;
use crate::domain::ids::JobId;
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::jobs::JobView;
use crate::ui::components::tab_links::{TabLink, TabLinks};
use crate::ui::empty_state::JobStage;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::permissions::has_permission;
use crate::ui::samples::samples;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui) enum JobTab {
    Overview,
    Charts,
    /// The log has a page of its own.
    Log,
    Samples,
    Artifacts,
    /// The configuration never changes, so it is rendered on the server only.
    Configuration,
    /// The GPUs of the job.
    System,
    /// Events are a record of the past, rendered on the server only.
    Events,
}

/// What decides which views a job has. Counts are none where they are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui) struct TabContents {
    stage: JobStage,
    has_progress: bool,
    samples: Option<u64>,
    artifacts: Option<u64>,
}

impl TabContents {
    pub fn new(job: &JobView, files: Option<&ArtifactsPage>) -> Self {
        Self {
            stage: JobStage::new(job),
            has_progress: job.progress.is_some(),
            samples: files.map(|page| samples(&page.artifacts).len() as u64),
            artifacts: files.map(|page| page.artifacts.len() as u64),
        }
    }

    /// Returns whether the job may still get what its trainer writes.
    const fn is_growing(self) -> bool {
        self.stage.was_offered && !self.stage.status.is_terminal()
    }
}

impl JobTab {
    const ALL: [Self; 8] = [
        Self::Overview,
        Self::Charts,
        Self::Log,
        Self::Samples,
        Self::Artifacts,
        Self::Configuration,
        Self::System,
        Self::Events,
    ];

    /// The view of the hydrated page that the address selects.
    pub fn from_params(params: &ParamsMap) -> Self {
        match params.get("show").as_deref() {
            Some("charts") => Self::Charts,
            Some("samples") => Self::Samples,
            Some("files") => Self::Artifacts,
            Some("system") => Self::System,
            _ => Self::Overview,
        }
    }

    pub fn href(self, id: &JobId) -> String {
        let rest = match self {
            Self::Overview => "",
            Self::Charts => "?show=charts",
            Self::Log => "/log",
            Self::Samples => "?show=samples",
            Self::Artifacts => "?show=files",
            Self::Configuration => "/configuration",
            Self::System => "?show=system",
            Self::Events => "/events",
        };
        format!("/jobs/{id}{rest}")
    }

    fn name(self) -> &'static str {
        let words = t();
        match self {
            Self::Overview => words.nav.overview,
            Self::Charts => words.charts.title,
            Self::Log => words.log.title,
            Self::Samples => words.job.samples,
            Self::Artifacts => words.work.artifacts,
            Self::Configuration => words.job.configuration,
            Self::System => words.nav.system,
            Self::Events => words.work.events,
        }
    }

    const fn is_server_rendered(self) -> bool {
        matches!(self, Self::Configuration | Self::Events)
    }

    /// The number of items in the view; none if it is not known, or if there are none.
    fn count(self, contents: TabContents) -> Option<u64> {
        let count = match self {
            Self::Samples => contents.samples,
            Self::Artifacts => contents.artifacts,
            _ => None,
        };
        count.filter(|count| *count > 0)
    }

    /// Returns whether the view has or can get contents.
    fn has_contents(self, contents: TabContents) -> bool {
        let JobStage { was_offered, has_older_agent, .. } = contents.stage;
        let has_some = |count: Option<u64>| count != Some(0);
        let is_growing = contents.is_growing();
        match self {
            Self::Overview | Self::Configuration | Self::Events => true,
            Self::Charts => contents.has_progress || is_growing && !has_older_agent,
            Self::Log => was_offered && !has_older_agent,
            Self::Samples => was_offered && (has_some(contents.samples) || is_growing && !has_older_agent),
            Self::Artifacts => was_offered && (has_some(contents.artifacts) || is_growing),
            Self::System => was_offered,
        }
    }
}

#[component]
pub(in crate::ui) fn JobTabs(id: JobId, tab: JobTab, contents: TabContents) -> impl IntoView {
    let sees_configs = has_permission(Permission::ConfigView);
    let shown = JobTab::ALL
        .into_iter()
        .filter(|each| *each == tab || each.has_contents(contents) && (sees_configs || *each != JobTab::Configuration));
    let link = |each: JobTab| TabLink {
        href: each.href(&id),
        name: each.name(),
        count: each.count(contents),
        is_current: each == tab,
        is_server_rendered: each.is_server_rendered(),
    };
    view! { <TabLinks label=t().work.views links=shown.map(link).collect()/> }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::status::JobStatus;

    #[test]
    fn url_selects_its_tab() {
        let id = JobId::parse("j_1").expect("an id");
        for tab in JobTab::ALL {
            if let Some((_, show)) = tab.href(&id).split_once("?show=") {
                let mut params = ParamsMap::new();
                params.insert("show", show.to_owned());
                assert_eq!(JobTab::from_params(&params), tab);
            }
        }
        let mut odd = ParamsMap::new();
        odd.insert("show", "nonsense".to_owned());
        assert_eq!(JobTab::from_params(&odd), JobTab::Overview);
        assert_eq!(JobTab::Artifacts.href(&id), "/jobs/j_1?show=files", "an address of earlier versions");
        assert_eq!(JobTab::Log.href(&id), "/jobs/j_1/log");
    }

    #[test]
    fn only_tabs_that_can_have_contents_are_linked() {
        use JobTab::*;
        let linked = |status, was_offered, has_progress, count: Option<u64>| {
            let stage = JobStage { status, was_offered, has_older_agent: false };
            let contents = TabContents { stage, has_progress, samples: count, artifacts: count };
            JobTab::ALL.into_iter().filter(|tab| tab.has_contents(contents)).collect::<Vec<_>>()
        };
        let never_started = [Overview, Configuration, Events];
        assert_eq!(linked(JobStatus::Queued, false, false, Some(0)), never_started);
        assert_eq!(linked(JobStatus::Cancelled, false, false, Some(0)), never_started);
        assert_eq!(linked(JobStatus::Running, true, false, Some(0)), JobTab::ALL);
        assert_eq!(
            linked(JobStatus::Failed, true, false, Some(0)),
            [Overview, Log, Configuration, System, Events],
            "no data can arrive after the end"
        );
        assert_eq!(linked(JobStatus::Completed, true, true, Some(3)), JobTab::ALL);
        assert_eq!(linked(JobStatus::Completed, true, true, None), JobTab::ALL, "counts are not known");
    }

    #[test]
    fn tabs_count_what_they_have() {
        let stage = JobStage { status: JobStatus::Completed, was_offered: true, has_older_agent: false };
        let contents = TabContents { stage, has_progress: true, samples: Some(0), artifacts: Some(7) };
        assert_eq!(
            [JobTab::Samples, JobTab::Artifacts, JobTab::Log].map(|tab| tab.count(contents)),
            [None, Some(7), None]
        );
    }
}
