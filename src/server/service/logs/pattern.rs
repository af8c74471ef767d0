//! Patterns for log searches, and the cost limit of a search.
//!
//! A pattern runs on lazy DFAs with small caches. They fail where a cache does not help, instead of falling back to an
//! engine that costs states × bytes: such a pattern is rejected. What remains costs little per byte, so a budget that
//! is checked by bytes is enough.
//!
//! The module uses nothing of the server: `benches/log_search.rs` includes it by path.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use regex_automata::hybrid::dfa::{Config, DFA};
use regex_automata::hybrid::regex::{Cache, Regex};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::{Input, MatchErrorKind, MatchKind};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{self, Ast, ClassSetBinaryOp, ClassSetItem};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};

/// The maximum size of a compiled pattern, in bytes per direction. It limits the cost of one new DFA state.
const MAX_NFA_BYTES: usize = 256 << 10;
/// The maximum size of a pattern's DFA states, in bytes per direction.
const MAX_CACHE_BYTES: usize = 2 << 20;
/// How often a cache may be cleared before it must be efficient.
const MAX_CACHE_CLEARS: usize = 1;
/// A cache is efficient if at least this many bytes are searched per new state.
const MIN_BYTES_PER_STATE: usize = 64;
/// The maximum nesting of groups, repetitions and classes.
const MAX_NESTING: u32 = 100;
/// The maximum number of characters in classes that are expanded to ignore case, at some nanoseconds each.
const MAX_FOLDED_CHARS: u64 = 2_500_000;
/// The number of characters that a named class, such as `\pL`, counts as.
const NAMED_CLASS_CHARS: u64 = 20_000;

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternError {
    /// Not a regular expression; with the parser's message.
    Syntax(String),
    /// The compiled pattern is too large.
    TooLarge,
    /// The pattern needs too many states on this text.
    TooSlow,
}

/// A compiled text or regular expression.
pub struct Pattern {
    regex: Regex,
    cache: Cache,
}

impl Pattern {
    /// Compiles a text or a regular expression. `case`: whether case is significant.
    pub fn new(q: &str, regex: bool, case: bool) -> Result<Self, PatternError> {
        let escaped;
        let text = if regex {
            q
        } else {
            escaped = regex_syntax::escape(q);
            &escaped
        };
        let hir = parse_regex(text, case)?;
        let regex = Regex::builder().build_from_dfas(
            build_dfa(&hir, false, MatchKind::LeftmostFirst)?,
            // The start of a match is the one furthest from its end.
            build_dfa(&hir, true, MatchKind::All)?,
        );
        let cache = regex.create_cache();
        Ok(Self { regex, cache })
    }

    /// Finds the first match at or after a byte. `^` and `\b` look at the text before it.
    pub fn find(&mut self, text: &str, at: usize) -> Result<Option<Range<usize>>, PatternError> {
        match self.regex.try_search(&mut self.cache, &Input::new(text).range(at..)) {
            Ok(found) => Ok(found.map(|found| found.range())),
            Err(error) if matches!(error.kind(), MatchErrorKind::GaveUp { .. }) => Err(PatternError::TooSlow),
            // No byte is configured to stop a search, and the lazy DFAs support all anchor modes.
            Err(error) => Err(PatternError::Syntax(error.to_string())),
        }
    }
}

fn parse_regex(text: &str, case: bool) -> Result<Hir, PatternError> {
    let syntax = |error: String| PatternError::Syntax(last_line(&error));
    let ast = ParserBuilder::new().nest_limit(MAX_NESTING).build().parse(text);
    let ast = ast.map_err(|error| match error.kind() {
        ast::ErrorKind::NestLimitExceeded(_) => PatternError::TooLarge,
        _ => syntax(error.to_string()),
    })?;
    ast::visit(&ast, CaseFoldCounter::default())?;
    let hir = TranslatorBuilder::new().case_insensitive(!case).build().translate(text, &ast);
    Ok(ascii_word_boundaries(hir.map_err(|error| syntax(error.to_string()))?))
}

