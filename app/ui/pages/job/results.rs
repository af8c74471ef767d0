//! What a job leaves: its weights, its error, and the checkpoints from which a retry can resume.

use leptos::prelude::*;

use super::tabs::JobTab;
use crate::domain::ids::JobId;
use crate::protocol::artifacts::checkpoints::checkpoint_step;
use crate::protocol::artifacts::{ArtifactView, ArtifactsPage, ResumePointView};
use crate::protocol::jobs::JobView;
use crate::protocol::status::ArtifactKind;
use crate::ui::components::action::MoreLink;
use crate::ui::components::artifacts::FileTable;
use crate::ui::components::failure_reason::{FailureReason, log_line_url};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::losses::job_error;

/// The maximum number of files of the weights that are shown; there are more if the weights are split.
const MAX_WEIGHTS: usize = 3;
/// The maximum number of checkpoints that are shown.
const MAX_CHECKPOINTS: usize = 5;

pub(super) fn final_weights(files: &[ArtifactView]) -> impl Iterator<Item = &ArtifactView> {
    files.iter().filter(|file| file.kind == ArtifactKind::Final)
}

#[component]
pub(super) fn JobWeights(id: JobId, files: Memo<ArtifactsPage>) -> impl IntoView {
    let words = t();
    let weights = Memo::new(move |_| files.with(|page| final_weights(&page.artifacts).cloned().collect::<Vec<_>>()));
    let size = move || {
        let (count, bytes) = weights.with(|files| (files.len(), files.iter().map(|file| file.size_bytes).sum()));
        words.job.files.with(count as u64, &words.format_bytes(bytes))
    };
    let table = move || {
        let shown = weights.get().into_iter().take(MAX_WEIGHTS).collect::<Vec<_>>();
        view! { <FileTable caption=words.work.weights files=shown/> }
    };
    view! {
        <section class="panel" aria-labelledby="results">
            <h2 id="results" class="panel-head">
                {words.work.weights}
                <span class="panel-note">{size}</span>
                <MoreLink href=JobTab::Artifacts.href(&id) label=words.work.all_files/>
            </h2>
            {table}
        </section>
    }
    .into_erased()
}

/// The error of a failed job.
#[component]
pub(super) fn JobError(job: Memo<JobView>) -> impl IntoView {
    let reason = Memo::new(move |_| {
        job.with(|job| {
            let log = job.error_line.map(|line| log_line_url(&job.job_id, job.attempt, line));
            Some((job_error(job)?, log))
        })
    });
    let compare = move || {
        let (id, completed) = job.with(|job| Some((job.job_id.clone(), job.last_completed.clone()?)))?;
        let href = format!("/jobs/compare?ids={id},{completed}");
        Some(view! { <p class="after-error"><a class="quiet-link" href=href>{t().work.compare_completed}</a></p> })
    };
    view! {
        <section aria-label=t().job.what_went_wrong>
            {move || reason.get().map(|(error, log)| view! { <FailureReason error=error log=log/> })}
            {compare}
        </section>
    }
    .into_erased()
}

#[component]
pub(super) fn JobCheckpoints(id: JobId, job: Memo<JobView>) -> impl IntoView {
    let words = t();
    let points = Memo::new(move |_| job.with(|job| job.resumable.clone()));
    let rows = move || {
        let row = |point: ResumePointView| {
            let step = checkpoint_step(&point.name).map(|step| words.job.samples_step.of(words.format_integer(step)));
            let name = step.unwrap_or_else(|| point.name.clone());
            view! { <li class="saved"><span class="saved-name">{name}</span><span>{words.log.attempt.of(point.attempt)}</span></li> }
        };
        points.get().into_iter().take(MAX_CHECKPOINTS).map(row).collect_view()
    };
    view! {
        <section class="panel" aria-labelledby="checkpoints">
            <h2 id="checkpoints" class="panel-head">
                {words.work.checkpoints}
                <MoreLink href=JobTab::Artifacts.href(&id) label=words.work.all_files/>
            </h2>
            <ul class="rows is-compact">{rows}</ul>
            <p class="panel-foot panel-note">{words.work.retry_resumes}</p>
        </section>
    }
    .into_erased()
}
