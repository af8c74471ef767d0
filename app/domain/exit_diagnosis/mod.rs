//! Diagnoses why a trainer exited, from the end of its log. Launchers write pages about failed trainers, and several
//! ranks write at the same time; what counts is the exception of the rank that failed first.

mod cause_kind;
mod failure_patterns;
mod finding;
mod launcher;
mod rank_lines;
#[cfg(test)]
mod tests;
mod traceback;
mod truncate;

use finding::{LogFinding, LogFindingClass};
use rank_lines::RankLine;

/// If training continued for more lines than this, an exception was caught and is not the cause.
const MAX_LINES_AFTER: usize = 30;

/// The prefix of a log line that the agent writes for a trainer's event; the severity follows.
pub const EVENT_PREFIX: &str = "[event] ";

/// How a process exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitOutcome {
    /// With an exit code other than 0.
    Code(i32),
    /// Killed by a signal.
    Signal(i32),
}

/// The kind of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseKind {
    /// Out of memory, on a GPU or on the host.
    OutOfMemory,
    /// The loss is NaN.
    NotANumber,
    /// Killed, usually by the kernel because of memory.
    Killed,
    /// No space left on a disk.
    DiskFull,
    /// A collective operation timed out.
    Timeout,
    /// A segmentation fault, a bus error, a C++ exception.
    Crash,
    /// A GPU error.
    Device,
    /// A module is not installed.
    MissingModule,
    /// A file or a program is missing.
    MissingFile,
    /// An invalid option or configuration.
    Configuration,
    /// Access to a repository was denied.
    Access,
    /// Ctrl-C.
    Interrupted,
    /// Another rank had stopped.
    Disconnected,
    /// Any other exception.
    Exception,
    /// An error in its log.
    Logged,
}

/// Why a trainer exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitCause {
    /// The kind of the cause.
    pub kind: CauseKind,
    /// The line with the error, as printed.
    pub headline: String,
    /// All lines that belong to it, in their original format; empty if the headline is all.
    pub block: String,
    /// The rank, if known.
    pub rank: Option<u32>,
    /// The number of the headline's line, from 0.
    pub line: usize,
}

/// Finds the cause of an exit in the end of a log, if there is one.
pub fn diagnose(log_end: &str, end: ExitOutcome) -> Option<ExitCause> {
    let log = AnalyzedLog::analyze(log_end);
    let order: &[LogFindingClass] = match log.signal(end) {
        // A killed process cannot report it.
        Some(9 | 15) => &[LogFindingClass::Killed],
        Some(4 | 7 | 8 | 11) => &[LogFindingClass::Crash, LogFindingClass::Exception, LogFindingClass::Killed],
        _ => &[
            LogFindingClass::Exception,
            LogFindingClass::Crash,
            LogFindingClass::NeverStarted,
            LogFindingClass::Interrupted,
            LogFindingClass::Disconnected,
            LogFindingClass::Killed,
            LogFindingClass::Logged,
        ],
    };
    order.iter().find_map(|class| log.earliest_finding(*class)).as_ref().map(to_cause)
}

/// Returns the trainer's own lines as a terminal shows them, without the launchers' messages about its exit.
pub fn trainer_lines(log_end: &str) -> Vec<String> {
    let AnalyzedLog { lines, launcher_findings, .. } = AnalyzedLog::analyze(log_end);
    let is_in_launcher_finding = |at: &usize| launcher_findings.iter().any(|found| found.lines.contains(at));
    let is_trainer_line =
        |(at, line): &(usize, RankLine)| !is_in_launcher_finding(at) && !launcher::is_launcher_line(line.text());
    lines.into_iter().enumerate().filter(is_trainer_line).map(|(_, line)| line.full_text).collect()
}

fn to_cause(found: &LogFinding) -> ExitCause {
    let is_all = found.block.is_empty() || found.block == [found.headline.as_str()];
    ExitCause {
        kind: found.kind,
        headline: truncate::truncate_headline(&found.headline),
        block: if is_all { String::new() } else { truncate::truncate_block(&found.block) },
        rank: found.rank,
        line: found.line,
    }
}

