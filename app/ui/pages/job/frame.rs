//! What stands above every view of a job: its name, how it stands, what can be done, and the way to the other views.

use leptos::prelude::*;

use super::actions::JobActions;
use super::tabs::{Tab, Tabs};
use crate::protocol::problem::Problem;
use crate::protocol::queue::JobView;
use crate::ui::components::copy::IdText;
use crate::ui::components::failure::Failure;
use crate::ui::components::page_head::PageHead;
use crate::ui::components::status::JobBadge;
use crate::ui::components::time::Moment;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::i18n::t;

/// See the module.
#[component]
pub(in crate::ui) fn JobFrame(#[prop(into)] job: Signal<JobView>, #[prop(into)] tab: Signal<Tab>) -> impl IntoView {
    let words = t();
    let status = Memo::new(move |_| job.with(|job| job.status));
    let JobView { job_id, config_name, submitted_at, submitted_by, retry_of, .. } = job.get_untracked();
    let retried = retry_of.map(|id| {
        let name = words.work.again_of.of(short_id(id.as_str()));
        view! { <a class="quiet-link" href=format!("/jobs/{id}")>{name}</a> }
    });
    let id = job_id.clone();
    view! {
        <PageHead title=config_name above=("/jobs", words.jobs.title)>
            <JobActions job=job/>
        </PageHead>
        <p class="byline">
            {move || view! { <JobBadge status=status.get()/> }}
            <span class="wrap-anywhere"><Moment at=submitted_at/>" "{words.job.submitted_by.of(&submitted_by)}</span>
            {retried}
            <IdText id=job_id.to_string()/>
        </p>
        {move || view! { <Tabs id=id.clone() tab=tab.get()/> }}
    }
    .erased()
}

/// What is shown if a job cannot be.
pub(super) fn unknown(problem: Problem) -> AnyView {
    view! {
        <PageHead title=t().jobs.job above=("/jobs", t().jobs.title)/>
        <Failure problem=problem/>
    }
    .erased()
}
