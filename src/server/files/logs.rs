//! Log files, one an attempt. The file's length is the truth about what arrived: chunks are addressed by offset, so a
//! chunk that comes twice is written once, and one that comes too early is refused, unless its worker says that the bytes
//! before it are lost ([`super::gaps`]).

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use app::domain::ids::{Attempt, JobId};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use super::gaps::{self, Gap, Look};
use super::log_index::Indexes;
use super::log_lines::{Lines, parts};

/// Writers of one log take turns; so few locks serve all logs.
pub(super) const STRIPES: usize = 64;

/// The directory of logs.
#[derive(Clone)]
pub struct Logs {
    root: PathBuf,
    turns: Arc<Vec<Mutex<()>>>,
    indexes: Arc<Indexes>,
}

/// What became of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// So many bytes of the log are on disk now.
    Durable(u64),
    /// Bytes are missing before the chunk; so many are on disk.
    Gap(u64),
    /// The log has [`gaps::MOST`] gaps, and the chunk would make another.
    TooManyGaps,
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it starts.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where the next one starts: behind it, and behind the gap whose mark it ends with.
    pub next: u64,
    /// Whether it starts behind a gap.
    pub after_gap: bool,
    /// The log's length.
    pub size: u64,
}

/// What comes to a log.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How many bytes before that the worker had to drop.
    pub dropped: Option<u64>,
    /// What it says.
    pub bytes: Bytes,
}

impl Logs {
    /// Logs below this directory, which is made if need be.
    pub fn open(root: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&root)?;
        Ok(Self { root, turns: Arc::new((0..STRIPES).map(|_| Mutex::default()).collect()), indexes: Arc::default() })
    }

    /// Writes what is new of a chunk, and returns when it is on disk.
    pub async fn append(&self, job: &JobId, attempt: Attempt, chunk: Chunk) -> io::Result<Appended> {
        let (this, job) = (self.clone(), job.clone());
        blocking(move || {
            let path = this.path(&job, attempt);
            let _turn = this.turns[stripe(&path)].lock().expect("no panic while it is held");
            append(&path, &chunk)
        })
        .await
    }

    /// Reads at most `limit` bytes from `offset`; without an offset, the last ones.
    pub async fn read(&self, job: &JobId, attempt: Attempt, offset: Option<u64>, limit: u64) -> io::Result<Piece> {
        let path = self.path(job, attempt);
        blocking(move || read(&path, offset, limit)).await
    }

    /// Reads it by lines, on a thread that may block. Counting the lines of a long log ends when `stop` is set.
    pub async fn lines<T: Send + 'static>(
        &self,
        job: &JobId,
        attempt: Attempt,
        stop: Arc<AtomicBool>,
        read: impl FnOnce(&Lines) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let path = self.path(job, attempt);
        let index = self.indexes.of(&path);
        blocking(move || read(&Lines::open(&path, &index, &stop)?)).await
    }

    /// How long the log is.
    pub async fn size(&self, job: &JobId, attempt: Attempt) -> io::Result<u64> {
        let path = self.path(job, attempt);
        blocking(move || match fs::metadata(&path) {
            Ok(metadata) => Ok(gaps::of(&path, metadata.len())?.1),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        })
        .await
    }

    /// How many bytes all logs take.
    pub async fn bytes(&self) -> io::Result<u64> {
        let root = self.root.clone();
        blocking(move || bytes_below(&root)).await
    }

    /// All of it, without the holes.
    pub async fn whole(
        &self,
        job: &JobId,
        attempt: Attempt,
    ) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static> {
        let path = self.path(job, attempt);
        let (log, parts) = (path.clone(), blocking(move || parts_of(&path)).await?);
        let open = move |(from, to): (u64, u64)| {
            let log = log.clone();
            async move {
                let mut file = tokio::fs::File::open(log).await?;
                file.seek(SeekFrom::Start(from)).await?;
                Ok::<_, io::Error>(ReaderStream::new(file.take(to - from)))
            }
        };
        Ok(stream::iter(parts).then(open).try_flatten())
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

    fn path(&self, job: &JobId, attempt: Attempt) -> PathBuf {
        self.root.join(job.as_str()).join(format!("{attempt}.log"))
    }
}

