//! The header of every view of a job: name, status with its reason, actions, and links to the other views.

use leptos::prelude::*;

use super::actions::JobActions;
use super::family::origin_text;
use super::sentence::status_sentence;
use super::tabs::{JobTab, JobTabs, TabContents};
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::jobs::JobView;
use crate::protocol::problem::Problem;
use crate::ui::clock::use_clock;
use crate::ui::components::copy::IdText;
use crate::ui::components::job_charts::nan_text;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::star::star_button;
use crate::ui::components::status::JobBadge;
use crate::ui::components::tags::tag_chips;
use crate::ui::components::time::RelativeTime;
use crate::ui::components::tracker_links::TrackerLinks;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::permissions::can_describe;

#[component]
pub(in crate::ui) fn JobHeader(
    #[prop(into)] job: Signal<JobView>,
    #[prop(into)] files: Signal<ArtifactsPage>,
    #[prop(into)] tab: Signal<JobTab>,
) -> impl IntoView {
    let (words, clock) = (t(), use_clock());
    let status = Memo::new(move |_| job.with(|job| job.status));
    let title = Memo::new(move |_| job.with(JobView::title));
    let description = Memo::new(move |_| job.with(|job| (job.name.clone(), job.tags.clone(), job.notes.clone())));
    let JobView { job_id, submitted_at, submitted_by, retry_of, .. } = job.get_untracked();
    let numbered_config = job.with_untracked(JobView::numbered_config);
    let edit_link = can_describe(&submitted_by).then(|| {
        view! { <a class="quiet-link" rel="external" href=format!("/jobs/{job_id}/describe")>{words.job.describe}</a> }
    });
    let described = move || {
        description.with(|(name, tags, _)| {
            view! {
                {name.is_some().then(|| view! { <span class="wrap-anywhere">{numbered_config.clone()}</span> })}
                {tag_chips(tags, usize::MAX)}
            }
        })
    };
    let notes = move || {
        let notes = description.with(|(_, _, notes)| notes.clone())?;
        Some(view! { <p class="job-notes">{notes}</p> })
    };
    let retry_link = retry_of.map(|id| {
        let name = job.with_untracked(|job| origin_text(job, &id));
        view! { <a class="quiet-link wrap-anywhere" href=format!("/jobs/{id}")>{name}</a> }
    });
    let starred_by = Memo::new(move |_| job.with(|job| job.starred_by.clone()));
    let star = move || {
        starred_by.track();
        job.with_untracked(|job| star_button(job, format!("/jobs/{}", job.job_id)))
    };
    let id = job_id.clone();
    let sentence = Memo::new(move |_| job.with(|job| status_sentence(job, clock.now())));
    let nan_since = Memo::new(move |_| job.with(|job| job.progress.as_ref()?.loss_nan_since));
    let nan_note = move || nan_since.get().map(|step| view! { " "<strong>{nan_text(step)}</strong> });
    let ended_at = Memo::new(move |_| job.with(|job| job.ended_at));
    let contents = Memo::new(move |_| job.with(|job| files.with(|files| TabContents::new(job, Some(files)))));
    view! {
        {move || view! {
            <PageHeader title=title.get() above=("/jobs", words.jobs.title)>
                <JobActions job=job files=files/>
            </PageHeader>
        }}
        <div class="job-state">
            {move || view! { <JobBadge status=status.get()/> }}
            <p class="job-note">{sentence}{nan_note}</p>
            {move || ended_at.get().map(|at| view! { <span class="text-muted"><RelativeTime at=at/></span> })}
        </div>
        <div class="byline">
            {star}
            <span class="wrap-anywhere"><RelativeTime at=submitted_at/>" "{words.job.submitted_by.of(&submitted_by)}</span>
            {retry_link}
            {described}
            {edit_link}
            <IdText id=job_id.to_string()/>
        </div>
        <TrackerLinks job=job/>
        {notes}
        {move || view! { <JobTabs id=id.clone() tab=tab.get() contents=contents.get()/> }}
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
