//! How many uploads are under way: of a file one, and of an attempt a few. Their names tell which: the attempt's number, a
//! digest of the path, and one of all that the file is to be.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::uploads::{Aim, gone};
use crate::tokens::digest;

/// The most of an attempt that are under way at once. Agents send two; the rest are of files that vanished meanwhile.
pub const MOST: usize = 64;
/// So much of the path's digest is in the name.
const SHORT: usize = 16;

/// The name of its file.
pub fn name(Aim { attempt, path, size, sha256, .. }: &Aim) -> String {
    format!("{attempt}-{}-{}.part", &digest(path)[..SHORT], digest(&format!("{path}\n{size}\n{sha256}")))
}

/// Makes the directory for an upload that is about to begin, and room: what came of the same path before is dropped, and of
/// too many the one with which nobody went on for longest. Returns what was dropped.
pub fn make_room(file: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(directory) = file.parent() else { return Ok(Vec::new()) };
    fs::create_dir_all(directory)?;
    let (attempt, path) = split(file).unwrap_or_default();
    let mut others = Vec::new();
    let mut dropped = Vec::new();
    for entry in fs::read_dir(directory)? {
        let other = entry?.path();
        match split(&other) {
            Some((of, same)) if of == attempt && same == path && other != file => dropped.push(other),
            Some((of, _)) if of == attempt => others.push((touched(&other), other)),
            _ => {}
        }
    }
    others.sort();
    let more = (others.len() + 1).saturating_sub(MOST);
    dropped.extend(others.into_iter().take(more).map(|(_, other)| other));
    for other in &dropped {
        gone(fs::remove_file(other))?;
    }
    Ok(dropped)
}

fn split(file: &Path) -> Option<(&str, &str)> {
    let (attempt, rest) = file.file_name().and_then(OsStr::to_str)?.split_once('-')?;
    Some((attempt, rest.split_once('-')?.0))
}

fn touched(file: &Path) -> SystemTime {
    fs::metadata(file).and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
