//! The directory of one attempt: what the agent and the supervisor know of it, and tell each other.
//!
//! Every file has one writer, and is replaced whole, so that a reader finds the old or the new one and never half of it:
//!
//! | file | writer | what |
//! |---|---|---|
//! | `spec.json`, `secrets.json` (0600) | agent | what to run, once |
//! | `sandbox.json` | agent | what the trainer may read, write and reach; missing for an unconfined one |
//! | `state.json` | agent | what the orchestrator has acknowledged |
//! | `uploaded.jsonl` | agent | which files it has; appended to only |
//! | `stop.json` | agent | the order to stop |
//! | `lease.json` | agent | until when an exclusive job may run |
//! | `supervisor.json`, `exit.json` | supervisor | who runs, how it ended |
//! | `trainer.log`, `events.jsonl` | trainer, supervisor | appended to only |
//! | `log.json` | supervisor | how much of the beginning of those was given up |
//! | `reserve` | supervisor | space for the others when the disk is full |
//!
//! An older version's files stay readable: a field that was added is optional.

mod exit;
mod keep;
mod private;
mod sent;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use app::domain::ids::{Attempt, JobId};
use app::domain::time::Timestamp;
use app::protocol::dispatch::JobSubmit;
use app::protocol::worker::{RunningAttempt, StatusReport};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use exit::{Exit, StopCause, StopOrder, TRY_AGAIN};
pub use keep::{Disk, Floors, JobDisk, Lease, Limits, Place, free_bytes};
pub use private::{open_private, write_atomic, write_public};
pub use sent::Sent;
pub use tree::remove_tree;

use crate::process::ProcId;
use crate::secret::Secret;

/// The layout that this build writes; it leaves newer ones alone.
pub const VERSION: u32 = 1;

/// Which attempt of which job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt: Attempt,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} attempt {}", self.job_id, self.attempt)
    }
}

impl From<&RunningAttempt> for Key {
    fn from(running: &RunningAttempt) -> Self {
        Self { job_id: running.job_id.clone(), attempt: running.attempt }
    }
}

impl Key {
    /// The word of it that is to be told.
    pub fn report(&self, status: &str) -> StatusReport {
        StatusReport { status: status.to_owned(), attempt: Some(self.attempt), ..StatusReport::default() }
    }

    /// As it travels.
    pub fn running(&self) -> RunningAttempt {
        RunningAttempt { job_id: self.job_id.clone(), attempt: self.attempt }
    }
}

/// What to run: `spec.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// [`VERSION`].
    pub version: u32,
    /// Which attempt this is.
    pub key: Key,
    /// The offer, without its tokens.
    pub offer: JobSubmit,
    /// The trainer's command.
    pub trainer: Vec<String>,
    /// The kernel's boot id when the attempt began: another one later means that the host was restarted.
    pub host_boot: String,
    /// Whether an earlier attempt's checkpoints were carried over.
    pub resume: bool,
    /// What it may take.
    #[serde(default)]
    pub limits: Limits,
    /// Where its control group is made; none: wherever one can be, without limits.
    #[serde(default)]
    pub place: Option<Place>,
    /// What it may take of the disk; none: whatever there is.
    pub disk: Option<JobDisk>,
}

/// What nobody else may read: `secrets.json`. Removed once the end was reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// The job token.
    pub job_token: Secret,
    /// Access to the model hub.
    pub hf_token: Option<Secret>,
    /// What the trainer's events must carry.
    pub webhook: Secret,
}

/// What the orchestrator has acknowledged: `state.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// [`VERSION`].
    pub version: u32,
    /// It was told `starting`, and agreed.
    pub accepted: bool,
    /// It was told `running`.
    pub running: bool,
    /// Bytes of `trainer.log` that it has.
    pub log_acked: u64,
    /// Bytes of `events.jsonl` whose points it has.
    pub events_acked: u64,
    /// Files that it has, as older versions wrote them down (see [`Sent`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uploaded: Vec<Uploaded>,
    /// Checkpoints that it knows to be whole, by name.
    #[serde(default)]
    pub checkpoints: BTreeSet<String>,
    /// The step of the checkpoint that the trainer goes on from.
    #[serde(default)]
    pub resumed_from_step: Option<u64>,
    /// The end as it is to be reported.
    #[serde(default)]
    pub terminal: Option<StatusReport>,
    /// Nothing is left to tell.
    pub delivered: bool,
}

