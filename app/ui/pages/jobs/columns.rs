//! The columns of the list: their headings, and the cells of a job, each of one line.

use leptos::prelude::*;
use serde_json::Value;

use super::heading::{ColumnWidth, Heading};
use super::widths::{ColumnWidths, NAME};
use crate::domain::access::Permission;
use crate::domain::job_search::columns::{JobDetail, JobListColumn, JobListColumns};
use crate::domain::job_search::order::{JobColumn, JobSortKey};
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::jobs::{JobView, JobsQuery};
use crate::protocol::status::{JobPhase, JobStatus};
use crate::ui::components::job_request::ResourceRequest;
use crate::ui::components::job_table::{JobProgress, status_remark};
use crate::ui::components::sort_header::SortColumn;
use crate::ui::components::star::star_button;
use crate::ui::components::status::JobBadge;
use crate::ui::components::tags::tag_chips;
use crate::ui::components::time::{Elapsed, RelativeTime};
use crate::ui::components::worker_link::WorkerLink;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::i18n::t;
use crate::ui::page_query::jobs_url;
use crate::ui::permissions::has_permission;

/// The number of tags that a cell shows.
const MAX_TAGS_IN_ROW: usize = 2;
/// The width of the name in a table that may be wider than the page, in CSS pixels.
const NAME_WIDTH: u16 = 256;

/// The columns of a list, beside the name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListColumns {
    /// Whether the user has chosen them. If not, small screens show fewer.
    pub are_chosen: bool,
    pub columns: JobListColumns,
    pub widths: ColumnWidths,
}

impl ListColumns {
    /// The columns of this list. Invalid ones in an address are ignored, and values of configurations if the user may
    /// not see them.
    pub fn of(query: &JobsQuery) -> Self {
        let chosen = query.columns.as_deref().and_then(JobListColumns::parse);
        let are_chosen = chosen.is_some();
        let mut columns = chosen.unwrap_or_else(|| JobListColumns::default_for(query.phase));
        if !has_permission(Permission::ConfigView) {
            columns.0.retain(|column| !column.reads_config());
        }
        let widths = ColumnWidths::parse(query.widths.as_deref().unwrap_or_default());
        Self { are_chosen, columns, widths }
    }

    /// Whether the table may be wider than the page.
    pub fn scrolls(&self) -> bool {
        self.are_chosen || !self.widths.is_empty()
    }

    /// The headings, with that of the name, which is always the first column.
    pub fn headings(&self, query: &JobsQuery, widths: RwSignal<ColumnWidths>) -> Vec<AnyView> {
        let name = Heading {
            column: NAME.to_owned(),
            label: t().jobs.job.to_owned(),
            sort: Some(sort_column(query, &JobSortKey::Column(JobColumn::Name))),
            class: String::new(),
            default_width: if self.scrolls() { ColumnWidth::Pixels(NAME_WIDTH) } else { ColumnWidth::Class("") },
        };
        let heading = |column: &JobListColumn| {
            let layout = Layout::of(column);
            let sort = match column {
                JobListColumn::Sortable(key) => Some(sort_column(query, key)),
                JobListColumn::Detail(_) => None,
            };
            Heading {
                column: column.to_string(),
                label: column_name(column),
                sort,
                class: layout.heading_class(self.are_chosen),
                default_width: if self.are_chosen {
                    ColumnWidth::Pixels(layout.chosen_width)
                } else {
                    ColumnWidth::Class(layout.width)
                },
            }
        };
        let headings = [name].into_iter().chain(self.columns.0.iter().map(heading));
        headings.map(|heading| heading.render(query, widths)).collect()
    }

    /// The width of the name, unless it takes what others leave.
    #[cfg(feature = "ssr")]
    pub fn width_of_name(&self) -> u16 {
        self.widths.get(NAME).unwrap_or(NAME_WIDTH)
    }

