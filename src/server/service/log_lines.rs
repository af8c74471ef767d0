//! Logs by their lines: what stands in some of them, and which have something.

use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use app::domain::ids::{Attempt, JobId};
use app::domain::log_text::plain;
use app::protocol::logs::{LogLine, LogLines, LogLinesQuery, LogMatch, LogMatches, LogSearchQuery};

use super::Core;
use super::log_pattern::{Budget, Pattern, PatternError};
use super::log_searches::{StopOnDrop, Turn};
use super::logs::trailing;
use super::refusal::{Invalid, Refusal};
use crate::clock::thread_time;
use crate::files::log_index::BLOCK;
use crate::files::log_lines::{Line, Lines};

/// The most lines that are told at once, or found.
const MOST: u32 = 1_000;
/// So many bytes are read for one answer: whoever wants more asks again.
const SLICE: u64 = 64 << 20;
/// The most of a pattern, in bytes; what it becomes takes a multiple.
const PATTERN: usize = 1_000;
/// A line costs as much as so many bytes, however short it is.
const PER_LINE: usize = 64;
/// Of a line so many characters are told when it is found, and of them before what was looked for.
const EXCERPT: usize = 200;
const BEFORE: usize = 60;
/// So many places are marked in a line.
const MARKS: usize = 200;

impl Core {
    /// Tells lines of a log to a person: of the newest attempt if none is named, the last ones if none is.
    pub async fn log_lines(&self, by: &str, job: &JobId, query: LogLinesQuery) -> Result<LogLines, Refusal> {
        let attempt = self.attempt_of(job, query.attempt.map(Attempt)).await?;
        let wanted = query.q.as_deref().filter(|q| !q.is_empty());
        let mut pattern = wanted.map(|q| pattern(q, query.regex, query.case)).transpose()?;
        let turn = match pattern {
            Some(_) => self.searches.searching(by).await,
            None => self.searches.reading(by).await,
        };
        let limit = u64::from(query.limit.unwrap_or(200).clamp(1, MOST));
        let read = move |log: &Lines, budget: &mut Budget<'_>| {
            let first =
                query.from.map_or(log.count.saturating_sub(limit), |from| from.saturating_sub(1)).min(log.count);
            let (mut lines, mut offset, mut unmarked_from) = (Vec::new(), None, None);
            log.visit(first, SLICE, |line| {
                offset.get_or_insert(line.offset);
                let number = line.number;
                let (line, marked) = told(&line, pattern.as_mut().filter(|_| unmarked_from.is_none()), budget);
                if !marked {
                    unmarked_from.get_or_insert(number + 1);
                }
                lines.push(line);
                if lines.len() as u64 == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            let (total, open, size) = (log.count, log.open, log.size);
            Ok(LogLines { attempt, from: first + 1, offset, lines, unmarked_from, total, open, size })
        };
        self.read_log_lines(turn, job, attempt, read).await
    }

    /// Looks for something in the lines of a log, as far as one answer goes.
    pub async fn search_log(&self, by: &str, job: &JobId, query: LogSearchQuery) -> Result<LogMatches, Refusal> {
        let attempt = self.attempt_of(job, query.attempt.map(Attempt)).await?;
        let turn = self.searches.searching(by).await;
        let search = move |log: &Lines, budget: &mut Budget<'_>| {
            let pattern = match pattern(&query.q, query.regex, query.case) {
                Ok(pattern) => pattern,
                Err(invalid) => return Ok(Err(invalid)),
            };
            let limit = usize::try_from(query.limit.unwrap_or(100).min(MOST)).unwrap_or_default();
            let mut found = Found { pattern, limit, matches: Vec::new(), count: 0, failed: None };
            let next = if query.backward {
                backward(log, &query, &mut found, budget)?
            } else {
                forward(log, &query, &mut found, budget)?
            };
            let Found { matches, count, failed, .. } = found;
            let next = next.map(|line| line + 1);
            Ok(failed.map_or(Ok(LogMatches { attempt, matches, count, next, total: log.count }), Err))
        };
        Ok(self.read_log_lines(turn, job, attempt, search).await??)
    }

