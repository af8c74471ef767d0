//! Values of a configuration that one job changes for itself.

use std::collections::BTreeMap;

/// What a job changed, by key.
pub type Overrides = BTreeMap<String, Override>;

/// A value before and after as JSON; none where the key is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// In the configuration.
    pub from: Option<String>,
    /// In this job.
    pub to: Option<String>,
}
