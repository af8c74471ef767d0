//! Unpacks a backup to a separate directory, and verifies it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Result;
use super::files::{self, checked_path, copy_hashed};
use super::manifest::{DatabaseEngine, MANIFEST_FILE, Manifest, ManifestEntry};
use super::progress::BackupProgress;
use super::sparse::SparseWriter;

/// Larger manifests are rejected, in bytes: 256 MiB are a million files.
const MAX_MANIFEST_BYTES: u64 = 256 << 20;

/// Copies a backup below `to`, which is empty. Returns its manifest after verifying all files.
pub fn unpack(
    from: &Path,
    to: &Path,
    newest_schema: impl Fn(DatabaseEngine) -> i64,
    progress: &mut BackupProgress,
) -> Result<Manifest> {
    let mut unpacker = Unpacker { to, manifest: None, files: BTreeMap::new(), progress };
    if from.is_dir() {
        unpack_directory(from, &mut unpacker)?;
    } else {
        unpack_archive(from, &mut unpacker)?;
    }
    let manifest = unpacker.manifest.ok_or_else(|| {
        format!("{} is not a complete backup: it has no {MANIFEST_FILE}; nothing was restored", from.display())
    })?;
    let manifest = Manifest::parse(&manifest, newest_schema)?;
    manifest.verify(&unpacker.files)?;
    Ok(manifest)
}

struct Unpacker<'f> {
    to: &'f Path,
    manifest: Option<Vec<u8>>,
    files: BTreeMap<String, ManifestEntry>,
    progress: &'f mut BackupProgress,
}

impl Unpacker<'_> {
    fn unpack_entry(&mut self, name: &str, from: &mut impl Read) -> Result<()> {
        let restore_error = |error: std::io::Error| format!("cannot restore {name}: {error}");
        if name == MANIFEST_FILE {
            let mut text = Vec::new();
            from.take(MAX_MANIFEST_BYTES).read_to_end(&mut text).map_err(restore_error)?;
            self.manifest = Some(text);
            return Ok(());
        }
        let mut file = SparseWriter::new(files::create_private_file(&self.to.join(name)).map_err(restore_error)?);
        let entry = copy_hashed(from, &mut file, |bytes| self.progress.add_bytes(bytes)).map_err(restore_error)?;
        file.finish().map_err(restore_error)?;
        self.progress.add_file();
        self.files.insert(name.to_owned(), entry);
        Ok(())
    }
}

fn unpack_directory(from: &Path, unpacker: &mut Unpacker<'_>) -> Result<()> {
    let read_error = |path: &Path, error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut pending_directories = vec![PathBuf::new()];
    while let Some(subdirectory) = pending_directories.pop() {
        let directory = from.join(&subdirectory);
        for entry in directory.read_dir().map_err(|error| read_error(&directory, error))? {
            let entry = entry.map_err(|error| read_error(&directory, error))?;
            let path = subdirectory.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending_directories.push(path);
            } else {
                let mut file = files::open_regular_file(&from.join(&path))
                    .map_err(|error| read_error(&from.join(&path), error))?;
                unpacker.unpack_entry(checked_path(&path)?, &mut file)?;
            }
        }
    }
    Ok(())
}

fn unpack_archive(from: &Path, unpacker: &mut Unpacker<'_>) -> Result<()> {
    let archive_error = |error: std::io::Error| format!("{} is not a backup, or is damaged: {error}", from.display());
    let file: File =
        files::open_regular_file(from).map_err(|error| format!("cannot read {}: {error}", from.display()))?;
    let mut archive = tar::Archive::new(std::io::BufReader::with_capacity(1 << 16, file));
    for entry in archive.entries().map_err(archive_error)? {
        let mut entry = entry.map_err(archive_error)?;
        let path = entry.path().map_err(archive_error)?.into_owned();
        if !matches!(entry.header().entry_type(), tar::EntryType::Regular | tar::EntryType::GNUSparse) {
            return Err(format!("{} is not a regular file and does not belong to a backup", path.display()));
        }
        unpacker.unpack_entry(checked_path(&path)?, &mut entry)?;
    }
    Ok(())
}
