//! `simpletuner-worker probe`: what this machine could run, for an orchestrator that thinks of running jobs itself.

use std::path::Path;
use std::process::{Command, Stdio};

use app::protocol::worker::Probe;

use crate::config::GpuOverrides;
use crate::exit::Fatal;
use crate::gpu;
use crate::sandbox::trainer_files::is_python;

/// Prints a [`Probe`] as JSON.
///
/// # Errors
/// If the trainer's command is no command.
pub fn main(trainer: &str) -> Result<u8, Fatal> {
    let words = shell_words::split(trainer).map_err(|error| Fatal::usage(format!("--trainer: {error}")))?;
    let hardware = gpu::detect(&GpuOverrides::default(), "local");
    let probe = Probe {
        gpus: u32::try_from(hardware.gpus.len()).unwrap_or(u32::MAX),
        accelerator: hardware.accelerator,
        trainer: can_start(&words),
    };
    println!("{}", serde_json::to_string(&probe).expect("plain fields"));
    Ok(0)
}

/// A command that succeeds if the trainer's program is there, and for `python -m MODULE` such a module; a Python is started.
pub fn check(command: &[String]) -> Vec<String> {
    const FIND: &str = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match command {
        [python, flag, module, ..] if flag == "-m" => words(&[python, "-c", FIND, module]),
        [python, ..] if is_python(Path::new(python)) => words(&[python, "-c", ""]),
        [program, ..] => words(&["sh", "-c", "command -v -- \"$1\"", "sh", program]),
        [] => words(&["false"]),
    }
}

/// Whether [`check`] succeeds.
pub fn can_start(command: &[String]) -> bool {
    succeeds(&check(command))
}

/// Whether a command, run with nothing to read and nobody to hear it, exits with 0.
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
    fn trainers_are_looked_for() {
        let can = |command: &str| can_start(&shell_words::split(command).expect("a command"));
        assert!(can("python3 -m json.tool --help") && can("sh trainer.sh"));
        assert!(!can("python3 -m no_such_module.train") && !can("no-such-program x") && !can("no-such-python -m json"));
        assert!(!can(""));
    }
}
