//! What was measured over time. Of GPUs in cells of equal length, oldest first, where one that nothing is known of is null;
//! of trainings by their steps.

use serde::{Deserialize, Serialize};

use crate::domain::ids::Attempt;
use crate::domain::time::Timestamp;

/// How far back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Range {
    /// The last hour, every 15 s.
    #[default]
    Hour,
    /// The last day, every two minutes.
    Day,
}

impl Range {
    /// The word in an address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

/// The query string of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryQuery {
    /// How far back; left out, an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
}

/// `GET /api/admin/workers/{id}/gpus/history` and `GET /api/queue/{id}/gpus`.
///
/// It is in the memory of the server that the worker's agent talks to. One that starts again knows what was written five
/// minutes before it ended, or when it was stopped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuHistory {
    /// When the first cell begins.
    pub from: Timestamp,
    /// How long each cell is.
    pub step_seconds: u32,
    /// The GPUs, by their numbers on the host.
    pub gpus: Vec<GpuSeries>,
}

/// One GPU over time. What the part never told is an empty list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuSeries {
    /// Its stable id.
    pub uuid: String,
    /// Its number on the host.
    pub index: u32,
    /// Model.
    pub name: String,
    /// Its memory in GB, if the part says.
    pub vram_gb: Option<f64>,
    /// How much of the time it computed, in percent: the mean of each cell.
    pub utilization_percent: Vec<Option<f64>>,
    /// The most of each cell.
    pub utilization_peak_percent: Vec<Option<f64>>,
    /// Memory in use, in GB: means.
    pub memory_used_gb: Vec<Option<f64>>,
    /// In degrees Celsius: means.
    pub temperature_celsius: Vec<Option<f64>>,
    /// The highest of each cell.
    pub temperature_peak_celsius: Vec<Option<f64>>,
    /// What it drew, in watts: means.
    pub power_watts: Vec<Option<f64>>,
}

/// `GET /api/admin/gpus/history`: all GPUs that this server heard of, together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetHistory {
    /// When the first cell begins.
    pub from: Timestamp,
    /// How long each cell is.
    pub step_seconds: u32,
    /// How much of the time they computed, in percent: the mean of those that tell.
    pub utilization_percent: Vec<Option<f64>>,
    /// How many were heard of.
    pub gpus: Vec<Option<u32>>,
    /// How many of those a job had.
    pub busy: Vec<Option<u32>>,
}

/// `GET /api/queue/{id}/metrics?attempt=`: what the trainer measured, number by number.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobMetrics {
    /// Which attempt.
    pub attempt: Attempt,
    /// When the first point was made, by the agent's clock; none before there is one.
    pub from: Option<Timestamp>,
    /// Of so many points that the attempt told one is kept, if not all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_every: Option<u64>,
    /// `loss`, `learning_rate`, `epoch` and `steps_per_second` first, then the others by name. What was never told is left
    /// out. The rate is counted from steps and their times, unless the trainer tells one of that name.
    pub metrics: Vec<MetricSeries>,
}

/// One number over the steps, thinned to what a chart can show: of each stretch its lowest and highest are kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricSeries {
    /// As the trainer calls it.
    pub name: String,
    /// The steps.
    pub steps: Vec<u64>,
    /// When each was, in seconds after the first point.
    pub seconds: Vec<f64>,
    /// The values.
    pub values: Vec<f64>,
}
