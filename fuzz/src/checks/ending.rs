//! Why a trainer ended, by its log: whatever that holds, what is said of it is short, of its own lines, and found there.

use app::domain::exit_diagnosis::{ExitOutcome, diagnose, trainer_lines};

/// See the module. The first line says how it ended.
pub fn check(data: &[u8]) {
    let log = String::from_utf8_lossy(data);
    let (exit_text, log) = log.split_once('\n').unwrap_or(("", &log));
    let number = exit_text.trim_start_matches('s').parse().unwrap_or(1);
    let outcome = if exit_text.starts_with('s') { ExitOutcome::Signal(number) } else { ExitOutcome::Code(number) };
    let lines = log.split('\n').count();
    assert!(trainer_lines(log).len() <= lines);
    if let Some(cause) = diagnose(log, outcome) {
        assert!(cause.line < lines, "it is there");
        assert!(!cause.headline.contains('\n') && cause.headline.chars().count() <= 301, "it is one line");
        assert!(cause.block.lines().count() <= 40 && cause.block.chars().count() <= 3_600, "it is short");
    }
}
