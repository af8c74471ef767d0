//! `/api/usage`: usage of the fleet's GPUs.

use serde::{Deserialize, Serialize};

use crate::domain::ids::WorkerId;
use crate::domain::time::Timestamp;

/// How usage is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    /// By the user who submitted the job.
    #[default]
    User,
    /// By label that the job requires; a job with several labels counts in each of their groups.
    Label,
    /// By the attempt's worker.
    Worker,
    /// By the job's configuration.
    Config,
}

impl UsageBy {
    /// All groupings.
    pub const ALL: [Self; 4] = [Self::User, Self::Label, Self::Worker, Self::Config];

    /// Returns its name in URLs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Label => "label",
            Self::Worker => "worker",
            Self::Config => "config",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == name)
    }
}

/// Query string of `GET /api/usage` and `GET /api/usage/export`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageQuery {
    /// Start (RFC 3339); if omitted, seven days before the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// End, exclusive (RFC 3339); if omitted, now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// How to group the usage.
    #[serde(default)]
    pub by: UsageBy,
}

/// `GET /api/usage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// Start of the period.
    pub since: Timestamp,
    /// End of the period, exclusive; running attempts count until then.
    pub until: Timestamp,
    /// How the usage is grouped.
    pub by: UsageBy,
    /// Whether only the caller's own jobs are included, because the caller may not see others.
    pub own: bool,
    /// Total usage.
    pub total: UsageAmountView,
    /// The groups, the largest first.
    pub groups: Vec<UsageGroup>,
    /// How long jobs waited for their first worker.
    pub waits: UsageWaits,
    /// Usage by day, in UTC.
    pub days: Vec<UsageDay>,
    /// The 168 hours of the week in UTC, from Monday 0:00.
    pub week: Vec<UsageHour>,
    /// The fleet's capacity. Omitted if the caller may not see all jobs, or if the audit log, from which it is
    /// computed, does not reach back to the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<UsageFleet>,
}

/// An amount of usage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageAmountView {
    /// Hours for which GPUs were allocated, summed over GPUs.
    pub gpu_hours: f64,
    /// Hours for which attempts ran, summed over attempts, with or without GPUs.
    pub run_hours: f64,
    /// Number of jobs with an attempt.
    pub jobs: u64,
    /// Number of attempts.
    pub attempts: u64,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageGroup {
    /// Its name; empty for jobs without labels.
    pub name: String,
    /// The worker, if grouped by worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// Its usage.
    pub amount: UsageAmountView,
}

/// Waiting times of jobs whose first worker accepted them in the period.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageWaits {
    /// Number of these jobs.
    pub jobs: u64,
    /// Median waiting time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_seconds: Option<f64>,
    /// 95th percentile of the waiting time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_seconds: Option<f64>,
}

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageDay {
    /// Start of the day; for the first and the last day, only the part within the period counts.
    pub day: Timestamp,
    /// GPU hours allocated.
    pub gpu_hours: f64,
    /// GPU hours available, if `fleet` is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_hours_available: Option<f64>,
}

/// An hour of the week.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageHour {
    /// 1 for Monday to 7 for Sunday.
    pub weekday: u8,
    /// 0 to 23.
    pub hour: u8,
    /// GPU hours allocated in all such hours of the period.
    pub gpu_hours: f64,
    /// GPU hours available, if `fleet` is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_hours_available: Option<f64>,
}

/// The fleet's capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageFleet {
    /// GPU hours of connected workers.
    pub gpu_hours: f64,
    /// Minutes in which a job was pending for its first worker while another worker that accepts jobs was idle: no idle
    /// worker matched, or a limit was reached.
    pub idle_while_queued_minutes: f64,
}
