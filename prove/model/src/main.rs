//! A model of the protocol between servers and agents, checked exhaustively within bounds.
mod action;
mod agent;
mod apply;
mod apply_server;
mod checks;
mod commands;
mod config;
mod loops;
mod properties;
mod protocol;
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
const LIMIT: Duration = Duration::from_secs(30);

/// How many steps of a schedule without an end are printed.
const SHOWN_STEPS: usize = 12;

/// The result of a check.
struct CheckResult {
    generated: usize,
    unique: usize,
    depth: usize,
    seconds: f32,
    /// The broken property, and the steps to it.
    broken: Option<(&'static str, Vec<String>)>,
    /// States that were not reached.
    missing: Vec<&'static str>,
}

fn check(config: Config, mutation: Option<Mutation>) -> CheckResult {
    let started = Instant::now();
    let checker = Protocol::new(config, mutation)
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .timeout(LIMIT)
        .spawn_bfs()
        .join();
    let discoveries = checker.discoveries();
    let properties = checker.model().properties();
    let is_found = |name: &str| discoveries.contains_key(name);
    let broken = properties
        .iter()
        .filter(|property| property.expectation.discovery_is_failure())
        .find_map(|property| Some((property.name, discoveries.get(property.name)?.clone())));
    let broken = broken.map(|(name, path)| {
        let last = path.last_state().clone();
        let mut steps: Vec<String> = path.into_actions().iter().map(Action::to_string).collect();
        if name == SETTLES {
            steps.push("and from here on, without faults:".to_owned());
            steps.extend(checker.model().schedule(&last, SHOWN_STEPS).iter().map(Action::to_string));
        }
        (name, steps)
    });
    let missing = properties
        .iter()
        .filter(|property| !property.expectation.discovery_is_failure() && !is_found(property.name))
        .map(|property| property.name)
        .collect();
    CheckResult {
        generated: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        seconds: started.elapsed().as_secs_f32(),
        broken,
        missing,
    }
}

fn print_steps(steps: &[String]) {
    for (n, step) in steps.iter().enumerate() {
        println!("    {:>3}. {step}", n + 1);
    }
}

fn run_checks(configs: Vec<Config>) -> bool {
    println!("{:<28}{:>12}{:>12}{:>7}{:>9}  result", "check", "generated", "unique", "depth", "seconds");
    let mut all_hold = true;
    for config in configs {
        let name = config.name;
        let result = check(config, None);
        let CheckResult { generated, unique, depth, seconds, broken, missing } = &result;
        let outcome = match (broken, missing.as_slice()) {
            _ if *seconds >= LIMIT.as_secs_f32() => "NOT EXHAUSTED".to_owned(),
            (Some((property, _)), _) => format!("BROKEN: {property}"),
            (None, []) => "holds".to_owned(),
            (None, missing) => format!("NOT REACHED: {}", missing.join(", ")),
        };
        println!("{name:<28}{generated:>12}{unique:>12}{depth:>7}{seconds:>9.1}  {outcome}");
        if let Some((_, steps)) = broken {
            print_steps(steps);
        }
        all_hold &= broken.is_none() && missing.is_empty();
    }
    all_hold
}

fn run_mutations(shows_steps: bool) -> bool {
    println!("\n{:<28}{:<20}{:>12}{:>7}{:>9}  found by", "removed guard", "check", "unique", "steps", "seconds");
    let mut all_found = true;
    for (mutation, config, expected) in checks::mutation_checks() {
        let name = config.name;
        let result = check(config, Some(mutation));
        let is_expected = result.broken.as_ref().is_some_and(|(property, _)| property.starts_with(expected));
        let (found_by, steps) = match &result.broken {
            Some((property, steps)) => (*property, steps.len()),
            None => ("NOT FOUND", 0),
        };
        let mark = if is_expected || result.broken.is_none() { "" } else { " (UNEXPECTED)" };
        let mutation = format!("{mutation:?}");
        println!("{mutation:<28}{name:<20}{:>12}{steps:>7}{:>9.1}  {found_by}{mark}", result.unique, result.seconds);
        if shows_steps && let Some((_, steps)) = &result.broken {
            print_steps(steps);
        }
        all_found &= is_expected;
    }
    all_found
}

fn main() -> ExitCode {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let is_nightly = std::env::args().any(|argument| argument == "--nightly");
    let configs = if is_nightly { checks::nightly_checks() } else { checks::checks() };
    let configs = configs.into_iter().filter(|config| only.as_deref().is_none_or(|only| config.name == only)).collect();
    let all_hold = run_checks(configs);
    let all_found = run_mutations(std::env::args().any(|argument| argument == "--steps"));
    if all_hold && all_found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
