//! What an operator wants to see first: how far it is or what it waits for, its curve, its attempts, what it says and made.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::facts::Facts;
use super::why::Why;
use crate::domain::ids::{Attempt, JobId};
use crate::protocol::artifacts::{ArtifactView, ArtifactsPage};
use crate::protocol::queue::JobView;
use crate::protocol::status::{ArtifactKind, JobStatus};
use crate::ui::checkpoints::checkpoints;
use crate::ui::components::action::MoreLink;
use crate::ui::components::artifacts::FileTable;
use crate::ui::components::attempts::Attempts;
use crate::ui::components::failure::Failure;
use crate::ui::components::gpu_charts::JobGpuCharts;
use crate::ui::components::job_charts::JobCharts;
use crate::ui::components::job_head::JobHead;
use crate::ui::components::log_view::{LogView, TAIL_BYTES};
use crate::ui::components::samples::NewestSamples;
use crate::ui::empty_state::{JobStage, Panel, empty_text, live_text};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::pages::Skeleton;
use crate::ui::port::SharedPort;

/// See the module.
#[component]
pub(super) fn Overview(
    id: JobId,
    port: SharedPort,
    job: Memo<JobView>,
    files: Memo<ArtifactsPage>,
    stage: Memo<JobStage>,
) -> impl IntoView {
    let newest = Memo::new(move |_| job.with(|job| job.attempt));
    let queued = Memo::new(move |_| job.with(|job| job.status == JobStatus::Queued));
    let made = Memo::new(move |_| files.with(|page| checkpoints(&page.artifacts)));
    let why = {
        let (id, port) = (id.clone(), port.clone());
        move || queued.get().then(|| view! { <Why id=id.clone() port=port.clone()/> })
    };
    view! {
        <div class="space-y-6">
            <JobHead detail=job/>
            {why}
            <div class="job-grid">
                <JobCharts id=id.clone() empty=live_text(Panel::Curves, stage)/>
                <Facts job=job/>
            </div>
            <Attempts job=job checkpoints=made/>
            <NewestSamples id=id.clone() files=files empty=live_text(Panel::Samples, stage)/>
            <JobGpuCharts id=id.clone()/>
            <Output id=id.clone() port=port newest=newest empty=live_text(Panel::Log, stage)/>
            <Results id=id files=files stage=stage/>
        </div>
    }
    .erased()
}

#[component]
fn Output(id: JobId, port: SharedPort, newest: Memo<Attempt>, empty: Signal<&'static str>) -> impl IntoView {
    let words = t();
    let chosen = use_query_map();
    let attempt = Memo::new(move |_| {
        let chosen = chosen.with(|query| query.get("attempt")).and_then(|number| number.parse().ok()).map(Attempt);
        chosen.unwrap_or_else(|| newest.get())
    });
    let chunk = Resource::new(move || attempt.get(), {
        let id = id.clone();
        move |attempt: Attempt| {
            let asked = (attempt.0 > 0).then(|| port.job_log(id.clone(), attempt, None, TAIL_BYTES));
            async move {
                match asked {
                    Some(answer) => answer.await.map(Some),
                    None => Ok(None),
                }
            }
        }
    });
    let shown = move || {
        let id = id.clone();
        Suspend::new(async move {
            match chunk.await {
                Ok(Some(first)) => view! { <LogView job=id first=first empty=empty/> }.erased(),
                Ok(None) => view! {
                    <section class="panel" aria-labelledby="log">
                        <h2 id="log" class="panel-head">{words.log.title}</h2>
                        <p class="panel-empty">{empty}</p>
                    </section>
                }
                .erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.erased()
}

/// What people come for, in short: the weights.
#[component]
fn Results(id: JobId, files: Memo<ArtifactsPage>, stage: Memo<JobStage>) -> impl IntoView {
    let words = t();
    let weights = Memo::new(move |_| {
        let is_final = |file: &&ArtifactView| file.kind == ArtifactKind::Final;
        files.with(|page| page.artifacts.iter().filter(is_final).cloned().collect::<Vec<_>>())
    });
    let count = Memo::new(move |_| files.with(|page| page.artifacts.len() as u64));
    let shown = move || {
        if weights.with(Vec::is_empty) {
            let panel = if count.get() == 0 { Panel::Files } else { Panel::Weights };
            view! { <p class="panel-empty">{empty_text(panel, stage.get())}</p> }.erased()
        } else {
            view! { <FileTable caption=words.job.artifacts_caption files=weights.get()/> }.erased()
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
    .erased()
}
