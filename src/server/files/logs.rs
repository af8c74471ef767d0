//! Log files, one per attempt. The file's length is the source of truth for what was received: chunks are addressed by
//! offset, so a repeated chunk is written once, and one that comes too early is rejected, unless its worker reports
//! that the bytes before it are lost ([`super::log_gaps`]).

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::log_text::arrivals::Arrival;
use app::domain::time::Timestamp;
use app::threads::run_io;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use super::log_facts::{self, CachedLogFacts, LogFacts};
use super::log_gaps::{self, Gap, GapStatus};
use super::log_index::{LogIndex, RecentLogs};
use super::log_lines::{LogFileLines, data_ranges};
use super::log_times;

/// Writers of one log are serialized; all logs share this number of locks.
pub(super) const STRIPES: usize = 64;

#[derive(Clone)]
pub struct LogStore {
    root: PathBuf,
    locks: Arc<Vec<Mutex<()>>>,
    index_cache: Arc<RecentLogs<LogIndex>>,
    facts_cache: Arc<RecentLogs<CachedLogFacts>>,
}

/// The result of appending a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAppendResult {
    /// The number of bytes on disk.
    Durable(u64),
    /// Bytes are missing before the chunk; the number of bytes on disk.
    Gap(u64),
    /// The log has [`log_gaps::MAX_GAPS`] gaps, and the chunk would add another.
    TooManyGaps,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSlice {
    pub offset: u64,
    pub bytes: Vec<u8>,
    /// Where the next slice starts: after this one, and after the gap whose marker it ends with.
    pub next: u64,
    /// Whether it starts after a gap.
    pub after_gap: bool,
    /// The log's length.
    pub size: u64,
}

/// A chunk of a log.
#[derive(Debug, Clone)]
pub struct IncomingLogChunk {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How many bytes before it the worker had to drop.
    pub dropped: Option<u64>,
    /// Its bytes.
    pub bytes: Bytes,
}

impl LogStore {
    /// Opens the logs in this directory, which is created if necessary.
    pub fn open(root: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&root)?;
        Ok(Self {
            root,
            locks: Arc::new((0..STRIPES).map(|_| Mutex::default()).collect()),
            index_cache: Arc::default(),
            facts_cache: Arc::default(),
        })
    }

    /// Writes the new part of a chunk, and returns when it is on disk.
    pub async fn append(
        &self,
        job: &JobId,
        attempt: AttemptNumber,
        chunk: IncomingLogChunk,
        now: Timestamp,
    ) -> io::Result<LogAppendResult> {
        let (this, job) = (self.clone(), job.clone());
        run_io(move || {
            let path = this.path(&job, attempt);
            let _lock = this.locks[lock_index(&path)].lock().expect("no panic while it is held");
            append_chunk(&path, &chunk, now)
        })
        .await
    }

    /// Reads at most `limit` bytes from `offset`; without an offset, the last ones.
    pub async fn read(
        &self,
        job: &JobId,
        attempt: AttemptNumber,
        offset: Option<u64>,
        limit: u64,
    ) -> io::Result<LogSlice> {
        let path = self.path(job, attempt);
        run_io(move || read_slice(&path, offset, limit)).await
    }

    /// Reads lines, on a thread that may block. Counting the lines of a long log stops when `stop` is set.
    pub async fn read_lines<T: Send + 'static>(
        &self,
        job: &JobId,
        attempt: AttemptNumber,
        stop: Arc<AtomicBool>,
        read: impl FnOnce(&LogFileLines) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let path = self.path(job, attempt);
        let index = self.index_cache.get(&path);
        run_io(move || read(&LogFileLines::open(&path, &index, &stop)?)).await
    }

    /// Reads logs from their start, on a thread that may block.
    pub async fn read_from_start<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Fn(&JobId, AttemptNumber) -> io::Result<LogFileLines>) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let this = self.clone();
        run_io(move || read(&|job, attempt| LogFileLines::open_unindexed(&this.path(job, attempt)))).await
    }

    /// Returns what a log says about itself, and its size.
    pub async fn facts(&self, job: &JobId, attempt: AttemptNumber) -> io::Result<(u64, Arc<LogFacts>)> {
        let path = self.path(job, attempt);
        let cached = self.facts_cache.get(&path);
        run_io(move || log_facts::load(&path, &cached)).await
    }

    /// The total size of all logs.
    pub async fn total_bytes(&self) -> io::Result<u64> {
        let root = self.root.clone();
        run_io(move || bytes_below(&root)).await
    }

    /// Streams a log without its holes.
    pub async fn stream(
        &self,
        job: &JobId,
        attempt: AttemptNumber,
    ) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static> {
        let path = self.path(job, attempt);
        let (log, parts) = (path.clone(), run_io(move || file_data_ranges(&path)).await?);
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

    /// Removes all logs of a job.
    pub async fn remove_job(&self, job: &JobId) -> io::Result<()> {
        let directory = self.root.join(job.as_str());
        run_io(move || match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .await
    }

    fn path(&self, job: &JobId, attempt: AttemptNumber) -> PathBuf {
        self.root.join(job.as_str()).join(format!("{attempt}.log"))
    }
}

pub(super) fn lock_index(path: &Path) -> usize {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    usize::try_from(hasher.finish() % STRIPES as u64).unwrap_or(0)
}

/// The size of all files below a directory. Files that are removed during the count are skipped.
fn bytes_below(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()).unwrap_or(0),
            metadata => metadata.map_or(0, |metadata| metadata.len()),
        };
    }
    Ok(bytes)
}

