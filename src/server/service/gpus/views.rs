//! The fleet's GPUs by worker.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use app::domain::allowed_values::AllowedValues;
use app::domain::worker_search::order::{WorkerOrder, WorkerPosition};
use app::domain::worker_search::query::WorkerSearchQuery;
use app::protocol::gpus::{GpuCounts, GpuGroup, GpusPage, GpusQuery};
use app::protocol::status::GpuState;
use app::protocol::workers::WorkerView;

use crate::service::access::Principal;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::gpus::GpuService;
use crate::service::workers::gpu_views::{gpu_counts, gpu_views};
use crate::service::workers::list::ListPage;
use crate::service::workers::views::{HeldJobs, load_jobs_of_workers};
use crate::store::cache::fleet_worker::FleetWorker;
use crate::store::cache::state::FleetState;

/// Default number of workers per page.
const DEFAULT_WORKERS: u32 = 50;

/// The workers of a page, and what is counted over all workers.
struct SelectedGpus {
    page: ListPage<FleetWorker>,
    counts: GpuCounts,
    groups: Vec<GpuGroup>,
    label_keys: Vec<String>,
}

impl GpuService {
    /// Returns the GPUs of the workers that the user may see.
    pub async fn gpus_page(&self, principal: &Principal, query: &GpusQuery) -> Result<GpusPage, ServiceError> {
        let search = WorkerSearchQuery::parse(query.q.as_deref().unwrap_or_default()).map_err(InvalidInput::Search)?;
        principal.check_search_query(&search)?;
        let key = query.group.as_deref().map(parse_label_key).transpose()?;
        let mut tx = self.context.read_recent().await?;
        let select = |fleet_state: &FleetState| self.select_workers(fleet_state, query, &search, key);
        let SelectedGpus { page, counts, groups, label_keys } = tx.with_state(select).await?;
        let mut held = load_jobs_of_workers(&mut *tx, &page.rows).await?;
        let view = |row| principal.redact_worker(self.with_gpus(row, query, &mut held));
        Ok(GpusPage {
            workers: page.rows.iter().map(view).collect(),
            total: page.total,
            before: page.before,
            counts,
            groups,
            label_keys,
            previous_cursor: page.previous,
            next_cursor: page.next,
            server_time: self.context.now(),
        })
    }

    /// Selects without copying all workers, because it blocks commits.
    fn select_workers(
        &self,
        fleet_state: &FleetState,
        query: &GpusQuery,
        search: &WorkerSearchQuery,
        key: Option<&str>,
    ) -> SelectedGpus {
        let (mut label_keys, mut counts) = (BTreeSet::new(), GpuCounts::default());
        let mut groups: HashMap<Option<&str>, GpuGroup> = HashMap::new();
        let mut matching: Vec<(Cow<'_, str>, &FleetWorker)> = Vec::new();
        for row in fleet_state.workers() {
            let entry = self.workers.searchable(row);
            label_keys.extend(entry.labels().map(|(key, _)| key));
            if !entry.matches(search) {
                continue;
            }
            let (own_counts, value) = (gpu_counts(row.gpus), key.and_then(|key| self.group_value(row, key)));
            let group = groups.entry(value).or_default();
            counts.add_all(own_counts);
            group.counts.add_all(own_counts);
            if GpuState::ALL.iter().any(|state| own_counts.count(*state) > 0 && matches_query(query, *state)) {
                group.total += 1;
                matching.push((sort_position(key.is_some(), value, &row.worker().name), row));
            }
        }
        let positions = matching.iter().map(|(name, row)| (WorkerPosition { sort_value: 0, name }, *row)).collect();
        let limit = query.limit.unwrap_or(DEFAULT_WORKERS).max(1) as usize;
        let page = ListPage::select(positions, WorkerOrder::default(), query.cursor.as_deref(), limit);
        let group_sizes = key.into_iter().flat_map(|key| {
            page.rows
                .chunk_by(move |left, right| self.group_value(left, key) == self.group_value(right, key))
                .map(move |group| (group.first().and_then(|row| self.group_value(row, key)), group.len() as u64))
        });
        let groups = group_sizes.filter_map(|(value, shown)| {
            let group = groups.remove(&value)?;
            Some(GpuGroup { value: value.map(str::to_owned), shown, ..group })
        });
        let groups = groups.collect();
        let label_keys = label_keys.into_iter().map(str::to_owned).collect();
        SelectedGpus { page: page.map(FleetWorker::clone), counts, groups, label_keys }
    }

    fn group_value<'r>(&self, row: &'r FleetWorker, key: &str) -> Option<&'r str> {
        let entry = self.workers.searchable(row);
        entry.worker.label(key, entry.use_reported_labels)
    }

    fn with_gpus(&self, row: &FleetWorker, query: &GpusQuery, held: &mut HeldJobs) -> WorkerView {
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
fn sort_position<'n>(grouped: bool, value: Option<&str>, name: &'n str) -> Cow<'n, str> {
    match (grouped, value) {
        (false, _) => Cow::Borrowed(name),
        (true, Some(value)) => Cow::Owned(format!("+{value}\u{1f}{name}")),
        (true, None) => Cow::Owned(format!("-{name}")),
    }
}

fn matches_query(query: &GpusQuery, state: GpuState) -> bool {
    query.state.is_none_or(|expected| expected == state)
}
