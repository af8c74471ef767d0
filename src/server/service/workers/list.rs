//! The list of workers. The page is selected in memory; only the page's workers become views.

use std::cmp::Ordering;
use std::sync::Arc;

use app::domain::allowed_values::AllowedValues;
use app::domain::job::Job;
use app::domain::worker::{Worker, WorkerState};
use app::domain::worker_search::SearchableWorker;
use app::domain::worker_search::facets::{FacetChoice, FacetCounts};
use app::domain::worker_search::order::{WorkerOrder, WorkerPosition, WorkerSortKey};
use app::domain::worker_search::query::{
    SearchTerm, TextPattern, WorkerFilter, WorkerSearchQuery, WorkerSearchStatus, unescape_glob,
};
use app::protocol::status::{FacetKind, WorkerStatus};
use app::protocol::workers::{FleetLabels, WorkerCounts, WorkerFacet, WorkerView, WorkersPage, WorkersQuery};

use crate::service::access::Principal;
use crate::service::context::presence::last_seen;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::workers::WorkerService;
use crate::service::workers::views::{HeldJobs, load_held_jobs, worker_status};
use crate::store::cache::state::FleetState;
use crate::store::workers::StoredWorker;

/// The maximum number of models, labels and versions offered as filters: the most frequent ones.
const MAX_FACET_CHOICES: usize = 12;

/// A worker with its leases.
pub struct WorkerListRow {
    pub stored: Arc<StoredWorker>,
    /// The jobs that hold a lease on it.
    pub jobs: Vec<Arc<Job>>,
}

impl WorkerListRow {
    /// Loads all workers, by id. It clones handles only, because it blocks commits.
    pub fn load_all(fleet_state: &FleetState) -> Vec<Self> {
        let row = |stored: &Arc<StoredWorker>| Self {
            stored: Arc::clone(stored),
            jobs: fleet_state.jobs_on_worker(&stored.worker.id),
        };
        fleet_state.workers().map(row).collect()
    }

    pub fn worker(&self) -> &Worker {
        &self.stored.worker
    }

    fn status(&self) -> WorkerState {
        self.worker().state(self.jobs.len())
    }

    fn gpus(&self) -> usize {
        self.worker().capability().map_or(0, |capability| capability.gpus.len())
    }
}

impl WorkerService {
    /// Returns the list of workers, with what the user may see.
    pub async fn workers_page(&self, principal: &Principal, query: &WorkersQuery) -> Result<WorkersPage, ServiceError> {
        let (order, search) = (parse_order(query)?, parse_query(query)?);
        principal.check_search_query(&search)?;
        let mut tx = self.context.read_recent().await?;
        let rows = tx.with_state(WorkerListRow::load_all).await?;
        let counts = worker_counts(&rows);
        let mut facets = FacetCounts::default();
        let matching = rows.iter().filter(|row| {
            let entry = self.searchable(row);
            if query.facets { facets.add(&entry, &search) } else { entry.matches(&search) }
        });
        let mut sorted: Vec<(WorkerPosition<'_>, &WorkerListRow)> =
            matching.map(|row| (self.sort_position(row, order), row)).collect();
        let mut choices = if query.facets { facets.choices(&search, MAX_FACET_CHOICES) } else { Vec::new() };
        choices.retain(|choice| principal.can_administer() || !matches!(choice.filter, WorkerFilter::Tls(_)));
        sorted.sort_unstable_by(|(left, _), (right, _)| order.compare(*left, *right));
        let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
        let range = PageRange::after_cursor(&sorted, order, query.cursor.as_deref(), limit);
        let page_rows = &sorted[range.first..range.end];
        let jobs: Vec<&Job> = page_rows.iter().flat_map(|(_, row)| row.jobs.iter().map(Arc::as_ref)).collect();
        let mut held = load_held_jobs(&mut *tx, &jobs).await?;
        Ok(WorkersPage {
            workers: page_rows
                .iter()
                .map(|(_, row)| principal.redact_worker(self.worker_row_view(row, &mut held)))
                .collect(),
            total: sorted.len() as u64,
            before: range.first as u64,
            counts,
            q: search.to_string(),
            facets: choices.into_iter().map(facet_view).collect(),
            previous_cursor: range.previous,
            next_cursor: range.next,
            server_time: self.context.now(),
        })
    }

    /// Returns the labels of all workers, by key.
    pub async fn fleet_labels(&self) -> Result<FleetLabels, ServiceError> {
        let rows = self.context.read_recent().await?.with_state(WorkerListRow::load_all).await?;
        let local = rows.iter().any(|row| row.worker().local);
        let mut labels = FleetLabels { local, ..FleetLabels::default() };
        for (key, value) in rows.iter().flat_map(|row| self.searchable(row).labels()) {
            let values = labels.labels.entry(key.to_owned()).or_default();
            if !values.contains(value) {
                values.insert(value.to_owned());
            }
        }
        Ok(labels)
    }

    pub(in crate::service) fn worker_row_view(&self, row: &WorkerListRow, held: &mut HeldJobs) -> WorkerView {
        self.worker_view(&row.stored, held.remove(&row.worker().id).unwrap_or_default())
    }

    fn sort_position<'r>(&self, row: &'r WorkerListRow, order: WorkerOrder) -> WorkerPosition<'r> {
        let sort_value = match order.key {
            WorkerSortKey::Name => 0,
            WorkerSortKey::Status => status_rank(row.status()),
            WorkerSortKey::Seen => last_seen(&self.context, &row.stored).map_or(-1, |at| at.0),
            WorkerSortKey::Gpus => i64::try_from(row.gpus()).unwrap_or(i64::MAX),
        };
        WorkerPosition { sort_value, name: &row.worker().name }
    }

    pub(in crate::service) fn searchable<'r>(&self, row: &'r WorkerListRow) -> SearchableWorker<'r> {
        let worker = row.worker();
        let use_reported_labels = !(self.context.policy.ignore_reported_labels || worker.ignores_reported_labels);
        SearchableWorker { worker, state: row.status(), use_reported_labels }
    }
}

