//! The header of every view of a job: name, status, actions, and links to the other views.

use leptos::prelude::*;

use super::actions::JobActions;
use super::tabs::{JobTab, JobTabs};
use crate::protocol::jobs::JobView;
use crate::protocol::problem::Problem;
use crate::ui::components::copy::IdText;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::status::JobBadge;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::i18n::t;

#[component]
pub(in crate::ui) fn JobHeader(#[prop(into)] job: Signal<JobView>, #[prop(into)] tab: Signal<JobTab>) -> impl IntoView {
    let words = t();
    let status = Memo::new(move |_| job.with(|job| job.status));
    let JobView { job_id, config_name, submitted_at, submitted_by, retry_of, .. } = job.get_untracked();
    let retry_link = retry_of.map(|id| {
        let name = words.work.again_of.of(short_id(id.as_str()));
        view! { <a class="quiet-link" href=format!("/jobs/{id}")>{name}</a> }
    });
    let id = job_id.clone();
    view! {
        <PageHeader title=config_name above=("/jobs", words.jobs.title)>
            <JobActions job=job/>
        </PageHeader>
        <p class="byline">
            {move || view! { <JobBadge status=status.get()/> }}
            <span class="wrap-anywhere"><RelativeTime at=submitted_at/>" "{words.job.submitted_by.of(&submitted_by)}</span>
            {retry_link}
            <IdText id=job_id.to_string()/>
        </p>
        {move || view! { <JobTabs id=id.clone() tab=tab.get()/> }}
    }
    .into_erased()
}

/// Shown if a job cannot be loaded.
pub(super) fn job_problem_page(problem: Problem) -> AnyView {
    view! {
        <PageHeader title=t().jobs.job above=("/jobs", t().jobs.title)/>
        <ProblemPanel problem=problem/>
    }
    .into_erased()
}