fn append_chunk(
    path: &Path,
    IncomingLogChunk { offset, dropped, bytes }: &IncomingLogChunk,
    now: Timestamp,
) -> io::Result<LogAppendResult> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut size = log_gaps::complete_recorded(path, &mut file)?;
    if let Some(gap) = dropped.map(|dropped| Gap { from: offset.saturating_sub(dropped), to: *offset }) {
        match log_gaps::lookup(path, gap)? {
            GapStatus::Recorded => log_gaps::restore_marker(path, gap)?,
            _ if size != gap.from => return Ok(LogAppendResult::Gap(size)),
            GapStatus::TooMany => return Ok(LogAppendResult::TooManyGaps),
            GapStatus::New => size = log_gaps::add(path, &mut file, gap)?,
        }
    }
    let Some(stored) = size.checked_sub(*offset) else { return Ok(LogAppendResult::Gap(size)) };
    if stored > 0 {
        restore_overlap(path, *offset, size, bytes)?;
    }
    let new = usize::try_from(stored).ok().and_then(|stored| bytes.get(stored..)).unwrap_or_default();
    if !new.is_empty() {
        file.write_all(new)?;
        // A log without its times is better than none.
        let _recorded = log_times::add(path, Arrival { offset: size, at: now });
        file.sync_data()?;
    }
    Ok(LogAppendResult::Durable(size + new.len() as u64))
}

/// Restores bytes that a power failure has left as zeros: the length of a file may be on disk before its data. The chunk
/// was not acknowledged, so its worker sends it again.
fn restore_overlap(path: &Path, offset: u64, size: u64, bytes: &[u8]) -> io::Result<()> {
    let from = offset.max(log_gaps::last_gap_end(path)?);
    let sent = usize::try_from(from - offset).ok().and_then(|skipped| bytes.get(skipped..)).unwrap_or_default();
    let sent = &sent[..sent.len().min(usize::try_from(size.saturating_sub(from)).unwrap_or(usize::MAX))];
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut stored = vec![0; sent.len()];
    file.read_exact_at(&mut stored, from)?;
    let restored: Vec<u8> =
        stored.iter().zip(sent).map(|(kept, sent)| if *kept == 0 { *sent } else { *kept }).collect();
    if restored != stored {
        file.write_all_at(&restored, from)?;
        file.sync_data()?;
    }
    Ok(())
}

pub(super) fn read_slice(path: &Path, offset: Option<u64>, limit: u64) -> io::Result<LogSlice> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(LogSlice { offset: 0, bytes: Vec::new(), next: 0, after_gap: false, size: 0 });
        }
        Err(error) => return Err(error),
    };
    let (gaps, size) = log_gaps::load(path, file.metadata()?.len())?;
    let requested = offset.unwrap_or_else(|| size.saturating_sub(limit)).min(size);
    let end_of_hole =
        |offset: u64| gaps.iter().find(|gap| gap.hole_start() <= offset && offset < gap.to).map(|gap| gap.to);
    let offset = end_of_hole(requested).unwrap_or(requested);
    let end = gaps.iter().map(|gap| gap.hole_start()).find(|hole| *hole > offset).unwrap_or(size);
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(limit.min(end - offset)).read_to_end(&mut bytes)?;
    let read_end = offset + bytes.len() as u64;
    let after_gap = gaps.iter().any(|gap| gap.to == offset);
    Ok(LogSlice { offset, bytes, next: end_of_hole(read_end).unwrap_or(read_end), after_gap, size })
}

