//! Secrets in what a trainer writes: stars stand in their place, as many as there were bytes, so that offsets stay true.
//!
//! A secret is found as it is and in the usual encodings (`spelling`), also where colours, other escape sequences, control
//! characters or line breaks cut it (`visible`).

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind, Span, packed};
use serde_json::Value;

use super::spelling;
use super::visible::{SEQUENCE, Visible};

/// So much of each spelling is looked for; where that is found, the rest is compared. This bounds the automaton's memory.
const ANCHOR: usize = 32;
/// Begins an escape sequence.
const ESC: u8 = 0x1b;
/// So many bytes of escape sequences may stand between two bytes of a secret, on average.
const CUTS: usize = 32;
/// The most that is read before and after a piece, unless a secret itself is longer.
const FARTHEST: usize = 1024 * 1024;

/// What is looked for.
#[derive(Debug, Default)]
pub struct Mask {
    spellings: Vec<Vec<u8>>,
    finder: Option<Finder>,
    longest: usize,
}

/// What comes behind a window of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Nothing that a secret in the window could reach.
    Known,
    /// More, at any moment: what may be the beginning of a secret waits.
    Growing,
    /// Perhaps more, but nothing came for a while: only what stands at the very end waits, and no line that ends with the
    /// first letter of a secret.
    Quiet,
}

/// Finds the next anchor.
#[derive(Debug)]
enum Finder {
    /// With vector instructions, ten times as fast: for up to 128 anchors, where the processor has them.
    Few(packed::Searcher),
    Many(AhoCorasick),
}

impl Finder {
    fn of<'a>(anchors: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let many = |anchors| AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(anchors);
        packed::Searcher::new(anchors.clone())
            .map_or_else(|| Self::Many(many(anchors).expect("anchors are short")), Self::Few)
    }

    fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        let found = match self {
            Self::Few(finder) => finder.find_in(text, Span::from(from..text.len())),
            Self::Many(finder) => finder.find(Input::new(text).range(from..)),
        };
        found.map(|found| found.start())
    }
}

impl Mask {
    /// For these values, as they are and as programs like to write them.
    ///
    /// # Panics
    /// If there are more anchors than an automaton has numbers for (2³¹ bytes); the orchestrator's answer has 8 MiB at most.
    pub fn of<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        let spellings: BTreeSet<Vec<u8>> = values.flat_map(spelling::all).collect();
        let spellings: Vec<_> = spellings.into_iter().collect();
        let longest = spellings.iter().map(Vec::len).max().unwrap_or(0);
        let anchors = spellings.iter().map(|spelling| &spelling[..spelling.len().min(ANCHOR)]);
        let finder = (longest > 0).then(|| Finder::of(anchors));
        Self { spellings, finder, longest }
    }

    /// How many bytes before and after a piece have to be known to see every secret that reaches into it.
    pub fn reach(&self) -> usize {
        match self.longest {
            0 => 0,
            // A window may begin, and end, in the middle of a sequence.
            longest => (longest * CUTS).min(FARTHEST).max(longest) + 2 * SEQUENCE,
        }
    }

    /// How many bytes at the beginning may be the second half of a secret, or of an escape sequence and then of a secret.
    pub fn half(&self, bytes: &[u8]) -> usize {
        let Some(half) = self.longest.checked_sub(1) else { return 0 };
        let visible = Visible::of(bytes);
        if half + CUTS < visible.text.len() { visible.origin(half + CUTS) } else { bytes.len() }
    }

    /// Puts stars in the place of every secret.
    pub fn hide(&self, bytes: &mut [u8]) {
        if self.finder.is_none() {
            return;
        }
        let visible = Visible::of(bytes);
        let mut secrets: Vec<_> = self.found(&visible.text).flat_map(|range| visible.origins(range)).collect();
        // What stands within an escape sequence is no text, and yet in the file.
        if bytes.contains(&ESC) {
            secrets.extend(self.found(bytes));
        }
        for range in secrets {
            bytes[range].fill(b'*');
        }
    }

    /// The same for a text by itself.
    pub fn text(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.hide(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The same for every text in it, names of fields too.
    pub fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(list) => list.iter_mut().for_each(|entry| self.json(entry)),
            Value::Object(fields) => {
                let hide = |(name, mut value): (String, Value)| {
                    self.json(&mut value);
                    (self.text(&name), value)
                };
                *fields = std::mem::take(fields).into_iter().map(hide).collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Of what a window holds of a log, the up to `limit` bytes from `from` on, without secrets. The window reaches as far
    /// before and after them as there is.
    pub fn piece(&self, mut window: Vec<u8>, from: usize, limit: usize, tail: Tail) -> Vec<u8> {
        let sure = self.sure(&window, tail);
        self.hide(&mut window);
        let to = sure.min(from + limit);
        window.drain(from.min(to)..to).collect()
    }

    /// Where secrets stand; they may overlap.
    fn found<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Range<usize>> + 't {
        let mut from = 0;
        let starts = std::iter::from_fn(move || {
            let start = self.finder.as_ref()?.find(text, from)?;
            from = start + 1;
            Some(start)
        });
        starts.flat_map(move |start| {
            let here = self.spellings.iter().filter(move |spelling| text[start..].starts_with(spelling));
            here.map(move |spelling| start..start + spelling.len())
        })
    }

    /// How many bytes cannot be part of a secret whose rest is not there yet.
    fn sure(&self, bytes: &[u8], tail: Tail) -> usize {
        let uncut = || bytes.len() - self.unsure(bytes);
        let cut = || {
            let visible = Visible::of(bytes);
            let unsure = self.unsure(&visible.text);
            if unsure > 0 { visible.origin(visible.text.len() - unsure) } else { bytes.len() }
        };
        match tail {
            Tail::Known => bytes.len(),
            Tail::Growing => uncut().min(cut()),
            Tail::Quiet => uncut(),
        }
    }

    /// How many bytes at the end may be the beginning of a secret.
    fn unsure(&self, text: &[u8]) -> usize {
        let begun = |spelling: &Vec<u8>| {
            let mut lengths = (1..spelling.len().min(text.len() + 1)).rev();
            lengths.find(|length| text.ends_with(&spelling[..*length]))
        };
        self.spellings.iter().filter_map(begun).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
