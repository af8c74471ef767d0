//! The diagnosis of a trainer's end by its log: it is short, and quotes lines of the log.

use app::domain::exit_diagnosis::{ExitOutcome, diagnose, trainer_lines};

/// See the module. The first line has the exit code or signal.
pub fn check(data: &[u8]) {
    let log = String::from_utf8_lossy(data);
    let (exit_text, log) = log.split_once('\n').unwrap_or(("", &log));
    let number = exit_text.trim_start_matches('s').parse().unwrap_or(1);
    let outcome = if exit_text.starts_with('s') { ExitOutcome::Signal(number) } else { ExitOutcome::Code(number) };
    let lines = log.split('\n').count();
    assert!(trainer_lines(log).len() <= lines);
    if let Some(cause) = diagnose(log, outcome) {
        assert!(cause.line < lines, "the line exists");
        assert!(!cause.headline.contains('\n') && cause.headline.chars().count() <= 301, "it is one line");
        assert!(cause.block.lines().count() <= 40 && cause.block.chars().count() <= 3_600, "it is short");
    }
}
