//! Completions of a query while it is typed: keys, and values that jobs have.

use std::collections::BTreeMap;

use super::columns::{JobListColumn, JobListColumns};
use super::index::{JobIndex, Row};
use super::matcher::matching_rows;
use super::order::JobSortKey;
use super::query::{JobNumberField, JobSearchQuery, JobTextField, JobTimeField};
use crate::domain::job_status::{JobPhase, JobStatus};
use crate::domain::search_terms::{LastTerm, quote};
use crate::domain::time::Timestamp;

/// What is completed, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct CompletionRequest<'q> {
    /// The text until the cursor.
    pub text: &'q str,
    /// The jobs whose values may be shown.
    pub visible: &'q JobSearchQuery,
    /// Whether keys and values of configurations may be shown.
    pub shows_config: bool,
    /// The maximum number of completions.
    pub limit: usize,
    /// The current time.
    pub now: Timestamp,
}

/// How many jobs have each text.
type TextCounts = BTreeMap<String, u64>;

/// What the visible jobs have.
struct KnownValues {
    /// By field; `label.KEY` and `config.KEY` are fields too.
    by_field: BTreeMap<String, TextCounts>,
    metrics: TextCounts,
}

impl JobIndex {
    /// Returns the text with its last term completed, the most frequent values first.
    pub fn complete(&self, request: &CompletionRequest<'_>) -> Vec<String> {
        let (term, known) = (LastTerm::of(request.text), self.known_values(request));
        let mut found = match term.operator {
            Some((key, operator)) => {
                let matching = matching_values(known.by_field.get(key), term.value);
                let completed = |value: &str| format!("{key}{}{}", operator.as_str(), quote(value));
                matching.map(|(value, count)| (completed(value), count)).collect()
            }
            None => complete_word(&known, term.value),
        };
        // The sort is stable: equally frequent ones stay in their order.
        found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        found.truncate(request.limit);
        found.into_iter().map(|(completed, _)| format!("{}{completed}", term.before)).collect()
    }

    /// Returns the columns of metrics and of values of configurations that visible jobs have, the most frequent first.
    pub fn value_columns(&self, visible: &JobSearchQuery, shows_config: bool, now: Timestamp) -> Vec<JobListColumn> {
        let mut tally = Tally::new(self);
        matching_rows(self, visible, now).for_each(|row| tally.add(row));
        let metrics =
            self.texts_of_sets(&tally.metrics).into_iter().map(|(name, count)| (JobSortKey::Metric(name), count));
        let used = self.revisions.iter().zip(&tally.revisions).filter(|(_, count)| shows_config && **count > 0);
        let mut config = TextCounts::new();
        for (revision, count) in used {
            for key in revision.values.iter().flat_map(BTreeMap::keys) {
                *config.entry(key.clone()).or_default() += count;
            }
        }
        let config = config.into_iter().map(|(key, count)| (JobSortKey::Config(key), count));
        let mut columns: Vec<(JobSortKey, u64)> = metrics.chain(config).collect();
        columns.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        // Others cannot be written in a list of columns.
        let columns = columns.into_iter().map(|(key, _)| JobListColumn::Sortable(key));
        columns
            .filter(|column| {
                JobListColumns::parse(&column.to_string())
                    .is_some_and(|columns| columns.0 == std::slice::from_ref(column))
            })
            .collect()
    }

    fn known_values(&self, request: &CompletionRequest<'_>) -> KnownValues {
        let mut tally = Tally::new(self);
        matching_rows(self, request.visible, request.now).for_each(|row| tally.add(row));
        tally.finish(request.shows_config)
    }

    fn texts_of_sets(&self, sets: &[u64]) -> TextCounts {
        let mut texts = TextCounts::new();
        for (set, count) in self.text_sets.values.iter().zip(sets).filter(|(_, count)| **count > 0) {
            for text in set {
                *texts.entry(self.text(*text).to_owned()).or_default() += count;
            }
        }
        texts
    }
}

/// The number of jobs by what they share: counted by number, and turned into texts at the end.
struct Tally<'i> {
    index: &'i JobIndex,
    revisions: Vec<u64>,
    users: Vec<u64>,
    tags: Vec<u64>,
    labels: Vec<u64>,
    workers: Vec<u64>,
    metrics: Vec<u64>,
}

