//! The data directory.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::exit::ExitError;

/// Returns the data directory, whether it exists or not.
pub fn resolve_data_dir(explicit: Option<&Path>) -> Result<PathBuf, ExitError> {
    let user_data_dir = || {
        let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")))
    };
    let directory = explicit.map(Path::to_owned).or_else(|| Some(user_data_dir()?.join("simpletuner")));
    directory.ok_or_else(|| ExitError::config("no data directory; set --data-dir".to_owned()))
}

/// Returns the data directory, created if it does not exist.
pub fn create_data_dir(explicit: Option<&Path>) -> Result<PathBuf, ExitError> {
    let data = resolve_data_dir(explicit)?;
    std::fs::create_dir_all(&data).map_err(|error| {
        ExitError::config(format!(
            "cannot create the data directory {} ({error}); choose another with --data-dir",
            data.display()
        ))
    })?;
    warn_if_readable(&data);
    // Artifact paths are relative to it, whatever the current directory is.
    std::path::absolute(&data).map_err(|error| ExitError::config(format!("{}: {error}", data.display())))
}

/// New files are private ([`crate::main`] sets the umask); an existing directory may be readable by others.
fn warn_if_readable(data: &Path) {
    let mode = std::fs::metadata(data).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 != 0 {
        tracing::warn!(
            "other users of this host can read the data directory; to prevent that: chmod 700 {}",
            data.display()
        );
    }
}
