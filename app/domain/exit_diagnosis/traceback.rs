//! Finds Python tracebacks in the lines of one rank: from the first header to the end of the last exception's message,
//! including chained ones.

use super::finding::{LogFinding, LogFindingClass};
use super::rank_lines::{RankLine, TRACEBACK_HEADER};
use super::{CauseKind, cause_kind, launcher};

/// The text between two chained tracebacks.
const CHAIN_MARKERS: [&str; 2] = [
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
];
/// The header of an exception group; its lines have a margin.
const GROUP_HEADER: &str = "+ Exception Group Traceback (most recent call last):";
const GROUP_MARGIN: [char; 4] = [' ', '|', '+', '-'];
/// The header with which a data loader shows the exception of its worker.
const ORIGINAL_HEADER: &str = "Original Traceback (most recent call last):";
/// Maximum number of unrelated lines inside a traceback.
const MAX_FOREIGN_LINES: usize = 30;
/// Maximum number of lines of a message.
const MAX_MESSAGE_LINES: usize = 15;
/// After more unindented lines than this, it is other output.
const MAX_UNINDENTED_LINES: usize = 8;
/// The last message of a data loader whose worker has already reported the cause.
const UNEXPECTED_EXIT: &str = "exited unexpectedly";
/// Suffixes of exception names.
const EXCEPTION_SUFFIXES: [&str; 12] = [
    "Error",
    "Exception",
    "Interrupt",
    "Exit",
    "Warning",
    "Timeout",
    "Iteration",
    "Failure",
    "Abort",
    "Empty",
    "Full",
    "Killed",
];

/// Finds all tracebacks, and separately those of launchers.
pub fn find_tracebacks(lines: &[RankLine], line_numbers: &[usize]) -> (Vec<LogFinding>, Vec<LogFinding>) {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < line_numbers.len() {
        if is_header(lines[line_numbers[at]].text()) {
            let mut reader = TracebackReader { lines, line_numbers, position: at, block: Vec::new(), headline: None };
            if lines[line_numbers[at]].text().ends_with(GROUP_HEADER) {
                reader.read_group();
            } else {
                reader.read_chain();
            }
            at = reader.position.max(at + 1);
            found.extend(reader.into_finding());
        } else {
            at += 1;
        }
    }
    found.into_iter().partition(|found| !launcher::is_launcher_exception(&found.headline, &found.block))
}

fn is_header(text: &str) -> bool {
    text.ends_with(TRACEBACK_HEADER)
}

struct TracebackReader<'l> {
    lines: &'l [RankLine],
    line_numbers: &'l [usize],
    /// The index of the next line in `line_numbers`.
    position: usize,
    /// The lines that belong to it, with their numbers.
    block: Vec<(usize, String)>,
    /// The index of the last exception's line in the block, and the number of lines of its message.
    headline: Option<(usize, usize)>,
}

