//! The rows of the job list. A row belongs to one job while others are added and removed, so that an open menu never changes to
//! another job.

use leptos::prelude::*;

use crate::domain::access::Permission;
use crate::domain::ids::JobId;
use crate::domain::priority::MAX_PRIORITY;
use crate::domain::time::Millis;
use crate::protocol::jobs::{JobView, JobsPage, JobsQuery};
use crate::protocol::status::{BulkTarget, JobPhase, JobStatus};
use crate::ui::bulk_action::permitted_actions;
use crate::ui::components::icon::Icon;
use crate::ui::components::job_request::ResourceRequest;
use crate::ui::components::job_table::{JobProgress, status_remark};
use crate::ui::components::row_selection::{row_checkbox, select_all_checkbox};
use crate::ui::components::sort_header::{SortColumn, sortable_header};
use crate::ui::components::stable_rows::stable_rows;
use crate::ui::components::status::JobBadge;
use crate::ui::components::tags::tag_chips;
use crate::ui::components::time::{Elapsed, RelativeTime};
use crate::ui::components::worker_link::WorkerLink;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::page_query::{jobs_url, query_string};
use crate::ui::permissions::{can_cancel, has_permission};

/// By how much the menu raises the priority of a job.
const PRIORITY_STEP: u8 = 5;

/// The number of tags that a row shows.
const MAX_TAGS_IN_ROW: usize = 3;

/// The columns that the table can be sorted by.
#[derive(Debug, Clone)]
pub(super) struct SortColumns {
    pub name: SortColumn,
    pub status: SortColumn,
    pub gpus: SortColumn,
    pub priority: SortColumn,
    pub loss: SortColumn,
    pub worker: SortColumn,
    pub duration: SortColumn,
}

/// The table. Because it is laid out as cards on small screens, screen readers need explicit roles to recognize it.
#[component]
pub(super) fn JobRows(page: RwSignal<JobsPage>, caption: Text, columns: SortColumns, back: String) -> impl IntoView {
    let words = t();
    let picks = !permitted_actions(BulkTarget::Jobs).is_empty();
    let ids = Memo::new(move |_| page.with(|page| page.jobs.iter().map(|job| job.job_id.clone()).collect::<Vec<_>>()));
    let row = move |id: JobId| {
        let job_id = id.clone();
        let job = Memo::new(move |last: Option<&Option<JobView>>| {
            let current = page.with(|page| page.jobs.iter().find(|job| job.job_id == job_id).cloned());
            // A row that is about to be removed keeps its last values.
            current.or_else(|| last.cloned().flatten())
        });
        view! { <JobRow id=id job=job back=back.clone() picks=picks/> }.into_erased()
    };
    let (body, hint) = stable_rows(ids, row);
    view! {
        <table class="data is-fixed jobs" role="table">
            <caption class="sr-only">{caption}</caption>
            <thead role="rowgroup">
                <tr role="row">
                    {picks.then(|| view! { <td role="cell" class="pick-cell">{select_all_checkbox()}</td> })}
                    {sortable_header("", columns.name, words.jobs.job)}
                    {sortable_header("w-1/5 lg:w-[15%]", columns.status, words.jobs.status)}
                    {sortable_header("jobs-demand w-[14%]", columns.gpus, words.work.asks_for)}
                    {sortable_header("num w-20 max-xl:hidden", columns.priority, words.work.priority)}
                    {sortable_header("w-[16%] lg:w-[12%]", columns.loss, words.jobs.progress)}
                    {sortable_header("w-[11%] max-lg:hidden", columns.worker, words.jobs.worker)}
                    {sortable_header("num w-22 lg:w-26", columns.duration, words.jobs.took)}
                    <th scope="col" role="columnheader" class="w-12"><span class="sr-only">{words.work.actions}</span></th>
                </tr>
            </thead>
            {body}
        </table>
        {hint}
    }
    .into_erased()
}

#[component]
fn JobRow(id: JobId, job: Memo<Option<JobView>>, back: String, picks: bool) -> impl IntoView {
    let cells = move || job.with(|job| job.as_ref().map(row_cells));
    let status_and_priority = Memo::new(move |_| job.with(|job| job.as_ref().map(|job| (job.status, job.priority))));
    // The submitter of a job never changes.
    let cancels = job.with_untracked(|job| job.as_ref().is_some_and(|job| can_cancel(&job.submitted_by)));
    let name = job.with_untracked(|job| job.as_ref().map(JobView::title)).unwrap_or_default();
    // Several jobs may have the same configuration.
    let label = || format!("{name} {}", short_id(id.as_str()));
    let checkbox_cell =
        picks.then(|| view! { <td role="cell" class="pick-cell">{row_checkbox(id.to_string(), &label())}</td> });
    let menu = move || {
        let (status, priority) = status_and_priority.get()?;
        Some(
            view! { <RowMenu id=id.clone() name=name.clone() status=status priority=priority cancels=cancels back=back.clone()/> },
        )
    };
    view! {
        <tr role="row">
            {checkbox_cell}
            {cells}
            <td class="row-menu-cell" role="cell">{menu}</td>
        </tr>
    }
    .into_erased()
}

