//! What an ended trainer means for its job.

use app::domain::ending::{Cause, End, Kind, cause, own_lines};
use app::domain::log_text::{last_write, plain};
use app::protocol::worker::StatusReport;

use crate::config::disk::gib;
use crate::files::{Disk, Exit, Key, StopCause, TRY_AGAIN};

const SIGKILL: i32 = 9;
/// The longest of a log's last words that are reported, in characters.
const LONGEST_ERROR: usize = 1_500;

/// Why an exclusive job was stopped that nobody had asked to stop.
const LEASE: &str = "the worker had no contact with the orchestrator: the job is exclusive, so its trainer was stopped before the \
                     worker's lease ended";
/// With less free than this, a disk is full, in bytes.
const FULL: u64 = crate::supervisor::spool::LOW_DISK;
/// Who is killed and says nothing has mostly met the kernel.
const MEMORY: &str = " (SIGKILL: often the host ran out of memory)";
/// How programs say that a disk is full.
const NO_SPACE: [&str; 3] = ["No space left on device", "ENOSPC", "[Errno 28]"];

/// What to report; none if the attempt is somebody else's by now. `log_end` is the end of its output, and the error's line
/// is counted in it.
pub fn report(key: &Key, exit: &Exit, log_end: &str) -> Option<StatusReport> {
    let (status, error) = match (exit.stopped, &exit.error) {
        (None, None) => {
            let Own { status, error, line } = own_end(exit, log_end);
            let exit_code = exit_code(exit);
            return Some(StatusReport { error, error_line: line, exit_code, ..key.report(status) });
        }
        (Some(StopCause::Superseded), _) => return None,
        (Some(StopCause::Cancelled), _) => ("cancelled", None),
        (Some(StopCause::Requeue), _) => ("requeue", Some("the worker was asked to leave".to_owned())),
        (Some(StopCause::Disk), error) => ("failed", error.clone()),
        (Some(StopCause::Lease), _) => ("requeue", Some(LEASE.to_owned())),
        (None, Some(error)) if exit.host_fault => ("requeue", Some(error.clone())),
        (None, Some(error)) => ("failed", Some(error.clone())),
    };
    Some(StatusReport { error, exit_code: exit_code(exit), ..key.report(status) })
}

/// The exit code as shells show it.
fn exit_code(exit: &Exit) -> Option<i32> {
    exit.code.or(exit.signal.map(|signal| 128 + signal))
}

/// How a trainer ended by itself.
struct Own {
    status: &'static str,
    error: Option<String>,
    line: Option<u64>,
}

fn own_end(exit: &Exit, log_end: &str) -> Own {
    let last = last_lines(log_end);
    let with_output = |what: String| if last.is_empty() { what } else { format!("{what}: {last}") };
    let plainly = |status, what: String| Own { status, error: Some(with_output(what)), line: None };
    match (exit.code, exit.signal) {
        (Some(0), _) => Own { status: "completed", error: None, line: None },
        (Some(TRY_AGAIN), _) => plainly("requeue", "the trainer asks to be run again (exit code 75)".to_owned()),
        _ if exit.out_of_memory && exit.signal == Some(SIGKILL) => {
            let why = match exit.memory_limit.map(gib) {
                Some(limit) => format!("the job reached its memory limit on this worker, {limit} (--job-memory)"),
                None => "this host's memory was full (SIGKILL)".to_owned(),
            };
            plainly("failed", format!("the trainer was killed because {why}"))
        }
        _ if let Some(disk) = full_disk(exit, log_end) => {
            let (free, directory) = (disk.free_bytes, disk.directory.display());
            let full =
                format!("the worker's disk is full ({free} bytes free for {directory}), and the trainer failed of it");
            plainly("requeue", full)
        }
        (code, signal) => {
            let end = code.map_or(End::Signal(signal.unwrap_or_default()), End::Code);
            if let Some(cause) = cause(log_end, end) {
                because(exit, &cause)
            } else {
                let error = with_output(unexplained(end)) + hint(exit, &last);
                Own { status: "failed", error: Some(error), line: None }
            }
        }
    }
}

/// What the log says of why.
fn because(exit: &Exit, cause: &Cause) -> Own {
    let hint = match hint(exit, &cause.headline) {
        "" if cause.kind == Kind::Killed => MEMORY,
        hint => hint,
    };
    let block = if cause.block.is_empty() { String::new() } else { format!("\n{}", cause.block) };
    let error = format!("{}{hint}{block}", cause.headline);
    Own { status: "failed", error: Some(error), line: u64::try_from(cause.line + 1).ok() }
}

fn unexplained(end: End) -> String {
    match end {
        End::Code(code) => format!("the trainer ended with exit code {code}"),
        End::Signal(SIGKILL) => format!("the trainer was killed by signal {SIGKILL}{MEMORY}"),
        End::Signal(number) => format!("the trainer was killed by signal {number}"),
    }
}

/// What more is known of an end with an exit code.
fn hint(exit: &Exit, said: &str) -> &'static str {
    match exit.code {
        Some(_) if exit.out_of_memory => ". Meanwhile the kernel killed a process for want of memory",
        Some(_) if said.contains("No module named 'simpletuner'") => {
            ". Install SimpleTuner into the Python that the worker uses, or name the trainer with --trainer"
        }
        _ => "",
    }
}

