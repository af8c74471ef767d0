//! The list of workers. Who is on a page is decided on what lives in memory; only the page's workers become views.

use std::cmp::Ordering;
use std::sync::Arc;

use app::domain::job::Job;
use app::domain::roster::Entry;
use app::domain::roster::facets::{Choice, Facets};
use app::domain::roster::order::{By, Order, Place};
use app::domain::roster::query::{Pattern, Query, Standing, Term, Test, plain};
use app::domain::worker::{Status, Worker};
use app::protocol::status::{FacetKind, WorkerStatus};
use app::protocol::workers::{FleetLabels, WorkerCounts, WorkerFacet, WorkerView, WorkersPage, WorkersQuery};

use super::workers::{Held, held, status};
use crate::service::Core;
use crate::service::presence::last_seen;
use crate::service::refusal::{Invalid, Refusal};
use crate::store::known::Known;
use crate::store::workers::StoredWorker;

/// Of models, labels and versions so many are offered to narrow the list by: the most frequent.
const MOST_CHOICES: usize = 12;

/// A worker with what it holds.
pub struct Row {
    /// The worker.
    pub stored: Arc<StoredWorker>,
    /// The jobs that hold a lease on it.
    pub jobs: Vec<Arc<Job>>,
}

impl Row {
    /// All of them, by id. It takes handles only: nobody can commit meanwhile.
    pub fn all(known: &Known) -> Vec<Self> {
        let row =
            |stored: &Arc<StoredWorker>| Self { stored: Arc::clone(stored), jobs: known.held_by(&stored.worker.id) };
        known.workers().map(row).collect()
    }

    /// The worker, without what belongs to its token.
    pub fn worker(&self) -> &Worker {
        &self.stored.worker
    }

    fn status(&self) -> Status {
        self.worker().status(self.jobs.len())
    }

    fn gpus(&self) -> usize {
        self.worker().capability().map_or(0, |capability| capability.gpus.len())
    }
}

impl Core {
    /// The list of workers.
    pub async fn workers_page(&self, query: &WorkersQuery) -> Result<WorkersPage, Refusal> {
        let (order, question) = (order(query)?, question(query)?);
        let mut tx = self.recent().await?;
        let rows = tx.see(Row::all).await?;
        let counts = counts(&rows);
        let mut facets = Facets::default();
        let fitting = rows.iter().filter(|row| {
            let entry = self.entry(row);
            if query.facets { facets.take(&entry, &question) } else { entry.fits(&question) }
        });
        let mut sorted: Vec<(Place<'_>, &Row)> = fitting.map(|row| (self.place(row, order), row)).collect();
        let choices = if query.facets { facets.choices(&question, MOST_CHOICES) } else { Vec::new() };
        sorted.sort_unstable_by(|(left, _), (right, _)| order.compare(*left, *right));
        let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
        let cut = Cut::of(&sorted, order, query.cursor.as_deref(), limit);
        let shown = &sorted[cut.first..cut.end];
        let jobs: Vec<&Job> = shown.iter().flat_map(|(_, row)| row.jobs.iter().map(Arc::as_ref)).collect();
        let mut held = held(&mut *tx, &jobs).await?;
        Ok(WorkersPage {
            workers: shown.iter().map(|(_, row)| self.row_view(row, &mut held)).collect(),
            total: sorted.len() as u64,
            before: cut.first as u64,
            counts,
            q: question.to_string(),
            facets: choices.into_iter().map(facet_view).collect(),
            previous_cursor: cut.previous,
            next_cursor: cut.next,
            server_time: self.now(),
        })
    }

    /// The labels that workers have, by key.
    pub async fn fleet_labels(&self) -> Result<FleetLabels, Refusal> {
        let rows = self.recent().await?.see(Row::all).await?;
        let local = rows.iter().any(|row| row.worker().local);
        let mut labels = FleetLabels { local, ..FleetLabels::default() };
        for (key, value) in rows.iter().flat_map(|row| self.entry(row).labels()) {
            let values = labels.labels.entry(key.to_owned()).or_default();
            if !values.contains(value) {
                values.insert(value.to_owned());
            }
        }
        Ok(labels)
    }

    pub(super) fn row_view(&self, row: &Row, held: &mut Held) -> WorkerView {
        self.worker_view(&row.stored, held.remove(&row.worker().id).unwrap_or_default())
    }

    fn place<'r>(&self, row: &'r Row, order: Order) -> Place<'r> {
        let worth = match order.by {
            By::Name => 0,
            By::Status => rank(row.status()),
            By::Seen => last_seen(self, &row.stored).map_or(-1, |seen| seen.0),
            By::Gpus => i64::try_from(row.gpus()).unwrap_or(i64::MAX),
        };
        Place { worth, name: &row.worker().name }
    }

    pub(super) fn entry<'r>(&self, row: &'r Row) -> Entry<'r> {
        let worker = row.worker();
        let reported = !(self.policy.ignore_reported_labels || worker.ignores_reported);
        Entry { worker, status: row.status(), reported }
    }
}

