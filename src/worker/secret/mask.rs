//! Masks secrets in a trainer's output: one star replaces each byte, so that offsets stay valid.
//!
//! A secret is found unchanged and in the usual encodings (`encodings`), also where colors, other escape sequences,
//! control characters or line breaks interrupt it (`visible_text`).

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind, Span, packed};
use serde_json::Value;

use super::encodings;
use super::visible_text::{MAX_SEQUENCE_BYTES, VisibleText};

/// This prefix of each encoding is searched; where it is found, the rest is compared. This bounds the automaton's
/// memory.
const ANCHOR_BYTES: usize = 32;
/// Begins an escape sequence.
const ESC: u8 = 0x1b;
/// Max bytes of escape sequences between two bytes of a secret, on average.
const MAX_ESCAPE_RATIO: usize = 32;
/// Max bytes read before and after a chunk, unless a secret itself is longer.
const MAX_REACH_BYTES: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub struct Mask {
    encodings: Vec<Vec<u8>>,
    finder: Option<AnchorFinder>,
    longest: usize,
}

/// What follows a window of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailState {
    /// Nothing that a secret in the window could extend into.
    Complete,
    /// More at any time: a possible beginning of a secret is held back.
    Growing,
    /// Possibly more, but nothing came for a while: only the very end is held back, and no line that ends with the
    /// first character of a secret.
    Quiet,
}

/// Finds the next anchor.
#[derive(Debug)]
enum AnchorFinder {
    /// With vector instructions, ten times as fast: for up to 128 anchors, if the processor supports them.
    Few(packed::Searcher),
    Many(AhoCorasick),
}

impl AnchorFinder {
    fn new<'a>(anchors: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
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
    /// For these values, unchanged and in the usual encodings.
    ///
    /// # Panics
    /// If there are more anchors than an automaton supports (2³¹ bytes); the orchestrator's response has at most 8 MiB.
    pub fn from_values<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        let spellings: BTreeSet<Vec<u8>> = values.flat_map(encodings::all_encodings).collect();
        let spellings: Vec<_> = spellings.into_iter().collect();
        let longest = spellings.iter().map(Vec::len).max().unwrap_or(0);
        let anchors = spellings.iter().map(|spelling| &spelling[..spelling.len().min(ANCHOR_BYTES)]);
        let finder = (longest > 0).then(|| AnchorFinder::new(anchors));
        Self { encodings: spellings, finder, longest }
    }

    /// How many bytes before and after a chunk are needed to find every secret that overlaps it.
    pub fn context_bytes(&self) -> usize {
        match self.longest {
            0 => 0,
            // A window may begin and end in the middle of a sequence.
            longest => (longest * MAX_ESCAPE_RATIO).min(MAX_REACH_BYTES).max(longest) + 2 * MAX_SEQUENCE_BYTES,
        }
    }

    /// How many bytes at the beginning may be the rest of a secret, or of an escape sequence and then of a
    /// secret.
    pub fn partial_prefix_len(&self, bytes: &[u8]) -> usize {
        let Some(max_partial) = self.longest.checked_sub(1) else { return 0 };
        let visible = VisibleText::from_raw(bytes);
        if max_partial + MAX_ESCAPE_RATIO < visible.text.len() {
            visible.raw_offset(max_partial + MAX_ESCAPE_RATIO)
        } else {
            bytes.len()
        }
    }

    /// Replaces every secret by stars.
    pub fn mask_bytes(&self, bytes: &mut [u8]) {
        if self.finder.is_none() {
            return;
        }
        let visible = VisibleText::from_raw(bytes);
        let mut secrets: Vec<_> = self.find_ranges(&visible.text).flat_map(|range| visible.raw_ranges(range)).collect();
        // The content of an escape sequence is not visible, but is in the file.
        if bytes.contains(&ESC) {
            secrets.extend(self.find_ranges(bytes));
        }
        for range in secrets {
            bytes[range].fill(b'*');
        }
    }

    /// The same for a separate text.
    pub fn mask_text(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.mask_bytes(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The same for every text in a JSON value, including field names.
    pub fn mask_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.mask_text(text),
            Value::Array(list) => list.iter_mut().for_each(|entry| self.mask_json(entry)),
            Value::Object(fields) => {
                let mask_field = |(name, mut value): (String, Value)| {
                    self.mask_json(&mut value);
                    (self.mask_text(&name), value)
                };
                *fields = std::mem::take(fields).into_iter().map(mask_field).collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns up to `limit` bytes of a window from `from` on, with secrets masked. The window includes as much context
    /// before and after them as there is.
    pub fn mask_window(&self, mut window: Vec<u8>, from: usize, limit: usize, tail: TailState) -> Vec<u8> {
        let certain = self.certain_len(&window, tail);
        self.mask_bytes(&mut window);
        let to = certain.min(from + limit);
        window.drain(from.min(to)..to).collect()
    }

    /// The ranges of secrets; they may overlap.
    fn find_ranges<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Range<usize>> + 't {
        let mut from = 0;
        let starts = std::iter::from_fn(move || {
            let start = self.finder.as_ref()?.find(text, from)?;
            from = start + 1;
            Some(start)
        });
        starts.flat_map(move |start| {
            let matches = self.encodings.iter().filter(move |spelling| text[start..].starts_with(spelling));
            matches.map(move |spelling| start..start + spelling.len())
        })
    }

    /// How many bytes cannot be part of a secret that is still incomplete.
    fn certain_len(&self, bytes: &[u8], tail: TailState) -> usize {
        let uninterrupted = || bytes.len() - self.partial_suffix_len(bytes);
        let interrupted = || {
            let visible = VisibleText::from_raw(bytes);
            let partial_len = self.partial_suffix_len(&visible.text);
            if partial_len > 0 { visible.raw_offset(visible.text.len() - partial_len) } else { bytes.len() }
        };
        match tail {
            TailState::Complete => bytes.len(),
            TailState::Growing => uninterrupted().min(interrupted()),
            TailState::Quiet => uninterrupted(),
        }
    }

    /// How many bytes at the end may be the beginning of a secret.
    fn partial_suffix_len(&self, text: &[u8]) -> usize {
        let partial_len = |spelling: &Vec<u8>| {
            let mut lengths = (1..spelling.len().min(text.len() + 1)).rev();
            lengths.find(|length| text.ends_with(&spelling[..*length]))
        };
        self.encodings.iter().filter_map(partial_len).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
