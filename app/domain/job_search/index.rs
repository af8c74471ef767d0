//! All jobs in memory, for queries: what they are searched, filtered and sorted by, but not the rest of them.
//!
//! Texts that many jobs share are stored once, and a query compares each of them once, so that a query over a million
//! jobs takes less than a tenth of a second.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::AddAssign;

use super::matcher::{count, select};
use super::order::{JobCursor, JobOrder};
use super::query::JobSearchQuery;
use crate::domain::ids::{JobId, WorkerId};
use crate::domain::job_status::JobStatus;
use crate::domain::labels::Labels;
use crate::domain::time::Timestamp;

/// What the index knows of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedJob {
    /// Its ID.
    pub id: JobId,
    /// Its number among those of its configuration.
    pub number: Option<u32>,
    /// The name of its configuration.
    pub config: String,
    /// The revision of its configuration.
    pub revision: u32,
    /// Its name.
    pub name: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// The users who have starred it.
    pub starred_by: Vec<String>,
    /// Who submitted it.
    pub user: String,
    /// Its status.
    pub status: JobStatus,
    /// When it was submitted.
    pub submitted_at: Timestamp,
    /// When its newest attempt started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its priority.
    pub priority: u8,
    /// Priority and age, by which waiting jobs are ordered.
    pub urgency: i64,
    /// The labels that it requires.
    pub labels: Labels,
    /// The GPUs of its newest attempt, or those that it requests.
    pub gpus: Option<u32>,
    /// The workers of its attempts with their names at that time, the oldest attempt first.
    pub workers: Vec<(WorkerId, String)>,
    /// Values of the configuration that it changes; none for a removed one.
    pub overrides: BTreeMap<String, Option<ConfigValue>>,
    /// The newest values of its metrics.
    pub metrics: BTreeMap<String, f64>,
}

/// A value of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigValue {
    /// As text.
    pub text: String,
    /// As a number, if it is one.
    pub number: Option<f64>,
}

/// A value of a job in a column.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexedValue {
    /// The newest value of a metric, which may be NaN.
    Number(f64),
    /// A value of its configuration.
    Text(String),
}

/// The values of a revision, by key; keys of nested objects are joined with dots.
pub type ConfigValues = BTreeMap<String, ConfigValue>;

/// A label as a text; the key has no equals sign, so that it can be told from the value.
fn label_text(key: &str, value: &str) -> String {
    format!("{}={value}", escaped_key(key))
}

/// The key of a label in the text of the label.
pub(super) fn escaped_key(key: &str) -> String {
    // Labels contain no control characters.
    key.replace('=', "\u{1}")
}

/// A text that jobs share, by number.
pub(super) type Symbol = u32;

/// Values that are stored once, and their numbers.
#[derive(Debug, Clone)]
pub(super) struct Interner<T> {
    pub values: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn number<Q: Eq + Hash + ?Sized>(&mut self, value: &Q) -> u32
    where
        T: Borrow<Q> + for<'v> From<&'v Q>,
    {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        self.add(value.into())
    }

    /// Keeps the values for which `keep` returns one, and returns the new number of each old one.
    fn rebuild(&mut self, keep: impl Fn(usize, T) -> Option<T>) -> Vec<u32> {
        let old = std::mem::take(self).values.into_iter().enumerate();
        let kept = old.map(|(number, value)| keep(number, value).map_or(u32::MAX, |value| self.add(value)));
        kept.collect()
    }

    fn add(&mut self, value: T) -> u32 {
        let number = u32::try_from(self.values.len()).expect("fewer than 2^32 values");
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}

/// A job in the index. Most of what jobs share is a number, so that a query reads no more memory than a row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub id: JobId,
    pub number: Option<u32>,
    /// In [`JobIndex::revisions`].
    pub revision: u32,
    pub name: Option<Box<str>>,
    /// In [`JobIndex::text_sets`].
    pub tags: u32,
    /// In [`JobIndex::text_sets`].
    pub starred_by: u32,
    pub user: Symbol,
    pub status: JobStatus,
    pub submitted_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub priority: u8,
    pub urgency: i64,
    /// `key=value`, in [`JobIndex::text_sets`].
    pub labels: u32,
    pub gpus: Option<u32>,
    /// The ID and the name of each, in [`JobIndex::text_sets`].
    pub workers: u32,
    pub overrides: BTreeMap<String, Option<ConfigValue>>,
    /// Which metrics it has, in order, in [`JobIndex::text_sets`].
    pub metric_names: u32,
    pub metrics: Box<[f64]>,
}

impl Row {
    fn text_sets(&mut self) -> [&mut u32; 5] {
        [&mut self.tags, &mut self.starred_by, &mut self.labels, &mut self.workers, &mut self.metric_names]
    }
}

