//! The command line, logging, and keeping the token out of the process list.

pub mod bounds;
mod disk;
pub mod gpu;
pub mod jobs;
pub mod limits;
pub mod ops;
mod spool;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use app::logging::{Format, Lines, queue};
use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::prelude::*;

use self::bounds::Bounds;
use self::disk::DiskArgs;
use self::limits::LimitArgs;
use self::ops::{LogFormat, OpsArgs};
use self::spool::SpoolArgs;
use crate::exit::Fatal;
use crate::service::terminal;
use crate::{doctor, probe, sandbox, supervisor};

/// The environment variable of the worker's token.
pub const TOKEN_VARIABLE: &str = "SIMPLETUNER_WORKER_TOKEN";
/// The longest `--stop-grace`, in seconds: 30 days.
pub const LONGEST_GRACE: u64 = 30 * 24 * 60 * 60;

/// Runs training jobs for an orchestrator on this machine.
#[derive(Debug, Parser)]
#[command(name = "simpletuner-worker", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Something else than being the agent.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The agent's flags.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// What the binary also is.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs one trainer; the agent starts this by itself.
    #[command(hide = true)]
    Supervise {
        /// The attempt's directory.
        attempt_dir: PathBuf,
    },
    /// Confines itself and becomes the trainer; the supervisor starts this by itself.
    #[command(hide = true)]
    Sandbox {
        /// The attempt's directory.
        attempt_dir: PathBuf,
        /// Be the first process of the sandbox.
        #[arg(long)]
        init: bool,
    },
    /// Lists this machine's GPUs with their state
    Gpus(gpu::GpusArgs),
    /// Says what this machine could run; the orchestrator starts this by itself.
    #[command(hide = true)]
    Probe {
        /// The trainer's command.
        #[arg(long, env = "SIMPLETUNER_TRAINER", default_value = "python3 -m simpletuner.train")]
        trainer: String,
    },
    /// Says line by line why this host would get jobs or would not; takes the same flags and variables
    Doctor(Box<DoctorArgs>),
}

/// Of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print an array of JSON instead of lines
    #[arg(long)]
    pub json: bool,
    /// Those of the agent that is meant.
    #[command(flatten)]
    pub agent: AgentArgs,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// With the exit code and the sentence for who asked.
    pub fn run(self, matches: &ArgMatches) -> Result<u8, Fatal> {
        match self {
            Self::Supervise { attempt_dir } => supervisor::main(&attempt_dir),
            Self::Sandbox { attempt_dir, init } => sandbox::enter::main(&attempt_dir, init),
            Self::Gpus(args) => gpu::run(args),
            Self::Probe { trainer } => probe::main(&trainer),
            Self::Doctor(args) => doctor::main(*args, matches),
        }
    }
}

/// The agent's flags and their variables; a flag wins over its variable.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Orchestrator panel URL
    #[arg(long, value_name = "URL", env = "SIMPLETUNER_ORCHESTRATOR_URL")]
    pub orchestrator_url: Option<String>,
    /// Authentication token (better given as variable or file: the command line is visible to other users)
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
    pub worker_token: Option<String>,
    /// File that holds the authentication token
    #[arg(long, value_name = "FILE", env = "SIMPLETUNER_WORKER_TOKEN_FILE")]
    pub worker_token_file: Option<PathBuf>,
    /// Worker name [default: hostname]
    #[arg(long, env = "SIMPLETUNER_WORKER_NAME")]
    pub name: Option<String>,
    /// Stay online between jobs [default: ephemeral, ends after one job]
    #[arg(long, env = "SIMPLETUNER_WORKER_PERSISTENT", value_parser = BoolishValueParser::new(), value_name = "BOOL",
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    pub persistent: bool,
    /// Enable debug logging
    #[arg(short, long)]
    pub verbose: bool,
    /// Log as text for people, or as a JSON object a line; auto: text with a status line on a terminal, JSON elsewhere
    #[arg(long, value_name = "auto|text|json", env = "SIMPLETUNER_LOG_FORMAT", default_value = "auto", value_parser = LogFormat::parse)]
    pub log_format: LogFormat,
    /// Label to report, `key=value` (repeatable); labels set by an admin win
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Accept the orchestrator by the fingerprint of its key, as its dashboard shows it, and by nothing else
    #[arg(long, value_name = "sha256:HEX", env = "SIMPLETUNER_ORCHESTRATOR_FINGERPRINT")]
    pub orchestrator_fingerprint: Option<String>,
    /// Trust the certificates in this PEM file, and not those of the system
    #[arg(long, value_name = "FILE", env = "SIMPLETUNER_CA_FILE")]
    pub ca_file: Option<PathBuf>,
    /// Do not verify the orchestrator's certificate (development only; --orchestrator-fingerprint is the safe way)
    #[arg(long, env = "SIMPLETUNER_SSL_NO_VERIFY", value_parser = BoolishValueParser::new(), value_name = "BOOL",
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    pub ssl_no_verify: bool,
    /// Where jobs and their state live [default: the user's state directory]
    #[arg(long, value_name = "DIR", env = "SIMPLETUNER_WORK_DIR")]
    pub work_dir: Option<PathBuf>,
    /// Trainer command, split like a shell would but not given to one
    #[arg(long, value_name = "COMMAND", env = "SIMPLETUNER_TRAINER", default_value = "python3 -m simpletuner.train")]
    pub trainer: String,
    /// Report this many GPUs instead of what was detected
    #[arg(long, value_name = "N")]
    pub gpu_count: Option<u32>,
    /// Report this model name for the GPUs
    #[arg(long, value_name = "NAME")]
    pub gpu_name: Option<String>,
    /// Report this much memory per GPU, in GB
    #[arg(long, value_name = "GB")]
    pub gpu_vram_gb: Option<f64>,
    /// Report this kind of accelerator
    #[arg(long, value_name = "KIND", value_parser = ["cuda", "rocm", "mps", "xpu", "cpu"])]
    pub accelerator: Option<String>,
    /// Hand this environment variable to trainers (repeatable)
    #[arg(long = "pass-env", value_name = "NAME")]
    pub pass_env: Vec<String>,
    /// What happens to a running job on SIGTERM or Ctrl-C [default: leave if persistent, else requeue]
    #[arg(long, value_enum, value_name = "HOW")]
    pub on_stop: Option<OnStop>,
    /// Seconds between asking a trainer to stop and killing it
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=LONGEST_GRACE))]
    pub stop_grace: u64,
    /// What a job may leave on the disk.
    #[command(flatten)]
    pub spool: SpoolArgs,
    /// What is kept free of it.
    #[command(flatten)]
    pub disk: DiskArgs,
    /// What a job may take of the host.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Seconds without any contact after which an idle ephemeral worker gives up
    #[arg(long, value_name = "SECONDS", default_value_t = 600, hide = true)]
    pub give_up_after: u64,
    /// Seconds that a stream may be silent; the server pings each 15 s
    #[arg(long, value_name = "SECONDS", default_value_t = 40, hide = true)]
    pub stream_patience: u64,
    /// Seconds of long polls after which a stream that brought nothing gets another chance
    #[arg(long, value_name = "SECONDS", default_value_t = 600, hide = true)]
    pub poll_for: u64,
    /// How jobs run here.
    #[command(flatten)]
    pub jobs: jobs::JobArgs,
    /// How it is operated.
    #[command(flatten)]
    pub ops: OpsArgs,
    /// How much it reads.
    #[command(flatten)]
    pub bounds: Bounds,
}