/// Combines the parameters into one search query.
fn parse_query(query: &WorkersQuery) -> Result<WorkerSearchQuery, ServiceError> {
    let mut search = WorkerSearchQuery::parse(query.q.as_deref().unwrap_or_default()).map_err(InvalidInput::Search)?;
    let label = query.label.as_deref().map(|label| {
        let (key, glob) = label.split_once('=').unwrap_or((label, "*"));
        WorkerFilter::Label { key: key.to_owned(), value: TextPattern::Exact(glob.to_owned()) }
    });
    let filters = query.status.map(|status| WorkerFilter::Status(search_status(status))).into_iter().chain(label);
    for term in filters.map(|filter| SearchTerm { negated: false, filter }) {
        if !search.0.contains(&term) {
            search.0.push(term);
        }
    }
    Ok(search)
}

fn search_status(status: WorkerStatus) -> WorkerSearchStatus {
    match status {
        WorkerStatus::Connecting => WorkerSearchStatus::Connecting,
        WorkerStatus::Idle => WorkerSearchStatus::Idle,
        WorkerStatus::Busy => WorkerSearchStatus::Busy,
        WorkerStatus::Draining => WorkerSearchStatus::Draining,
        WorkerStatus::Offline => WorkerSearchStatus::Offline,
    }
}

fn facet_view(choice: FacetChoice) -> WorkerFacet {
    let text = |pattern: TextPattern| match pattern {
        TextPattern::Exact(glob) => unescape_glob(&glob),
        TextPattern::Partial(text) => text,
    };
    let (about, value) = match choice.filter {
        WorkerFilter::Status(status) => (FacetKind::Status, status.as_str().to_owned()),
        WorkerFilter::Kind(kind) => (FacetKind::Type, kind.as_str().to_owned()),
        WorkerFilter::Gpu(model) => (FacetKind::Gpu, text(model)),
        WorkerFilter::Version(version) => (FacetKind::Version, text(version)),
        WorkerFilter::Label { key, value } => (FacetKind::Label, format!("{key}={}", text(value))),
        WorkerFilter::Tls(on) => (FacetKind::Tls, if on { "on" } else { "off" }.to_owned()),
        WorkerFilter::Any(pattern)
        | WorkerFilter::Host(pattern)
        | WorkerFilter::Name(pattern)
        | WorkerFilter::Id(pattern) => {
            unreachable!("nothing is counted by {pattern:?}")
        }
    };
    WorkerFacet { about, value, count: choice.count, chosen: choice.is_selected, q: choice.toggled_query.to_string() }
}

fn parse_order(query: &WorkersQuery) -> Result<WorkerOrder, ServiceError> {
    let unknown = InvalidInput::OutOfRange { field: "sort", allowed: AllowedValues::Order };
    query.sort.as_deref().map_or(Ok(WorkerOrder::default()), |text| WorkerOrder::parse(text).ok_or(unknown.into()))
}

/// The order of states.
fn status_rank(status: WorkerState) -> i64 {
    match status {
        WorkerState::Connecting => 0,
        WorkerState::Idle => 1,
        WorkerState::Busy => 2,
        WorkerState::Draining => 3,
        WorkerState::Offline => 4,
    }
}

/// A page of a list.
pub(in crate::service) struct PageRange {
    pub first: usize,
    pub end: usize,
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl PageRange {
    /// Returns the page after a cursor.
    pub fn after_cursor(
        sorted: &[(WorkerPosition<'_>, &WorkerListRow)],
        order: WorkerOrder,
        cursor: Option<&str>,
        limit: usize,
    ) -> Self {
        let after = cursor.filter(|cursor| !cursor.is_empty()).and_then(|cursor| WorkerPosition::parse(order, cursor));
        let is_before_page = |position: WorkerPosition<'_>| {
            after.is_some_and(|after| order.compare(position, after) != Ordering::Greater)
        };
        let first = sorted.partition_point(|(position, _)| is_before_page(*position));
        let end = first.saturating_add(limit).min(sorted.len());
        let last_before = |index: usize| index.checked_sub(1).map(|last| sorted[last].0.to_cursor(order));
        Self {
            first,
            end,
            previous: (first > 0).then(|| last_before(first.saturating_sub(limit)).unwrap_or_default()),
            next: if end < sorted.len() { last_before(end) } else { None },
        }
    }
}

fn worker_counts(rows: &[WorkerListRow]) -> WorkerCounts {
    let mut counts = WorkerCounts::default();
    for row in rows {
        counts.add(worker_status(row.status()));
    }
    counts
}
