//! The agent's flags and variables.

mod disk;
pub mod input_limits;
pub mod jobs;
pub mod limits;
pub mod ops;
mod spool;

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};

use self::disk::DiskArgs;
use self::input_limits::InputLimits;
use self::limits::JobLimitArgs;
use self::ops::{LogFormat, ShutdownArgs};
use self::spool::SpoolArgs;

pub const WORKER_TOKEN_ENV: &str = "SIMPLETUNER_WORKER_TOKEN";
/// The longest `--stop-grace`, in seconds: 30 days.
pub const MAX_STOP_GRACE_SECONDS: u64 = 30 * 24 * 60 * 60;

/// The agent's flags and variables; a flag overrides its variable.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Orchestrator URL
    #[arg(long, value_name = "URL", env = "SIMPLETUNER_ORCHESTRATOR_URL")]
    pub orchestrator_url: Option<String>,
    /// Worker token (prefer the variable or a file: other users can see the command line)
    #[arg(long, value_name = "TOKEN", env = WORKER_TOKEN_ENV, hide_env_values = true)]
    pub worker_token: Option<String>,
    /// File with the worker token
    #[arg(long, value_name = "FILE", env = "SIMPLETUNER_WORKER_TOKEN_FILE")]
    pub worker_token_file: Option<PathBuf>,
    /// Worker name to report [default: hostname]
    #[arg(long, env = "SIMPLETUNER_WORKER_NAME")]
    pub name: Option<String>,
    /// Stay online between jobs [default: ephemeral, exits after one job]
    #[arg(long, env = "SIMPLETUNER_WORKER_PERSISTENT", value_parser = BoolishValueParser::new(), value_name = "BOOL",
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    pub persistent: bool,
    /// Enable debug logging
    #[arg(short, long)]
    pub verbose: bool,
    /// Log format: text, json, or auto for text with a status line in a terminal and JSON elsewhere
    #[arg(long, value_name = "auto|text|json", env = "SIMPLETUNER_LOG_FORMAT", default_value = "auto", value_parser = LogFormat::parse)]
    pub log_format: LogFormat,
    /// Label to report, `key=value` (repeatable); labels set by an admin override it
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Accept only the orchestrator's key with this fingerprint, as its dashboard shows it
    #[arg(long, value_name = "sha256:HEX", env = "SIMPLETUNER_ORCHESTRATOR_FINGERPRINT")]
    pub orchestrator_fingerprint: Option<String>,
    /// Trust the certificates in this PEM file instead of the system's
    #[arg(long, value_name = "FILE", env = "SIMPLETUNER_CA_FILE")]
    pub ca_file: Option<PathBuf>,
    /// Do not verify the orchestrator's certificate (development only; --orchestrator-fingerprint is the safe way)
    #[arg(long, env = "SIMPLETUNER_SSL_NO_VERIFY", value_parser = BoolishValueParser::new(), value_name = "BOOL",
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    pub ssl_no_verify: bool,
    /// Directory of jobs and their state [default: the user's state directory]
    #[arg(long, value_name = "DIR", env = "SIMPLETUNER_WORK_DIR")]
    pub work_dir: Option<PathBuf>,
    /// Trainer command (parsed like a shell, run without one)
    #[arg(long, value_name = "COMMAND", env = "SIMPLETUNER_TRAINER", default_value = "python3 -m simpletuner.train")]
    pub trainer: String,
    /// Number of GPUs to report instead of the detected one
    #[arg(long, value_name = "N")]
    pub gpu_count: Option<u32>,
    /// GPU model to report
    #[arg(long, value_name = "NAME")]
    pub gpu_name: Option<String>,
    /// Memory of each GPU to report, in GB
    #[arg(long, value_name = "GB")]
    pub gpu_vram_gb: Option<f64>,
    /// Accelerator to report
    #[arg(long, value_name = "KIND", value_parser = ["cuda", "rocm", "mps", "xpu", "cpu"])]
    pub accelerator: Option<String>,
    /// Pass this environment variable to trainers (repeatable)
    #[arg(long = "pass-env", value_name = "NAME")]
    pub pass_env: Vec<String>,
    /// Action for running jobs on SIGTERM or Ctrl-C [default: leave if persistent, else requeue]
    #[arg(long, value_enum, value_name = "HOW")]
    pub on_stop: Option<OnStop>,
    /// Seconds between asking a trainer to stop and killing it
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=MAX_STOP_GRACE_SECONDS))]
    pub stop_grace: u64,
    #[command(flatten)]
    pub spool: SpoolArgs,
    #[command(flatten)]
    pub disk: DiskArgs,
    #[command(flatten)]
    pub limits: JobLimitArgs,
    /// Seconds without contact after which an idle ephemeral worker exits
    #[arg(long, value_name = "SECONDS", default_value_t = 600, hide = true)]
    pub give_up_after: u64,
    /// Seconds without data after which the stream is reconnected; the server pings every 15 s
    #[arg(long, value_name = "SECONDS", default_value_t = 40, hide = true)]
    pub stream_patience: u64,
    /// Seconds of long polling before a silent stream is tried again
    #[arg(long, value_name = "SECONDS", default_value_t = 600, hide = true)]
    pub poll_for: u64,
    #[command(flatten)]
    pub jobs: jobs::JobArgs,
    #[command(flatten)]
    pub ops: ShutdownArgs,
    #[command(flatten)]
    pub input_limits: InputLimits,
}

/// What happens to running jobs when the agent is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnStop {
    /// Trainers keep running under their supervisors; the next agent adopts them
    Leave,
    /// Trainers are stopped, and their jobs are requeued
    Requeue,
    /// The agent waits for them, and accepts no new jobs
    Finish,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print a JSON array instead of lines
    #[arg(long)]
    pub json: bool,
    /// The flags of the agent to diagnose.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Whether the argument came from a flag, not from the environment.
pub fn is_on_command_line(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}
