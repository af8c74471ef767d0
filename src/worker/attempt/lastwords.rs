//! What a failed trainer said last, in the agent's own log: that is where a host's owner looks.

use app::protocol::worker::StatusReport;

use super::Attempt;
use crate::outcome::visible;

/// So many lines of it.
const LINES: usize = 40;

impl Attempt {
    /// Says it, of an end that is a failure.
    pub(super) fn last_words(&self, report: &StatusReport, log_end: &str) {
        let lines = last_words(log_end);
        if report.status == "failed" && !lines.is_empty() {
            tracing::error!("{}: the trainer failed; its last lines:", self.key());
            // Each by itself, as a line of the log holds no line break.
            for line in lines {
                tracing::error!("| {}", self.given().mask.text(&line));
            }
        }
    }
}

/// As a terminal would show them, without empty ones at the end.
fn last_words(log_end: &str) -> Vec<String> {
    let lines: Vec<String> = log_end.trim_end().lines().map(visible).collect();
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_forty_as_a_terminal_shows_them() {
        let log: Vec<String> = (0..100).map(|number| format!("10%\r\u{1b}[31mline {number}\u{1b}[0m")).collect();
        let words = last_words(&(log.join("\n") + "\n\n\n"));
        let expected: Vec<String> = (60..100).map(|number| format!("line {number}")).collect();
        assert_eq!(words, expected);
        assert!(last_words("\n").iter().all(String::is_empty));
        assert!(last_words("").is_empty());
    }
}