/// The disk, if it was full and the trainer says that it failed of that.
fn full_disk<'e>(exit: &'e Exit, log_end: &str) -> Option<&'e Disk> {
    let says = log_end.lines().rev().take(40).any(|line| NO_SPACE.iter().any(|words| line.contains(words)));
    exit.disk.as_ref().filter(|disk| says && disk.free_bytes < FULL)
}

/// The last up to three lines of the trainer's own that say something, as a terminal would show them.
fn last_lines(log_end: &str) -> String {
    let mut lines = own_lines(log_end);
    lines.retain(|line| line.chars().any(char::is_alphanumeric));
    let mut last = lines.split_off(lines.len().saturating_sub(3)).join("\n");
    if let Some((cut, _)) = last.char_indices().rev().nth(LONGEST_ERROR) {
        last = format!("…{}", &last[cut..]);
    }
    last
}

/// One line as a log page shows it, without colours.
pub fn visible(line: &str) -> String {
    plain(&line[last_write(line.as_bytes())]).trim_end().to_owned()
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
        assert_eq!(status(&stopped(StopCause::Disk)), is("failed", Some(0)));
        assert_eq!(status(&stopped(StopCause::Superseded)), None);
        assert_eq!(status(&stopped(StopCause::Lease)), is("requeue", Some(0)));
        let error = Exit { error: Some("x".to_owned()), ..Exit::default() };
        assert_eq!(status(&error), is("failed", None));
        assert_eq!(status(&Exit { host_fault: true, ..error }), is("requeue", None));
    }

    #[test]
    fn a_full_disk_is_no_failure_of_the_job() {
        let said = "Traceback:\nOSError: [Errno 28] No space left on device\n";
        let on = |free_bytes, code| Exit {
            disk: Some(Disk { free_bytes, directory: "/w/jobs/j_1/3".into() }),
            ..Exit { code: Some(code), ..Exit::default() }
        };
        for (exit, log, status) in [
            (on(4_096, 1), said, "requeue"),
            (on(4_096, 1), "ValueError: no images\n", "failed"),
            (on(FULL, 1), said, "failed"),
            (on(4_096, 0), said, "completed"),
            (code(1), said, "failed"),
        ] {
            assert_eq!(outcome(&exit, log).map(|(status, ..)| status).as_deref(), Some(status), "{exit:?} {log}");
        }
        let error = outcome(&on(4_096, 1), said).and_then(|(_, error, _)| error).unwrap_or_default();
        assert!(error.starts_with("the worker's disk is full (4096 bytes free for /w/jobs/j_1/3)"), "{error}");
        assert!(error.ends_with("No space left on device"), "{error}");
    }

    #[test]
    fn what_the_kernel_killed_for_memory_is_said_so() {
        let killed = |signal, out_of_memory| Exit { signal: Some(signal), out_of_memory, ..Exit::default() };
        let error = |exit: Exit| outcome(&exit, "step 3\n").and_then(|(_, error, _)| error).unwrap_or_default();
        assert!(error(killed(9, true)).contains("host's memory was full"));
        let of_its_limit = error(Exit { memory_limit: Some(256 << 20), ..killed(9, true) });
        assert!(of_its_limit.contains("reached its memory limit on this worker, 256 MiB"), "{of_its_limit}");
        assert!(error(killed(9, false)).contains("often the host ran out of memory"));
        assert!(!error(killed(11, true)).contains("memory"));
        let of_a_helper = error(Exit { out_of_memory: true, ..code(1) });
        assert!(of_a_helper.contains("exit code 1: step 3. Meanwhile the kernel killed"), "{of_a_helper}");
    }

    #[test]
    fn what_the_log_says_of_why_comes_first_with_what_else_is_known() {
        let traceback = "step 3\nTraceback (most recent call last):\n  File \"a.py\", line 1\nMemoryError\n";
        let memory =
            "MemoryError. Meanwhile the kernel killed a process for want of memory\nTraceback (most recent call last):";
        let killed = "[launch.py:1] ['python'] exits with return code = -9\n";
        for (exit, log, begins, line) in [
            (
                code(1),
                traceback,
                "MemoryError\nTraceback (most recent call last):\n  File \"a.py\", line 1\nMemoryError",
                Some(4),
            ),
            (Exit { out_of_memory: true, ..code(1) }, traceback, memory, Some(4)),
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
            (code(1), "step 3\n", "the trainer ended with exit code 1: step 3", None),
            (
                Exit { signal: Some(9), ..Exit::default() },
                traceback,
                "the trainer was killed by signal 9 (SIGKILL: often",
                None,
            ),
        ] {
            let key = Key { job_id: JobId::parse("j_1").expect("an id"), attempt: Attempt(3) };
            let report = report(&key, &exit, log).expect("a report");
            let error = report.error.unwrap_or_default();
            assert!(error.starts_with(begins) && report.error_line == line, "{error} in line {:?}", report.error_line);
        }
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
