//! Evaluates a query: each text that jobs share is compared once, and its answer is looked up for each job.

use std::borrow::Cow;

use itertools::Itertools;

use super::index::{ConfigValue, JobIndex, JobPageRequest, JobSelection, Row, StatusCounts, Symbol, escaped_key};
use super::order::{JobColumn, JobCursor, JobSortKey, SortValue};
use super::query::{JobNumberField, JobSearchFilter, JobSearchQuery, JobTextField, JobTimeField};
use crate::domain::search_terms::TextPattern;
use crate::domain::time::{Millis, Timestamp};

/// Whether a job satisfies a condition.
type Check<'q> = Box<dyn Fn(&Row) -> bool + 'q>;

/// See [`JobIndex::select`].
pub(super) fn select(index: &JobIndex, request: &JobPageRequest<'_>) -> JobSelection {
    let JobPageRequest { query, statuses, order, after, limit, now } = *request;
    let (matches, sort_value) = (compile(index, query, now), sort_value(index, &order.key, now));
    let mut counts = StatusCounts::default();
    // From the newest: if the page has these, as usual, no row replaces another one.
    let rows = index.rows.iter().enumerate().rev().filter(|(_, row)| matches(row));
    let listed = rows.inspect(|(_, row)| counts.add(row.status)).filter(|(_, row)| statuses.contains(&row.status));
    // Rows are in the order of their IDs. The cursor is one of them, or was between two.
    let position = |at: usize| 2 * at + 1;
    let after = after.map(|after| (after, index.position(&after.id).map_or_else(|next| 2 * next, position)));
    let is_after = |(value, at): &(SortValue<'_>, usize)| {
        after.is_none_or(|(cursor, other)| order.compare((value, position(*at)), (&cursor.value, other)).is_gt())
    };
    // One more than the page, which tells whether there is a next one.
    let mut page: Vec<_> = listed
        .map(|(at, row)| (sort_value(row), at))
        .filter(is_after)
        .k_smallest_by(limit + 1, |(left, a), (right, b)| order.compare((left, *a), (right, *b)))
        .collect();
    let has_more = page.len() > limit;
    page.truncate(limit);
    let ids = page.iter().map(|(_, at)| index.rows[*at].id.clone()).collect();
    let last = page.pop().filter(|_| has_more);
    let next = last.map(|(value, at)| JobCursor { value: value.into_owned(), id: index.rows[at].id.clone() });
    JobSelection { ids, next, counts }
}

/// The jobs that match a query, the oldest first.
pub(super) fn matching_rows<'i>(
    index: &'i JobIndex,
    query: &'i JobSearchQuery,
    now: Timestamp,
) -> impl Iterator<Item = &'i Row> {
    let matches = compile(index, query, now);
    index.rows.iter().filter(move |row| matches(row))
}

/// See [`JobIndex::count`].
pub(super) fn count(index: &JobIndex, query: &JobSearchQuery, now: Timestamp) -> StatusCounts {
    let mut counts = StatusCounts::default();
    matching_rows(index, query, now).for_each(|row| counts.add(row.status));
    counts
}

