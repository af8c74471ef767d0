//! `simpletuner-worker doctor`: why this host would get jobs, or would not, line by line.
//!
//! What is looked at is found by effects ([`way`], [`look`]) and judged by pure functions ([`network`], [`host`]). It takes
//! the flags and variables of the agent, registers nowhere, and takes no worker away from an agent that runs.

mod certificate;
mod host;
mod line;
mod look;
mod network;
mod way;

use std::io::{IsTerminal, Write};

use app::remote::Trust;
use clap::ArgMatches;

use self::line::{Line, Verdict};
use crate::cli::ops::LogFormat;
use crate::cli::{self, DoctorArgs};
use crate::config::disk::KeepFree;
use crate::config::{self, Config};
use crate::exit::{self, Fatal};
use crate::gpu::{self, Hardware};
use crate::limits;
use crate::secret::{Secret, own};

/// Prints the report. 0 if nothing is in the way, else 1.
///
/// # Errors
/// If it cannot be made at all.
pub fn main(args: DoctorArgs, matches: &ArgMatches) -> Result<u8, Fatal> {
    let matches = matches.subcommand_matches("doctor").unwrap_or(matches);
    let on_command_line = cli::is_on_command_line(matches, "worker_token");
    cli::begin(args.agent.verbose, LogFormat::As(app::logging::Format::Text));
    if args.agent.worker_token.is_some() && on_command_line {
        return Err(cli::leave_process_list());
    }
    let json = args.json;
    let lines = report(args, matches)?;
    print(&lines, json).map_err(|error| Fatal::error(format!("the report cannot be printed: {error}")))?;
    Ok(if lines.iter().any(|line| line.verdict == Verdict::Fail) { exit::ERROR } else { exit::OK })
}

fn print(lines: &[Line], json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        return writeln!(out, "{}", own::text_without(&serde_json::to_string_pretty(lines)?));
    }
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    lines.iter().try_for_each(|line| writeln!(out, "{}", own::text_without(&line.text(colours))))
}

/// Settings, the way to the orchestrator, and the host.
fn report(args: DoctorArgs, matches: &ArgMatches) -> Result<Vec<Line>, Fatal> {
    let agent = &args.agent;
    let url = config::url(agent);
    let token = config::token(agent, matches);
    let trust = Trust::of(agent.ssl_no_verify, agent.ca_file.clone(), agent.orchestrator_fingerprint.as_deref());
    let work_dir = config::work_dir(agent);
    let command = config::parse_trainer(&agent.trainer);
    let keep = KeepFree::of(agent.disk.keep_free);

    let mut lines = vec![match &url {
        Ok(url) => Line::ok("url", url.to_string()),
        Err(fatal) => Line::failed("url", &fatal.sentence),
    }];
    lines.extend(trust.clone().map_err(Fatal::from).err().map(|fatal| Line::failed("tls", fatal.sentence)));
    if let (Ok(url), Ok(trust)) = (&url, &trust) {
        lines.extend(orchestrator(url, trust, token.as_ref().ok())?);
    }
    lines.extend(token.as_ref().err().map(|fatal| Line::failed("token", &fatal.sentence)));
    match &work_dir {
        Ok(dir) => lines.extend(host::disk(&look::disk(dir, keep))),
        Err(fatal) => lines.push(Line::failed("work directory", &fatal.sentence)),
    }
    let parts_are_well = url.is_ok() && token.is_ok() && trust.is_ok() && work_dir.is_ok() && command.is_ok();
    let hardware = match Config::new(args.agent, matches) {
        Ok(config) => {
            lines.push(host::sandbox(&look::sandbox(&config)));
            let hardware = gpu::detect(&config.gpu, &config.host);
            let jobs = config.max_jobs.on(hardware.gpus.len());
            let limits = limits::Host::look(&config.work_dir, config.job_limits, jobs);
            lines.push(host::job_limits(&limits.reported()));
            hardware
        }
        Err(fatal) => {
            // What is wrong with one of these was said.
            lines.extend(parts_are_well.then(|| Line::failed("settings", fatal.sentence)));
            gpu::detect(&config::GpuOverrides::default(), "local")
        }
    };
    lines.extend(this_host(&hardware, command));
    Ok(lines)
}

fn orchestrator(url: &reqwest::Url, trust: &Trust, token: Option<&Secret>) -> Result<Vec<Line>, Fatal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fatal::error(format!("cannot start: {error}")))?;
    let walked = runtime.block_on(way::walk(url, trust, token));
    // A name that is still being looked up does not hold up the report.
    runtime.shutdown_background();
    Ok(match walked {
        Ok(way) => network::judge(url, trust, &way),
        Err(fatal) => vec![Line::failed("tls", fatal.sentence)],
    })
}

fn this_host(hardware: &Hardware, command: Result<Vec<String>, Fatal>) -> Vec<Line> {
    let mut lines = vec![host::gpus(hardware, look::kernel_module().as_deref())];
    match command {
        Ok(command) => lines.extend(host::trainer(&look::trainer(command, hardware.gpus.len()))),
        Err(fatal) => lines.push(Line::failed("trainer", fatal.sentence)),
    }
    let cgroup = look::cgroup();
    lines.push(host::cgroup(&cgroup));
    lines.extend(host::limits(look::limits()));
    lines.extend(host::memory(look::memory(&cgroup)));
    lines
}
