//! What the trainer's exit means for its job.

use app::domain::exit_diagnosis::{CauseKind, ExitCause, ExitOutcome, diagnose, trainer_lines};
use app::domain::log_text::{plain_text, visible_range};
use app::protocol::agents::StatusReport;

use crate::worker::files::{AttemptExit, AttemptKey, DiskAtExit, EX_TEMPFAIL, StopCause};
use crate::worker::filesystem::{LOW_DISK_BYTES, format_gib};

const SIGKILL: i32 = 9;
/// Max characters of the log's last lines in a report.
const MAX_ERROR_CHARS: usize = 1_500;

/// Reported for an exclusive job that was stopped because its lease expired.
const LEASE_EXPIRED_ERROR: &str = "the worker had no contact with the orchestrator: the job is exclusive, so its \
    trainer was stopped before the lease expired";
/// Below this free space the disk counts as full, in bytes.
const DISK_FULL_BYTES: u64 = LOW_DISK_BYTES;
/// A SIGKILL without any message mostly comes from the kernel.
const SIGKILL_HINT: &str = " (SIGKILL: often the host ran out of memory)";
/// How programs report a full disk.
const DISK_FULL_MESSAGES: [&str; 3] = ["No space left on device", "ENOSPC", "[Errno 28]"];

/// The final report; `None` if the attempt was superseded. `log_end` is the end of its output, in which the error's
/// line is counted.
pub fn status_report(key: &AttemptKey, exit: &AttemptExit, log_end: &str) -> Option<StatusReport> {
    let (status, error) = match (exit.stopped, &exit.error) {
        (None, None) => {
            let TrainerOutcome { status, error, line } = trainer_outcome(exit, log_end);
            let exit_code = exit_code(exit);
            return Some(StatusReport { error, error_line: line, exit_code, ..key.status_report(status) });
        }
        (Some(StopCause::Superseded), _) => return None,
        (Some(StopCause::Cancelled), _) => ("cancelled", None),
        (Some(StopCause::Requeue), _) => ("requeue", Some("the worker was stopped".to_owned())),
        (Some(StopCause::Disk), error) => ("failed", error.clone()),
        (Some(StopCause::Lease), _) => ("requeue", Some(LEASE_EXPIRED_ERROR.to_owned())),
        (None, Some(error)) if exit.host_fault => ("requeue", Some(error.clone())),
        (None, Some(error)) => ("failed", Some(error.clone())),
    };
    Some(StatusReport { error, exit_code: exit_code(exit), ..key.status_report(status) })
}

/// The exit code as in shells.
fn exit_code(exit: &AttemptExit) -> Option<i32> {
    exit.code.or(exit.signal.map(|signal| 128 + signal))
}

/// How a trainer exited by itself.
struct TrainerOutcome {
    status: &'static str,
    error: Option<String>,
    line: Option<u64>,
}

fn trainer_outcome(exit: &AttemptExit, log_end: &str) -> TrainerOutcome {
    let last_lines = last_output_lines(log_end);
    let with_output =
        |summary: String| if last_lines.is_empty() { summary } else { format!("{summary}: {last_lines}") };
    let without_line =
        |status, summary: String| TrainerOutcome { status, error: Some(with_output(summary)), line: None };
    match (exit.code, exit.signal) {
        (Some(0), _) => TrainerOutcome { status: "completed", error: None, line: None },
        (Some(EX_TEMPFAIL), _) => without_line("requeue", "the trainer requested a retry (exit code 75)".to_owned()),
        _ if exit.out_of_memory && exit.signal == Some(SIGKILL) => {
            let reason = match exit.memory_limit.map(format_gib) {
                Some(limit) => format!("the job reached its memory limit on this worker, {limit} (--job-memory)"),
                None => "this host's memory was full (SIGKILL)".to_owned(),
            };
            without_line("failed", format!("the trainer was killed because {reason}"))
        }
        _ if let Some(disk) = disk_full_failure(exit, log_end) => {
            let (free, directory) = (disk.free_bytes, disk.directory.display());
            let summary =
                format!("the worker's disk is full ({free} bytes free for {directory}), so the trainer failed");
            without_line("requeue", summary)
        }
        (code, signal) => {
            let outcome = code.map_or(ExitOutcome::Signal(signal.unwrap_or_default()), ExitOutcome::Code);
            if let Some(cause) = diagnose(log_end, outcome) {
                outcome_from_cause(exit, &cause)
            } else {
                let error = with_output(describe_end(outcome)) + cause_hint(exit, &last_lines);
                TrainerOutcome { status: "failed", error: Some(error), line: None }
            }
        }
    }
}