fn compile<'q>(index: &'q JobIndex, query: &'q JobSearchQuery, now: Timestamp) -> Check<'q> {
    let checks: Vec<(bool, Check<'q>)> =
        query.0.iter().map(|term| (term.negated, check(index, &term.filter, now))).collect();
    Box::new(move |row| checks.iter().all(|(negated, check)| check(row) != *negated))
}

fn check<'q>(index: &'q JobIndex, filter: &'q JobSearchFilter, now: Timestamp) -> Check<'q> {
    match filter {
        JobSearchFilter::Any(pattern) => any_text(index, pattern),
        JobSearchFilter::Text(field, pattern) => text_check(index, *field, pattern),
        JobSearchFilter::Status(status) => Box::new(|row| row.status == *status),
        JobSearchFilter::Phase(phase) => Box::new(|row| row.status.is_in_phase(*phase)),
        JobSearchFilter::Label { key, value } => {
            let prefix = format!("{}=", escaped_key(key));
            let labels = shared_texts(index, |text| text.strip_prefix(&prefix).is_some_and(|text| value.matches(text)));
            let labels = sets_with(index, &labels);
            Box::new(move |row| has(&labels, row.labels))
        }
        JobSearchFilter::Number(field, comparison, number) => {
            let field = number_field(index, *field);
            Box::new(move |row| field(row).is_some_and(|value| comparison.holds(&value, number)))
        }
        JobSearchFilter::Time(field, condition) => {
            let field = *field;
            Box::new(move |row| time_field(row, field).is_some_and(|at| condition.holds(at, now)))
        }
        JobSearchFilter::Duration(comparison, duration) => {
            Box::new(move |row| duration_of(row, now).is_some_and(|value| comparison.holds(&value, duration)))
        }
        JobSearchFilter::Metric(name, comparison, number) => {
            let metric = metric(index, name);
            Box::new(move |row| metric(row).is_some_and(|value| comparison.holds(&value, number)))
        }
        JobSearchFilter::Value(name, comparison, number) => {
            let (metric, config) = (metric(index, name), config_number(index, name));
            Box::new(move |row| {
                metric(row).or_else(|| config(row)).is_some_and(|value| comparison.holds(&value, number))
            })
        }
        JobSearchFilter::ConfigNumber(key, comparison, number) => {
            let config = config_number(index, key);
            Box::new(move |row| config(row).is_some_and(|value| comparison.holds(&value, number)))
        }
        JobSearchFilter::ConfigText(key, pattern) => config_text(index, key, pattern),
    }
}

fn any_text<'q>(index: &'q JobIndex, pattern: &'q TextPattern) -> Check<'q> {
    let texts = shared_texts(index, |text| pattern.matches(text) || is_worker_id(text, pattern));
    let (configs, sets) = (by_revision(index, &texts), sets_with(index, &texts));
    let id_part = id_part(pattern);
    Box::new(move |row| {
        configs[row.revision as usize]
            || has(&texts, row.user)
            || [row.tags, row.labels, row.workers].into_iter().any(|set| has(&sets, set))
            || row.name.as_deref().is_some_and(|name| pattern.matches(name))
            || id_part.is_some_and(|part| is_id_prefix(row.id.as_str(), part) || pattern.matches_id(row.id.as_str()))
    })
}

/// The part of an ID that a word may be. IDs have no `i`, `l`, `o` and `u`.
fn id_part(pattern: &TextPattern) -> Option<&str> {
    let in_ids = |c: u8| c == b'_' || c.is_ascii_alphanumeric() && !b"ilou".contains(&c);
    match pattern {
        TextPattern::Partial(part) if part.bytes().all(in_ids) => Some(part),
        TextPattern::Partial(_) | TextPattern::Exact(_) => None,
    }
}

fn is_worker_id(text: &str, pattern: &TextPattern) -> bool {
    text.starts_with("w_") && pattern.matches_id(text)
}

/// Whether a word that looks like an ID is the beginning of one.
fn is_id_prefix(id: &str, part: &str) -> bool {
    part.starts_with("j_") && id.starts_with(part)
}

fn text_check<'q>(index: &'q JobIndex, field: JobTextField, pattern: &'q TextPattern) -> Check<'q> {
    let texts = || shared_texts(index, |text| pattern.matches(text));
    match field {
        JobTextField::Id => Box::new(|row| pattern.matches(row.id.as_str())),
        JobTextField::Name => Box::new(|row| row.name.as_deref().is_some_and(|name| pattern.matches(name))),
        JobTextField::Config => {
            let configs = by_revision(index, &texts());
            Box::new(move |row| configs[row.revision as usize])
        }
        JobTextField::User => {
            let users = texts();
            Box::new(move |row| has(&users, row.user))
        }
        JobTextField::Tag => {
            let tags = sets_with(index, &texts());
            Box::new(move |row| has(&tags, row.tags))
        }
        JobTextField::Starred => {
            let stars = sets_with(index, &texts());
            Box::new(move |row| has(&stars, row.starred_by))
        }
        JobTextField::Worker => {
            let workers = sets_with(index, &texts());
            Box::new(move |row| has(&workers, row.workers))
        }
    }
}

/// Which of the shared texts match, by symbol.
fn shared_texts(index: &JobIndex, matches: impl Fn(&str) -> bool) -> Vec<bool> {
    index.texts.values.iter().map(|text| matches(text)).collect()
}

/// Which lists of texts have one of these.
fn sets_with(index: &JobIndex, texts: &[bool]) -> Vec<bool> {
    index.text_sets.values.iter().map(|set| set.iter().any(|text| has(texts, *text))).collect()
}

fn has(answers: &[bool], number: u32) -> bool {
    answers[number as usize]
}

/// Which configurations match, by revision.
fn by_revision(index: &JobIndex, texts: &[bool]) -> Vec<bool> {
    index.revisions.iter().map(|revision| has(texts, revision.config)).collect()
}

fn number_field(index: &JobIndex, field: JobNumberField) -> impl Fn(&Row) -> Option<f64> {
    move |row| match field {
        JobNumberField::Number => row.number.map(f64::from),
        JobNumberField::Revision => Some(index.revisions[row.revision as usize].number.into()),
        JobNumberField::Gpus => row.gpus.map(f64::from),
        JobNumberField::Priority => Some(row.priority.into()),
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        JobNumberField::Attempts => Some((workers(index, row).len() / 2) as f64),
    }
}

const fn time_field(row: &Row, field: JobTimeField) -> Option<Timestamp> {
    match field {
        JobTimeField::Submitted => Some(row.submitted_at),
        JobTimeField::Started => row.started_at,
        JobTimeField::Ended => row.ended_at,
    }
}

fn duration_of(row: &Row, now: Timestamp) -> Option<Millis> {
    Some(row.ended_at.unwrap_or(now) - row.started_at?)
}

/// The IDs and names of a job's workers, one after the other.
fn workers<'q>(index: &'q JobIndex, row: &Row) -> &'q [Symbol] {
    &index.text_sets.values[row.workers as usize]
}