    /// Reads a log by lines within the budget of one request. Who stops waiting stops the work, and the turn is given
    /// back when it has stopped.
    pub async fn read_log_lines<T: Send + 'static>(
        &self,
        turn: Turn,
        job: &JobId,
        attempt: Attempt,
        read: impl FnOnce(&Lines, &mut Budget<'_>) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (waiting, time) = (StopOnDrop::default(), self.policy.bounds.log_search_time);
        let stop = waiting.flag();
        let within = move |log: &Lines| {
            let _turn = turn;
            let spent = time_from_now();
            read(log, &mut Budget::new(&spent, time, &stop))
        };
        Ok(self.logs.lines(job, attempt, waiting.flag(), within).await?)
    }
}

/// The CPU time of this thread, from now on.
fn time_from_now() -> impl Fn() -> Duration {
    let began = thread_time();
    move || thread_time().saturating_sub(began)
}

/// What a search has found so far.
struct Found {
    pattern: Pattern,
    /// None if the lines are only counted.
    limit: usize,
    matches: Vec<LogMatch>,
    count: u64,
    /// Why the pattern cannot be used on this log.
    failed: Option<Invalid>,
}

impl Found {
    /// The line as it was found, if it has what is looked for.
    fn look(&mut self, line: &Line) -> Option<LogMatch> {
        if line.gap.is_some() {
            return None;
        }
        let text = text_of(line);
        let said = plain(&text);
        let place = match self.pattern.find(&said, 0) {
            Ok(place) => place?,
            Err(error) => {
                self.failed = Some(unusable(error));
                return None;
            }
        };
        let text = if self.limit == 0 { String::new() } else { excerpt(&said, place.start) };
        Some(LogMatch { line: line.number + 1, text })
    }

    /// Whether that was the last one that is wanted.
    fn take(&mut self, found: LogMatch) -> bool {
        self.count += 1;
        if self.limit > 0 {
            self.matches.push(found);
        }
        self.limit > 0 && self.matches.len() == self.limit
    }

    /// Looks at one more line; returns whether the search ends with it.
    fn enough(&mut self, line: &Line, budget: &mut Budget<'_>) -> bool {
        let found = self.look(line);
        let enough = found.is_some_and(|line| self.take(line));
        let over = budget.spend(line.bytes.len() + PER_LINE);
        enough || over || self.failed.is_some()
    }
}

