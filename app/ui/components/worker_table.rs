//! Workers as a table; on a small screen its columns fold into two.

use leptos::prelude::*;

use super::labels::LabelChips;
use super::scale::Scale;
use super::status::{WorkerBadge, type_word};
use super::time::Moment;
use crate::protocol::workers::WorkerView;
use crate::ui::erase::Erase;
use crate::ui::format;
use crate::ui::i18n::t;
use crate::ui::locales::words::workers::Workers;

/// A table of workers that follows its signal.
#[component]
pub(crate) fn WorkerTable(#[prop(into)] workers: Signal<Vec<WorkerView>>) -> impl IntoView {
    let words = &t().workers;
    view! {
        <table class="data">
            <caption class="sr-only">{words.caption}</caption>
            <thead>
                <tr>
                    <th scope="col">{words.worker}</th>
                    <th scope="col">{words.status}</th>
                    <th scope="col" class="max-md:hidden">{words.gpu}</th>
                    <th scope="col" class="max-md:hidden">{words.job}</th>
                    <th scope="col" class="max-xl:hidden">{words.kind}</th>
                    <th scope="col" class="max-lg:hidden">{words.labels}</th>
                    <th scope="col" class="num max-md:hidden">{words.seen}</th>
                </tr>
            </thead>
            <tbody>{move || workers.get().into_iter().map(|worker| view! { <WorkerRow worker=worker/> }).collect_view()}</tbody>
        </table>
    }
    .erased()
}

#[component]
fn WorkerRow(worker: WorkerView) -> impl IntoView {
    let words = t();
    let gpus = gpus(&words.workers, &worker);
    view! {
        <tr>
            <th scope="row">
                <a class="row-link" href=format!("/admin/workers/{}", worker.id)>{worker.name.clone()}</a>
                <span class="row-sub">
                    <span class="max-md:hidden">{worker.hostname.clone().unwrap_or_else(|| format::short_id(worker.id.as_str()))}</span>
                    <span class="md:hidden">{gpus.clone()}</span>
                </span>
            </th>
            <td>
                <WorkerBadge worker=worker.clone()/>
                <span class="row-sub md:hidden"><Seen worker=worker.clone() in_row=true/></span>
            </td>
            <td class="max-md:hidden">{gpus}</td>
            <td class="max-md:hidden"><Held worker=worker.clone()/></td>
            <td class="text-muted max-xl:hidden">{type_word(&words.status, worker.worker_type)}</td>
            <td class="max-lg:hidden"><LabelChips labels=worker.labels.clone() none="–"/></td>
            <td class="num text-muted max-md:hidden"><Seen worker=worker in_row=true/></td>
        </tr>
    }
    .erased()
}

/// `2 × A100-SXM4-80GB`, or that there is none.
pub(crate) fn gpus(words: &Workers, worker: &WorkerView) -> String {
    let model = worker.gpu_name.as_deref().unwrap_or("GPU");
    match worker.gpu_count {
        0 => words.no_gpu.to_owned(),
        count => format!("{count}\u{a0}×\u{a0}{model}"),
    }
}

/// When the worker was last heard of.
#[component]
pub(crate) fn Seen(worker: WorkerView, #[prop(optional)] in_row: bool) -> impl IntoView {
    match worker.last_heartbeat {
        Some(at) => view! { <Moment at=at in_row=in_row/> }.erased(),
        None => t().time.never.erased(),
    }
}

/// The job that the worker holds.
#[component]
fn Held(worker: WorkerView) -> impl IntoView {
    let words = t();
    let more = worker.jobs.len().saturating_sub(1);
    match worker.jobs.into_iter().next() {
        None => view! { <span class="text-muted">{words.workers.no_job}</span> }.erased(),
        Some(job) => view! {
            <span class="progress-cell">
                <a class="quiet-link truncate" href=format!("/jobs/{}", job.job_id)>{job.config_name.clone()}</a>
                <span class="flex items-center gap-2">
                    <Scale percent=job.percent label=words.job.progress_of.of(&job.config_name)/>
                    <span class="text-xs text-muted tabular-nums">{job.percent.map(|percent| t().percent(percent))}</span>
                </span>
                {(more > 0).then(|| view! { <span class="row-sub">{words.workers.more_jobs.of(more as u64)}</span> })}
            </span>
        }
        .erased(),
    }
}
