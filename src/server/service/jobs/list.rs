//! The list of jobs.

use std::collections::{BTreeMap, HashMap};

use app::domain::access::Permission;
use app::domain::allowed_values::AllowedValues;
use app::domain::ids::JobId;
use app::domain::job_search::columns::{JobListColumn, JobListColumns};
use app::domain::job_search::completion::CompletionRequest;
use app::domain::job_search::groups::{JobGroup, JobGrouping};
use app::domain::job_search::index::{IndexedValue, JobIndex, JobPageRequest, JobSelection, StatusCounts};
use app::domain::job_search::order::{JobCursor, JobOrder};
use app::domain::job_search::query::{
    Comparison, JobSearchFilter, JobSearchQuery, JobTextField, JobTimeField, TimeCondition,
};
use app::domain::search_terms::{MAX_QUERY_CHARS, TextPattern, escape_glob};
use app::domain::time::Timestamp;
use app::protocol::jobs::{JobColumns, JobCompletions, JobCounts, JobGroupView, JobGroupsPage, JobsPage, JobsQuery};
use app::protocol::status::{JobPhase, JobStatus};
use app::time_zone::TimeZone;
use serde_json::{Number, Value};

use super::JobService;
use super::index::IndexNeeds;
use crate::service::access::Principal;
use crate::service::error::{InvalidInput, ServiceError, parse_time};

/// Default number of jobs per page.
const DEFAULT_PAGE: u32 = 100;
/// Maximum number of jobs per page.
const MAX_PAGE: u32 = 1_000;

/// The maximum number of completions.
const MAX_COMPLETIONS: usize = 12;
/// The maximum number of metrics and values of configurations that are offered as columns.
const MAX_VALUE_COLUMNS: usize = 500;

/// A page of the list.
#[derive(Debug, Clone)]
pub struct JobListQuery {
    pub search: JobSearchQuery,
    pub statuses: Vec<JobStatus>,
    pub order: JobOrder,
    pub columns: JobListColumns,
    pub after: Option<JobCursor>,
    pub limit: usize,
}

/// The jobs of a page.
pub struct SelectedJobs {
    pub selection: JobSelection,
    /// What they have in the columns of metrics and of values of the configuration, by column.
    values: HashMap<JobId, BTreeMap<String, Value>>,
}

impl JobService {
    /// Returns a page of the jobs that a user may see.
    pub async fn jobs_page(&self, principal: &Principal, query: &JobsQuery) -> Result<JobsPage, ServiceError> {
        let list = JobListQuery::parse(principal, query)?;
        let statuses = list.statuses.clone();
        let SelectedJobs { selection, mut values } = self.select_jobs(list).await?;
        let mut tx = self.context.read().await?;
        let jobs = tx.jobs_by_id(&selection.ids).await?;
        let mut jobs = self.view_jobs(tx, &jobs).await?;
        for job in &mut jobs {
            job.values = values.remove(&job.job_id).unwrap_or_default();
        }
        Ok(JobsPage {
            next_cursor: selection.next.map(|cursor| cursor.to_string()),
            jobs,
            total: selection.counts.sum(|status| statuses.contains(&status)),
            counts: job_counts(&selection.counts),
            disk_full: self.context.disk_space.is_full(),
            server_time: self.context.now(),
        })
    }

    /// Groups the jobs that a user may see.
    pub async fn job_groups(&self, principal: &Principal, query: &JobsQuery) -> Result<JobGroupsPage, ServiceError> {
        let (list, by) = (JobListQuery::parse(principal, query)?, query.group.unwrap_or(JobGrouping::Config));
        let (needs, now) = (list.needs(), self.context.now());
        let group = move |index: &JobIndex| {
            let JobListQuery { search, statuses, limit, .. } = &list;
            (index.groups(by, search, statuses, *limit, now), index.count(search, now))
        };
        let (found, counts) = self.read_index(needs, group).await?;
        let view = |group: JobGroup| JobGroupView {
            value: group.value,
            counts: job_counts(&group.counts),
            newest: group.newest,
        };
        Ok(JobGroupsPage {
            groups: found.groups.into_iter().map(view).collect(),
            total: found.total as u64,
            counts: job_counts(&counts),
            server_time: now,
        })
    }

