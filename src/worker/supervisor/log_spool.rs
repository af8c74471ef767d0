//! Limits the disk usage of the trainer's output and events. The oldest bytes are dropped by punching a hole into the
//! file: nothing is copied, offsets stay valid, and the trainer, which writes into the file itself, is not affected.
//!
//! Between two checks the limit may be exceeded: after a sudden burst, by what arrives in a second.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use crate::worker::files::{AttemptDir, DiskAtExit, TruncationOffsets, free_bytes};
use crate::worker::filesystem::LOW_DISK_BYTES;

/// Max size of `events.jsonl` on disk, in bytes.
const MAX_EVENTS_BYTES: u64 = 64 << 20;
/// Output that is kept even then, in bytes.
const MIN_KEPT_BYTES: u64 = 8 << 20;
/// Holes consist of whole blocks.
const BLOCK_BYTES: u64 = 4096;
/// Space allocated after the end of the log, so that a trainer's last lines fit on a full disk, in bytes.
const PREALLOCATED_BYTES: i64 = 256 * 1024;
/// Maximum and minimum interval of checks.
const CHECK_INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(50));
/// No process fills a disk faster, in bytes per second.
const MAX_WRITE_RATE: u64 = 512 << 20;
/// How long a full disk is remembered.
const LOW_DISK_WINDOW: Duration = Duration::from_mins(1);

/// How much of a file may stay.
fn kept_bytes(limit: u64, free: u64) -> u64 {
    if free < LOW_DISK_BYTES { limit.min(MIN_KEPT_BYTES) } else { limit }
}

/// The new offset at which a file begins, if anything must be dropped. An eighth more than necessary is dropped, so
/// that a slowly growing file is not truncated at every check.
fn truncation_offset(length: u64, kept: u64, limit: u64, floor: u64) -> Option<u64> {
    if kept <= limit {
        return None;
    }
    let offset = length.saturating_sub(limit - limit / 8) / BLOCK_BYTES * BLOCK_BYTES;
    (offset > floor).then_some(offset)
}

/// When to check next, after this many bytes arrived in this time: before a quarter of the limit arrives at this rate,
/// and before half of the free space is filled at any rate.
fn next_check(added: u64, interval: Duration, free: u64, limit: u64) -> Duration {
    let (longest, shortest) = CHECK_INTERVALS;
    let time_until =
        |bytes_left: u64, bytes: u64, micros: u128| u128::from(bytes_left) * micros / u128::from(bytes.max(1));
    let micros =
        time_until(limit / 4, added, interval.as_micros()).min(time_until(free / 2, MAX_WRITE_RATE, 1_000_000));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)).clamp(shortest, longest)
}

