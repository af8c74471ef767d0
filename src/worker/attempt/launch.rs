//! How to start several processes of a trainer: SimpleTuner through `accelerate launch`; any other trainer reads the
//! number from `TRAINING_NUM_PROCESSES` and starts them itself.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use serde_json::Value;

const SIMPLETUNER_MODULE: &str = "simpletuner.train";
/// Valid values of `accelerate launch --mixed_precision`.
const PRECISIONS: [&str; 4] = ["no", "fp16", "bf16", "fp8"];

#[derive(Debug, Clone)]
pub struct LaunchOptions<'a> {
    /// Number of processes.
    pub processes: u32,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: &'a str,
    /// From the configuration.
    pub mixed_precision: Option<&'a str>,
    /// Rendezvous port on this host. Not 0: then the main process would choose a port that the others do not learn.
    pub port: u16,
}

/// The trainer's command before and from its module on, if this number of processes is started with `accelerate launch`.
pub fn split_for_accelerate(trainer: &[String], processes: u32) -> Option<(&[String], &[String])> {
    module_position(trainer).filter(|_| processes > 1).map(|module_at| trainer.split_at(module_at))
}

/// The trainer's command with `accelerate launch`.
pub fn accelerate_command((python, rest): (&[String], &[String]), launch: &LaunchOptions) -> Vec<String> {
    let mut command = python.to_vec();
    let mut add = |arguments: &[&str]| command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
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
    command
}

/// The position of `-m simpletuner.train` in a Python command.
fn module_position(trainer: &[String]) -> Option<usize> {
    let (program, rest) = trainer.split_first()?;
    let is_python = Path::new(program).file_name()?.to_str()?.starts_with("python");
    let flag_count = rest.iter().take_while(|word| word.starts_with('-') && *word != "-m").count();
    let is_simpletuner = rest[flag_count..].starts_with(&["-m".to_owned(), SIMPLETUNER_MODULE.to_owned()]);
    (is_python && is_simpletuner).then_some(flag_count + 1)
}

/// The mixed precision in `config.json`, under either spelling of the key.
pub fn mixed_precision(config: &Value) -> Option<&str> {
    ["--mixed_precision", "mixed_precision"].iter().find_map(|key| config[*key].as_str())
}

/// An unused port of the loopback address.
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

    fn command_for(trainer: &str, processes: u32, accelerator: &str, mixed_precision: Option<&str>) -> Option<String> {
        let trainer: Vec<_> = trainer.split(' ').map(str::to_owned).collect();
        let launch = LaunchOptions { processes, accelerator, mixed_precision, port: 77 };
        split_for_accelerate(&trainer, processes).map(|parts| accelerate_command(parts, &launch).join(" "))
    }

    #[test]
    fn simpletuner_uses_accelerate_for_several_processes() {
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
            assert_eq!(command_for(trainer, processes, accelerator, precision), Some(expected), "{trainer}");
        }
    }

    #[test]
    fn other_trainers_and_single_processes_start_directly() {
        for (trainer, processes) in [
            ("python3 -m simpletuner.train", 1),
            ("python3 -m simpletuner.trainer", 2),
            ("python3 train.py -m simpletuner.train", 2),
            ("python3 -m", 2),
            ("python3", 2),
            ("sh -m simpletuner.train", 2),
            ("", 2),
        ] {
            assert_eq!(command_for(trainer, processes, "cuda", None), None, "{trainer}");
        }
    }

    #[test]
    fn mixed_precision_key_has_two_spellings() {
        assert_eq!(mixed_precision(&json!({"--mixed_precision": "bf16"})), Some("bf16"));
        assert_eq!(mixed_precision(&json!({"mixed_precision": "no"})), Some("no"));
        for none in [json!({}), json!([]), json!({"mixed_precision": 16})] {
            assert_eq!(mixed_precision(&none), None, "{none}");
        }
    }
}