/// The end of a log, and all findings.
struct AnalyzedLog {
    lines: Vec<RankLine>,
    root_cause: Option<launcher::RootCause>,
    /// By rank, oldest first.
    findings: Vec<Vec<LogFinding>>,
    /// Exceptions of launchers.
    launcher_findings: Vec<LogFinding>,
    /// For each line, how many lines of continued training follow.
    activity_after: Vec<usize>,
}

impl AnalyzedLog {
    fn analyze(text: &str) -> Self {
        let lines = rank_lines::parse_lines(text);
        let (mut findings, mut launcher_findings) = (Vec::new(), Vec::new());
        for line_numbers in rank_lines::group_by_rank(&lines) {
            let (mut trainer_findings, rank_launcher_findings) = traceback::find_tracebacks(&lines, &line_numbers);
            trainer_findings.extend(failure_patterns::find_crashes(&lines, &line_numbers));
            trainer_findings.extend(failure_patterns::find_start_failure(&lines, &line_numbers));
            findings.push(trainer_findings);
            launcher_findings.extend(rank_launcher_findings);
        }
        // If each rank writes to its own file, the table contains their tracebacks.
        for table in &launcher_findings {
            let table_lines: Vec<usize> = (table.line + 1..table.lines.end).collect();
            findings.push(traceback::find_tracebacks(&lines, &table_lines).0);
        }
        let activity_after = count_activity_after(&lines, findings.iter().flatten().chain(&launcher_findings));
        let root_cause = launcher::find_root_cause(&lines);
        findings.push(
            launcher::find_killed(&lines, root_cause)
                .into_iter()
                .chain(failure_patterns::find_logged_error(&lines))
                .collect(),
        );
        Self { lines, root_cause, findings, launcher_findings, activity_after }
    }

    /// Returns the signal that killed the rank that failed first. Shells report it as an exit code.
    fn signal(&self, end: ExitOutcome) -> Option<i32> {
        match (self.root_cause, end) {
            (Some(root), _) => root.signal,
            (None, ExitOutcome::Signal(signal)) => Some(signal),
            (None, ExitOutcome::Code(code)) => (code > 128 && code < 160).then_some(code - 128),
        }
    }

    /// Returns the last finding of this class of the rank that failed first; if it is unknown, the earliest of the last
    /// findings of each rank.
    fn earliest_finding(&self, class: LogFindingClass) -> Option<LogFinding> {
        let root_rank = self.root_cause.map(|root| root.rank);
        let is_candidate = |found: &&LogFinding| {
            found.class == class && (root_rank.is_some() && found.rank == root_rank || self.is_near_end(found))
        };
        // For a crash, the first message is the cause; of exceptions, those before the last were caught.
        let finding_of_rank = |found: &'_ Vec<LogFinding>| match class {
            LogFindingClass::Crash => found.iter().find(is_candidate).cloned(),
            _ => found.iter().rev().find(is_candidate).cloned(),
        };
        let candidates: Vec<LogFinding> = self.findings.iter().filter_map(finding_of_rank).collect();
        let root_finding = candidates.iter().find(|found| root_rank.is_some() && found.rank == root_rank);
        root_finding.or_else(|| candidates.iter().min_by_key(|found| found.line)).cloned()
    }

    /// Returns whether training did not continue after it.
    fn is_near_end(&self, found: &LogFinding) -> bool {
        self.activity_after.get(found.lines.end).is_none_or(|lines_after| *lines_after <= MAX_LINES_AFTER)
    }
}

/// Counts, for each line, the following lines that belong neither to a failure nor to every exit.
fn count_activity_after<'f>(lines: &[RankLine], failures: impl Iterator<Item = &'f LogFinding>) -> Vec<usize> {
    let mut is_activity: Vec<bool> = lines.iter().map(|line| !launcher::is_exit_output(line.text())).collect();
    for failure in failures {
        is_activity[failure.lines.clone()].fill(false);
    }
    let mut count = 0;
    let mut following: Vec<usize> = is_activity
        .iter()
        .rev()
        .map(|is_activity| {
            count += usize::from(*is_activity);
            count
        })
        .collect();
    following.reverse();
    following
}