/// What is asked, in one question.
fn question(query: &WorkersQuery) -> Result<Query, Refusal> {
    let mut question = Query::parse(query.q.as_deref().unwrap_or_default()).map_err(Invalid::Search)?;
    let label = query.label.as_deref().map(|label| {
        let (key, glob) = label.split_once('=').unwrap_or((label, "*"));
        Test::Label { key: key.to_owned(), value: Pattern::Whole(glob.to_owned()) }
    });
    let tests = query.status.map(|status| Test::Status(standing(status))).into_iter().chain(label);
    for term in tests.map(|test| Term { negated: false, test }) {
        if !question.0.contains(&term) {
            question.0.push(term);
        }
    }
    Ok(question)
}

fn standing(status: WorkerStatus) -> Standing {
    match status {
        WorkerStatus::Connecting => Standing::Connecting,
        WorkerStatus::Idle => Standing::Idle,
        WorkerStatus::Busy => Standing::Busy,
        WorkerStatus::Draining => Standing::Draining,
        WorkerStatus::Offline => Standing::Offline,
    }
}

fn facet_view(choice: Choice) -> WorkerFacet {
    let text = |pattern: Pattern| match pattern {
        Pattern::Whole(glob) => plain(&glob),
        Pattern::Part(text) => text,
    };
    let (about, value) = match choice.test {
        Test::Status(standing) => (FacetKind::Status, standing.as_str().to_owned()),
        Test::Kind(kind) => (FacetKind::Type, kind.as_str().to_owned()),
        Test::Gpu(model) => (FacetKind::Gpu, text(model)),
        Test::Version(version) => (FacetKind::Version, text(version)),
        Test::Label { key, value } => (FacetKind::Label, format!("{key}={}", text(value))),
        Test::Tls(on) => (FacetKind::Tls, if on { "on" } else { "off" }.to_owned()),
        Test::Any(pattern) | Test::Host(pattern) | Test::Name(pattern) | Test::Id(pattern) => {
            unreachable!("nothing is counted by {pattern:?}")
        }
    };
    WorkerFacet { about, value, count: choice.count, chosen: choice.chosen, q: choice.turned.to_string() }
}

fn order(query: &WorkersQuery) -> Result<Order, Refusal> {
    let unknown = Invalid::Range { field: "sort", allowed: "name, status, seen or gpus, with - before it or not" };
    query.sort.as_deref().map_or(Ok(Order::default()), |word| Order::parse(word).ok_or(unknown.into()))
}

/// In the order of a life.
fn rank(status: Status) -> i64 {
    match status {
        Status::Connecting => 0,
        Status::Idle => 1,
        Status::Busy => 2,
        Status::Draining => 3,
        Status::Offline => 4,
    }
}

/// A page of a list.
pub(super) struct Cut {
    pub first: usize,
    pub end: usize,
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl Cut {
    /// So many after a place.
    pub fn of(sorted: &[(Place<'_>, &Row)], order: Order, cursor: Option<&str>, limit: usize) -> Self {
        let after = cursor.filter(|cursor| !cursor.is_empty()).and_then(|cursor| Place::parse(order, cursor));
        let comes_first =
            |place: Place<'_>| after.is_some_and(|after| order.compare(place, after) != Ordering::Greater);
        let first = sorted.partition_point(|(place, _)| comes_first(*place));
        let end = first.saturating_add(limit).min(sorted.len());
        let last_before = |index: usize| index.checked_sub(1).map(|last| sorted[last].0.cursor(order));
        Self {
            first,
            end,
            previous: (first > 0).then(|| last_before(first.saturating_sub(limit)).unwrap_or_default()),
            next: if end < sorted.len() { last_before(end) } else { None },
        }
    }
}

fn counts(rows: &[Row]) -> WorkerCounts {
    let mut counts = WorkerCounts::default();
    for row in rows {
        counts.add(status(row.status()));
    }
    counts
}
