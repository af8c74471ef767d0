//! The thread that keeps room on the work directory's disk, and what everybody else knows of it.
//!
//! Removing what large jobs leave takes minutes, and a disk may hang: only this thread then waits.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use nix::sys::statvfs::statvfs;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::clock;
use crate::config::Config;
use crate::config::disk::{Space, gib};
use crate::retention::{self, Keep};

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(15);
/// What only grows old is looked for so often.
const OFTEN_ENOUGH: Duration = Duration::from_hours(1);

/// Whether this host's disk has room for one more job.
#[derive(Debug)]
pub struct Room {
    board: Arc<Board>,
    asks: Sender<Option<oneshot::Sender<()>>>,
}

#[derive(Debug, Default)]
struct Board {
    /// Why no new job is taken.
    unfit: Mutex<Option<String>>,
    /// That has changed.
    changed: Notify,
}

/// The disk as the thread knows it.
struct Disk {
    work_dir: PathBuf,
    keep: Keep,
    is_short: bool,
    tidied: Instant,
}

impl Room {
    /// Looks once, and then every few seconds in a thread of its own.
    pub fn start(config: &Config) -> Self {
        let (asks, asked) = channel();
        let keep = Keep { free: config.keep_free, homes: config.keep_homes };
        let (work_dir, tidied) = (config.work_dir.clone(), Instant::now());
        let mut disk = Disk { work_dir, keep, is_short: false, tidied };
        let board = Arc::<Board>::default();
        // So that the first registration says it; what can be removed is looked at once nobody takes up what is there.
        disk.is_short = disk.is_short_now();
        board.set(disk.why());
        let own = Arc::clone(&board);
        let work = move || disk.watch(&own, &asked);
        if let Err(error) = std::thread::Builder::new().name("room".to_owned()).spawn(work) {
            tracing::error!("nobody keeps room on the disk: {error}");
        }
        Self { board, asks }
    }

    /// Removes what is finished and no longer needed. Nobody waits for it.
    pub fn tidy(&self) {
        // Without the thread, which was said, all stays.
        let _ = self.asks.send(None);
    }

    /// Tidies and looks now. Answers why there is no room, if there is none.
    pub async fn look(&self) -> Option<String> {
        let (answer, looked) = oneshot::channel();
        if self.asks.send(Some(answer)).is_ok() {
            // Without the thread it is as it was.
            let _ = looked.await;
        }
        self.unfit()
    }

    /// Why no new job is taken here, if none is.
    pub fn unfit(&self) -> Option<String> {
        self.board.unfit().clone()
    }

    /// Waits until that has changed since the last call.
    pub async fn changed(&self) {
        self.board.changed.notified().await;
    }
}

impl Board {
    fn unfit(&self) -> MutexGuard<'_, Option<String>> {
        self.unfit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, why: Option<String>) {
        if *self.unfit() == why {
            return;
        }
        if let Some(why) = &why {
            tracing::error!("no new job is taken: {why}. Make room there, or lower --keep-free");
        } else {
            tracing::info!("the disk has room again: jobs are taken");
        }
        *self.unfit() = why;
        self.changed.notify_one();
    }
}

impl Disk {
    /// Until nobody is left to ask.
    fn watch(mut self, board: &Board, asked: &Receiver<Option<oneshot::Sender<()>>>) {
        loop {
            let ask = match asked.recv_timeout(PERIOD) {
                Ok(ask) => Some(ask),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.look(board, ask.is_some() || self.tidied.elapsed() >= OFTEN_ENOUGH);
            // Nobody may be left to hear it.
            let _ = ask.flatten().map(|answer| answer.send(()));
        }
    }

    /// Tidies if somebody wants it, or if there is too little room.
    fn look(&mut self, board: &Board, tidies: bool) {
        let short = self.is_short_now();
        self.is_short = if short || tidies {
            self.tidied = Instant::now();
            let now = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(clock::now().0).unwrap_or_default());
            retention::tidy(&self.work_dir, self.keep, self.is_short, now, || space(&self.work_dir))
        } else {
            short
        };
        board.set(self.why());
    }

    fn is_short_now(&self) -> bool {
        space(&self.work_dir).map_or(self.is_short, |space| self.keep.free.is_short(self.is_short, space))
    }

    /// If it is short: the same words for as long as it lasts, as others are news.
    fn why(&self) -> Option<String> {
        let floor = space(&self.work_dir).map(|space| gib(self.keep.free.bytes(space.total)));
        let floor = floor.unwrap_or_else(|| "what is to be kept".to_owned());
        self.is_short.then(|| format!("less than {floor} is free on the disk of {}", self.work_dir.display()))
    }
}

/// What a directory's file system has.
pub fn space(dir: &Path) -> Option<Space> {
    let disk = statvfs(dir).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.fragment_size());
    Some(Space { free: bytes(disk.blocks_available()), total: bytes(disk.blocks()) })
}
