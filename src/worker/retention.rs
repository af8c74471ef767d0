//! Decides which finished attempts and home directories stay on disk: the newest attempts, and fewer if space is short.

pub mod homes;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::worker::config::disk::MinFreeSpace;
use crate::worker::files::{AttemptDir, AttemptState, list_attempts, remove_tree};
use crate::worker::filesystem::FilesystemSpace;
use crate::worker::sandbox::users::HomeDir;

/// How many finished attempts are kept for inspection and for later attempts to resume from.
const MAX_FINISHED_ATTEMPTS: usize = 10;
/// The directory for what is being removed: an attempt exists as a whole or not at all.
const TRASH_DIR: &str = "removed";

/// An attempt that is fully delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FinishedAttempt {
    ended_at: SystemTime,
    dir: AttemptDir,
    /// Another attempt of its job is about to start here, and may resume from its checkpoints.
    may_be_resumed: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct RetentionPolicy {
    /// Free space to keep on the disk.
    pub min_free_space: MinFreeSpace,
    /// How long an unused home directory is kept.
    pub home_retention: Duration,
}

/// What is removed next.
enum PruneTarget {
    Attempt(AttemptDir),
    Home(HomeDir),
}

/// Removes old finished attempts and home directories that were unused for long; while too little space is free, also
/// other finished attempts and then home directories. Returns whether there is still too little.
///
/// Takes as long as the disk does. `space` reads the free space; if it is unknown, nothing is removed for lack of
/// space.
pub fn prune(
    work_dir: &Path,
    policy: RetentionPolicy,
    was_short: bool,
    now: SystemTime,
    mut space: impl FnMut() -> Option<FilesystemSpace>,
) -> bool {
    empty_trash(&work_dir.join(TRASH_DIR));
    let (mut finished, mut homes) = (finished_attempts(work_dir), homes::unused_homes(work_dir));
    let mut was_short = was_short;
    loop {
        let is_short = space().map(|space| policy.min_free_space.is_short(was_short, space));
        let is_short_now = is_short == Some(true);
        was_short = is_short.unwrap_or(was_short);
        let target = if let Some(next) = next_attempt(&finished, is_short_now) {
            PruneTarget::Attempt(finished.remove(next).dir)
        } else if let Some(next) = homes::next_home(&homes, is_short_now, policy.home_retention, now) {
            PruneTarget::Home(homes.remove(next))
        } else {
            return was_short;
        };
        let path = target.path().display();
        if is_short_now {
            tracing::info!("removing {path}, which is unused, to free disk space");
        } else {
            tracing::debug!("removing {path}");
        }
        if let Err(error) = remove_target(work_dir, &target) {
            tracing::warn!("cannot remove {path}: {error}");
        } else if is_short_now {
            // Some file systems update the free space only after a sync.
            let _ = fs::File::open(work_dir).map(nix::unistd::syncfs);
        }
    }
}

impl PruneTarget {
    fn path(&self) -> &Path {
        match self {
            Self::Attempt(dir) => dir.path(),
            Self::Home(home) => &home.path,
        }
    }
}

/// The next attempt to remove: the oldest, while there are too many or space is short.
fn next_attempt(finished: &[FinishedAttempt], short: bool) -> Option<usize> {
    let is_removable = |entry: &(usize, &FinishedAttempt)| {
        !entry.1.may_be_resumed && (short || finished.len() > MAX_FINISHED_ATTEMPTS)
    };
    finished.iter().enumerate().filter(is_removable).min_by_key(|(_, attempt)| attempt.ended_at).map(|(index, _)| index)
}

fn finished_attempts(work_dir: &Path) -> Vec<FinishedAttempt> {
    let (mut finished, mut starting_jobs) = (Vec::new(), BTreeSet::new());
    for dir in list_attempts(work_dir).unwrap_or_default() {
        match finished_at(&dir) {
            Some(ended_at) => finished.push(FinishedAttempt { ended_at, dir, may_be_resumed: false }),
            // Once it runs, it has linked what it needs.
            None if !dir.join("supervisor.json").exists() => drop(starting_jobs.insert(job_dir(&dir))),
            None => {}
        }
    }
    for attempt in &mut finished {
        attempt.may_be_resumed = starting_jobs.contains(&job_dir(&attempt.dir));
    }
    finished
}

fn job_dir(dir: &AttemptDir) -> PathBuf {
    dir.path().parent().map(Path::to_owned).unwrap_or_default()
}

/// When the attempt ended, if its end and files are delivered.
fn finished_at(dir: &AttemptDir) -> Option<SystemTime> {
    let state: AttemptState = dir.read_json("state.json").ok()??;
    let ended_at = fs::metadata(dir.join("state.json")).ok()?.modified().ok()?;
    state.delivered.then_some(ended_at)
}

fn remove_target(work_dir: &Path, target: &PruneTarget) -> io::Result<()> {
    let trash_dir = work_dir.join(TRASH_DIR);
    fs::create_dir_all(&trash_dir)?;
    let trash_path = trash_dir.join(target.path().file_name().unwrap_or_default());
    match target {
        PruneTarget::Attempt(dir) => {
            fs::rename(dir.path(), &trash_path)?;
            // Fails, as it should, while the directory contains another attempt.
            let _ = fs::remove_dir(job_dir(dir));
        }
        PruneTarget::Home(home) if !homes::move_to_trash(work_dir, home, &trash_path)? => return Ok(()),
        PruneTarget::Home(_) => {}
    }
    remove_tree(&trash_path)
}

/// Continues a removal that an earlier agent began.
fn empty_trash(trash_dir: &Path) {
    match remove_tree(trash_dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!("cannot remove {}: {error}", trash_dir.display());
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "tests/retention.rs"]
mod tests;
