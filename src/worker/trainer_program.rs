//! The trainer's program: how it is started, and why it cannot be.

use std::ffi::OsStr;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether a program is a Python, by its name.
pub fn is_python(program: &Path) -> bool {
    program
        .file_name()
        .and_then(OsStr::to_str)
        .is_some_and(|name| name.starts_with("python") || name.starts_with("pypy"))
}

/// The trainer's command, without its output.
///
/// # Errors
/// If there is none.
pub fn build_command(words: &[String], work_dir: &Path) -> Result<Command, String> {
    let (program, args) = words.split_first().ok_or("the trainer's command is empty: set --trainer")?;
    let mut command = Command::new(program);
    command.args(args).current_dir(work_dir).stdin(Stdio::null());
    Ok(command)
}

/// Why the trainer's program did not start, for the job's page.
pub fn explain_spawn_error(command: &[String], error: &io::Error) -> String {
    let program = command.first().map(String::as_str).unwrap_or_default();
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "the trainer {program:?} was not found on this worker: install it, or set another with --trainer (or \
            SIMPLETUNER_TRAINER) when starting the worker"
        ),
        io::ErrorKind::PermissionDenied => {
            format!(
                "the trainer {program:?} is not executable on this worker: check the file's permissions, or --trainer"
            )
        }
        _ => format!("cannot start the trainer {program:?}: {error}. Set another with --trainer"),
    }
}

/// A command that succeeds if the trainer's program exists, and for `python -m MODULE` if the module does; it starts
/// that Python.
pub fn check_command(command: &[String]) -> Vec<String> {
    const FIND_MODULE: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    // Some shells also name files that are not executable; built-in commands have no path.
    const FIND_PROGRAM: &str =
        "found=$(command -v -- \"$1\") && case $found in */*) test -f \"$found\" && test -x \"$found\" ;; esac";
    let arguments = |arguments: &[&str]| arguments.iter().map(|argument| (*argument).to_owned()).collect();
    match command {
        [python, flag, module, ..] if flag == "-m" && is_python(Path::new(python)) => {
            arguments(&[python, "-c", FIND_MODULE, module])
        }
        [python, ..] if is_python(Path::new(python)) => arguments(&[python, "-c", ""]),
        [program, ..] => arguments(&["sh", "-c", FIND_PROGRAM, "sh", program]),
        [] => arguments(&["false"]),
    }
}

/// Whether the command of [`check_command`] succeeds.
pub fn can_start(command: &[String]) -> bool {
    succeeds(&check_command(command))
}

/// What the trainer's command lacks on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingTrainer {
    /// The program does not exist, or does not start.
    Program(String),
    /// Its Python does not have this module.
    Module(String),
}

impl Display for MissingTrainer {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => write!(out, "the program {program:?} does not exist or cannot be started"),
            Self::Module(module) => write!(out, "Python does not find the module {module:?}"),
        }
    }
}

/// What is missing, if the trainer cannot be started.
pub fn find_missing(command: &[String]) -> Option<MissingTrainer> {
    if can_start(command) {
        return None;
    }
    Some(match command {
        [program, _, module, ..] if can_start(std::slice::from_ref(program)) => MissingTrainer::Module(module.clone()),
        [program, ..] => MissingTrainer::Program(program.clone()),
        [] => MissingTrainer::Program(String::new()),
    })
}

/// Whether a command without input and output exits with 0.
pub fn succeeds(command: &[String]) -> bool {
    let Some((program, args)) = command.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_trainers_are_found() {
        let can = |command: &str| can_start(&shell_words::split(command).expect("a command"));
        assert!(can("python3 -m json.tool --help") && can("sh trainer.sh"));
        assert!(!can("python3 -m no_such_module.train") && !can("no-such-program x") && !can("no-such-python -m json"));
        assert!(!can("") && !can("/") && !can("/etc/passwd"));
        assert!(can("env -m json"), "only a Python's -m names a module");
        let missing_part = |command: &str| {
            find_missing(&shell_words::split(command).expect("a command")).map(|missing| missing.to_string())
        };
        assert_eq!(missing_part("python3 -m json.tool"), None);
        assert_eq!(
            missing_part("python3 -m no_such_module"),
            Some("Python does not find the module \"no_such_module\"".to_owned())
        );
        assert_eq!(
            missing_part("no-such-program x y"),
            Some("the program \"no-such-program\" does not exist or cannot be started".to_owned())
        );
    }
}
