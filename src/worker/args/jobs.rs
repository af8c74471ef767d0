//! Flags for how jobs run on this host.

use std::path::PathBuf;
use std::str::FromStr;

use app::domain::sandbox::SandboxLevel;
use clap::Args;
use clap::builder::BoolishValueParser;

/// Maximum number of concurrent jobs that the orchestrator supports.
const MAX_JOBS_LIMIT: u32 = 64;

#[derive(Debug, Args)]
pub struct JobArgs {
    /// Max concurrent jobs, each with its own GPUs: a number, or per-gpu for one per GPU
    #[arg(long, value_name = "N|per-gpu", env = "SIMPLETUNER_MAX_JOBS", default_value = "1")]
    pub max_jobs: MaxJobs,
    /// Give jobs a directory of this host, which replaces `{NAME}` in their configurations; read-only without `:rw`
    /// (repeatable)
    #[arg(long = "path", value_name = "NAME=DIR[:rw]")]
    pub paths: Vec<String>,
    /// Give jobs the directory that replaces `{data_root}`; same as `--path data_root=DIR`
    #[arg(long, value_name = "DIR[:rw]", env = "SIMPLETUNER_DATA_ROOT")]
    pub data_root: Option<PathBuf>,
    /// Start trainers in this directory of the host, to which configurations' paths are then relative; read-only
    /// without `:rw`
    #[arg(long, value_name = "DIR[:rw]", env = "SIMPLETUNER_WORKER_TRAINER_CWD")]
    pub trainer_cwd: Option<PathBuf>,
    /// Accept configurations that contain code (.py, .so, .pkl …), which runs on this host as jobs do
    #[arg(long, env = "SIMPLETUNER_ALLOW_CODE", value_parser = BoolishValueParser::new(), value_name = "BOOL",
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    pub allow_code: bool,
    /// Minimum sandbox level of every job: none, files, full, or auto for the highest level that this host supports
    #[arg(
        long,
        visible_alias = "box-min",
        value_name = "LEVEL",
        env = "SIMPLETUNER_SANDBOX_MIN",
        default_value = "auto"
    )]
    pub sandbox_min: MinSandboxLevel,
}

/// The value of `--sandbox-min`; `None` for `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinSandboxLevel(pub Option<SandboxLevel>);

impl FromStr for MinSandboxLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(None));
        }
        let level = SandboxLevel::parse(text).ok_or("use none, files, full or auto")?;
        Ok(Self(Some(level)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxJobs {
    Fixed(u32),
    /// One per GPU.
    PerGpu,
}

impl MaxJobs {
    /// The number on a host with this many GPUs; at least 1.
    pub fn resolve(self, gpus: usize) -> u32 {
        match self {
            Self::Fixed(number) => number,
            Self::PerGpu => u32::try_from(gpus).unwrap_or(MAX_JOBS_LIMIT).clamp(1, MAX_JOBS_LIMIT),
        }
    }
}

impl FromStr for MaxJobs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "per-gpu" {
            return Ok(Self::PerGpu);
        }
        let number = text.parse().ok().filter(|number| (1..=MAX_JOBS_LIMIT).contains(number));
        number.map(Self::Fixed).ok_or_else(|| format!("use a number from 1 to {MAX_JOBS_LIMIT}, or per-gpu"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_jobs_values_are_parsed() {
        let resolve = |text: &str, gpus| text.parse::<MaxJobs>().ok().map(|max_jobs| max_jobs.resolve(gpus));
        for (text, gpus, expected) in [
            ("1", 8, Some(1)),
            ("3", 0, Some(3)),
            ("64", 1, Some(64)),
            ("per-gpu", 0, Some(1)),
            ("per-gpu", 4, Some(4)),
            ("per-gpu", 100, Some(64)),
            ("0", 1, None),
            ("65", 1, None),
            ("-1", 1, None),
            ("all", 1, None),
            ("", 1, None),
        ] {
            assert_eq!(resolve(text, gpus), expected, "{text:?} with {gpus} GPUs");
        }
    }
}
