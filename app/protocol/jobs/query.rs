//! The filters of the list of jobs.

use serde::{Deserialize, Serialize};

use super::JobCounts;
use crate::domain::ids::WorkerId;
use crate::domain::job_search::groups::JobGrouping;
use crate::domain::time::Timestamp;
use crate::protocol::status::{JobPhase, JobStatus};

/// Query string of `GET /api/queue`. The command line has its filters as flags, with the same descriptions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct JobsQuery {
    /// Only jobs in this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(skip))]
    pub status: Option<JobStatus>,
    /// Only jobs in this phase: `active` (not ended), `waiting`, `running` or `ended`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(skip))]
    pub phase: Option<JobPhase>,
    /// Only jobs that this user submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long))]
    pub user: Option<String>,
    /// Only jobs that require this label, `key=value`, or any value of a `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long))]
    pub label: Option<String>,
    /// Only jobs that match this search, such as `flux tag:ablation status:failed loss<0.3 submitted>-7d`; all terms
    /// must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(value_name = "QUERY"))]
    pub q: Option<String>,
    /// The time zone of days in `q`, such as `Europe/Berlin`; UTC if it is omitted or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    pub zone: Option<String>,
    /// Only jobs with this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long))]
    pub tag: Option<String>,
    /// Only jobs of the configuration with this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    pub config: Option<String>,
    /// Only jobs with an attempt that was offered to this worker (ID), whatever its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long, value_parser = WorkerId::parse))]
    pub worker: Option<WorkerId>,
    /// Only jobs submitted at or after this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long))]
    pub since: Option<String>,
    /// Only jobs submitted before this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long))]
    pub until: Option<String>,
    /// Only jobs that ended at or after this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long))]
    pub ended_since: Option<String>,
    /// The order: `submitted`, `name`, `config`, `revision`, `user`, `status`, `worker`, `gpus`, `priority`, `attempts`,
    /// `started`, `ended`, `duration`, `queue`, `metric.NAME` or `config.KEY`, with `-` before it the largest first. If
    /// omitted, the newest jobs first, or waiting ones in the order of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long, value_name = "ORDER", allow_hyphen_values = true))]
    pub sort: Option<String>,
    /// Columns, such as `status,metric.loss,config.learning_rate`: metrics and values of the configuration among them are
    /// shown for each job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAMES"))]
    pub columns: Option<String>,
    /// The widths of columns on the page, in CSS pixels, such as `name:320,status:120`; the API ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(skip))]
    pub widths: Option<String>,
    /// How the jobs are grouped, in `GET /api/queue/groups`; `GET /api/queue` ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(skip))]
    pub group: Option<JobGrouping>,
    /// Maximum number of results; if omitted, 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(skip))]
    pub limit: Option<u32>,
    /// Returns the page after the one with this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "cli", arg(skip))]
    pub cursor: Option<String>,
}

/// Query string of `GET /api/queue/completions`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCompletionsQuery {
    /// A search for jobs that is being typed, until the cursor.
    pub q: String,
}

/// `GET /api/queue/completions`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCompletions {
    /// The search with its last term completed, in the order in which they are offered.
    pub completions: Vec<String>,
}

/// `GET /api/queue/groups`: the jobs that match, by configuration (unless requested otherwise), user or tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobGroupsPage {
    /// The groups, at most `limit`, the one with the newest job first.
    pub groups: Vec<JobGroupView>,
    /// How many groups there are.
    pub total: u64,
    /// Number of jobs in each status, among those that match the other filters.
    pub counts: JobCounts,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// The jobs of one group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobGroupView {
    /// The configuration, user or tag; empty for jobs without a tag. A job is in the group of each of its tags.
    pub value: String,
    /// How many jobs there are.
    pub counts: JobCounts,
    /// When the newest one was submitted.
    pub newest: Timestamp,
}

/// `GET /api/queue/columns`: what a list of jobs can show.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobColumns {
    /// The names of the columns: first those that all jobs have, then metrics and values of configurations, the most
    /// frequent first.
    pub columns: Vec<String>,
}

impl JobsQuery {
    /// A query with all filters, most of which [`SubmitJob::example`] matches, for tests.
    #[cfg(any(test, feature = "native"))]
    pub fn example() -> Self {
        let text = |text: &str| Some(text.to_owned());
        Self {
            status: Some(JobStatus::Failed),
            phase: Some(JobPhase::Ended),
            user: text("ada"),
            label: text("gpu_type=a100*"),
            q: text("digit"),
            zone: text("Asia/Tokyo"),
            tag: text("ablation"),
            config: text("digits"),
            worker: Some(WorkerId::new(Timestamp(1_705_314_600_000), [1; 10])),
            since: text("2024-01-15T10:30:00.5Z"),
            until: text("2024-01-16T10:30:00Z"),
            ended_since: text("2024-01-15T11:30:00Z"),
            sort: text("-metric.loss"),
            columns: text("status,metric.loss"),
            widths: text("name:320,status:120"),
            group: Some(JobGrouping::Tag),
            limit: Some(50),
            cursor: text("j_1"),
        }
    }
}
