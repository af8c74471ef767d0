//! The files of a data directory. Links are not followed, wherever they lead.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;
use sha2::{Digest, Sha256};

use super::Result;
use super::manifest::Entry;
use crate::tokens::hex;

/// What is not copied as a file: the database is copied by itself, the rest means nothing elsewhere.
const LEFT_OUT: [&str; 8] = [
    "orchestrator.db",
    "orchestrator.db-wal",
    "orchestrator.db-shm",
    "orchestrator.lock",
    "local-agent",
    // Of files that are not whole.
    "uploads",
    // Its token opens the server that runs.
    "operator",
    "site-hashes.txt",
];
/// Where the files are that jobs made.
pub const ARTIFACTS: &str = "artifacts";

/// The paths of all that is copied, relative to the data directory, in order; and the links that are left out.
pub fn listed(data: &Path, with_artifacts: bool) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut waiting, mut files, mut links) = (vec![PathBuf::new()], Vec::new(), Vec::new());
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(data.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            let top = path.components().count() == 1;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Uploads and drafts that are under way, and what earlier restores have put aside.
            let passing = name.contains('#') || (top && name.starts_with("restor"));
            if passing || (top && (LEFT_OUT.contains(&&*name) || (name == ARTIFACTS && !with_artifacts))) {
                continue;
            }
            match entry.file_type()? {
                kind if kind.is_dir() => waiting.push(path),
                kind if kind.is_file() => files.push(path),
                kind if kind.is_symlink() => links.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    Ok((files, links))
}

/// Opens a file for reading, if it is one and no link.
pub fn open(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(OFlag::O_NOFOLLOW.bits() | OFlag::O_NONBLOCK.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::new(ErrorKind::InvalidInput, "it is no file")) }
}

/// Makes a directory that nobody else can read, and those above it.
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a file that nobody else can read, where there is none.
pub fn create(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        make_directory(parent)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits()).open(path)
}

/// Copies bytes, and takes their hash on the way.
pub fn copy(from: &mut impl Read, to: &mut impl Write, mut each: impl FnMut(u64)) -> io::Result<Entry> {
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
        each(read as u64);
    }
    Ok(Entry { size, sha256: hex(&hash.finalize()) })
}

/// A path in a backup that leads nowhere else.
pub fn plain(path: &Path) -> Result<&str> {
    let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let text = path.to_str().filter(|text| inside && !text.is_empty() && !text.chars().any(char::is_control));
    text.ok_or_else(|| format!("{:?} is no path that a backup can have; nothing was restored", path.to_string_lossy()))
}
