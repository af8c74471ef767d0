//! `--configs-dir`: configurations from directories, as they lie on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::protocol::configs::Bundle;

use super::exit::Exit;
use crate::service::Core;
use crate::service::configs::{MAX_BUNDLE, Seen};
use crate::service::unit::Caller;

/// Imports every directory below this one that has a `config.json`. One that is broken is named, and stops nothing.
pub async fn configurations(core: &Arc<Core>, directory: &Path) -> Result<(), Exit> {
    for path in subdirectories(directory)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let bundle = match read(&path) {
            Ok(bundle) => bundle,
            Err(error) => {
                tracing::warn!("the configuration {} is left out: {error}", path.display());
                continue;
            }
        };
        match core.put_config(Caller::system(), name.clone(), bundle, Seen::Anything).await {
            Ok(config) => tracing::info!(name, revision = config.revision, "configuration imported"),
            Err(refusal) => {
                let why = crate::http::problem::ApiError::from(refusal).problem().detail;
                tracing::warn!("the configuration {} is left out: {why}", path.display());
            }
        }
    }
    Ok(())
}

fn subdirectories(directory: &Path) -> Result<Vec<PathBuf>, Exit> {
    let entries = std::fs::read_dir(directory).map_err(|error| {
        Exit::config(format!("the configurations directory {} cannot be read: {error}", directory.display()))
    })?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    paths.sort();
    Ok(paths)
}

/// The files of a directory as a configuration; what is hidden is left out.
pub fn read(root: &Path) -> std::io::Result<Bundle> {
    let (mut files, mut waiting, mut size) = (BTreeMap::new(), vec![root.to_owned()], 0);
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if kind.is_dir() && !hidden {
                waiting.push(entry.path());
            } else if kind.is_file() && !hidden {
                size += entry.metadata()?.len();
                if size > MAX_BUNDLE as u64 {
                    return Err(std::io::Error::other(format!("it has more than {MAX_BUNDLE} bytes")));
                }
                let name = entry.path().strip_prefix(root).map(|path| path.to_string_lossy().into_owned());
                files.insert(name.map_err(std::io::Error::other)?, std::fs::read_to_string(entry.path())?);
            }
        }
    }
    Ok(Bundle { files })
}
