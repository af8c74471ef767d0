//! The main view of a job: progress or the reason why it is pending, charts, attempts, samples, log, and weights.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::JobSnapshot;
use super::explanation::JobExplanation;
use super::facts::JobFacts;
use crate::domain::ids::{AttemptNumber, JobId};
use crate::protocol::artifacts::{ArtifactView, ArtifactsPage};
use crate::protocol::jobs::JobView;
use crate::protocol::status::{ArtifactKind, JobStatus};
use crate::ui::backend::SharedBackend;
use crate::ui::checkpoints::group_checkpoints;
use crate::ui::components::action::MoreLink;
use crate::ui::components::artifacts::FileTable;
use crate::ui::components::attempts::Attempts;
use crate::ui::components::gpu_charts::JobGpuCharts;
use crate::ui::components::job_charts::JobCharts;
use crate::ui::components::job_progress_panel::JobProgressPanel;
use crate::ui::components::log_tail::{LogTailPanel, TAIL_BYTES};
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::samples::NewestSamples;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::empty_state::{JobPanel, JobStage, empty_text, empty_text_signal};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::job_feed::JobFeed;
use crate::ui::view_scope::ViewScope;

#[component]
pub(super) fn JobOverview(
    id: JobId,
    backend: SharedBackend,
    snapshot: RwSignal<JobSnapshot>,
    job: Memo<JobView>,
    stable_job: Memo<JobView>,
    files: Memo<ArtifactsPage>,
    stage: Memo<JobStage>,
) -> impl IntoView {
    JobFeed::start(id.clone(), backend.clone(), snapshot);
    let newest = Memo::new(move |_| job.with(|job| job.attempt));
    let queued = Memo::new(move |_| job.with(|job| job.status == JobStatus::Queued));
    let checkpoints = Memo::new(move |_| files.with(|page| group_checkpoints(&page.artifacts)));
    let explanation = {
        let (id, backend) = (id.clone(), backend.clone());
        move || queued.get().then(|| view! { <JobExplanation id=id.clone() backend=backend.clone()/> })
    };
    view! {
        <div class="space-y-6">
            <JobProgressPanel detail=job/>
            {explanation}
            <div class="job-grid">
                <JobCharts id=id.clone() empty=empty_text_signal(JobPanel::Metrics, stage)/>
                <JobFacts job=stable_job/>
            </div>
            <Attempts job=stable_job checkpoints=checkpoints/>
            <NewestSamples id=id.clone() files=files empty=empty_text_signal(JobPanel::Samples, stage)/>
            <JobGpuCharts id=id.clone()/>
            <JobLogPanel id=id.clone() backend=backend newest=newest empty=empty_text_signal(JobPanel::Log, stage)/>
            <FinalArtifacts id=id files=files stage=stage/>
        </div>
    }
    .into_erased()
}

#[component]
fn JobLogPanel(
    id: JobId,
    backend: SharedBackend,
    newest: Memo<AttemptNumber>,
    empty: Signal<&'static str>,
) -> impl IntoView {
    let words = t();
    let params = use_query_map();
    let attempt = Memo::new(move |_| {
        let selected =
            params.with(|query| query.get("attempt")).and_then(|number| number.parse().ok()).map(AttemptNumber);
        selected.unwrap_or_else(|| newest.get())
    });
    let chunk = Resource::new(move || attempt.get(), {
        let id = id.clone();
        move |attempt: AttemptNumber| {
            let request = (attempt.0 > 0).then(|| backend.job_log(id.clone(), attempt, None, TAIL_BYTES));
            async move {
                match request {
                    Some(request) => request.await.map(Some),
                    None => Ok(None),
                }
            }
        }
    });
    let scope = ViewScope::current();
    let shown = move || {
        let (scope, id) = (scope.clone(), id.clone());
        Suspend::new(async move {
            match chunk.await {
                Ok(Some(first)) => {
                    scope.render(|| view! { <LogTailPanel job=id first=first empty=empty/> }.into_erased())
                }
                Ok(None) => view! {
                    <section class="panel" aria-labelledby="log">
                        <h2 id="log" class="panel-head">{words.log.title}</h2>
                        <p class="panel-empty">{empty}</p>
                    </section>
                }
                .into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.into_erased()
}

/// The main result of a job: its weights.
#[component]
fn FinalArtifacts(id: JobId, files: Memo<ArtifactsPage>, stage: Memo<JobStage>) -> impl IntoView {
    let words = t();
    let weights = Memo::new(move |_| {
        let is_final = |file: &&ArtifactView| file.kind == ArtifactKind::Final;
        files.with(|page| page.artifacts.iter().filter(is_final).cloned().collect::<Vec<_>>())
    });
    let count = Memo::new(move |_| files.with(|page| page.artifacts.len() as u64));
    let shown = move || {
        if weights.with(Vec::is_empty) {
            let panel = if count.get() == 0 { JobPanel::Files } else { JobPanel::Weights };
            view! { <p class="panel-empty">{empty_text(panel, stage.get())}</p> }.into_erased()
        } else {
            view! { <FileTable caption=words.job.artifacts_caption files=weights.get()/> }.into_erased()
        }
    };
    view! {
        <section class="panel" aria-labelledby="results">
            <h2 id="results" class="panel-head">
                {words.work.weights}
                <MoreLink href=format!("/jobs/{id}?show=files") label=words.work.all_files/>
            </h2>
            {shown}
        </section>
    }
    .into_erased()
}
