//! The orders of the list of jobs, and the start of its pages.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use crate::domain::ids::JobId;
use crate::domain::text::natural_cmp;
use crate::words::words;

words!(
    /// A column that jobs can be sorted by.
    JobColumn {
        /// By submit.
        Submitted = "submitted",
        /// By name, or else by configuration.
        Name = "name",
        /// By configuration.
        Config = "config",
        /// By who submitted it.
        User = "user",
        /// By status, in the order of the life cycle.
        Status = "status",
        /// By the worker of the newest attempt.
        Worker = "worker",
        /// By revision of its configuration.
        Revision = "revision",
        /// By number of GPUs.
        Gpus = "gpus",
        /// By priority.
        Priority = "priority",
        /// By number of attempts.
        Attempts = "attempts",
        /// By the start of the newest attempt.
        Started = "started",
        /// By the end.
        Ended = "ended",
        /// By how long the newest attempt has run, or ran.
        Duration = "duration",
    }
);

/// What jobs are sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobSortKey {
    /// The order in which waiting jobs are offered.
    Queue,
    /// A column.
    Column(JobColumn),
    /// The newest value of a metric.
    Metric(String),
    /// A value of the configuration.
    Config(String),
}

impl JobSortKey {
    /// Parses its name.
    pub fn parse(name: &str) -> Option<Self> {
        let named = |prefix: &str| name.strip_prefix(prefix).filter(|name| !name.is_empty()).map(str::to_owned);
        match JobColumn::parse(name) {
            Some(column) => Some(Self::Column(column)),
            None if name == "queue" => Some(Self::Queue),
            None => named("metric.").map(Self::Metric).or_else(|| named("config.").map(Self::Config)),
        }
    }
}

impl fmt::Display for JobSortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue => f.write_str("queue"),
            Self::Column(column) => f.write_str(column.as_str()),
            Self::Metric(name) => write!(f, "metric.{name}"),
            Self::Config(key) => write!(f, "config.{key}"),
        }
    }
}

/// An order. As text, the key's name, with a `-` prefix for descending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOrder {
    /// The sort key.
    pub key: JobSortKey,
    /// Whether the largest value comes first.
    pub descending: bool,
}

impl JobOrder {
    /// The newest job first.
    pub const NEWEST: Self = Self { key: JobSortKey::Column(JobColumn::Submitted), descending: true };
    /// The next job of the queue first.
    pub const QUEUE: Self = Self { key: JobSortKey::Queue, descending: false };

    /// Parses the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let (descending, name) = text.strip_prefix('-').map_or((false, text), |name| (true, name));
        Some(Self { key: JobSortKey::parse(name)?, descending })
    }

    /// Returns whether a job can have this value in this order.
    pub const fn has_value(&self, value: &SortValue<'_>) -> bool {
        match self.key {
            JobSortKey::Queue => matches!(value, SortValue::Queue(..)),
            JobSortKey::Column(JobColumn::Submitted) => matches!(value, SortValue::Missing),
            _ => !matches!(value, SortValue::Queue(..)),
        }
    }

    /// Compares two jobs. Those without a value come last; equal ones are sorted by submit, the newest first.
    pub fn compare<I: Ord + Copy>(&self, left: (&SortValue<'_>, I), right: (&SortValue<'_>, I)) -> Ordering {
        let directed = |ordering: Ordering| if self.descending { ordering.reverse() } else { ordering };
        let by_value = match (left.0, right.0) {
            (SortValue::Missing, SortValue::Missing) => Ordering::Equal,
            (SortValue::Missing, _) => return Ordering::Greater,
            (_, SortValue::Missing) => return Ordering::Less,
            (left, right) => directed(left.compare(right)),
        };
        by_value.then_with(|| match self.key {
            JobSortKey::Queue | JobSortKey::Column(JobColumn::Submitted) => directed(left.1.cmp(&right.1)),
            _ => right.1.cmp(&left.1),
        })
    }
}

impl fmt::Display for JobOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.descending { "-" } else { "" }, self.key)
    }
}

/// What a job is sorted by.
#[derive(Debug, Clone, PartialEq)]
pub enum SortValue<'r> {
    /// It has no such value.
    Missing,
    /// A number; never NaN.
    Number(f64),
    /// A text.
    Text(Cow<'r, str>),
    /// Its place in the queue: urgency, most urgent first, and the time of the submit.
    Queue(i64, i64),
}

