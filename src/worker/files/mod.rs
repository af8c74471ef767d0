//! The directory of one attempt, through which the agent and the supervisor communicate.
//!
//! Every file has one writer and is replaced atomically, so that a reader finds the old or the new content, never a
//! part:
//!
//! | file | writer | content |
//! |---|---|---|
//! | `spec.json`, `secrets.json` (0600) | agent | what to run; written once |
//! | `sandbox.json` | agent | what the trainer may read, write and reach; without a sandbox, only for an exclusive job |
//! | `state.json` | agent | what the orchestrator has acknowledged; missing until it is something |
//! | `uploaded.jsonl` | agent | uploaded files; append-only |
//! | `stop.json` | agent | the stop request |
//! | `lease.json` | agent | until when an exclusive job may run |
//! | `supervisor.json`, `exit.json` | supervisor | the running processes; how the attempt ended |
//! | `trainer.log`, `events.jsonl` | trainer, supervisor | append-only |
//! | `log.json` | supervisor | how much of the beginning of those was dropped |
//! | `reserve` | supervisor | space for the others when the disk is full |
//!
//! An older version's files stay readable: added fields are optional.

mod attempt_limits;
mod exit;
mod private;
mod tree;
mod uploaded_files;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::time::Timestamp;
use app::protocol::agents::dispatch::JobOffer;
use app::protocol::agents::{RunningAttempt, StatusReport};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use attempt_limits::{
    AttemptLimits, DiskAtExit, JobCgroup, JobDiskLimit, LeaseRecord, TruncationOffsets, free_bytes,
};
pub use exit::{AttemptExit, EX_TEMPFAIL, StopCause, StopOrder};
pub use private::{open_private, write_atomic, write_public};
pub use tree::remove_tree;
pub use uploaded_files::UploadedFiles;

use crate::worker::process::ProcId;
use crate::worker::secret::Secret;

/// The layout that this build writes; newer ones are left alone.
pub const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptKey {
    pub job_id: JobId,
    pub attempt: AttemptNumber,
}

impl std::fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} attempt {}", self.job_id, self.attempt)
    }
}

impl From<&RunningAttempt> for AttemptKey {
    fn from(running: &RunningAttempt) -> Self {
        Self { job_id: running.job_id.clone(), attempt: running.attempt }
    }
}

impl AttemptKey {
    /// A status report for this attempt.
    pub fn status_report(&self, status: &str) -> StatusReport {
        StatusReport { status: status.to_owned(), attempt: Some(self.attempt), ..StatusReport::default() }
    }

    /// The attempt in the protocol's form.
    pub fn to_running_attempt(&self) -> RunningAttempt {
        RunningAttempt { job_id: self.job_id.clone(), attempt: self.attempt }
    }
}

/// What to run: `spec.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptSpec {
    pub version: u32,
    pub key: AttemptKey,
    /// The offer, without its tokens.
    pub offer: JobOffer,
    pub trainer: Vec<String>,
    /// Where the trainer starts; `None`: in its own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The kernel's boot ID when the attempt started: if it differs later, the host was restarted.
    pub host_boot: String,
    /// Whether checkpoints of an earlier attempt were restored.
    pub resume: bool,
    #[serde(default)]
    pub limits: AttemptLimits,
    /// Where its control group is created; `None`: wherever possible, without limits.
    #[serde(default, rename = "place")]
    pub cgroup: Option<JobCgroup>,
    /// Its disk limit; `None`: unlimited.
    pub disk: Option<JobDiskLimit>,
}

/// Data that only the owner may read: `secrets.json`. Removed once the end is reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSecrets {
    pub job_token: Secret,
    /// Token for the model hub.
    pub hf_token: Option<Secret>,
    /// Secret that the trainer's events must carry.
    pub webhook: Secret,
}

/// What the orchestrator has acknowledged: `state.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptState {
    pub version: u32,
    /// Whether it has accepted the report of `starting`.
    pub accepted: bool,
    /// Whether it has accepted the report of `running`.
    pub running: bool,
    /// Bytes of `trainer.log` that it has.
    pub log_acked: u64,
    /// Bytes of `events.jsonl` whose points it has.
    pub events_acked: u64,
    /// Files that it has, as older versions stored them (see [`UploadedFiles`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uploaded: Vec<UploadedFile>,
    /// Checkpoints reported to it as complete, by name.
    #[serde(default)]
    pub checkpoints: BTreeSet<String>,
    /// The step of the checkpoint from which the trainer resumes.
    #[serde(default)]
    pub resumed_from_step: Option<u64>,
    /// The final report.
    #[serde(default)]
    pub terminal: Option<StatusReport>,
    /// Whether everything is delivered.
    pub delivered: bool,
}

