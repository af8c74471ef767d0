//! Jobs grouped by configuration, user or tag.

use super::index::{JobIndex, Row, StatusCounts, Symbol};
use super::matcher::matching_rows;
use super::query::JobSearchQuery;
use crate::domain::job_status::JobStatus;
use crate::domain::time::Timestamp;
use crate::words::wire_words;

wire_words!(
    /// What jobs are grouped by.
    JobGrouping {
        /// Their configuration.
        Config = "config",
        /// Who submitted them.
        User = "user",
        /// Each of their tags.
        Tag = "tag",
    }
);

/// The jobs with one configuration, user or tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobGroup {
    /// The configuration, user or tag; empty for jobs without a tag.
    pub value: String,
    /// How many jobs there are, by status.
    pub counts: StatusCounts,
    /// When the newest one was submitted.
    pub newest: Timestamp,
}

/// The groups of the jobs that match a query, the one with the newest job first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobGroups {
    /// The first ones.
    pub groups: Vec<JobGroup>,
    /// How many there are.
    pub total: usize,
}

/// What is counted of one group.
type Tally = Option<(StatusCounts, Timestamp)>;

impl JobIndex {
    /// Groups the jobs that match a query and have one of these statuses.
    pub fn groups(
        &self,
        by: JobGrouping,
        query: &JobSearchQuery,
        statuses: &[JobStatus],
        limit: usize,
        now: Timestamp,
    ) -> JobGroups {
        let rows = matching_rows(self, query, now).filter(|row| statuses.contains(&row.status));
        let mut groups = match by {
            JobGrouping::Config => self.by_text(rows, |row| self.revisions[row.revision as usize].config),
            JobGrouping::User => self.by_text(rows, |row| row.user),
            JobGrouping::Tag => self.by_tag(rows),
        };
        groups.sort_by(|a, b| b.newest.cmp(&a.newest).then_with(|| a.value.cmp(&b.value)));
        let total = groups.len();
        groups.truncate(limit);
        JobGroups { groups, total }
    }

    fn by_text<'r>(&self, rows: impl Iterator<Item = &'r Row>, text: impl Fn(&Row) -> Symbol) -> Vec<JobGroup> {
        let mut tallies = vec![Tally::None; self.texts.values.len()];
        rows.for_each(|row| add(&mut tallies[text(row) as usize], row));
        let groups = tallies.into_iter().zip(&self.texts.values);
        groups.filter_map(|(tally, text)| Some(group(text, tally?))).collect()
    }

    fn by_tag<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Vec<JobGroup> {
        let mut by_set = vec![Tally::None; self.text_sets.values.len()];
        rows.for_each(|row| add(&mut by_set[row.tags as usize], row));
        let (mut untagged, mut tallies) = (Tally::None, vec![Tally::None; self.texts.values.len()]);
        for (tally, tags) in by_set.into_iter().zip(&self.text_sets.values) {
            let Some(tally) = tally else { continue };
            if tags.is_empty() {
                merge(&mut untagged, tally);
            }
            tags.iter().for_each(|tag| merge(&mut tallies[*tag as usize], tally));
        }
        let tagged = tallies.into_iter().zip(&self.texts.values);
        let tagged = tagged.filter_map(|(tally, tag)| Some(group(tag, tally?)));
        tagged.chain(untagged.map(|tally| group("", tally))).collect()
    }
}

fn add(tally: &mut Tally, row: &Row) {
    let mut counts = StatusCounts::default();
    counts.add(row.status);
    merge(tally, (counts, row.submitted_at));
}

fn merge(tally: &mut Tally, (counts, newest): (StatusCounts, Timestamp)) {
    let (sum, latest) = tally.get_or_insert((StatusCounts::default(), newest));
    *sum += counts;
    *latest = (*latest).max(newest);
}

fn group(value: &str, (counts, newest): (StatusCounts, Timestamp)) -> JobGroup {
    JobGroup { value: value.to_owned(), counts, newest }
}
