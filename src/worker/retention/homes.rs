//! Home directories of users: caches of their trainers, which can be filled again. Those that were unused for long are
//! removed, and if space is short the least recently used ones; never one whose owner has a job here.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::worker::files::{AttemptSpec, AttemptState, list_attempts};
use crate::worker::sandbox::users::{self, HomeDir};

/// All that are not in use; empty if that is unknown.
pub fn unused_homes(work_dir: &Path) -> Vec<HomeDir> {
    let Ok(in_use) = homes_in_use(work_dir) else { return Vec::new() };
    users::list_homes(work_dir).into_iter().filter(|home| !in_use.contains(&home.path)).collect()
}

/// The next one to remove: the least recently used, if it was unused for too long or space is short.
pub fn next_home(homes: &[HomeDir], short: bool, retention: Duration, now: SystemTime) -> Option<usize> {
    let (index, oldest) = homes.iter().enumerate().min_by_key(|(_, home)| home.last_used)?;
    let unused = now.duration_since(oldest.last_used).unwrap_or_default();
    (short || unused > retention).then_some(index)
}

/// Moves a home directory to the trash, unless its owner has a job meanwhile.
///
/// # Errors
/// On an I/O error, or if it is unknown who has jobs.
pub fn move_to_trash(work_dir: &Path, home: &HomeDir, to: &Path) -> io::Result<bool> {
    users::with_homes_lock(|| {
        // A job is on disk before it uses its home directory.
        if homes_in_use(work_dir)?.contains(&home.path) {
            return Ok(false);
        }
        fs::rename(&home.path, to)?;
        users::remove_last_used(&home.path);
        Ok(true)
    })
}

/// The home directories of users with a job here that is not fully delivered.
fn homes_in_use(work_dir: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut in_use = BTreeSet::new();
    for dir in list_attempts(work_dir)? {
        if dir.read_json::<AttemptState>("state.json")?.is_some_and(|state| state.delivered) {
            continue;
        }
        // Without a spec it is an incomplete attempt that never started.
        if let Some(spec) = dir.read_json::<AttemptSpec>("spec.json")? {
            in_use.insert(users::home_dir(work_dir, &users::owner_name(&spec)));
        }
    }
    Ok(in_use)
}

#[cfg(test)]
#[path = "../tests/retention/homes.rs"]
mod tests;
