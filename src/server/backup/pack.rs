//! Writes a backup: a directory, or an archive if its name ends in `.tar`. It has its name when it is whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write, sink};
use std::path::{Path, PathBuf};

use super::Result;
use super::files::{self, copy};
use super::manifest::{Entry, Manifest, NAME};
use super::progress::Progress;
use super::sparse::{self, Sparse};

/// A backup that is being written.
pub struct Pack {
    target: PathBuf,
    draft: PathBuf,
    kind: Kind,
    files: BTreeMap<String, Entry>,
}

enum Kind {
    Directory,
    Archive(Box<tar::Builder<File>>),
}

impl Pack {
    /// Begins one. What is there is not written over.
    pub fn begin(target: &Path) -> Result<Self> {
        if target.symlink_metadata().is_ok() {
            return Err(format!("{} is there already; choose another name with --to", target.display()));
        }
        let name = target.file_name().ok_or_else(|| format!("{} is no name for a backup", target.display()))?;
        let draft = target.with_file_name(format!("{}.partial-{}", name.to_string_lossy(), std::process::id()));
        let is_archive = target.extension().is_some_and(|extension| extension == "tar");
        let cannot = |error: std::io::Error| format!("{} cannot be written: {error}", draft.display());
        let kind = if is_archive {
            Kind::Archive(Box::new(tar::Builder::new(files::create(&draft).map_err(cannot)?)))
        } else {
            files::make_directory(&draft).map_err(cannot)?;
            Kind::Directory
        };
        Ok(Self { target: target.to_owned(), draft, kind, files: BTreeMap::new() })
    }

    /// Where a file can be made that is added next, on the same disk.
    pub fn scratch(&self) -> PathBuf {
        self.draft.with_extension(format!("database-{}", std::process::id()))
    }

    /// Adds a file under this name, as long as it is now.
    pub fn add(&mut self, name: &str, path: &Path, progress: &mut Progress) -> Result<()> {
        let failed = |error: std::io::Error| format!("{} was not copied: {error}", path.display());
        let mut file = files::open(path).map_err(failed)?;
        // A log may grow meanwhile; what has come since the database was copied is no part of this.
        let size = file.metadata().map_err(failed)?.len();
        let entry = match &mut self.kind {
            Kind::Directory => {
                let mut copied = Sparse::into(files::create(&self.draft.join(name)).map_err(failed)?);
                let entry = copy(&mut file.take(size), &mut copied, |bytes| progress.bytes(bytes)).map_err(failed)?;
                copied.finish().map_err(failed)?;
                entry
            }
            Kind::Archive(archive) => {
                let parts = sparse::data(&mut file, size).map_err(failed)?;
                if size > 0 && parts != [(0, size)] {
                    // Its hash is that of all it is read as, holes and all.
                    let read = copy(&mut (&file).take(size), &mut sink(), |bytes| progress.bytes(bytes));
                    let entry = read.map_err(failed)?;
                    sparse::append(archive, name, size, &mut file, &parts).map_err(failed)?;
                    return self.added(name, path, size, entry, progress);
                }
                let mut counted = Hashed::new(file.take(size), progress);
                append(archive, name, size, &mut counted).map_err(failed)?;
                counted.entry()
            }
        };
        self.added(name, path, size, entry, progress)
    }

    fn added(&mut self, name: &str, path: &Path, size: u64, entry: Entry, progress: &mut Progress) -> Result<()> {
        if entry.size != size {
            return Err(format!("{} became shorter while it was copied; try again", path.display()));
        }
        progress.file();
        self.files.insert(name.to_owned(), entry);
        Ok(())
    }

    /// Writes the manifest, and gives the backup its name; returns how many files and bytes are in it.
    pub fn finish(mut self, manifest: Manifest) -> Result<(usize, u64)> {
        let manifest = Manifest { files: std::mem::take(&mut self.files), ..manifest };
        let totals = (manifest.files.len(), manifest.files.values().map(|entry| entry.size).sum());
        let text = serde_json::to_vec_pretty(&manifest).expect("plain fields");
        let failed = |error: std::io::Error| format!("the backup could not be finished: {error}");
        match &mut self.kind {
            Kind::Directory => {
                let mut file = files::create(&self.draft.join(NAME)).map_err(failed)?;
                file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
                File::open(&self.draft).and_then(|directory| directory.sync_all()).map_err(failed)?;
            }
            Kind::Archive(archive) => {
                append(archive, NAME, text.len() as u64, &mut text.as_slice()).map_err(failed)?;
                archive.finish().and_then(|()| archive.get_ref().sync_all()).map_err(failed)?;
            }
        }
        fs::rename(&self.draft, &self.target).map_err(failed)?;
        Ok(totals)
    }
}

impl Drop for Pack {
    fn drop(&mut self) {
        // Gone already if it was finished.
        let _ = match self.kind {
            Kind::Directory => fs::remove_dir_all(&self.draft),
            Kind::Archive(_) => fs::remove_file(&self.draft),
        };
    }
}

fn append(archive: &mut tar::Builder<File>, name: &str, size: u64, from: &mut impl Read) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_entry_type(tar::EntryType::Regular);
    archive.append_data(&mut header, name, from)
}

/// A reader that takes the hash of what is read.
struct Hashed<'p, R> {
    from: R,
    hash: sha2::Sha256,
    size: u64,
    progress: &'p mut Progress,
}

impl<'p, R> Hashed<'p, R> {
    fn new(from: R, progress: &'p mut Progress) -> Self {
        Self { from, hash: sha2::Digest::new(), size: 0, progress }
    }

    fn entry(self) -> Entry {
        Entry { size: self.size, sha256: crate::tokens::hex(&sha2::Digest::finalize(self.hash)) }
    }
}

impl<R: Read> Read for Hashed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(buffer)?;
        sha2::Digest::update(&mut self.hash, &buffer[..read]);
        self.size += read as u64;
        self.progress.bytes(read as u64);
        Ok(read)
    }
}
