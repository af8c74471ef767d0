//! Patterns for log searches, and what a search may cost.
//!
//! A pattern runs on lazy DFAs with small caches. They give up where a cache does not help, instead of falling back to
//! an engine that costs states × bytes: such a pattern is refused. What remains costs little per byte, so a budget that
//! is checked by bytes holds.
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

/// The most of a compiled pattern, in bytes, in each direction. It bounds what one new DFA state costs.
const NFA_SIZE: usize = 256 << 10;
/// What the DFA states of a pattern may take, in bytes, in each direction.
const CACHE: usize = 2 << 20;
/// How often a cache may be cleared before it must prove useful.
const CLEARS: usize = 1;
/// A cache is useful while a new state is needed for so many bytes, at most.
const BYTES_PER_STATE: usize = 64;
/// How deeply groups, repetitions and classes may be nested.
const NESTING: u32 = 100;
/// How many characters of classes may be looked up to ignore case, which costs some nanoseconds each.
const FOLDED: u64 = 2_500_000;
/// A class that has a name, such as `\pL`, counts as so many characters.
const NAMED_CLASS: u64 = 20_000;

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternError {
    /// It is no regular expression; what is wrong with it.
    Syntax(String),
    /// It is too large when it is compiled.
    TooLarge,
    /// It needs too many states on this text.
    TooSlow,
}

/// A text or a regular expression to look for.
pub struct Pattern {
    regex: Regex,
    cache: Cache,
}

impl Pattern {
    /// Compiles a text, or a regular expression. Whether it ignores case is the opposite of `case`.
    pub fn new(q: &str, regex: bool, case: bool) -> Result<Self, PatternError> {
        let escaped;
        let text = if regex {
            q
        } else {
            escaped = regex_syntax::escape(q);
            &escaped
        };
        let hir = parse(text, case)?;
        let regex = Regex::builder().build_from_dfas(
            dfa(&hir, false, MatchKind::LeftmostFirst)?,
            // The start of a match is the one that is furthest from its end.
            dfa(&hir, true, MatchKind::All)?,
        );
        let cache = regex.create_cache();
        Ok(Self { regex, cache })
    }

    /// Finds the first match at or after a byte. `^` and `\b` see what stands before it.
    pub fn find(&mut self, text: &str, at: usize) -> Result<Option<Range<usize>>, PatternError> {
        match self.regex.try_search(&mut self.cache, &Input::new(text).range(at..)) {
            Ok(found) => Ok(found.map(|found| found.range())),
            Err(error) if matches!(error.kind(), MatchErrorKind::GaveUp { .. }) => Err(PatternError::TooSlow),
            // No byte is configured to end a search, and the lazy DFAs take every anchor mode.
            Err(error) => Err(PatternError::Syntax(error.to_string())),
        }
    }
}

fn parse(text: &str, case: bool) -> Result<Hir, PatternError> {
    let syntax = |error: String| PatternError::Syntax(last_line(&error));
    let ast = ParserBuilder::new().nest_limit(NESTING).build().parse(text);
    let ast = ast.map_err(|error| match error.kind() {
        ast::ErrorKind::NestLimitExceeded(_) => PatternError::TooLarge,
        _ => syntax(error.to_string()),
    })?;
    ast::visit(&ast, Folding::default())?;
    let hir = TranslatorBuilder::new().case_insensitive(!case).build().translate(text, &ast);
    Ok(ascii_words(hir.map_err(|error| syntax(error.to_string()))?))
}

fn dfa(hir: &Hir, reverse: bool, kind: MatchKind) -> Result<DFA, PatternError> {
    let config = thompson::Config::new().reverse(reverse).nfa_size_limit(Some(NFA_SIZE));
    let config = config.which_captures(WhichCaptures::None);
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir).map_err(|_| PatternError::TooLarge)?;
    let config = Config::new().match_kind(kind).cache_capacity(CACHE);
    let config = config.minimum_cache_clear_count(Some(CLEARS)).minimum_bytes_per_state(Some(BYTES_PER_STATE));
    DFA::builder().configure(config).build_from_nfa(nfa).map_err(|_| PatternError::TooLarge)
}

/// The same expression, whose word boundaries are those of ASCII: lazy DFAs know no others.
fn ascii_words(hir: Hir) -> Hir {
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
            repetition.sub = Box::new(ascii_words(*repetition.sub));
            Hir::repetition(repetition)
        }
        // Nobody asks what a group holds.
        HirKind::Capture(capture) => ascii_words(*capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(ascii_words).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(ascii_words).collect()),
    }
}

/// Counts the characters that are looked up to ignore case: a few bytes of pattern name a million of them.
#[derive(Default)]
struct Folding {
    characters: u64,
    depth: u64,
}

impl Folding {
    fn add(&mut self, characters: u64) -> Result<(), PatternError> {
        // Each enclosing class may look them up again.
        self.characters = self.characters.saturating_add(characters.saturating_mul(self.depth + 1));
        if self.characters > FOLDED { Err(PatternError::TooLarge) } else { Ok(()) }
    }
}