impl SortValue<'_> {
    /// Copies what is borrowed from a job.
    pub fn into_owned(self) -> SortValue<'static> {
        match self {
            Self::Missing => SortValue::Missing,
            Self::Number(number) => SortValue::Number(number),
            Self::Text(text) => SortValue::Text(Cow::Owned(text.into_owned())),
            Self::Queue(urgency, since) => SortValue::Queue(urgency, since),
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(left), Self::Number(right)) => left.total_cmp(right),
            (Self::Text(left), Self::Text(right)) => natural_cmp(left, right),
            (Self::Queue(left, since), Self::Queue(right, other)) => right.cmp(left).then_with(|| since.cmp(other)),
            // Numbers before texts, as in a configuration whose value is sometimes one and sometimes the other.
            (left, right) => left.rank().cmp(&right.rank()),
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Queue(..) => 0,
            Self::Number(_) => 1,
            Self::Text(_) => 2,
            Self::Missing => 3,
        }
    }
}

/// The last job of a page. The next page starts after it, wherever the job itself is then. As text: its ID, and after a
/// `~` its sort value.
#[derive(Debug, Clone, PartialEq)]
pub struct JobCursor {
    /// The sort value of the job.
    pub value: SortValue<'static>,
    /// Its ID.
    pub id: JobId,
}

impl JobCursor {
    /// Parses the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, value) = text.split_once('~').unwrap_or((text, ""));
        let value = match value.chars().next() {
            None => SortValue::Missing,
            Some('n') => SortValue::Number(value[1..].parse().ok().filter(|number: &f64| !number.is_nan())?),
            Some('t') => SortValue::Text(Cow::Owned(value[1..].to_owned())),
            Some('q') => {
                let (urgency, since) = value[1..].split_once('.')?;
                SortValue::Queue(urgency.parse().ok()?, since.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { value, id: JobId::parse(id).ok()? })
    }
}

impl fmt::Display for JobCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            SortValue::Missing => write!(f, "{}", self.id),
            SortValue::Number(number) => write!(f, "{}~n{number}", self.id),
            SortValue::Text(text) => write!(f, "{}~t{text}", self.id),
            SortValue::Queue(urgency, since) => write!(f, "{}~q{urgency}.{since}", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn orders_are_parsed() {
        let columns = JobColumn::ALL.map(JobSortKey::Column);
        let others =
            [JobSortKey::Queue, JobSortKey::Metric("loss".to_owned()), JobSortKey::Config("model.rank".to_owned())];
        for key in columns.into_iter().chain(others) {
            for descending in [false, true] {
                let order = JobOrder { key: key.clone(), descending };
                assert_eq!(JobOrder::parse(&order.to_string()), Some(order));
            }
        }
        assert_eq!(["", "-", "age", "--name", "metric.", "loss"].map(JobOrder::parse), [const { None }; 6]);
    }

    #[test]
    fn missing_values_are_last_in_both_directions() {
        let order = |text| JobOrder::parse(text).expect("an order");
        let (few, many) = (SortValue::Number(1.0), SortValue::Number(8.0));
        for (text, expected) in [("gpus", Ordering::Less), ("-gpus", Ordering::Greater)] {
            assert_eq!(order(text).compare((&few, 1), (&many, 2)), expected);
            assert_eq!(order(text).compare((&few, 1), (&SortValue::Missing, 2)), Ordering::Less);
            assert_eq!(order(text).compare((&few, 1), (&few, 2)), Ordering::Greater, "the newest first");
        }
        let queue = |urgency, since| SortValue::Queue(urgency, since);
        assert_eq!(JobOrder::QUEUE.compare((&queue(5, 1), 1), (&queue(5, 1), 2)), Ordering::Less);
        assert_eq!(JobOrder::QUEUE.compare((&queue(4, 1), 1), (&queue(5, 9), 2)), Ordering::Greater);
        assert_eq!(JobOrder::NEWEST.compare((&SortValue::Missing, 1), (&SortValue::Missing, 2)), Ordering::Greater);
    }

    fn value() -> impl Strategy<Value = SortValue<'static>> {
        prop_oneof![
            Just(SortValue::Missing),
            any::<f64>().prop_filter("a number", |number| !number.is_nan()).prop_map(SortValue::Number),
            ".{0,9}".prop_map(|text| SortValue::Text(Cow::Owned(text))),
            (any::<i64>(), any::<i64>()).prop_map(|(urgency, since)| SortValue::Queue(urgency, since)),
        ]
    }

    proptest! {
        #[test]
        fn cursor_round_trips(value in value(), at in 0..i64::from(u32::MAX)) {
            let cursor = JobCursor { value, id: JobId::new(Timestamp(at), [7; 10]) };
            prop_assert_eq!(JobCursor::parse(&cursor.to_string()), Some(cursor));
        }

        #[test]
        fn orders_are_total(values in prop::collection::vec(value(), 3), descending: bool) {
            let order = JobOrder { key: JobSortKey::Metric("loss".to_owned()), descending };
            let compare = |a: usize, b: usize| order.compare((&values[a], a), (&values[b], b));
            prop_assert_eq!(compare(0, 1), compare(1, 0).reverse());
            if compare(0, 1).is_lt() && compare(1, 2).is_lt() {
                prop_assert!(compare(0, 2).is_lt());
            }
        }
    }
}