impl<'i> Tally<'i> {
    fn new(index: &'i JobIndex) -> Self {
        let (texts, sets) = (index.texts.values.len(), index.text_sets.values.len());
        let zeros = |length| vec![0; length];
        let [tags, labels, workers, metrics] = [sets; 4].map(zeros);
        Self { index, revisions: zeros(index.revisions.len()), users: zeros(texts), tags, labels, workers, metrics }
    }

    fn add(&mut self, row: &Row) {
        self.revisions[row.revision as usize] += 1;
        self.users[row.user as usize] += 1;
        self.tags[row.tags as usize] += 1;
        self.labels[row.labels as usize] += 1;
        self.workers[row.workers as usize] += 1;
        self.metrics[row.metric_names as usize] += 1;
    }

    fn finish(self, shows_config: bool) -> KnownValues {
        let mut by_field = BTreeMap::<String, TextCounts>::new();
        let mut add = |field: &str, value: &str, count: u64| {
            *by_field.entry(field.to_owned()).or_default().entry(value.to_owned()).or_default() += count;
        };
        for (revision, count) in self.index.revisions.iter().zip(&self.revisions).filter(|(_, count)| **count > 0) {
            add(JobTextField::Config.as_str(), self.index.text(revision.config), *count);
            for (key, value) in revision.values.iter().flatten().filter(|_| shows_config) {
                add(&format!("config.{}", quote(key)), &value.text, *count);
            }
        }
        for (user, count) in self.index.texts.values.iter().zip(&self.users).filter(|(_, count)| **count > 0) {
            add(JobTextField::User.as_str(), user, *count);
        }
        for (tag, count) in self.index.texts_of_sets(&self.tags) {
            add(JobTextField::Tag.as_str(), &tag, count);
        }
        for (label, count) in self.index.texts_of_sets(&self.labels) {
            let (key, value) = label.split_once('=').unwrap_or((&label, ""));
            add(&format!("label.{}", quote(key)), value, count);
        }
        for (worker, count) in self.index.texts_of_sets(&self.workers) {
            add(JobTextField::Worker.as_str(), &worker, count);
        }
        let phases = [JobPhase::Active, JobPhase::Waiting, JobPhase::Ended];
        let statuses = JobStatus::ALL.map(JobStatus::as_str).into_iter().chain(phases.map(JobPhase::as_str));
        statuses.for_each(|status| add("status", status, 1));
        KnownValues { by_field, metrics: self.index.texts_of_sets(&self.metrics) }
    }
}

/// Keys that begin with a word, and then values that contain it.
fn complete_word(known: &KnownValues, word: &str) -> Vec<(String, u64)> {
    let metrics = known.metrics.keys().map(|name| format!("{}<", quote(name)));
    let keys = keys(known).chain(metrics).filter(|key| is_begun(key, word)).map(|key| (key, u64::MAX));
    let fields = [JobTextField::Config, JobTextField::Tag, JobTextField::User, JobTextField::Worker];
    let values = fields.into_iter().filter(|_| !word.is_empty()).flat_map(|field| {
        let matching = matching_values(known.by_field.get(field.as_str()), word);
        matching.map(move |(value, count)| (format!("{}:{}", field.as_str(), quote(value)), count))
    });
    keys.chain(values).collect()
}

/// All keys with the operator that they are usually used with.
fn keys(known: &KnownValues) -> impl Iterator<Item = String> {
    let texts = JobTextField::ALL.map(|field| format!("{}:", field.as_str()));
    let numbers = JobNumberField::ALL.map(|field| format!("{}>", field.as_str()));
    let times = JobTimeField::ALL.map(|field| format!("{}>", field.as_str()));
    let others = ["status:", "duration>"].map(str::to_owned);
    let with_keys = known.by_field.keys().filter(|field| field.contains('.')).map(|field| format!("{field}:"));
    others.into_iter().chain(texts).chain(times).chain(numbers).chain(with_keys)
}

/// Whether a word is the beginning of a key, or of the part after its dot.
fn is_begun(key: &str, word: &str) -> bool {
    let begins = |text: &str| text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    begins(key) || !word.is_empty() && key.split(['.', '_', '/']).any(begins)
}

/// The values that contain a text.
fn matching_values<'k>(values: Option<&'k TextCounts>, part: &str) -> impl Iterator<Item = (&'k str, u64)> + use<'k> {
    let part = part.to_lowercase();
    let matching = values.into_iter().flatten().filter(move |(value, _)| value.to_lowercase().contains(&part));
    matching.map(|(value, count)| (value.as_str(), *count))
}
