//! Measurements over time. GPUs: intervals of equal length, oldest first, null where no reading exists. Trainings: by
//! step.

use serde::{Deserialize, Serialize};

use crate::domain::ids::AttemptNumber;
use crate::domain::time::Timestamp;

/// The range of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HistoryRange {
    /// The last hour, in intervals of 15 s.
    #[default]
    Hour,
    /// The last day, in intervals of two minutes.
    Day,
}

impl HistoryRange {
    /// Returns its name in URLs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

/// Query string of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryQuery {
    /// The range; if omitted, one hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<HistoryRange>,
}

/// `GET /api/admin/workers/{id}/gpus/history` and `GET /api/queue/{id}/gpus`.
///
/// The history is in the memory of the server that the worker's agent is connected to. It is saved every five minutes
/// and at shutdown; a restarted server loads what was saved.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuHistory {
    /// Start of the first interval.
    pub from: Timestamp,
    /// Length of an interval.
    pub step_seconds: u32,
    /// The GPUs, by index.
    pub gpus: Vec<GpuSeries>,
}

/// The history of one GPU. Values that the device never reported are an empty list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuSeries {
    /// Its stable ID.
    pub uuid: String,
    /// Its index on the host.
    pub index: u32,
    /// The model.
    pub name: String,
    /// Memory in GB, if the device reports it.
    pub vram_gb: Option<f64>,
    /// Utilization in percent: mean of each interval.
    pub utilization_percent: Vec<Option<f64>>,
    /// Utilization in percent: maximum of each interval.
    pub utilization_peak_percent: Vec<Option<f64>>,
    /// Memory in use, in GB: mean of each interval.
    pub memory_used_gb: Vec<Option<f64>>,
    /// Temperature in degrees Celsius: mean of each interval.
    pub temperature_celsius: Vec<Option<f64>>,
    /// Temperature in degrees Celsius: maximum of each interval.
    pub temperature_peak_celsius: Vec<Option<f64>>,
    /// Power draw in watts: mean of each interval.
    pub power_watts: Vec<Option<f64>>,
}

/// `GET /api/admin/gpus/history`: all GPUs with readings on this server, combined.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetHistory {
    /// Start of the first interval.
    pub from: Timestamp,
    /// Length of an interval.
    pub step_seconds: u32,
    /// Utilization in percent: mean of the GPUs that report it.
    pub utilization_percent: Vec<Option<f64>>,
    /// Number of GPUs with readings.
    pub gpus: Vec<Option<u32>>,
    /// Number of those that were allocated to a job.
    pub busy: Vec<Option<u32>>,
}

/// `GET /api/queue/{id}/metrics?attempt=&from=&to=`: the trainer's metrics.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobMetrics {
    /// The attempt.
    pub attempt: AttemptNumber,
    /// When the first point was recorded, by the agent's clock; none if there is no point.
    pub from: Option<Timestamp>,
    /// If points were thinned: one in this many is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_every: Option<u64>,
    /// The step since which the loss is not finite, if it is not, among the requested steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_nan_since: Option<u64>,
    /// `loss`, `learning_rate`, `epoch` and `steps_per_second` first, then the others by name. Metrics that were never
    /// reported are omitted. `steps_per_second` is computed from steps and times unless the trainer reports it.
    pub metrics: Vec<MetricSeries>,
}

/// Metrics that are listed before the trainer's own.
pub const LEADING_METRICS: [&str; 4] = ["loss", "learning_rate", "epoch", "steps_per_second"];

/// One metric by step, thinned for a chart: the minimum and maximum of each section are preserved.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricSeries {
    /// The trainer's name for it.
    pub name: String,
    /// The steps.
    pub steps: Vec<u64>,
    /// The time of each step, in seconds after the first point.
    pub seconds: Vec<f64>,
    /// The values.
    pub values: Vec<f64>,
    /// Where values are not finite, which `values` omits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<MetricGap>,
}

/// Values in a row that are NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricGap {
    /// The step of the first one.
    pub first_step: u64,
    /// The step of the last one.
    pub last_step: u64,
    /// The time of the first one, in seconds after the first point.
    pub first_second: f64,
    /// The time of the last one.
    pub last_second: f64,
    /// Their number, among the points that were read.
    pub values: u64,
}
