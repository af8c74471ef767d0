//! Logs by their lines: what stands in some of them, and which have something.

use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;

use app::domain::ids::{Attempt, JobId};
use app::domain::log_text::plain;
use app::domain::time::Millis;
use app::protocol::logs::{LogLine, LogLines, LogLinesQuery, LogMatch, LogMatches, LogSearchQuery};
use regex::{Regex, RegexBuilder};

use super::Core;
use super::logs::trailing;
use super::refusal::{Invalid, Refusal};
use crate::files::log_index::BLOCK;
use crate::files::log_lines::{Line, Lines};

/// The most lines that are told at once, or found.
const MOST: u32 = 1_000;
/// So many bytes are read for one answer: whoever wants more asks again.
const SLICE: u64 = 64 << 20;
/// And so long a search may take.
const PATIENCE: Millis = Millis(250);
/// How often it is looked at the clock, in lines.
const LOOK: u64 = 256;
/// The most of a pattern, in bytes; what it becomes takes a multiple.
const PATTERN: usize = 1_000;
const COMPILED: usize = 1 << 20;
/// Of a line so many characters are told when it is found, and of them before what was looked for.
const EXCERPT: usize = 200;
const BEFORE: usize = 60;
/// So many places are marked in a line.
const MARKS: usize = 200;

