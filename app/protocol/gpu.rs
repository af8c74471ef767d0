//! GPUs, as reported by agents and as shown to users.

use serde::{Deserialize, Serialize};

use crate::domain::ids::JobId;
use crate::domain::time::Timestamp;
use crate::protocol::status::GpuState;

/// Hardware in the format of older agents; also part of every worker's view.
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
    /// The newest CUDA (or `ROCm`) version that the driver supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    #[serde(default)]
    pub accelerator: Option<String>,
}

/// A GPU, or a partition of one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gpu {
    /// Its index on the host.
    pub index: u32,
    /// Its stable ID.
    pub uuid: String,
    /// The model.
    pub name: String,
    /// Memory in GB; none if the device does not report it (unified memory).
    #[serde(default)]
    pub vram_gb: Option<f64>,
    /// The kind of memory; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_kind: Option<MemoryKind>,
    /// For a partition (MIG), the ID of the GPU that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Why jobs cannot use it now; omitted if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
}

/// The kind of memory that a GPU uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Its own memory.
    Dedicated,
    /// The host's memory.
    Unified,
}

/// Why a GPU is unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unavailable {
    /// The kind of reason.
    pub reason: UnavailableReason,
    /// Details: which error, or which process.
    pub detail: String,
}

/// Why jobs cannot use a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnavailableReason {
    /// It had an error, or failed the test before a job.
    Quarantined,
    /// A process outside of jobs uses it.
    InUse,
}

/// A reading of one GPU. Values that the device does not report are omitted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuReading {
    /// Its ID, as registered.
    pub uuid: String,
    /// Utilization in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization_percent: Option<f64>,
    /// Memory in use, in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_gb: Option<f64>,
    /// Temperature in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<f64>,
    /// Power draw in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_watts: Option<f64>,
    /// Power limit in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_watts: Option<f64>,
    /// Core clock in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Memory clock in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<u32>,
    /// Uncorrected memory errors since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc_errors: Option<u64>,
    /// Why jobs cannot use it now; omitted if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
}

/// Readings of all GPUs of a host at one time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuTelemetry {
    /// When, by the agent's clock.
    pub at: Timestamp,
    /// All GPUs, each once.
    pub gpus: Vec<GpuReading>,
}

/// A GPU of a worker.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuView {
    /// The GPU as reported by its agent, including why jobs cannot use it.
    #[serde(flatten)]
    pub gpu: Gpu,
    /// Its state.
    #[serde(default)]
    pub state: GpuState,
    /// The job that it is allocated to.
    #[serde(default)]
    pub job_id: Option<JobId>,
    /// Its last reading. Readings are in the memory of the server that the worker's agent is connected to. There is
    /// none before the first heartbeat after a restart of that server, for older agents, and on other servers of the
    /// same database.
    #[serde(default)]
    pub reading: Option<GpuReadingView>,
    /// Utilization in percent, on request: 48 intervals of equal length over the last hour or day; null where no
    /// reading exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lately: Vec<Option<u8>>,
}

/// The last reading of a GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuReadingView {
    /// When it arrived, by the server's clock.
    pub at: Timestamp,
    /// Utilization in percent.
    #[serde(default)]
    pub utilization_percent: Option<f64>,
    /// Memory in use, in GB.
    #[serde(default)]
    pub memory_used_gb: Option<f64>,
    /// Temperature in degrees Celsius.
    #[serde(default)]
    pub temperature_celsius: Option<f64>,
    /// Power draw in watts.
    #[serde(default)]
    pub power_watts: Option<f64>,
    /// Power limit in watts.
    #[serde(default)]
    pub power_limit_watts: Option<f64>,
    /// Core clock in MHz.
    #[serde(default)]
    pub clock_mhz: Option<u32>,
    /// Memory clock in MHz.
    #[serde(default)]
    pub memory_clock_mhz: Option<u32>,
    /// Uncorrected memory errors since the driver was loaded.
    #[serde(default)]
    pub ecc_errors: Option<u64>,
}