/// Whether holes can be punched into files of this file system. Changes nothing: the hole begins after the file's end.
///
/// # Errors
/// On an I/O error.
pub fn can_punch(file: &File) -> io::Result<bool> {
    let end = file.metadata()?.len().next_multiple_of(BLOCK_BYTES);
    match punch_hole(file, end, end + BLOCK_BYTES) {
        Ok(()) => Ok(true),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn punch_hole(file: &File, from: u64, to: u64) -> Result<(), Errno> {
    let signed = |bytes: u64| i64::try_from(bytes).map_err(|_| Errno::EFBIG);
    let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(file, hole, signed(from)?, signed(to - from)?)
}

/// One append-only file.
struct SpooledFile {
    file: File,
    limit: u64,
    length: u64,
}

impl SpooledFile {
    fn open(path: &Path, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { length: file.metadata()?.len(), file, limit })
    }

    /// Whether the data after the truncation offset uses disk space, instead of being sparse.
    fn is_written(&self, floor: u64) -> io::Result<bool> {
        let metadata = self.file.metadata()?;
        Ok(metadata.blocks() * 512 >= metadata.len().saturating_sub(floor))
    }

    /// How much was added since the last check, and the new truncation offset.
    fn check_size(&mut self, free: u64, floor: u64) -> io::Result<(u64, Option<u64>)> {
        let metadata = self.file.metadata()?;
        let added = metadata.len().saturating_sub(self.length);
        self.length = metadata.len();
        // A trainer can extend its log without writing to it, and all of it would be sent.
        let kept = (metadata.blocks() * 512).max(metadata.len().saturating_sub(floor));
        Ok((added, truncation_offset(metadata.len(), kept, kept_bytes(self.limit, free), floor)))
    }
}

/// The files of one attempt.
struct LogSpool {
    dir: AttemptDir,
    log: SpooledFile,
    events: SpooledFile,
    floors: TruncationOffsets,
    /// Whether the file system can punch holes.
    can_punch: bool,
    /// Whether its inability was logged.
    warned: bool,
    /// Minimum of free space, and when.
    lowest_free: Option<(Instant, u64)>,
}

impl LogSpool {
    fn open(dir: &AttemptDir, limit: u64) -> io::Result<Self> {
        let log = SpooledFile::open(&dir.log_path(), limit)?;
        Ok(Self {
            can_punch: can_punch(&log.file)?,
            log,
            events: SpooledFile::open(&dir.events_path(), MAX_EVENTS_BYTES)?,
            floors: dir.truncation_offsets(),
            dir: dir.clone(),
            warned: false,
            lowest_free: None,
        })
    }

    /// Checks once and truncates if necessary. Returns when to check again.
    fn check(&mut self, interval: Duration) -> io::Result<Duration> {
        let free = free_bytes(self.dir.path())?;
        self.record_free(free);
        let (log_added, log) = self.log.check_size(free, self.floors.log)?;
        let (_, events) = self.events.check_size(free, self.floors.events)?;
        if log.is_some() || events.is_some() {
            let offsets = TruncationOffsets {
                log: log.unwrap_or(self.floors.log),
                events: events.unwrap_or(self.floors.events),
                ..self.floors
            };
            self.truncate_to(offsets)?;
        }
        if free >= LOW_DISK_BYTES {
            self.dir.allocate_reserve()?;
        }
        if log_added > 0 || self.log.length == 0 {
            self.preallocate();
        }
        Ok(next_check(log_added, interval, free, kept_bytes(self.log.limit, free)))
    }

    fn record_free(&mut self, free: u64) {
        let now = Instant::now();
        let is_current = self.lowest_free.is_some_and(|(at, lowest)| lowest <= free && now - at < LOW_DISK_WINDOW);
        if !is_current {
            self.lowest_free = Some((now, free));
        }
    }

    /// Records the new offsets before dropping data, because readers check them after reading.
    fn truncate_to(&mut self, offsets: TruncationOffsets) -> io::Result<()> {
        if !self.can_punch && self.log.is_written(self.floors.log)? {
            self.warn_once();
            return Ok(());
        }
        self.dir.write_json_unsynced("log.json", &offsets)?;
        let before = std::mem::replace(&mut self.floors, offsets);
        for (spooled, from, to) in [(&self.log, before.log, offsets.log), (&self.events, before.events, offsets.events)]
        {
            if from < to && self.can_punch {
                // From the beginning, in case an earlier hole was not punched.
                punch_hole(&spooled.file, 0, to)?;
            }
        }
        Ok(())
    }

    fn warn_once(&mut self) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                "the file system of {} cannot punch holes, so the trainer's output is not limited: set another \
                directory with --work-dir",
                self.dir.path().display()
            );
        }
    }

    /// On a full disk this fails; the earlier allocation then has to suffice.
    fn preallocate(&self) {
        let from = i64::try_from(self.log.length).unwrap_or(i64::MAX - PREALLOCATED_BYTES);
        let _ = fallocate(&self.log.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, from, PREALLOCATED_BYTES);
    }

    /// The recent minimum of free space, in bytes.
    fn lowest_free(&mut self) -> u64 {
        if let Ok(free) = free_bytes(self.dir.path()) {
            self.record_free(free);
        }
        self.lowest_free.map_or(u64::MAX, |(_, free)| free)
    }
}

/// Maintains the files in a separate thread, because a busy disk may block it for seconds.
pub struct LogTruncator {
    stop: Sender<()>,
    thread: JoinHandle<LogSpool>,
}

impl LogTruncator {
    /// Starts before the trainer does.
    pub fn start(dir: &AttemptDir, limit: u64) -> io::Result<Self> {
        let mut log_spool = LogSpool::open(dir, limit)?;
        let (stop, stopped) = channel();
        let first = log_spool.check(Duration::ZERO)?.min(CHECK_INTERVALS.1);
        let thread =
            std::thread::Builder::new().name("spool".to_owned()).spawn(move || run(log_spool, &stopped, first))?;
        Ok(Self { stop, thread })
    }

    /// Stops after a last check: the data since the previous check may exceed the limit. Returns the state of the disk.
    pub fn stop(self, dir: &AttemptDir) -> Option<DiskAtExit> {
        drop(self.stop);
        let mut spool = self.thread.join().ok()?;
        if let Err(error) = spool.check(Duration::ZERO) {
            tracing::warn!("cannot limit the trainer's output: {error}");
        }
        Some(DiskAtExit { free_bytes: spool.lowest_free(), directory: dir.path().to_owned() })
    }
}

fn run(mut log_spool: LogSpool, stopped: &Receiver<()>, first: Duration) -> LogSpool {
    let (mut pause, mut is_failing) = (first, false);
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        pause = match log_spool.check(pause) {
            Ok(next) => {
                is_failing = false;
                next
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!("cannot limit the trainer's output: {error}");
                }
                CHECK_INTERVALS.1
            }
        };
    }
    log_spool
}

#[cfg(test)]
#[path = "../tests/spool.rs"]
mod tests;
