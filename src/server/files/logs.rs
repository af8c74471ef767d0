//! Log files, one an attempt. The file's length is the truth about what arrived: chunks are addressed by offset, so a
//! chunk that comes twice is written once, and one that comes too early is refused.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use app::domain::ids::{Attempt, JobId};
use bytes::Bytes;

/// Writers of one log take turns; so few locks serve all logs.
const STRIPES: usize = 64;

/// The directory of logs.
#[derive(Clone)]
pub struct Logs {
    root: PathBuf,
    turns: Arc<Vec<Mutex<()>>>,
}

/// What became of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// So many bytes of the log are on disk now.
    Durable(u64),
    /// Bytes are missing before the chunk; so many are on disk.
    Gap(u64),
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it starts.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The log's length.
    pub size: u64,
}

impl Logs {
    /// Logs below this directory, which is made if need be.
    pub fn open(root: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&root)?;
        Ok(Self { root, turns: Arc::new((0..STRIPES).map(|_| Mutex::default()).collect()) })
    }

    /// Writes what is new of a chunk, and returns when it is on disk.
    pub async fn append(&self, job: &JobId, attempt: Attempt, offset: u64, chunk: Bytes) -> io::Result<Appended> {
        let (this, job) = (self.clone(), job.clone());
        blocking(move || {
            let path = this.path(&job, attempt);
            let _turn = this.turns[stripe(&path)].lock().expect("no panic while it is held");
            append(&path, offset, &chunk)
        })
        .await
    }

    /// Reads at most `limit` bytes from `offset`; without an offset, the last ones.
    pub async fn read(&self, job: &JobId, attempt: Attempt, offset: Option<u64>, limit: u64) -> io::Result<Piece> {
        let path = self.path(job, attempt);
        blocking(move || read(&path, offset, limit)).await
    }

    /// How long the log is.
    pub async fn size(&self, job: &JobId, attempt: Attempt) -> io::Result<u64> {
        let path = self.path(job, attempt);
        blocking(move || match fs::metadata(&path) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        })
        .await
    }

    /// Removes all of a job's.
    pub async fn remove(&self, job: &JobId) -> io::Result<()> {
        let directory = self.root.join(job.as_str());
        blocking(move || match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .await
    }

    /// Where the log is, for streaming it whole.
    pub fn path(&self, job: &JobId, attempt: Attempt) -> PathBuf {
        self.root.join(job.as_str()).join(format!("{attempt}.log"))
    }
}

fn stripe(path: &Path) -> usize {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    usize::try_from(hasher.finish() % STRIPES as u64).unwrap_or(0)
}

fn append(path: &Path, offset: u64, chunk: &[u8]) -> io::Result<Appended> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let size = file.metadata()?.len();
    let Some(known) = size.checked_sub(offset) else { return Ok(Appended::Gap(size)) };
    let new = usize::try_from(known).ok().and_then(|known| chunk.get(known..)).unwrap_or_default();
    if !new.is_empty() {
        file.write_all(new)?;
        file.sync_data()?;
    }
    Ok(Appended::Durable(size + new.len() as u64))
}

fn read(path: &Path, offset: Option<u64>, limit: u64) -> io::Result<Piece> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Piece { offset: 0, bytes: Vec::new(), size: 0 });
        }
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    let offset = offset.unwrap_or_else(|| size.saturating_sub(limit)).min(size);
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(Piece { offset, bytes, size })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::time::Timestamp;

    #[tokio::test]
    async fn chunks_arrive_in_order_and_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let logs = Logs::open(directory.path().join("logs")).expect("it can be made");
        let job = JobId::new(Timestamp(0), [0; 10]);
        let put =
            async |offset, text: &'static str| logs.append(&job, Attempt(1), offset, text.into()).await.expect("disk");
        assert_eq!(put(0, "hello ").await, Appended::Durable(6));
        assert_eq!(put(0, "hello ").await, Appended::Durable(6));
        assert_eq!(put(9, "late").await, Appended::Gap(6));
        assert_eq!(put(3, "lo world").await, Appended::Durable(11));
        assert_eq!(put(11, "").await, Appended::Durable(11));
        let all = logs.read(&job, Attempt(1), Some(0), 99).await.expect("disk");
        assert_eq!((all.bytes.as_slice(), all.size), (b"hello world".as_slice(), 11));
        let tail = logs.read(&job, Attempt(1), None, 5).await.expect("disk");
        assert_eq!((tail.offset, tail.bytes.as_slice()), (6, b"world".as_slice()));
        let past = logs.read(&job, Attempt(1), Some(50), 5).await.expect("disk");
        assert_eq!((past.offset, past.bytes.len()), (11, 0));
        assert_eq!(logs.size(&job, Attempt(2)).await.expect("disk"), 0);
    }
}
