//! The fleet's GPUs by worker.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use app::domain::allowed_values::AllowedValues;
use app::domain::job::Job;
use app::domain::worker_search::order::{WorkerOrder, WorkerPosition};
use app::domain::worker_search::query::WorkerSearchQuery;
use app::protocol::gpus::{GpuCounts, GpuGroup, GpusPage, GpusQuery};
use app::protocol::status::GpuState;
use app::protocol::workers::WorkerView;

use crate::service::access::Principal;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::gpus::GpuService;
use crate::service::workers::gpu_views::{gpu_states, gpu_views};
use crate::service::workers::list::{PageRange, WorkerListRow};
use crate::service::workers::views::{HeldJobs, load_held_jobs};

/// Default number of workers per page.
const DEFAULT_WORKERS: u32 = 50;

impl GpuService {
    /// Returns the GPUs of the workers that the user may see.
    pub async fn gpus_page(&self, principal: &Principal, query: &GpusQuery) -> Result<GpusPage, ServiceError> {
        let search = WorkerSearchQuery::parse(query.q.as_deref().unwrap_or_default()).map_err(InvalidInput::Search)?;
        principal.check_search_query(&search)?;
        let key = query.group.as_deref().map(parse_label_key).transpose()?;
        let mut tx = self.context.read_recent().await?;
        let rows = tx.with_state(WorkerListRow::load_all).await?;
        let label_keys: BTreeSet<&str> =
            rows.iter().flat_map(|row| self.workers.searchable(row).labels()).map(|(key, _)| key).collect();
        let mut counts = GpuCounts::default();
        let mut groups: HashMap<Option<&str>, GpuGroup> = HashMap::new();
        let mut matching: Vec<(String, &WorkerListRow)> = Vec::new();
        for row in rows.iter().filter(|row| self.workers.searchable(row).matches(&search)) {
            let (mut has_match, value) = (false, key.and_then(|key| self.group_value(row, key)));
            let group = groups.entry(value).or_default();
            for (_, state) in gpu_states(row.worker(), &row.jobs) {
                counts.add(state);
                group.counts.add(state);
                has_match |= matches_query(query, state);
            }
            if has_match {
                group.total += 1;
                matching.push((sort_position(key.is_some(), value, &row.worker().name), row));
            }
        }
        let order = WorkerOrder::default();
        let mut sorted: Vec<(WorkerPosition<'_>, &WorkerListRow)> =
            matching.iter().map(|(name, row)| (WorkerPosition { sort_value: 0, name }, *row)).collect();
        sorted.sort_unstable_by(|(left, _), (right, _)| order.compare(*left, *right));
        let limit = query.limit.unwrap_or(DEFAULT_WORKERS).max(1) as usize;
        let range = PageRange::after_cursor(&sorted, order, query.cursor.as_deref(), limit);
        let page_rows = &sorted[range.first..range.end];
        let jobs: Vec<&Job> = page_rows.iter().flat_map(|(_, row)| row.jobs.iter().map(Arc::as_ref)).collect();
        let mut held = load_held_jobs(&mut *tx, &jobs).await?;
        let group_sizes = key.into_iter().flat_map(|key| {
            page_rows
                .chunk_by(move |(_, left), (_, right)| self.group_value(left, key) == self.group_value(right, key))
                .map(move |group| (group.first().and_then(|(_, row)| self.group_value(row, key)), group.len() as u64))
        });
        let groups = group_sizes.filter_map(|(value, shown)| {
            let group = groups.remove(&value)?;
            Some(GpuGroup { value: value.map(str::to_owned), shown, ..group })
        });
        Ok(GpusPage {
            workers: page_rows
                .iter()
                .map(|(_, row)| principal.redact_worker(self.with_gpus(row, query, &mut held)))
                .collect(),
            total: sorted.len() as u64,
            before: range.first as u64,
            counts,
            groups: groups.collect(),
            label_keys: label_keys.into_iter().map(str::to_owned).collect(),
            previous_cursor: range.previous,
            next_cursor: range.next,
            server_time: self.context.now(),
        })
    }

    fn group_value<'r>(&self, row: &'r WorkerListRow, key: &str) -> Option<&'r str> {
        let entry = self.workers.searchable(row);
        entry.worker.label(key, entry.use_reported_labels)
    }

    fn with_gpus(&self, row: &WorkerListRow, query: &GpusQuery, held: &mut HeldJobs) -> WorkerView {
        let worker = row.worker();
        let mut gpus = gpu_views(worker, &row.jobs, self.readings.view_in_list(&worker.id, self.context.now()));
        gpus.retain(|gpu| matches_query(query, gpu.state));
        let mut sparklines = query.lately.map(|range| self.sparklines(&worker.id, range)).unwrap_or_default();
        for gpu in &mut gpus {
            gpu.lately = sparklines.remove(&gpu.gpu.uuid).unwrap_or_default();
        }
        WorkerView { gpus, ..self.workers.worker_row_view(row, held) }
    }
}

/// Parses the label key of a `group` parameter.
fn parse_label_key(group: &str) -> Result<&str, ServiceError> {
    let unknown = InvalidInput::OutOfRange { field: "group", allowed: AllowedValues::Grouping };
    group.strip_prefix("label.").filter(|key| !key.is_empty()).ok_or(unknown.into())
}

/// The sort key of a worker, and its cursor: its name, after the value of its group if there are groups. No label
/// contains a control character.
fn sort_position(grouped: bool, value: Option<&str>, name: &str) -> String {
    match (grouped, value) {
        (false, _) => name.to_owned(),
        (true, Some(value)) => format!("+{value}\u{1f}{name}"),
        (true, None) => format!("-{name}"),
    }
}

fn matches_query(query: &GpusQuery, state: GpuState) -> bool {
    query.state.is_none_or(|expected| expected == state)
}
