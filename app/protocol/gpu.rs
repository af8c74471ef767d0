//! GPUs: what agents report of them, and what is shown.

use serde::{Deserialize, Serialize};

use super::status::GpuState;
use crate::domain::ids::JobId;
use crate::domain::time::Timestamp;

/// Hardware in the older agent's shape, also in every worker's view.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuInfo {
    /// Model of the first GPU.
    #[serde(default)]
    pub name: Option<String>,
    /// Memory of the first GPU in GB.
    #[serde(default)]
    pub vram_gb: Option<f64>,
    /// Number of GPUs.
    #[serde(default)]
    pub count: u32,
    /// Driver version.
    #[serde(default)]
    pub driver: Option<String>,
    /// The newest CUDA (or `ROCm`) version that the driver runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    #[serde(default)]
    pub accelerator: Option<String>,
}

/// One GPU, or one partition of one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gpu {
    /// Its number on the host.
    pub index: u32,
    /// Its stable id.
    pub uuid: String,
    /// Model.
    pub name: String,
    /// Memory in GB; none where the part does not say (unified memory).
    #[serde(default)]
    pub vram_gb: Option<f64>,
    /// Whose memory that is; left out, nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_kind: Option<MemoryKind>,
    /// Of a partition (MIG), the id of the GPU that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Why no job may have it now; left out, one may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
}

/// Whose memory a GPU uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Its own.
    Dedicated,
    /// The host's.
    Unified,
}

/// Why a GPU is not given out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Withheld {
    /// What kind of reason.
    pub reason: WithheldReason,
    /// In words: which error, or whose process.
    pub detail: String,
}

/// What keeps a GPU from jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WithheldReason {
    /// It has shown an error, or did not pass the test before a job.
    Quarantined,
    /// A process that belongs to no job uses it.
    InUse,
}

/// How one GPU was at one moment. What the part does not tell is left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuReading {
    /// Its id, as registered.
    pub uuid: String,
    /// How much of the time it computed, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization_percent: Option<f64>,
    /// Memory in use, in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_gb: Option<f64>,
    /// In degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<f64>,
    /// What it draws, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_watts: Option<f64>,
    /// What it may draw, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_watts: Option<f64>,
    /// The clock of what computes, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// The memory's clock, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<u32>,
    /// Uncorrected memory errors since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc_errors: Option<u64>,
    /// Why no job may have it now; left out, one may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
}

/// How the GPUs of a host were at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Telemetry {
    /// When, by the agent's clock.
    pub at: Timestamp,
    /// Every GPU, once.
    pub gpus: Vec<GpuReading>,
}

/// A GPU of a worker, as it is shown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuView {
    /// What its agent has said of it, and why no job may have it now.
    #[serde(flatten)]
    pub gpu: Gpu,
    /// Where it stands.
    #[serde(default)]
    pub state: GpuState,
    /// The job that holds it.
    #[serde(default)]
    pub job_id: Option<JobId>,
    /// How it was last. Readings are in the memory of the server that the worker's agent talks to: there is none before
    /// the first heartbeat since that server started, nor from an older agent, nor on another server of the same database.
    #[serde(default)]
    pub reading: Option<Reading>,
    /// If it was asked for: how much of the time it computed, in percent, in 48 equal parts of the hour or day until now;
    /// null where nothing was heard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lately: Vec<Option<u8>>,
}

/// How a GPU was when its agent was last heard of.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// When it arrived, by the server's clock.
    pub at: Timestamp,
    /// How much of the time it computed, in percent.
    #[serde(default)]
    pub utilization_percent: Option<f64>,
    /// Memory in use, in GB.
    #[serde(default)]
    pub memory_used_gb: Option<f64>,
    /// In degrees Celsius.
    #[serde(default)]
    pub temperature_celsius: Option<f64>,
    /// What it draws, in watts.
    #[serde(default)]
    pub power_watts: Option<f64>,
    /// What it may draw, in watts.
    #[serde(default)]
    pub power_limit_watts: Option<f64>,
    /// The clock of what computes, in MHz.
    #[serde(default)]
    pub clock_mhz: Option<u32>,
    /// The memory's clock, in MHz.
    #[serde(default)]
    pub memory_clock_mhz: Option<u32>,
    /// Uncorrected memory errors since the driver was loaded.
    #[serde(default)]
    pub ecc_errors: Option<u64>,
}