/// The newest value of a metric.
fn metric<'q>(index: &'q JobIndex, name: &str) -> impl Fn(&Row) -> Option<f64> + use<'q> {
    let position = |names: &[Symbol]| names.iter().position(|other| index.text(*other) == name);
    let positions: Vec<_> = index.text_sets.values.iter().map(|names| position(names)).collect();
    move |row| positions[row.metric_names as usize].map(|at| row.metrics[at])
}

/// The newest value of a metric of one job.
pub(super) fn metric_of(index: &JobIndex, row: &Row, name: &str) -> Option<f64> {
    let names = &index.text_sets.values[row.metric_names as usize];
    names.iter().position(|other| index.text(*other) == name).map(|at| row.metrics[at])
}

/// A value of the configuration of one job, with its overrides.
pub(super) fn config_value_of<'r>(index: &'r JobIndex, row: &'r Row, key: &str) -> Option<&'r ConfigValue> {
    match row.overrides.get(key) {
        Some(overridden) => overridden.as_ref(),
        None => index.revisions[row.revision as usize].values.as_ref()?.get(key),
    }
}

/// A value of the configuration, with the job's overrides.
fn config_value<'r>(by_revision: &[Option<&'r ConfigValue>], row: &'r Row, key: &str) -> Option<&'r ConfigValue> {
    match row.overrides.get(key) {
        Some(overridden) => overridden.as_ref(),
        None => by_revision[row.revision as usize],
    }
}

fn config_values<'q>(index: &'q JobIndex, key: &str) -> Vec<Option<&'q ConfigValue>> {
    index.revisions.iter().map(|revision| revision.values.as_ref()?.get(key)).collect()
}

fn config_number<'q>(index: &'q JobIndex, key: &'q str) -> impl Fn(&Row) -> Option<f64> + use<'q> {
    let values = config_values(index, key);
    move |row| config_value(&values, row, key)?.number
}

fn config_text<'q>(index: &'q JobIndex, key: &'q str, pattern: &'q TextPattern) -> Check<'q> {
    let values = config_values(index, key);
    let matching: Vec<bool> =
        values.iter().map(|value| value.is_some_and(|value| pattern.matches(&value.text))).collect();
    Box::new(move |row| match row.overrides.get(key) {
        Some(overridden) => overridden.as_ref().is_some_and(|value| pattern.matches(&value.text)),
        None => matching[row.revision as usize],
    })
}

fn sort_value<'r>(
    index: &'r JobIndex,
    key: &'r JobSortKey,
    now: Timestamp,
) -> Box<dyn Fn(&'r Row) -> SortValue<'r> + 'r> {
    match key {
        JobSortKey::Queue => Box::new(|row| SortValue::Queue(row.urgency, row.submitted_at.0)),
        JobSortKey::Column(column) => {
            let column = *column;
            Box::new(move |row| column_value(index, row, column, now))
        }
        JobSortKey::Metric(name) => {
            let metric = metric(index, name);
            Box::new(move |row| number(metric(row)))
        }
        JobSortKey::Config(key) => {
            let values = config_values(index, key);
            Box::new(move |row| match config_value(&values, row, key) {
                Some(ConfigValue { number: Some(value), .. }) => SortValue::Number(*value),
                Some(ConfigValue { text: value, .. }) => text(value),
                None => SortValue::Missing,
            })
        }
    }
}

fn column_value<'r>(index: &'r JobIndex, row: &'r Row, column: JobColumn, now: Timestamp) -> SortValue<'r> {
    let config = || index.text(index.revisions[row.revision as usize].config);
    match column {
        // Rows are in this order.
        JobColumn::Submitted => SortValue::Missing,
        JobColumn::Name => text(row.name.as_deref().unwrap_or_else(config)),
        JobColumn::Config => text(config()),
        JobColumn::User => text(index.text(row.user)),
        JobColumn::Status => number(Some(f64::from(row.status as u8))),
        JobColumn::Worker => workers(index, row).last().map_or(SortValue::Missing, |name| text(index.text(*name))),
        JobColumn::Revision => number(number_field(index, JobNumberField::Revision)(row)),
        JobColumn::Gpus => number(number_field(index, JobNumberField::Gpus)(row)),
        JobColumn::Priority => number(number_field(index, JobNumberField::Priority)(row)),
        JobColumn::Attempts => number(number_field(index, JobNumberField::Attempts)(row)),
        JobColumn::Started => time(row.started_at),
        JobColumn::Ended => time(row.ended_at),
        JobColumn::Duration => duration_of(row, now).map_or(SortValue::Missing, |span| time(Some(Timestamp(span.0)))),
    }
}

const fn text(text: &str) -> SortValue<'_> {
    SortValue::Text(Cow::Borrowed(text))
}

fn number<'r>(number: Option<f64>) -> SortValue<'r> {
    number.filter(|number| !number.is_nan()).map_or(SortValue::Missing, SortValue::Number)
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds are exact for a hundred thousand years")]
fn time<'r>(at: Option<Timestamp>) -> SortValue<'r> {
    at.map_or(SortValue::Missing, |at| SortValue::Number(at.0 as f64))
}
