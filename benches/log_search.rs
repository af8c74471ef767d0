//! The cost of the slowest of 1,000 generated patterns: compiling it, and searching a log of random letters with lines
//! of 8 kB until the budget of one request is used up or the search is aborted.
//!
//! `cargo run --release --no-default-features --features ssr --example log_search`

#[path = "../src/server/service/logs/pattern.rs"]
mod log_pattern;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use log_pattern::{CpuBudget, Pattern, PatternError};
use nix::time::{ClockId, clock_gettime};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const PATTERNS: usize = 1_000;
const LINES: usize = 1_000;
const LINE_LENGTH: usize = 8 << 10;
/// The default of `--log-search-millis`.
const BUDGET: Duration = Duration::from_millis(200);

fn main() {
    let log = log();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = patterns();
    let mut costs: Vec<(Duration, &str, String)> = KNOWN.iter().map(|q| cost((*q).to_owned(), &log)).collect();
    while costs.len() < PATTERNS {
        let q = strategy.new_tree(&mut runner).expect("a pattern").current();
        if q.len() <= 1_000 {
            costs.push(cost(q, &log));
        }
    }
    costs.sort();
    println!("search, {PATTERNS} patterns, {LINES} lines of {LINE_LENGTH} bytes: CPU time of one request");
    for share in [50, 90, 99, 100] {
        let (time, ..) = costs[(PATTERNS * share / 100).saturating_sub(1)];
        println!("  {share:>3} %  {:>6.1} ms", time.as_secs_f64() * 1_000.0);
    }
    for outcome in ["whole log", "paused", "aborted", "too large", "invalid"] {
        let all = costs.iter().filter(|(_, actual, _)| *actual == outcome);
        let slowest = all.clone().next_back().map_or(0.0, |(time, ..)| time.as_secs_f64() * 1_000.0);
        println!("  {outcome:<10} {:>4}, the slowest {slowest:.1} ms", all.count());
    }
    for (time, outcome, q) in costs.iter().rev().take(5) {
        let short: String = q.chars().take(100).collect();
        println!("  {:>6.1} ms, {outcome}: {short:?}", time.as_secs_f64() * 1_000.0);
    }
}

/// Patterns that took seconds, and typical ones.
const KNOWN: [&str; 10] = [
    "[a-z][a-z0-9 ]{600}[A-Z]",
    "[a-z][a-z0-9 ]{3000}[A-Z]",
    "(?-u)[a-z][a-z0-9 ]{4000}[A-Z]",
    r"\w+@\w+\.\w+",
    r"(?:loss|lr|grad_norm)[=:]\s*\d+\.\d+(?:e-?\d+)?",
    r"^\s*File .*, line \d+, in \w+$",
    r"\b(?:error|warning|exception)\b.*",
    "(a*)*b",
    "(x+x+)+y",
    ".*.*.*.*=.*",
];

fn patterns() -> impl Strategy<Value = String> {
    let class = prop::sample::select(vec![
        "a",
        "z",
        " ",
        ".",
        r"\w",
        r"\d",
        r"\s",
        r"\pL",
        r"\p{Greek}",
        "[a-z]",
        "[^a]",
        "[a-m ]",
        "[a-z0-9 ]",
        r"[\w\s]",
        "(?-u:[a-z])",
        "[!-\u{10ffff}]",
        r"\b",
        "^",
        "$",
        "é",
        r"[\pL--[a-f]]",
        "(?i:[a-z])",
    ]);
    let leaf = class.prop_map(str::to_owned);
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..6).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..6).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (inner.clone(), prop::sample::select(vec!["*", "+", "?", "*?", "+?"]))
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
            (inner.clone(), 0..40_u32, 0..1_000_u32)
                .prop_map(|(part, from, more)| format!("(?:{part}){{{from},{}}}", from + more)),
            (inner, 1..4_000_u32).prop_map(|(part, times)| format!("(?:{part}){{{times}}}")),
        ]
    })
}

fn log() -> Vec<String> {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random_letter = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        char::from(b"abcdefghijklmnopqrstuvwxyz "[usize::try_from(seed % 27).unwrap_or_default()])
    };
    (0..LINES).map(|_| (0..LINE_LENGTH).map(|_| random_letter()).collect()).collect()
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock of the thread").into()
}

fn cost(q: String, log: &[String]) -> (Duration, &'static str, String) {
    let started = now();
    let outcome = search(&q, log, &|| now().saturating_sub(started));
    (now().saturating_sub(started), outcome, q)
}

fn search(q: &str, log: &[String], cpu_time: &dyn Fn() -> Duration) -> &'static str {
    let mut pattern = match Pattern::new(q, true, false) {
        Ok(pattern) => pattern,
        Err(PatternError::Syntax(_)) => return "invalid",
        Err(_) => return "too large",
    };
    let stop = AtomicBool::new(false);
    let mut budget = CpuBudget::new(cpu_time, BUDGET, &stop);
    for line in log {
        // As `lines` does: each match in a line, up to 200.
        let (mut start, mut matches) = (0, 0);
        while start <= line.len() && matches < 200 {
            match pattern.find(line, start) {
                Err(_) => return "aborted",
                Ok(None) => break,
                Ok(Some(found)) => {
                    matches += 1;
                    if budget.spend(line.len() - start) {
                        return "paused";
                    }
                    start = if found.is_empty() { found.end + 1 } else { found.end };
                }
            }
        }
        if budget.spend(line.len() - start.min(line.len())) {
            return "paused";
        }
    }
    "whole log"
}
