//! The command line: the agent, and its commands.

mod gpu;
mod start;

use std::path::PathBuf;
use std::process::ExitCode;

use app::command_line::ignore_empty_env_vars;
use app::logging::background_writer;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::worker::args::{AgentArgs, DoctorArgs};
use crate::worker::exit::FatalError;
use crate::worker::{doctor, probe, run_as, sandbox, supervisor};

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
    /// Supervise trainers that standard input assigns, one after the other (started by the agent)
    #[command(hide = true)]
    Supervise {
        /// The agent's work directory, for lists of processes
        work_dir: PathBuf,
        /// Where control groups of jobs are created
        #[arg(long)]
        cgroup_parent: Option<PathBuf>,
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

impl WorkerCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Exit code and message.
    pub fn run(self, matches: &ArgMatches) -> Result<u8, FatalError> {
        match self {
            Self::Supervise { work_dir: _, cgroup_parent } => supervisor::main(cgroup_parent.as_deref()),
            Self::Sandbox { attempt_dir, init } => sandbox::enter::main(&attempt_dir, init),
            Self::Gpus(args) => gpu::run(args),
            Self::Probe { trainer } => probe::main(&trainer),
            Self::Doctor(args) => doctor::main(*args, matches),
        }
    }
}

/// Runs the command line.
pub fn run() -> ExitCode {
    if let Err(fatal) = run_as::become_user() {
        return start::report_fatal(&fatal);
    }
    // `simpletuner worker …` also works if this program is installed under that name.
    let args =
        std::env::args_os().enumerate().filter(|(index, arg)| *index != 1 || arg != "worker").map(|(_, arg)| arg);
    let matches = ignore_empty_env_vars(Cli::command()).get_matches_from(args);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match cli.command {
        Some(command) => command.run(&matches),
        None => start::run_agent(cli.agent, &matches),
    };
    let code = result.map_or_else(|fatal| start::report_fatal(&fatal), ExitCode::from);
    background_writer::flush();
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn switches_accept_boolean_values() {
        let parse =
            |line: &[&str]| Cli::try_parse_from(line).map(|cli| (cli.agent.persistent, cli.agent.ssl_no_verify));
        assert_eq!(parse(&["w"]).ok(), Some((false, false)));
        assert_eq!(parse(&["w", "--persistent", "--ssl-no-verify"]).ok(), Some((true, true)));
        for (yes, no) in [("1", "0"), ("true", "false"), ("yes", "no"), ("on", "off")] {
            let flags = |value| [format!("--persistent={value}"), format!("--ssl-no-verify={value}")];
            let ([p_yes, s_yes], [p_no, s_no]) = (flags(yes), flags(no));
            assert_eq!(parse(&["w", &p_yes, &s_yes]).ok(), Some((true, true)), "{yes}");
            assert_eq!(parse(&["w", &p_no, &s_no]).ok(), Some((false, false)), "{no}");
        }
        assert!(parse(&["w", "--persistent=maybe"]).is_err() && parse(&["w", "--ssl-no-verify=maybe"]).is_err());
    }
}
