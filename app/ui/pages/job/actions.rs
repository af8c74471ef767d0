//! Actions on a job: cancel it, change its priority, clone it, retry it, or download its weights. The main one of its state
//! stands out. Forms explain the consequences first.

use leptos::prelude::*;

use super::results::final_weights;
use crate::domain::access::Permission;
use crate::domain::ids::JobId;
use crate::domain::priority::MAX_PRIORITY;
use crate::protocol::artifacts::{ArtifactView, ArtifactsPage, ResumePointView};
use crate::protocol::jobs::{JobView, SubmitJob};
use crate::protocol::status::{JobOutcome, JobPhase, JobStatus};
use crate::ui::components::action::{ConfirmedAction, ConfirmedForm};
use crate::ui::components::icon::Icon;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::query_string;
use crate::ui::permissions::{can_cancel, has_permission};
use crate::ui::prefs::Prefs;
use crate::ui::safe_url::SafeUrl;
use crate::ui::submit_form::address_fields;

/// The buttons of a job page. They are rendered again only if what they depend on changes.
#[component]
pub(in crate::ui) fn JobActions(job: Signal<JobView>, files: Signal<ArtifactsPage>) -> impl IntoView {
    let cancels = job.with_untracked(|job| can_cancel(&job.submitted_by));
    let submits = has_permission(Permission::JobSubmit);
    let sets_priority = has_permission(Permission::QueueManage);
    let status = Memo::new(move |_| job.with(|job| job.status));
    let priority = Memo::new(move |_| job.with(|job| job.priority));
    let user_name =
        use_context::<Prefs>().and_then(|prefs| prefs.session).map(|session| session.name).unwrap_or_default();
    // Only a job's owner can resume from its checkpoints.
    let is_own = job.with_untracked(|job| job.submitted_by == user_name);
    let resumable = Memo::new(move |_| job.with(|job| if is_own { job.resumable.clone() } else { Vec::new() }));
    let has_fork = Memo::new(move |_| resumable.with(|points| !points.is_empty()));
    let weights = Memo::new(move |_| {
        let is_completed = job.with(|job| job.status.outcome() == JobOutcome::Completed);
        let id = job.with(|job| job.job_id.clone());
        files.with(|page| is_completed.then(|| WeightsDownload::new(&id, &page.artifacts)).flatten())
    });
    let (id, clone) = job.with_untracked(|job| (job.job_id.clone(), clone_url(job, &user_name)));
    let buttons = move || {
        let (status, ended) = (status.get(), status.get().is_terminal());
        let (id, clone) = (id.clone(), clone.clone());
        view! {
            {(sets_priority && status.is_in_phase(JobPhase::Waiting)).then(|| view! { <PriorityForm id=id.clone() priority=priority.get()/> })}
            {submits.then(|| view! { <a class="btn btn-sm" rel="external" href=clone><Icon glyph=Glyph::Copy/>{t().work.clone}</a> })}
            {(submits && has_fork.get()).then(|| view! { <a class="btn btn-sm" rel="external" href=format!("/jobs/{id}/fork")><Icon glyph=Glyph::Fork/>{t().work.fork}</a> })}
            {(submits && ended).then(|| view! { <RetryForm id=id.clone() status=status points=resumable.get()/> })}
            {weights.get().map(|weights| view! { <DownloadButton weights=weights/> })}
            {(cancels && !ended).then(|| view! { <CancelButton id=id status=status/> })}
        }
        .into_erased()
    };
    view! { {buttons} }.into_erased()
}

/// The address of the submit form, filled in with the settings of a job that differ from the defaults. Secrets are
/// filled in only if the job is the user's own.
fn clone_url(job: &JobView, reader: &str) -> String {
    let request = SubmitJob::from_job(job);
    let secrets = request.secrets.clone().filter(|_| job.submitted_by == reader);
    let ran_revision = format!("{}@{}", job.config_name, job.config_revision);
    let mut fields = vec![("config", job.config_name.clone()), ("ran", ran_revision)];
    fields.extend(address_fields(&SubmitJob { secrets, ..request }));
    format!("/train{}", query_string(&fields))
}

/// The final weights of a job: their only file, or an archive of several.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WeightsDownload {
    url: String,
    size_bytes: u64,
}

impl WeightsDownload {
    fn new(job: &JobId, files: &[ArtifactView]) -> Option<Self> {
        let weights: Vec<_> = final_weights(files).collect();
        let size_bytes = weights.iter().map(|file| file.size_bytes).sum();
        let url = match weights.as_slice() {
            [] => return None,
            [file] => file.url.clone(),
            _ => format!("/api/queue/{job}/artifacts.zip?kind=final"),
        };
        Some(Self { url, size_bytes })
    }
}

/// Downloads the weights.
#[component]
fn DownloadButton(weights: WeightsDownload) -> impl IntoView {
    let size = t().format_bytes(weights.size_bytes);
    view! {
        <a class="btn btn-sm btn-primary" rel="external" download="" href=SafeUrl::from_data(&weights.url).into_string()>
            <Icon glyph=Glyph::Download/>{t().work.download_weights}" "<span class="font-normal tabular-nums">{size}</span>
        </a>
    }
    .into_erased()
}

