//! Which finished attempts stay on disk: the newest few, and fewer where room is short.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::config::disk::{KeepFree, Space};
use crate::files::{AttemptDir, State, attempts};

/// So many finished attempts stay, for a person to look at and for a later attempt to resume from.
const KEPT: usize = 10;
/// Where in the work directory is what is being removed: an attempt is there or gone, and never half of it.
const REMOVED: &str = "removed";

/// An attempt of which nothing is left to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finished {
    ended: SystemTime,
    dir: AttemptDir,
    /// Another attempt of its job is about to begin here, and may go on from its checkpoints.
    is_wanted: bool,
}

/// Removes what is finished and old, and what is finished while too little is free. Answers whether too little still is.
///
/// It takes as long as the disk does. `space` asks it; nothing is removed for want of room where nobody can tell.
pub fn tidy(work_dir: &Path, keep: KeepFree, was_short: bool, mut space: impl FnMut() -> Option<Space>) -> bool {
    empty(&work_dir.join(REMOVED));
    let mut finished = finished(work_dir);
    let mut was_short = was_short;
    loop {
        let known = space().map(|space| keep.is_short(was_short, space));
        let short = known == Some(true);
        was_short = known.unwrap_or(was_short);
        let Some(next) = next(&finished, short) else { return was_short };
        let dir = finished.remove(next).dir;
        if short {
            tracing::info!("removing {}, which is finished, to make room", dir.path().display());
        } else {
            tracing::debug!("removing {}", dir.path().display());
        }
        if let Err(error) = remove(work_dir, &dir) {
            tracing::warn!("cannot remove {}: {error}", dir.path().display());
        }
    }
}

/// Which one goes next: the oldest, as long as there are too many or too little is free.
fn next(finished: &[Finished], short: bool) -> Option<usize> {
    let goes = |found: &(usize, &Finished)| !found.1.is_wanted && (short || finished.len() > KEPT);
    finished.iter().enumerate().filter(goes).min_by_key(|(_, one)| one.ended).map(|(index, _)| index)
}

fn finished(work_dir: &Path) -> Vec<Finished> {
    let (mut finished, mut begins) = (Vec::new(), BTreeSet::new());
    for dir in attempts(work_dir).unwrap_or_default() {
        match over(&dir) {
            Some(ended) => finished.push(Finished { ended, dir, is_wanted: false }),
            // Once it runs it has linked what it wants.
            None if !dir.join("supervisor.json").exists() => drop(begins.insert(job(&dir))),
            None => {}
        }
    }
    for one in &mut finished {
        one.is_wanted = begins.contains(&job(&one.dir));
    }
    finished
}

fn job(dir: &AttemptDir) -> PathBuf {
    dir.path().parent().map(Path::to_owned).unwrap_or_default()
}

/// When it ended, if its end and files are delivered.
fn over(dir: &AttemptDir) -> Option<SystemTime> {
    let state: State = dir.read("state.json").ok()??;
    let ended = fs::metadata(dir.join("state.json")).ok()?.modified().ok()?;
    state.delivered.then_some(ended)
}

fn remove(work_dir: &Path, dir: &AttemptDir) -> io::Result<()> {
    let removed = work_dir.join(REMOVED);
    fs::create_dir_all(&removed)?;
    fs::rename(dir.path(), removed.join("attempt"))?;
    // It fails while another attempt is in it, as it should.
    let _ = fs::remove_dir(job(dir));
    fs::remove_dir_all(removed.join("attempt"))?;
    // Some file systems say what is free only when they have written this down.
    let _ = fs::File::open(&removed).map(nix::unistd::syncfs);
    Ok(())
}

/// Goes on with what an earlier agent had begun to remove.
fn empty(removed: &Path) {
    match fs::remove_dir_all(removed) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!("cannot remove {}: {error}", removed.display());
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "tests/retention.rs"]
mod tests;
