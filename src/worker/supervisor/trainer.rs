//! Starting the trainer.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use app::domain::time::Timestamp;

use crate::clock;
use crate::files::{AttemptDir, Spec, open_private};
use crate::sandbox::report::{Failure, Reports};
use crate::sandbox::{self, plan};

/// A trainer that was started.
pub struct Started {
    /// The process to watch and to signal: the trainer, or the init process above it.
    pub pid: i32,
    /// Says how the trainer ended, where `pid` is not its own.
    pub reports: Option<Reports>,
}

/// Starts it; it inherits the supervisor's environment, which was made for it.
///
/// # Errors
/// Why not, for the job's page.
pub fn start(dir: &AttemptDir, spec: &Spec) -> Result<Started, Failure> {
    if dir.join(plan::FILE).exists() {
        start_confined(dir, spec)
    } else {
        start_unconfined(dir, spec).map_err(|why| Failure { why, host_fault: false })
    }
}

fn start_unconfined(dir: &AttemptDir, spec: &Spec) -> Result<Started, String> {
    let log = || open_log(dir).map_err(|error| format!("the log file cannot be opened: {error}"));
    let mut command = command(&spec.trainer, &dir.work())?;
    // A group of its own, so that asking it to stop asks its helpers too.
    let child = command.envs(limits(spec)).stdout(log()?).stderr(log()?).process_group(0).spawn();
    // Not waited for here: the reaper does that for all processes.
    let child = child.map_err(|error| explain(&spec.trainer, &error))?;
    Ok(Started { pid: pid(&child)?, reports: None })
}

fn start_confined(dir: &AttemptDir, spec: &Spec) -> Result<Started, Failure> {
    let host = |error: io::Error| Failure::host(format!("the job's sandbox cannot be started: {error}"));
    let log = open_log(dir).map_err(host)?;
    let (child, mut reports) = sandbox::start(dir, limits(spec), log).map_err(host)?;
    match reports.started()? {
        Some(init) => Ok(Started { pid: init, reports: Some(reports) }),
        None => Ok(Started { pid: pid(&child).map_err(Failure::host)?, reports: None }),
    }
}

fn pid(child: &Child) -> Result<i32, String> {
    i32::try_from(child.id()).map_err(|error| error.to_string())
}

/// The trainer's command, without its output.
///
/// # Errors
/// If there is none.
pub fn command(words: &[String], work_dir: &Path) -> Result<Command, String> {
    let (program, args) = words.split_first().ok_or("the trainer's command is empty: set --trainer")?;
    let mut command = Command::new(program);
    command.args(args).current_dir(work_dir).stdin(Stdio::null());
    Ok(command)
}

/// Variables that tell the trainer how long it has once it is asked to stop, and until when it may run at all.
fn limits(spec: &Spec) -> impl Iterator<Item = (&'static str, String)> {
    let grace = ("SIMPLETUNER_STOP_GRACE_SECONDS", spec.limits.stop_grace_seconds.to_string());
    let end = spec.offer.max_runtime_seconds.map(|limit| deadline(clock::now(), limit));
    [grace].into_iter().chain(end.map(|end| ("SIMPLETUNER_DEADLINE", end.to_string())))
}

/// In Unix seconds.
fn deadline(now: Timestamp, limit_seconds: u64) -> i64 {
    (now.0 / 1_000).saturating_add(i64::try_from(limit_seconds).unwrap_or(i64::MAX))
}

fn open_log(dir: &AttemptDir) -> io::Result<File> {
    open_private(&dir.log())
}

/// Leaves a sentence where the trainer's output would be.
pub fn note(dir: &AttemptDir, sentence: &str) {
    if let Ok(mut log) = open_log(dir) {
        // The sentence is also in `exit.json`.
        let _ = writeln!(log, "{sentence}");
    }
}

/// A sentence for the job's page: why the trainer's program does not start.
pub fn explain(command: &[String], error: &io::Error) -> String {
    let program = command.first().map(String::as_str).unwrap_or_default();
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "the trainer {program:?} was not found on this worker: install it, or name another with --trainer (or \
             SIMPLETUNER_TRAINER) when starting the worker"
        ),
        io::ErrorKind::PermissionDenied => {
            format!(
                "the trainer {program:?} may not be executed on this worker: check the file's permissions, or --trainer"
            )
        }
        _ => format!("the trainer {program:?} cannot be started: {error}. Name another with --trainer"),
    }
}
