//! Starting the trainer.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::files::{AttemptDir, Spec};

/// Starts it, and answers with its process id; it inherits the supervisor's environment, which was made for it.
///
/// # Errors
/// A sentence for the job's page.
pub fn start(dir: &AttemptDir, spec: &Spec) -> Result<i32, String> {
    let log = || open_log(dir).map_err(|error| format!("the log file cannot be opened: {error}"));
    let (program, args) = spec.trainer.split_first().ok_or("the trainer's command is empty: set --trainer")?;
    let child = Command::new(program)
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
        _ => format!("the trainer {program:?} cannot be started: {error}"),
    }
}
