//! The list of workers. Who is on a page is decided on what lives in memory; only the page's workers become views.

use std::cmp::Ordering;
use std::sync::Arc;

use app::domain::glob;
use app::domain::job::Job;
use app::domain::labels::Labels;
use app::domain::roster::order::{By, Order, Place};
use app::domain::worker::{Link, Status, Worker};
use app::protocol::status::WorkerStatus;
use app::protocol::workers::{FleetCounts, FleetLabels, WorkerCounts, WorkerView, WorkersPage, WorkersQuery};

use super::workers::{Held, gpu_views, held, status};
use crate::service::Core;
use crate::service::agents::last_seen;
use crate::service::refusal::{Invalid, Refusal};
use crate::store::known::Known;
use crate::store::workers::StoredWorker;

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

    fn worker(&self) -> &Worker {
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
        let order = order(query)?;
        let mut tx = self.recent().await?;
        let rows = tx.see(Row::all).await?;
        let (counts, fleet) = (counts(&rows), fleet(&rows));
        let fitting = rows.iter().filter(|row| self.fits(row, query));
        let mut sorted: Vec<(Place<'_>, &Row)> = fitting.map(|row| (self.place(row, order), row)).collect();
        sorted.sort_unstable_by(|(left, _), (right, _)| order.compare(*left, *right));
        let cut = cut(&sorted, order, query);
        let shown = &sorted[cut.first..cut.end];
        let jobs: Vec<&Job> = shown.iter().flat_map(|(_, row)| row.jobs.iter().map(Arc::as_ref)).collect();
        let mut held = held(&mut *tx, &jobs).await?;
        Ok(WorkersPage {
            workers: shown.iter().map(|(_, row)| self.row_view(row, query, &mut held)).collect(),
            total: sorted.len() as u64,
            before: cut.first as u64,
            counts,
            fleet,
            previous_cursor: cut.previous,
            next_cursor: cut.next,
            server_time: self.now(),
        })
    }

    /// The labels that workers have, by key.
    pub async fn fleet_labels(&self) -> Result<FleetLabels, Refusal> {
        let rows = self.recent().await?.see(Row::all).await?;
        let mut labels = FleetLabels::default();
        for (key, value) in rows.iter().flat_map(|row| self.labels(row.worker())) {
            let values = labels.labels.entry(key.to_owned()).or_default();
            if !values.contains(value) {
                values.insert(value.to_owned());
            }
        }
        Ok(labels)
    }

    fn row_view(&self, row: &Row, query: &WorkersQuery, held: &mut Held) -> WorkerView {
        let worker = row.worker();
        let view = self.worker_view(&row.stored, held.remove(&worker.id).unwrap_or_default());
        if !query.gpus {
            return view;
        }
        let readings = self.readings.look_at_all(&worker.id, self.now());
        let jobs: Vec<&Job> = row.jobs.iter().map(Arc::as_ref).collect();
        let mut gpus = gpu_views(worker, &jobs, readings);
        let mut lately = query.lately.map(|range| self.lately(&worker.id, range)).unwrap_or_default();
        for gpu in &mut gpus {
            gpu.lately = lately.remove(&gpu.gpu.uuid).unwrap_or_default();
        }
        WorkerView { gpus, ..view }
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

    /// The labels of a worker that count.
    fn labels<'w>(&self, worker: &'w Worker) -> impl Iterator<Item = (&'w str, &'w str)> + use<'w> {
        let counts = !(self.policy.ignore_reported_labels || worker.ignores_reported);
        let reported = worker.capability().filter(|_| counts).map(|capability| &capability.labels);
        let more = reported.into_iter().flat_map(|labels| &labels.0);
        let own: &Labels = &worker.labels;
        let pairs = own.0.iter().chain(more.filter(|(key, _)| !own.0.contains_key(*key)));
        pairs.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn fits(&self, row: &Row, query: &WorkersQuery) -> bool {
        let worker = row.worker();
        let needle = query.q.as_deref().unwrap_or_default().trim().to_lowercase();
        let contains = |text: &str| text.to_lowercase().contains(&needle);
        let gpu = worker.capability().and_then(|capability| capability.gpus.first());
        let found = needle.is_empty()
            || contains(&worker.name)
            || contains(worker.id.as_str())
            || gpu.is_some_and(|gpu| contains(&gpu.name))
            || self.labels(worker).any(|(key, value)| contains(&format!("{key}={value}")));
        let labelled = |label: &str| {
            let (wanted_key, wanted) = label.split_once('=').unwrap_or((label, "*"));
            self.labels(worker).any(|(key, value)| key == wanted_key && glob::matches(wanted, value))
        };
        found
            && query.label.as_deref().is_none_or(labelled)
            && query.status.is_none_or(|wanted| status(row.status()) == wanted)
    }
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
struct Cut {
    first: usize,
    end: usize,
    previous: Option<String>,
    next: Option<String>,
}

fn cut(sorted: &[(Place<'_>, &Row)], order: Order, query: &WorkersQuery) -> Cut {
    let after = query.cursor.as_deref().filter(|cursor| !cursor.is_empty());
    let after = after.and_then(|cursor| Place::parse(order, cursor));
    let comes_first = |place: Place<'_>| after.is_some_and(|after| order.compare(place, after) != Ordering::Greater);
    let first = sorted.partition_point(|(place, _)| comes_first(*place));
    let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
    let end = first.saturating_add(limit).min(sorted.len());
    let last_before = |index: usize| index.checked_sub(1).map(|last| sorted[last].0.cursor(order));
    Cut {
        first,
        end,
        previous: (first > 0).then(|| last_before(first.saturating_sub(limit)).unwrap_or_default()),
        next: if end < sorted.len() { last_before(end) } else { None },
    }
}

fn counts(rows: &[Row]) -> WorkerCounts {
    let mut counts = WorkerCounts::default();
    for row in rows {
        *match status(row.status()) {
            WorkerStatus::Connecting => &mut counts.connecting,
            WorkerStatus::Idle => &mut counts.idle,
            WorkerStatus::Busy => &mut counts.busy,
            WorkerStatus::Draining => &mut counts.draining,
            WorkerStatus::Offline => &mut counts.offline,
        } += 1;
    }
    counts
}

fn fleet(rows: &[Row]) -> FleetCounts {
    let there = || rows.iter().filter(|row| row.status() != Status::Offline);
    let leases = there().flat_map(|row| &row.jobs).filter_map(|job| job.live_lease());
    FleetCounts {
        contacted: rows.iter().filter(|row| !matches!(row.worker().link, Link::NeverSeen)).count() as u64,
        gpus: there().map(Row::gpus).sum::<usize>() as u64,
        gpus_held: leases.map(|lease| lease.gpus.len()).sum::<usize>() as u64,
    }
}
