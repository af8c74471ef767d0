//! The attempts of a job, as a timeline and as a table.

use leptos::prelude::*;

use super::failure_reason::{FailureReasonLine, log_line_url};
use super::status::{StatusBadge, outcome_style};
use super::time::{Elapsed, RelativeTime};
use super::timeline::Timeline;
use super::worker_link::WorkerNameLink;
use crate::domain::ids::JobId;
use crate::protocol::jobs::{AttemptView, JobView};
use crate::ui::checkpoints::CheckpointFiles;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::losses::loss_sentence;

/// The panel of the attempts; each row links to the log of its attempt.
#[component]
pub(crate) fn Attempts(job: Memo<JobView>, checkpoints: Memo<Vec<CheckpointFiles>>) -> impl IntoView {
    let words = t();
    let attempts = Memo::new(move |_| job.with(|job| job.attempts.clone().unwrap_or_default()));
    let id = job.with_untracked(|job| job.job_id.clone());
    let rows = move || {
        let id = id.clone();
        let row = move |attempt| view! { <AttemptRow job=id.clone() attempt=attempt/> };
        attempts.get().into_iter().map(row).collect_view()
    };
    let table = move || {
        let table = (!attempts.with(Vec::is_empty)).then(|| {
            view! {
                <table class="data">
                    <caption class="sr-only">{words.job.attempts_caption}</caption>
                    <thead>
                        <tr>
                            <th scope="col">{words.job.attempt}</th>
                            <th scope="col">{words.job.outcome}</th>
                            <th scope="col" class="max-md:hidden">{words.job.worker}</th>
                            <th scope="col" class="max-md:hidden">{words.status.offered}</th>
                            <th scope="col" class="num">{words.job.elapsed}</th>
                        </tr>
                    </thead>
                    <tbody>{rows.clone()}</tbody>
                </table>
            }
        });
        table.into_erased()
    };
    view! {
        <section class="panel" aria-labelledby="timeline">
            <h2 id="timeline" class="panel-head">{words.timeline.title}</h2>
            <Timeline job=job checkpoints=checkpoints/>
            {table}
        </section>
    }
    .into_erased()
}

#[component]
fn AttemptRow(job: JobId, attempt: AttemptView) -> impl IntoView {
    let words = t();
    let exit_text = attempt.exit_code.filter(|code| *code != 0).map(|code| format!("{} {code}", words.job.exit_code));
    let resumes_from = attempt.resumed_from_step.map(|step| words.job.goes_on.of(words.format_integer(step)));
    let log_href = attempt.error_line.map(|line| log_line_url(&job, attempt.attempt, line));
    let remark = match attempt.error {
        Some(error) => view! { <FailureReasonLine error=loss_sentence(attempt.loss_code, &error)/> }.into_erased(),
        None => exit_text.map(|exit_text| view! { <span class="row-sub">{exit_text}</span> }).into_erased(),
    };
    let name = attempt.worker_name.unwrap_or_else(|| words.job.deleted_worker.to_owned());
    view! {
        <tr>
            <th scope="row">
                <a class="row-link whitespace-nowrap" href=format!("/jobs/{job}/log?attempt={}", attempt.attempt)>{words.log.attempt.of(attempt.attempt.0)}</a>
                <span class="row-sub md:hidden">{name.clone()}</span>
                {resumes_from.map(|text| view! { <span class="row-sub">{text}</span> })}
            </th>
            <td>
                <StatusBadge style=outcome_style(&words.status, attempt.outcome.as_deref())/>
                {remark}
                {log_href.map(|href| view! { <span class="row-sub"><a class="sub-link" href=href>{words.job.show_in_log}</a></span> })}
            </td>
            <td class="max-md:hidden"><WorkerNameLink id=attempt.worker_id name=name/></td>
            <td class="text-muted max-md:hidden"><RelativeTime at=attempt.offered_at/></td>
            <td class="num text-muted">{attempt.started_at.map(|from| view! { <Elapsed from=from until=attempt.ended_at/> })}</td>
        </tr>
    }
    .into_erased()
}
