//! The main view of a job, in the layout of its state.

use leptos::prelude::*;

use super::explanation::JobExplanation;
use super::facts::JobFacts;
use super::family::JobFamilyPanel;
use super::layout::{JobContents, OverviewLayout, OverviewPanel, overview_layout};
use super::log::{JobLogExcerpt, JobLogTail};
use super::results::{JobCheckpoints, JobError, JobWeights, final_weights};
use crate::domain::ids::JobId;
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::jobs::JobView;
use crate::ui::backend::SharedBackend;
use crate::ui::checkpoints::group_checkpoints;
use crate::ui::components::attempts::Attempts;
use crate::ui::components::job_charts::{ChartScope, JobCharts};
use crate::ui::components::job_progress_panel::{JobProgressPanel, JobReadings};
use crate::ui::components::samples::NewestSamples;
use crate::ui::erase::Erase;
use crate::ui::samples::samples;

fn job_contents(job: &JobView, files: &ArtifactsPage) -> JobContents {
    JobContents {
        status: job.status,
        attempts: job.attempts.as_ref().map_or(0, Vec::len),
        has_progress: job.progress.is_some(),
        sends_output: !job.older_agent,
        has_samples: !samples(&files.artifacts).is_empty(),
        has_weights: final_weights(&files.artifacts).next().is_some(),
        has_checkpoints: !job.resumable.is_empty(),
        has_family: job.family.is_some(),
    }
}

#[component]
pub(super) fn JobOverview(
    id: JobId,
    backend: SharedBackend,
    job: Memo<JobView>,
    stable_job: Memo<JobView>,
    files: Memo<ArtifactsPage>,
) -> impl IntoView {
    let newest = Memo::new(move |_| job.with(|job| job.attempt));
    let checkpoints = Memo::new(move |_| files.with(|page| group_checkpoints(&page.artifacts)));
    let contents = Memo::new(move |_| job.with(|job| files.with(|files| job_contents(job, files))));
    let layout = Memo::new(move |_| overview_layout(contents.get()));
    let panel = move |panel: OverviewPanel| {
        let (id, backend) = (id.clone(), backend.clone());
        match panel {
            OverviewPanel::Explanation => view! { <JobExplanation id=id backend=backend/> }.into_erased(),
            OverviewPanel::Progress => view! { <JobProgressPanel detail=job/> }.into_erased(),
            OverviewPanel::Error => view! { <JobError job=stable_job/> }.into_erased(),
            OverviewPanel::Weights => view! { <JobWeights id=id files=files/> }.into_erased(),
            OverviewPanel::Readings => view! { <JobReadings detail=job/> }.into_erased(),
            OverviewPanel::Charts => view! { <JobCharts id=id scope=ChartScope::Overview/> }.into_erased(),
            OverviewPanel::LogTail => view! { <JobLogTail id=id backend=backend newest=newest/> }.into_erased(),
            OverviewPanel::LogExcerpt => view! { <JobLogExcerpt backend=backend job=stable_job/> }.into_erased(),
            OverviewPanel::Samples => view! { <NewestSamples id=id files=files/> }.into_erased(),
            OverviewPanel::Checkpoints => view! { <JobCheckpoints id=id job=stable_job/> }.into_erased(),
            OverviewPanel::Attempts => view! { <Attempts job=stable_job checkpoints=checkpoints/> }.into_erased(),
            OverviewPanel::Facts => view! { <JobFacts job=stable_job/> }.into_erased(),
            OverviewPanel::Family => view! { <JobFamilyPanel id=id job=stable_job/> }.into_erased(),
        }
    };
    // Of a changed layout, only new panels are rendered.
    let area = move |class: &'static str, panels: fn(&OverviewLayout) -> &Vec<OverviewPanel>| {
        let panel = panel.clone();
        let is_empty = Memo::new(move |_| layout.with(|layout| panels(layout).is_empty()));
        view! {
            <div class=class hidden=move || is_empty.get()>
                <For each=move || layout.with(|layout| panels(layout).clone()) key=|panel| *panel children=panel/>
            </div>
        }
        .into_erased()
    };
    view! {
        <div class="job-overview">
            {area("job-top", |layout| &layout.top)}
            {area("job-main", |layout| &layout.main)}
            {area("job-side", |layout| &layout.side)}
        </div>
    }
    .into_erased()
}
