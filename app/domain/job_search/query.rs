//! What jobs can be filtered by, in the query language of [`search_terms`](crate::domain::search_terms):
//! `config:flux* tag:ablation status:failed loss<0.3 submitted>-7d`.

use std::fmt;

pub use super::conditions::{Comparison, TimeCondition};
use super::conditions::{format_duration, format_number, parse_duration, parse_number};
use crate::domain::job_status::{JobPhase, JobStatus};
use crate::domain::search_terms::{
    AllowedTermValues, SearchFilter, SearchOperator, SearchTerms, TextPattern, parse_keyword, quote,
};
use crate::domain::time::{Millis, Timestamp};
use crate::words::words;

/// A query for jobs.
pub type JobSearchQuery = SearchTerms<JobSearchFilter>;

words!(
    /// A text of a job.
    JobTextField {
        /// Its ID.
        Id = "id",
        /// Its name.
        Name = "name",
        /// Its configuration's name.
        Config = "config",
        /// One of its tags.
        Tag = "tag",
        /// Who submitted it.
        User = "user",
        /// A user who has starred it; `me` is the one who searches.
        Starred = "starred",
        /// The name or ID of a worker that it was offered to.
        Worker = "worker",
    }
);

words!(
    /// A number of a job.
    JobNumberField {
        /// Its number among the jobs of its configuration.
        Number = "number",
        /// The revision of its configuration.
        Revision = "revision",
        /// The number of its GPUs.
        Gpus = "gpus",
        /// Its priority.
        Priority = "priority",
        /// The number of its attempts.
        Attempts = "attempts",
    }
);

words!(
    /// A time of a job.
    JobTimeField {
        /// When it was submitted.
        Submitted = "submitted",
        /// When its newest attempt started.
        Started = "started",
        /// When it ended.
        Ended = "ended",
    }
);

/// A filter on jobs.
#[derive(Debug, Clone, PartialEq)]
pub enum JobSearchFilter {
    /// Any text of it, or a required label.
    Any(TextPattern),
    /// One of its texts.
    Text(JobTextField, TextPattern),
    /// Its status.
    Status(JobStatus),
    /// Its phase; not `running`, which is a status here.
    Phase(JobPhase),
    /// A label that it requires.
    Label {
        /// The label's key.
        key: String,
        /// The required value, which is a glob itself.
        value: TextPattern,
    },
    /// One of its numbers.
    Number(JobNumberField, Comparison, f64),
    /// One of its times.
    Time(JobTimeField, TimeCondition),
    /// How long its newest attempt has run, or ran.
    Duration(Comparison, Millis),
    /// The newest value of a metric.
    Metric(String, Comparison, f64),
    /// A metric of this name, or else a value of the configuration.
    Value(String, Comparison, f64),
    /// A value of the configuration, with the job's overrides, as text.
    ConfigText(String, TextPattern),
    /// A value of the configuration as a number.
    ConfigNumber(String, Comparison, f64),
}

const DURATION: &str = "duration";
const METRIC: &str = "metric.";
const CONFIG: &str = "config.";
const LABEL: &str = "label.";

/// Examples of allowed values, which need no translation.
const NUMBERS: &str = "10, 0.5, 1e-5";

impl SearchFilter for JobSearchFilter {
    const KEYS_HELP: &'static str = "status, name, config, tag, user, starred, worker, id, label.…, number, revision, gpus, \
         priority, attempts, submitted, started, ended, duration, metric.…, config.…";

    /// `#42` is the number of a job.
    fn any(word: &str) -> Self {
        let number = word.strip_prefix('#').filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        match number.and_then(parse_number) {
            Some(number) => Self::Number(JobNumberField::Number, Comparison::Equal, number),
            None => Self::Any(TextPattern::partial(word)),
        }
    }

    fn has_key(key: &str, operator: SearchOperator) -> bool {
        let is_word = is_text_key(key) || key == "status" || has_prefix(key, LABEL);
        let is_number = JobNumberField::parse(key).is_some() || JobTimeField::parse(key).is_some() || key == DURATION;
        if operator.is_comparison() {
            // A name alone is a metric, or a value of the configuration.
            return !is_word && !key.is_empty();
        }
        is_word || is_number || has_prefix(key, METRIC) || has_prefix(key, CONFIG)
    }

    /// Values of labels and configurations can be empty.
    fn may_be_empty(key: &str, operator: SearchOperator) -> bool {
        operator == SearchOperator::Equals && (has_prefix(key, LABEL) || has_prefix(key, CONFIG))
    }

