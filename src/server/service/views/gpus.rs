//! GPUs as clients see them: where each stands, and those of the fleet, by worker.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use app::domain::gpu::{Gpu, Standing, WithheldReason};
use app::domain::job::Job;
use app::domain::roster::order::{Order, Place};
use app::domain::roster::query::Query;
use app::domain::worker::Worker;
use app::protocol::gpu::{GpuView, Reading};
use app::protocol::gpus::{GpuCounts, GpuGroup, GpusPage, GpusQuery};
use app::protocol::status::GpuState;
use app::protocol::workers::WorkerView;

use super::roster::{Cut, Row};
use super::workers::{Held, held};
use crate::service::Core;
use crate::service::gpus::shown;
use crate::service::refusal::{Invalid, Refusal};

/// If nothing is said, a page is about so many workers.
const WORKERS: u32 = 50;

impl Core {
    /// The GPUs of the fleet.
    pub async fn gpus_page(&self, query: &GpusQuery) -> Result<GpusPage, Refusal> {
        let question = Query::parse(query.q.as_deref().unwrap_or_default()).map_err(Invalid::Search)?;
        let key = query.group.as_deref().map(label_key).transpose()?;
        let mut tx = self.recent().await?;
        let rows = tx.see(Row::all).await?;
        let label_keys: BTreeSet<&str> =
            rows.iter().flat_map(|row| self.entry(row).labels()).map(|(key, _)| key).collect();
        let mut counts = GpuCounts::default();
        let mut groups: HashMap<Option<&str>, GpuGroup> = HashMap::new();
        let mut named: Vec<(String, &Row)> = Vec::new();
        for row in rows.iter().filter(|row| self.entry(row).fits(&question)) {
            let (mut has_such, value) = (false, key.and_then(|key| self.value(row, key)));
            let group = groups.entry(value).or_default();
            for (_, state) in states(row.worker(), &row.jobs) {
                counts.add(state);
                group.counts.add(state);
                has_such |= is_asked(query, state);
            }
            if has_such {
                group.total += 1;
                named.push((place(key.is_some(), value, &row.worker().name), row));
            }
        }
        let order = Order::default();
        let mut sorted: Vec<(Place<'_>, &Row)> =
            named.iter().map(|(name, row)| (Place { worth: 0, name }, *row)).collect();
        sorted.sort_unstable_by(|(left, _), (right, _)| order.compare(*left, *right));
        let limit = query.limit.unwrap_or(WORKERS).max(1) as usize;
        let cut = Cut::of(&sorted, order, query.cursor.as_deref(), limit);
        let shown = &sorted[cut.first..cut.end];
        let jobs: Vec<&Job> = shown.iter().flat_map(|(_, row)| row.jobs.iter().map(Arc::as_ref)).collect();
        let mut held = held(&mut *tx, &jobs).await?;
        let alike = key.into_iter().flat_map(|key| {
            shown
                .chunk_by(move |(_, left), (_, right)| self.value(left, key) == self.value(right, key))
                .map(move |some| (some.first().and_then(|(_, row)| self.value(row, key)), some.len() as u64))
        });
        let groups = alike.filter_map(|(value, shown)| {
            let group = groups.remove(&value)?;
            Some(GpuGroup { value: value.map(str::to_owned), shown, ..group })
        });
        Ok(GpusPage {
            workers: shown.iter().map(|(_, row)| self.with_gpus(row, query, &mut held)).collect(),
            total: sorted.len() as u64,
            before: cut.first as u64,
            counts,
            groups: groups.collect(),
            label_keys: label_keys.into_iter().map(str::to_owned).collect(),
            previous_cursor: cut.previous,
            next_cursor: cut.next,
            server_time: self.now(),
        })
    }

    fn value<'r>(&self, row: &'r Row, key: &str) -> Option<&'r str> {
        let entry = self.entry(row);
        entry.worker.label(key, entry.reported)
    }

    fn with_gpus(&self, row: &Row, query: &GpusQuery, held: &mut Held) -> WorkerView {
        let worker = row.worker();
        let mut gpus = gpu_views(worker, &row.jobs, self.readings.look_at_all(&worker.id, self.now()));
        gpus.retain(|gpu| is_asked(query, gpu.state));
        let mut lately = query.lately.map(|range| self.lately(&worker.id, range)).unwrap_or_default();
        for gpu in &mut gpus {
            gpu.lately = lately.remove(&gpu.gpu.uuid).unwrap_or_default();
        }
        WorkerView { gpus, ..self.row_view(row, held) }
    }
}

/// The key in a `group`.
fn label_key(group: &str) -> Result<&str, Refusal> {
    let unknown = Invalid::Range { field: "group", allowed: "`label.` with the key of a label" };
    group.strip_prefix("label.").filter(|key| !key.is_empty()).ok_or(unknown.into())
}

/// By what a worker is ordered, and what a cursor says: its name, after its group's value if there are groups. No label
/// has a control character.
fn place(grouped: bool, value: Option<&str>, name: &str) -> String {
    match (grouped, value) {
        (false, _) => name.to_owned(),
        (true, Some(value)) => format!("+{value}\u{1f}{name}"),
        (true, None) => format!("-{name}"),
    }
}

fn is_asked(query: &GpusQuery, state: GpuState) -> bool {
    query.state.is_none_or(|asked| asked == state)
}

/// A worker's GPUs, each with where it stands while these jobs hold leases on the worker.
pub fn states<'w, J: Borrow<Job>>(worker: &'w Worker, leased: &[J]) -> impl Iterator<Item = (&'w Gpu, GpuState)> {
    let is_connected = worker.may_beat().is_ok();
    let gpus = worker.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
    gpus.iter().map(move |gpu| (gpu, word(gpu.standing(is_connected, holder(gpu, leased).is_some()))))
}

/// A worker's GPUs, with what is known of them and who holds them.
pub(super) fn gpu_views<J: Borrow<Job>>(
    worker: &Worker,
    leased: &[J],
    mut readings: HashMap<String, Reading>,
) -> Vec<GpuView> {
    if worker.may_beat().is_err() {
        readings.clear();
    }
    let view = |(gpu, state): (&Gpu, GpuState)| GpuView {
        gpu: shown(gpu),
        state,
        job_id: holder(gpu, leased).map(|job| job.id.clone()),
        reading: readings.remove(&gpu.uuid),
        lately: Vec::new(),
    };
    states(worker, leased).map(view).collect()
}

/// The job that holds a GPU of the worker on which these hold leases.
fn holder<'j, J: Borrow<Job>>(gpu: &Gpu, leased: &'j [J]) -> Option<&'j Job> {
    let holds = |job: &&Job| job.live_lease().is_some_and(|lease| lease.gpus.contains(&gpu.uuid));
    leased.iter().map(Borrow::borrow).find(holds)
}

const fn word(standing: Standing) -> GpuState {
    match standing {
        Standing::Busy => GpuState::Busy,
        Standing::Free => GpuState::Free,
        Standing::Withheld(WithheldReason::InUse) => GpuState::InUse,
        Standing::Withheld(WithheldReason::Quarantined) => GpuState::Quarantined,
        Standing::NotConnected => GpuState::NotConnected,
    }
}
