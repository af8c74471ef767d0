//! Logs by line: reading ranges, and searching.

use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use app::domain::allowed_values::AllowedValues;
use app::domain::ids::{AttemptNumber, JobId};
use app::domain::log_text::arrivals::arrived_at;
use app::domain::log_text::plain_text;
use app::protocol::logs::{LogLine, LogLines, LogLinesQuery, LogMatch, LogMatches, LogSearchQuery};

use crate::clock::thread_cpu_time;
use crate::files::log_index::BLOCK_BYTES;
use crate::files::log_lines::{LogFileLine, LogFileLines};
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::logs::LogService;
use crate::service::logs::pattern::{CpuBudget, Pattern, PatternError};
use crate::service::logs::rank_lines::{empty_lines, lines_of_rank};
use crate::service::logs::searches::{LogSearchPermit, StopOnDrop};
use crate::service::logs::trailing_partial_char;

/// The maximum number of lines or hits in a response.
pub(super) const MAX_LINES: u32 = 1_000;
/// The maximum number of bytes read for a response; the client can continue with another request.
pub(super) const MAX_SCAN_BYTES: u64 = 64 << 20;
/// The maximum size of a pattern, in bytes; its compiled form is a multiple of it.
const MAX_PATTERN_BYTES: usize = 1_000;
/// The minimum cost of a line, in bytes of the budget.
pub(super) const LINE_COST_BYTES: usize = 64;
/// The length of an excerpt, and how much of it precedes the match, in characters.
const EXCERPT_CHARS: usize = 200;
const EXCERPT_BEFORE_CHARS: usize = 60;
/// The maximum number of marks in a line.
const MAX_MARKS: usize = 200;

impl LogService {
    /// Returns lines of a log: by default of the newest attempt, and the last ones.
    pub async fn log_lines(&self, by: &str, job: &JobId, query: LogLinesQuery) -> Result<LogLines, ServiceError> {
        let attempt = self.jobs.resolve_attempt(job, query.attempt.map(AttemptNumber)).await?;
        let text = query.q.as_deref().filter(|q| !q.is_empty());
        let mut pattern = text.map(|q| compile_pattern(q, query.regex, query.case)).transpose()?;
        let permit = match pattern {
            None if query.rank.is_none() => self.searches.acquire_read(by).await,
            _ => self.searches.acquire_search(by).await,
        };
        let limit = u64::from(query.limit.unwrap_or(200).clamp(1, MAX_LINES));
        let read = move |log: &LogFileLines, budget: &mut CpuBudget<'_>| {
            if let Some(rank) = query.rank {
                return lines_of_rank(log, rank, &query, attempt, budget);
            }
            let first =
                query.from.map_or(log.count.saturating_sub(limit), |from| from.saturating_sub(1)).min(log.count);
            let (mut lines, mut offset, mut unmarked_from) = (Vec::new(), None, None);
            let arrivals = if query.times { log.arrivals()? } else { Vec::new() };
            log.visit(first, MAX_SCAN_BYTES, |line| {
                offset.get_or_insert(line.offset);
                let (number, arrived_at) = (line.number, arrived_at(&arrivals, line.offset));
                let (line, marked) = line_view(&line, pattern.as_mut().filter(|_| unmarked_from.is_none()), budget);
                if !marked {
                    unmarked_from.get_or_insert(number + 1);
                }
                lines.push(LogLine { arrived_at, ..line });
                if lines.len() as u64 == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            Ok(LogLines { from: first + 1, offset, lines, unmarked_from, ..empty_lines(attempt, log) })
        };
        self.read_log_lines(permit, job, attempt, read).await
    }

    /// Searches the lines of a log, within the budget of one request.
    pub async fn search_log(&self, by: &str, job: &JobId, query: LogSearchQuery) -> Result<LogMatches, ServiceError> {
        let attempt = self.jobs.resolve_attempt(job, query.attempt.map(AttemptNumber)).await?;
        let permit = self.searches.acquire_search(by).await;
        let search = move |log: &LogFileLines, budget: &mut CpuBudget<'_>| {
            let pattern = match compile_pattern(&query.q, query.regex, query.case) {
                Ok(pattern) => pattern,
                Err(invalid) => return Ok(Err(invalid)),
            };
            let limit = usize::try_from(query.limit.unwrap_or(100).min(MAX_LINES)).unwrap_or_default();
            let mut matcher = LogSearch::new(pattern, limit);
            let next = if query.backward {
                search_backward(log, &query, &mut matcher, budget)?
            } else {
                search_forward(log, &query, &mut matcher, budget)?
            };
            let LogSearch { matches, count, error, .. } = matcher;
            let next = next.map(|line| line + 1);
            Ok(error.map_or(Ok(LogMatches { attempt, matches, count, next, total: log.count }), Err))
        };
        Ok(self.read_log_lines(permit, job, attempt, search).await??)
    }