/// A revision of a configuration that jobs use.
#[derive(Debug, Clone)]
pub(super) struct Revision {
    pub config: Symbol,
    pub number: u32,
    /// Not loaded before a query needs them.
    pub values: Option<ConfigValues>,
}

/// How many unused values are kept at least, so that small indexes are not rebuilt often.
const UNUSED_VALUES: usize = 1_000;

/// See the module documentation.
#[derive(Debug, Default)]
pub struct JobIndex {
    /// Ordered by ID, and so by submit.
    pub(super) rows: Vec<Row>,
    pub(super) texts: Interner<Box<str>>,
    /// Lists of texts.
    pub(super) text_sets: Interner<Box<[Symbol]>>,
    pub(super) revisions: Vec<Revision>,
    revision_numbers: HashMap<(Symbol, u32), u32>,
    /// The number of shared values when the unused ones were last removed.
    values_in_use: usize,
}

/// A page of the list.
#[derive(Debug, Clone, Copy)]
pub struct JobPageRequest<'q> {
    /// All jobs that match are counted.
    pub query: &'q JobSearchQuery,
    /// The statuses of the jobs on the page.
    pub statuses: &'q [JobStatus],
    /// The order.
    pub order: &'q JobOrder,
    /// The page starts after this job.
    pub after: Option<&'q JobCursor>,
    /// The maximum number of jobs on the page.
    pub limit: usize,
    /// The current time.
    pub now: Timestamp,
}

/// The jobs of a page, and how many there are.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSelection {
    /// The jobs on the page, in order.
    pub ids: Vec<JobId>,
    /// The cursor of the next page, if there is one.
    pub next: Option<JobCursor>,
    /// The number of jobs that match the query, by status.
    pub counts: StatusCounts,
}

/// Numbers by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusCounts([u64; JobStatus::ALL.len()]);

impl StatusCounts {
    /// Adds up the numbers of statuses.
    pub fn sum(&self, is_counted: impl Fn(JobStatus) -> bool) -> u64 {
        JobStatus::ALL.into_iter().filter(|status| is_counted(*status)).map(|status| self.0[status as usize]).sum()
    }

    pub(super) fn add(&mut self, status: JobStatus) {
        self.0[status as usize] += 1;
    }
}

impl AddAssign for StatusCounts {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
}

impl JobIndex {
    /// The number of jobs.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The ID of the newest job.
    pub fn newest(&self) -> Option<&JobId> {
        self.rows.last().map(|row| &row.id)
    }

    /// The IDs of jobs whose metrics change: those that have not ended, with an attempt, also while it is lost.
    pub fn with_progress(&self) -> impl Iterator<Item = &JobId> {
        let has_attempt = |row: &&Row| !self.text_sets.values[row.workers as usize].is_empty();
        self.rows.iter().filter(|row| !row.status.is_terminal()).filter(has_attempt).map(|row| &row.id)
    }

    /// Replaces or adds jobs, and removes those of `ids` that are not among them.
    pub fn update(&mut self, ids: impl IntoIterator<Item = JobId>, jobs: impl IntoIterator<Item = IndexedJob>) {
        let mut rows: BTreeMap<JobId, Option<Row>> = ids.into_iter().map(|id| (id, None)).collect();
        for job in jobs {
            rows.insert(job.id.clone(), Some(self.row(job)));
        }
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for (id, row) in rows {
            match (self.position(&id), row) {
                (Ok(at), Some(row)) => self.rows[at] = row,
                (Ok(_), None) => removed.push(id),
                (Err(_), Some(row)) => added.push(row),
                (Err(_), None) => {}
            }
        }
        if !removed.is_empty() {
            self.rows.retain(|row| removed.binary_search(&row.id).is_err());
        }
        let is_newer = |row: &Row| self.newest().is_none_or(|newest| *newest < row.id);
        let is_sorted = added.first().is_none_or(is_newer);
        self.rows.extend(added);
        if !is_sorted {
            self.rows.sort_by(|a, b| a.id.cmp(&b.id));
        }
        if self.shared_values() > 2 * self.values_in_use + UNUSED_VALUES {
            self.remove_unused_values();
            self.values_in_use = self.shared_values();
        }
    }

    /// The number of texts, lists of texts and revisions.
    pub(super) fn shared_values(&self) -> usize {
        self.texts.values.len() + self.text_sets.values.len() + self.revisions.len()
    }

