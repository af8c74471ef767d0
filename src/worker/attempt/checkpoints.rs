//! What an earlier attempt of the same job left on this host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{AttemptDir, Key};

/// Brings the checkpoints of the newest earlier attempt that has any into this attempt's output, as hard links: the earlier
/// attempt may still have to be reported. Whether there were any.
pub fn carry_over(dir: &AttemptDir, key: &Key) -> io::Result<bool> {
    let Some(job) = dir.path().parent() else { return Ok(false) };
    for attempt in (1..key.attempt.0).rev() {
        let earlier = AttemptDir::at(&job.join(attempt.to_string()));
        let checkpoints = checkpoints(&earlier.output())?;
        if checkpoints.is_empty() {
            continue;
        }
        for (name, path) in checkpoints {
            link_tree(&path, &dir.output().join(name))?;
        }
        return Ok(true);
    }
    Ok(false)
}

fn checkpoints(output: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(output) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        if name.starts_with("checkpoint-") && entry.file_type()?.is_dir() {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            link_tree(&entry.path(), &target)?;
        } else if kind.is_file() && !target.exists() {
            // Some file systems have no hard links.
            fs::hard_link(entry.path(), &target).or_else(|_| fs::copy(entry.path(), &target).map(drop))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::ids::{Attempt, JobId};

    #[test]
    fn the_newest_earlier_checkpoints_come_along() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let job_id = JobId::parse("j_1").map_err(io::Error::other)?;
        let key = |attempt| Key { job_id: job_id.clone(), attempt: Attempt(attempt) };
        let dir = |attempt| AttemptDir::new(temp.path(), &key(attempt));
        for (attempt, file) in [(1, "checkpoint-5/a"), (2, "checkpoint-7/sub/b"), (2, "weights.safetensors")] {
            let path = dir(attempt).output().join(file);
            fs::create_dir_all(path.parent().unwrap_or(temp.path()))?;
            fs::write(path, file)?;
        }
        fs::create_dir_all(dir(3).output())?;
        assert!(carry_over(&dir(4), &key(4))?);
        let output = dir(4).output();
        assert_eq!(fs::read_to_string(output.join("checkpoint-7/sub/b"))?, "checkpoint-7/sub/b");
        assert!(!output.join("checkpoint-5").exists() && !output.join("weights.safetensors").exists());
        assert!(!carry_over(&dir(1), &key(1))?);
        Ok(())
    }
}
