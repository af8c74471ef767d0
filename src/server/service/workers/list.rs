//! The list of workers. The page is selected in memory; only the page's workers become views.

use std::cmp::Ordering;

use app::domain::allowed_values::AllowedValues;
use app::domain::search_terms::{TextPattern, unescape_glob};
use app::domain::worker::WorkerState;
use app::domain::worker_search::SearchableWorker;
use app::domain::worker_search::facets::{FacetChoice, FacetCounts};
use app::domain::worker_search::order::{WorkerOrder, WorkerPosition, WorkerSortKey};
use app::domain::worker_search::query::{WorkerFilter, WorkerSearchQuery, WorkerSearchStatus};
use app::protocol::status::{FacetKind, WorkerStatus};
use app::protocol::workers::{FleetLabels, WorkerCounts, WorkerFacet, WorkerView, WorkersPage, WorkersQuery};
use itertools::Itertools;

use crate::service::access::Principal;
use crate::service::context::presence::last_seen;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::workers::WorkerService;
use crate::service::workers::views::{HeldJobs, load_jobs_of_workers, worker_status};
use crate::store::cache::fleet_worker::FleetWorker;
use crate::store::cache::state::FleetState;

/// The maximum number of models, labels and versions offered as filters: the most frequent ones.
const MAX_FACET_CHOICES: usize = 12;

impl WorkerService {
    /// Returns the list of workers, with what the user may see.
    pub async fn workers_page(&self, principal: &Principal, query: &WorkersQuery) -> Result<WorkersPage, ServiceError> {
        let (order, search) = (parse_order(query)?, parse_query(query)?);
        principal.check_search_query(&search)?;
        let mut tx = self.context.read_recent().await?;
        let select = |fleet_state: &FleetState| self.select_workers(fleet_state, query, &search, order);
        let SelectedWorkers { page, counts, mut choices } = tx.with_state(select).await?;
        choices.retain(|choice| principal.can_administer() || !matches!(choice.filter, WorkerFilter::Tls(_)));
        let mut held = load_jobs_of_workers(&mut *tx, &page.rows).await?;
        let view = |row| principal.redact_worker(self.worker_row_view(row, &mut held));
        Ok(WorkersPage {
            workers: page.rows.iter().map(view).collect(),
            total: page.total,
            before: page.before,
            counts,
            q: search.to_string(),
            facets: choices.into_iter().map(facet_view).collect(),
            previous_cursor: page.previous,
            next_cursor: page.next,
            server_time: self.context.now(),
        })
    }

    /// Selects without copying all workers, because it blocks commits.
    fn select_workers(
        &self,
        fleet_state: &FleetState,
        query: &WorkersQuery,
        search: &WorkerSearchQuery,
        order: WorkerOrder,
    ) -> SelectedWorkers {
        let (mut counts, mut facets) = (WorkerCounts::default(), FacetCounts::default());
        let mut matching = Vec::new();
        for row in fleet_state.workers() {
            counts.add(worker_status(row.state));
            let entry = self.searchable(row);
            let is_match = if query.facets { facets.add(&entry, search) } else { entry.matches(search) };
            if is_match {
                matching.push((self.sort_position(row, order), row));
            }
        }
        let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
        let page = ListPage::select(matching, order, query.cursor.as_deref(), limit).map(FleetWorker::clone);
        let choices = if query.facets { facets.choices(search, MAX_FACET_CHOICES) } else { Vec::new() };
        SelectedWorkers { page, counts, choices }
    }

    /// Returns the labels of all workers, by key.
    pub async fn fleet_labels(&self) -> Result<FleetLabels, ServiceError> {
        Ok(self.context.read_recent().await?.with_state(|fleet_state| self.collect_labels(fleet_state)).await?)
    }

    fn collect_labels(&self, fleet_state: &FleetState) -> FleetLabels {
        let local = fleet_state.workers().any(|row| row.worker().local);
        let mut labels = FleetLabels { local, ..FleetLabels::default() };
        for (key, value) in fleet_state.workers().flat_map(|row| self.searchable(row).labels()) {
            if labels.labels.get(key).is_some_and(|values| values.contains(value)) {
                continue;
            }
            labels.labels.entry(key.to_owned()).or_default().insert(value.to_owned());
        }
        labels
    }