/// The ranges of a log without holes.
fn file_data_ranges(path: &Path) -> io::Result<Vec<(u64, u64)>> {
    let length = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let (gaps, size) = log_gaps::load(path, length)?;
    Ok(data_ranges(&gaps, size, 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(offset: u64, text: &'static str) -> IncomingLogChunk {
        IncomingLogChunk { offset, dropped: None, bytes: text.into() }
    }

    #[tokio::test]
    async fn chunks_arrive_in_order_and_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let logs = LogStore::open(directory.path().join("logs")).expect("it can be created");
        let job = JobId::new(Timestamp(0), [0; 10]);
        let put = async |offset, text: &'static str| {
            logs.append(&job, AttemptNumber(1), chunk(offset, text), Timestamp(0)).await.expect("disk")
        };
        assert_eq!(put(0, "hello ").await, LogAppendResult::Durable(6));
        assert_eq!(put(0, "hello ").await, LogAppendResult::Durable(6));
        assert_eq!(put(9, "late").await, LogAppendResult::Gap(6));
        assert_eq!(put(3, "lo world").await, LogAppendResult::Durable(11));
        assert_eq!(put(11, "").await, LogAppendResult::Durable(11));
        let all = logs.read(&job, AttemptNumber(1), Some(0), 99).await.expect("disk");
        assert_eq!((all.bytes.as_slice(), all.size), (b"hello world".as_slice(), 11));
        let tail = logs.read(&job, AttemptNumber(1), None, 5).await.expect("disk");
        assert_eq!((tail.offset, tail.bytes.as_slice()), (6, b"world".as_slice()));
        let past = logs.read(&job, AttemptNumber(1), Some(50), 5).await.expect("disk");
        assert_eq!((past.offset, past.bytes.len()), (11, 0));
        assert_eq!(logs.facts(&job, AttemptNumber(2)).await.expect("disk").0, 0);
    }

    /// After a power failure, the length of a file may be on disk without its data.
    #[tokio::test]
    async fn zeros_left_by_a_power_failure_are_replaced() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let logs = LogStore::open(directory.path().join("logs")).expect("it can be created");
        let job = JobId::new(Timestamp(0), [0; 10]);
        let put = async |chunk: IncomingLogChunk| {
            logs.append(&job, AttemptNumber(1), chunk, Timestamp(0)).await.expect("disk")
        };
        let erase = |from: u64, length: usize| {
            let file = OpenOptions::new().write(true).open(logs.path(&job, AttemptNumber(1))).expect("the log");
            file.write_all_at(&vec![0; length], from).expect("disk");
        };
        put(chunk(0, "first ")).await;
        put(chunk(6, "second")).await;
        erase(8, 4);
        assert_eq!(put(chunk(6, "second third")).await, LogAppendResult::Durable(18));
        assert_eq!(full_text(&logs, &job).await, "first second third");
        let gap = IncomingLogChunk { dropped: Some(5_000), ..chunk(5_018, "end") };
        let marker = Gap { from: 18, to: 5_018 }.marker_text();
        put(gap.clone()).await;
        erase(18, marker.len());
        assert_eq!(put(gap).await, LogAppendResult::Durable(5_021));
        put(chunk(6, "second")).await;
        assert_eq!(full_text(&logs, &job).await, format!("first second third{marker}end"));
        put(chunk(0, "FIRST ")).await;
        assert!(full_text(&logs, &job).await.starts_with("first "), "nothing else is replaced");
    }

    async fn full_text(logs: &LogStore, job: &JobId) -> String {
        let all = logs.stream(job, AttemptNumber(1)).await.expect("disk").try_collect::<Vec<_>>().await.expect("disk");
        String::from_utf8(all.concat()).expect("text")
    }

    #[tokio::test]
    async fn holes_are_not_read() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let logs = LogStore::open(directory.path().join("logs")).expect("it can be created");
        let job = JobId::new(Timestamp(0), [0; 10]);
        let put = async |chunk: IncomingLogChunk| {
            logs.append(&job, AttemptNumber(1), chunk, Timestamp(0)).await.expect("disk")
        };
        let after_gap =
            |offset, dropped, text: &'static str| IncomingLogChunk { dropped: Some(dropped), ..chunk(offset, text) };
        put(chunk(0, "before\n")).await;
        for (dropped, case) in
            [(5_000, "fewer were dropped than are missing"), (5_010, "more were dropped than are missing")]
        {
            assert_eq!(put(after_gap(5_009, dropped, "after\n")).await, LogAppendResult::Gap(7), "{case}");
        }
        for _ in 0..2 {
            assert_eq!(put(after_gap(5_009, 5_002, "after\n")).await, LogAppendResult::Durable(5_015), "once");
        }
        assert_eq!(put(after_gap(100_000, 94_985, "")).await, LogAppendResult::Durable(100_000));
        assert_eq!(put(chunk(100_000, "end")).await, LogAppendResult::Durable(100_003));
        let markers = [Gap { from: 7, to: 5_009 }.marker_text(), Gap { from: 5_015, to: 100_000 }.marker_text()];
        let all = format!("before\n{}after\n{}end", markers[0], markers[1]);
        assert!(markers[0].contains("5002 bytes"), "{}", markers[0]);
        assert_eq!(full_text(&logs, &job).await, all);
        for limit in [1, 7, 50, 1 << 20] {
            let (mut read, mut offset) = (Vec::new(), 0);
            loop {
                let slice = logs.read(&job, AttemptNumber(1), Some(offset), limit).await.expect("disk");
                if slice.next == offset {
                    break;
                }
                assert_eq!(slice.offset, offset, "no bytes are missing between slices");
                read.extend(slice.bytes);
                offset = slice.next;
            }
            assert_eq!((String::from_utf8_lossy(&read), offset), (all.as_str().into(), 100_003), "by {limit}");
        }
        for (offset, limit) in [(Some(1_000), 99), (None, 200)] {
            let slice = logs.read(&job, AttemptNumber(1), offset, limit).await.expect("disk");
            assert!(slice.after_gap && !slice.bytes.contains(&0), "{slice:?}");
        }
        assert_eq!(logs.facts(&job, AttemptNumber(1)).await.expect("disk").0, 100_003);
        let file = fs::metadata(logs.path(&job, AttemptNumber(1))).expect("readable");
        let stored = std::os::unix::fs::MetadataExt::blocks(&file) * 512;
        assert!(stored < 50_000, "the holes take no disk space: {stored}");
    }

    #[tokio::test]
    async fn recorded_gap_is_completed_first() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let logs = LogStore::open(directory.path().join("logs")).expect("it can be created");
        let job = JobId::new(Timestamp(0), [0; 10]);
        logs.append(&job, AttemptNumber(1), chunk(0, "before\n"), Timestamp(0)).await.expect("disk");
        let (log, gap) = (logs.path(&job, AttemptNumber(1)), Gap { from: 7, to: 9_000 });
        let gaps_file = log.with_extension("log.gaps");
        let line = |gap: Gap| format!("{{\"from\":{},\"to\":{}}}\n", gap.from, gap.to);
        // A complete record of a gap in a log that was replaced, and half of one after a power failure.
        fs::write(&gaps_file, format!("{}{}{{\"from\":9", line(Gap { from: 20_000, to: 30_000 }), line(gap)))
            .expect("disk");
        fs::write(&log, "before\n\n[899").expect("disk");
        assert_eq!(logs.facts(&job, AttemptNumber(1)).await.expect("disk").0, 7);
        assert_eq!(full_text(&logs, &job).await, "before\n");
        assert_eq!(logs.read(&job, AttemptNumber(1), None, 99).await.expect("disk").bytes, b"before\n");
        let appended = logs.append(&job, AttemptNumber(1), chunk(9_000, "after"), Timestamp(0)).await.expect("disk");
        assert_eq!(appended, LogAppendResult::Durable(9_005));
        assert_eq!(full_text(&logs, &job).await, format!("before\n{}after", gap.marker_text()));
        let next = IncomingLogChunk { dropped: Some(10_995), ..chunk(20_000, "") };
        assert_eq!(
            logs.append(&job, AttemptNumber(1), next, Timestamp(0)).await.expect("disk"),
            LogAppendResult::Durable(20_000)
        );
        assert!(full_text(&logs, &job).await.contains("[10995 bytes"));
        logs.remove_job(&job).await.expect("disk");
        assert!(!gaps_file.exists());
    }
}