fn row_cells(job: &JobView) -> impl IntoView + use<> {
    let of_user = jobs_url(&JobsQuery { user: Some(job.submitted_by.clone()), ..JobsQuery::default() });
    view! {
        <th scope="row" role="rowheader">
            <a class="row-link" href=format!("/jobs/{}", job.job_id) title=job.title()>{job.title()}</a>
            <span class="row-sub">
                {job.name.is_some().then(|| format!("{} · ", job.numbered_config()))}
                <span class="font-mono" title=job.job_id.to_string()>{short_id(job.job_id.as_str())}</span>
                " · "
                <a class="sub-link" href=of_user>{job.submitted_by.clone()}</a>
                " · "
                <RelativeTime at=job.submitted_at/>
            </span>
            {tag_chips(&job.tags, MAX_TAGS_IN_ROW)}
        </th>
        <td role="cell" class="jobs-state">
            <JobBadge status=job.status/>
            {status_remark(job)}
        </td>
        <td role="cell" class="jobs-demand"><ResourceRequest job=job.clone()/></td>
        <td role="cell" class="num max-xl:hidden">{job.priority}</td>
        <td role="cell" class="jobs-progress">
            <JobProgress job=job.clone()/>
            {loss_text(job).map(secondary_line)}
        </td>
        <td role="cell" class="max-lg:hidden"><WorkerLink job=job.clone()/></td>
        <td role="cell" class="num text-muted jobs-time">{elapsed_cell(job)}{remaining_text(job).map(secondary_line)}</td>
    }
    .into_erased()
}

fn secondary_line(text: String) -> AnyView {
    view! { <span class="row-sub">{text}</span> }.into_erased()
}

/// The loss at the newest step.
fn loss_text(job: &JobView) -> Option<String> {
    let progress = job.progress.as_ref().filter(|_| !job.status.is_in_phase(JobPhase::Waiting));
    let loss = progress.and_then(|progress| progress.loss);
    loss.map(|loss| t().work.loss.of(t().format_number(loss)))
}

/// How long a job has waited, has run, or ran.
fn elapsed_cell(job: &JobView) -> impl IntoView + use<> {
    match (job.started_at, job.status.is_in_phase(JobPhase::Waiting)) {
        (Some(from), false) => view! { <Elapsed from=from until=job.ended_at/> }.into_erased(),
        (_, true) => view! { <span title=t().work.waits_since><Elapsed from=job.submitted_at/></span> }.into_erased(),
        (None, false) => "–".into_erased(),
    }
}

fn remaining_text(job: &JobView) -> Option<String> {
    let seconds = job.progress.as_ref().filter(|_| job.status == JobStatus::Running).and_then(|p| p.eta_seconds);
    #[expect(clippy::cast_possible_truncation, reason = "an estimate in whole seconds; a float saturates")]
    let span = seconds.map(|seconds| t().format_duration(Millis::from_secs(seconds as i64)));
    span.map(|span| t().work.left.of(span))
}

/// The actions on a job that the user may perform.
#[component]
fn RowMenu(id: JobId, name: String, status: JobStatus, priority: u8, cancels: bool, back: String) -> impl IntoView {
    let words = t();
    let ended = status.is_terminal();
    let raised = priority.saturating_add(PRIORITY_STEP).min(MAX_PRIORITY);
    let raises = has_permission(Permission::QueueManage) && status.is_in_phase(JobPhase::Waiting) && raised > priority;
    let (cancels, retries) = (cancels && !ended, has_permission(Permission::JobSubmit) && ended);
    if !(raises || cancels || retries) {
        return ().into_erased();
    }
    let cancel_href = format!("/jobs/{id}/cancel{}", query_string(&[("back", Some(back.clone()))]));
    view! {
        <details class="row-menu">
            <summary class="icon-button" aria-label=words.work.actions_of.of(&name)><Icon glyph=Glyph::More/></summary>
            <div class="row-menu-body">
                {raises.then(|| view! {
                    <form method="post" action=format!("/ui/jobs/{id}/priority")>
                        <input type="hidden" name="back" value=back.clone()/>
                        <button class="menu-item" name="priority" value=raised.to_string()><Icon glyph=Glyph::Raise/>{words.work.raise.of(raised)}</button>
                        <button class="menu-item" name="top" value="true"><Icon glyph=Glyph::Raise/>{words.work.top}</button>
                    </form>
                })}
                {retries.then(|| view! {
                    <form method="post" action=format!("/ui/jobs/{id}/retry")>
                        <button class="menu-item"><Icon glyph=Glyph::Play/>{words.work.retry}</button>
                    </form>
                })}
                {cancels.then(|| view! { <a class="menu-item" rel="external" href=cancel_href><Icon glyph=Glyph::StopCircle/>{words.job.cancel}"…"</a> })}
            </div>
        </details>
    }
    .into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::protocol::shown_fields::fields_not_shown;

    /// A row has no space for them. The loss code is shown as the sentence of a lost attempt.
    const NOT_IN_ROW: [&str; 21] = [
        "status_since",
        "config_revision",
        "notes",
        "target",
        "retry_on_failure",
        "max_runtime_seconds",
        "secrets",
        "shared_secrets_only",
        "exclusive",
        "sandbox",
        "checkpoints",
        "retry_of",
        "resume_from",
        "overrides",
        "resumable",
        "older_agent",
        "retry_at",
        "cancelled_by",
        "error_line",
        "loss_code",
        "attempts",
    ];

    #[test]
    fn each_field_is_in_the_row_or_listed() {
        let statuses = [JobStatus::Queued, JobStatus::Running, JobStatus::Failed];
        let jobs = statuses.map(|status| JobView { status, ..JobView::example() });
        let html = |job: &JobView| Owner::new().with(|| row_cells(job).to_html());
        assert_eq!(fields_not_shown(&jobs, html), BTreeSet::from(NOT_IN_ROW.map(str::to_owned)));
    }
}
