//! Finds what an earlier attempt of the same job left on this host.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::checkpoint_events::CheckpointEventReader;
use crate::worker::artifacts;
use crate::worker::artifacts::checkpoints::{self, LocalCheckpoint, TrainerState};
use crate::worker::files::{AttemptDir, AttemptExit, AttemptKey, AttemptState};

/// Complete checkpoints of an earlier attempt.
#[derive(Debug)]
pub struct PreviousCheckpoint {
    /// Step of the newest one.
    pub step: u64,
    /// Name of the newest one.
    pub name: String,
    /// Whether the orchestrator has it too.
    pub is_sent: bool,
    attempt_dir: AttemptDir,
    /// Relative to its output directory.
    files: Vec<String>,
}

/// Finds the earlier attempt with the highest step. Checkpoints that may be incomplete are ignored.
pub fn find_previous(dir: &AttemptDir, key: &AttemptKey) -> io::Result<Option<PreviousCheckpoint>> {
    let Some(job) = dir.path().parent() else { return Ok(None) };
    let mut best: Option<PreviousCheckpoint> = None;
    for attempt in (1..key.attempt.0).rev() {
        let previous = find_in_attempt(AttemptDir::from_path(&job.join(attempt.to_string())))?;
        if previous.as_ref().map(|previous| previous.step) > best.as_ref().map(|best| best.step) {
            best = previous;
        }
    }
    Ok(best)
}

fn find_in_attempt(dir: AttemptDir) -> io::Result<Option<PreviousCheckpoint>> {
    let mut found = checkpoints::group_by_step(artifacts::list(&dir.output_dir())?);
    let mut events = CheckpointEventReader::default();
    events.read_new(&dir);
    let exit: AttemptExit = dir.read_json("exit.json").ok().flatten().unwrap_or_default();
    let complete =
        checkpoints::complete_steps(&found, &events.reported, TrainerState::from_exit(&exit, dir.last_activity_ms()));
    found.retain(|step, _| complete.contains(step));
    let files =
        found.values().flat_map(|checkpoint| &checkpoint.files).map(|artifact| artifact.file.path.clone()).collect();
    let Some((step, LocalCheckpoint { name, .. })) = found.pop_last() else { return Ok(None) };
    let state: AttemptState = dir.read_json("state.json").ok().flatten().unwrap_or_default();
    Ok(Some(PreviousCheckpoint { step, is_sent: state.checkpoints.contains(&name), name, attempt_dir: dir, files }))
}

impl PreviousCheckpoint {
    /// Hard-links the checkpoints into an attempt's output: the earlier attempt may still have to be reported.
    pub fn link_into(&self, dir: &AttemptDir) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|path| hard_link(&self.attempt_dir.output_dir().join(path), &dir.output_dir().join(path)))
    }
}

impl AttemptDir {
    /// When the trainer last wrote or reported something, in ms.
    pub fn last_activity_ms(&self) -> i64 {
        let modified = |path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
        let latest = [self.log_path(), self.events_path()].into_iter().filter_map(modified).max();
        let since = latest.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or_default()
    }
}

fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::hard_link(from, to) {
        // An agent that was killed had started linking.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems do not support hard links.
        Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
            fs::copy(from, to).map(drop)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::ids::{AttemptNumber, JobId};

    fn key(attempt: u32) -> io::Result<AttemptKey> {
        Ok(AttemptKey { job_id: JobId::parse("j_1").map_err(io::Error::other)?, attempt: AttemptNumber(attempt) })
    }

    fn create_attempt(work: &Path, attempt: u32, files: &[&str], exit: Option<&AttemptExit>) -> io::Result<AttemptDir> {
        let dir = AttemptDir::new(work, &key(attempt)?);
        for file in files {
            let path = dir.output_dir().join(file);
            fs::create_dir_all(path.parent().unwrap_or(work))?;
            fs::write(path, file)?;
        }
        exit.map_or(Ok(()), |exit| dir.write_json("exit.json", exit))?;
        Ok(dir)
    }

    #[test]
    fn newest_complete_checkpoint_is_linked() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let exited = AttemptExit { code: Some(75), ..AttemptExit::default() };
        let killed = AttemptExit { signal: Some(9), ..AttemptExit::default() };
        create_attempt(temp.path(), 1, &["checkpoint-5/a", "checkpoint-9/x"], Some(&exited))?;
        let second =
            create_attempt(temp.path(), 2, &["checkpoint-7/sub/b", "checkpoint-11/c", "w.safetensors"], Some(&exited))?;
        second.write_json(
            "state.json",
            &AttemptState { checkpoints: ["checkpoint-11".to_owned()].into(), ..AttemptState::default() },
        )?;
        create_attempt(temp.path(), 3, &["checkpoint-13/half"], Some(&killed))?;
        create_attempt(temp.path(), 4, &["checkpoint-14/half"], None)?;

        let dir = AttemptDir::new(temp.path(), &key(5)?);
        let previous = find_previous(&dir, &key(5)?)?.ok_or_else(|| io::Error::other("no previous checkpoint"))?;
        assert_eq!((previous.step, previous.name.as_str(), previous.is_sent), (11, "checkpoint-11", true));
        previous.link_into(&dir)?;
        previous.link_into(&dir)?;
        let output = dir.output_dir();
        assert_eq!(fs::read_to_string(output.join("checkpoint-7/sub/b"))?, "checkpoint-7/sub/b");
        let mut names: Vec<_> = fs::read_dir(&output)?.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ["checkpoint-11", "checkpoint-7"]);
        Ok(())
    }

    #[test]
    fn first_attempt_has_no_previous_checkpoint() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        create_attempt(
            temp.path(),
            1,
            &["checkpoint-5/a"],
            Some(&AttemptExit { code: Some(0), ..AttemptExit::default() }),
        )?;
        assert!(find_previous(&AttemptDir::new(temp.path(), &key(1)?), &key(1)?)?.is_none());
        Ok(())
    }
}
