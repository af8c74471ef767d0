//! Flags that say how jobs run on this host.

use std::path::PathBuf;
use std::str::FromStr;

use app::domain::sandbox::SandboxLevel;
use clap::Args;
use clap::builder::BoolishValueParser;

/// The most jobs at once that the orchestrator knows how to count.
const MOST_JOBS: u32 = 64;

/// How jobs run on this host.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// How many jobs to run at once, each with GPUs of its own: a number, or per-gpu for as many as there are GPUs
    #[arg(long, value_name = "N|per-gpu", env = "SIMPLETUNER_MAX_JOBS", default_value = "1")]
    pub max_jobs: MaxJobs,
    /// Give jobs a directory of this host, which `{NAME}` stands for in their configurations; read-only unless `:rw` follows (repeatable)
    #[arg(long = "path", value_name = "NAME=DIR[:rw]")]
    pub paths: Vec<String>,
    /// Give jobs the directory that `{data_root}` stands for; the same as `--path data_root=DIR`
    #[arg(long, value_name = "DIR[:rw]", env = "SIMPLETUNER_DATA_ROOT")]
    pub data_root: Option<PathBuf>,
    /// Let configurations bring code (.py, .so, .pkl …), which then runs on this host as its jobs do
    #[arg(long, env = "SIMPLETUNER_ALLOW_CODE", value_parser = BoolishValueParser::new(), value_name = "BOOL",
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    pub allow_code: bool,
    /// Confine every job at least this closely: none, files, full, or auto for as closely as this host can
    #[arg(
        long,
        visible_alias = "box-min",
        value_name = "LEVEL",
        env = "SIMPLETUNER_SANDBOX_MIN",
        default_value = "auto"
    )]
    pub sandbox_min: LeastSandbox,
}

/// What `--sandbox-min` says; none for `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastSandbox(pub Option<SandboxLevel>);

impl FromStr for LeastSandbox {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(None));
        }
        let level = SandboxLevel::parse(text).ok_or("write none, files, full or auto")?;
        Ok(Self(Some(level)))
    }
}

/// How many jobs may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxJobs {
    /// So many.
    Number(u32),
    /// As many as there are GPUs.
    PerGpu,
}

impl MaxJobs {
    /// The number on a host with so many GPUs: at least 1.
    pub fn on(self, gpus: usize) -> u32 {
        match self {
            Self::Number(number) => number,
            Self::PerGpu => u32::try_from(gpus).unwrap_or(MOST_JOBS).clamp(1, MOST_JOBS),
        }
    }
}

impl FromStr for MaxJobs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "per-gpu" {
            return Ok(Self::PerGpu);
        }
        let number = text.parse().ok().filter(|number| (1..=MOST_JOBS).contains(number));
        number.map(Self::Number).ok_or_else(|| format!("give a number from 1 to {MOST_JOBS}, or per-gpu"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_jobs() {
        let on = |text: &str, gpus| text.parse::<MaxJobs>().ok().map(|most| most.on(gpus));
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
            assert_eq!(on(text, gpus), expected, "{text:?} with {gpus} GPUs");
        }
    }
}
