//! Bounds what the trainer's output and events take of the disk. The oldest bytes go by a hole in the file: nothing is
//! copied, offsets stay true, and the trainer, which writes into the file itself, notices nothing.
//!
//! Between two looks more can come than may stay: of a flood out of nothing, what comes in a second.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use crate::files::{AttemptDir, Disk, Floors, free_bytes};

/// What `events.jsonl` may take, in bytes.
const EVENTS_LIMIT: u64 = 64 << 20;
/// With less free than this, the disk is needed for other things than output, in bytes.
pub const LOW_DISK: u64 = 64 << 20;
/// So much output then stays, in bytes.
const NEWEST: u64 = 8 << 20;
/// Holes are of whole blocks.
const BLOCK: u64 = 4096;
/// Room after the end of the log, so that the last words of a trainer fit on a full disk, in bytes.
const LAST_WORDS: i64 = 256 * 1024;
/// The longest and the shortest time between two looks.
const LOOKS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(50));
/// Nothing fills a disk faster, in bytes a second.
const FASTEST: u64 = 512 << 20;
/// How long a full disk is remembered.
const MEMORY: Duration = Duration::from_mins(1);

/// How much of a file may stay.
fn keep(limit: u64, free: u64) -> u64 {
    if free < LOW_DISK { limit.min(NEWEST) } else { limit }
}

/// Where a file begins from now on, if anything of it has to go. An eighth more goes than must, so that a file that grows
/// slowly is not cut at every look.
fn cut(length: u64, kept: u64, keep: u64, floor: u64) -> Option<u64> {
    if kept <= keep {
        return None;
    }
    let wanted = length.saturating_sub(keep - keep / 8) / BLOCK * BLOCK;
    (wanted > floor).then_some(wanted)
}

/// When to look again, after so many bytes came in this time: before a quarter of what may stay has come at this speed, and
/// before half of what is free has come at any.
fn next_look(grew: u64, over: Duration, free: u64, keep: u64) -> Duration {
    let (longest, shortest) = LOOKS;
    let until = |room: u64, bytes: u64, micros: u128| u128::from(room) * micros / u128::from(bytes.max(1));
    let micros = until(keep / 4, grew, over.as_micros()).min(until(free / 2, FASTEST, 1_000_000));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)).clamp(shortest, longest)
}