/// A file that the orchestrator has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uploaded {
    /// Path below the output directory.
    pub path: String,
    /// Its size then, in bytes.
    pub size: u64,
    /// Its modification time then, in ms.
    pub modified_ms: i64,
    /// Its SHA-256 in hex; empty before it was sent, and by versions that did not keep it.
    #[serde(default)]
    pub sha256: String,
}

impl Uploaded {
    /// Whether a file on disk is still the one that was sent.
    pub fn is(&self, file: &Self) -> bool {
        (&self.path, self.size, self.modified_ms) == (&file.path, file.size, file.modified_ms)
    }
}

/// Who runs: `supervisor.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// [`VERSION`].
    pub version: u32,
    /// The supervisor.
    pub supervisor: ProcId,
    /// The trainer.
    pub trainer: ProcId,
    /// The webhook listener's port.
    pub port: u16,
    /// When the trainer began.
    pub started_at: Timestamp,
    /// The control group that the trainer's processes are in, if one could be made.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
}

/// The directory itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptDir(PathBuf);

impl AttemptDir {
    /// Of this attempt below a work directory.
    pub fn new(work_dir: &Path, key: &Key) -> Self {
        Self(work_dir.join("jobs").join(key.job_id.as_str()).join(key.attempt.to_string()))
    }

    /// A known directory.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file or directory in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// The configuration's files.
    pub fn bundle(&self) -> PathBuf {
        self.join("bundle")
    }

    /// What the trainer makes.
    pub fn output(&self) -> PathBuf {
        self.join("output")
    }

    /// Where the trainer starts: empty, as Python imports what lies there.
    pub fn work(&self) -> PathBuf {
        self.join("work")
    }

    /// The trainer's temporary files.
    pub fn tmp(&self) -> PathBuf {
        self.join("tmp")
    }

    /// What the supervisor shows the trainer while it runs.
    pub fn control(&self) -> PathBuf {
        self.join("control")
    }

    /// All that the trainer writes to stdout and stderr.
    pub fn log(&self) -> PathBuf {
        self.join("trainer.log")
    }

    /// The trainer's events, one JSON line each.
    pub fn events(&self) -> PathBuf {
        self.join("events.jsonl")
    }

    /// Appears when the trainer should stop.
    pub fn stop_file(&self) -> PathBuf {
        self.control().join("stop")
    }

    /// Reads one of the JSON files; none if it is not there.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let path = self.join(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces one of the JSON files; it is on disk when this returns.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let bytes = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
        self.with_reserve(|| write_atomic(&self.join(name), &bytes, true))
    }

    /// Like [`Self::write`], but leaves it to the kernel when the disk gets it, and the reserve to what cannot be learnt
    /// again.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write_soon<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let bytes = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
        write_atomic(&self.join(name), &bytes, false)
    }
}

/// Every attempt below a work directory, whatever its state.
///
/// # Errors
/// If the directory cannot be listed.
pub fn attempts(work_dir: &Path) -> io::Result<Vec<AttemptDir>> {
    let mut found = Vec::new();
    for job in children(&work_dir.join("jobs"))? {
        for attempt in children(&job)? {
            found.push(AttemptDir(attempt));
        }
    }
    Ok(found)
}

fn children(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut dirs = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            dirs.push(entry.path());
        }
    }
    Ok(dirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_private_and_replaced_whole() -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        assert_eq!(dir.read::<State>("state.json")?, None);
        let mut state = State { version: VERSION, log_acked: 7, ..State::default() };
        dir.write("state.json", &state)?;
        state.log_acked = 8;
        dir.write("state.json", &state)?;
        assert_eq!(dir.read("state.json")?, Some(state));
        assert_eq!(fs::metadata(dir.join("state.json"))?.permissions().mode() & 0o777, 0o600);
        fs::write(dir.join("exit.json"), "{")?;
        assert!(dir.read::<Exit>("exit.json").is_err());
        Ok(())
    }
}
