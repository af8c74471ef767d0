//! Starts the trainer.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use app::domain::time::Timestamp;

use crate::worker::clock;
use crate::worker::files::{AttemptDir, AttemptSpec, open_private};
use crate::worker::sandbox::report::{LaunchFailure, SandboxReportReader};
use crate::worker::sandbox::{self, plan};
use crate::worker::trainer_program::{build_command, explain_spawn_error};

type Environment = BTreeMap<String, String>;

pub struct StartedTrainer {
    /// The process to watch and to signal: the trainer, or its init process.
    pub pid: i32,
    /// Reports the trainer's exit, if `pid` is the init process.
    pub reports: Option<SandboxReportReader>,
}

/// Starts the trainer with the environment that was created for it.
///
/// # Errors
/// Why it did not start, for the job's page.
pub fn start(dir: &AttemptDir, spec: &AttemptSpec, environment: &Environment) -> Result<StartedTrainer, LaunchFailure> {
    let environment = environment.iter().map(|(name, value)| (name.clone(), value.clone()));
    let environment = environment.chain(limit_variables(spec)).collect();
    if dir.join(plan::FILE).exists() {
        start_in_sandbox(dir, &environment)
    } else {
        start_directly(dir, spec, &environment).map_err(|why| LaunchFailure { why, host_fault: false })
    }
}

fn start_directly(dir: &AttemptDir, spec: &AttemptSpec, environment: &Environment) -> Result<StartedTrainer, String> {
    let log = || open_log(dir).map_err(|error| format!("cannot open the log file: {error}"));
    let mut command = build_command(&spec.trainer, spec.cwd.as_deref().unwrap_or(&dir.working_dir()))?;
    // A separate process group, so that asking it to stop also asks its helpers.
    command.env_clear().envs(environment).stdin(Stdio::null()).stdout(log()?).stderr(log()?);
    let child = command.process_group(0).spawn();
    // Not waited for here: the reaper does that for all processes.
    let child = child.map_err(|error| explain_spawn_error(&spec.trainer, &error))?;
    Ok(StartedTrainer { pid: child_pid(&child)?, reports: None })
}

fn start_in_sandbox(dir: &AttemptDir, environment: &Environment) -> Result<StartedTrainer, LaunchFailure> {
    let host_fault = |error: io::Error| LaunchFailure::host_fault(format!("cannot start the job's sandbox: {error}"));
    let log = open_log(dir).map_err(host_fault)?;
    let (child, mut reports) = sandbox::spawn(dir, environment, log).map_err(host_fault)?;
    match reports.wait_until_running()? {
        Some(init) => Ok(StartedTrainer { pid: init, reports: Some(reports) }),
        None => Ok(StartedTrainer { pid: child_pid(&child).map_err(LaunchFailure::host_fault)?, reports: None }),
    }
}

fn child_pid(child: &Child) -> Result<i32, String> {
    i32::try_from(child.id()).map_err(|error| error.to_string())
}

/// Variables with the trainer's grace period and its deadline.
fn limit_variables(spec: &AttemptSpec) -> impl Iterator<Item = (String, String)> {
    let grace = ("SIMPLETUNER_STOP_GRACE_SECONDS", spec.limits.stop_grace_seconds.to_string());
    let deadline = spec.offer.max_runtime_seconds.map(|limit| deadline_seconds(clock::now(), limit));
    let deadline = deadline.map(|deadline| ("SIMPLETUNER_DEADLINE", deadline.to_string()));
    [grace].into_iter().chain(deadline).map(|(name, value)| (name.to_owned(), value))
}

/// In Unix seconds.
fn deadline_seconds(now: Timestamp, limit_seconds: u64) -> i64 {
    (now.0 / 1_000).saturating_add(i64::try_from(limit_seconds).unwrap_or(i64::MAX))
}

fn open_log(dir: &AttemptDir) -> io::Result<File> {
    open_private(&dir.log_path())
}

/// Appends a message to the trainer's output.
pub fn append_to_log(dir: &AttemptDir, sentence: &str) {
    if let Ok(mut log) = open_log(dir) {
        // The message is also in `exit.json`.
        let _ = writeln!(log, "{sentence}");
    }
}
