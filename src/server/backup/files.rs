//! Files of a data directory. Links are never followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;
use sha2::{Digest, Sha256};

use super::Result;
use super::manifest::ManifestEntry;
use crate::tokens::hex;

/// Not copied as files: the database is copied separately, and the others have no meaning elsewhere.
const EXCLUDED: [&str; 8] = [
    "orchestrator.db",
    "orchestrator.db-wal",
    "orchestrator.db-shm",
    "orchestrator.lock",
    "local-agent",
    // Incomplete files.
    "uploads",
    // Its token is only valid for the running server.
    "operator",
    "site-hashes.txt",
];
/// The directory of artifacts.
pub const ARTIFACTS_DIR: &str = "artifacts";

/// Returns the paths to copy, relative to the data directory and sorted, and the links that are excluded.
pub fn list_files(data: &Path, with_artifacts: bool) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut pending_directories, mut files, mut links) = (vec![PathBuf::new()], Vec::new(), Vec::new());
    while let Some(directory) = pending_directories.pop() {
        for entry in fs::read_dir(data.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            let is_top_level = path.components().count() == 1;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Partial uploads, temporary files, and files that earlier restores have moved aside.
            let is_temporary = name.contains('#') || (is_top_level && name.starts_with("restor"));
            if is_temporary
                || (is_top_level && (EXCLUDED.contains(&&*name) || (name == ARTIFACTS_DIR && !with_artifacts)))
            {
                continue;
            }
            match entry.file_type()? {
                kind if kind.is_dir() => pending_directories.push(path),
                kind if kind.is_file() => files.push(path),
                kind if kind.is_symlink() => links.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    Ok((files, links))
}

/// Opens a regular file for reading, but no link.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(OFlag::O_NOFOLLOW.bits() | OFlag::O_NONBLOCK.bits()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Creates a private directory and its parents.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a new private file.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        create_private_dir(parent)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits()).open(path)
}

/// Copies bytes and hashes them.
pub fn copy_hashed(
    from: &mut impl Read,
    to: &mut impl Write,
    mut on_bytes: impl FnMut(u64),
) -> io::Result<ManifestEntry> {
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        size += read as u64;
        on_bytes(read as u64);
    }
    Ok(ManifestEntry { size, sha256: hex(&hash.finalize()) })
}

/// Checks that a path stays within the backup.
pub fn checked_path(path: &Path) -> Result<&str> {
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let text = path.to_str().filter(|text| is_inside && !text.is_empty() && !text.chars().any(char::is_control));
    text.ok_or_else(|| format!("{:?} is not a valid path in a backup; nothing was restored", path.to_string_lossy()))
}