impl ast::Visitor for Folding {
    type Output = ();
    type Err = PatternError;

    fn finish(self) -> Result<(), PatternError> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), PatternError> {
        match ast {
            Ast::ClassUnicode(_) | Ast::ClassPerl(_) => self.add(NAMED_CLASS),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), PatternError> {
        match item {
            ClassSetItem::Range(range) => {
                let (start, end) = (u32::from(range.start.c), u32::from(range.end.c));
                self.add(u64::from(end.saturating_sub(start)) + 1)
            }
            ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) => self.add(NAMED_CLASS),
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

/// What is wrong, without the drawing that points at it.
fn last_line(error: &str) -> String {
    error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Reads the clock after so many bytes.
const STRIDE: usize = 16 << 10;

/// What a search may still cost, in CPU time. The clock is read by bytes, because lines differ a thousandfold.
pub struct Budget<'c> {
    spent: &'c dyn Fn() -> Duration,
    limit: Duration,
    stop: &'c AtomicBool,
    unread: usize,
    over: bool,
}

impl<'c> Budget<'c> {
    /// So much time by this clock, which begins at zero, or until `stop` is set.
    pub fn new(spent: &'c dyn Fn() -> Duration, limit: Duration, stop: &'c AtomicBool) -> Self {
        Self { spent, limit, stop, unread: 0, over: false }
    }

    /// Takes what so many bytes cost; returns whether the search has to end here.
    pub fn spend(&mut self, bytes: usize) -> bool {
        self.unread += bytes;
        if self.unread >= STRIDE {
            self.unread = 0;
            self.over |= (self.spent)() >= self.limit;
        }
        self.is_over()
    }

    /// Whether nothing is left, or nobody waits for the answer.
    pub fn is_over(&self) -> bool {
        self.over || self.stop.load(Ordering::Relaxed)
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
    fn a_pattern_finds_what_it_says() {
        assert_eq!(find("b+", "abbc"), Some(1..3));
        assert_eq!(find(r"\bstep\b", "steps step"), Some(6..10));
        assert_eq!(find(r"^a|b$", "cab"), Some(2..3));
        assert_eq!(find(r"\w+@\w+\.\w+", "von größe@beispiel.de an"), Some(4..23));
        assert_eq!(find(r"(?:loss|lr)=\d+\.\d+", "step 1 lr=0.5"), Some(7..13));
        let mut nowhere = Pattern::new(r"\B", true, true).expect("a pattern");
        assert_eq!(nowhere.find("ö", 1), Ok(Some(2..2)), "no place is within a character");
        let mut anchored = Pattern::new("^a", true, true).expect("a pattern");
        assert_eq!(anchored.find("aa", 1), Ok(None), "what stands before the place counts");
    }

    #[test]
    fn a_pattern_that_is_too_large_is_refused() {
        let many = |part: &str| part.repeat(1_000 / part.len());
        for q in [r"(\w{200}){200}", &many(r"\pL"), &many("[!-\u{10ffff}]"), &"(".repeat(300), &"[a[".repeat(200)] {
            let error = Pattern::new(q, true, false).err();
            assert!(matches!(error, Some(PatternError::TooLarge | PatternError::Syntax(_))), "{q}: {error:?}");
        }
        assert!(
            matches!(Pattern::new("a(b", true, false).err(), Some(PatternError::Syntax(why)) if why == "unclosed group")
        );
    }

    /// A text in which almost every byte leads to a state that was not there before.
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
    fn a_pattern_whose_states_do_not_come_again_is_given_up() {
        let text = letters(8 << 10);
        for q in ["[a-z][a-z0-9 ]{600}[A-Z]", "[a-m][a-z ]{900}[A-Z]"] {
            let mut pattern = Pattern::new(q, true, true).expect("small enough");
            let given_up = (0..200).find_map(|_| pattern.find(&text, 0).err());
            assert_eq!(given_up, Some(PatternError::TooSlow), "{q}");
        }
    }

    #[test]
    fn the_clock_is_read_by_bytes_and_a_search_ends_at_its_budget() {
        let (reads, stop) = (Cell::new(0), AtomicBool::new(false));
        let clock = || {
            reads.set(reads.get() + 1);
            Duration::from_millis(reads.get() * 10)
        };
        let mut budget = Budget::new(&clock, Duration::from_millis(30), &stop);
        let lines = (1..100).find(|_| budget.spend(8 << 10));
        assert_eq!((lines, reads.get()), (Some(6), 3), "every second line of 8 KiB");
        reads.set(0);
        let mut budget = Budget::new(&clock, Duration::from_millis(30), &stop);
        assert_eq!((1..10_000).find(|_| budget.spend(64)), Some(3 * STRIDE / 64));
    }

    #[test]
    fn a_search_ends_when_nobody_waits_for_it() {
        let (stop, clock) = (AtomicBool::new(false), || Duration::ZERO);
        let mut budget = Budget::new(&clock, Duration::from_secs(1), &stop);
        assert!(!budget.spend(1 << 20));
        stop.store(true, Ordering::Relaxed);
        assert!(budget.spend(1), "without a look at the clock");
    }
}
