//! Starting the trainer.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use app::domain::time::Timestamp;

use crate::clock;
use crate::files::{AttemptDir, Spec};

/// Starts it, and answers with its process id; it inherits the supervisor's environment, which was made for it, and is told
/// how long it will have once it is asked to stop, and until when it may run at all.
///
/// # Errors
/// A sentence for the job's page.
pub fn start(dir: &AttemptDir, spec: &Spec) -> Result<i32, String> {
    let log = || open_log(dir).map_err(|error| format!("the log file cannot be opened: {error}"));
    let (program, args) = spec.trainer.split_first().ok_or("the trainer's command is empty: set --trainer")?;
    let mut command = Command::new(program);
    command.env("SIMPLETUNER_STOP_GRACE_SECONDS", spec.limits.stop_grace_seconds.to_string());
    if let Some(limit) = spec.offer.max_runtime_seconds {
        command.env("SIMPLETUNER_DEADLINE", deadline(clock::now(), limit).to_string());
    }
    let child = command
        .args(args)
        .current_dir(dir.bundle())
        .stdin(Stdio::null())
        .stdout(log()?)
        .stderr(log()?)
        // A group of its own, so that asking it to stop asks its helpers too.
        .process_group(0)
        .spawn()
        .map_err(|error| explain(program, &error))?;
    // Not waited for here: the reaper does that for all processes.
    i32::try_from(child.id()).map_err(|error| error.to_string())
}

/// In Unix seconds.
fn deadline(now: Timestamp, limit_seconds: u64) -> i64 {
    (now.0 / 1_000).saturating_add(i64::try_from(limit_seconds).unwrap_or(i64::MAX))
}

fn open_log(dir: &AttemptDir) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(dir.log())
}

/// Leaves a sentence where the trainer's output would be.
pub fn note(dir: &AttemptDir, sentence: &str) {
    if let Ok(mut log) = open_log(dir) {
        // The sentence is also in `exit.json`.
        let _ = writeln!(log, "{sentence}");
    }
}

fn explain(program: &str, error: &io::Error) -> String {
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
