//! `/api/usage`: what the fleet's GPUs were used for.

use serde::{Deserialize, Serialize};

use crate::domain::ids::WorkerId;
use crate::domain::time::Timestamp;

/// What use is told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    /// Who submitted the job.
    #[default]
    User,
    /// A label that the job asks for; a job with several counts in each of their groups.
    Label,
    /// The worker that had the attempt.
    Worker,
    /// The job's configuration.
    Config,
}

impl UsageBy {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::User, Self::Label, Self::Worker, Self::Config];

    /// Its word in an address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Label => "label",
            Self::Worker => "worker",
            Self::Config => "config",
        }
    }

    /// The one of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == word)
    }
}

/// `GET /api/usage` and `GET /api/usage/export`, the query string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageQuery {
    /// From this moment (RFC 3339); left out, seven days before the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Until before this moment (RFC 3339); left out, now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// What the groups are made by.
    #[serde(default)]
    pub by: UsageBy,
}

/// `GET /api/usage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// From this moment.
    pub since: Timestamp,
    /// Until before this one; what runs counts until then.
    pub until: Timestamp,
    /// What the groups are made by.
    pub by: UsageBy,
    /// Whether only the caller's own jobs count, because the caller may see no others.
    pub own: bool,
    /// In all.
    pub total: UsageAmount,
    /// The groups, the largest first.
    pub groups: Vec<UsageGroup>,
    /// How long jobs waited for their first worker.
    pub waits: UsageWaits,
    /// Day by day, in UTC.
    pub days: Vec<UsageDay>,
    /// The 168 hours of the week in UTC, Monday's first one first.
    pub week: Vec<UsageHour>,
    /// The fleet that it was used of. Left out for a caller who may not see all jobs, and where the audit trail, which it
    /// is read from, does not reach back that far any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<UsageFleet>,
}

/// How much was used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageAmount {
    /// Hours that GPUs were held, each GPU counted.
    pub gpu_hours: f64,
    /// Hours that attempts ran, each attempt counted, with GPUs or without.
    pub run_hours: f64,
    /// Jobs that had an attempt.
    pub jobs: u64,
    /// Attempts.
    pub attempts: u64,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageGroup {
    /// Its name; empty for jobs that ask for no label.
    pub name: String,
    /// The worker, where groups are workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// How much it used.
    pub amount: UsageAmount,
}

/// How long jobs waited, of those that a worker first took within the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageWaits {
    /// How many there were.
    pub jobs: u64,
    /// Half of them waited no longer than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_seconds: Option<f64>,
    /// Of twenty, nineteen waited no longer than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_seconds: Option<f64>,
}

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageDay {
    /// When it begins; of the first and the last, only what lies in the asked time counts.
    pub day: Timestamp,
    /// GPU hours that were held.
    pub gpu_hours: f64,
    /// GPU hours that were there to be held, as far as `fleet` is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_hours_there: Option<f64>,
}

/// An hour of the week.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageHour {
    /// 1 for Monday to 7 for Sunday.
    pub weekday: u8,
    /// 0 to 23.
    pub hour: u8,
    /// GPU hours that were held in all such hours of the asked time.
    pub gpu_hours: f64,
    /// GPU hours that were there to be held, as far as `fleet` is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_hours_there: Option<f64>,
}

/// The fleet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageFleet {
    /// GPU hours that were there: of workers that were connected.
    pub gpu_hours: f64,
    /// Minutes in which a job waited for its first worker while a worker that takes jobs had none: none that was free
    /// fitted, or a limit kept the job back.
    pub idle_while_queued_minutes: f64,
}
