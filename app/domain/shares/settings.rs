//! What a team or a member may use.

use serde::{Deserialize, Serialize};

use crate::domain::allowed_values::AllowedValues;

/// What a team or one of its members may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ShareSettings {
    /// Its share is its weight in relation to the other teams, or to the other members of the team; from 1 to 10,000.
    pub weight: u32,
    /// While it has fewer GPUs, its jobs start before those of others that have theirs.
    pub guaranteed_gpus: u32,
    /// The maximum number of GPUs at a time; `null` for no limit.
    pub max_gpus: Option<u32>,
    /// The maximum GPU-hours per calendar month, in UTC; `null` for no limit.
    pub max_gpu_hours: Option<u32>,
    /// The maximum number of running jobs; `null` for no limit.
    pub max_running_jobs: Option<u32>,
    /// The maximum number of waiting jobs; `null` for no limit.
    pub max_waiting_jobs: Option<u32>,
}

impl ShareSettings {
    /// Allowed weights.
    pub const WEIGHTS: AllowedValues = AllowedValues::Number { min: 1, max: 10_000 };
    /// Allowed values of the other settings.
    pub const AMOUNTS: AllowedValues = AllowedValues::OptionalNumber { min: 0, max: 1_000_000 };

    /// Settings with every field set, for tests.
    #[cfg(any(test, feature = "native"))]
    pub const fn example() -> Self {
        Self {
            weight: 3,
            guaranteed_gpus: 8,
            max_gpus: Some(16),
            max_gpu_hours: Some(2_000),
            max_running_jobs: Some(12),
            max_waiting_jobs: Some(200),
        }
    }
}

impl Default for ShareSettings {
    fn default() -> Self {
        Self {
            weight: 1,
            guaranteed_gpus: 0,
            max_gpus: None,
            max_gpu_hours: None,
            max_running_jobs: None,
            max_waiting_jobs: None,
        }
    }
}