pub(super) fn stripe(path: &Path) -> usize {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    usize::try_from(hasher.finish() % STRIPES as u64).unwrap_or(0)
}

/// The bytes of all files in a directory and those below. What goes meanwhile does not count.
fn bytes_below(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_below(&entry.path()).unwrap_or(0),
            found => found.map_or(0, |found| found.len()),
        };
    }
    Ok(bytes)
}

fn append(path: &Path, Chunk { offset, dropped, bytes }: &Chunk) -> io::Result<Appended> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut size = gaps::settle(path, &mut file)?;
    if let Some(gap) = dropped.map(|dropped| Gap { from: offset.saturating_sub(dropped), to: *offset }) {
        match gaps::look(path, gap)? {
            Look::There => {}
            _ if size != gap.from => return Ok(Appended::Gap(size)),
            Look::TooMany => return Ok(Appended::TooManyGaps),
            Look::New => size = gaps::add(path, &mut file, gap)?,
        }
    }
    let Some(known) = size.checked_sub(*offset) else { return Ok(Appended::Gap(size)) };
    let new = usize::try_from(known).ok().and_then(|known| bytes.get(known..)).unwrap_or_default();
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
            return Ok(Piece { offset: 0, bytes: Vec::new(), next: 0, after_gap: false, size: 0 });
        }
        Err(error) => return Err(error),
    };
    let (gaps, size) = gaps::of(path, file.metadata()?.len())?;
    let asked = offset.unwrap_or_else(|| size.saturating_sub(limit)).min(size);
    let behind_hole = |offset: u64| gaps.iter().find(|gap| gap.hole() <= offset && offset < gap.to).map(|gap| gap.to);
    let offset = behind_hole(asked).unwrap_or(asked);
    let end = gaps.iter().map(|gap| gap.hole()).find(|hole| *hole > offset).unwrap_or(size);
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(limit.min(end - offset)).read_to_end(&mut bytes)?;
    let read = offset + bytes.len() as u64;
    let after_gap = gaps.iter().any(|gap| gap.to == offset);
    Ok(Piece { offset, bytes, next: behind_hole(read).unwrap_or(read), after_gap, size })
}