    /// Removes the texts, lists of texts and revisions that no job has now.
    fn remove_unused_values(&mut self) {
        let mut texts = vec![false; self.texts.values.len()];
        let mut text_sets = vec![false; self.text_sets.values.len()];
        let mut revisions = vec![false; self.revisions.len()];
        for row in &mut self.rows {
            texts[row.user as usize] = true;
            revisions[row.revision as usize] = true;
            row.text_sets().into_iter().for_each(|set| text_sets[*set as usize] = true);
        }
        let used_sets = self.text_sets.values.iter().zip(&text_sets).filter(|(_, used)| **used);
        let used_revisions = self.revisions.iter().zip(&revisions).filter(|(_, used)| **used);
        let symbols = used_sets.flat_map(|(set, _)| set.iter().copied());
        let symbols = symbols.chain(used_revisions.map(|(revision, _)| revision.config));
        symbols.for_each(|symbol| texts[symbol as usize] = true);

        let texts = self.texts.rebuild(|number, text| texts[number].then_some(text));
        let renumbered = |set: Box<[Symbol]>| set.iter().map(|symbol| texts[*symbol as usize]).collect();
        let text_sets = self.text_sets.rebuild(|number, set| text_sets[number].then(|| renumbered(set)));
        self.revision_numbers.clear();
        let mut new_revisions = vec![u32::MAX; revisions.len()];
        for (number, revision) in std::mem::take(&mut self.revisions).into_iter().enumerate() {
            if revisions[number] {
                let config = texts[revision.config as usize];
                new_revisions[number] = self.add_revision(Revision { config, ..revision });
            }
        }
        for row in &mut self.rows {
            row.user = texts[row.user as usize];
            row.revision = new_revisions[row.revision as usize];
            row.text_sets().into_iter().for_each(|set| *set = text_sets[*set as usize]);
        }
    }

    pub(super) fn position(&self, id: &JobId) -> Result<usize, usize> {
        self.rows.binary_search_by(|row| row.id.cmp(id))
    }

    /// The revisions that jobs use and whose values are not loaded.
    pub fn revisions_without_values(&self) -> Vec<(String, u32)> {
        let missing = self.revisions.iter().filter(|revision| revision.values.is_none());
        missing.map(|revision| (self.text(revision.config).to_owned(), revision.number)).collect()
    }

    /// Sets the values of a revision.
    pub fn set_values(&mut self, config: &str, revision: u32, values: ConfigValues) {
        let revision = self.revision(config, revision);
        self.revisions[revision as usize].values = Some(values);
    }

    /// Selects a page, and counts all jobs that match.
    pub fn select(&self, request: &JobPageRequest<'_>) -> JobSelection {
        select(self, request)
    }

    /// Counts all jobs that match, by status.
    pub fn count(&self, query: &JobSearchQuery, now: Timestamp) -> StatusCounts {
        count(self, query, now)
    }

    pub(super) fn text(&self, symbol: Symbol) -> &str {
        &self.texts.values[symbol as usize]
    }

    fn text_set<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) -> u32 {
        let texts: Vec<Symbol> = texts.into_iter().map(|text| self.texts.number(text)).collect();
        self.text_sets.number(texts.as_slice())
    }

    fn revision(&mut self, config: &str, number: u32) -> u32 {
        let config = self.texts.number(config);
        let known = self.revision_numbers.get(&(config, number)).copied();
        known.unwrap_or_else(|| self.add_revision(Revision { config, number, values: None }))
    }

    fn add_revision(&mut self, revision: Revision) -> u32 {
        let number = u32::try_from(self.revisions.len()).expect("fewer than 2^32 revisions");
        self.revision_numbers.insert((revision.config, revision.number), number);
        self.revisions.push(revision);
        number
    }

    fn row(&mut self, job: IndexedJob) -> Row {
        let IndexedJob {
            id,
            number,
            config,
            revision,
            name,
            tags,
            starred_by,
            user,
            status,
            submitted_at,
            started_at,
            ended_at,
            priority,
            urgency,
            labels,
            gpus,
            workers,
            overrides,
            metrics,
        } = job;
        let labels: Vec<String> = labels.0.iter().map(|(key, value)| label_text(key, value)).collect();
        Row {
            id,
            number,
            revision: self.revision(&config, revision),
            name: name.map(String::into_boxed_str),
            tags: self.text_set(tags.iter().map(String::as_str)),
            starred_by: self.text_set(starred_by.iter().map(String::as_str)),
            user: self.texts.number(user.as_str()),
            status,
            submitted_at,
            started_at,
            ended_at,
            priority,
            urgency,
            labels: self.text_set(labels.iter().map(String::as_str)),
            gpus,
            workers: self.text_set(workers.iter().flat_map(|(id, name)| [id.as_str(), name.as_str()])),
            overrides,
            metric_names: self.text_set(metrics.keys().map(String::as_str)),
            metrics: metrics.into_values().collect(),
        }
    }
}
