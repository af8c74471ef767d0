//! Failures without a traceback: process crashes, programs that did not start, and errors in a log.

use super::cause_kind::reports_nan_loss;
use super::finding::{LogFinding, LogFindingClass};
use super::launcher;
use super::rank_lines::RankLine;
use super::{CauseKind, EVENT_PREFIX};

/// Maximum number of lines of a crash.
const MAX_BLOCK_LINES: usize = 40;
/// An error within this number of lines before the end counts as the cause.
const TAIL_LINES: usize = 12;

type LineNumbers<'s> = &'s [usize];

/// Finds crashes, oldest first.
pub fn find_crashes(lines: &[RankLine], line_numbers: LineNumbers<'_>) -> Vec<LogFinding> {
    let mut found: Vec<LogFinding> = Vec::new();
    for (index, number) in line_numbers.iter().enumerate() {
        if found.last().is_some_and(|last| last.lines.contains(number)) {
            continue;
        }
        let text = lines[*number].text();
        let rest = &line_numbers[index..];
        if text.starts_with("Fatal Python error: ") {
            found.push(build_crash_finding(lines, rest, CauseKind::Crash, text, is_dump_line));
        } else if text.starts_with("terminate called") {
            let reason =
                rest.iter().skip(1).take(2).find_map(|next| lines[*next].text().trim().strip_prefix("what():"));
            let headline = reason.map_or_else(|| text.to_owned(), |reason| format!("{text}: {}", reason.trim()));
            let kind = super::cause_kind::classify("", &headline);
            let kind = if kind == CauseKind::Exception { CauseKind::Crash } else { kind };
            let class =
                if kind == CauseKind::Disconnected { LogFindingClass::Disconnected } else { LogFindingClass::Crash };
            found.push(LogFinding {
                class,
                ..build_crash_finding(lines, rest, kind, &headline, |text| !text.is_empty())
            });
        } else if let Some(message) = watchdog_message(text) {
            found.push(build_crash_finding(lines, rest, CauseKind::Timeout, message, |text| {
                text.contains("ProcessGroupNCCL.cpp")
            }));
        }
    }
    found
}

/// Returns the message of a process group's watchdog about an operation that timed out.
fn watchdog_message(text: &str) -> Option<&str> {
    let message_after_prefix =
        || text.strip_prefix("[E").and_then(|line| line.split_once("] ")).map_or(text, |(_, message)| message);
    text.contains("Watchdog caught collective operation timeout").then(message_after_prefix)
}

/// Returns whether a line belongs to the output of `faulthandler`.
fn is_dump_line(text: &str) -> bool {
    let starts = [
        "  ",
        "Thread 0x",
        "Current thread 0x",
        "Extension modules:",
        "Python runtime state",
        "<no Python frame>",
        "Stack ",
    ];
    text.is_empty() || starts.iter().any(|start| text.starts_with(start))
}

/// Builds a finding from its first line and the following lines that belong to it.
fn build_crash_finding(
    lines: &[RankLine],
    line_numbers: LineNumbers<'_>,
    kind: CauseKind,
    headline: &str,
    belongs_to_crash: impl Fn(&str) -> bool,
) -> LogFinding {
    let first = line_numbers.first().copied().unwrap_or_default();
    let rest =
        line_numbers.iter().skip(1).take_while(|number| belongs_to_crash(lines[**number].text())).take(MAX_BLOCK_LINES);
    let numbers: Vec<usize> = std::iter::once(first).chain(rest.copied()).collect();
    let mut block: Vec<String> = numbers.iter().map(|number| lines[*number].text().to_owned()).collect();
    while block.last().is_some_and(String::is_empty) {
        block.pop();
    }
    let end = numbers.last().map_or(first, |last| last + 1);
    LogFinding {
        block,
        lines: first..end,
        rank: lines[first].rank,
        ..LogFinding::single_line(LogFindingClass::Crash, kind, headline, first)
    }
}

