//! Partial uploads: a directory per job, a file per upload. Its length is the source of truth for what was received.
//! The expected file (path, size, SHA-256) is in its name, so that a file that has changed on its worker starts again,
//! and replaces the earlier upload.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::time::Timestamp;
use app::threads::run_io;
use bytes::Bytes;
use sha2::Digest;

use super::logs::{STRIPES, lock_index};
use super::partial_hashes::{PartialHashes, hash_file};
use super::partial_uploads;
use crate::tokens::hex;

/// The directory of partial uploads.
#[derive(Clone)]
pub struct UploadStore {
    root: PathBuf,
    locks: Arc<Vec<Mutex<()>>>,
    hashes: PartialHashes,
}

/// The expected file of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UploadTarget {
    pub job: JobId,
    pub attempt: AttemptNumber,
    pub path: String,
    pub size: u64,
    /// SHA-256 in lower-case hex.
    pub sha256: String,
}

/// An upload in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialUpload {
    pub job: JobId,
    pub attempt: AttemptNumber,
    /// When its last chunk arrived.
    pub modified_at: Timestamp,
    file: PathBuf,
}

impl UploadStore {
    /// Opens the uploads in this directory, which is created if necessary.
    pub fn open(root: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&root)?;
        Ok(Self {
            root,
            locks: Arc::new((0..STRIPES).map(|_| Mutex::default()).collect()),
            hashes: PartialHashes::default(),
        })
    }

    /// The number of received bytes.
    pub async fn received_bytes(&self, target: &UploadTarget) -> io::Result<u64> {
        let file = self.path(target);
        run_io(move || match fs::metadata(file) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        })
        .await
    }

    /// Writes the new part of a chunk, which may not be on disk yet. Returns the number of received bytes; it is less
    /// than `offset` if bytes are missing before the chunk.
    pub async fn append(&self, target: &UploadTarget, offset: u64, chunk: Bytes) -> io::Result<u64> {
        let (this, path) = (self.clone(), self.path(target));
        run_io(move || {
            let _lock = this.lock(&path);
            if offset == 0 && !path.exists() {
                partial_uploads::evict_for(&path)?.iter().for_each(|removed| this.hashes.forget(removed));
            }
            // Only a first chunk creates the file: another request may just have stored it and removed it here.
            let mut file = match OpenOptions::new().create(offset == 0).append(true).open(&path) {
                Err(error) if offset > 0 && error.kind() == ErrorKind::NotFound => return Ok(0),
                opened => opened?,
            };
            let size = file.metadata()?.len();
            let stored = size.checked_sub(offset).and_then(|stored| usize::try_from(stored).ok());
            let new = stored.and_then(|stored| chunk.get(stored..)).unwrap_or_default();
            let hash = this.hashes.take(&path, size);
            file.write_all(new)?;
            if let Some(hash) = hash {
                this.hashes.put(path, hash.chain_update(new), size + new.len() as u64);
            }
            Ok(size + new.len() as u64)
        })
        .await
    }

    /// The SHA-256 of the received bytes, in hex. The file is only read if not all of it was received by this server
    /// since its start.
    pub async fn digest(&self, target: &UploadTarget) -> io::Result<String> {
        let (this, path) = (self.clone(), self.path(target));
        run_io(move || {
            let mut file = File::open(&path)?;
            let hash = {
                let _lock = this.lock(&path);
                let size = file.metadata()?.len();
                this.hashes.take(&path, size).inspect(|hash| this.hashes.put(path, hash.clone(), size))
            };
            match hash {
                Some(hash) => Ok(hex(&hash.finalize())),
                None => hash_file(&mut file),
            }
        })
        .await
    }

    fn lock(&self, path: &Path) -> MutexGuard<'_, ()> {
        self.locks[lock_index(path)].lock().expect("no panic while it is held")
    }

    /// Waits until it is on disk; returns the number of bytes.
    pub async fn sync(&self, target: &UploadTarget) -> io::Result<u64> {
        let file = self.path(target);
        run_io(move || match File::open(file) {
            Ok(file) => {
                file.sync_all()?;
                Ok(file.metadata()?.len())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        })
        .await
    }

    pub async fn discard(&self, target: &UploadTarget) -> io::Result<()> {
        let (this, path) = (self.clone(), self.path(target));
        run_io(move || {
            this.hashes.forget(&path);
            ignore_not_found(fs::remove_file(path))
        })
        .await
    }

    /// Drops all uploads of a job.
    pub async fn remove_job(&self, job: &JobId) -> io::Result<()> {
        let directory = self.root.join(job.as_str());
        self.hashes.forget(&directory);
        run_io(move || ignore_not_found(fs::remove_dir_all(directory))).await
    }

    /// Lists all uploads.
    pub async fn list_partial(&self) -> io::Result<Vec<PartialUpload>> {
        let root = self.root.clone();
        run_io(move || {
            let mut partial = Vec::new();
            for directory in fs::read_dir(root)? {
                let directory = directory?;
                let Ok(job) = JobId::parse(&directory.file_name().to_string_lossy()) else { continue };
                let Ok(files) = fs::read_dir(directory.path()) else { continue };
                partial.extend(files.filter_map(|file| parse_partial(&job, &file.ok()?.path())));
            }
            Ok(partial)
        })
        .await
    }

    /// Drops an abandoned upload, and its job's directory if that was the last.
    pub async fn remove_partial(&self, partial: PartialUpload) -> io::Result<()> {
        self.hashes.forget(&partial.file);
        run_io(move || {
            ignore_not_found(fs::remove_file(&partial.file))?;
            match partial.file.parent().map(fs::remove_dir) {
                Some(Err(error)) if error.kind() != ErrorKind::DirectoryNotEmpty => ignore_not_found(Err(error)),
                _ => Ok(()),
            }
        })
        .await
    }

    pub fn path(&self, target: &UploadTarget) -> PathBuf {
        self.root.join(target.job.as_str()).join(partial_uploads::file_name(target))
    }
}

