//! `/api/admin/gpus`: all GPUs of the fleet, by worker.

pub mod history;

use serde::{Deserialize, Serialize};

use self::history::HistoryRange;
use super::status::GpuState;
use super::workers::WorkerView;
use crate::domain::time::Timestamp;

/// Query string of `GET /api/admin/gpus`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpusQuery {
    /// Only GPUs in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<GpuState>,
    /// Only GPUs of workers that match this query; its syntax is that of the list of workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Groups workers by the value of a label: `label.` and its key. If omitted, workers are sorted by name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether to return the utilization over this range (`lately`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lately: Option<HistoryRange>,
    /// Maximum number of workers; if omitted, 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Returns the page after the one with this `next_cursor`, or the page of this `previous_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/admin/gpus`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpusPage {
    /// Workers with matching GPUs, by name or group, each with those GPUs.
    pub workers: Vec<WorkerView>,
    /// Total number of workers with matching GPUs.
    pub total: u64,
    /// Number of them before this page.
    pub before: u64,
    /// Number of GPUs in each state, of the workers that match `q`.
    pub counts: GpuCounts,
    /// The groups on this page, in order; empty if grouping was not requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GpuGroup>,
    /// The label keys of all workers.
    #[serde(default)]
    pub label_keys: Vec<String>,
    /// Cursor of the previous page, if there is one; empty for the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_cursor: Option<String>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// Workers with the same value of a label.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuGroup {
    /// The label's value; none for workers without the label, which come last.
    pub value: Option<String>,
    /// Number of its workers on this page: the next ones in `workers`.
    pub shown: u64,
    /// Total number of its workers.
    pub total: u64,
    /// Number of GPUs in each state, regardless of the `state` filter.
    pub counts: GpuCounts,
}

/// GPUs by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuCounts {
    /// `busy`.
    pub busy: u64,
    /// `free`.
    pub free: u64,
    /// `in_use`: unavailable.
    pub in_use: u64,
    /// `quarantined`: unavailable.
    pub quarantined: u64,
    /// `not_connected`.
    pub not_connected: u64,
}

impl GpuCounts {
    /// Adds the counts of some GPUs.
    pub fn add_all(&mut self, other: Self) {
        for state in GpuState::ALL {
            self.add(state, other.count(state));
        }
    }

    /// Adds a number of GPUs.
    pub const fn add(&mut self, state: GpuState, number: u64) {
        *match state {
            GpuState::Busy => &mut self.busy,
            GpuState::Free => &mut self.free,
            GpuState::InUse => &mut self.in_use,
            GpuState::Quarantined => &mut self.quarantined,
            GpuState::NotConnected => &mut self.not_connected,
        } += number;
    }

    /// Returns the number of GPUs in a state.
    pub const fn count(&self, state: GpuState) -> u64 {
        match state {
            GpuState::Busy => self.busy,
            GpuState::Free => self.free,
            GpuState::InUse => self.in_use,
            GpuState::Quarantined => self.quarantined,
            GpuState::NotConnected => self.not_connected,
        }
    }

    /// Returns the number of GPUs of connected workers.
    pub const fn connected(&self) -> u64 {
        self.busy + self.free + self.unavailable()
    }

    /// Returns the number of unavailable GPUs.
    pub const fn unavailable(&self) -> u64 {
        self.in_use + self.quarantined
    }
}
