//! What an earlier attempt of the same job left on this host.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::said::Events;
use crate::artifacts;
use crate::artifacts::checkpoints::{self, Checkpoint, Trainer};
use crate::files::{AttemptDir, Exit, Key, State};

/// Whole checkpoints of an earlier attempt.
#[derive(Debug)]
pub struct Left {
    /// The newest one's step.
    pub step: u64,
    /// The newest one's name.
    pub name: String,
    /// Whether the orchestrator has it too.
    pub is_sent: bool,
    earlier: AttemptDir,
    /// Below its output directory.
    files: Vec<String>,
}

/// The earlier attempt that came furthest, and what it left. What may be half written is nothing.
pub fn left(dir: &AttemptDir, key: &Key) -> io::Result<Option<Left>> {
    let Some(job) = dir.path().parent() else { return Ok(None) };
    let mut best: Option<Left> = None;
    for attempt in (1..key.attempt.0).rev() {
        let left = of(AttemptDir::at(&job.join(attempt.to_string())))?;
        if left.as_ref().map(|left| left.step) > best.as_ref().map(|best| best.step) {
            best = left;
        }
    }
    Ok(best)
}

fn of(earlier: AttemptDir) -> io::Result<Option<Left>> {
    let mut found = checkpoints::among(artifacts::list(&earlier.output())?);
    let mut events = Events::default();
    events.catch_up(&earlier);
    let exit: Exit = earlier.read("exit.json").ok().flatten().unwrap_or_default();
    let whole = checkpoints::whole(&found, &events.said, Trainer::after(&exit, earlier.last_sign()));
    found.retain(|step, _| whole.contains(step));
    let files =
        found.values().flat_map(|checkpoint| &checkpoint.files).map(|artifact| artifact.file.path.clone()).collect();
    let Some((step, Checkpoint { name, .. })) = found.pop_last() else { return Ok(None) };
    let state: State = earlier.read("state.json").ok().flatten().unwrap_or_default();
    Ok(Some(Left { step, is_sent: state.checkpoints.contains(&name), name, earlier, files }))
}

impl Left {
    /// Brings them into an attempt's output, as hard links: the earlier attempt may still have to be reported.
    pub fn carry_over(&self, dir: &AttemptDir) -> io::Result<()> {
        self.files.iter().try_for_each(|path| link(&self.earlier.output().join(path), &dir.output().join(path)))
    }
}

impl AttemptDir {
    /// When something was last heard of the trainer, in ms: it wrote, or told.
    pub fn last_sign(&self) -> i64 {
        let changed = |path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
        let latest = [self.log(), self.events()].into_iter().filter_map(changed).max();
        let since = latest.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or_default()
    }
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::hard_link(from, to) {
        // An agent that was killed had begun with it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems have no hard links.
        Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
            fs::copy(from, to).map(drop)
        }
        linked => linked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::ids::{Attempt, JobId};

    fn key(attempt: u32) -> io::Result<Key> {
        Ok(Key { job_id: JobId::parse("j_1").map_err(io::Error::other)?, attempt: Attempt(attempt) })
    }

    fn made(work: &Path, attempt: u32, files: &[&str], exit: Option<&Exit>) -> io::Result<AttemptDir> {
        let dir = AttemptDir::new(work, &key(attempt)?);
        for file in files {
            let path = dir.output().join(file);
            fs::create_dir_all(path.parent().unwrap_or(work))?;
            fs::write(path, file)?;
        }
        exit.map_or(Ok(()), |exit| dir.write("exit.json", exit))?;
        Ok(dir)
    }

    #[test]
    fn the_furthest_whole_checkpoint_comes_along() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let ended = Exit { code: Some(75), ..Exit::default() };
        let cut_off = Exit { signal: Some(9), ..Exit::default() };
        made(temp.path(), 1, &["checkpoint-5/a", "checkpoint-9/x"], Some(&ended))?;
        let second = made(temp.path(), 2, &["checkpoint-7/sub/b", "checkpoint-11/c", "w.safetensors"], Some(&ended))?;
        second.write("state.json", &State { checkpoints: ["checkpoint-11".to_owned()].into(), ..State::default() })?;
        made(temp.path(), 3, &["checkpoint-13/half"], Some(&cut_off))?;
        made(temp.path(), 4, &["checkpoint-14/half"], None)?;

        let dir = AttemptDir::new(temp.path(), &key(5)?);
        let left = left(&dir, &key(5)?)?.ok_or_else(|| io::Error::other("nothing was left"))?;
        assert_eq!((left.step, left.name.as_str(), left.is_sent), (11, "checkpoint-11", true));
        left.carry_over(&dir)?;
        left.carry_over(&dir)?;
        let output = dir.output();
        assert_eq!(fs::read_to_string(output.join("checkpoint-7/sub/b"))?, "checkpoint-7/sub/b");
        let mut names: Vec<_> = fs::read_dir(&output)?.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ["checkpoint-11", "checkpoint-7"]);
        Ok(())
    }

    #[test]
    fn the_first_attempt_has_none_before_it() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        made(temp.path(), 1, &["checkpoint-5/a"], Some(&Exit { code: Some(0), ..Exit::default() }))?;
        assert!(left(&AttemptDir::new(temp.path(), &key(1)?), &key(1)?)?.is_none());
        Ok(())
    }
}
