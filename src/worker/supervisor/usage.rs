//! What an attempt takes of the disk, against what its host's owner allows. On a thread of its own: the disk may hang, and
//! many files take their time.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::config::disk::gib;
use crate::files::{AttemptDir, JobDisk};

/// Between two looks, at least.
const PACE: Duration = Duration::from_secs(1);
/// A look takes no more than one part in so many of the time.
const SHARE: u32 = 50;
/// The kernel counts in these, whatever the file system does.
const BLOCK: u64 = 512;

/// Watches it.
pub struct Usage {
    limit: u64,
    /// What was taken when it was too much; 0 as long as it is not.
    taken: Arc<AtomicU64>,
    _looks: Sender<()>,
}

impl Usage {
    /// Begins, before the trainer does. What is in the home already is not this attempt's.
    pub fn watch(dir: &AttemptDir, disk: &JobDisk) -> io::Result<Self> {
        let (looks, ended) = channel();
        let (taken, home) = (Arc::<AtomicU64>::default(), disk.home.clone());
        let own = vec![dir.output(), dir.work(), dir.tmp(), dir.log()];
        let (limit, told) = (disk.bytes, Arc::clone(&taken));
        let work = move || look_on(&own, &home, limit, &told, &ended);
        std::thread::Builder::new().name("usage".to_owned()).spawn(work)?;
        Ok(Self { limit, taken, _looks: looks })
    }

    /// Why the job is to be stopped, once it has taken too much.
    pub fn too_much(&self) -> Option<String> {
        let taken = self.taken.load(Ordering::Relaxed);
        (taken > 0).then(|| {
            format!(
                "the job has written {} to its worker's disk, and may write {} there (--job-disk of the worker): write less, \
                 keep fewer checkpoints, or use a worker that allows more",
                gib(taken),
                gib(self.limit)
            )
        })
    }
}

fn look_on(own: &[PathBuf], home: &Path, limit: u64, told: &AtomicU64, ended: &Receiver<()>) {
    let before = of(&[home.to_owned()]);
    let mut pause = PACE;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let began = Instant::now();
        let taken = of(own) + of(&[home.to_owned()]).saturating_sub(before);
        if taken > limit {
            told.store(taken, Ordering::Relaxed);
            return;
        }
        pause = PACE.max(began.elapsed() * SHARE);
    }
}

/// What directories take of the disk in bytes, as far as they can be read. No link is followed; a file that has several names
/// counts once. Only directories, and files that take room under several names, are kept in mind: a trainer can make any
/// number of empty ones.
fn of(dirs: &[PathBuf]) -> u64 {
    let (mut waiting, mut seen, mut bytes) = (Vec::new(), BTreeSet::new(), 0);
    let mut count = |found: &Metadata| {
        let is_shared = found.nlink() > 1 && !found.is_dir() && found.blocks() > 0;
        if !is_shared || seen.insert((found.dev(), found.ino())) {
            bytes += found.blocks() * BLOCK;
        }
        found.is_dir()
    };
    for dir in dirs {
        if fs::symlink_metadata(dir).is_ok_and(|found| count(&found)) {
            waiting.push(dir.clone());
        }
    }
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.metadata().is_ok_and(|found| count(&found)) {
                waiting.push(entry.path());
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
    fn what_is_there_counts_once_and_nothing_that_a_link_leads_to() -> io::Result<()> {
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
        // Long, and nearly nothing on the disk.
        fs::File::create(inside.join("sparse"))?.set_len(1 << 40)?;
        let found = of(&[inside]);
        assert!((1 << 20..1 << 20 | 1 << 18).contains(&found), "{found}");
        assert_eq!(of(&[temp.path().join("nothing")]), 0);
        Ok(())
    }
}