/// The outcome according to the log.
fn outcome_from_cause(exit: &AttemptExit, cause: &ExitCause) -> TrainerOutcome {
    let hint = match cause_hint(exit, &cause.headline) {
        "" if cause.kind == CauseKind::Killed => SIGKILL_HINT,
        hint => hint,
    };
    let block = if cause.block.is_empty() { String::new() } else { format!("\n{}", cause.block) };
    let error = format!("{}{hint}{block}", cause.headline);
    TrainerOutcome { status: "failed", error: Some(error), line: u64::try_from(cause.line + 1).ok() }
}

fn describe_end(outcome: ExitOutcome) -> String {
    match outcome {
        ExitOutcome::Code(code) => format!("the trainer exited with code {code}"),
        ExitOutcome::Signal(SIGKILL) => format!("the trainer was killed by signal {SIGKILL}{SIGKILL_HINT}"),
        ExitOutcome::Signal(number) => format!("the trainer was killed by signal {number}"),
    }
}

/// A hint about an exit code.
fn cause_hint(exit: &AttemptExit, log_end: &str) -> &'static str {
    match exit.code {
        Some(_) if exit.out_of_memory => ". Meanwhile the kernel killed a process because memory was full",
        Some(_) if log_end.contains("No module named 'simpletuner'") => {
            ". Install SimpleTuner into the Python that the worker uses, or set the trainer with --trainer"
        }
        _ => "",
    }
}

/// The disk, if it was full and the trainer reports that as its failure.
fn disk_full_failure<'e>(exit: &'e AttemptExit, log_end: &str) -> Option<&'e DiskAtExit> {
    let is_reported =
        log_end.lines().rev().take(40).any(|line| DISK_FULL_MESSAGES.iter().any(|message| line.contains(message)));
    exit.disk.as_ref().filter(|disk| is_reported && disk.free_bytes < DISK_FULL_BYTES)
}

/// Up to three of the trainer's last non-empty lines, as a terminal would show them.
fn last_output_lines(log_end: &str) -> String {
    let mut lines = trainer_lines(log_end);
    lines.retain(|line| line.chars().any(char::is_alphanumeric));
    let mut last = lines.split_off(lines.len().saturating_sub(3)).join("\n");
    if let Some((cut, _)) = last.char_indices().rev().nth(MAX_ERROR_CHARS) {
        last = format!("…{}", &last[cut..]);
    }
    last
}