    /// Reads a log by line within the budget of one request. The work stops when the client disconnects; it holds its
    /// permit until then.
    pub async fn read_log_lines<T: Send + 'static>(
        &self,
        permit: LogSearchPermit,
        job: &JobId,
        attempt: AttemptNumber,
        read: impl FnOnce(&LogFileLines, &mut CpuBudget<'_>) -> io::Result<T> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (stop_on_drop, time) = (StopOnDrop::default(), self.context.policy.usage_limits.log_search_time);
        let stop = stop_on_drop.stop_flag();
        let read_within_budget = move |log: &LogFileLines| {
            let _permit = permit;
            let cpu_time = cpu_timer();
            read(log, &mut CpuBudget::new(&cpu_time, time, &stop))
        };
        Ok(self.files.read_lines(job, attempt, stop_on_drop.stop_flag(), read_within_budget).await?)
    }
}

/// Returns a clock of this thread's CPU time, starting at zero.
pub(super) fn cpu_timer() -> impl Fn() -> Duration {
    let started = thread_cpu_time();
    move || thread_cpu_time().saturating_sub(started)
}

pub(super) struct LogSearch {
    pattern: Pattern,
    /// 0: lines are only counted.
    limit: usize,
    matches: Vec<LogMatch>,
    count: u64,
    /// Why the pattern cannot be used on this log.
    pub error: Option<InvalidInput>,
}

impl LogSearch {
    pub fn new(pattern: Pattern, limit: usize) -> Self {
        Self { pattern, limit, matches: Vec::new(), count: 0, error: None }
    }

    /// Returns what was found, and continues with another log.
    pub fn take_matches(&mut self) -> Vec<LogMatch> {
        self.count = 0;
        std::mem::take(&mut self.matches)
    }

    fn match_line(&mut self, line: &LogFileLine) -> Option<LogMatch> {
        if line.gap.is_some() {
            return None;
        }
        let text = decode_line(line);
        let plain = plain_text(&text);
        let range = match self.pattern.find(&plain, 0) {
            Ok(range) => range?,
            Err(error) => {
                self.error = Some(pattern_error(error));
                return None;
            }
        };
        let text = if self.limit == 0 { String::new() } else { excerpt(&plain, range.start) };
        Some(LogMatch { line: line.number + 1, text })
    }

    /// Adds a hit; returns whether the limit is reached.
    fn push(&mut self, log_match: LogMatch) -> bool {
        self.count += 1;
        if self.limit > 0 {
            self.matches.push(log_match);
        }
        self.limit > 0 && self.matches.len() == self.limit
    }

    /// Searches another line; returns whether the search ends with it.
    pub fn visit(&mut self, line: &LogFileLine, budget: &mut CpuBudget<'_>) -> bool {
        let log_match = self.match_line(line);
        let is_full = log_match.is_some_and(|line| self.push(line));
        let is_over_budget = budget.spend(line.bytes.len() + LINE_COST_BYTES);
        is_full || is_over_budget || self.error.is_some()
    }
}