/// What happens to running jobs when the agent is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnStop {
    /// Trainers go on under their supervisors; the next agent adopts them.
    Leave,
    /// Trainers are stopped, and their jobs go back to the queue.
    Requeue,
    /// The agent waits for them, and takes nothing new.
    Finish,
}

/// Whether the argument came as a flag and not from the environment.
pub fn is_on_command_line(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// What an agent does before anything else. Answers with how it logs.
pub fn begin(verbose: bool, format: LogFormat) -> Format {
    let on_terminal = std::io::stderr().is_terminal();
    if format == LogFormat::Auto && on_terminal {
        terminal::open();
    }
    let format = format.on(on_terminal);
    queue::start(terminal::screen());
    start_logging(verbose, format);
    keep_memory_private();
    format
}

/// Nobody but root may read this process's memory and environment, where the worker's token is; its trainers are the
/// same user. No core dump has it either.
fn keep_memory_private() {
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "other processes of this user can read the token from this one's memory");
    }
}

/// Sends the agent's own log to stderr.
pub fn start_logging(verbose: bool, format: Format) {
    let level = if verbose { tracing::Level::DEBUG } else { tracing::Level::INFO };
    let filter = tracing_subscriber::filter::Targets::new().with_target("simpletuner_worker", level);
    let lines = Lines { format, with_target: false, around: crate::attempt::around };
    let ansi = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() && format == Format::Text;
    let layer = tracing_subscriber::fmt::layer().event_format(lines).with_writer(terminal::log).with_ansi(ansi);
    // What cannot be written is lost. Told on stderr, as is usual, it would be a panic of whatever has logged.
    let layer = layer.log_internal_errors(false);
    // Only a second call fails, and then the first one's choice holds.
    let _ = tracing_subscriber::registry().with(filter).with(layer).try_init();
}

/// Starts the same command again with the token in its environment, which only this user can read.
/// Returns only if that fails.
pub fn leave_process_list() -> Fatal {
    tracing::warn!(
        "--worker-token on the command line is visible to other users of this machine; moving it to the environment. \
         {TOKEN_VARIABLE} or --worker-token-file avoid this"
    );
    let (token, rest) = without_token(std::env::args_os().skip(1));
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Fatal::error(format!("cannot find the own program file: {error}")),
    };
    let mut command = std::process::Command::new(program);
    queue::flush();
    let error = command.args(rest).env(TOKEN_VARIABLE, token.unwrap_or_default()).exec();
    Fatal::error(format!("cannot start again without the token on the command line: {error}"))
}

/// The arguments without `--worker-token`, and its (last) value.
fn without_token(args: impl Iterator<Item = OsString>) -> (Option<OsString>, Vec<OsString>) {
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
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_token_leaves_the_arguments() {
        let args = |list: &[&str]| without_token(list.iter().map(OsString::from).collect::<Vec<_>>().into_iter());
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
    fn switches_read_words() {
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
