//! Search over workers, jobs and configurations that a user may see, by a few characters.

use std::cmp::Reverse;
use std::sync::Arc;

use app::domain::access::Permission;
use app::domain::allowed_values::AllowedValues;
use app::domain::fuzzy::{FuzzyQuery, take_balanced};
use app::domain::job::Job;
use app::domain::job_search::query::JobSearchFilter;
use app::domain::labels::Labels;
use app::domain::search_terms::SearchFilter;
use app::domain::worker::Worker;
use app::protocol::search::{SearchHit, SearchHitKind, SearchPage, SearchQuery};
use itertools::Itertools;

use super::access::Principal;
use super::error::{InvalidInput, ServiceError};
use super::jobs::JobService;
use super::jobs::list::JobListQuery;
use super::workers::views as worker_views;
use crate::service::ServiceContext;
use crate::store::cache::fleet_worker::FleetWorker;
use crate::store::cache::state::FleetState;
use crate::store::{Tx, configs::StoredConfig};

/// Default number of results.
const DEFAULT_RESULTS: u32 = 12;
/// Maximum number of results.
const MAX_RESULTS: u32 = 50;
/// The maximum length of a query, in characters.
const MAX_QUERY_CHARS: usize = 100;
/// The maximum number of jobs that are searched, newest first: a query with each key press must not read the whole
/// history.
const MAX_JOBS_SCANNED: usize = 1_000;

/// Search over everything that a user may see.
pub struct SearchService {
    pub(super) jobs: Arc<JobService>,
    pub(super) context: Arc<ServiceContext>,
}

impl SearchService {
    /// Returns the best results among what the user may see.
    pub async fn search(&self, principal: &Principal, query: &SearchQuery) -> Result<SearchPage, ServiceError> {
        let text = query.q.trim();
        if text.chars().count() > MAX_QUERY_CHARS {
            return Err(InvalidInput::OutOfRange {
                field: "q",
                allowed: AllowedValues::Length { max: MAX_QUERY_CHARS as u64 },
            }
            .into());
        }
        if text.is_empty() {
            return Ok(SearchPage::default());
        }
        let words = FuzzyQuery::parse(text);
        let mut tx = self.context.read_recent().await?;
        let mut hits = Vec::new();
        if principal.permissions.contains(Permission::FleetView) {
            hits.extend(search_workers(&mut *tx, &words).await?);
        }
        if principal.permissions.contains(Permission::JobViewOwn) {
            hits.extend(search_jobs(&self.jobs, principal, text, &words).await?);
        }
        if principal.permissions.contains(Permission::ConfigView) {
            hits.extend(tx.configs().await?.iter().filter_map(|config| match_config(config, &words)));
        }
        // The sort is stable: within a kind, results keep the order of their lists.
        hits.sort_by_key(|(score, hit)| (Reverse(*score), hit.kind));
        let limit = query.limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS) as usize;
        let hits = hits.into_iter().map(|(_, hit)| hit).collect();
        Ok(SearchPage { found: take_balanced(hits, |hit| hit.kind, limit) })
    }
}

async fn search_workers(tx: &mut dyn Tx, words: &FuzzyQuery) -> Result<Vec<(u32, SearchHit)>, ServiceError> {
    let select = |fleet_state: &FleetState| {
        let matches = fleet_state.workers().filter_map(|row| Some((worker_score(row.worker(), words)?, row)));
        let best = matches.k_smallest_by(MAX_RESULTS as usize, |(left, a), (right, b)| {
            right.cmp(left).then_with(|| a.worker().name.cmp(&b.worker().name))
        });
        best.map(|(score, row)| (score, worker_hit(row))).collect()
    };
    Ok(tx.with_state(select).await?)
}

fn worker_hit(row: &FleetWorker) -> SearchHit {
    let worker = row.worker();
    SearchHit {
        kind: SearchHitKind::Worker,
        id: worker.id.to_string(),
        name: worker.name.clone(),
        note: worker.capability().and_then(|capability| capability.hostname.clone()),
        worker_status: Some(worker_views::worker_status(row.state)),
        job_status: None,
    }
}

fn worker_score(worker: &Worker, words: &FuzzyQuery) -> Option<u32> {
    let capability = worker.capability();
    let labels = format_labels(&worker.labels);
    let reported = capability.map(|capability| format_labels(&capability.labels)).unwrap_or_default();
    let gpu = capability.and_then(|capability| capability.gpus.first()).map(|gpu| gpu.name.as_str());
    let host = capability.and_then(|capability| capability.hostname.as_deref());
    let mut names = vec![worker.name.as_str()];
    names.extend(host.into_iter().chain(gpu));
    names.extend(labels.iter().chain(&reported).map(String::as_str));
    words.score_with_id(worker.id.as_str(), &names)
}

/// Searches the newest jobs with tolerance for typing errors, and older ones for the text.
async fn search_jobs(
    service: &JobService,
    principal: &Principal,
    text: &str,
    words: &FuzzyQuery,
) -> Result<Vec<(u32, SearchHit)>, ServiceError> {
    let newest = service.select_jobs(JobListQuery::newest(principal, MAX_JOBS_SCANNED)).await?.selection;
    let mut ids = newest.ids;
    if newest.next.is_some() {
        let mut older = JobListQuery { after: newest.next, ..JobListQuery::newest(principal, MAX_RESULTS as usize) };
        older.search.require(JobSearchFilter::any(text));
        ids.extend(service.select_jobs(older).await?.selection.ids);
    }
    let mut tx = service.context.read().await?;
    Ok(tx.jobs_by_id(&ids).await?.iter().filter_map(|job| match_job(job, words)).collect())
}

fn match_job(job: &Job, words: &FuzzyQuery) -> Option<(u32, SearchHit)> {
    let labels = format_labels(&job.spec.demand.labels);
    let mut names = vec![job.spec.config_name.as_str(), job.submitted_by.as_str()];
    let description = &job.description;
    names.extend(description.name.iter().chain(&description.tags).chain(&labels).map(String::as_str));
    let hit = SearchHit {
        kind: SearchHitKind::Job,
        id: job.id.to_string(),
        name: description.name.as_ref().unwrap_or(&job.spec.config_name).clone(),
        note: Some(job.submitted_by.clone()),
        worker_status: None,
        job_status: Some(job.state.status()),
    };
    Some((words.score_with_id(job.id.as_str(), &names)?, hit))
}

fn match_config(config: &StoredConfig, words: &FuzzyQuery) -> Option<(u32, SearchHit)> {
    let (id, name) = (config.name.clone(), config.name.clone());
    let hit = SearchHit { kind: SearchHitKind::Config, id, name, note: None, worker_status: None, job_status: None };
    Some((words.score(&[&config.name])?, hit))
}

/// Formats labels as users write them.
fn format_labels(labels: &Labels) -> Vec<String> {
    labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect()
}