/// Looks at line after line, and says where to go on.
fn forward(log: &Lines, query: &LogSearchQuery, found: &mut Found, budget: &mut Budget<'_>) -> io::Result<Option<u64>> {
    let from = query.from.unwrap_or_default().saturating_sub(1);
    let until = query.until.map_or(log.count, |until| until.saturating_sub(1)).min(log.count);
    if from >= until {
        return Ok(None);
    }
    let next = log.visit(from, SLICE, |line| {
        let last = line.number + 1 >= until;
        if found.enough(&line, budget) || last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(Some(next).filter(|next| *next < until))
}

/// Looks at the lines of one block after the other, from the last to the first, and says where to go on.
fn backward(
    log: &Lines,
    query: &LogSearchQuery,
    found: &mut Found,
    budget: &mut Budget<'_>,
) -> io::Result<Option<u64>> {
    let Some(mut last) = log.count.checked_sub(1) else { return Ok(None) };
    last = query.from.map_or(last, |from| from.saturating_sub(1).min(last));
    for _ in 0..SLICE / BLOCK {
        let first = log.first_beside(last);
        let mut block = Vec::new();
        log.visit(first, SLICE, |line| {
            let number = line.number;
            block.push(line);
            if number == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        for line in block.iter().rev() {
            if found.enough(line, budget) {
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

/// What is looked for.
fn pattern(q: &str, regex: bool, case: bool) -> Result<Pattern, Invalid> {
    if q.is_empty() || q.len() > PATTERN {
        return Err(Invalid::Range { field: "q", allowed: "1 to 1000 bytes" });
    }
    Pattern::new(q, regex, case).map_err(unusable)
}

fn unusable(error: PatternError) -> Invalid {
    match error {
        PatternError::Syntax(why) => Invalid::Pattern(why),
        PatternError::TooLarge | PatternError::TooSlow => Invalid::PatternTooCostly,
    }
}

/// A line as it is told, and whether it is marked.
fn told(line: &Line, pattern: Option<&mut Pattern>, budget: &mut Budget<'_>) -> (LogLine, bool) {
    let text = text_of(line);
    let marked = pattern.filter(|_| line.gap.is_none()).map(|pattern| marks(pattern, &plain(&text), budget));
    let is_marked = marked.as_ref().is_none_or(Result::is_ok);
    let matches = marked.and_then(Result::ok).unwrap_or_default();
    (LogLine { text: text.into_owned(), omitted: line.omitted, gap: line.gap, matches }, is_marked)
}

fn text_of(line: &Line) -> Cow<'_, str> {
    // Where a line is cut, a character may be.
    let cut = if line.omitted > 0 { trailing(&line.bytes) } else { 0 };
    String::from_utf8_lossy(&line.bytes[..line.bytes.len() - cut])
}

/// Marking has cost too much.
#[derive(Debug, PartialEq, Eq)]
struct Unmarked;

/// Where a pattern is found in a text, in characters.
fn marks(pattern: &mut Pattern, text: &str, budget: &mut Budget<'_>) -> Result<Vec<(u32, u32)>, Unmarked> {
    let (mut byte, mut char) = (0, 0_u32);
    let mut place = |to: usize| {
        char += u32::try_from(text[byte..to].chars().count()).unwrap_or_default();
        byte = to;
        char
    };
    let (mut at, mut marks) = (0, Vec::new());
    while marks.len() < MARKS && at <= text.len() {
        // A search for a match may go to the end of the line, however near the match is.
        if budget.is_over() {
            return Err(Unmarked);
        }
        let Some(found) = pattern.find(text, at).map_err(|_| Unmarked)? else { break };
        budget.spend(text.len() - at);
        if found.is_empty() {
            at = found.end + text[found.end..].chars().next().map_or(1, char::len_utf8);
        } else {
            at = found.end;
            marks.push((place(found.start), place(found.end)));
        }
    }
    budget.spend(text.len() - at.min(text.len()) + PER_LINE);
    Ok(marks)
}

fn excerpt(text: &str, at: usize) -> String {
    let before = text[..at].chars().count().saturating_sub(BEFORE);
    text.chars().skip(before).take(EXCERPT).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use proptest::prelude::*;
    use regex::Regex;

    /// Runs something with a budget that is used up after so many looks at the clock.
    fn within<T>(looks: u64, work: impl FnOnce(&mut Budget<'_>) -> T) -> T {
        let (seen, stop) = (Cell::new(0), AtomicBool::new(false));
        let clock = || {
            seen.set(seen.get() + 1);
            Duration::from_secs(seen.get())
        };
        work(&mut Budget::new(&clock, Duration::from_secs(looks), &stop))
    }

    const ALWAYS: u64 = u32::MAX as u64;

    #[test]
    fn marks_are_counted_in_characters() {
        let of = |q, regex, case, text| {
            let mut pattern = pattern(q, regex, case).expect("a pattern");
            within(ALWAYS, |budget| marks(&mut pattern, text, budget)).expect("cheap")
        };
        assert_eq!(of("é", false, false, "aÉé b"), [(1, 2), (2, 3)]);
        assert_eq!(of("É", false, true, "aÉé b"), [(1, 2)]);
        assert_eq!(of("a.c", false, false, "abc a.c"), [(4, 7)]);
        assert_eq!(of("a.c", true, false, "abc a.c"), [(0, 3), (4, 7)]);
        assert_eq!(of("x*", true, false, "axxb"), [(1, 3)], "nothing is no place");
    }

    #[test]
    fn a_pattern_is_bounded_in_length_and_size() {
        let refused = |q: &str, regex| pattern(q, regex, false).err().expect("a refusal");
        assert!(matches!(refused("", false), Invalid::Range { .. }));
        assert!(matches!(refused(&"x".repeat(PATTERN + 1), false), Invalid::Range { .. }));
        assert_eq!(refused("a(b", true), Invalid::Pattern("unclosed group".into()));
        assert_eq!(refused(r"(\w{200}){200}", true), Invalid::PatternTooCostly, "it would take gigabytes");
        assert!(pattern("a(b", false, false).is_ok());
    }

    #[test]
    fn an_excerpt_shows_what_was_found() {
        let text = format!("{}needle{}", "é".repeat(500), "x".repeat(500));
        let told = excerpt(&text, 1_000);
        assert_eq!(told.chars().count(), EXCERPT);
        assert!(told.starts_with(&"é".repeat(BEFORE)) && told.contains("éneedlex"));
    }

    fn log(text: &str) -> (tempfile::TempDir, Lines) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("1.log");
        std::fs::write(&path, text).expect("disk");
        let lines = Lines::open(&path, &std::sync::Mutex::default(), &AtomicBool::new(false)).expect("disk");
        (directory, lines)
    }

    /// All that is found by going on wherever a slice ended, and how many slices it took.
    fn walk(log: &Lines, query: &LogSearchQuery, looks: u64) -> (Vec<u64>, u32) {
        let (mut query, mut lines, mut slices) = (query.clone(), Vec::new(), 0);
        loop {
            let pattern = pattern(&query.q, query.regex, query.case).expect("a pattern");
            let limit = usize::try_from(query.limit.unwrap_or(100)).expect("small");
            let mut found = Found { pattern, limit, matches: Vec::new(), count: 0, failed: None };
            let search = if query.backward { backward } else { forward };
            let next = within(looks, |budget| search(log, &query, &mut found, budget)).expect("disk");
            assert_eq!(found.failed, None);
            assert_eq!(found.count, found.matches.len() as u64);
            lines.extend(found.matches.iter().map(|found| found.line));
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
        fn what_is_found_slice_by_slice_is_what_is_there(
            words in prop::collection::vec("[ab]{1,3}|\u{1b}\\[3[12]ma|a\rb", 1..1_500),
            (q, looks, limit) in (prop::sample::select(vec!["a", "bab", "a.", "b$", "^a"]), 1..4_u64, 1..9_u32),
            (from, until) in (1..1_600_u64, 1..1_600_u64),
        ) {
            let (_directory, log) = log(&words.join("\n"));
            let expression = Regex::new(q).expect("an expression");
            let has = |word: &str| expression.is_match(&plain(word.rsplit('\r').next().expect("one")));
            let all: Vec<u64> = (1..).zip(&words).filter(|(_, word)| has(word)).map(|(line, _)| line).collect();
            let query = LogSearchQuery { q: q.to_owned(), regex: true, case: true, limit: Some(limit), ..LogSearchQuery::default() };
            prop_assert_eq!(&walk(&log, &query, looks).0, &all);
            let between = LogSearchQuery { from: Some(from), until: Some(until), ..query.clone() };
            let expected: Vec<_> = all.iter().copied().filter(|line| (from..until).contains(line)).collect();
            prop_assert_eq!(walk(&log, &between, looks).0, expected);
            let back = LogSearchQuery { from: Some(from), backward: true, ..query };
            let expected: Vec<_> = all.iter().rev().copied().filter(|line| *line <= from).collect();
            prop_assert_eq!(walk(&log, &back, looks).0, expected);
        }
    }

    #[test]
    fn a_search_that_is_over_its_budget_pauses_and_goes_on() {
        let (_directory, log) = log(&"a\n".repeat(1_000));
        let query = LogSearchQuery { q: "a".into(), limit: Some(1_000), ..LogSearchQuery::default() };
        // 252 lines of 65 bytes are more than the 16 KiB after which the clock is read.
        let (lines, slices) = walk(&log, &query, 1);
        assert_eq!((lines.len(), slices), (1_000, 4));
        assert_eq!(walk(&log, &query, ALWAYS).1, 1);
        let back = LogSearchQuery { backward: true, ..query };
        assert_eq!((walk(&log, &back, 1).0.len(), walk(&log, &back, 1).1), (1_000, 4));
    }

    #[test]
    fn lines_are_marked_as_far_as_the_budget_goes() {
        let text = "ab ".repeat(2_000);
        let mut pattern = pattern("b", false, true).expect("a pattern");
        let all = within(ALWAYS, |budget| marks(&mut pattern, &text, budget)).expect("enough");
        assert_eq!((all.len(), all[1]), (MARKS, (4, 5)));
        assert_eq!(within(2, |budget| marks(&mut pattern, &text, budget)), Err(Unmarked));
    }
}
