//! Why a trainer ended, by its log: whatever that holds, what is said of it is short, of its own lines, and found there.

use app::domain::ending::{End, cause, own_lines};

/// See the module. The first line says how it ended.
pub fn check(data: &[u8]) {
    let log = String::from_utf8_lossy(data);
    let (how, log) = log.split_once('\n').unwrap_or(("", &log));
    let number = how.trim_start_matches('s').parse().unwrap_or(1);
    let end = if how.starts_with('s') { End::Signal(number) } else { End::Code(number) };
    let lines = log.split('\n').count();
    assert!(own_lines(log).len() <= lines);
    if let Some(cause) = cause(log, end) {
        assert!(cause.line < lines, "it is there");
        assert!(!cause.headline.contains('\n') && cause.headline.chars().count() <= 301, "it is one line");
        assert!(cause.block.lines().count() <= 40 && cause.block.chars().count() <= 3_600, "it is short");
    }
}
