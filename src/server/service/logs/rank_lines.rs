//! The lines of one rank: a log of several ranks without the lines of the others.

use std::io;

use app::domain::ids::AttemptNumber;
use app::domain::log_text::arrivals::arrived_at;
use app::domain::log_text::plain_text;
use app::domain::log_text::ranks::line_rank;
use app::protocol::logs::{LogLine, LogLines, LogLinesQuery};

use crate::files::log_lines::{LogFileLine, LogFileLines};
use crate::service::logs::lines::{LINE_COST_BYTES, MAX_LINES, decode_line, line_view, scan_backward, scan_forward};
use crate::service::logs::pattern::CpuBudget;

/// Returns the lines of a rank: from a line on, or else the last ones. `earlier` and `later` are where to continue, also
/// if the budget was used up before a line was found.
pub(super) fn lines_of_rank(
    log: &LogFileLines,
    rank: u32,
    query: &LogLinesQuery,
    attempt: AttemptNumber,
    budget: &mut CpuBudget<'_>,
) -> io::Result<LogLines> {
    let limit = usize::try_from(query.limit.unwrap_or(200).clamp(1, MAX_LINES)).unwrap_or_default();
    let arrivals = if query.times { log.arrivals()? } else { Vec::new() };
    let mut found: Vec<(LogLine, u64)> = Vec::new();
    let mut visit = |line: &LogFileLine| {
        if line.gap.is_none() && line_rank(&plain_text(&decode_line(line))) == Some(rank) {
            let (view, _) = line_view(line, None, budget);
            let (number, arrived_at) = (Some(line.number + 1), arrived_at(&arrivals, line.offset));
            found.push((LogLine { number, arrived_at, ..view }, line.offset));
        }
        budget.spend(line.bytes.len() + LINE_COST_BYTES) || found.len() == limit
    };
    let (earlier, later) = if let Some(from) = query.from {
        let from = from.saturating_sub(1).min(log.count);
        let next = scan_forward(log, from, log.count, &mut visit)?;
        (Some(from).filter(|from| *from > 0), next)
    } else {
        let end = query.before.map_or(log.count, |before| before.saturating_sub(1).min(log.count));
        let previous = end.checked_sub(1).map(|last| scan_backward(log, last, &mut visit)).transpose()?.flatten();
        found.reverse();
        (previous.map(|last| last + 1), Some(end).filter(|end| *end < log.count))
    };
    let from = found.first().and_then(|(line, _)| line.number).unwrap_or(1);
    let offset = found.first().map(|(_, offset)| *offset);
    let lines = found.into_iter().map(|(line, _)| line).collect();
    let number = |line: u64| line + 1;
    Ok(LogLines {
        from,
        offset,
        lines,
        earlier: earlier.map(number),
        later: later.map(number),
        ..empty_lines(attempt, log)
    })
}

/// A response without lines.
pub(super) fn empty_lines(attempt: AttemptNumber, log: &LogFileLines) -> LogLines {
    LogLines {
        attempt,
        from: 1,
        offset: None,
        lines: Vec::new(),
        unmarked_from: None,
        earlier: None,
        later: None,
        total: log.count,
        open: log.has_partial_line,
        size: log.size,
    }
}
