//! The table of workers; on a small screen it has only two columns.

use leptos::prelude::*;

use super::drain::drained_notes;
use super::labels::{LabelChips, MAX_IN_ROW};
use super::last_seen::LastSeen;
use super::progress_bar::ProgressBar;
use super::row_selection::{row_checkbox, select_all_checkbox};
use super::sort_header::{SortColumn, sortable_header};
use super::stable_rows::stable_rows;
use super::status::worker_type_label;
use super::worker_badge::WorkerBadge;
use crate::domain::ids::WorkerId;
use crate::domain::text::escape;
use crate::protocol::workers::{WorkerView, WorkersPage};
use crate::ui::erase::Erase;
use crate::ui::format;
use crate::ui::i18n::t;
use crate::ui::locales::words::Workers;
use crate::ui::losses::offline_sentence;

/// The columns that the table can be sorted by.
#[derive(Debug, Clone)]
pub(crate) struct SortColumns {
    pub name: SortColumn,
    pub status: SortColumn,
    pub gpus: SortColumn,
    pub seen: SortColumn,
}

/// A table of workers that follows `page`. A change of other workers does not render a row again. Labels link to `list`.
#[component]
pub(crate) fn WorkerTable(
    page: RwSignal<WorkersPage>,
    heads: SortColumns,
    list: &'static str,
    has_selection: bool,
) -> impl IntoView {
    let words = &t().workers;
    let ids =
        Memo::new(move |_| page.with(|page| page.workers.iter().map(|worker| worker.id.clone()).collect::<Vec<_>>()));
    let row = move |id: WorkerId| {
        let worker = Memo::new(move |previous: Option<&Option<WorkerView>>| {
            let current = page.with(|page| page.workers.iter().find(|worker| worker.id == id).cloned());
            // A row that is about to be removed still shows its last content.
            current.or_else(|| previous.cloned().flatten())
        });
        view! { <tr>{move || worker.with(|worker| worker.as_ref().map(|worker| row_cells(worker, list, has_selection)))}</tr> }
            .into_erased()
    };
    let (body, hint) = stable_rows(ids, row);
    view! {
        <table class="data is-fixed">
            <caption class="sr-only">{words.title}</caption>
            <thead>
                <tr>
                    {has_selection.then(|| view! { <td class="pick-cell">{select_all_checkbox()}</td> })}
                    {sortable_header("", heads.name, words.worker)}
                    {sortable_header("w-2/5 md:w-[18%]", heads.status, words.status)}
                    {sortable_header("w-[14%] max-md:hidden", heads.gpus, words.gpu)}
                    <th scope="col" class="w-[12%] max-md:hidden">{words.job}</th>
                    <th scope="col" class="w-24 max-xl:hidden">{words.kind}</th>
                    <th scope="col" class="w-[15%] max-lg:hidden">{words.labels}</th>
                    {sortable_header("num w-24 noscript:w-34 max-md:hidden", heads.seen, words.seen)}
                </tr>
            </thead>
            {body}
        </table>
        {hint}
    }
    .into_erased()
}

fn row_cells(worker: &WorkerView, list: &'static str, has_selection: bool) -> impl IntoView + use<> {
    let words = t();
    let gpus = describe_gpus(&words.workers, worker);
    let (subtitle, class) = match &worker.hostname {
        Some(host) => (host.clone(), "max-md:hidden"),
        None => (format::short_id(worker.id.as_str()), "max-md:hidden whitespace-nowrap"),
    };
    view! {
        {has_selection.then(|| view! { <td class="pick-cell">{row_checkbox(worker.id.to_string(), &worker.name)}</td> })}
        <th scope="row">
            <a class="row-link" href=format!("/admin/workers/{}", worker.id) title=worker.name.clone()>{worker.name.clone()}</a>
            <span class="row-sub" title=subtitle.clone()>
                <span class=class>{subtitle.clone()}</span>
                <span class="md:hidden">{gpus.clone()}</span>
            </span>
        </th>
        <td class="badges">
            <WorkerBadge worker=worker.clone()/>
            <span class="row-sub md:hidden"><LastSeen worker=worker.clone()/></span>
            {status_reason(worker).map(|reason| view! {
                <span class="row-sub status-reason max-md:hidden" title=reason.clone()>{escape(&reason).into_owned()}</span>
            })}
        </td>
        <td class="max-md:hidden"><span class="block truncate" title=gpus.clone()>{gpus.clone()}</span></td>
        <td class="max-md:hidden"><CurrentJobCell worker=worker.clone()/></td>
        <td class="text-muted max-xl:hidden">{worker_type_label(&words.status, worker.worker_type)}</td>
        <td class="max-lg:hidden"><LabelChips labels=worker.labels.clone() list=list none="–" max=MAX_IN_ROW/></td>
        <td class="num text-muted max-md:hidden"><LastSeen worker=worker.clone()/></td>
    }
    .into_erased()
}

/// Returns why a worker is drained, or otherwise why it is offline.
fn status_reason(worker: &WorkerView) -> Option<String> {
    let why_offline = || worker.offline_cause.map(|cause| offline_sentence(cause).to_owned());
    worker.drain_reason.clone().or_else(why_offline)
}

/// Returns the GPUs by model, such as `2 × A100-SXM4-80GB`, or that there are none; a dash if nothing is reported yet.
pub(crate) fn describe_gpus(words: &Workers, worker: &WorkerView) -> String {
    let count_text = |count: u32, model: &str| format!("{count}\u{a0}×\u{a0}{model}");
    let parts: Vec<_> = worker.gpu_models.iter().map(|model| count_text(model.count, &model.name)).collect();
    match (worker.gpu_count, parts.is_empty()) {
        (0, _) if worker.accelerator_type.is_none() => "–".to_owned(),
        (0, _) => words.no_gpu.to_owned(),
        (count, true) => count_text(count, worker.gpu_name.as_deref().unwrap_or("GPU")),
        (_, false) => parts.join(", "),
    }
}

/// The first job of a worker with its progress, and how many more it has; without a job, whether its drain is complete.
#[component]
fn CurrentJobCell(worker: WorkerView) -> impl IntoView {
    let words = t();
    let more = worker.jobs.len().saturating_sub(1);
    let [drained, hint] = drained_notes(&worker);
    match worker.jobs.into_iter().next() {
        None => view! {
            <span class="block truncate text-muted">{drained.unwrap_or(words.workers.no_job)}</span>
            {hint.map(|hint| view! { <span class="row-sub" title=hint>{hint}</span> })}
        }
        .into_erased(),
        Some(job) => view! {
            <span class="progress-cell">
                <a class="quiet-link truncate" href=format!("/jobs/{}", job.job_id)>{job.config_name.clone()}</a>
                <span class="flex items-center gap-2">
                    <ProgressBar percent=job.percent label=words.job.progress_of.of(&job.config_name)/>
                    <span class="row-sub">{job.percent.map(|percent| t().format_percent(percent))}</span>
                    {(more > 0).then(|| view! { <span class="row-sub">{words.workers.more_jobs.of(more as u64)}</span> })}
                </span>
            </span>
        }
        .into_erased(),
    }
}
