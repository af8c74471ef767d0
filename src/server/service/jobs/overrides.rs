//! Overrides: values of a configuration that are changed for one job.

use std::sync::Arc;

use app::domain::allowed_values::AllowedValues;
use app::domain::config_files::CONFIG_FILE;
use app::domain::job::{JobOverrides, OverriddenValue};
use app::protocol::configs::ConfigBundle;
use app::protocol::jobs::overrides;
use app::protocol::jobs::overrides::{OverrideChange, OverrideDiff, OverrideValues};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::service::configs::{bundle_bytes, invalid_fields, json_object};
use crate::service::error::{InvalidInput, ServiceError, require_valid};
use crate::store::configs::StoredConfig;
use crate::tokens::hex;

/// Returns the changes of these overrides, and the configuration as the job runs it.
pub fn apply(
    config: &Arc<StoredConfig>,
    values: &OverrideValues,
    allow_code: bool,
) -> Result<(JobOverrides, Arc<StoredConfig>), ServiceError> {
    let invalid = InvalidInput::OutOfRange { field: "overrides", allowed: AllowedValues::Overrides };
    overrides::validate(values).map_err(|_| invalid.clone())?;
    let diff = overrides::diff(&json_object(config, CONFIG_FILE), values);
    if !overrides::fits_size_limit(&diff) {
        return Err(invalid.into());
    }
    let diff = from_diff(&diff);
    let applied = applied_config(Arc::clone(config), &diff);
    if !diff.is_empty() {
        require_valid(invalid_fields(&ConfigBundle { files: applied.files.clone() }, allow_code))?;
    }
    Ok((diff, applied))
}

/// Returns a configuration as a job with these overrides runs it.
pub fn applied_config(config: Arc<StoredConfig>, diff: &JobOverrides) -> Arc<StoredConfig> {
    if diff.is_empty() {
        return config;
    }
    let changed = overrides::apply(json_object(&config, CONFIG_FILE), &to_diff(diff));
    let mut files = config.files.clone();
    files.insert(CONFIG_FILE.to_owned(), serde_json::to_string_pretty(&changed).expect("JSON from JSON"));
    let sha256 = hex(&Sha256::digest(bundle_bytes(&files)));
    Arc::new(StoredConfig { sha256, files, ..(*config).clone() })
}

/// Converts to the domain type.
fn from_diff(diff: &OverrideDiff) -> JobOverrides {
    let text = |value: &Option<Value>| value.as_ref().map(Value::to_string);
    diff.iter()
        .map(|(key, OverrideChange { from, to })| (key.clone(), OverriddenValue { from: text(from), to: text(to) }))
        .collect()
}

/// The inverse of [`from_diff`].
pub fn to_diff(overrides: &JobOverrides) -> OverrideDiff {
    let value = |text: &Option<String>| text.as_ref().and_then(|text| serde_json::from_str(text).ok());
    let change = |(key, OverriddenValue { from, to }): (&String, &OverriddenValue)| {
        (key.clone(), OverrideChange { from: value(from), to: value(to) })
    };
    overrides.iter().map(change).collect()
}