    /// The width of a column in a table that may be wider than the page.
    #[cfg(feature = "ssr")]
    pub fn width_of(&self, column: &JobListColumn) -> u16 {
        self.widths.get(&column.to_string()).unwrap_or_else(|| Layout::of(column).chosen_width)
    }

    /// The cells of a job.
    pub fn cells(&self, job: &JobView) -> Vec<AnyView> {
        self.columns.0.iter().map(|column| cell(job, column, self.are_chosen)).collect()
    }
}

/// The cell of the name.
pub(super) fn name_cell(job: &JobView, back: String) -> AnyView {
    let config = job.name.is_some().then(|| job.numbered_config());
    let rest = config.into_iter().chain(job.tags.iter().cloned()).collect::<Vec<_>>().join(" · ");
    let rest = (!rest.is_empty()).then(|| view! { <span class="row-sub" title=rest.clone()>{rest.clone()}</span> });
    view! {
        <th scope="row" role="rowheader">
            <span class="cell-line">
                {star_button(job, back)}
                <a class="row-link" href=format!("/jobs/{}", job.job_id) title=job.title()>{job.title()}</a>
                {rest}
            </span>
        </th>
    }
    .into_erased()
}

fn sort_column(query: &JobsQuery, key: &JobSortKey) -> SortColumn {
    let default = if query.phase == Some(JobPhase::Waiting) { "queue" } else { "-submitted" };
    let url = |sort| jobs_url(&JobsQuery { sort, cursor: None, ..query.clone() });
    SortColumn::new(query.sort.as_deref(), default, &key.to_string(), is_largest_first(key), url)
}

/// Whether the first click on a heading sorts the largest value to the top.
const fn is_largest_first(key: &JobSortKey) -> bool {
    match key {
        JobSortKey::Column(column) => match column {
            JobColumn::Name | JobColumn::Config | JobColumn::User | JobColumn::Status | JobColumn::Worker => false,
            JobColumn::Submitted
            | JobColumn::Revision
            | JobColumn::Gpus
            | JobColumn::Priority
            | JobColumn::Attempts
            | JobColumn::Started
            | JobColumn::Ended
            | JobColumn::Duration => true,
        },
        JobSortKey::Queue | JobSortKey::Metric(_) | JobSortKey::Config(_) => false,
    }
}

/// What a heading shows.
pub(in crate::ui) fn column_name(column: &JobListColumn) -> String {
    let words = t();
    let name = match column {
        JobListColumn::Sortable(JobSortKey::Metric(name) | JobSortKey::Config(name)) => return name.clone(),
        JobListColumn::Sortable(JobSortKey::Queue) => words.jobs.caption_waiting,
        JobListColumn::Sortable(JobSortKey::Column(column)) => match column {
            JobColumn::Submitted => words.jobs.column.submitted,
            JobColumn::Name => words.jobs.job,
            JobColumn::Config => words.jobs.column.config,
            JobColumn::Revision => words.jobs.column.revision,
            JobColumn::User => words.jobs.column.user,
            JobColumn::Status => words.jobs.status,
            JobColumn::Worker => words.jobs.worker,
            JobColumn::Gpus => words.jobs.column.gpus,
            JobColumn::Priority => words.work.priority,
            JobColumn::Attempts => words.jobs.column.attempts,
            JobColumn::Started => words.jobs.column.started,
            JobColumn::Ended => words.jobs.column.ended,
            JobColumn::Duration => words.jobs.took,
        },
        JobListColumn::Detail(detail) => match detail {
            JobDetail::Id => words.jobs.column.id,
            JobDetail::Tags => words.jobs.column.tags,
            JobDetail::Requires => words.work.asks_for,
            JobDetail::Progress => words.jobs.progress,
            JobDetail::TimeLeft => words.jobs.column.time_left,
        },
    };
    name.to_owned()
}