fn build_dfa(hir: &Hir, reverse: bool, kind: MatchKind) -> Result<DFA, PatternError> {
    let config = thompson::Config::new().reverse(reverse).nfa_size_limit(Some(MAX_NFA_BYTES));
    let config = config.which_captures(WhichCaptures::None);
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir).map_err(|_| PatternError::TooLarge)?;
    let config = Config::new().match_kind(kind).cache_capacity(MAX_CACHE_BYTES);
    let config =
        config.minimum_cache_clear_count(Some(MAX_CACHE_CLEARS)).minimum_bytes_per_state(Some(MIN_BYTES_PER_STATE));
    DFA::builder().configure(config).build_from_nfa(nfa).map_err(|_| PatternError::TooLarge)
}

/// Replaces word boundaries by those of ASCII: lazy DFAs support no others.
fn ascii_word_boundaries(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => other,
        }),
        HirKind::Repetition(mut repetition) => {
            repetition.sub = Box::new(ascii_word_boundaries(*repetition.sub));
            Hir::repetition(repetition)
        }
        // The contents of groups are not used.
        HirKind::Capture(capture) => ascii_word_boundaries(*capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(ascii_word_boundaries).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(ascii_word_boundaries).collect()),
    }
}

/// Counts the characters that are expanded to ignore case: a few bytes of a pattern can name a million.
#[derive(Default)]
struct CaseFoldCounter {
    characters: u64,
    depth: u64,
}

impl CaseFoldCounter {
    fn add(&mut self, characters: u64) -> Result<(), PatternError> {
        // Each enclosing class may expand them again.
        self.characters = self.characters.saturating_add(characters.saturating_mul(self.depth + 1));
        if self.characters > MAX_FOLDED_CHARS { Err(PatternError::TooLarge) } else { Ok(()) }
    }
}

impl ast::Visitor for CaseFoldCounter {
    type Output = ();
    type Err = PatternError;

    fn finish(self) -> Result<(), PatternError> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), PatternError> {
        match ast {
            Ast::ClassUnicode(_) | Ast::ClassPerl(_) => self.add(NAMED_CLASS_CHARS),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), PatternError> {
        match item {
            ClassSetItem::Range(range) => {
                let (start, end) = (u32::from(range.start.c), u32::from(range.end.c));
                self.add(u64::from(end.saturating_sub(start)) + 1)
            }
            ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) => self.add(NAMED_CLASS_CHARS),
            ClassSetItem::Bracketed(_) => {
                self.depth += 1;
                Ok(())
            }
            _ => self.add(1),
        }
    }

    fn visit_class_set_item_post(&mut self, item: &ClassSetItem) -> Result<(), PatternError> {
        if matches!(item, ClassSetItem::Bracketed(_)) {
            self.depth -= 1;
        }
        Ok(())
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ClassSetBinaryOp) -> Result<(), PatternError> {
        self.depth += 1;
        Ok(())
    }

    fn visit_class_set_binary_op_post(&mut self, _: &ClassSetBinaryOp) -> Result<(), PatternError> {
        self.depth -= 1;
        Ok(())
    }
}

/// The last line of an error, without the drawing that points at its position.
fn last_line(error: &str) -> String {
    error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The number of bytes after which the clock is read.
const CLOCK_CHECK_BYTES: usize = 16 << 10;

/// The remaining CPU time of a search. The clock is read by bytes, because lengths of lines differ by a factor of a
/// thousand.
pub struct CpuBudget<'c> {
    cpu_time: &'c dyn Fn() -> Duration,
    limit: Duration,
    stop: &'c AtomicBool,
    bytes_since_check: usize,
    exhausted: bool,
}

impl<'c> CpuBudget<'c> {
    /// Allows `limit` by the clock `cpu_time`, which starts at zero, or until `stop` is set.
    pub fn new(cpu_time: &'c dyn Fn() -> Duration, limit: Duration, stop: &'c AtomicBool) -> Self {
        Self { cpu_time, limit, stop, bytes_since_check: 0, exhausted: false }
    }