    fn parse(key: &str, operator: SearchOperator, value: &str) -> Result<Self, AllowedTermValues> {
        let pattern = || TextPattern::new(operator, value);
        let comparison = Comparison::of(operator);
        let number = || parse_number(value).ok_or(AllowedTermValues::Like(NUMBERS));
        if let Some(field) = JobTextField::parse(key) {
            return Ok(Self::Text(field, pattern()));
        }
        if key == "status" {
            return parse_status(value);
        }
        if let Some(label) = key.strip_prefix(LABEL) {
            return Ok(Self::Label { key: label.to_owned(), value: pattern() });
        }
        if let Some(field) = JobNumberField::parse(key) {
            return Ok(Self::Number(field, comparison, number()?));
        }
        if let Some(field) = JobTimeField::parse(key) {
            return Ok(Self::Time(field, TimeCondition::parse(comparison, value)?));
        }
        if key == DURATION {
            let duration = parse_duration(value).ok_or(AllowedTermValues::Like("30m, 2h, 7d"));
            return Ok(Self::Duration(comparison, duration?));
        }
        if let Some(metric) = key.strip_prefix(METRIC) {
            return Ok(Self::Metric(metric.to_owned(), comparison, number()?));
        }
        match key.strip_prefix(CONFIG) {
            Some(key) if operator.is_comparison() => Ok(Self::ConfigNumber(key.to_owned(), comparison, number()?)),
            Some(key) => Ok(Self::ConfigText(key.to_owned(), pattern())),
            None => Ok(Self::Value(key.to_owned(), comparison, number()?)),
        }
    }
}

impl JobSearchFilter {
    /// Moves a day to another time zone; see [`TimeCondition::in_zone`].
    pub fn in_zone(&mut self, to_utc: impl Fn(Timestamp) -> Timestamp) {
        if let Self::Time(_, condition) = self {
            condition.in_zone(to_utc);
        }
    }

    /// Replaces `starred:me` by the name of the user who searches.
    pub fn resolve_me(&mut self, user: &str) {
        if let Self::Text(JobTextField::Starred, pattern) = self
            && matches!(pattern, TextPattern::Partial(me) | TextPattern::Exact(me) if me == "me")
        {
            *pattern = TextPattern::literal(user);
        }
    }

    /// For a user who may not see configurations: a name alone is a metric.
    pub fn exclude_config(&mut self) {
        if let Self::Value(name, comparison, number) = self {
            *self = Self::Metric(std::mem::take(name), *comparison, *number);
        }
    }

    /// Returns whether it shows something of a configuration.
    pub const fn reads_config(&self) -> bool {
        matches!(self, Self::Value(..) | Self::ConfigText(..) | Self::ConfigNumber(..))
    }

    /// Returns whether it depends on the progress of a job.
    pub const fn reads_metrics(&self) -> bool {
        matches!(self, Self::Value(..) | Self::Metric(..))
    }
}

fn is_text_key(key: &str) -> bool {
    JobTextField::parse(key).is_some()
}

fn has_prefix(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix).is_some_and(|name| !name.is_empty())
}

/// A status, or a phase that has no status of this name.
fn parse_status(value: &str) -> Result<JobSearchFilter, AllowedTermValues> {
    let statuses = JobStatus::ALL.map(|status| (status.as_str(), JobSearchFilter::Status(status)));
    let phases = [JobPhase::Active, JobPhase::Waiting, JobPhase::Ended];
    let phases = phases.map(|phase| (phase.as_str(), JobSearchFilter::Phase(phase)));
    parse_keyword(value, statuses.into_iter().chain(phases))
}

impl fmt::Display for JobSearchFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(TextPattern::Partial(text) | TextPattern::Exact(text)) => f.write_str(&quote(text)),
            Self::Text(field, pattern) => write!(f, "{}{pattern}", field.as_str()),
            Self::Status(status) => write!(f, "status:{}", status.as_str()),
            Self::Phase(phase) => write!(f, "status:{}", phase.as_str()),
            Self::Label { key, value } => write!(f, "{LABEL}{}{value}", quote(key)),
            Self::Number(field, comparison, number) => {
                write!(f, "{}{comparison}{}", field.as_str(), format_number(*number))
            }
            Self::Time(field, condition) => write!(f, "{}{condition}", field.as_str()),
            Self::Duration(comparison, duration) => write!(f, "{DURATION}{comparison}{}", format_duration(*duration)),
            Self::Metric(name, comparison, number) => {
                write!(f, "{METRIC}{}{comparison}{}", quote(name), format_number(*number))
            }
            Self::Value(name, comparison, number) => write!(f, "{}{comparison}{}", quote(name), format_number(*number)),
            Self::ConfigText(key, pattern) => write!(f, "{CONFIG}{}{pattern}", quote(key)),
            Self::ConfigNumber(key, comparison, number) => {
                write!(f, "{CONFIG}{}{comparison}{}", quote(key), format_number(*number))
            }
        }
    }
}
