//! Crashes server and agent at each of their file operations, and checks what they recover.

mod agent;
mod agent_killed;
mod calls;
mod canonical;
mod check;
mod client;
mod damage;
mod disk;
mod host;
mod kills;
mod observation;
mod operation;
mod options;
mod pool;
mod postgres;
mod program;
mod recorder;
mod recording;
mod server;
mod sqlite;
mod states;
mod sweep;
mod tracer;
mod wait;
mod watched;
mod workload;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::options::{Options, Part};
use crate::sweep::Findings;

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let scratch = tempfile::Builder::new().prefix("simpletuner-crash-").tempdir_in(parent.canonicalize()?)?;
    let mut all = Vec::new();
    for part in options.parts() {
        match part {
            Part::ServerSqlite => all.extend(sqlite::run(&options, scratch.path())?),
            Part::ServerPostgres => all.push(postgres::run(&options, scratch.path())?),
            Part::AgentLost | Part::Agent => all.push(agent::run_lost(&options, scratch.path())?),
            Part::AgentDamaged => all.push(agent::run_damaged(&options, scratch.path())?),
            Part::AgentKilled => all.push(agent_killed::run(&options, scratch.path())?),
        }
    }
    print_table(&all);
    if all.iter().all(Findings::is_as_expected) {
        return Ok(ExitCode::SUCCESS);
    }
    println!("the directories of failures are below {}", scratch.keep().display());
    Ok(ExitCode::FAILURE)
}

fn print_table(all: &[Findings]) {
    println!(
        "{:<60} {:>10} {:>6} {:>6} {:>12} {:>15} {:>8} {:>7}",
        "part", "operations", "every", "offset", "crash states", "distinct states", "failures", "seconds"
    );
    for found in all {
        println!(
            "{:<60} {:>10} {:>6} {:>6} {:>12} {:>15} {:>8} {:>7.1}",
            found.part,
            found.points,
            found.selection.every,
            found.selection.offset,
            found.states,
            found.distinct,
            found.failures,
            found.duration.as_secs_f64()
        );
    }
}
