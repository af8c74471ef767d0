//! Reads a backup, whole, to a place of its own, and says whether it is as it was written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Result;
use super::files::{self, copy, plain};
use super::manifest::{Engine, Entry, Manifest, NAME};
use super::progress::Progress;
use super::sparse::Sparse;

/// Nobody has a manifest this large, in bytes: 256 MiB are a million files.
const MOST_MANIFEST: u64 = 256 << 20;

/// Copies all of a backup below `to`, which is empty; returns its manifest, which everything agrees with.
pub fn unpack(
    from: &Path,
    to: &Path,
    newest_schema: impl Fn(Engine) -> i64,
    progress: &mut Progress,
) -> Result<Manifest> {
    let mut found = Found { to, manifest: None, files: BTreeMap::new(), progress };
    if from.is_dir() {
        directory(from, &mut found)?;
    } else {
        archive(from, &mut found)?;
    }
    let manifest = found.manifest.ok_or_else(|| {
        format!("{} is no backup, or one that was not finished: it has no {NAME}; nothing was restored", from.display())
    })?;
    let manifest = Manifest::read(&manifest, newest_schema)?;
    manifest.compare(&found.files)?;
    Ok(manifest)
}

struct Found<'f> {
    to: &'f Path,
    manifest: Option<Vec<u8>>,
    files: BTreeMap<String, Entry>,
    progress: &'f mut Progress,
}

impl Found<'_> {
    fn take(&mut self, name: &str, from: &mut impl Read) -> Result<()> {
        let failed = |error: std::io::Error| format!("{name} could not be restored: {error}");
        if name == NAME {
            let mut text = Vec::new();
            from.take(MOST_MANIFEST).read_to_end(&mut text).map_err(failed)?;
            self.manifest = Some(text);
            return Ok(());
        }
        let mut file = Sparse::into(files::create(&self.to.join(name)).map_err(failed)?);
        let entry = copy(from, &mut file, |bytes| self.progress.bytes(bytes)).map_err(failed)?;
        file.finish().map_err(failed)?;
        self.progress.file();
        self.files.insert(name.to_owned(), entry);
        Ok(())
    }
}

fn directory(from: &Path, found: &mut Found<'_>) -> Result<()> {
    let cannot = |path: &Path, error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let mut waiting = vec![PathBuf::new()];
    while let Some(below) = waiting.pop() {
        let here = from.join(&below);
        for entry in here.read_dir().map_err(|error| cannot(&here, error))? {
            let entry = entry.map_err(|error| cannot(&here, error))?;
            let path = below.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            } else {
                let mut file = files::open(&from.join(&path)).map_err(|error| cannot(&from.join(&path), error))?;
                found.take(plain(&path)?, &mut file)?;
            }
        }
    }
    Ok(())
}

fn archive(from: &Path, found: &mut Found<'_>) -> Result<()> {
    let broken = |error: std::io::Error| format!("{} is no backup, or damaged: {error}", from.display());
    let file: File = files::open(from).map_err(|error| format!("{} cannot be read: {error}", from.display()))?;
    let mut archive = tar::Archive::new(std::io::BufReader::with_capacity(1 << 16, file));
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        if !matches!(entry.header().entry_type(), tar::EntryType::Regular | tar::EntryType::GNUSparse) {
            return Err(format!("{} is no file, and does not belong to a backup", path.display()));
        }
        found.take(plain(&path)?, &mut entry)?;
    }
    Ok(())
}
