//! How several processes of one trainer are started: SimpleTuner's through `accelerate launch`; any other trainer learns the
//! number from `TRAINING_NUM_PROCESSES`, and does it itself.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use serde_json::Value;

const MODULE: &str = "simpletuner.train";
/// What `accelerate launch` takes for `--mixed_precision`.
const PRECISIONS: [&str; 4] = ["no", "fp16", "bf16", "fp8"];

/// What the command depends on.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// How many processes.
    pub processes: u32,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: &'a str,
    /// As the configuration has it.
    pub mixed_precision: Option<&'a str>,
    /// Where the processes meet on this host. Not 0: the main one would choose, and the others never hear of it.
    pub port: u16,
}

/// The trainer's command with `accelerate launch` in it; none if it is to be started as it is.
pub fn command(trainer: &[String], launch: &Launch) -> Option<Vec<String>> {
    let at = module(trainer).filter(|_| launch.processes > 1)?;
    let (python, rest) = trainer.split_at(at);
    let mut command = python.to_vec();
    let mut add = |words: &[&str]| command.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["-m", "accelerate.commands.launch", "--num_processes", &launch.processes.to_string(), "--num_machines", "1"]);
    if let Some(precision) = launch.mixed_precision.filter(|precision| PRECISIONS.contains(precision)) {
        add(&["--mixed_precision", precision]);
    }
    // PyTorch for ROCm calls its devices CUDA.
    if matches!(launch.accelerator, "cuda" | "rocm") {
        add(&["--multi_gpu"]);
    }
    add(&["--main_process_port", &launch.port.to_string()]);
    command.extend_from_slice(rest);
    Some(command)
}

/// Where `-m simpletuner.train` stands in the command of a Python.
fn module(trainer: &[String]) -> Option<usize> {
    let (program, rest) = trainer.split_first()?;
    let is_python = Path::new(program).file_name()?.to_str()?.starts_with("python");
    let own_flags = rest.iter().take_while(|word| word.starts_with('-') && *word != "-m").count();
    let names_it = rest[own_flags..].starts_with(&["-m".to_owned(), MODULE.to_owned()]);
    (is_python && names_it).then_some(own_flags + 1)
}

/// What `config.json` says of mixed precision, under either spelling of the key.
pub fn mixed_precision(config: &Value) -> Option<&str> {
    ["--mixed_precision", "mixed_precision"].iter().find_map(|key| config[*key].as_str())
}

/// A port of the loopback address that nobody uses now.
///
/// # Errors
/// If the system has none.
pub fn free_port() -> io::Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr().map(|address| address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn launched(trainer: &str, processes: u32, accelerator: &str, mixed_precision: Option<&str>) -> Option<String> {
        let trainer: Vec<_> = trainer.split(' ').map(str::to_owned).collect();
        let launch = Launch { processes, accelerator, mixed_precision, port: 77 };
        command(&trainer, &launch).map(|words| words.join(" "))
    }

    #[test]
    fn simpletuner_is_launched_by_accelerate() {
        const LAUNCH: &str = "-m accelerate.commands.launch --num_processes";
        for (trainer, processes, accelerator, precision, expected) in [
            (
                "python3 -m simpletuner.train",
                2,
                "cuda",
                Some("bf16"),
                format!(
                    "python3 {LAUNCH} 2 --num_machines 1 --mixed_precision bf16 --multi_gpu --main_process_port 77 -m simpletuner.train"
                ),
            ),
            (
                "/venv/bin/python -u -m simpletuner.train --x y",
                8,
                "rocm",
                None,
                format!(
                    "/venv/bin/python -u {LAUNCH} 8 --num_machines 1 --multi_gpu --main_process_port 77 -m simpletuner.train --x y"
                ),
            ),
            (
                "python3.12 -m simpletuner.train",
                2,
                "cpu",
                Some("fp64"),
                format!("python3.12 {LAUNCH} 2 --num_machines 1 --main_process_port 77 -m simpletuner.train"),
            ),
        ] {
            assert_eq!(launched(trainer, processes, accelerator, precision), Some(expected), "{trainer}");
        }
    }

    #[test]
    fn other_trainers_and_single_processes_are_not() {
        for (trainer, processes) in [
            ("python3 -m simpletuner.train", 1),
            ("python3 -m simpletuner.trainer", 2),
            ("python3 train.py -m simpletuner.train", 2),
            ("python3 -m", 2),
            ("python3", 2),
            ("sh -m simpletuner.train", 2),
            ("", 2),
        ] {
            assert_eq!(launched(trainer, processes, "cuda", None), None, "{trainer}");
        }
    }

    #[test]
    fn precision_has_two_spellings() {
        assert_eq!(mixed_precision(&json!({"--mixed_precision": "bf16"})), Some("bf16"));
        assert_eq!(mixed_precision(&json!({"mixed_precision": "no"})), Some("no"));
        for none in [json!({}), json!([]), json!({"mixed_precision": 16})] {
            assert_eq!(mixed_precision(&none), None, "{none}");
        }
    }
}
