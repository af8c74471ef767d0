//! `simpletuner config …`: shows and checks the server's settings. Both commands accept the flags of
//! `simpletuner server`.

mod check;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::process::ExitCode;

use app::protocol::system::SettingView;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Subcommand};
use serde_json::{Value, json};

use self::check::{SettingCheck, check_settings};
use crate::args::ServerArgs;
use crate::exit::ExitError;

/// Variables that are read without a flag, and those of the agent, which may be in the same environment.
const OTHER_VARIABLES: [&str; 23] = [
    "SIMPLETUNER_LOG",
    "SIMPLETUNER_DIST",
    "SIMPLETUNER_TEST_POSTGRES",
    "SIMPLETUNER_ORCHESTRATOR_URL",
    "SIMPLETUNER_ORCHESTRATOR_FINGERPRINT",
    "SIMPLETUNER_WORKER_TOKEN",
    "SIMPLETUNER_WORKER_TOKEN_FILE",
    "SIMPLETUNER_WORKER_NAME",
    "SIMPLETUNER_WORKER_PERSISTENT",
    "SIMPLETUNER_WORKER_TRAINER_CWD",
    "SIMPLETUNER_CA_FILE",
    "SIMPLETUNER_SSL_NO_VERIFY",
    "SIMPLETUNER_WORK_DIR",
    "SIMPLETUNER_TRAINER",
    "SIMPLETUNER_KEEP_FREE",
    "SIMPLETUNER_RUN_AS",
    "SIMPLETUNER_SANDBOX_MIN",
    "SIMPLETUNER_PATHS",
    "SIMPLETUNER_DATA_ROOT",
    "SIMPLETUNER_URL",
    "SIMPLETUNER_API_TOKEN",
    "SIMPLETUNER_API_TOKEN_FILE",
    "SIMPLETUNER_API_KEY",
];

/// Commands for settings.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check whether a server can start with these settings; exits with 78 if not.
    Check(Box<ConfigArgs>),
    /// Show each setting with its value and source, without secrets.
    Show(Box<ConfigArgs>),
}

/// Flags of a server, and the output format.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[arg(long)]
    json: bool,
}

/// Runs the command; `matches` is the parsed command line.
pub fn main(command: &ConfigCommand, matches: &ArgMatches) -> ExitCode {
    let set_args = matches.subcommand().and_then(|(_, config)| config.subcommand()).map(|(_, set_args)| set_args);
    let out = &mut std::io::stdout().lock();
    let outcome = match (command, set_args) {
        (ConfigCommand::Show(args), Some(set_args)) => {
            print_settings(&list_settings(set_args), args.json, out).map(|()| true)
        }
        (ConfigCommand::Check(args), _) => print_check(args, out),
        (ConfigCommand::Show(_), None) => Ok(true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(78),
        // The reader may close the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => ExitError::failed(format!("cannot write the output: {error}")).print(),
    }
}

/// Returns the server's settings in the order of its help.
pub fn list_settings(set_args: &ArgMatches) -> Vec<SettingView> {
    let command = server_command();
    let arguments = command.get_arguments().filter(|argument| argument.get_long().is_some_and(|flag| flag != "json"));
    arguments.map(|argument| describe_setting(argument, set_args)).collect()
}

fn describe_setting(argument: &Arg, set_args: &ArgMatches) -> SettingView {
    let id = argument.get_id().as_str();
    let value = set_args.get_raw(id).map(|values| {
        let values: Vec<_> = values.map(|value| value.to_string_lossy().into_owned()).collect();
        // Hidden in the help, so hidden here.
        if argument.is_hide_env_values_set() { "(not shown)".to_owned() } else { values.join(",") }
    });
    let source = match set_args.value_source(id) {
        Some(ValueSource::CommandLine) => "flag",
        Some(ValueSource::EnvVariable) => "environment",
        _ => "default",
    };
    SettingView {
        flag: format!("--{}", argument.get_long().unwrap_or_default()),
        variable: argument.get_env().map(|name| name.to_string_lossy().into_owned()),
        value,
        source: source.to_owned(),
    }
}

/// Returns the flags of `simpletuner server`.
fn server_command() -> Command {
    ServerArgs::augment_args(Command::new("server"))
}

fn print_settings(settings: &[SettingView], as_json: bool, out: &mut impl Write) -> std::io::Result<()> {
    if as_json {
        return writeln!(out, "{}", json!({"settings": settings}));
    }
    let width = settings.iter().map(|setting| setting.flag.len()).max().unwrap_or_default();
    for SettingView { flag, variable, value, source } in settings {
        let source = match (source.as_str(), variable) {
            ("environment", Some(variable)) => variable.as_str(),
            (source, _) => source,
        };
        writeln!(out, "{flag:width$}  {}  ({source})", value.as_deref().unwrap_or("not set"))?;
    }
    Ok(())
}

/// Prints the results of a check; returns whether a server can start.
fn print_check(args: &ConfigArgs, out: &mut impl Write) -> std::io::Result<bool> {
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut checks = unknown_variables(variables);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    checks.extend(runtime.block_on(check_settings(&args.server)));
    let can_start = !checks.iter().any(|check| matches!(check, SettingCheck::Failed(_)));
    if args.json {
        let findings: Vec<Value> =
            checks.iter().map(|check| json!({"level": check.level(), "message": check.message()})).collect();
        writeln!(out, "{}", json!({"ok": can_start, "findings": findings}))?;
        return Ok(can_start);
    }
    for check in &checks {
        writeln!(out, "{:7} {}", check.level(), check.message())?;
    }
    writeln!(out, "{}", if can_start { "A server can start with these settings." } else { "A server cannot start." })?;
    Ok(can_start)
}

/// Returns `SIMPLETUNER_*` variables that nothing reads: mistyped, or of another version.
fn unknown_variables(variables: impl Iterator<Item = String>) -> Vec<SettingCheck> {
    let command = server_command();
    let known = |name: &str| {
        OTHER_VARIABLES.contains(&name)
            || command.get_arguments().any(|argument| argument.get_env().is_some_and(|env| env == name))
    };
    let mut unknown: Vec<String> = variables.filter(|name| name.starts_with("SIMPLETUNER_") && !known(name)).collect();
    unknown.sort();
    let names = unknown.into_iter();
    names
        .map(|name| SettingCheck::Warning(format!("{name} is unknown; `simpletuner config show` lists the variables")))
        .collect()
}
