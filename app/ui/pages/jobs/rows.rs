//! The rows of the job list. A row belongs to one job while others are added and removed, so that an open menu never changes to
//! another job.

use leptos::prelude::*;

use super::columns::{ListColumns, name_cell};
use crate::domain::access::Permission;
use crate::domain::ids::JobId;
use crate::domain::priority::MAX_PRIORITY;
use crate::protocol::jobs::{JobView, JobsPage, JobsQuery};
use crate::protocol::status::{JobPhase, JobStatus};
use crate::ui::components::icon::Icon;
use crate::ui::components::row_selection::{row_checkbox, select_all_checkbox};
use crate::ui::components::stable_rows::stable_rows;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::page_query::query_string;
use crate::ui::permissions::{can_cancel, has_permission};

/// By how much the menu raises the priority of a job.
const PRIORITY_STEP: u8 = 5;

/// The table. Because it is laid out as cards on small screens, screen readers need explicit roles to recognize it.
#[component]
pub(super) fn JobRows(
    page: RwSignal<JobsPage>,
    caption: Text,
    columns: ListColumns,
    query: JobsQuery,
    back: String,
) -> impl IntoView {
    let words = t();
    let ids = Memo::new(move |_| page.with(|page| page.jobs.iter().map(|job| job.job_id.clone()).collect::<Vec<_>>()));
    let widths = RwSignal::new(columns.widths.clone());
    let are_set = Memo::new(move |_| widths.with(|widths| !widths.is_empty()));
    let headings = columns.headings(&query, widths);
    let are_chosen = columns.are_chosen;
    let class = move || if are_chosen || are_set.get() { "table-scroll" } else { "" };
    let row = move |id: JobId| {
        let job_id = id.clone();
        let job = Memo::new(move |last: Option<&Option<JobView>>| {
            let current = page.with(|page| page.jobs.iter().find(|job| job.job_id == job_id).cloned());
            // A row that is about to be removed keeps its last values.
            current.or_else(|| last.cloned().flatten())
        });
        view! { <JobRow id=id job=job columns=columns.clone() back=back.clone()/> }.into_erased()
    };
    let (body, hint) = stable_rows(ids, row);
    view! {
        <div class=class>
            <table class="data is-fixed is-lines jobs" class:is-sized=move || are_set.get() role="table">
                <caption class="sr-only">{caption}</caption>
                <thead role="rowgroup">
                    <tr role="row">
                        <td role="cell" class="pick-cell">{select_all_checkbox()}</td>
                        {headings}
                        <th scope="col" role="columnheader" class="w-12"><span class="sr-only">{words.work.actions}</span></th>
                    </tr>
                </thead>
                {body}
            </table>
        </div>
        {hint}
    }
    .into_erased()
}

#[component]
fn JobRow(id: JobId, job: Memo<Option<JobView>>, columns: ListColumns, back: String) -> impl IntoView {
    let to_list = back.clone();
    let cells = move || job.with(|job| job.as_ref().map(|job| row_cells(job, &columns, to_list.clone())));
    let status_and_priority = Memo::new(move |_| job.with(|job| job.as_ref().map(|job| (job.status, job.priority))));
    // The submitter of a job never changes.
    let cancels = job.with_untracked(|job| job.as_ref().is_some_and(|job| can_cancel(&job.submitted_by)));
    let name = job.with_untracked(|job| job.as_ref().map(JobView::title)).unwrap_or_default();
    // Several jobs may have the same configuration.
    let label = || format!("{name} {}", short_id(id.as_str()));
    let checkbox_cell = view! { <td role="cell" class="pick-cell">{row_checkbox(id.to_string(), &label())}</td> };
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

fn row_cells(job: &JobView, columns: &ListColumns, back: String) -> impl IntoView + use<> {
    view! { {name_cell(job, back)} {columns.cells(job)} }.into_erased()
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

    use super::super::widths::ColumnWidths;
    use super::*;
    use crate::domain::job_search::columns::{JobListColumn, JobListColumns};
    use crate::protocol::shown_fields::fields_not_shown;

    /// There is no column for them. The loss code is shown as the sentence of a lost attempt.
    const NOT_IN_ROW: [&str; 25] = [
        "status_since",
        // Of the users who have starred it, only the reader.
        "starred_by",
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
        "family",
        "last_completed",
        "older_agent",
        "retry_at",
        "cancelled_by",
        "error_line",
        "loss_code",
        "attempts",
        "class",
        "team",
    ];

    #[test]
    fn each_field_is_in_the_row_or_listed() {
        let statuses = [JobStatus::Queued, JobStatus::Running, JobStatus::Failed];
        let jobs = statuses.map(|status| JobView { status, ..JobView::example() });
        let metric = JobView::example().values.keys().filter_map(|name| JobListColumn::parse(name)).collect::<Vec<_>>();
        let columns = JobListColumns(JobListColumn::known().chain(metric).collect());
        let columns = ListColumns { are_chosen: true, columns, widths: ColumnWidths::default() };
        let html = |job: &JobView| Owner::new().with(|| row_cells(job, &columns, String::new()).to_html());
        assert_eq!(fields_not_shown(&jobs, html), BTreeSet::from(NOT_IN_ROW.map(str::to_owned)));
    }
}