/// Whether files in this directory can give up their beginning.
///
/// # Errors
/// If nothing can be written there.
pub fn can_punch(dir: &Path) -> io::Result<bool> {
    let path = dir.join("punch-test");
    let file = File::create(&path)?;
    let punched = fallocate(&file, FallocateFlags::empty(), 0, 8192).and_then(|()| punch(&file, 0, 4096));
    std::fs::remove_file(path)?;
    match punched {
        Ok(()) => Ok(true),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn punch(file: &File, from: u64, to: u64) -> Result<(), Errno> {
    let signed = |bytes: u64| i64::try_from(bytes).map_err(|_| Errno::EFBIG);
    let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(file, hole, signed(from)?, signed(to - from)?)
}

/// One file that only grows.
struct Part {
    file: File,
    limit: u64,
    length: u64,
}

impl Part {
    fn open(path: &Path, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { length: file.metadata()?.len(), file, limit })
    }

    /// Whether what begins at the floor takes room on the disk, and is no mere length.
    fn is_written(&self, floor: u64) -> io::Result<bool> {
        let now = self.file.metadata()?;
        Ok(now.blocks() * 512 >= now.len().saturating_sub(floor))
    }

    /// How much came since the last look, and where the file should begin.
    fn look(&mut self, free: u64, floor: u64) -> io::Result<(u64, Option<u64>)> {
        let now = self.file.metadata()?;
        let grew = now.len().saturating_sub(self.length);
        self.length = now.len();
        // A trainer can make its log long without writing to it, and all of it would be sent.
        let kept = (now.blocks() * 512).max(now.len().saturating_sub(floor));
        Ok((grew, cut(now.len(), kept, keep(self.limit, free), floor)))
    }
}

/// The files of one attempt.
struct Spool {
    dir: AttemptDir,
    log: Part,
    events: Part,
    floors: Floors,
    /// Whether the file system can make holes; found out while there is room to try it.
    can: bool,
    /// It cannot, and that was said.
    said: bool,
    /// The least that was free, and when.
    lowest: Option<(Instant, u64)>,
}

impl Spool {
    fn open(dir: &AttemptDir, limit: u64) -> io::Result<Self> {
        Ok(Self {
            log: Part::open(&dir.log(), limit)?,
            events: Part::open(&dir.events(), EVENTS_LIMIT)?,
            floors: dir.floors(),
            dir: dir.clone(),
            can: can_punch(dir.path())?,
            said: false,
            lowest: None,
        })
    }

    /// Looks once, and does what is to do. Answers with when to look again.
    fn look(&mut self, since: Duration) -> io::Result<Duration> {
        let free = free_bytes(self.dir.path())?;
        self.remember(free);
        let (log_grew, log) = self.log.look(free, self.floors.log)?;
        let (_, events) = self.events.look(free, self.floors.events)?;
        if log.is_some() || events.is_some() {
            let floors = Floors {
                log: log.unwrap_or(self.floors.log),
                events: events.unwrap_or(self.floors.events),
                ..self.floors
            };
            self.give_up(floors)?;
        }
        if free >= LOW_DISK {
            self.dir.hold_reserve()?;
        }
        if log_grew > 0 || self.log.length == 0 {
            self.make_room();
        }
        Ok(next_look(log_grew, since, free, keep(self.log.limit, free)))
    }

    fn remember(&mut self, free: u64) {
        let now = Instant::now();
        let holds = self.lowest.is_some_and(|(at, least)| least <= free && now - at < MEMORY);
        if !holds {
            self.lowest = Some((now, free));
        }
    }

    /// First it is said, then it is done: whoever reads looks at what was said after reading.
    fn give_up(&mut self, floors: Floors) -> io::Result<()> {
        if !self.can && self.log.is_written(self.floors.log)? {
            self.say_so();
            return Ok(());
        }
        self.dir.write_soon("log.json", &floors)?;
        let before = std::mem::replace(&mut self.floors, floors);
        for (part, from, to) in [(&self.log, before.log, floors.log), (&self.events, before.events, floors.events)] {
            if from < to && self.can {
                // From the beginning, in case an earlier hole was not made.
                punch(&part.file, 0, to)?;
            }
        }
        Ok(())
    }

    fn say_so(&mut self) {
        if !std::mem::replace(&mut self.said, true) {
            tracing::warn!(
                "the file system of {} cannot give up the beginning of a file, so the trainer's output is not bounded \
                 there: name another place with --work-dir",
                self.dir.path().display()
            );
        }
    }

    /// On a full disk this fails, and then what was made before is what there is.
    fn make_room(&self) {
        let from = i64::try_from(self.log.length).unwrap_or(i64::MAX - LAST_WORDS);
        let _ = fallocate(&self.log.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, from, LAST_WORDS);
    }

    /// The least that was free lately, in bytes.
    fn least_free(&mut self) -> u64 {
        if let Ok(free) = free_bytes(self.dir.path()) {
            self.remember(free);
        }
        self.lowest.map_or(u64::MAX, |(_, free)| free)
    }
}

/// Looks after the files on a thread of its own, as a busy disk may hold it up for seconds.
pub struct Keeper {
    stop: Sender<()>,
    thread: JoinHandle<Spool>,
}

impl Keeper {
    /// Begins, before the trainer does.
    pub fn start(dir: &AttemptDir, limit: u64) -> io::Result<Self> {
        let mut spool = Spool::open(dir, limit)?;
        let (stop, stopped) = channel();
        let first = spool.look(Duration::ZERO)?.min(LOOKS.1);
        let thread = std::thread::Builder::new().name("spool".to_owned()).spawn(move || run(spool, &stopped, first))?;
        Ok(Self { stop, thread })
    }

    /// Ends, with a last look: what came since the one before may be more than may stay. Answers with how the disk was.
    pub fn end(self, dir: &AttemptDir) -> Option<Disk> {
        drop(self.stop);
        let mut spool = self.thread.join().ok()?;
        if let Err(error) = spool.look(Duration::ZERO) {
            tracing::warn!("the trainer's output cannot be bounded: {error}");
        }
        Some(Disk { free_bytes: spool.least_free(), directory: dir.path().to_owned() })
    }
}

fn run(mut spool: Spool, stopped: &Receiver<()>, first: Duration) -> Spool {
    let (mut pause, mut failing) = (first, false);
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        pause = match spool.look(pause) {
            Ok(next) => {
                failing = false;
                next
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!("the trainer's output cannot be bounded: {error}");
                }
                LOOKS.1
            }
        };
    }
    spool
}

#[cfg(test)]
#[path = "../tests/spool.rs"]
mod tests;
