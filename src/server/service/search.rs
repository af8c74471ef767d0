//! What a person looks for by a few characters of it: workers, jobs and configurations that they may see.

use std::cmp::Reverse;

use app::domain::access::Permission;
use app::domain::fuzzy::{score, score_of};
use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::labels::Labels;
use app::protocol::search::{Found, FoundKind, SearchPage, SearchQuery};

use super::Core;
use super::access::Person;
use super::refusal::{Invalid, Refusal};
use super::views::roster::Row;
use super::views::{jobs, workers};
use crate::store::jobs::JobFilter;
use crate::store::workers::StoredWorker;
use crate::store::{Tx, configs::StoredConfig};

/// Found if nothing else was asked for.
const FOUND: u32 = 12;
/// Found at most.
const MOST_FOUND: u32 = 50;
/// The longest question, in characters.
const LONGEST: usize = 100;
/// Jobs that are looked at, newest first: a question that is asked with each key must not read a whole history.
const JOBS_LOOKED_AT: u32 = 1_000;

impl Core {
    /// The nearest of what the person may see.
    pub async fn search(&self, person: &Person, query: &SearchQuery) -> Result<SearchPage, Refusal> {
        let question = query.q.trim();
        if question.chars().count() > LONGEST {
            return Err(Invalid::Range { field: "q", allowed: "at most 100 characters" }.into());
        }
        if question.is_empty() {
            return Ok(SearchPage::default());
        }
        let mut tx = self.recent().await?;
        let mut found = Vec::new();
        if person.permissions.has(Permission::AdminWorkers) {
            found.extend(workers_found(&mut *tx, question).await?);
        }
        if person.permissions.has(Permission::JobViewOwn) {
            found.extend(jobs_found(&mut *tx, person, question).await?);
        }
        if person.permissions.has(Permission::ConfigView) {
            found.extend(tx.configs().await?.iter().filter_map(|config| config_found(config, question)));
        }
        // Stable: within a kind they came in the order of their lists.
        found.sort_by_key(|(worth, found)| (Reverse(*worth), found.kind));
        found.truncate(query.limit.unwrap_or(FOUND).clamp(1, MOST_FOUND) as usize);
        Ok(SearchPage { found: found.into_iter().map(|(_, found)| found).collect() })
    }
}

async fn workers_found(tx: &mut dyn Tx, question: &str) -> Result<Vec<(u32, Found)>, Refusal> {
    let all = tx.see(Row::all).await?;
    let mut near: Vec<_> = all.iter().filter_map(|row| Some((worker_worth(&row.stored, question)?, row))).collect();
    near.sort_by(|(left, a), (right, b)| right.cmp(left).then_with(|| a.stored.worker.name.cmp(&b.stored.worker.name)));
    near.truncate(MOST_FOUND as usize);
    let found = |(worth, row): (u32, &Row)| {
        let worker = &row.stored.worker;
        let one = Found {
            kind: FoundKind::Worker,
            id: worker.id.to_string(),
            name: worker.name.clone(),
            note: worker.capability().and_then(|capability| capability.hostname.clone()),
            worker_status: Some(workers::status(worker.status(row.jobs.len()))),
            job_status: None,
        };
        (worth, one)
    };
    Ok(near.into_iter().map(found).collect())
}

fn worker_worth(StoredWorker { worker, .. }: &StoredWorker, question: &str) -> Option<u32> {
    let capability = worker.capability();
    let own = labels(&worker.labels);
    let reported = capability.map(|capability| labels(&capability.labels)).unwrap_or_default();
    let gpu = capability.and_then(|capability| capability.gpus.first()).map(|gpu| gpu.name.as_str());
    let host = capability.and_then(|capability| capability.hostname.as_deref());
    let mut names = vec![worker.name.as_str()];
    names.extend(host.into_iter().chain(gpu));
    names.extend(own.iter().chain(&reported).map(String::as_str));
    score_of(worker.id.as_str(), question, &names)
}

async fn jobs_found(tx: &mut dyn Tx, person: &Person, question: &str) -> Result<Vec<(u32, Found)>, Refusal> {
    let filter = JobFilter { user: person.sees_only(), limit: JOBS_LOOKED_AT, ..JobFilter::default() };
    let mut looked_at = tx.jobs(&filter).await?;
    let named = JobId::parse(question).ok().filter(|id| looked_at.iter().all(|job| job.id != *id));
    if let Some(named) = named {
        let job = tx.job(&named).await?;
        looked_at.extend(job.filter(|job| filter.user.as_ref().is_none_or(|user| *user == job.submitted_by)));
    }
    Ok(looked_at.iter().filter_map(|job| job_found(job, question)).collect())
}

fn job_found(job: &Job, question: &str) -> Option<(u32, Found)> {
    let labels = labels(&job.spec.demand.labels);
    let mut names = vec![job.spec.config_name.as_str(), job.submitted_by.as_str()];
    names.extend(labels.iter().map(String::as_str));
    let found = Found {
        kind: FoundKind::Job,
        id: job.id.to_string(),
        name: job.spec.config_name.clone(),
        note: Some(job.submitted_by.clone()),
        worker_status: None,
        job_status: Some(jobs::status(job)),
    };
    Some((score_of(job.id.as_str(), question, &names)?, found))
}

fn config_found(config: &StoredConfig, question: &str) -> Option<(u32, Found)> {
    let (id, name) = (config.name.clone(), config.name.clone());
    let found = Found { kind: FoundKind::Config, id, name, note: None, worker_status: None, job_status: None };
    Some((score(question, &[&config.name])?, found))
}

/// Labels as people write them.
fn labels(labels: &Labels) -> Vec<String> {
    labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect()
}
