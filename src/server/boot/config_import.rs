//! `--configs-dir`: imports configurations from directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::protocol::configs::ConfigBundle;
use app::ui::prefs::Locale;

use crate::exit::ExitError;
use crate::http::problem::ApiError;
use crate::service::Services;
use crate::service::configs::{ConfigPrecondition, MAX_BUNDLE};
use crate::service::unit_of_work::Caller;

/// Imports every subdirectory that contains a `config.json`. An invalid one is logged and skipped.
pub async fn import_configs(services: &Arc<Services>, directory: &Path) -> Result<(), ExitError> {
    for path in subdirectories(directory)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let bundle = match read_bundle(&path) {
            Ok(bundle) => bundle,
            Err(error) => {
                tracing::warn!("configuration import: skipped {}: {error}", path.display());
                continue;
            }
        };
        match services.configs.put_config(Caller::system(), name.clone(), bundle, ConfigPrecondition::Any).await {
            Ok(config) => tracing::info!(name, revision = config.revision, "configuration import: imported"),
            Err(error) => {
                let detail = ApiError::from(error).to_problem(Locale::En).detail;
                tracing::warn!("configuration import: skipped {}: {detail}", path.display());
            }
        }
    }
    Ok(())
}

fn subdirectories(directory: &Path) -> Result<Vec<PathBuf>, ExitError> {
    let entries = std::fs::read_dir(directory).map_err(|error| {
        ExitError::config(format!("cannot read the configurations directory {}: {error}", directory.display()))
    })?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    paths.sort();
    Ok(paths)
}

/// Reads a directory as a configuration, without hidden files.
pub fn read_bundle(root: &Path) -> std::io::Result<ConfigBundle> {
    let (mut files, mut directories, mut size) = (BTreeMap::new(), vec![root.to_owned()], 0);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if kind.is_dir() && !hidden {
                directories.push(entry.path());
            } else if kind.is_file() && !hidden {
                size += entry.metadata()?.len();
                if size > MAX_BUNDLE as u64 {
                    return Err(std::io::Error::other(format!("larger than {MAX_BUNDLE} bytes")));
                }
                let name = entry.path().strip_prefix(root).map(|path| path.to_string_lossy().into_owned());
                files.insert(name.map_err(std::io::Error::other)?, std::fs::read_to_string(entry.path())?);
            }
        }
    }
    Ok(ConfigBundle { files })
}