impl Core {
    /// Tells lines of a log: of the newest attempt if none is named, the last ones if none is.
    pub async fn log_lines(&self, job: &JobId, query: LogLinesQuery) -> Result<LogLines, Refusal> {
        let attempt = self.attempt_of(job, query.attempt.map(Attempt)).await?;
        let wanted = query.q.as_deref().filter(|q| !q.is_empty());
        let pattern = wanted.map(|q| pattern(q, query.regex, query.case)).transpose()?;
        let limit = u64::from(query.limit.unwrap_or(200).clamp(1, MOST));
        let read = move |log: &Lines| {
            let first =
                query.from.map_or(log.count.saturating_sub(limit), |from| from.saturating_sub(1)).min(log.count);
            let (mut lines, mut offset) = (Vec::new(), None);
            log.visit(first, SLICE, |line| {
                offset.get_or_insert(line.offset);
                lines.push(told(&line, pattern.as_ref()));
                if lines.len() as u64 == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            Ok(LogLines { attempt, from: first + 1, offset, lines, total: log.count, open: log.open, size: log.size })
        };
        Ok(self.logs.lines(job, attempt, read).await?)
    }

    /// Looks for something in the lines of a log, as far as one answer goes.
    pub async fn search_log(&self, job: &JobId, query: LogSearchQuery) -> Result<LogMatches, Refusal> {
        let attempt = self.attempt_of(job, query.attempt.map(Attempt)).await?;
        let pattern = pattern(&query.q, query.regex, query.case)?;
        let clock = self.clock.clone();
        let search = move |log: &Lines| {
            let end = clock.now() + PATIENCE;
            let late = || clock.now() > end;
            let limit = usize::try_from(query.limit.unwrap_or(100).min(MOST)).unwrap_or_default();
            let mut found = Found { pattern, limit, matches: Vec::new(), count: 0 };
            let next = if query.backward {
                backward(log, &query, &mut found, late)?
            } else {
                forward(log, &query, &mut found, late)?
            };
            let Found { matches, count, .. } = found;
            Ok(LogMatches { attempt, matches, count, next: next.map(|line| line + 1), total: log.count })
        };
        Ok(self.logs.search(job, attempt, search).await?)
    }
}

/// What a search has found so far.
struct Found {
    pattern: Regex,
    /// None if the lines are only counted.
    limit: usize,
    matches: Vec<LogMatch>,
    count: u64,
}

impl Found {
    /// The line as it was found, if it has what is looked for.
    fn look(&self, line: &Line) -> Option<LogMatch> {
        let text = text_of(line);
        let said = plain(&text);
        let place = self.pattern.find(&said).filter(|_| line.gap.is_none())?;
        let text = if self.limit == 0 { String::new() } else { excerpt(&said, place.start()) };
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
}

/// Looks at line after line, and says where to go on.
fn forward(log: &Lines, query: &LogSearchQuery, found: &mut Found, late: impl Fn() -> bool) -> io::Result<Option<u64>> {
    let from = query.from.unwrap_or_default().saturating_sub(1);
    let until = query.until.map_or(log.count, |until| until.saturating_sub(1)).min(log.count);
    if from >= until {
        return Ok(None);
    }
    let next = log.visit(from, SLICE, |line| {
        let number = line.number;
        let enough = found.look(&line).is_some_and(|line| found.take(line));
        let pause = number % LOOK == LOOK - 1 && late();
        if enough || pause || number + 1 >= until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(Some(next).filter(|next| *next < until))
}

/// Looks at the lines of one block after the other, from the last to the first, and says where to go on.
fn backward(
    log: &Lines,
    query: &LogSearchQuery,
    found: &mut Found,
    late: impl Fn() -> bool,
) -> io::Result<Option<u64>> {
    let Some(mut last) = log.count.checked_sub(1) else { return Ok(None) };
    last = query.from.map_or(last, |from| from.saturating_sub(1).min(last));
    for _ in 0..SLICE / BLOCK {
        let first = log.first_beside(last);
        let mut here = Vec::new();
        log.visit(first, SLICE, |line| {
            let number = line.number;
            here.extend(found.look(&line));
            if number == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        for line in here.into_iter().rev() {
            let number = line.line - 1;
            if found.take(line) {
                return Ok(number.checked_sub(1));
            }
        }
        match first.checked_sub(1) {
            Some(before) => last = before,
            None => return Ok(None),
        }
        if late() {
            break;
        }
    }
    Ok(Some(last))
}

/// What is looked for. Whatever stands in it, it takes time in proportion to the line.
fn pattern(q: &str, regex: bool, case: bool) -> Result<Regex, Invalid> {
    if q.is_empty() || q.len() > PATTERN {
        return Err(Invalid::Range { field: "q", allowed: "1 to 1000 bytes" });
    }
    let text = if regex { q.to_owned() } else { regex::escape(q) };
    let mut builder = RegexBuilder::new(&text);
    builder.case_insensitive(!case).size_limit(COMPILED).dfa_size_limit(COMPILED);
    builder.build().map_err(|error| Invalid::Pattern(last_line(&error.to_string())))
}

/// What is wrong, without the drawing that points at it.
fn last_line(error: &str) -> String {
    error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn told(line: &Line, pattern: Option<&Regex>) -> LogLine {
    let text = text_of(line);
    let marked = pattern.filter(|_| line.gap.is_none());
    let matches = marked.map(|pattern| marks(pattern, &plain(&text))).unwrap_or_default();
    LogLine { text: text.into_owned(), omitted: line.omitted, gap: line.gap, matches }
}

fn text_of(line: &Line) -> Cow<'_, str> {
    // Where a line is cut, a character may be.
    let cut = if line.omitted > 0 { trailing(&line.bytes) } else { 0 };
    String::from_utf8_lossy(&line.bytes[..line.bytes.len() - cut])
}

/// Where a pattern is found in a text, in characters.
fn marks(pattern: &Regex, text: &str) -> Vec<(u32, u32)> {
    let (mut byte, mut char) = (0, 0_u32);
    let mut place = |to: usize| {
        char += u32::try_from(text[byte..to].chars().count()).unwrap_or_default();
        byte = to;
        char
    };
    let found = pattern.find_iter(text).filter(|found| !found.is_empty()).take(MARKS);
    found.map(|found| (place(found.start()), place(found.end()))).collect()
}

fn excerpt(text: &str, at: usize) -> String {
    let before = text[..at].chars().count().saturating_sub(BEFORE);
    text.chars().skip(before).take(EXCERPT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_are_counted_in_characters() {
        let of = |q, regex, case, text| marks(&pattern(q, regex, case).expect("a pattern"), text);
        assert_eq!(of("é", false, false, "aÉé b"), [(1, 2), (2, 3)]);
        assert_eq!(of("É", false, true, "aÉé b"), [(1, 2)]);
        assert_eq!(of("a.c", false, false, "abc a.c"), [(4, 7)]);
        assert_eq!(of("a.c", true, false, "abc a.c"), [(0, 3), (4, 7)]);
        assert_eq!(of("x*", true, false, "axxb"), [(1, 3)], "nothing is no place");
    }

    #[test]
    fn a_pattern_is_bounded_in_length_and_size() {
        let refused = |q: &str, regex| pattern(q, regex, false).expect_err("a refusal");
        assert!(matches!(refused("", false), Invalid::Range { .. }));
        assert!(matches!(refused(&"x".repeat(PATTERN + 1), false), Invalid::Range { .. }));
        assert_eq!(refused("a(b", true), Invalid::Pattern("unclosed group".into()));
        assert!(matches!(refused(r"(\w{200}){200}", true), Invalid::Pattern(_)), "it would take gigabytes");
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
        let lines = Lines::open(&path, &std::sync::Mutex::default()).expect("disk");
        (directory, lines)
    }

    /// All that is found by going on wherever a slice ended, and how many slices it took.
    fn walk(log: &Lines, query: &LogSearchQuery, late: bool) -> (Vec<u64>, u32) {
        let (mut query, mut lines, mut slices) = (query.clone(), Vec::new(), 0);
        loop {
            let pattern = pattern(&query.q, query.regex, query.case).expect("a pattern");
            let limit = usize::try_from(query.limit.unwrap_or(100)).expect("small");
            let mut found = Found { pattern, limit, matches: Vec::new(), count: 0 };
            let search = if query.backward { backward } else { forward };
            let next = search(log, &query, &mut found, || late).expect("disk");
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
            (q, late, limit) in (prop::sample::select(vec!["a", "bab", "a.", "b$", "^a"]), prop::bool::ANY, 1..9_u32),
            (from, until) in (1..1_600_u64, 1..1_600_u64),
        ) {
            let (_directory, log) = log(&words.join("\n"));
            let expression = Regex::new(q).expect("an expression");
            let has = |word: &str| expression.is_match(&plain(word.rsplit('\r').next().expect("one")));
            let all: Vec<u64> = (1..).zip(&words).filter(|(_, word)| has(word)).map(|(line, _)| line).collect();
            let query = LogSearchQuery { q: q.to_owned(), regex: true, case: true, limit: Some(limit), ..LogSearchQuery::default() };
            prop_assert_eq!(&walk(&log, &query, late).0, &all);
            let between = LogSearchQuery { from: Some(from), until: Some(until), ..query.clone() };
            let expected: Vec<_> = all.iter().copied().filter(|line| (from..until).contains(line)).collect();
            prop_assert_eq!(walk(&log, &between, late).0, expected);
            let back = LogSearchQuery { from: Some(from), backward: true, ..query };
            let expected: Vec<_> = all.iter().rev().copied().filter(|line| *line <= from).collect();
            prop_assert_eq!(walk(&log, &back, late).0, expected);
        }
    }

    #[test]
    fn a_search_that_is_late_pauses_and_goes_on() {
        let (_directory, log) = log(&"a\n".repeat(1_000));
        let query = LogSearchQuery { q: "a".into(), limit: Some(1_000), ..LogSearchQuery::default() };
        let (lines, slices) = walk(&log, &query, true);
        assert_eq!((lines.len(), slices), (1_000, 4));
        assert_eq!(walk(&log, &query, false).1, 1);
    }
}