    /// Charges for bytes; returns whether the search must end here.
    pub fn spend(&mut self, bytes: usize) -> bool {
        self.bytes_since_check += bytes;
        if self.bytes_since_check >= CLOCK_CHECK_BYTES {
            self.bytes_since_check = 0;
            self.exhausted |= (self.cpu_time)() >= self.limit;
        }
        self.is_exhausted()
    }

    /// Returns whether the time is used up, or the client has disconnected.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted || self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn find(q: &str, text: &str) -> Option<Range<usize>> {
        Pattern::new(q, true, true).expect("a pattern").find(text, 0).expect("cheap")
    }

    #[test]
    fn pattern_finds_its_matches() {
        assert_eq!(find("b+", "abbc"), Some(1..3));
        assert_eq!(find(r"\bstep\b", "steps step"), Some(6..10));
        assert_eq!(find(r"^a|b$", "cab"), Some(2..3));
        assert_eq!(find(r"\w+@\w+\.\w+", "von größe@beispiel.de an"), Some(4..23));
        assert_eq!(find(r"(?:loss|lr)=\d+\.\d+", "step 1 lr=0.5"), Some(7..13));
        let mut boundary = Pattern::new(r"\B", true, true).expect("a pattern");
        assert_eq!(boundary.find("ö", 1), Ok(Some(2..2)), "a match is never inside a character");
        let mut anchored = Pattern::new("^a", true, true).expect("a pattern");
        assert_eq!(anchored.find("aa", 1), Ok(None), "the text before the start counts");
    }

    #[test]
    fn large_pattern_is_rejected() {
        let many = |part: &str| part.repeat(1_000 / part.len());
        for q in [r"(\w{200}){200}", &many(r"\pL"), &many("[!-\u{10ffff}]"), &"(".repeat(300), &"[a[".repeat(200)] {
            let error = Pattern::new(q, true, false).err();
            assert!(matches!(error, Some(PatternError::TooLarge | PatternError::Syntax(_))), "{q}: {error:?}");
        }
        assert!(
            matches!(Pattern::new("a(b", true, false).err(), Some(PatternError::Syntax(message)) if message == "unclosed group")
        );
    }

    /// A text in which almost every byte leads to a new state.
    fn letters(length: usize) -> String {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            char::from(b"abcdefghijklmnopqrstuvwxyz "[usize::try_from(seed % 27).unwrap_or_default()])
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn pattern_without_recurring_states_fails() {
        let text = letters(8 << 10);
        for q in ["[a-z][a-z0-9 ]{600}[A-Z]", "[a-m][a-z ]{900}[A-Z]"] {
            let mut pattern = Pattern::new(q, true, true).expect("small enough");
            let error = (0..200).find_map(|_| pattern.find(&text, 0).err());
            assert_eq!(error, Some(PatternError::TooSlow), "{q}");
        }
    }

    #[test]
    fn clock_is_read_by_bytes_and_budget_ends_search() {
        let (reads, stop) = (Cell::new(0), AtomicBool::new(false));
        let clock = || {
            reads.set(reads.get() + 1);
            Duration::from_millis(reads.get() * 10)
        };
        let mut budget = CpuBudget::new(&clock, Duration::from_millis(30), &stop);
        let lines = (1..100).find(|_| budget.spend(8 << 10));
        assert_eq!((lines, reads.get()), (Some(6), 3), "every second line of 8 KiB");
        reads.set(0);
        let mut budget = CpuBudget::new(&clock, Duration::from_millis(30), &stop);
        assert_eq!((1..10_000).find(|_| budget.spend(64)), Some(3 * CLOCK_CHECK_BYTES / 64));
    }

    #[test]
    fn search_stops_when_client_disconnects() {
        let (stop, clock) = (AtomicBool::new(false), || Duration::ZERO);
        let mut budget = CpuBudget::new(&clock, Duration::from_secs(1), &stop);
        assert!(!budget.spend(1 << 20));
        stop.store(true, Ordering::Relaxed);
        assert!(budget.spend(1), "without reading the clock");
    }
}
