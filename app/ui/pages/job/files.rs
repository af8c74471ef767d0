//! All artifacts of a job: weights, checkpoints, samples, and others.

use leptos::prelude::*;

use crate::protocol::artifacts::{ArtifactView, ArtifactsPage, ResumePointView};
use crate::protocol::status::{ArtifactKind, JobOutcome};
use crate::ui::checkpoints::{CheckpointFiles, group_checkpoints};
use crate::ui::components::artifacts::FileTable;
use crate::ui::components::icon::Icon;
use crate::ui::components::status::artifact_kind_label;
use crate::ui::components::time::RelativeTime;
use crate::ui::empty_state::{JobPanel, JobStage, checkpoint_note, empty_text};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

#[component]
pub(super) fn JobFiles(files: Memo<ArtifactsPage>, stage: Memo<JobStage>) -> impl IntoView {
    let words = t();
    let checkpoints = Memo::new(move |_| files.with(|page| group_checkpoints(&page.artifacts)));
    // Files of a kind that are not part of a checkpoint's directory.
    let rest = move |kind| files.with(|page| files_of_kind(&page.artifacts, kind, &checkpoints.get()));
    let panel = move |id, kind| {
        let files = rest(kind);
        let (title, total) = (artifact_kind_label(&words.status, kind), total_size_text(&files));
        let panel = (!files.is_empty()).then(|| {
            view! {
                <section class="panel" aria-labelledby=id>
                    <h2 id=id class="panel-head">{title}<span class="panel-note">{total}</span></h2>
                    <FileTable caption=title files=files/>
                </section>
            }
        });
        panel.into_erased()
    };
    let resume_point = Memo::new(move |_| files.with(|page| page.resumes_from.clone()));
    let checkpoint_panel = move || {
        let all = checkpoints.get();
        let panel = (!all.is_empty()).then(|| {
            let resume_point = resume_point.get();
            let rows = all.into_iter().map(|checkpoint| {
                let next = resume_point.as_ref().filter(|point| is_resume_point(point, &checkpoint));
                let next = next.and_then(|_| checkpoint_note(stage.get().status));
                view! { <CheckpointRow checkpoint=checkpoint next=next/> }
            });
            view! {
                <section class="panel" aria-labelledby="checkpoints">
                    <h2 id="checkpoints" class="panel-head">{words.work.checkpoints}</h2>
                    <ul class="rows">{rows.collect_view()}</ul>
                </section>
            }
        });
        panel.into_erased()
    };
    let empty = move || {
        files.with(|page| page.artifacts.is_empty()).then(|| {
            view! { <p class="panel panel-empty"><Icon glyph=Glyph::Download/>{empty_text(JobPanel::Files, stage.get())}</p> }
        })
    };
    // A training that completes leaves its weights, as a rule.
    let no_weights = move || {
        let is_completed = stage.get().status.outcome() == JobOutcome::Completed;
        let has_others = files.with(|page| !page.artifacts.is_empty());
        let is_missing = is_completed && has_others && rest(ArtifactKind::Final).is_empty();
        is_missing.then(
            || view! { <p class="panel panel-empty"><Icon glyph=Glyph::Download/>{words.work.no_weights_uploaded}</p> },
        )
    };
    view! {
        <div class="space-y-6">
            {empty}
            {no_weights}
            {move || panel("weights", ArtifactKind::Final)}
            {checkpoint_panel}
            {move || panel("loose", ArtifactKind::Checkpoint)}
            {move || panel("samples", ArtifactKind::Sample)}
            {move || panel("other", ArtifactKind::Other)}
        </div>
    }
    .into_erased()
}

fn files_of_kind(files: &[ArtifactView], kind: ArtifactKind, checkpoints: &[CheckpointFiles]) -> Vec<ArtifactView> {
    let is_saved = |file: &ArtifactView| {
        kind == ArtifactKind::Checkpoint && checkpoints.iter().any(|checkpoint| checkpoint.files.contains(file))
    };
    files.iter().filter(|file| file.kind == kind && !is_saved(file)).cloned().collect()
}

fn total_size_text(files: &[ArtifactView]) -> String {
    t().job.files.with(files.len() as u64, &t().format_bytes(files.iter().map(|file| file.size_bytes).sum()))
}

fn is_resume_point(point: &ResumePointView, checkpoint: &CheckpointFiles) -> bool {
    // A resume point of another job may have the same attempt and name, but its files are not among these.
    let is_in_job = checkpoint.files.first().is_some_and(|file| file.url.contains(point.job_id.as_str()));
    is_in_job && (point.attempt, &point.name) == (checkpoint.attempt, &checkpoint.name)
}

/// One checkpoint, with its files in a disclosure.
#[component]
fn CheckpointRow(checkpoint: CheckpointFiles, next: Option<&'static str>) -> impl IntoView {
    let words = t();
    let total = total_size_text(&checkpoint.files);
    let chip = next.map(|message| view! { <span class="chip chip-good"><Icon glyph=Glyph::Play/>{message}</span> });
    view! {
        <li>
            <details class="fold">
                <summary>
                    <span class="saved">
                        <span class="saved-name">{words.job.samples_step.of(words.format_integer(checkpoint.step))}</span>
                        <span>{words.log.attempt.of(checkpoint.attempt)}</span>
                        <span>{total}</span>
                        <RelativeTime at=checkpoint.at/>
                        {chip}
                    </span>
                </summary>
                <FileTable caption=checkpoint.name.clone() files=checkpoint.files/>
            </details>
        </li>
    }
    .into_erased()
}
