//! Overrides: values of a configuration that are changed for one job.

use std::collections::BTreeMap;

/// The overrides of a job, by key.
pub type JobOverrides = BTreeMap<String, OverriddenValue>;

/// A value before and after, as JSON; none if the key does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverriddenValue {
    /// The value in the configuration.
    pub from: Option<String>,
    /// The value in this job.
    pub to: Option<String>,
}