    /// Selects a page from the index.
    pub(in crate::service) async fn select_jobs(&self, list: JobListQuery) -> Result<SelectedJobs, ServiceError> {
        let (needs, now) = (list.needs(), self.context.now());
        let columns = list.columns.clone();
        let select = move |index: &JobIndex| {
            let JobListQuery { search, statuses, order, columns: _, after, limit } = &list;
            index.select(&JobPageRequest { query: search, statuses, order, after: after.as_ref(), limit: *limit, now })
        };
        let selection = self.read_index(needs, select).await?;
        if !columns.0.iter().any(JobListColumn::has_value) {
            return Ok(SelectedJobs { selection, values: HashMap::new() });
        }
        if columns.0.iter().any(JobListColumn::reads_metrics) {
            self.reread_in_index(selection.ids.iter().cloned().collect()).await?;
        }
        let ids = selection.ids.clone();
        let values = move |index: &JobIndex| {
            let of_job = |id: JobId| (id.clone(), column_values(index, &id, &columns));
            ids.into_iter().map(of_job).collect()
        };
        let values = self.read_index(IndexNeeds::default(), values).await?;
        Ok(SelectedJobs { selection, values })
    }

    /// Completes a search that is being typed, with values of the jobs that the user may see.
    pub async fn complete_search(&self, principal: &Principal, text: String) -> Result<JobCompletions, ServiceError> {
        let (visible, now) = (visible_jobs(principal), self.context.now());
        let shows_config = principal.permissions.contains(Permission::ConfigView);
        if text.chars().count() > MAX_QUERY_CHARS {
            return Ok(JobCompletions::default());
        }
        let complete = move |index: &JobIndex| {
            let limit = MAX_COMPLETIONS;
            index.complete(&CompletionRequest { text: &text, visible: &visible, shows_config, limit, now })
        };
        let needs = IndexNeeds { config: shows_config, metrics: false };
        Ok(JobCompletions { completions: self.read_index(needs, complete).await? })
    }

    /// Returns the columns that a list of the jobs which a user may see can show.
    pub async fn columns(&self, principal: &Principal) -> Result<JobColumns, ServiceError> {
        let (visible, now) = (visible_jobs(principal), self.context.now());
        let shows_config = principal.permissions.contains(Permission::ConfigView);
        let needs = IndexNeeds { config: shows_config, metrics: true };
        let found = self.read_index(needs, move |index| index.value_columns(&visible, shows_config, now)).await?;
        let columns = JobListColumn::known().chain(found.into_iter().take(MAX_VALUE_COLUMNS));
        Ok(JobColumns { columns: columns.map(|column| column.to_string()).collect() })
    }

    /// Counts the jobs that a user may see, by status.
    pub async fn job_counts(&self, principal: &Principal) -> Result<JobCounts, ServiceError> {
        let (search, now) = (visible_jobs(principal), self.context.now());
        let count = move |index: &JobIndex| index.count(&search, now);
        Ok(job_counts(&self.read_index(IndexNeeds::default(), count).await?))
    }
}

/// All jobs that a user may see.
pub fn visible_jobs(principal: &Principal) -> JobSearchQuery {
    let mut search = JobSearchQuery::default();
    if let Some(owner) = principal.visible_owner() {
        search.require(exactly(JobTextField::User, &owner));
    }
    search
}

fn exactly(field: JobTextField, text: &str) -> JobSearchFilter {
    JobSearchFilter::Text(field, TextPattern::literal(text))
}

impl JobListQuery {
    /// The newest jobs that a user may see.
    pub fn newest(principal: &Principal, limit: usize) -> Self {
        let search = visible_jobs(principal);
        let (statuses, columns) = (JobStatus::ALL.to_vec(), JobListColumns::default());
        Self { search, statuses, order: JobOrder::NEWEST, columns, after: None, limit }
    }

    /// Parses a query of a user.
    pub(super) fn parse(principal: &Principal, query: &JobsQuery) -> Result<Self, ServiceError> {
        let (mut search, order) = (parse_search(principal, query)?, parse_order(query)?);
        let shows_config = principal.permissions.contains(Permission::ConfigView);
        if !shows_config {
            search.0.iter_mut().for_each(|term| term.filter.exclude_config());
        }
        let invalid_cursor = InvalidInput::OutOfRange { field: "cursor", allowed: AllowedValues::Cursor };
        let parse = |text| JobCursor::parse(text).filter(|cursor| order.has_value(&cursor.value)).ok_or(invalid_cursor);
        let after = query.cursor.as_deref().map(parse).transpose()?;
        let limit = query.limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE) as usize;
        let unknown_column = InvalidInput::OutOfRange { field: "columns", allowed: AllowedValues::JobColumns };
        let columns =
            query.columns.as_deref().map(|text| JobListColumns::parse(text).ok_or(unknown_column)).transpose()?;
        let columns = columns.unwrap_or_default();
        let list = Self { search, statuses: statuses(query), order, columns, after, limit };
        if list.needs().config && !shows_config {
            return Err(ServiceError::PermissionDenied(Permission::ConfigView));
        }
        Ok(list)
    }

    fn needs(&self) -> IndexNeeds {
        IndexNeeds::of(&self.search, &self.order, &self.columns)
    }
}

