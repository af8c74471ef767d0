//! `/api/queue/logs/search`: a search in the logs of many jobs.

use serde::{Deserialize, Serialize};

use super::JobView;
use crate::protocol::logs::LogMatch;

/// Query string of `GET /api/queue/logs/search`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobLogsQuery {
    /// The text to search for in each line, 1 to 1000 bytes. Case is significant only if it has capitals.
    #[serde(default)]
    pub q: String,
    /// Only logs of jobs that match this search, as `q` of `GET /api/queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<String>,
    /// Only logs of jobs of the configuration with this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The time zone of days in `jobs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether `q` is a regular expression.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub regex: bool,
    /// Continues after the page with this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/queue/logs/search`: a part of the jobs, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobLogsPage {
    /// The jobs with matches, and those whose logs were not read to their ends.
    pub jobs: Vec<JobLogMatches>,
    /// Number of jobs whose logs were searched.
    pub searched: u32,
    /// Returned if there are more jobs to search.
    pub next_cursor: Option<String>,
}

/// The first matching lines in the log of a job's newest attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobLogMatches {
    /// The job.
    pub job: JobView,
    /// The matching lines, at most three.
    pub matches: Vec<LogMatch>,
    /// Whether a part of the log was not searched, because it is too long for one request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}
