//! Jobs as a table; on a small screen its columns fold into two.

use leptos::prelude::*;

use super::reason::ReasonLine;
use super::scale::Scale;
use super::status::JobBadge;
use super::time::{Elapsed, Moment};
use super::worker_link::WorkerLink;
use crate::protocol::queue::JobView;
use crate::protocol::status::JobStatus;
use crate::ui::erase::Erase;
use crate::ui::format;
use crate::ui::i18n::t;

/// A table of jobs that follows its signal.
#[component]
pub(crate) fn JobTable(#[prop(into)] jobs: Signal<Vec<JobView>>) -> impl IntoView {
    let words = &t().jobs;
    view! {
        <table class="data">
            <caption class="sr-only">{words.caption}</caption>
            <thead>
                <tr>
                    <th scope="col">{words.job}</th>
                    <th scope="col">{words.status}</th>
                    <th scope="col" class="max-md:hidden">{words.progress}</th>
                    <th scope="col" class="max-lg:hidden">{words.worker}</th>
                    <th scope="col" class="max-md:hidden">{words.submitted}</th>
                    <th scope="col" class="num max-lg:hidden">{words.took}</th>
                </tr>
            </thead>
            <tbody>{move || jobs.get().into_iter().map(|job| view! { <JobRow job=job/> }).collect_view()}</tbody>
        </table>
    }
    .erased()
}

#[component]
fn JobRow(job: JobView) -> impl IntoView {
    let href = format!("/jobs/{}", job.job_id);
    let took = job.started_at.map(|from| view! { <Elapsed from=from until=job.ended_at/> });
    view! {
        <tr>
            <th scope="row">
                <a class="row-link" href=href>{job.config_name.clone()}</a>
                <span class="row-sub">
                    <span class="font-mono" title=job.job_id.to_string()>{format::short_id(job.job_id.as_str())}</span>
                    <span class="md:hidden">" · "<Moment at=job.submitted_at/></span>
                </span>
            </th>
            <td>
                <JobBadge status=job.status/>
                <span class="row-sub">{remark(&job)}</span>
                {job.error.clone().map(|error| view! { <ReasonLine error=error/> })}
            </td>
            <td class="max-md:hidden"><JobProgress job=job.clone()/></td>
            <td class="max-lg:hidden"><WorkerLink job=job.clone()/></td>
            <td class="text-muted max-md:hidden"><Moment at=job.submitted_at/></td>
            <td class="num text-muted max-lg:hidden">{took}</td>
        </tr>
    }
    .erased()
}

/// What the status alone does not say.
fn remark(job: &JobView) -> String {
    let words = &t().jobs;
    match job.status {
        JobStatus::Queued if job.fits_none => words.fits_none.to_owned(),
        JobStatus::Queued => job.queue_position.map(|place| words.position.of(t().whole(place))).unwrap_or_default(),
        _ if job.attempt.0 > 1 => words.attempt.with(&[&job.attempt.0, &job.max_attempts]),
        _ => String::new(),
    }
}

/// Scale, share and step of one job.
#[component]
pub(crate) fn JobProgress(job: JobView) -> impl IntoView {
    let label = t().job.progress_of.of(&job.config_name);
    let over = job.status.is_terminal();
    if job.status == JobStatus::Starting && job.progress.is_none() {
        return view! { <span class="progress-cell"><Scale percent=None label=label/></span> }.erased();
    }
    let shown = job.progress.filter(|_| job.status != JobStatus::Queued);
    let shown = shown.map(|progress| {
        let percent = progress.percent;
        let step = t().whole(progress.step);
        let steps = progress.total_steps.map_or(step.clone(), |total| format!("{step}\u{202f}/\u{202f}{}", t().whole(total)));
        view! {
            <span class="progress-cell">
                <Scale percent=percent label=label over=over/>
                <span class="progress-text"><span>{percent.map(|percent| t().percent(percent))}</span><span class="text-muted">{steps}</span></span>
            </span>
        }
    });
    shown.erased()
}
