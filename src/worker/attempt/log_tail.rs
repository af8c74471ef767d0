//! Writes the last output of a failed trainer to the agent's own log, where the host's owner looks.

use app::protocol::agents::StatusReport;

use super::AttemptRunner;
use crate::worker::outcome::strip_terminal_codes;

/// Maximum number of lines.
const MAX_TAIL_LINES: usize = 40;

impl AttemptRunner {
    /// Logs the last output if the report is a failure.
    pub(super) fn log_last_output(&self, report: &StatusReport, log_end: &str) {
        let lines = last_output_lines(log_end);
        if report.status == "failed" && !lines.is_empty() {
            tracing::error!("{}: the trainer failed; its last lines:", self.key());
            // One record per line, because a log line contains no line break.
            for line in lines {
                tracing::error!("| {}", self.job_secrets().mask.mask_text(&line));
            }
        }
    }
}

/// The lines as a terminal would show them, without empty ones at the end.
fn last_output_lines(log_end: &str) -> Vec<String> {
    let lines: Vec<String> = log_end.trim_end().lines().map(strip_terminal_codes).collect();
    lines[lines.len().saturating_sub(MAX_TAIL_LINES)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_forty_lines_are_logged_as_a_terminal_shows_them() {
        let log: Vec<String> = (0..100).map(|number| format!("10%\r\u{1b}[31mline {number}\u{1b}[0m")).collect();
        let lines = last_output_lines(&(log.join("\n") + "\n\n\n"));
        let expected: Vec<String> = (60..100).map(|number| format!("line {number}")).collect();
        assert_eq!(lines, expected);
        assert!(last_output_lines("\n").iter().all(String::is_empty));
        assert!(last_output_lines("").is_empty());
    }
}
