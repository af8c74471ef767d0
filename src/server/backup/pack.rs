//! Writes a backup: a directory, or an archive if its name ends in `.tar`. It is renamed to its final name when it is
//! complete.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write, sink};
use std::path::{Path, PathBuf};

use super::Result;
use super::files::{self, copy_hashed};
use super::manifest::{MANIFEST_FILE, Manifest, ManifestEntry};
use super::progress::BackupProgress;
use super::sparse::{self, SparseWriter};

/// A backup in progress.
pub struct BackupWriter {
    target: PathBuf,
    staging: PathBuf,
    kind: BackupKind,
    files: BTreeMap<String, ManifestEntry>,
}

enum BackupKind {
    Directory,
    Archive(Box<tar::Builder<File>>),
}

impl BackupWriter {
    /// Starts a backup. Existing files are not overwritten.
    pub fn create(target: &Path) -> Result<Self> {
        if target.symlink_metadata().is_ok() {
            return Err(format!("{} exists already; choose another name with --to", target.display()));
        }
        let name =
            target.file_name().ok_or_else(|| format!("{} is not a valid name for a backup", target.display()))?;
        let draft = target.with_file_name(format!("{}.partial-{}", name.to_string_lossy(), std::process::id()));
        let is_archive = target.extension().is_some_and(|extension| extension == "tar");
        let write_error = |error: std::io::Error| format!("cannot write {}: {error}", draft.display());
        let kind = if is_archive {
            BackupKind::Archive(Box::new(tar::Builder::new(files::create_private_file(&draft).map_err(write_error)?)))
        } else {
            files::create_private_dir(&draft).map_err(write_error)?;
            BackupKind::Directory
        };
        Ok(Self { target: target.to_owned(), staging: draft, kind, files: BTreeMap::new() })
    }

    /// Returns a path on the same disk for a temporary file to be added.
    pub fn scratch_path(&self) -> PathBuf {
        self.staging.with_extension(format!("database-{}", std::process::id()))
    }

    /// Adds a file under this name, in its current length.
    pub fn add(&mut self, name: &str, path: &Path, progress: &mut BackupProgress) -> Result<()> {
        let copy_error = |error: std::io::Error| format!("cannot copy {}: {error}", path.display());
        let mut file = files::open_regular_file(path).map_err(copy_error)?;
        // A log may grow while it is copied; data after the database snapshot is not included.
        let size = file.metadata().map_err(copy_error)?.len();
        let entry = match &mut self.kind {
            BackupKind::Directory => {
                let mut copy =
                    SparseWriter::new(files::create_private_file(&self.staging.join(name)).map_err(copy_error)?);
                let entry = copy_hashed(&mut file.take(size), &mut copy, |bytes| progress.add_bytes(bytes))
                    .map_err(copy_error)?;
                copy.finish().map_err(copy_error)?;
                entry
            }
            BackupKind::Archive(archive) => {
                let ranges = sparse::data_ranges(&mut file, size).map_err(copy_error)?;
                if size > 0 && ranges != [(0, size)] {
                    // The hash covers the whole content, holes included.
                    let result = copy_hashed(&mut (&file).take(size), &mut sink(), |bytes| progress.add_bytes(bytes));
                    let entry = result.map_err(copy_error)?;
                    sparse::append_sparse(archive, name, size, &mut file, &ranges).map_err(copy_error)?;
                    return self.record_file(name, path, size, entry, progress);
                }
                let mut reader = HashingReader::new(file.take(size), progress);
                append_entry(archive, name, size, &mut reader).map_err(copy_error)?;
                reader.finish()
            }
        };
        self.record_file(name, path, size, entry, progress)
    }

    fn record_file(
        &mut self,
        name: &str,
        path: &Path,
        size: u64,
        entry: ManifestEntry,
        progress: &mut BackupProgress,
    ) -> Result<()> {
        if entry.size != size {
            return Err(format!("{} became shorter while it was copied; try again", path.display()));
        }
        progress.add_file();
        self.files.insert(name.to_owned(), entry);
        Ok(())
    }

    /// Writes the manifest and renames the backup; returns the number of files and bytes.
    pub fn finish(mut self, manifest: Manifest) -> Result<(usize, u64)> {
        let manifest = Manifest { files: std::mem::take(&mut self.files), ..manifest };
        let totals = (manifest.files.len(), manifest.files.values().map(|entry| entry.size).sum());
        let text = serde_json::to_vec_pretty(&manifest).expect("plain fields");
        let finish_error = |error: std::io::Error| format!("cannot finish the backup: {error}");
        match &mut self.kind {
            BackupKind::Directory => {
                let mut file = files::create_private_file(&self.staging.join(MANIFEST_FILE)).map_err(finish_error)?;
                file.write_all(&text).and_then(|()| file.sync_all()).map_err(finish_error)?;
                File::open(&self.staging).and_then(|directory| directory.sync_all()).map_err(finish_error)?;
            }
            BackupKind::Archive(archive) => {
                append_entry(archive, MANIFEST_FILE, text.len() as u64, &mut text.as_slice()).map_err(finish_error)?;
                archive.finish().and_then(|()| archive.get_ref().sync_all()).map_err(finish_error)?;
            }
        }
        fs::rename(&self.staging, &self.target).map_err(finish_error)?;
        Ok(totals)
    }
}

impl Drop for BackupWriter {
    fn drop(&mut self) {
        // Already renamed if the backup was finished.
        let _ = match self.kind {
            BackupKind::Directory => fs::remove_dir_all(&self.staging),
            BackupKind::Archive(_) => fs::remove_file(&self.staging),
        };
    }
}

fn append_entry(archive: &mut tar::Builder<File>, name: &str, size: u64, from: &mut impl Read) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_entry_type(tar::EntryType::Regular);
    archive.append_data(&mut header, name, from)
}

/// A reader that hashes what it reads.
struct HashingReader<'p, R> {
    inner: R,
    hash: sha2::Sha256,
    size: u64,
    progress: &'p mut BackupProgress,
}

impl<'p, R> HashingReader<'p, R> {
    fn new(from: R, progress: &'p mut BackupProgress) -> Self {
        Self { inner: from, hash: sha2::Digest::new(), size: 0, progress }
    }

    fn finish(self) -> ManifestEntry {
        ManifestEntry { size: self.size, sha256: crate::tokens::hex(&sha2::Digest::finalize(self.hash)) }
    }
}

impl<R: Read> Read for HashingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        sha2::Digest::update(&mut self.hash, &buffer[..read]);
        self.size += read as u64;
        self.progress.add_bytes(read as u64);
        Ok(read)
    }
}
