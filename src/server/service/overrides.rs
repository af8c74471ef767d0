//! Values of a configuration that one job changes for itself.

use std::sync::Arc;

use app::domain::config_files::CONFIG;
use app::domain::job::{Override, Overrides};
use app::protocol::configs::Bundle;
use app::protocol::overrides::{self, Change, Diff, Values};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::configs::{bundle_bytes, check, object};
use super::refusal::{Invalid, Refusal};
use crate::store::configs::StoredConfig;
use crate::tokens::hex;

/// What these values change of a configuration, and the configuration as the job runs it.
pub fn of(
    config: &Arc<StoredConfig>,
    values: &Values,
    allow_code: bool,
) -> Result<(Overrides, Arc<StoredConfig>), Refusal> {
    let allowed = "at most 64 settings by their names, such as learning_rate, each value at most 4096 bytes, and all of them, \
                   old values included, at most 16384 bytes";
    let unusable = Invalid::Range { field: "overrides", allowed };
    overrides::check(values).map_err(|_| unusable.clone())?;
    let diff = overrides::diff(&object(config, CONFIG), values);
    if !overrides::is_small(&diff) {
        return Err(unusable.into());
    }
    let diff = kept(&diff);
    let ran = ran(Arc::clone(config), &diff);
    if !diff.is_empty() {
        check(&Bundle { files: ran.files.clone() }, allow_code)?;
    }
    Ok((diff, ran))
}

/// A configuration as a job with this diff runs it.
pub fn ran(config: Arc<StoredConfig>, diff: &Overrides) -> Arc<StoredConfig> {
    if diff.is_empty() {
        return config;
    }
    let changed = overrides::applied(object(&config, CONFIG), &told(diff));
    let mut files = config.files.clone();
    files.insert(CONFIG.to_owned(), serde_json::to_string_pretty(&changed).expect("JSON from JSON"));
    let sha256 = hex(&Sha256::digest(bundle_bytes(&files)));
    Arc::new(StoredConfig { sha256, files, ..(*config).clone() })
}

/// As the domain keeps it.
fn kept(diff: &Diff) -> Overrides {
    let text = |value: &Option<Value>| value.as_ref().map(Value::to_string);
    diff.iter().map(|(key, Change { from, to })| (key.clone(), Override { from: text(from), to: text(to) })).collect()
}

/// The inverse of [`kept`].
pub fn told(overrides: &Overrides) -> Diff {
    let value = |text: &Option<String>| text.as_ref().and_then(|text| serde_json::from_str(text).ok());
    let change =
        |(key, Override { from, to }): (&String, &Override)| (key.clone(), Change { from: value(from), to: value(to) });
    overrides.iter().map(change).collect()
}