impl<'l> TracebackReader<'l> {
    fn text(&self, at: usize) -> Option<&'l str> {
        self.line_numbers.get(at).map(|number| self.lines[*number].text())
    }

    fn push_line(&mut self, base: usize) {
        if let Some(text) = self.text(self.position) {
            self.block.push((self.line_numbers[self.position], dedent(text, base).to_owned()));
        }
        self.position += 1;
    }

    /// Reads chained tracebacks.
    fn read_chain(&mut self) {
        loop {
            let base = self.base_indent();
            self.read_frames(base);
            self.read_message(base);
            let Some(next) = self.next_chained(base) else { return };
            while self.position < next {
                self.push_line(base);
            }
        }
    }

    /// Reads an exception group: its first exception is the cause.
    fn read_group(&mut self) {
        let has_margin = |text: &str| text.starts_with("  ") && text.trim_start().starts_with(['|', '+']);
        while self.text(self.position).is_some_and(has_margin) {
            self.push_line(2);
        }
        let mut exception_lines =
            (0..self.block.len()).filter(|index| is_exception_line(self.block[*index].1.trim_matches(GROUP_MARGIN)));
        let (group, first) = (exception_lines.next(), exception_lines.next());
        self.headline = first.or(group).map(|index| (index, 0));
    }

    /// Returns the indentation.
    fn base_indent(&self) -> usize {
        let (header, next) =
            (self.text(self.position).unwrap_or_default(), self.text(self.position + 1).unwrap_or_default());
        let before = header.len() - TRACEBACK_HEADER.len();
        if header[..before].trim().is_empty() { before } else { indent(next).saturating_sub(2) }
    }

    /// Reads the header, the frames, and the line of the exception. Unrelated lines in between are skipped.
    fn read_frames(&mut self, base: usize) {
        self.push_line(base);
        let (mut foreign_lines, has_traceback_prefix) =
            (0, self.lines[self.line_numbers[self.position - 1]].is_traceback);
        while let Some(text) = self.text(self.position) {
            let dedented = dedent(text, base);
            if is_header(text) || CHAIN_MARKERS.contains(&dedented) || foreign_lines > MAX_FOREIGN_LINES {
                return;
            } else if text.trim().is_empty() {
                self.position += 1;
            } else if indent(text) > base {
                foreign_lines = 0;
                self.push_line(base);
            } else if is_exception_line(dedented)
                || (has_traceback_prefix && !launcher::is_launcher_line(dedented) && !is_log_line(dedented))
            {
                if self.headline.is_none() || !dedented.contains(UNEXPECTED_EXIT) {
                    self.headline = Some((self.block.len(), 0));
                }
                self.push_line(base);
                return;
            } else {
                foreign_lines += 1;
                self.position += 1;
            }
        }
    }

    /// Reads the further lines of the exception's message.
    fn read_message(&mut self, base: usize) {
        let Some((index, _)) = self.headline.filter(|(index, _)| index + 1 == self.block.len()) else { return };
        let (number, headline) = self.block[index].clone();
        let end = self.find_message_end(base, &headline, self.lines[number].is_traceback);
        let shown_end = end.min(self.position + MAX_MESSAGE_LINES);
        self.headline = Some((index, shown_end - self.position));
        while self.position < shown_end {
            self.push_line(base);
        }
        if shown_end < end {
            self.block.push((self.line_numbers[end - 1], "…".to_owned()));
            self.position = end;
        }
    }

    fn find_message_end(&self, base: usize, headline: &str, has_traceback_prefix: bool) -> usize {
        if launcher::is_failure_table(headline) {
            let is_edge = |at: &usize| self.text(*at).is_some_and(|text| dedent(text, base).starts_with("====="));
            return (self.position..self.line_numbers.len())
                .filter(is_edge)
                .nth(1)
                .map_or(self.line_numbers.len(), |edge| edge + 1);
        }
        let (mut indented_end, mut unindented_lines) = (self.position, 0);
        for at in self.position..self.line_numbers.len() {
            let dedented = dedent(self.text(at).unwrap_or_default(), base);
            if self.ends_message(at, dedented, headline, has_traceback_prefix) {
                return at;
            }
            if has_traceback_prefix || dedented.starts_with([' ', '\t']) {
                indented_end = if unindented_lines == 0 { at + 1 } else { indented_end };
            } else if unindented_lines == MAX_UNINDENTED_LINES {
                return indented_end;
            } else {
                unindented_lines += 1;
            }
        }
        self.line_numbers.len()
    }

    fn ends_message(&self, at: usize, dedented: &str, headline: &str, has_traceback_prefix: bool) -> bool {
        if dedented.trim().is_empty() {
            let mut rest = (at..self.line_numbers.len()).filter_map(|at| self.text(at));
            let mut next = || rest.find(|text| !text.trim().is_empty());
            return !has_traceback_prefix
                || next().is_none_or(|next| is_header(next) || CHAIN_MARKERS.contains(&next.trim()));
        }
        is_header(dedented)
            || CHAIN_MARKERS.contains(&dedented)
            || launcher::is_exit_output(dedented)
            || is_log_line(dedented)
            || dedented == headline
    }

    /// Returns where the next traceback begins, if it is chained to this one.
    fn next_chained(&self, base: usize) -> Option<usize> {
        let has_text = |at: &usize| self.text(*at).is_some_and(|text| !matches!(text.trim(), "" | "\"\"\""));
        let next = (self.position..self.line_numbers.len()).find(has_text)?;
        if self.text(next).is_some_and(|text| dedent(text, base) == ORIGINAL_HEADER) {
            return Some(next);
        }
        self.text(next).filter(|text| CHAIN_MARKERS.contains(&dedent(text, base)))?;
        let after = (next + 1..self.line_numbers.len()).find(has_text)?;
        self.text(after).is_some_and(is_header).then_some(after)
    }

    fn into_finding(self) -> Option<LogFinding> {
        let (index, message_line_count) = self.headline?;
        let (at, headline) = self.block.get(index)?.clone();
        let headline = headline.trim_start_matches(GROUP_MARGIN).to_owned();
        let message_lines: Vec<&str> =
            self.block[index..].iter().take(message_line_count + 1).map(|(_, line)| line.as_str()).collect();
        let kind = cause_kind::classify(&headline, &message_lines.join("\n"));
        let class = match kind {
            CauseKind::Interrupted => LogFindingClass::Interrupted,
            CauseKind::Disconnected => LogFindingClass::Disconnected,
            _ => LogFindingClass::Exception,
        };
        let (first, last) = (self.block.first()?.0, self.line_numbers[self.position - 1]);
        let block = self.block.into_iter().map(|(_, line)| line).collect();
        Some(LogFinding { class, kind, headline, block, line: at, lines: first..last + 1, rank: self.lines[at].rank })
    }
}

fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

fn dedent(text: &str, base: usize) -> &str {
    &text[indent(text).min(base)..]
}

/// Returns whether a line is that of an exception: its name, optionally with a message.
fn is_exception_line(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    let after_name = &text[name.len()..];
    let is_name = name.split('.').all(|part| {
        let inner = part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '<' | '>'));
        inner && part.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '<'))
    });
    let last = name.rsplit('.').next().unwrap_or_default();
    let capitals = last.chars().filter(char::is_ascii_uppercase).count();
    let is_class = last.starts_with(char::is_uppercase) && capitals > 1 && last.chars().any(char::is_lowercase);
    let is_known = EXCEPTION_SUFFIXES.iter().any(|ending| last.ends_with(ending));
    let is_qualified = name.contains('.')
        && (last.starts_with(char::is_uppercase) || last.ends_with("error") || last.ends_with("timeout"));
    let is_complete = after_name.is_empty() || after_name == ":" || after_name.starts_with(": ");
    is_name && is_complete && (is_class || is_known || is_qualified)
}

/// Returns whether a line belongs to a log or a progress bar, not to a message.
pub fn is_log_line(text: &str) -> bool {
    let start = text.trim_start_matches('[');
    let bytes = start.as_bytes();
    let is_date = bytes.get(4) == Some(&b'-') && bytes.iter().take(4).all(u8::is_ascii_digit);
    let is_clock = bytes.get(2) == Some(&b':') && bytes.get(5) == Some(&b':');
    let is_glog =
        start.starts_with(['I', 'W', 'E', 'F']) && bytes.len() > 5 && bytes[1..5].iter().all(u8::is_ascii_digit);
    let has_level = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
        .iter()
        .any(|level| start.strip_prefix(level).is_some_and(|rest| rest.starts_with([':', ' ', ']'])));
    let is_bar = text.contains("%|") && (text.contains("it/s") || text.contains("s/it") || text.contains("it]"));
    let is_ignored_error = text.starts_with("Exception ignored in") || text.starts_with("Error in ");
    is_date || is_clock || is_glog || has_level || is_bar || is_ignored_error
}
