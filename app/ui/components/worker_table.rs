//! Workers as a table; on a small screen its columns fold into two.

use leptos::prelude::*;

use super::labels::LabelChips;
use super::picking::{pick, pick_all};
use super::scale::Scale;
use super::status::{WorkerBadge, type_word};
use super::steady::steady;
use super::time::Moment;
use crate::domain::ids::WorkerId;
use crate::domain::text::escaped;
use crate::protocol::workers::{WorkerView, WorkersPage};
use crate::ui::erase::Erase;
use crate::ui::format;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::locales::words::workers::Workers;

/// A column by which the table can be sorted.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// `ascending` or `descending`, if it is.
    pub sorted: Option<&'static str>,
    /// Where it is, or the other way round.
    pub href: String,
}

/// Those of them.
#[derive(Debug, Clone)]
pub(crate) struct Heads {
    pub name: Head,
    pub status: Head,
    pub gpus: Head,
    pub seen: Head,
}

/// A table of workers that follows its signal. A row stays its worker's while others come.
#[component]
pub(crate) fn WorkerTable(page: RwSignal<WorkersPage>, heads: Heads) -> impl IntoView {
    let words = &t().workers;
    let ids = Memo::new(move |_| page.with(|page| page.workers.iter().map(|one| one.id.clone()).collect::<Vec<_>>()));
    let row = move |id: WorkerId| {
        let worker = Memo::new(move |last: Option<&Option<WorkerView>>| {
            let now = page.with(|page| page.workers.iter().find(|one| one.id == id).cloned());
            // A row that is about to go keeps what it says.
            now.or_else(|| last.cloned().flatten())
        });
        view! { <tr>{move || worker.with(|worker| worker.as_ref().map(cells))}</tr> }.erased()
    };
    let (body, hint) = steady(ids, row);
    view! {
        <table class="data">
            <caption class="sr-only">{words.title}</caption>
            <thead>
                <tr>
                    <td class="pick-cell">{pick_all()}</td>
                    {sorting("", heads.name, words.worker)}
                    {sorting("", heads.status, words.status)}
                    {sorting("max-md:hidden", heads.gpus, words.gpu)}
                    <th scope="col" class="max-md:hidden">{words.job}</th>
                    <th scope="col" class="max-xl:hidden">{words.kind}</th>
                    <th scope="col" class="max-lg:hidden">{words.labels}</th>
                    {sorting("num max-md:hidden", heads.seen, words.seen)}
                </tr>
            </thead>
            {body}
        </table>
        {hint}
    }
    .erased()
}

/// The head of such a column.
fn sorting(class: &'static str, head: Head, label: Text) -> AnyView {
    view! { <th scope="col" class=class aria-sort=head.sorted><a class="sort" href=head.href>{label}</a></th> }.erased()
}

fn cells(worker: &WorkerView) -> impl IntoView + use<> {
    let words = t();
    let gpus = gpus(&words.workers, worker);
    let (known_as, class) = match &worker.hostname {
        Some(host) => (host.clone(), "max-md:hidden"),
        None => (format::short_id(worker.id.as_str()), "max-md:hidden whitespace-nowrap"),
    };
    view! {
        <td class="pick-cell">{pick(worker.id.to_string(), &worker.name)}</td>
        <th scope="row">
            <a class="row-link" href=format!("/admin/workers/{}", worker.id)>{worker.name.clone()}</a>
            <span class="row-sub">
                <span class=class>{known_as}</span>
                <span class="md:hidden">{gpus.clone()}</span>
            </span>
        </th>
        <td>
            <WorkerBadge worker=worker.clone()/>
            <span class="row-sub md:hidden"><Seen worker=worker.clone()/></span>
            {worker.drain_reason.as_ref().map(|reason| view! {
                <span class="row-sub drain-reason max-md:hidden" title=reason.clone()>{escaped(reason).into_owned()}</span>
            })}
        </td>
        <td class="max-md:hidden">{gpus}</td>
        <td class="max-md:hidden"><Held worker=worker.clone()/></td>
        <td class="text-muted max-xl:hidden">{type_word(&words.status, worker.worker_type)}</td>
        <td class="max-lg:hidden"><LabelChips labels=worker.labels.clone() list="/admin/workers" none="–"/></td>
        <td class="num text-muted max-md:hidden"><Seen worker=worker.clone()/></td>
    }
    .erased()
}

/// `2 × A100-SXM4-80GB`, a part for each model, or that there is none.
pub(crate) fn gpus(words: &Workers, worker: &WorkerView) -> String {
    let some = |count: u32, model: &str| format!("{count}\u{a0}×\u{a0}{model}");
    let parts: Vec<_> = worker.gpu_models.iter().map(|of| some(of.count, &of.name)).collect();
    match (worker.gpu_count, parts.is_empty()) {
        (0, _) => words.no_gpu.to_owned(),
        (count, true) => some(count, worker.gpu_name.as_deref().unwrap_or("GPU")),
        (_, false) => parts.join(", "),
    }
}

/// When the worker was last heard of.
#[component]
pub(crate) fn Seen(worker: WorkerView) -> impl IntoView {
    match worker.last_heartbeat {
        Some(at) => view! { <Moment at=at/> }.erased(),
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
