//! The command line, logging, and hiding the token from the process list.

mod disk;
pub mod gpu;
pub mod input_limits;
pub mod jobs;
pub mod limits;
pub mod ops;
mod spool;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use app::logging::{LogFormatter, LogLineFormat, background_writer};
use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::prelude::*;

use self::disk::DiskArgs;
use self::input_limits::InputLimits;
use self::limits::JobLimitArgs;
use self::ops::{LogFormat, ShutdownArgs};
use self::spool::SpoolArgs;
use crate::daemon::terminal;
use crate::exit::FatalError;
use crate::{doctor, probe, sandbox, supervisor};

pub const WORKER_TOKEN_ENV: &str = "SIMPLETUNER_WORKER_TOKEN";
/// The longest `--stop-grace`, in seconds: 30 days.
pub const MAX_STOP_GRACE_SECONDS: u64 = 30 * 24 * 60 * 60;

/// Run training jobs for an orchestrator on this machine.
#[derive(Debug, Parser)]
#[command(name = "simpletuner-worker", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<WorkerCommand>,
    #[command(flatten)]
    pub agent: AgentArgs,
}

#[derive(Debug, Subcommand)]
pub enum WorkerCommand {
    /// Supervise one trainer (started by the agent)
    #[command(hide = true)]
    Supervise {
        /// Directory of the attempt
        attempt_dir: PathBuf,
    },
    /// Enter the sandbox and run the trainer (started by the supervisor)
    #[command(hide = true)]
    Sandbox {
        /// Directory of the attempt
        attempt_dir: PathBuf,
        /// Run as process 1 of the sandbox
        #[arg(long)]
        init: bool,
    },
    /// List this machine's GPUs and their state
    Gpus(gpu::GpusArgs),
    /// Report what this machine can run (started by the orchestrator)
    #[command(hide = true)]
    Probe {
        /// Trainer command
        #[arg(long, env = "SIMPLETUNER_TRAINER", default_value = "python3 -m simpletuner.train")]
        trainer: String,
    },
    /// Diagnose this host: connectivity, token, GPUs, trainer (accepts the agent's flags and variables)
    Doctor(Box<DoctorArgs>),
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

impl WorkerCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Exit code and message.
    pub fn run(self, matches: &ArgMatches) -> Result<u8, FatalError> {
        match self {
            Self::Supervise { attempt_dir } => supervisor::main(&attempt_dir),
            Self::Sandbox { attempt_dir, init } => sandbox::enter::main(&attempt_dir, init),
            Self::Gpus(args) => gpu::run(args),
            Self::Probe { trainer } => probe::main(&trainer),
            Self::Doctor(args) => doctor::main(*args, matches),
        }
    }
}

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

/// Whether the argument came from a flag, not from the environment.
pub fn is_on_command_line(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Initializes the process before anything else. Returns the log format.
pub fn initialize(verbose: bool, format: LogFormat) -> LogLineFormat {
    let on_terminal = std::io::stderr().is_terminal();
    if format == LogFormat::Auto && on_terminal {
        terminal::enable();
    }
    let format = format.resolve(on_terminal);
    background_writer::start(terminal::terminal_writer());
    init_logging(verbose, format);
    disable_process_dump();
    format
}

/// Prevents other processes of this user, such as trainers, from reading this process's memory and environment, which
/// contain the worker's token. Also disables core dumps.
fn disable_process_dump() {
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "other processes of this user can read the token from the agent's memory");
    }
}

/// Sends the agent's own log to stderr.
pub fn init_logging(verbose: bool, format: LogLineFormat) {
    let level = if verbose { tracing::Level::DEBUG } else { tracing::Level::INFO };
    let filter = tracing_subscriber::filter::Targets::new().with_target("simpletuner_worker", level);
    let lines = LogFormatter { format, with_target: false, context: crate::attempt::log_context };
    let ansi =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() && format == LogLineFormat::Text;
    let layer = tracing_subscriber::fmt::layer().event_format(lines).with_writer(terminal::log_writer).with_ansi(ansi);
    // Log lines that cannot be written are lost. The default, an error on stderr, would panic in the code that logs.
    let layer = layer.log_internal_errors(false);
    // Fails only at a second call; the first one's settings then stay.
    let _ = tracing_subscriber::registry().with(filter).with(layer).try_init();
}

/// Restarts the same command with the token in its environment, which only this user can read. Returns only on failure.
pub fn reexec_without_token() -> FatalError {
    tracing::warn!(
        "--worker-token on the command line is visible to other users of this machine; moving it to the environment. \
         {WORKER_TOKEN_ENV} or --worker-token-file avoid this"
    );
    let (token, rest) = split_token_arg(std::env::args_os().skip(1));
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return FatalError::error(format!("cannot find the path of this program: {error}")),
    };
    let mut command = std::process::Command::new(program);
    background_writer::flush();
    let error = command.args(rest).env(WORKER_TOKEN_ENV, token.unwrap_or_default()).exec();
    FatalError::error(format!("cannot restart without the token on the command line: {error}"))
}

/// The arguments without `--worker-token`, and its (last) value.
fn split_token_arg(args: impl Iterator<Item = OsString>) -> (Option<OsString>, Vec<OsString>) {
    let mut token = None;
    let mut rest = Vec::new();
    let mut args = args;
    while let Some(arg) = args.next() {
        if arg == "--worker-token" {
            token = args.next();
        } else if let Some(value) = arg.to_str().and_then(|text| text.strip_prefix("--worker-token=")) {
            token = Some(value.into());
        } else {
            rest.push(arg);
        }
    }
    (token, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn token_is_removed_from_the_arguments() {
        let args = |list: &[&str]| split_token_arg(list.iter().map(OsString::from).collect::<Vec<_>>().into_iter());
        let left = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let cases: [(&[&str], Option<&str>, &[&str]); 4] = [
            (&["--worker-token", "wt_a", "--persistent"], Some("wt_a"), &["--persistent"]),
            (&["--name", "x", "--worker-token=wt_b"], Some("wt_b"), &["--name", "x"]),
            (&["--worker-token-file", "f"], None, &["--worker-token-file", "f"]),
            (&["-v"], None, &["-v"]),
        ];
        for (given, token, rest) in cases {
            assert_eq!(args(given), (token.map(OsString::from), left(rest)));
        }
    }

    #[test]
    fn switches_accept_boolean_values() {
        let read = |line: &[&str]| Cli::try_parse_from(line).map(|cli| (cli.agent.persistent, cli.agent.ssl_no_verify));
        assert_eq!(read(&["w"]).ok(), Some((false, false)));
        assert_eq!(read(&["w", "--persistent", "--ssl-no-verify"]).ok(), Some((true, true)));
        for (yes, no) in [("1", "0"), ("true", "false"), ("yes", "no"), ("on", "off")] {
            let both = |word| [format!("--persistent={word}"), format!("--ssl-no-verify={word}")];
            let ([p_yes, s_yes], [p_no, s_no]) = (both(yes), both(no));
            assert_eq!(read(&["w", &p_yes, &s_yes]).ok(), Some((true, true)), "{yes}");
            assert_eq!(read(&["w", &p_no, &s_no]).ok(), Some((false, false)), "{no}");
        }
        assert!(read(&["w", "--persistent=maybe"]).is_err() && read(&["w", "--ssl-no-verify=maybe"]).is_err());
    }
}
