//! Homes of people: caches of their trainers, which can be filled again. Those that nobody has used for long go, and where
//! room is short those that were used last the longest ago; never one whose owner has a job here.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::files::{Spec, State, attempts};
use crate::sandbox::users;

/// A home and its last use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Where it is.
    pub path: PathBuf,
    /// When a job of its owner began or ended last.
    pub used: SystemTime,
}

/// All of which none is in use; nothing where that cannot be told.
pub fn idle(work_dir: &Path) -> Vec<Home> {
    let Ok(busy) = busy(work_dir) else { return Vec::new() };
    users::homes(work_dir).into_iter().filter(|home| !busy.contains(&home.path)).collect()
}

/// Which one goes next: the one that was unused for longest, if that is too long or room is short.
pub fn next(homes: &[Home], short: bool, kept: Duration, now: SystemTime) -> Option<usize> {
    let (index, oldest) = homes.iter().enumerate().min_by_key(|(_, home)| home.used)?;
    let unused = now.duration_since(oldest.used).unwrap_or_default();
    (short || unused > kept).then_some(index)
}

/// Takes it out of the way, unless a job of its owner has come since.
///
/// # Errors
/// If the disk refuses, or it is not known who has jobs.
pub fn take_away(work_dir: &Path, home: &Home, to: &Path) -> io::Result<bool> {
    users::alone(|| {
        // A job is on disk before it looks for its home.
        if busy(work_dir)?.contains(&home.path) {
            return Ok(false);
        }
        fs::rename(&home.path, to)?;
        users::forget(&home.path);
        Ok(true)
    })
}

/// The homes of those who have a job here of which not all is told.
fn busy(work_dir: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut busy = BTreeSet::new();
    for dir in attempts(work_dir)? {
        if dir.read::<State>("state.json")?.is_some_and(|state| state.delivered) {
            continue;
        }
        // Without a spec it is half of an attempt that never began.
        if let Some(spec) = dir.read::<Spec>("spec.json")? {
            busy.insert(users::home(work_dir, &users::person(&spec)));
        }
    }
    Ok(busy)
}

#[cfg(test)]
#[path = "../tests/retention/homes.rs"]
mod tests;
