//! Comparing jobs: `GET /api/queue/compare?ids=`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JobView;
use crate::protocol::gpus::history::{JobMetrics, LEADING_METRICS};

/// Query string of `GET /api/queue/compare`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompareJobsQuery {
    /// The IDs of 2 to 20 jobs, separated by commas; duplicates count once.
    pub ids: String,
}

/// Several jobs side by side.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobComparison {
    /// The jobs that were found, in the order of the request.
    pub jobs: Vec<ComparedJob>,
    /// The IDs of jobs that do not exist, or that the caller may not see.
    pub missing: Vec<String>,
    /// The values of their configurations with their overrides, first those that differ; requires `config.view`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Vec<ComparedConfigKey>>,
}

impl JobComparison {
    /// The metrics of all jobs, in the order of those of one job.
    pub fn metric_names(&self) -> Vec<String> {
        let keys = self.jobs.iter().flat_map(|job| job.final_metrics.keys().map(String::as_str));
        let mut names: BTreeSet<&str> = keys.collect();
        let leading: Vec<&str> = LEADING_METRICS.into_iter().filter(|name| names.remove(name)).collect();
        leading.into_iter().chain(names).map(str::to_owned).collect()
    }
}

/// A job of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedJob {
    /// The job, as in the list of jobs.
    pub job: JobView,
    /// The last value of each metric; null for a loss that is not a number.
    pub final_metrics: BTreeMap<String, Option<f64>>,
    /// The metrics of the newest attempt with points, thinned more than those of a single job.
    pub metrics: JobMetrics,
}

/// The last value of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FinalValue {
    /// The job did not report the metric.
    NotReported,
    /// NaN or infinite.
    NotANumber,
    /// A number.
    Number(f64),
}

impl FinalValue {
    /// Returns the number, if it is one.
    pub const fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::NotReported | Self::NotANumber => None,
        }
    }
}

impl ComparedJob {
    /// Returns the last value of a metric.
    pub fn final_value(&self, metric: &str) -> FinalValue {
        match self.final_metrics.get(metric) {
            None => FinalValue::NotReported,
            Some(None) => FinalValue::NotANumber,
            Some(Some(number)) => FinalValue::Number(*number),
        }
    }
}

/// A key of the configurations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedConfigKey {
    /// The key in `config.json`, with dots between those of nested objects, or the path of another file.
    pub key: String,
    /// Whether the values differ. A number and its text are the same value.
    pub differs: bool,
    /// The values, in the order of the jobs; null where it is not set. Of other files, the start of the SHA-256.
    pub values: Vec<Option<Value>>,
}
