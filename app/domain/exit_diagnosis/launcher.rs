//! Messages of launchers about an exited trainer: they are never the cause, but they name the rank that failed first,
//! and how.

use super::CauseKind;
use super::finding::{LogFinding, LogFindingClass};
use super::rank_lines::RankLine;

/// The heading in torchrun's table above the rank that failed first.
const ROOT_CAUSE_HEADER: &str = "Root Cause (first observed failure):";
/// Number of lines of that entry.
const ROOT_ENTRY_LINES: usize = 10;
/// Text that occurs in lines of launchers.
const LAUNCHER_MARKERS: [&str; 13] = [
    "torch/distributed/elastic/",
    "torch.distributed.elastic",
    "torch/distributed/run.py",
    "closing signal SIG",
    "Unable to shutdown process",
    "failed (exitcode: ",
    "Setting OMP_NUM_THREADS",
    "[launch.py:",
    "[runner.py:",
    "launcher/launch.py:",
    "launcher/runner.py:",
    "Killing subprocess",
    "exits with return code = ",
];
/// Text that occurs at every exit.
const EXIT_OUTPUT_MARKERS: [&str; 7] = [
    "wandb:",
    "destroy_process_group() was not called",
    "resource_tracker: ",
    "warnings.warn(",
    "Assertion `",
    "ProcessGroupNCCL.cpp",
    "TCPStore.cpp",
];

/// The rank that failed first, according to torchrun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootCause {
    pub rank: u32,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

/// Returns whether a launcher wrote this line.
pub fn is_launcher_line(text: &str) -> bool {
    is_ruler(text) || LAUNCHER_MARKERS.iter().any(|marker| text.contains(marker))
}

/// Returns whether a line after a failure is part of the exit, not of continued training.
pub fn is_exit_output(text: &str) -> bool {
    text.trim().is_empty() || is_launcher_line(text) || EXIT_OUTPUT_MARKERS.iter().any(|marker| text.contains(marker))
}

pub fn is_ruler(text: &str) -> bool {
    text.len() >= 5 && text.bytes().all(|byte| matches!(byte, b'=' | b'-' | b'*'))
}

/// Returns whether an exception was raised by a launcher, judged by its line and the frames above it.
pub fn is_launcher_exception(headline: &str, block: &[String]) -> bool {
    let is_launcher_frame = |line: &String| {
        ["accelerate/commands/", "deepspeed/launcher/", "torch/distributed/run.py", "torch/distributed/launch"]
            .iter()
            .any(|path| line.contains(path))
    };
    is_failure_table(headline)
        || headline.starts_with("torch.distributed.elastic.multiprocessing.api.SignalException")
        || (headline.starts_with("subprocess.CalledProcessError: ")
            && (block.iter().any(is_launcher_frame) || runs_trainer(headline)))
}

/// Returns whether an exception's message is torchrun's table of failures.
pub fn is_failure_table(headline: &str) -> bool {
    headline.starts_with("torch.distributed.elastic.multiprocessing.errors.ChildFailedError")
}

/// Returns whether a failed command is a trainer or a launcher, whose own output above contains the cause.
fn runs_trainer(headline: &str) -> bool {
    let command = headline.split_once("Command '['").and_then(|(_, command)| command.split('\'').next());
    let program = command.and_then(|command| command.rsplit('/').next()).unwrap_or_default();
    ["python", "accelerate", "torchrun", "deepspeed", "mpirun", "srun"].iter().any(|name| program.starts_with(name))
}

/// Finds the rank that failed first, in the last table.
pub fn find_root_cause(lines: &[RankLine]) -> Option<RootCause> {
    let number = |text: &str| text.split(' ').next().and_then(|number| number.parse::<i32>().ok());
    let signal = root_entry_field(lines, "exitcode").and_then(number).filter(|code| *code < 0).map(i32::wrapping_neg);
    let rank = root_entry_field(lines, "rank").and_then(number)?;
    Some(RootCause { rank: u32::try_from(rank).ok()?, signal })
}

fn find_root_entry(lines: &[RankLine]) -> Option<usize> {
    lines.iter().rposition(|line| line.text().trim() == ROOT_CAUSE_HEADER)
}

/// Returns a field of the entry.
fn root_entry_field<'l>(lines: &'l [RankLine], name: &str) -> Option<&'l str> {
    let at = find_root_entry(lines)?;
    let value_of = |line: &'l RankLine| line.text().trim_start().strip_prefix(name)?.trim_start().strip_prefix(": ");
    lines[at..].iter().filter(|line| line.rank == lines[at].rank).take(ROOT_ENTRY_LINES).find_map(value_of)
}

/// Finds the last message about a process that was killed by a signal.
pub fn find_killed(lines: &[RankLine], root: Option<RootCause>) -> Option<LogFinding> {
    let finding = lines.iter().enumerate().rev().find_map(|(at, line)| {
        let (signal, message) = parse_signal(line.text())?;
        Some(LogFinding {
            rank: root.map(|root| root.rank).or(line.rank),
            ..LogFinding::single_line(LogFindingClass::Killed, signal_cause_kind(signal), message, at)
        })
    });
    // The table below the launcher's messages takes precedence.
    finding.filter(|found| root.is_none_or(|root| root.signal.is_some() || found.kind == CauseKind::Interrupted))
}

fn signal_cause_kind(signal: i32) -> CauseKind {
    match signal {
        2 => CauseKind::Interrupted,
        9 | 15 => CauseKind::Killed,
        _ => CauseKind::Crash,
    }
}

/// Parses the signal that a line reports, and returns it with the text.
fn parse_signal(text: &str) -> Option<(i32, &str)> {
    let number = |from: &str| from.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let text_from = |marker: &str| text.find(marker).map(|at| &text[at..]);
    if let Some(message) = text_from("Signal ").filter(|message| message.contains(") received by PID ")) {
        return Some((number(&message["Signal ".len()..])?, message));
    }
    if let Some(message) = text_from("failed (exitcode: -") {
        return Some((number(&message["failed (exitcode: -".len()..])?, message));
    }
    if let Some((_, code)) = text.split_once("exits with return code = -") {
        let command =
            text_from("[launch.py:").and_then(|from| from.split_once("] ")).map_or(text, |(_, command)| command);
        return Some((number(code)?, command));
    }
    if let Some((_, signal)) = text.split_once("died with <Signals.") {
        return Some((number(signal.split_once(": ")?.1)?, text_from("Command ").unwrap_or(text)));
    }
    if let Some(message) = text_from("Process ").filter(|message| message.contains(" got signal: ")) {
        return Some((number(message.split_once(" got signal: ")?.1)?, message));
    }
    parse_shell_signal(text).map(|signal| (signal, text))
}

/// Parses the message of a shell about a command that was killed by a signal.
fn parse_shell_signal(text: &str) -> Option<i32> {
    let last_part = text.rsplit(": ").next().unwrap_or(text);
    let message = last_part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    let is_message = |description: &str| {
        message == description
            || message.starts_with(&format!("{description} (core dumped)"))
            || message.starts_with(&format!("{description}  "))
    };
    let signals =
        [("Killed", 9), ("Segmentation fault", 11), ("Bus error", 7), ("Aborted", 6), ("Illegal instruction", 4)];
    signals.into_iter().find(|(description, _)| is_message(description)).map(|(_, signal)| signal)
}
