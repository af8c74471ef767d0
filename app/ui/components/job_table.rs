//! Jobs as a table. On a narrow screen it has only two columns.

use leptos::prelude::*;

use super::failure_reason::FailureReasonLine;
use super::progress_bar::ProgressBar;
use super::status::JobBadge;
use super::time::{Elapsed, RelativeTime};
use super::worker_link::WorkerLink;
use crate::protocol::jobs::JobView;
use crate::protocol::status::{JobPhase, JobStatus};
use crate::ui::erase::Erase;
use crate::ui::format;
use crate::ui::i18n::t;
use crate::ui::losses::job_error;

/// A table of jobs that follows its signal.
#[component]
pub(crate) fn JobTable(#[prop(into)] jobs: Signal<Vec<JobView>>) -> impl IntoView {
    let words = &t().jobs;
    view! {
        <table class="data is-fixed">
            <caption class="sr-only">{words.caption}</caption>
            <thead>
                <tr>
                    <th scope="col">{words.job}</th>
                    <th scope="col" class="w-2/5 md:w-1/4">{words.status}</th>
                    <th scope="col" class="w-1/5 max-md:hidden">{words.progress}</th>
                    <th scope="col" class="w-1/6 max-lg:hidden">{words.worker}</th>
                    <th scope="col" class="num w-24 max-lg:hidden">{words.took}</th>
                </tr>
            </thead>
            <tbody>{move || jobs.get().into_iter().map(|job| view! { <JobRow job=job/> }).collect_view()}</tbody>
        </table>
    }
    .into_erased()
}

#[component]
fn JobRow(job: JobView) -> impl IntoView {
    let href = format!("/jobs/{}", job.job_id);
    let elapsed = job.started_at.map(|from| view! { <Elapsed from=from until=job.ended_at/> });
    view! {
        <tr>
            <th scope="row">
                <a class="row-link" href=href title=job.title()>{job.title()}</a>
                <span class="row-sub">
                    <span class="font-mono" title=job.job_id.to_string()>{format::short_id(job.job_id.as_str())}</span>
                    " · "<RelativeTime at=job.submitted_at/>
                </span>
            </th>
            <td>
                <JobBadge status=job.status/>
                {status_remark(&job)}
            </td>
            <td class="max-md:hidden"><JobProgress job=job.clone()/></td>
            <td class="max-lg:hidden"><WorkerLink job=job.clone()/></td>
            <td class="num text-muted max-lg:hidden">{elapsed}</td>
        </tr>
    }
    .into_erased()
}

/// Returns what the status alone does not show, in one line: queue position, attempt, error.
pub(crate) fn status_remark(job: &JobView) -> Option<AnyView> {
    let words = &t().jobs;
    let position_text = |position| {
        if job.fits_none { words.fits_none.to_owned() } else { words.position.of(t().format_integer(position)) }
    };
    let position = job.queue_position.map(position_text);
    let attempt = (job.attempt.0 > 1).then(|| words.attempt.with(&[&job.attempt.0, &job.max_attempts]));
    let remarks: Vec<_> = position.into_iter().chain(attempt).chain(job_error(job)).collect();
    (!remarks.is_empty()).then(|| view! { <FailureReasonLine error=remarks.join(" · ")/> }.into_erased())
}

/// The progress bar, percentage and step of a job.
#[component]
pub(crate) fn JobProgress(job: JobView) -> impl IntoView {
    let label = t().job.progress_of.of(&job.config_name);
    let has_ended = job.status.is_terminal();
    if job.status == JobStatus::Starting && job.progress.is_none() {
        return view! { <span class="progress-cell"><ProgressBar percent=None label=label/></span> }.into_erased();
    }
    let progress = job.progress.filter(|_| !job.status.is_in_phase(JobPhase::Waiting));
    let progress = progress.map(|progress| {
        let percent = progress.percent;
        let step = t().format_integer(progress.step);
        let steps = progress.total_steps.map_or(step.clone(), |total| format!("{step}\u{202f}/\u{202f}{}", t().format_integer(total)));
        view! {
            <span class="progress-cell">
                <ProgressBar percent=percent label=label over=has_ended/>
                <span class="progress-text"><span>{percent.map(|percent| t().format_percent(percent))}</span><span class="text-muted">{steps}</span></span>
            </span>
        }
    });
    progress.into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    fn job(more: &serde_json::Value) -> JobView {
        let mut job = serde_json::json!({
            "job_id": "j_1", "config_name": "digits", "config_revision": 1, "target": "auto", "status": "queued",
            "priority": 10, "worker_labels": {}, "attempt": 0, "max_attempts": 3, "submitted_by": "ada",
            "submitted_at": "2026-01-02T03:04:05Z", "status_since": "2026-01-02T03:04:05Z",
        });
        job.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        serde_json::from_value(job).expect("a job")
    }

    #[test]
    fn job_row_has_one_line_below_the_status() {
        let remark = |more| Owner::new().with(|| view! { {status_remark(&job(&more))} }.to_html().replace("<!>", ""));
        let failed =
            remark(serde_json::json!({"status": "failed", "attempt": 2, "error": "ValueError: no\nTraceback"}));
        assert_eq!(failed.matches("row-sub").count(), 1, "{failed}");
        assert!(failed.contains(">attempt 2 of 3 · ValueError: no</span>"), "{failed}");
        let pending = remark(serde_json::json!({"queue_position": 9_998}));
        assert!(pending.contains(">Position 9,998</span>"), "{pending}");
        assert!(!remark(serde_json::json!({"status": "running", "attempt": 1})).contains("<span"));
    }
}