    pub(in crate::service) fn worker_row_view(&self, row: &FleetWorker, held: &mut HeldJobs) -> WorkerView {
        self.worker_view(&row.stored, held.remove(&row.worker().id).unwrap_or_default())
    }

    fn sort_position<'r>(&self, row: &'r FleetWorker, order: WorkerOrder) -> WorkerPosition<'r> {
        let sort_value = match order.key {
            WorkerSortKey::Name => 0,
            WorkerSortKey::Status => status_rank(row.state),
            WorkerSortKey::Seen => last_seen(&self.context, &row.stored).map_or(-1, |at| at.0),
            WorkerSortKey::Gpus => row.gpus.iter().map(|(_, count)| i64::from(count)).sum(),
        };
        WorkerPosition { sort_value, name: &row.worker().name }
    }

    pub(in crate::service) fn searchable<'r>(&self, row: &'r FleetWorker) -> SearchableWorker<'r> {
        let worker = row.worker();
        let use_reported_labels = !(self.context.policy.ignore_reported_labels || worker.ignores_reported_labels);
        SearchableWorker { worker, state: row.state, use_reported_labels }
    }
}

/// Combines the parameters into one search query.
fn parse_query(query: &WorkersQuery) -> Result<WorkerSearchQuery, ServiceError> {
    let mut search = WorkerSearchQuery::parse(query.q.as_deref().unwrap_or_default()).map_err(InvalidInput::Search)?;
    let label = query.label.as_deref().map(|label| {
        let (key, glob) = label.split_once('=').unwrap_or((label, "*"));
        WorkerFilter::Label { key: key.to_owned(), value: TextPattern::Exact(glob.to_owned()) }
    });
    let status = query.status.map(|status| WorkerFilter::Status(search_status(status)));
    status.into_iter().chain(label).for_each(|filter| search.require(filter));
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

/// The workers of a page, and what is counted over all workers.
struct SelectedWorkers {
    page: ListPage<FleetWorker>,
    counts: WorkerCounts,
    choices: Vec<FacetChoice>,
}

/// A page of a list.
pub(in crate::service) struct ListPage<T> {
    pub rows: Vec<T>,
    /// The length of the list.
    pub total: u64,
    /// The number of rows before this page.
    pub before: u64,
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl<T> ListPage<T> {
    /// Selects the page after a cursor, without sorting the rest of the list.
    pub fn select(rows: Vec<(WorkerPosition<'_>, T)>, order: WorkerOrder, cursor: Option<&str>, limit: usize) -> Self {
        let after = cursor.filter(|cursor| !cursor.is_empty()).and_then(|cursor| WorkerPosition::parse(order, cursor));
        let is_before_page = |position: WorkerPosition<'_>| {
            after.is_some_and(|after| order.compare(position, after) != Ordering::Greater)
        };
        let (before, rest): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(position, _)| is_before_page(*position));
        // The previous page starts after the row before its first one.
        let (number_before, number_of_rest) = (before.len(), rest.len());
        let positions_before = before.into_iter().map(|(position, _)| position);
        let mut last_before = positions_before.k_largest_by(limit.saturating_add(1), |a, b| order.compare(*a, *b));
        let previous = (number_before > 0)
            .then(|| last_before.nth(limit).map(|position| position.to_cursor(order)).unwrap_or_default());
        let page: Vec<_> = rest.into_iter().k_smallest_by(limit, |(a, _), (b, _)| order.compare(*a, *b)).collect();
        let last = page.last().filter(|_| number_of_rest > limit);
        let next = last.map(|(position, _)| position.to_cursor(order));
        let rows = page.into_iter().map(|(_, row)| row).collect();
        Self { rows, total: (number_before + number_of_rest) as u64, before: number_before as u64, previous, next }
    }

    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> ListPage<U> {
        let Self { rows, total, before, previous, next } = self;
        ListPage { rows: rows.into_iter().map(convert).collect(), total, before, previous, next }
    }
}
