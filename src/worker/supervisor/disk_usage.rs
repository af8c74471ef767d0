//! Compares an attempt's disk usage with the owner's limit, in a separate thread: the disk may hang, and many files
//! take time.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::worker::files::{AttemptDir, JobDiskLimit};
use crate::worker::filesystem::format_gib;

const MIN_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A check takes at most this fraction of the time.
const MAX_DUTY_DIVISOR: u32 = 50;
/// Unit of the kernel's block counts, whatever the file system uses.
const BLOCK_BYTES: u64 = 512;

pub struct DiskUsageMonitor {
    limit: u64,
    /// The usage when it exceeded the limit; 0 until then.
    exceeded_bytes: Arc<AtomicU64>,
    _stop_on_drop: Sender<()>,
}

impl DiskUsageMonitor {
    /// Starts before the trainer does. Files already in the home directory do not count.
    pub fn start(dir: &AttemptDir, disk: &JobDiskLimit) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (exceeded_bytes, home) = (Arc::<AtomicU64>::default(), disk.home.clone());
        let attempt_paths = vec![dir.output_dir(), dir.working_dir(), dir.tmp_dir(), dir.log_path()];
        let (limit, exceeded) = (disk.bytes, Arc::clone(&exceeded_bytes));
        let work = move || run(&attempt_paths, &home, limit, &exceeded, &stopped);
        std::thread::Builder::new().name("usage".to_owned()).spawn(work)?;
        Ok(Self { limit, exceeded_bytes, _stop_on_drop: stop })
    }

    /// Why the job is to be stopped, once it has exceeded the limit.
    pub fn exceeded_reason(&self) -> Option<String> {
        let used = self.exceeded_bytes.load(Ordering::Relaxed);
        (used > 0).then(|| {
            format!(
                "the job has written {} to the worker's disk, more than its limit of {} (--job-disk): write less, \
                keep fewer checkpoints, or use a worker with a higher limit",
                format_gib(used),
                format_gib(self.limit)
            )
        })
    }
}

fn run(attempt_paths: &[PathBuf], home: &Path, limit: u64, exceeded_bytes: &AtomicU64, stopped: &Receiver<()>) {
    let initial_home_bytes = disk_usage(&[home.to_owned()]);
    let mut pause = MIN_CHECK_INTERVAL;
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let started_at = Instant::now();
        let used = disk_usage(attempt_paths) + disk_usage(&[home.to_owned()]).saturating_sub(initial_home_bytes);
        if used > limit {
            exceeded_bytes.store(used, Ordering::Relaxed);
            return;
        }
        pause = MIN_CHECK_INTERVAL.max(started_at.elapsed() * MAX_DUTY_DIVISOR);
    }
}

/// The disk usage of directories in bytes, as far as they can be read. Links are not followed; a file with several
/// names counts once. Only directories and files with several names that use space are remembered: a trainer can create
/// any number of empty ones.
fn disk_usage(dirs: &[PathBuf]) -> u64 {
    let (mut pending, mut counted, mut bytes) = (Vec::new(), BTreeSet::new(), 0);
    let mut count = |metadata: &Metadata| {
        let is_shared = metadata.nlink() > 1 && !metadata.is_dir() && metadata.blocks() > 0;
        if !is_shared || counted.insert((metadata.dev(), metadata.ino())) {
            bytes += metadata.blocks() * BLOCK_BYTES;
        }
        metadata.is_dir()
    };
    for dir in dirs {
        if fs::symlink_metadata(dir).is_ok_and(|metadata| count(&metadata)) {
            pending.push(dir.clone());
        }
    }
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.metadata().is_ok_and(|metadata| count(&metadata)) {
                pending.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn hard_links_count_once_and_symlinks_are_not_followed() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let (inside, outside) = (temp.path().join("a"), temp.path().join("b"));
        let big = vec![1; 1 << 20];
        for dir in [&inside.join("deep/er"), &outside] {
            fs::create_dir_all(dir)?;
            fs::write(dir.join("big"), &big)?;
            fs::File::open(dir.join("big"))?.sync_all()?;
        }
        symlink(&outside, inside.join("link"))?;
        fs::hard_link(inside.join("deep/er/big"), inside.join("again"))?;
        // Long, but it uses almost no space.
        fs::File::create(inside.join("sparse"))?.set_len(1 << 40)?;
        let bytes = disk_usage(&[inside]);
        assert!((1 << 20..1 << 20 | 1 << 18).contains(&bytes), "{bytes}");
        assert_eq!(disk_usage(&[temp.path().join("nothing")]), 0);
        Ok(())
    }
}
