//! Which finished attempts stay on disk: the newest few, and fewer where room is short; and which homes of people.

pub mod homes;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use self::homes::Home;
use crate::config::disk::{KeepFree, Space};
use crate::files::{AttemptDir, State, attempts, remove_tree};

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

/// What stays.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// So much of the disk is free.
    pub free: KeepFree,
    /// A home that nobody uses, for so long.
    pub homes: Duration,
}

/// What goes next.
enum Goes {
    Attempt(AttemptDir),
    Home(Home),
}

/// Removes what is finished and old, and homes that nobody has used for long; and while too little is free, what is finished
/// and then homes. Answers whether too little still is.
///
/// It takes as long as the disk does. `space` asks it; nothing is removed for want of room where nobody can tell.
pub fn tidy(
    work_dir: &Path,
    keep: Keep,
    was_short: bool,
    now: SystemTime,
    mut space: impl FnMut() -> Option<Space>,
) -> bool {
    empty(&work_dir.join(REMOVED));
    let (mut finished, mut homes) = (finished(work_dir), homes::idle(work_dir));
    let mut was_short = was_short;
    loop {
        let known = space().map(|space| keep.free.is_short(was_short, space));
        let short = known == Some(true);
        was_short = known.unwrap_or(was_short);
        let goes = if let Some(next) = next(&finished, short) {
            Goes::Attempt(finished.remove(next).dir)
        } else if let Some(next) = homes::next(&homes, short, keep.homes, now) {
            Goes::Home(homes.remove(next))
        } else {
            return was_short;
        };
        let path = goes.path().display();
        if short {
            tracing::info!("removing {path}, which nobody uses, to make room");
        } else {
            tracing::debug!("removing {path}");
        }
        if let Err(error) = remove(work_dir, &goes) {
            tracing::warn!("cannot remove {path}: {error}");
        }
    }
}

impl Goes {
    fn path(&self) -> &Path {
        match self {
            Self::Attempt(dir) => dir.path(),
            Self::Home(home) => &home.path,
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

fn remove(work_dir: &Path, goes: &Goes) -> io::Result<()> {
    let removed = work_dir.join(REMOVED);
    fs::create_dir_all(&removed)?;
    let away = removed.join(goes.path().file_name().unwrap_or_default());
    match goes {
        Goes::Attempt(dir) => {
            fs::rename(dir.path(), &away)?;
            // It fails while another attempt is in it, as it should.
            let _ = fs::remove_dir(job(dir));
        }
        Goes::Home(home) if !homes::take_away(work_dir, home, &away)? => return Ok(()),
        Goes::Home(_) => {}
    }
    remove_tree(&away)?;
    // Some file systems say what is free only when they have written this down.
    let _ = fs::File::open(&removed).map(nix::unistd::syncfs);
    Ok(())
}

/// Goes on with what an earlier agent had begun to remove.
fn empty(removed: &Path) {
    match remove_tree(removed) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!("cannot remove {}: {error}", removed.display());
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "tests/retention.rs"]
mod tests;
