//! `simpletuner-worker doctor`: diagnoses line by line why this host gets jobs or not.
//!
//! Facts are collected by [`connection_probe`] and [`host_facts`], and evaluated by pure functions ([`network_checks`],
//! [`host_checks`]). It takes the agent's flags and variables, does not register, and does not disturb a running agent.

mod certificate;
mod connection_probe;
mod diagnostic;
mod host_checks;
mod host_facts;
mod network_checks;

use std::io::{IsTerminal, Write};

use app::remote::ServerTrust;
use clap::ArgMatches;

use self::diagnostic::{Diagnostic, DiagnosticLevel};
use crate::worker::args::ops::LogFormat;
use crate::worker::args::{DoctorArgs, is_on_command_line};
use crate::worker::config::disk::MinFreeSpace;
use crate::worker::config::{self, AgentConfig};
use crate::worker::exit::{self, FatalError};
use crate::worker::gpu::{self, Hardware};
use crate::worker::limits;
use crate::worker::secret::{Secret, agent_secrets};
use crate::worker::startup;

/// Prints the report. Returns 0 if nothing fails, otherwise 1.
///
/// # Errors
/// If no report can be created.
pub fn main(args: DoctorArgs, matches: &ArgMatches) -> Result<u8, FatalError> {
    let matches = matches.subcommand_matches("doctor").unwrap_or(matches);
    let on_command_line = is_on_command_line(matches, "worker_token");
    startup::initialize(args.agent.verbose, LogFormat::Explicit(app::logging::LogLineFormat::Text));
    if args.agent.worker_token.is_some() && on_command_line {
        return Err(startup::reexec_without_token());
    }
    let json = args.json;
    let lines = report(args, matches)?;
    print_diagnostics(&lines, json).map_err(|error| FatalError::error(format!("cannot print the report: {error}")))?;
    Ok(if lines.iter().any(|line| line.verdict == DiagnosticLevel::Fail) { exit::ERROR } else { exit::OK })
}

fn print_diagnostics(lines: &[Diagnostic], json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        return writeln!(out, "{}", agent_secrets::mask_text(&serde_json::to_string_pretty(lines)?));
    }
    let colors = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    lines.iter().try_for_each(|line| writeln!(out, "{}", agent_secrets::mask_text(&line.render(colors))))
}

/// Checks the settings, the connection and the host.
fn report(args: DoctorArgs, matches: &ArgMatches) -> Result<Vec<Diagnostic>, FatalError> {
    let agent = &args.agent;
    let url = config::orchestrator_url(agent);
    let token = config::worker_token(agent, matches);
    let trust =
        ServerTrust::from_flags(agent.ssl_no_verify, agent.ca_file.clone(), agent.orchestrator_fingerprint.as_deref());
    let work_dir = config::work_dir(agent);
    let command = config::parse_trainer(&agent.trainer);
    let min_free = MinFreeSpace::from_flag(agent.disk.keep_free);

    let mut lines = vec![match &url {
        Ok(url) => Diagnostic::ok("url", url.to_string()),
        Err(fatal) => Diagnostic::fail_with_sentence("url", &fatal.sentence),
    }];
    lines.extend(
        trust
            .clone()
            .map_err(FatalError::from)
            .err()
            .map(|fatal| Diagnostic::fail_with_sentence("tls", fatal.sentence)),
    );
    if let (Ok(url), Ok(trust)) = (&url, &trust) {
        lines.extend(orchestrator_diagnostics(url, trust, token.as_ref().ok())?);
    }
    lines.extend(token.as_ref().err().map(|fatal| Diagnostic::fail_with_sentence("token", &fatal.sentence)));
    match &work_dir {
        Ok(dir) => lines.extend(host_checks::check_disk(&host_facts::inspect_disk(dir, min_free))),
        Err(fatal) => lines.push(Diagnostic::fail_with_sentence("work directory", &fatal.sentence)),
    }
    let settings_are_valid = url.is_ok() && token.is_ok() && trust.is_ok() && work_dir.is_ok() && command.is_ok();
    let hardware = match AgentConfig::from_args(args.agent, matches) {
        Ok(config) => {
            let hardware = gpu::detect(&config.gpu, &config.hostname);
            let sandbox = host_facts::inspect_sandbox(&config);
            lines.push(host_checks::check_sandbox(&sandbox, !hardware.gpus.is_empty()));
            let jobs = config.max_jobs.resolve(hardware.gpus.len());
            let limits = limits::HostLimits::inspect(&config.work_dir, config.job_limits, jobs);
            lines.push(host_checks::check_job_limits(&limits.to_report()));
            hardware
        }
        Err(fatal) => {
            // An error in one of these is already reported.
            lines.extend(settings_are_valid.then(|| Diagnostic::fail_with_sentence("settings", fatal.sentence)));
            gpu::detect(&config::GpuOverrides::default(), "local")
        }
    };
    lines.extend(host_diagnostics(&hardware, command));
    Ok(lines)
}

fn orchestrator_diagnostics(
    url: &reqwest::Url,
    trust: &ServerTrust,
    token: Option<&Secret>,
) -> Result<Vec<Diagnostic>, FatalError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| FatalError::error(format!("cannot start: {error}")))?;
    let result = runtime.block_on(connection_probe::probe(url, trust, token));
    // A pending name lookup does not delay the report.
    runtime.shutdown_background();
    Ok(match result {
        Ok(probe) => network_checks::check_connection(url, trust, &probe),
        Err(fatal) => vec![Diagnostic::fail_with_sentence("tls", fatal.sentence)],
    })
}

fn host_diagnostics(hardware: &Hardware, command: Result<Vec<String>, FatalError>) -> Vec<Diagnostic> {
    let mut lines = vec![host_checks::check_gpus(hardware, host_facts::nvidia_module_version().as_deref())];
    match command {
        Ok(command) => {
            lines.extend(host_checks::check_trainer(&host_facts::inspect_trainer(command, hardware.gpus.len())));
        }
        Err(fatal) => lines.push(Diagnostic::fail_with_sentence("trainer", fatal.sentence)),
    }
    let cgroup = host_facts::inspect_cgroup();
    lines.push(host_checks::check_cgroup(&cgroup));
    lines.extend(host_checks::check_limits(host_facts::inspect_limits()));
    lines.extend(host_checks::check_memory(host_facts::inspect_memory(&cgroup)));
    lines
}
