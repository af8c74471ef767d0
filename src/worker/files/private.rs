//! Writes files with permissions that do not depend on the umask.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Opens a file for appending, readable only by its owner.
///
/// # Errors
/// On an I/O error.
pub fn open_private(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Replaces a file atomically, readable only by its owner; with `sync` it is on disk when this returns.
///
/// # Errors
/// On an I/O error.
pub fn write_atomic(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    let (file, temp_path) = write_temp_file(path, bytes)?;
    if sync {
        file.sync_all()?;
    }
    fs::rename(&temp_path, path)?;
    match path.parent().filter(|_| sync) {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Replaces a file atomically, readable by every user whatever the umask is.
///
/// # Errors
/// On an I/O error.
pub fn write_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, temp_path) = write_temp_file(path, bytes)?;
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    fs::rename(&temp_path, path)
}

fn write_temp_file(path: &Path, bytes: &[u8]) -> io::Result<(fs::File, PathBuf)> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temp_path = path.with_file_name(name);
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temp_path)?;
    file.write_all(bytes)?;
    Ok((file, temp_path))
}