#[component]
fn CancelButton(id: JobId, status: JobStatus) -> impl IntoView {
    let words = &t().job;
    let waits = status.is_in_phase(JobPhase::Waiting);
    let text = if waits { t().work.cancel_waiting } else { words.cancel_text };
    let keep = if waits { t().work.keep_waiting } else { words.keep };
    view! {
        <ConfirmedAction
            action=format!("/ui/jobs/{id}/cancel")
            label=words.cancel
            text=text
            confirm=words.cancel_confirm
            keep=keep
            glyph=Glyph::StopCircle
            confirm_id="cancel"
            summary_class="btn btn-sm btn-stop"
        />
    }
    .into_erased()
}

#[component]
fn RetryForm(id: JobId, status: JobStatus, points: Vec<ResumePointView>) -> impl IntoView {
    let words = &t().work;
    let completed = status.outcome() == JobOutcome::Completed;
    let options = points.into_iter().enumerate().map(|(index, point)| {
        let (selected, label) = (index == 0 && !completed, words.resume_from.of(&point.name));
        view! { <option value=point.name.clone() selected=selected>{label}</option> }
    });
    let options = options.collect_view();
    view! {
        <ConfirmedForm
            action=format!("/ui/jobs/{id}/retry")
            label=words.retry
            class=if completed { "btn btn-sm" } else { "btn btn-sm btn-primary" }
            text=words.retry_text
            confirm=words.retry_confirm
            glyph=Glyph::Play
            confirm_class="btn btn-sm btn-primary"
        >
            <p class="mt-3">
                <label class="field-label" for="resume-from">{words.begins}</label>
                <select class="select select-sm w-full" id="resume-from" name="resume_from">
                    {options}
                    <option value="scratch" selected=completed>{words.from_scratch}</option>
                </select>
            </p>
        </ConfirmedForm>
    }
    .into_erased()
}

#[component]
fn PriorityForm(id: JobId, priority: u8) -> impl IntoView {
    let words = &t().work;
    let action = format!("/ui/jobs/{id}/priority");
    view! {
        <details class="confirm">
            <summary class="btn btn-sm"><Icon glyph=Glyph::Raise/>{words.priority}" "<span class="tabular-nums">{priority}</span></summary>
            <form class="confirm-body" method="post" action=action>
                <p id="priority-hint">{words.priority_text}</p>
                <p class="mt-3 flex flex-wrap items-center gap-2">
                    <label for="priority" class="sr-only">{words.priority}</label>
                    <input
                        class="input input-sm w-20"
                        id="priority"
                        name="priority"
                        type="number"
                        min="0"
                        max=MAX_PRIORITY.to_string()
                        value=priority.to_string()
                        aria-describedby="priority-hint"
                        required=true
                    />
                    <button class="btn btn-sm btn-primary">{words.set}</button>
                    <button class="btn btn-sm ml-auto" name="top" value="true" formnovalidate=true>{words.top}</button>
                </p>
            </form>
        </details>
    }
    .into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::status::ArtifactKind;
    use crate::ui::checkpoints::file;
    use crate::ui::submit_form::SUBMIT_FIELDS;

    #[test]
    fn weights_are_one_download() {
        let files = [
            file("checkpoint-1/model.safetensors", ArtifactKind::Checkpoint, 1, 0),
            file("a.safetensors", ArtifactKind::Final, 1, 0),
            file("b.safetensors", ArtifactKind::Final, 1, 0),
        ];
        let job = JobId::parse("j_1").expect("an ID");
        let download = |files| WeightsDownload::new(&job, files);
        assert_eq!(download(&files[..1]), None);
        let url = "/api/queue/j_1/artifacts/a.safetensors".to_owned();
        assert_eq!(download(&files[..2]), Some(WeightsDownload { url, size_bytes: 10 }));
        let url = "/api/queue/j_1/artifacts.zip?kind=final".to_owned();
        assert_eq!(download(&files), Some(WeightsDownload { url, size_bytes: 20 }));
    }

    #[test]
    fn resubmit_link_contains_the_jobs_values() {
        let plain = serde_json::json!({
            "job_id": "j_1", "status": "queued", "status_since": "2024-01-01T00:00:00Z", "config_name": "a b",
            "config_revision": 1, "target": "auto", "worker_labels": {}, "priority": 10, "attempt": 0, "max_attempts": 4,
            "submitted_at": "2024-01-01T00:00:00Z", "submitted_by": "ada",
        });
        let plain: JobView = serde_json::from_value(plain).expect("a job");
        assert_eq!(clone_url(&plain, "ada"), "/train?config=a+b&ran=a+b%401&target=auto&priority=10&team=default");
        let all = clone_url(&JobView::example(), "ada");
        for field in SUBMIT_FIELDS.iter().filter(|field| field.name != "notes") {
            assert!(all.contains(&format!("&{}=", field.name)), "{}: {all}", field.name);
        }
        assert!(
            all.starts_with(
                "/train?config=digits&ran=digits%403&name=rank+16&tags=ablation%2C+night&gpus=2&min_vram=39.5&"
            ),
            "{all}"
        );
        assert!(all.contains("&max_runtime=5400s&") && all.contains("&secret=HF_TOKEN&secret=WANDB_API_KEY"), "{all}");
        let others_url = clone_url(&JobView::example(), "eve");
        assert!(!others_url.contains("secret"), "another user chooses secrets of their own");
    }
}