/// What of a log is no hole: from where to where.
fn parts_of(path: &Path) -> io::Result<Vec<(u64, u64)>> {
    let length = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let (gaps, size) = gaps::of(path, length)?;
    Ok(parts(&gaps, size, 0).collect())
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::time::Timestamp;

    fn chunk(offset: u64, text: &'static str) -> Chunk {
        Chunk { offset, dropped: None, bytes: text.into() }
    }

    #[tokio::test]
    async fn chunks_arrive_in_order_and_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let logs = Logs::open(directory.path().join("logs")).expect("it can be made");
        let job = JobId::new(Timestamp(0), [0; 10]);
        let put =
            async |offset, text: &'static str| logs.append(&job, Attempt(1), chunk(offset, text)).await.expect("disk");
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

    async fn whole(logs: &Logs, job: &JobId) -> String {
        let all = logs.whole(job, Attempt(1)).await.expect("disk").try_collect::<Vec<_>>().await.expect("disk");
        String::from_utf8(all.concat()).expect("text")
    }

    #[tokio::test]
    async fn nobody_reads_a_hole() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let logs = Logs::open(directory.path().join("logs")).expect("it can be made");
        let job = JobId::new(Timestamp(0), [0; 10]);
        let put = async |chunk: Chunk| logs.append(&job, Attempt(1), chunk).await.expect("disk");
        let lost = |offset, dropped, text: &'static str| Chunk { dropped: Some(dropped), ..chunk(offset, text) };
        put(chunk(0, "before\n")).await;
        for (dropped, why) in [(5_000, "fewer were dropped than are missing"), (5_010, "more")] {
            assert_eq!(put(lost(5_009, dropped, "after\n")).await, Appended::Gap(7), "{why}");
        }
        for _ in 0..2 {
            assert_eq!(put(lost(5_009, 5_002, "after\n")).await, Appended::Durable(5_015), "once");
        }
        assert_eq!(put(lost(100_000, 94_985, "")).await, Appended::Durable(100_000));
        assert_eq!(put(chunk(100_000, "end")).await, Appended::Durable(100_003));
        let marks = [Gap { from: 7, to: 5_009 }.mark(), Gap { from: 5_015, to: 100_000 }.mark()];
        let all = format!("before\n{}after\n{}end", marks[0], marks[1]);
        assert!(marks[0].contains("5002 bytes"), "{}", marks[0]);
        assert_eq!(whole(&logs, &job).await, all);
        for limit in [1, 7, 50, 1 << 20] {
            let (mut read, mut offset) = (Vec::new(), 0);
            loop {
                let piece = logs.read(&job, Attempt(1), Some(offset), limit).await.expect("disk");
                if piece.next == offset {
                    break;
                }
                assert_eq!(piece.offset, offset, "whoever goes on where they were told misses nothing");
                read.extend(piece.bytes);
                offset = piece.next;
            }
            assert_eq!((String::from_utf8_lossy(&read), offset), (all.as_str().into(), 100_003), "by {limit}");
        }
        for (offset, limit) in [(Some(1_000), 99), (None, 200)] {
            let piece = logs.read(&job, Attempt(1), offset, limit).await.expect("disk");
            assert!(piece.after_gap && !piece.bytes.contains(&0), "{piece:?}");
        }
        assert_eq!(logs.size(&job, Attempt(1)).await.expect("disk"), 100_003);
        let file = fs::metadata(logs.path(&job, Attempt(1))).expect("there");
        let stored = std::os::unix::fs::MetadataExt::blocks(&file) * 512;
        assert!(stored < 50_000, "the holes take no room: {stored}");
    }

    #[tokio::test]
    async fn a_gap_that_was_noted_and_not_made_is_made_before_anything_else() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let logs = Logs::open(directory.path().join("logs")).expect("it can be made");
        let job = JobId::new(Timestamp(0), [0; 10]);
        logs.append(&job, Attempt(1), chunk(0, "before\n")).await.expect("disk");
        let (log, gap) = (logs.path(&job, Attempt(1)), Gap { from: 7, to: 9_000 });
        let notes = log.with_extension("log.gaps");
        let line = |gap: Gap| format!("{{\"from\":{},\"to\":{}}}\n", gap.from, gap.to);
        // Of a later life of which the log was lost; whole; and half of one that a power cut has left.
        fs::write(&notes, format!("{}{}{{\"from\":9", line(Gap { from: 20_000, to: 30_000 }), line(gap)))
            .expect("disk");
        fs::write(&log, "before\n\n[899").expect("disk");
        assert_eq!(logs.size(&job, Attempt(1)).await.expect("disk"), 7);
        assert_eq!(whole(&logs, &job).await, "before\n");
        assert_eq!(logs.read(&job, Attempt(1), None, 99).await.expect("disk").bytes, b"before\n");
        let appended = logs.append(&job, Attempt(1), chunk(9_000, "after")).await.expect("disk");
        assert_eq!(appended, Appended::Durable(9_005));
        assert_eq!(whole(&logs, &job).await, format!("before\n{}after", gap.mark()));
        let next = Chunk { dropped: Some(10_995), ..chunk(20_000, "") };
        assert_eq!(logs.append(&job, Attempt(1), next).await.expect("disk"), Appended::Durable(20_000));
        assert!(whole(&logs, &job).await.contains("[10995 bytes"));
        logs.remove(&job).await.expect("disk");
        assert!(!notes.exists());
    }
}