fn column_values(index: &JobIndex, id: &JobId, columns: &JobListColumns) -> BTreeMap<String, Value> {
    let value = |value| match value {
        IndexedValue::Number(number) => Number::from_f64(number).map_or_else(|| "NaN".into(), Value::Number),
        IndexedValue::Text(text) => Value::String(text),
    };
    index.values(id, columns).into_iter().map(|(column, found)| (column, value(found))).collect()
}

/// Combines the search and the other parameters into one query, for the jobs that the user may see.
fn parse_search(principal: &Principal, query: &JobsQuery) -> Result<JobSearchQuery, ServiceError> {
    let JobsQuery {
        status: _,
        phase: _,
        user,
        label,
        q,
        zone,
        tag,
        config,
        worker,
        since,
        until,
        ended_since,
        sort: _,
        columns: _,
        widths: _,
        group: _,
        limit: _,
        cursor: _,
    } = query;
    let visible_owner = principal.visible_owner();
    if visible_owner.is_some() && user.is_some() && visible_owner != *user {
        return Err(ServiceError::PermissionDenied(Permission::JobViewAll));
    }
    let mut search = JobSearchQuery::parse(q.as_deref().unwrap_or_default()).map_err(InvalidInput::Search)?;
    search.0.iter_mut().for_each(|term| term.filter.resolve_me(&principal.name));
    if let Some(zone) = zone.as_deref().and_then(TimeZone::from_name) {
        let to_utc = |local| zone.from_local_time(local).unwrap_or(local);
        search.0.iter_mut().for_each(|term| term.filter.in_zone(to_utc));
    }
    let label = label.as_deref().map(|label| {
        let (key, value) =
            label.split_once('=').map_or((label, "*".to_owned()), |(key, value)| (key, escape_glob(value)));
        JobSearchFilter::Label { key: key.to_owned(), value: TextPattern::Exact(value) }
    });
    let time = |field, comparison, at: Option<Timestamp>| {
        Some(JobSearchFilter::Time(field, TimeCondition::Instant(comparison, at?)))
    };
    let (submitted, ended) = (JobTimeField::Submitted, JobTimeField::Ended);
    let filters = [
        user.as_ref().map(|user| exactly(JobTextField::User, user)),
        visible_owner.map(|owner| exactly(JobTextField::User, &owner)),
        tag.as_ref().map(|tag| exactly(JobTextField::Tag, tag)),
        config.as_ref().map(|config| exactly(JobTextField::Config, config)),
        worker.as_ref().map(|worker| exactly(JobTextField::Worker, worker.as_str())),
        label,
        time(submitted, Comparison::AtLeast, parse_time("since", since.as_deref())?),
        time(submitted, Comparison::Less, parse_time("until", until.as_deref())?),
        time(ended, Comparison::AtLeast, parse_time("ended_since", ended_since.as_deref())?),
    ];
    filters.into_iter().flatten().for_each(|filter| search.require(filter));
    Ok(search)
}

/// Unless requested otherwise, waiting jobs are listed in queue order, all others newest first.
fn parse_order(query: &JobsQuery) -> Result<JobOrder, ServiceError> {
    match (query.sort.as_deref(), query.phase) {
        (Some(sort), _) => {
            let unknown = InvalidInput::OutOfRange { field: "sort", allowed: AllowedValues::JobOrder };
            Ok(JobOrder::parse(sort).ok_or(unknown)?)
        }
        (None, Some(JobPhase::Waiting)) => Ok(JobOrder::QUEUE),
        (None, _) => Ok(JobOrder::NEWEST),
    }
}

/// Contradictory filters match nothing.
fn statuses(query: &JobsQuery) -> Vec<JobStatus> {
    let is_included = |candidate: &JobStatus| {
        query.phase.is_none_or(|phase| candidate.is_in_phase(phase))
            && query.status.is_none_or(|status| status == *candidate)
    };
    JobStatus::ALL.into_iter().filter(is_included).collect()
}

fn job_counts(counts: &StatusCounts) -> JobCounts {
    JobCounts::from_sums(|is_counted| counts.sum(is_counted))
}
