//! What an ended trainer means for its job.

use app::protocol::worker::StatusReport;

use crate::files::{Exit, Key, StopCause};

/// By convention of sysexits (`EX_TEMPFAIL`): not the job's fault, try again elsewhere.
pub const TRY_AGAIN: i32 = 75;
/// The longest error that is reported, in characters.
const LONGEST_ERROR: usize = 1_500;

/// What to report; none if the attempt is somebody else's by now. `log_end` is the end of its output.
pub fn report(key: &Key, exit: &Exit, log_end: &str) -> Option<StatusReport> {
    let (status, error) = match (exit.stopped, &exit.error) {
        (Some(StopCause::Superseded), _) => return None,
        (Some(StopCause::Cancelled), _) => ("cancelled", None),
        (Some(StopCause::Requeue), _) => ("requeue", Some("the worker was asked to leave".to_owned())),
        (None, Some(error)) if exit.host_fault => ("requeue", Some(error.clone())),
        (None, Some(error)) => ("failed", Some(error.clone())),
        (None, None) => own_end(exit, log_end),
    };
    Some(StatusReport {
        status: status.to_owned(),
        attempt: Some(key.attempt),
        error,
        exit_code: exit_code(exit),
        resumed_from_step: None,
    })
}

/// The exit code as shells show it.
fn exit_code(exit: &Exit) -> Option<i32> {
    exit.code.or(exit.signal.map(|signal| 128 + signal))
}

fn own_end(exit: &Exit, log_end: &str) -> (&'static str, Option<String>) {
    let last = last_lines(log_end);
    let with_output = |what: String| if last.is_empty() { what } else { format!("{what}: {last}") };
    match (exit.code, exit.signal) {
        (Some(0), _) => ("completed", None),
        (Some(TRY_AGAIN), _) => {
            ("requeue", Some(with_output("the trainer asks to be run again (exit code 75)".to_owned())))
        }
        (Some(code), _) => {
            let hint = if last.contains("No module named 'simpletuner'") {
                ". Install SimpleTuner into the Python that the worker uses, or name the trainer with --trainer"
            } else {
                ""
            };
            ("failed", Some(with_output(format!("the trainer ended with exit code {code}")) + hint))
        }
        (None, signal) => {
            let number = signal.unwrap_or_default();
            let hint = if number == 9 { " (SIGKILL: often the host ran out of memory)" } else { "" };
            ("failed", Some(with_output(format!("the trainer was killed by signal {number}{hint}"))))
        }
    }
}

/// The last up to three lines that say something, as a terminal would show them.
fn last_lines(log_end: &str) -> String {
    let mut lines: Vec<String> =
        log_end.split('\n').map(visible).filter(|line| line.chars().any(char::is_alphanumeric)).collect();
    let mut last = lines.split_off(lines.len().saturating_sub(3)).join("\n");
    if let Some((cut, _)) = last.char_indices().rev().nth(LONGEST_ERROR) {
        last = format!("…{}", &last[cut..]);
    }
    last
}

/// One line without colours, control characters, and what was overwritten by a carriage return.
fn visible(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or_default();
    let mut text = String::new();
    let mut chars = line.chars();
    while let Some(found) = chars.next() {
        if found == '\u{1b}' {
            // A colour or cursor sequence ends with its first letter.
            if chars.next() == Some('[') {
                chars.by_ref().find(char::is_ascii_alphabetic);
            }
        } else if !found.is_control() {
            text.push(found);
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::ids::{Attempt, JobId};

    fn outcome(exit: &Exit, log: &str) -> Option<(String, Option<String>, Option<i32>)> {
        let key = Key { job_id: JobId::parse("j_1").ok()?, attempt: Attempt(3) };
        report(&key, exit, log).map(|report| (report.status, report.error, report.exit_code))
    }

    fn code(code: i32) -> Exit {
        Exit { code: Some(code), ..Exit::default() }
    }

    #[test]
    fn codes_signals_and_orders() {
        let status = |exit: &Exit| outcome(exit, "").map(|(status, _, code)| (status, code));
        let is = |status: &str, code| Some((status.to_owned(), code));
        assert_eq!(status(&code(0)), is("completed", Some(0)));
        assert_eq!(status(&code(3)), is("failed", Some(3)));
        assert_eq!(status(&code(75)), is("requeue", Some(75)));
        assert_eq!(status(&Exit { signal: Some(9), ..Exit::default() }), is("failed", Some(137)));
        let stopped = |cause| Exit { stopped: Some(cause), ..code(0) };
        assert_eq!(status(&stopped(StopCause::Cancelled)), is("cancelled", Some(0)));
        assert_eq!(status(&stopped(StopCause::Requeue)), is("requeue", Some(0)));
        assert_eq!(status(&stopped(StopCause::Superseded)), None);
        let error = Exit { error: Some("x".to_owned()), ..Exit::default() };
        assert_eq!(status(&error), is("failed", None));
        assert_eq!(status(&Exit { host_fault: true, ..error }), is("requeue", None));
    }

    #[test]
    fn the_error_is_what_a_person_would_have_seen_last() {
        let log = "Traceback:\n10%\r20%\r\n\u{1b}[31mValueError: no images\u{1b}[0m\n=====\n\n";
        let error = outcome(&code(1), log).and_then(|(_, error, _)| error);
        assert_eq!(
            error.as_deref(),
            Some("the trainer ended with exit code 1: Traceback:\n20%\nValueError: no images")
        );
        let error = outcome(&code(1), "python3: No module named 'simpletuner'\n").and_then(|(_, error, _)| error);
        assert!(error.is_some_and(|error| error.contains("--trainer")));
        let error = outcome(&code(1), &"ü".repeat(10_000)).and_then(|(_, error, _)| error);
        assert!(error.is_some_and(|error| error.chars().count() < LONGEST_ERROR + 50));
    }
}
