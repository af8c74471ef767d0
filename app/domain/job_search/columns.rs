//! The columns of the list of jobs, as users choose them.

use std::fmt;

use super::index::{IndexedValue, JobIndex};
use super::matcher::{config_value_of, metric_of};
use super::order::{JobColumn, JobSortKey};
use crate::domain::ids::JobId;
use crate::domain::job_status::JobPhase;
use crate::words::words;

/// The maximum number of columns.
pub const MAX_COLUMNS: usize = 20;

words!(
    /// A column that the list cannot be sorted by.
    JobDetail {
        /// The ID.
        Id = "id",
        /// The tags.
        Tags = "tags",
        /// What the job requires of a worker.
        Requires = "requires",
        /// The step, and how many there are.
        Progress = "progress",
        /// The trainer's estimate of the time until the end.
        TimeLeft = "time_left",
    }
);

/// A column. The name is always the first one, and not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobListColumn {
    /// The list can be sorted by it.
    Sortable(JobSortKey),
    /// The list cannot be sorted by it.
    Detail(JobDetail),
}

impl JobListColumn {
    /// Parses the name of a column.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(detail) = JobDetail::parse(name) {
            return Some(Self::Detail(detail));
        }
        match JobSortKey::parse(name)? {
            JobSortKey::Queue | JobSortKey::Column(JobColumn::Name) => None,
            key => Some(Self::Sortable(key)),
        }
    }

    /// The columns that every job has, in the order in which they are offered.
    pub fn known() -> impl Iterator<Item = Self> {
        let sortable = JobColumn::ALL.into_iter().filter(|column| *column != JobColumn::Name);
        let sortable = sortable.map(|column| Self::Sortable(JobSortKey::Column(column)));
        sortable.chain(JobDetail::ALL.map(Self::Detail))
    }

    /// Returns whether it is a metric or a value of the configuration.
    pub const fn has_value(&self) -> bool {
        self.reads_config() || self.reads_metrics()
    }

    /// Returns whether it shows something of a configuration.
    pub const fn reads_config(&self) -> bool {
        matches!(self, Self::Sortable(JobSortKey::Config(_)))
    }

    /// Returns whether it depends on the progress of a job.
    pub const fn reads_metrics(&self) -> bool {
        matches!(self, Self::Sortable(JobSortKey::Metric(_)))
    }
}

impl fmt::Display for JobListColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sortable(key) => key.fmt(f),
            Self::Detail(detail) => f.write_str(detail.as_str()),
        }
    }
}

/// Chosen columns, in order. As text, their names with commas between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobListColumns(pub Vec<JobListColumn>);

impl JobListColumns {
    /// Parses the text form. A repeated column is listed once.
    pub fn parse(text: &str) -> Option<Self> {
        let mut columns = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let column = JobListColumn::parse(name)?;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        (columns.len() <= MAX_COLUMNS).then_some(Self(columns))
    }

    /// The columns of a list for which none are chosen.
    pub fn default_for(phase: Option<JobPhase>) -> Self {
        let names = match phase {
            Some(JobPhase::Waiting) => "status,user,requires,priority,submitted,duration",
            Some(JobPhase::Running) => "status,user,progress,metric.loss,worker,duration,time_left",
            _ => "status,user,progress,metric.loss,worker,submitted,duration",
        };
        Self::parse(names).unwrap_or_default()
    }

    /// Returns the names of its metrics and values of the configuration.
    pub fn value_names(&self) -> Vec<String> {
        self.0.iter().filter(|column| column.has_value()).map(ToString::to_string).collect()
    }

    /// Returns the list with the column moved by one place, or the list itself at its end.
    #[must_use]
    pub fn moved(&self, column: &JobListColumn, is_later: bool) -> Self {
        let mut columns = self.0.clone();
        let at = columns.iter().position(|other| other == column);
        let to = at.and_then(|at| if is_later { at.checked_add(1) } else { at.checked_sub(1) });
        if let (Some(at), Some(to)) = (at, to.filter(|to| *to < columns.len())) {
            columns.swap(at, to);
        }
        Self(columns)
    }

    /// Returns the list without a column.
    #[must_use]
    pub fn without(&self, column: &JobListColumn) -> Self {
        Self(self.0.iter().filter(|other| *other != column).cloned().collect())
    }

    /// Returns the list with one more column.
    #[must_use]
    pub fn with(&self, column: JobListColumn) -> Self {
        Self(self.0.iter().cloned().chain([column]).collect())
    }
}

impl fmt::Display for JobListColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, column) in self.0.iter().enumerate() {
            write!(f, "{}{column}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl JobIndex {
    /// Returns what a job has in the columns of metrics and of values of the configuration.
    pub fn values(&self, id: &JobId, columns: &JobListColumns) -> Vec<(String, IndexedValue)> {
        let Ok(at) = self.position(id) else { return Vec::new() };
        let row = &self.rows[at];
        let value = |column: &JobListColumn| match column {
            JobListColumn::Sortable(JobSortKey::Metric(name)) => metric_of(self, row, name).map(IndexedValue::Number),
            JobListColumn::Sortable(JobSortKey::Config(key)) => {
                config_value_of(self, row, key).map(|value| IndexedValue::Text(value.text.clone()))
            }
            JobListColumn::Sortable(_) | JobListColumn::Detail(_) => None,
        };
        columns.0.iter().filter_map(|column| Some((column.to_string(), value(column)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> JobListColumns {
        JobListColumns::parse(text).unwrap_or_else(|| panic!("{text} are columns"))
    }

    #[test]
    fn columns_round_trip() {
        let known = JobListColumns(JobListColumn::known().collect());
        assert_eq!(columns(&known.to_string()), known);
        let text = "status,metric.val/loss,config.model.rank,id";
        assert_eq!(columns(text).to_string(), text);
        assert_eq!(columns(" status, user,,status ").to_string(), "status,user");
        assert_eq!(columns(""), JobListColumns::default());
        for phase in [None, Some(JobPhase::Waiting), Some(JobPhase::Running)] {
            assert!(JobListColumns::default_for(phase).0.len() > 5);
        }
    }

    #[test]
    fn unknown_and_too_many_columns_are_rejected() {
        for text in ["name", "queue", "loss", "metric.", "status;user"] {
            assert_eq!(JobListColumns::parse(text), None, "{text}");
        }
        let many = |count: usize| (0..count).map(|n| format!("metric.m{n}")).collect::<Vec<_>>().join(",");
        assert_eq!(columns(&many(MAX_COLUMNS)).0.len(), MAX_COLUMNS);
        assert_eq!(JobListColumns::parse(&many(MAX_COLUMNS + 1)), None);
    }

    #[test]
    fn columns_are_moved_added_and_removed() {
        let all = columns("status,user,id");
        let user = JobListColumn::parse("user").expect("a column");
        assert_eq!(all.moved(&user, false).to_string(), "user,status,id");
        assert_eq!(all.moved(&user, true).to_string(), "status,id,user");
        assert_eq!(all.moved(&all.0[0], false), all);
        assert_eq!(all.moved(&all.0[2], true), all);
        assert_eq!(all.without(&user).to_string(), "status,id");
        assert_eq!(all.without(&user).with(user).to_string(), "status,id,user");
    }
}
