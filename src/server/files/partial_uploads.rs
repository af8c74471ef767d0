//! Limits of partial uploads: one per file, and a few per attempt. Their names contain the attempt's number, a digest
//! of the path, and one of all expected properties.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::uploads::{UploadTarget, ignore_not_found};
use crate::tokens::digest;

/// The maximum number per attempt. Agents send two at a time; the rest are of files that no longer exist.
pub const MAX_PER_ATTEMPT: usize = 64;
/// How many characters of the path's digest are in the name.
const PATH_DIGEST_LENGTH: usize = 16;

/// The name of an upload's file.
pub fn file_name(UploadTarget { attempt, path, size, sha256, .. }: &UploadTarget) -> String {
    format!("{attempt}-{}-{}.part", &digest(path)[..PATH_DIGEST_LENGTH], digest(&format!("{path}\n{size}\n{sha256}")))
}

/// Creates the directory for a new upload. Removes the previous upload of the same path, and beyond the maximum the one
/// that was idle longest. Returns the removed files.
pub fn evict_for(file: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(directory) = file.parent() else { return Ok(Vec::new()) };
    fs::create_dir_all(directory)?;
    let (attempt, path) = split_name(file).unwrap_or_default();
    let mut others = Vec::new();
    let mut removed = Vec::new();
    for entry in fs::read_dir(directory)? {
        let other = entry?.path();
        match split_name(&other) {
            Some((other_attempt, other_path)) if other_attempt == attempt && other_path == path && other != file => {
                removed.push(other);
            }
            Some((other_attempt, _)) if other_attempt == attempt => others.push((modified_at(&other), other)),
            _ => {}
        }
    }
    others.sort();
    let excess = (others.len() + 1).saturating_sub(MAX_PER_ATTEMPT);
    removed.extend(others.into_iter().take(excess).map(|(_, other)| other));
    for other in &removed {
        ignore_not_found(fs::remove_file(other))?;
    }
    Ok(removed)
}

fn split_name(file: &Path) -> Option<(&str, &str)> {
    let (attempt, rest) = file.file_name().and_then(OsStr::to_str)?.split_once('-')?;
    Some((attempt, rest.split_once('-')?.0))
}

fn modified_at(file: &Path) -> SystemTime {
    fs::metadata(file).and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
