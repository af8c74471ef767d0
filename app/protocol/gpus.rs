//! `/api/admin/gpus`: the GPUs of the fleet, by worker.

use serde::{Deserialize, Serialize};

use super::history::Range;
use super::status::GpuState;
use super::workers::WorkerView;
use crate::domain::time::Timestamp;

/// `GET /api/admin/gpus`, the query string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpusQuery {
    /// Only GPUs in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<GpuState>,
    /// Only GPUs of workers that this fits, as it is read in the list of workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Workers by the value of a label, and then by name: `label.` with its key. Left out, by name alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether each comes with how much it computed over this time (`lately`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lately: Option<Range>,
    /// The GPUs of at most so many workers, 50 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Continue after the page that gave this `next_cursor`, or show the one that another gave as its `previous_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/admin/gpus`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpusPage {
    /// Workers that have such GPUs, by name or group, each with those.
    pub workers: Vec<WorkerView>,
    /// How many workers have any in all.
    pub total: u64,
    /// How many of them come before those that are shown.
    pub before: u64,
    /// How many GPUs stand where, of the workers that `q` fits.
    pub counts: GpuCounts,
    /// The groups that workers of this page are in, in their order; none if none were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GpuGroup>,
    /// The keys of the labels that workers have.
    #[serde(default)]
    pub label_keys: Vec<String>,
    /// Where the page before starts, if there is one; empty for the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_cursor: Option<String>,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// Workers whose label has the same value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuGroup {
    /// The value; none of those that do not have the label, which come last.
    pub value: Option<String>,
    /// How many of its workers are on this page: the next so many of `workers`.
    pub shown: u64,
    /// How many workers it has in all.
    pub total: u64,
    /// How many of their GPUs stand where, whatever `state` is asked for.
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
    /// `in_use`: withheld.
    pub in_use: u64,
    /// `quarantined`: withheld.
    pub quarantined: u64,
    /// `not_connected`.
    pub not_connected: u64,
}

impl GpuCounts {
    /// Counts one more.
    pub const fn add(&mut self, state: GpuState) {
        *match state {
            GpuState::Busy => &mut self.busy,
            GpuState::Free => &mut self.free,
            GpuState::InUse => &mut self.in_use,
            GpuState::Quarantined => &mut self.quarantined,
            GpuState::NotConnected => &mut self.not_connected,
        } += 1;
    }

    /// How many there are in a state.
    pub const fn of(&self, state: GpuState) -> u64 {
        match state {
            GpuState::Busy => self.busy,
            GpuState::Free => self.free,
            GpuState::InUse => self.in_use,
            GpuState::Quarantined => self.quarantined,
            GpuState::NotConnected => self.not_connected,
        }
    }

    /// How many there are of workers that are connected.
    pub const fn connected(&self) -> u64 {
        self.busy + self.free + self.withheld()
    }

    /// How many no job may have now.
    pub const fn withheld(&self) -> u64 {
        self.in_use + self.quarantined
    }
}