fn parse_partial(job: &JobId, file: &Path) -> Option<PartialUpload> {
    let attempt = file.file_name()?.to_str()?.split_once('-')?.0.parse().ok()?;
    let modified_at = fs::metadata(file).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).map_or(0, millis);
    Some(PartialUpload {
        job: job.clone(),
        attempt: AttemptNumber(attempt),
        modified_at: Timestamp(modified_at),
        file: file.to_owned(),
    })
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> UploadTarget {
        let job = JobId::new(Timestamp(0), [0; 10]);
        UploadTarget { job, attempt: AttemptNumber(3), path: path.to_owned(), size: 9, sha256: "00".repeat(32) }
    }

    #[tokio::test]
    async fn chunks_are_written_once_and_gaps_are_rejected() {
        let directory = tempfile::tempdir().expect("a directory");
        let uploads = UploadStore::open(directory.path().join("uploads")).expect("created");
        let put =
            async |offset, text: &'static str| uploads.append(&target("a"), offset, text.into()).await.expect("disk");
        assert_eq!(put(4, "late").await, 0);
        assert_eq!((put(0, "one ").await, put(2, "e two").await, put(0, "one ").await), (4, 7, 7));
        assert_eq!(uploads.sync(&target("a")).await.expect("disk"), 7);
        assert_eq!(
            uploads.received_bytes(&UploadTarget { size: 10, ..target("a") }).await.expect("disk"),
            0,
            "another file"
        );
        let partial = uploads.list_partial().await.expect("disk");
        assert_eq!((partial.len(), &partial[0].job, partial[0].attempt), (1, &target("a").job, AttemptNumber(3)));
        uploads.remove_partial(partial[0].clone()).await.expect("disk");
        assert!(uploads.list_partial().await.expect("disk").is_empty());
        assert_eq!(fs::read_dir(directory.path().join("uploads")).expect("readable").count(), 0);
        uploads.discard(&target("a")).await.expect("already removed");
    }

    #[tokio::test]
    async fn digest_covers_the_file_on_disk_from_any_writer() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = || UploadStore::open(directory.path().join("uploads")).expect("created");
        let digest = |text: &str| hex(&sha2::Sha256::digest(text));
        let (first, target) = (open(), target("a"));
        first.append(&target, 0, "one ".into()).await.expect("disk");
        first.append(&target, 2, "e two".into()).await.expect("disk");
        assert_eq!(first.digest(&target).await.expect("disk"), digest("one two"));
        let second = open();
        assert_eq!(second.digest(&target).await.expect("disk"), digest("one two"), "a restarted server reads the file");
        second.append(&target, 7, " three".into()).await.expect("disk");
        assert_eq!(second.digest(&target).await.expect("disk"), digest("one two three"));
        assert_eq!(first.digest(&target).await.expect("disk"), digest("one two three"), "another server has appended");
        first.append(&target, 13, "!".into()).await.expect("disk");
        assert_eq!(first.digest(&target).await.expect("disk"), digest("one two three!"));
        first.discard(&target).await.expect("disk");
        assert!(first.digest(&target).await.is_err());
    }

    #[tokio::test]
    async fn uploads_are_limited_per_path_and_attempt() {
        let directory = tempfile::tempdir().expect("a directory");
        let uploads = UploadStore::open(directory.path().join("uploads")).expect("created");
        let begin = async |target: &UploadTarget| uploads.append(target, 0, "x".into()).await.expect("disk");
        let exists = async |target: &UploadTarget| uploads.received_bytes(target).await.expect("disk") > 0;
        let (before, changed) = (target("a"), UploadTarget { size: 10, ..target("a") });
        let (other, next) = (target("b"), UploadTarget { attempt: AttemptNumber(4), ..target("a") });
        for target in [&before, &other, &next, &changed] {
            begin(target).await;
        }
        assert!(!exists(&before).await, "it has changed on its worker");
        assert!(exists(&changed).await && exists(&other).await && exists(&next).await);
        let old = fs::File::options().write(true).open(uploads.path(&other)).expect("readable");
        old.set_modified(UNIX_EPOCH).expect("a file's time");
        for n in 2..partial_uploads::MAX_PER_ATTEMPT {
            begin(&target(&n.to_string())).await;
        }
        assert!(exists(&other).await, "the maximum is allowed");
        begin(&target("one more")).await;
        assert!(!exists(&other).await, "the one that was idle longest");
        assert!(exists(&changed).await && exists(&next).await && exists(&target("one more")).await);
        assert_eq!(uploads.list_partial().await.expect("disk").len(), partial_uploads::MAX_PER_ATTEMPT + 1);
    }
}