/// A file that the orchestrator has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedFile {
    /// Relative to the output directory.
    pub path: String,
    /// Size when it was uploaded, in bytes.
    pub size: u64,
    /// Modification time when it was uploaded, in ms.
    pub modified_ms: i64,
    /// Its SHA-256 in hex; empty before the upload, and in files of versions that did not store it.
    #[serde(default)]
    pub sha256: String,
}

impl UploadedFile {
    /// Whether the file on disk is unchanged since its upload.
    pub fn matches(&self, file: &Self) -> bool {
        (&self.path, self.size, self.modified_ms) == (&file.path, file.size, file.modified_ms)
    }
}

/// The running processes: `supervisor.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorRecord {
    pub version: u32,
    pub supervisor: ProcId,
    pub trainer: ProcId,
    /// Port of the webhook listener.
    pub port: u16,
    /// When the trainer started.
    pub started_at: Timestamp,
    /// The control group of the trainer's processes, if one could be created.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
}

/// The directory of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptDir(PathBuf);

impl AttemptDir {
    /// The directory of this attempt below a work directory.
    pub fn new(work_dir: &Path, key: &AttemptKey) -> Self {
        Self(work_dir.join("jobs").join(key.job_id.as_str()).join(key.attempt.to_string()))
    }

    pub fn from_path(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// The configuration's files.
    pub fn bundle_dir(&self) -> PathBuf {
        self.join("bundle")
    }

    /// The trainer's output.
    pub fn output_dir(&self) -> PathBuf {
        self.join("output")
    }

    /// Where the trainer starts: empty, because Python imports modules from there.
    pub fn working_dir(&self) -> PathBuf {
        self.join("work")
    }

    /// The trainer's temporary files.
    pub fn tmp_dir(&self) -> PathBuf {
        self.join("tmp")
    }

    /// Files by which the supervisor controls the running trainer.
    pub fn control_dir(&self) -> PathBuf {
        self.join("control")
    }

    /// The trainer's stdout and stderr.
    pub fn log_path(&self) -> PathBuf {
        self.join("trainer.log")
    }

    /// The trainer's events, one JSON object per line.
    pub fn events_path(&self) -> PathBuf {
        self.join("events.jsonl")
    }

    /// This file appears when the trainer should stop.
    pub fn stop_file(&self) -> PathBuf {
        self.control_dir().join("stop")
    }

    /// Reads a JSON file; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read or parsed.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let path = self.join(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a JSON file; it is on disk when this returns.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn write_json<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let bytes = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
        self.with_reserve(|| write_atomic(&self.join(name), &bytes, true))
    }

    /// Waits until the files that were written before the trainer's start are on disk. No trainer survives a crash of the
    /// host, but the next agent reports its end and sends its log.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn flush(&self) -> io::Result<()> {
        for name in ["secrets.json", "spec.json", "state.json", "supervisor.json"] {
            match fs::File::open(self.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                file => file?.sync_all()?,
            }
        }
        // The directory, and its entries in those of the job and of all jobs.
        self.0.ancestors().take(3).try_for_each(|dir| fs::File::open(dir)?.sync_all())
    }

    /// Like [`Self::write_json`], but without a sync and without using the reserve, which is for data that cannot be
    /// obtained again.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn write_json_unsynced<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let bytes = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
        write_atomic(&self.join(name), &bytes, false)
    }
}

/// All attempts below a work directory.
///
/// # Errors
/// If the directory cannot be listed.
pub fn list_attempts(work_dir: &Path) -> io::Result<Vec<AttemptDir>> {
    let mut found = Vec::new();
    for job in list_children(&work_dir.join("jobs"))? {
        for attempt in list_children(&job)? {
            found.push(AttemptDir(attempt));
        }
    }
    Ok(found)
}

fn list_children(dir: &Path) -> io::Result<Vec<PathBuf>> {
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
    fn files_are_private_and_replaced_atomically() -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        assert_eq!(dir.read_json::<AttemptState>("state.json")?, None);
        let mut state = AttemptState { version: VERSION, log_acked: 7, ..AttemptState::default() };
        dir.write_json("state.json", &state)?;
        state.log_acked = 8;
        dir.write_json("state.json", &state)?;
        assert_eq!(dir.read_json("state.json")?, Some(state));
        assert_eq!(fs::metadata(dir.join("state.json"))?.permissions().mode() & 0o777, 0o600);
        fs::write(dir.join("exit.json"), "{")?;
        assert!(dir.read_json::<AttemptExit>("exit.json").is_err());
        Ok(())
    }
}