/// How a column is laid out, as classes.
#[derive(Clone, Copy)]
struct Layout {
    width: &'static str,
    /// Its width in a table that may be wider than the page, in CSS pixels.
    chosen_width: u16,
    /// On which screens it is hidden, unless it is chosen.
    hidden: &'static str,
    is_number: bool,
    /// Its place on a small screen, where each job is a card.
    card: &'static str,
}

impl Layout {
    fn of(column: &JobListColumn) -> Self {
        const TEXT: Layout =
            Layout { width: "w-36", chosen_width: 144, hidden: "max-lg:hidden", is_number: false, card: "jobs-more" };
        const NUMBER: Layout = Layout { width: "w-20", chosen_width: 80, is_number: true, ..TEXT };
        match column {
            JobListColumn::Sortable(JobSortKey::Column(column)) => match column {
                JobColumn::Status => {
                    let width = "w-[34%] lg:w-[24%] xl:w-[18%]";
                    Self { width, chosen_width: 176, hidden: "", card: "jobs-state", ..TEXT }
                }
                JobColumn::User => Self { width: "w-24", hidden: "max-2xl:hidden", ..TEXT },
                JobColumn::Worker => Self { width: "w-[12%]", ..TEXT },
                JobColumn::Submitted => Self { width: "w-26", hidden: "max-xl:hidden", ..TEXT },
                JobColumn::Duration => Self {
                    width: "w-20 lg:w-24",
                    chosen_width: 104,
                    hidden: "",
                    card: "jobs-time text-muted",
                    ..NUMBER
                },
                JobColumn::Revision | JobColumn::Gpus | JobColumn::Priority | JobColumn::Attempts => NUMBER,
                JobColumn::Name | JobColumn::Config | JobColumn::Started | JobColumn::Ended => TEXT,
            },
            JobListColumn::Sortable(JobSortKey::Metric(_)) => Self { chosen_width: 112, ..NUMBER },
            JobListColumn::Sortable(JobSortKey::Config(_) | JobSortKey::Queue) => TEXT,
            JobListColumn::Detail(detail) => match detail {
                JobDetail::Progress => {
                    let width = "w-[18%] lg:w-[16%] xl:w-[14%]";
                    Self { width, chosen_width: 176, hidden: "max-md:hidden", card: "jobs-progress", ..TEXT }
                }
                JobDetail::Requires => Self { width: "w-[20%]", chosen_width: 176, ..TEXT },
                JobDetail::TimeLeft => Self { width: "w-26", chosen_width: 104, hidden: "max-xl:hidden", ..NUMBER },
                JobDetail::Id | JobDetail::Tags => TEXT,
            },
        }
    }

    fn heading_class(self, are_chosen: bool) -> String {
        format!("{} {}", self.number_class(), self.hidden_class(are_chosen))
    }

    fn cell_class(self, are_chosen: bool) -> String {
        format!("{} {} {}", self.number_class(), self.card, self.hidden_class(are_chosen))
    }

    const fn number_class(self) -> &'static str {
        if self.is_number { "num" } else { "" }
    }

    const fn hidden_class(self, are_chosen: bool) -> &'static str {
        if are_chosen { "" } else { self.hidden }
    }
}

fn cell(job: &JobView, column: &JobListColumn, are_chosen: bool) -> AnyView {
    let content = match column {
        JobListColumn::Sortable(JobSortKey::Column(column)) => column_content(job, *column),
        JobListColumn::Sortable(key @ (JobSortKey::Metric(_) | JobSortKey::Config(_))) => {
            value_content(job.values.get(&key.to_string()))
        }
        JobListColumn::Sortable(JobSortKey::Queue) => ().into_erased(),
        JobListColumn::Detail(detail) => detail_content(job, *detail),
    };
    let class = Layout::of(column).cell_class(are_chosen);
    view! { <td role="cell" class=class data-label=column_name(column)>{content}</td> }.into_erased()
}