/// One line as a log page shows it, without colors.
pub fn strip_terminal_codes(line: &str) -> String {
    plain_text(&line[visible_range(line.as_bytes())]).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::ids::{AttemptNumber, JobId};

    fn outcome(exit: &AttemptExit, log: &str) -> Option<(String, Option<String>, Option<i32>)> {
        let key = AttemptKey { job_id: JobId::parse("j_1").ok()?, attempt: AttemptNumber(3) };
        status_report(&key, exit, log).map(|report| (report.status, report.error, report.exit_code))
    }

    fn code(code: i32) -> AttemptExit {
        AttemptExit { code: Some(code), ..AttemptExit::default() }
    }

    #[test]
    fn exit_codes_signals_and_stop_causes_are_reported() {
        let status = |exit: &AttemptExit| outcome(exit, "").map(|(status, _, code)| (status, code));
        let expected = |status: &str, code| Some((status.to_owned(), code));
        assert_eq!(status(&code(0)), expected("completed", Some(0)));
        assert_eq!(status(&code(3)), expected("failed", Some(3)));
        assert_eq!(status(&code(75)), expected("requeue", Some(75)));
        assert_eq!(status(&AttemptExit { signal: Some(9), ..AttemptExit::default() }), expected("failed", Some(137)));
        let stopped = |cause| AttemptExit { stopped: Some(cause), ..code(0) };
        assert_eq!(status(&stopped(StopCause::Cancelled)), expected("cancelled", Some(0)));
        assert_eq!(status(&stopped(StopCause::Requeue)), expected("requeue", Some(0)));
        assert_eq!(status(&stopped(StopCause::Disk)), expected("failed", Some(0)));
        assert_eq!(status(&stopped(StopCause::Superseded)), None);
        assert_eq!(status(&stopped(StopCause::Lease)), expected("requeue", Some(0)));
        let error = AttemptExit { error: Some("x".to_owned()), ..AttemptExit::default() };
        assert_eq!(status(&error), expected("failed", None));
        assert_eq!(status(&AttemptExit { host_fault: true, ..error }), expected("requeue", None));
    }

    #[test]
    fn full_disk_requeues_the_job() {
        let log_end = "Traceback:\nOSError: [Errno 28] No space left on device\n";
        let exit_with = |free_bytes, code| AttemptExit {
            disk: Some(DiskAtExit { free_bytes, directory: "/w/jobs/j_1/3".into() }),
            ..AttemptExit { code: Some(code), ..AttemptExit::default() }
        };
        for (exit, log, status) in [
            (exit_with(4_096, 1), log_end, "requeue"),
            (exit_with(4_096, 1), "ValueError: no images\n", "failed"),
            (exit_with(DISK_FULL_BYTES, 1), log_end, "failed"),
            (exit_with(4_096, 0), log_end, "completed"),
            (code(1), log_end, "failed"),
        ] {
            assert_eq!(outcome(&exit, log).map(|(status, ..)| status).as_deref(), Some(status), "{exit:?} {log}");
        }
        let error = outcome(&exit_with(4_096, 1), log_end).and_then(|(_, error, _)| error).unwrap_or_default();
        assert!(error.starts_with("the worker's disk is full (4096 bytes free for /w/jobs/j_1/3)"), "{error}");
        assert!(error.ends_with("No space left on device"), "{error}");
    }

    #[test]
    fn out_of_memory_kill_is_reported() {
        let killed =
            |signal, out_of_memory| AttemptExit { signal: Some(signal), out_of_memory, ..AttemptExit::default() };
        let error = |exit: AttemptExit| outcome(&exit, "step 3\n").and_then(|(_, error, _)| error).unwrap_or_default();
        assert!(error(killed(9, true)).contains("host's memory was full"));
        let limit_error = error(AttemptExit { memory_limit: Some(256 << 20), ..killed(9, true) });
        assert!(limit_error.contains("reached its memory limit on this worker, 256 MiB"), "{limit_error}");
        assert!(error(killed(9, false)).contains("often the host ran out of memory"));
        assert!(!error(killed(11, true)).contains("memory"));
        let helper_error = error(AttemptExit { out_of_memory: true, ..code(1) });
        assert!(helper_error.contains("exited with code 1: step 3. Meanwhile the kernel killed"), "{helper_error}");
    }

    #[test]
    fn cause_from_the_log_comes_first() {
        let traceback = "step 3\nTraceback (most recent call last):\n  File \"a.py\", line 1\nMemoryError\n";
        let memory = "MemoryError. Meanwhile the kernel killed a process because memory was full\nTraceback (most recent call last):";
        let killed = "[launch.py:1] ['python'] exits with return code = -9\n";
        for (exit, log, start, line) in [
            (
                code(1),
                traceback,
                "MemoryError\nTraceback (most recent call last):\n  File \"a.py\", line 1\nMemoryError",
                Some(4),
            ),
            (AttemptExit { out_of_memory: true, ..code(1) }, traceback, memory, Some(4)),
            (
                code(1),
                killed,
                "['python'] exits with return code = -9 (SIGKILL: often the host ran out of memory)",
                Some(1),
            ),
            (
                code(1),
                "python3: No module named 'simpletuner'\n",
                "python3: No module named 'simpletuner'. Install SimpleTuner",
                Some(1),
            ),
            (code(1), "step 3\n", "the trainer exited with code 1: step 3", None),
            (
                AttemptExit { signal: Some(9), ..AttemptExit::default() },
                traceback,
                "the trainer was killed by signal 9 (SIGKILL: often",
                None,
            ),
        ] {
            let key = AttemptKey { job_id: JobId::parse("j_1").expect("an id"), attempt: AttemptNumber(3) };
            let report = status_report(&key, &exit, log).expect("a report");
            let error = report.error.unwrap_or_default();
            assert!(error.starts_with(start) && report.error_line == line, "{error} in line {:?}", report.error_line);
        }
    }

    #[test]
    fn error_contains_the_last_visible_lines() {
        let log = "Traceback:\n10%\r20%\r\n\u{1b}[31mValueError: no images\u{1b}[0m\n=====\n\n";
        let error = outcome(&code(1), log).and_then(|(_, error, _)| error);
        assert_eq!(error.as_deref(), Some("the trainer exited with code 1: Traceback:\n20%\nValueError: no images"));
        let error = outcome(&code(1), "python3: No module named 'simpletuner'\n").and_then(|(_, error, _)| error);
        assert!(error.is_some_and(|error| error.contains("--trainer")));
        let error = outcome(&code(1), &"ü".repeat(10_000)).and_then(|(_, error, _)| error);
        assert!(error.is_some_and(|error| error.chars().count() < MAX_ERROR_CHARS + 50));
    }
}