/// Searches forwards; returns where to continue.
fn search_forward(
    log: &LogFileLines,
    query: &LogSearchQuery,
    matcher: &mut LogSearch,
    budget: &mut CpuBudget<'_>,
) -> io::Result<Option<u64>> {
    let from = query.from.unwrap_or_default().saturating_sub(1);
    let until = query.until.map_or(log.count, |until| until.saturating_sub(1)).min(log.count);
    scan_forward(log, from, until, |line| matcher.visit(line, budget))
}

/// Searches backwards; returns where to continue.
fn search_backward(
    log: &LogFileLines,
    query: &LogSearchQuery,
    matcher: &mut LogSearch,
    budget: &mut CpuBudget<'_>,
) -> io::Result<Option<u64>> {
    let Some(last) = log.count.checked_sub(1) else { return Ok(None) };
    let last = query.from.map_or(last, |from| from.saturating_sub(1).min(last));
    scan_backward(log, last, |line| matcher.visit(line, budget))
}

/// Reads lines until `visit` ends it; returns where to continue.
pub(super) fn scan_forward(
    log: &LogFileLines,
    from: u64,
    until: u64,
    mut visit: impl FnMut(&LogFileLine) -> bool,
) -> io::Result<Option<u64>> {
    if from >= until {
        return Ok(None);
    }
    let next = log.visit(from, MAX_SCAN_BYTES, |line| {
        let last = line.number + 1 >= until;
        if visit(&line) || last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(Some(next).filter(|next| *next < until))
}

/// Reads lines backwards, block by block, until `visit` ends it; returns where to continue.
pub(super) fn scan_backward(
    log: &LogFileLines,
    mut last: u64,
    mut visit: impl FnMut(&LogFileLine) -> bool,
) -> io::Result<Option<u64>> {
    for _ in 0..MAX_SCAN_BYTES / BLOCK_BYTES {
        let first = log.first_in_block(last);
        let mut block = Vec::new();
        log.visit(first, MAX_SCAN_BYTES, |line| {
            let number = line.number;
            block.push(line);
            if number == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        for line in block.iter().rev() {
            if visit(line) {
                return Ok(line.number.checked_sub(1));
            }
        }
        match first.checked_sub(1) {
            Some(before) => last = before,
            None => return Ok(None),
        }
    }
    Ok(Some(last))
}

pub(super) fn compile_pattern(q: &str, regex: bool, case: bool) -> Result<Pattern, InvalidInput> {
    if q.is_empty() || q.len() > MAX_PATTERN_BYTES {
        let allowed = AllowedValues::Bytes { min: 1, max: MAX_PATTERN_BYTES as u64 };
        return Err(InvalidInput::OutOfRange { field: "q", allowed });
    }
    Pattern::new(q, regex, case).map_err(pattern_error)
}

fn pattern_error(error: PatternError) -> InvalidInput {
    match error {
        PatternError::Syntax(message) => InvalidInput::Pattern(message),
        PatternError::TooLarge | PatternError::TooSlow => InvalidInput::PatternTooCostly,
    }
}

pub(super) fn line_view(
    line: &LogFileLine,
    pattern: Option<&mut Pattern>,
    budget: &mut CpuBudget<'_>,
) -> (LogLine, bool) {
    let text = decode_line(line);
    let marks = pattern.filter(|_| line.gap.is_none()).map(|pattern| find_marks(pattern, &plain_text(&text), budget));
    let is_marked = marks.as_ref().is_none_or(Result::is_ok);
    let matches = marks.and_then(Result::ok).unwrap_or_default();
    let line = LogLine { text: text.into_owned(), omitted: line.omitted, gap: line.gap, matches, ..LogLine::default() };
    (line, is_marked)
}

pub(super) fn decode_line(line: &LogFileLine) -> Cow<'_, str> {
    // A cut may split a character.
    let partial_bytes = if line.omitted > 0 { trailing_partial_char(&line.bytes) } else { 0 };
    String::from_utf8_lossy(&line.bytes[..line.bytes.len() - partial_bytes])
}

#[derive(Debug, PartialEq, Eq)]
struct MarkBudgetExceeded;

/// Returns the ranges in which a pattern matches, in characters.
fn find_marks(
    pattern: &mut Pattern,
    text: &str,
    budget: &mut CpuBudget<'_>,
) -> Result<Vec<(u32, u32)>, MarkBudgetExceeded> {
    let (mut byte, mut char) = (0, 0_u32);
    let mut char_index = |to: usize| {
        char += u32::try_from(text[byte..to].chars().count()).unwrap_or_default();
        byte = to;
        char
    };
    let (mut at, mut marks) = (0, Vec::new());
    while marks.len() < MAX_MARKS && at <= text.len() {
        // A search for a match may read to the end of the line, however near the match is.
        if budget.is_exhausted() {
            return Err(MarkBudgetExceeded);
        }
        let Some(range) = pattern.find(text, at).map_err(|_| MarkBudgetExceeded)? else { break };
        budget.spend(text.len() - at);
        if range.is_empty() {
            at = range.end + text[range.end..].chars().next().map_or(1, char::len_utf8);
        } else {
            at = range.end;
            marks.push((char_index(range.start), char_index(range.end)));
        }
    }
    budget.spend(text.len() - at.min(text.len()) + LINE_COST_BYTES);
    Ok(marks)
}

fn excerpt(text: &str, at: usize) -> String {
    let skipped = text[..at].chars().count().saturating_sub(EXCERPT_BEFORE_CHARS);
    text.chars().skip(skipped).take(EXCERPT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use proptest::prelude::*;
    use regex::Regex;

    /// Runs work with a budget that is used up after so many reads of the clock.
    fn with_budget<T>(clock_reads: u64, work: impl FnOnce(&mut CpuBudget<'_>) -> T) -> T {
        let (reads, stop) = (Cell::new(0), AtomicBool::new(false));
        let clock = || {
            reads.set(reads.get() + 1);
            Duration::from_secs(reads.get())
        };
        work(&mut CpuBudget::new(&clock, Duration::from_secs(clock_reads), &stop))
    }

    const ALWAYS: u64 = u32::MAX as u64;

    #[test]
    fn marks_are_counted_in_characters() {
        let marks = |q, regex, case, text| {
            let mut pattern = compile_pattern(q, regex, case).expect("a pattern");
            with_budget(ALWAYS, |budget| find_marks(&mut pattern, text, budget)).expect("cheap")
        };
        assert_eq!(marks("é", false, false, "aÉé b"), [(1, 2), (2, 3)]);
        assert_eq!(marks("É", false, true, "aÉé b"), [(1, 2)]);
        assert_eq!(marks("a.c", false, false, "abc a.c"), [(4, 7)]);
        assert_eq!(marks("a.c", true, false, "abc a.c"), [(0, 3), (4, 7)]);
        assert_eq!(marks("x*", true, false, "axxb"), [(1, 3)], "an empty match is not marked");
    }

    #[test]
    fn pattern_length_and_size_are_limited() {
        let rejected = |q: &str, regex| compile_pattern(q, regex, false).err().expect("a rejection");
        assert!(matches!(rejected("", false), InvalidInput::OutOfRange { .. }));
        assert!(matches!(rejected(&"x".repeat(MAX_PATTERN_BYTES + 1), false), InvalidInput::OutOfRange { .. }));
        assert_eq!(rejected("a(b", true), InvalidInput::Pattern("unclosed group".into()));
        assert_eq!(rejected(r"(\w{200}){200}", true), InvalidInput::PatternTooCostly, "it would take gigabytes");
        assert!(compile_pattern("a(b", false, false).is_ok());
    }

    #[test]
    fn excerpt_contains_the_match() {
        let text = format!("{}needle{}", "é".repeat(500), "x".repeat(500));
        let actual = excerpt(&text, 1_000);
        assert_eq!(actual.chars().count(), EXCERPT_CHARS);
        assert!(actual.starts_with(&"é".repeat(EXCERPT_BEFORE_CHARS)) && actual.contains("éneedlex"));
    }

    fn log(text: &str) -> (tempfile::TempDir, LogFileLines) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("1.log");
        std::fs::write(&path, text).expect("disk");
        let lines = LogFileLines::open(&path, &std::sync::Mutex::default(), &AtomicBool::new(false)).expect("disk");
        (directory, lines)
    }

    /// Collects all hits by continuing after each slice; also returns the number of slices.
    fn search_in_slices(log: &LogFileLines, query: &LogSearchQuery, clock_reads: u64) -> (Vec<u64>, u32) {
        let (mut query, mut lines, mut slices) = (query.clone(), Vec::new(), 0);
        loop {
            let pattern = compile_pattern(&query.q, query.regex, query.case).expect("a pattern");
            let limit = usize::try_from(query.limit.unwrap_or(100)).expect("small");
            let mut matcher = LogSearch::new(pattern, limit);
            let search = if query.backward { search_backward } else { search_forward };
            let next = with_budget(clock_reads, |budget| search(log, &query, &mut matcher, budget)).expect("disk");
            assert_eq!(matcher.error, None);
            assert_eq!(matcher.count, matcher.matches.len() as u64);
            lines.extend(matcher.matches.iter().map(|found| found.line));
            slices += 1;
            match next {
                Some(next) => query.from = Some(next + 1),
                None => return (lines, slices),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn sliced_search_finds_all_matches(
            words in prop::collection::vec("[ab]{1,3}|\u{1b}\\[3[12]ma|a\rb", 1..1_500),
            (q, clock_reads, limit) in (prop::sample::select(vec!["a", "bab", "a.", "b$", "^a"]), 1..4_u64, 1..9_u32),
            (from, until) in (1..1_600_u64, 1..1_600_u64),
        ) {
            let (_directory, log) = log(&words.join("\n"));
            let expression = Regex::new(q).expect("an expression");
            let has = |word: &str| expression.is_match(&plain_text(word.rsplit('\r').next().expect("a part")));
            let all: Vec<u64> = (1..).zip(&words).filter(|(_, word)| has(word)).map(|(line, _)| line).collect();
            let query = LogSearchQuery { q: q.to_owned(), regex: true, case: true, limit: Some(limit), ..LogSearchQuery::default() };
            prop_assert_eq!(&search_in_slices(&log, &query, clock_reads).0, &all);
            let between = LogSearchQuery { from: Some(from), until: Some(until), ..query.clone() };
            let expected: Vec<_> = all.iter().copied().filter(|line| (from..until).contains(line)).collect();
            prop_assert_eq!(search_in_slices(&log, &between, clock_reads).0, expected);
            let back = LogSearchQuery { from: Some(from), backward: true, ..query };
            let expected: Vec<_> = all.iter().rev().copied().filter(|line| *line <= from).collect();
            prop_assert_eq!(search_in_slices(&log, &back, clock_reads).0, expected);
        }
    }

    #[test]
    fn search_over_budget_pauses_and_continues() {
        let (_directory, log) = log(&"a\n".repeat(1_000));
        let query = LogSearchQuery { q: "a".into(), limit: Some(1_000), ..LogSearchQuery::default() };
        // 252 lines of 65 bytes exceed the 16 KiB after which the clock is read.
        let (lines, slices) = search_in_slices(&log, &query, 1);
        assert_eq!((lines.len(), slices), (1_000, 4));
        assert_eq!(search_in_slices(&log, &query, ALWAYS).1, 1);
        let back = LogSearchQuery { backward: true, ..query };
        assert_eq!((search_in_slices(&log, &back, 1).0.len(), search_in_slices(&log, &back, 1).1), (1_000, 4));
    }

    #[test]
    fn lines_are_marked_within_the_budget() {
        let text = "ab ".repeat(2_000);
        let mut pattern = compile_pattern("b", false, true).expect("a pattern");
        let all = with_budget(ALWAYS, |budget| find_marks(&mut pattern, &text, budget)).expect("enough");
        assert_eq!((all.len(), all[1]), (MAX_MARKS, (4, 5)));
        assert_eq!(with_budget(2, |budget| find_marks(&mut pattern, &text, budget)), Err(MarkBudgetExceeded));
    }
}