/// Finds the error of a program that did not start, in its last lines.
pub fn find_start_failure(lines: &[RankLine], line_numbers: LineNumbers<'_>) -> Option<LogFinding> {
    let found = line_numbers.iter().enumerate().rev().find_map(|(index, number)| {
        let kind = start_failure_kind(lines[*number].text())?;
        Some((index, *number, kind))
    });
    let (index, line_number, kind) = found?;
    let usage_index = if kind == CauseKind::Configuration { usage_start(lines, &line_numbers[..index]) } else { None };
    // Without a usage line, `error:` may come from any program.
    if kind == CauseKind::Configuration && usage_index.is_none() {
        return None;
    }
    let start_index = usage_index.unwrap_or(index);
    let mut block: Vec<String> =
        line_numbers[start_index..index].iter().map(|number| lines[*number].text().to_owned()).collect();
    if !block.is_empty() {
        block.push(lines[line_number].text().to_owned());
    }
    let line_range = line_numbers[start_index]..line_number + 1;
    Some(LogFinding {
        block,
        lines: line_range,
        rank: lines[line_number].rank,
        ..LogFinding::single_line(LogFindingClass::NeverStarted, kind, lines[line_number].text(), line_number)
    })
}

/// Finds the start of the usage text directly above.
fn usage_start(lines: &[RankLine], before: LineNumbers<'_>) -> Option<usize> {
    before
        .iter()
        .rposition(|number| lines[*number].text().to_lowercase().starts_with("usage: "))
        .filter(|index| before.len() - index < MAX_BLOCK_LINES)
}

/// Returns why a program did not start, if this line reports it.
fn start_failure_kind(text: &str) -> Option<CauseKind> {
    let (program, message) = text.split_once(": ")?;
    let is_python = program.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    if is_python && message.starts_with("No module named ") {
        Some(CauseKind::MissingModule)
    } else if (is_python && message.contains("can't open file"))
        || [": command not found", ": not found"].iter().any(|end| text.ends_with(end))
    {
        Some(CauseKind::MissingFile)
    } else if message.starts_with("error: ") || program == "Error" {
        Some(CauseKind::Configuration)
    } else {
        ["SyntaxError", "IndentationError", "TabError"].contains(&program).then_some(CauseKind::Exception)
    }
}

/// Finds the last line near the end that the log marks as an error, with related lines before it.
pub fn find_logged_error(lines: &[RankLine]) -> Option<LogFinding> {
    let candidates: Vec<usize> =
        (0..lines.len()).rev().filter(|at| !launcher::is_exit_output(lines[*at].text())).take(TAIL_LINES).collect();
    let errors: Vec<usize> = candidates.into_iter().filter(|at| is_error_line(lines[*at].text())).collect();
    let (last, first) = (*errors.first()?, *errors.last()?);
    let kind = if errors.iter().any(|at| reports_nan_loss(lines[*at].text())) {
        CauseKind::NotANumber
    } else {
        CauseKind::Logged
    };
    let error_texts: Vec<String> = errors.iter().rev().map(|at| lines[*at].text().to_owned()).collect();
    let block = if error_texts.len() > 1 { error_texts } else { Vec::new() };
    // A NaN loss is the cause, not the last error.
    let at = if kind == CauseKind::NotANumber {
        errors.iter().copied().find(|at| reports_nan_loss(lines[*at].text()))?
    } else {
        last
    };
    Some(LogFinding {
        block,
        lines: first..last + 1,
        rank: lines[at].rank,
        ..LogFinding::single_line(LogFindingClass::Logged, kind, event_message(lines[at].text()), at)
    })
}

/// Returns the message of a line, without the mark and the severity that the agent adds.
fn event_message(text: &str) -> &str {
    let event_parts = text.strip_prefix(EVENT_PREFIX).and_then(|event| event.split_once(' '));
    event_parts.map_or(text, |(_severity, message)| message)
}

/// Returns whether a log marks this line as an error, by its level.
fn is_error_line(text: &str) -> bool {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).take(14);
    words.any(|word| matches!(word, "ERROR" | "CRITICAL" | "FATAL"))
        || reports_nan_loss(text)
        || ["Error: ", "error: ", "fatal: "].iter().any(|start| text.starts_with(start))
}
