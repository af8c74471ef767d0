//! A model of the protocol between servers and agents, checked by Stateright in every reachable state within bounds.
//!
//! `cargo run --locked --release -p simpletuner-model -- [--nightly] [--steps] [CHECK]` prints a table of the checks and one of the
//! mutations (removed guards, each of which a property must find), and the steps to what is broken. It fails if a property is
//! broken, a check is not exhaustive or reaches too little, or a mutation is not found. `--nightly` has larger bounds;
//! `--steps` also prints the steps to each mutation; a name runs that check only.
//!
//! **Modeled:** two servers on one database with leadership and old reads; agents, supervisors and trainers of two hosts;
//! offers, leases, losses, recovery, drains, cancels, tokens, restarts and crashes of all of them. Messages are lost,
//! doubled, late and reordered. Time is relative (see [`ticks`]), so there is no bound on it.
//!
//! **Cannot drift:** servers decide by the functions of `app::domain` ([`service`], [`reports`], [`loops`], [`commands`] only load, call
//! and store); [`rows`] and [`workers`] are compact forms of their types. What the library does not contain is the agent
//! ([`agent`], [`apply_host`]): each rule names its file.
//!
//! **Abstracted:** a tick is 10 s and the timeouts are two ticks; what takes less (loops of the leader, writing contacts,
//! reading old state, stopping a trainer before its lease ends) happens within one. A transaction is one step. Ephemeral
//! workers, older agents, time limits and host health are left out; so are I6 and I9 (see [`properties`]).

mod action;
mod agent;
mod apply;
mod apply_host;
mod apply_server;
mod checks;
mod commands;
mod config;
mod loops;
mod messages;
mod mutations;
mod possible;
mod properties;
mod protocol;
mod reports;
mod rows;
mod service;
mod settle;
mod ticks;
mod violations;
mod workers;
mod world;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::action::Action;
use crate::config::{Config, Mutation};
use crate::properties::SETTLES;
use crate::protocol::Protocol;

/// A check that takes longer is not exhaustive, and fails.
const TIME_LIMIT: Duration = Duration::from_mins(15);
/// How many steps of a schedule without an end are printed.
const SHOWN_STEPS: usize = 12;

/// The result of a check.
struct CheckResult {
    generated: usize,
    unique: usize,
    depth: usize,
    took: Duration,
    /// The broken property, and the steps to it.
    broken: Option<(&'static str, Vec<String>)>,
    /// States that were not reached.
    missing: Vec<&'static str>,
}

fn check(config: Config, mutation: Option<Mutation>) -> CheckResult {
    let started = Instant::now();
    let protocol = Protocol::new(config, mutation).checker().threads(2).timeout(TIME_LIMIT);
    let checker = protocol.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let took = started.elapsed();
    let discoveries = checker.discoveries();
    let properties = checker.model().properties();
    let (invariants, reached): (Vec<_>, Vec<_>) =
        properties.iter().partition(|property| property.expectation.discovery_is_failure());
    let broken = invariants.iter().find_map(|property| Some((property.name, discoveries.get(property.name)?.clone())));
    let broken = broken.map(|(name, path)| {
        let last = path.last_state().clone();
        let mut steps: Vec<String> = path.into_actions().iter().map(Action::to_string).collect();
        if name == SETTLES {
            steps.push("without faults from here, and without an end:".to_owned());
            steps.extend(checker.model().schedule(&last, SHOWN_STEPS).iter().map(Action::to_string));
        }
        (name, steps)
    });
    let missing = reached.iter().map(|property| property.name).filter(|name| !discoveries.contains_key(name)).collect();
    let (generated, unique) = (checker.state_count(), checker.unique_state_count());
    CheckResult { generated, unique, depth: checker.max_depth(), took, broken, missing }
}

impl CheckResult {
    fn describe(&self) -> String {
        match &self.broken {
            Some((property, _)) => format!("BROKEN: {property}"),
            None if self.took >= TIME_LIMIT => "NOT EXHAUSTIVE".to_owned(),
            None if self.missing.is_empty() => "holds".to_owned(),
            None => format!("NOT REACHED: {}", self.missing.join(", ")),
        }
    }

    fn print_steps(&self) {
        for (n, step) in self.broken.iter().flat_map(|(_, steps)| steps).enumerate() {
            println!("    {:>3}. {step}", n + 1);
        }
    }
}

fn run_checks(configs: Vec<Config>) -> bool {
    println!("{:<26}{:>12}{:>12}{:>7}{:>9}  result", "check", "generated", "unique", "depth", "seconds");
    let mut all_hold = true;
    for config in configs {
        let bounds = (config.bounds(), config.name);
        let result = check(config, None);
        let CheckResult { generated, unique, depth, took, .. } = &result;
        let (seconds, outcome) = (took.as_secs_f32(), result.describe());
        println!("{:<26}{generated:>12}{unique:>12}{depth:>7}{seconds:>9.1}  {outcome}", bounds.1);
        println!("    {}", bounds.0);
        result.print_steps();
        all_hold &= outcome == "holds";
    }
    all_hold
}

fn run_mutations(shows_steps: bool) -> bool {
    println!("\n{:<28}{:<22}{:>9}{:>7}{:>9}  found by", "removed guard", "check", "unique", "steps", "seconds");
    let mut all_found = true;
    for (mutation, config, expected) in mutations::mutation_checks() {
        let name = config.name;
        let result = check(config, Some(mutation));
        let (property, steps) = match &result.broken {
            Some((property, steps)) => (*property, steps.len()),
            None => ("NOT FOUND", 0),
        };
        let is_expected = property.starts_with(expected);
        let mark = if is_expected { String::new() } else { format!(" (expected: {expected})") };
        let (mutation, seconds) = (format!("{mutation:?}"), result.took.as_secs_f32());
        println!("{mutation:<28}{name:<22}{:>9}{steps:>7}{seconds:>9.1}  {property}{mark}", result.unique);
        if shows_steps {
            result.print_steps();
        }
        all_found &= is_expected;
    }
    all_found
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has_flag = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let only = arguments.iter().find(|argument| !argument.starts_with("--"));
    let configs = if has_flag("--nightly") || only.is_some() { checks::nightly_checks() } else { checks::checks() };
    let configs: Vec<Config> =
        configs.into_iter().filter(|config| only.is_none_or(|name| name == config.name)).collect();
    if configs.is_empty() {
        eprintln!("there is no such check");
        return ExitCode::FAILURE;
    }
    let all_hold = run_checks(configs);
    let all_found = only.is_some() || run_mutations(has_flag("--steps"));
    if all_hold && all_found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