fn column_content(job: &JobView, column: JobColumn) -> AnyView {
    match column {
        JobColumn::Name => text_content(job.title()),
        JobColumn::Config => text_content(job.numbered_config()),
        JobColumn::Revision => job.config_revision.into_erased(),
        JobColumn::User => {
            let of_user = jobs_url(&JobsQuery { user: Some(job.submitted_by.clone()), ..JobsQuery::default() });
            view! { <a class="quiet-link" href=of_user title=job.submitted_by.clone()>{job.submitted_by.clone()}</a> }
                .into_erased()
        }
        JobColumn::Status => {
            view! { <span class="cell-line"><JobBadge status=job.status/>{status_remark(job)}</span> }.into_erased()
        }
        JobColumn::Worker => view! { <WorkerLink job=job.clone()/> }.into_erased(),
        JobColumn::Gpus => job.gpu_count.map_or_else(none, Erase::into_erased),
        JobColumn::Priority => job.priority.into_erased(),
        JobColumn::Attempts => job.attempt.to_string().into_erased(),
        JobColumn::Submitted => time_content(Some(job.submitted_at)),
        JobColumn::Started => time_content(job.started_at),
        JobColumn::Ended => time_content(job.ended_at),
        JobColumn::Duration => elapsed_content(job),
    }
}

fn detail_content(job: &JobView, detail: JobDetail) -> AnyView {
    match detail {
        JobDetail::Id => {
            let id = job.job_id.to_string();
            view! { <span class="font-mono" title=id.clone()>{short_id(&id)}</span> }.into_erased()
        }
        JobDetail::Tags => tag_chips(&job.tags, MAX_TAGS_IN_ROW),
        JobDetail::Requires => {
            view! { <span class="cell-line"><ResourceRequest job=job.clone()/></span> }.into_erased()
        }
        JobDetail::Progress => view! { <JobProgress job=job.clone()/> }.into_erased(),
        JobDetail::TimeLeft => time_left(job).map_or_else(none, |span| t().format_duration(span).into_erased()),
    }
}

fn none() -> AnyView {
    view! { <span class="text-muted">"–"</span> }.into_erased()
}

fn text_content(text: String) -> AnyView {
    view! { <span class="block truncate" title=text.clone()>{text.clone()}</span> }.into_erased()
}

fn time_content(at: Option<Timestamp>) -> AnyView {
    at.map_or_else(none, |at| view! { <RelativeTime at=at/> }.into_erased())
}

/// The value of a metric or of the configuration.
fn value_content(value: Option<&Value>) -> AnyView {
    match value {
        None => none(),
        Some(Value::Number(number)) => {
            let (exact, number) = (number.to_string(), number.as_f64().unwrap_or(f64::NAN));
            view! { <span title=exact>{t().format_number(number)}</span> }.into_erased()
        }
        Some(Value::String(text)) => text_content(text.clone()),
        Some(other) => text_content(other.to_string()),
    }
}

/// How long a job has waited, has run, or ran.
fn elapsed_content(job: &JobView) -> AnyView {
    match (job.started_at, job.status.is_in_phase(JobPhase::Waiting)) {
        (Some(from), false) => {
            let left = time_left(job).map(|span| t().work.left.of(t().format_duration(span)));
            view! { <span title=left><Elapsed from=from until=job.ended_at/></span> }.into_erased()
        }
        (_, true) => view! { <span title=t().work.waits_since><Elapsed from=job.submitted_at/></span> }.into_erased(),
        (None, false) => none(),
    }
}

/// The trainer's estimate of a running job.
fn time_left(job: &JobView) -> Option<Millis> {
    let seconds = job.progress.as_ref().filter(|_| job.status == JobStatus::Running).and_then(|p| p.eta_seconds)?;
    #[expect(clippy::cast_possible_truncation, reason = "an estimate in whole seconds; a float saturates")]
    let seconds = seconds as i64;
    Some(Millis::from_secs(seconds))
}
