//! Secrets in a trainer's output: stars stand in their place, as many as there were bytes, so that offsets stay true.

use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;
use app::domain::secret::SHORTEST;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// What is looked for.
#[derive(Debug, Default)]
pub struct Mask {
    patterns: Vec<Vec<u8>>,
    finder: Option<AhoCorasick>,
    longest: usize,
}

impl Mask {
    /// For these values, as they are and as programs like to write them.
    pub fn of<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        let patterns: BTreeSet<Vec<u8>> = values.flat_map(spellings).map(String::into_bytes).collect();
        let patterns: Vec<Vec<u8>> = patterns.into_iter().filter(|pattern| pattern.len() >= SHORTEST).collect();
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        // It fails for more than there can be: 64 values of 64 KiB.
        let finder = AhoCorasick::new(&patterns).ok().filter(|_| !patterns.is_empty());
        Self { patterns, finder, longest }
    }

    /// How many bytes before and after a piece have to be known to see every secret that reaches into it.
    pub fn reach(&self) -> usize {
        self.longest.saturating_sub(1)
    }

    /// Puts stars in the place of every secret.
    pub fn hide(&self, bytes: &mut [u8]) {
        let Some(finder) = &self.finder else { return };
        let found: Vec<_> = finder.find_overlapping_iter(&*bytes).map(|found| found.range()).collect();
        for range in found {
            bytes[range].fill(b'*');
        }
    }

    /// Of what a window holds of a log, the up to `limit` bytes from `from` on, without secrets. The window reaches as far
    /// before and after them as there is; where it is `open`, more may follow, and what may be the beginning of a secret
    /// waits.
    pub fn piece(&self, mut window: Vec<u8>, from: usize, limit: usize, open: bool) -> Vec<u8> {
        let sure = if open { window.len() - self.unsure(&window) } else { window.len() };
        self.hide(&mut window);
        let to = sure.min(from + limit);
        window.drain(from.min(to)..to).collect()
    }

    /// How many bytes at the end may be the beginning of a secret whose rest is not there yet.
    fn unsure(&self, bytes: &[u8]) -> usize {
        let begins = |length: usize| {
            let end = &bytes[bytes.len() - length..];
            self.patterns.iter().any(|pattern| pattern.len() > length && pattern.starts_with(end))
        };
        (1..=self.reach().min(bytes.len())).rev().find(|length| begins(*length)).unwrap_or(0)
    }
}

fn spellings(value: &str) -> Vec<String> {
    let json = serde_json::to_string(value).unwrap_or_default();
    let in_json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let in_address: String = value.bytes().map(escaped).collect();
    // Logs are read by the line.
    let lines = value.lines().map(|line| line.trim().to_owned());
    lines.chain([value.to_owned(), in_json, in_address, STANDARD_NO_PAD.encode(value)]).collect()
}

fn escaped(byte: u8) -> String {
    let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hidden(values: &[&str], text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        Mask::of(values.iter().copied()).hide(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn every_spelling_is_hidden_and_nothing_moves() {
        let value = "p@ss \"word\"";
        for spelling in [value, "p@ss \\\"word\\\"", "p%40ss%20%22word%22", "cEBzcyAid29yZCI"] {
            let text = format!("a {spelling} b");
            assert_eq!(hidden(&[value], &text), format!("a {} b", "*".repeat(spelling.len())));
        }
        assert_eq!(hidden(&["-----BEGIN-----\nabcdefgh\n"], "x abcdefgh x"), "x ******** x");
        assert_eq!(hidden(&["12345678", "56789012"], "123456789012"), "*".repeat(12));
        assert_eq!(hidden(&["short"], "short"), "short", "what is too short to be a secret is none");
        assert_eq!(hidden(&[], "text"), "text");
    }

    #[test]
    fn an_end_that_may_be_a_beginning() {
        let mask = Mask::of(["hf_abcdefgh", "hf_hf_xyzw"].into_iter());
        for (text, unsure) in
            [("step h", 1), ("hf_abcdefg", 10), ("hf_abcdefgh", 1), ("x hf_hf_", 6), ("done", 0), ("", 0)]
        {
            assert_eq!(mask.unsure(text.as_bytes()), unsure, "{text:?}");
        }
    }

    proptest! {
        /// However a log is cut into pieces, no secret is in any of them, nor in them together.
        #[test]
        fn no_cut_lets_a_secret_through(
            words in prop::collection::vec(prop::sample::select(vec!["hf_", "abcdefgh", "hf_abcdefgh", "h", "\n", "fgh"]), 0..40),
            cuts in prop::collection::vec(1..20_usize, 1..40),
        ) {
            let text: Vec<u8> = words.concat().into_bytes();
            let mask = Mask::of(["hf_abcdefgh"].into_iter());
            let (mut sent, mut there) = (Vec::new(), 0);
            let mut cuts = cuts.into_iter().cycle();
            while sent.len() < text.len() {
                there = (there + cuts.next().unwrap_or(1)).min(text.len());
                let start = sent.len().saturating_sub(mask.reach());
                let end = there.min(sent.len() + 7 + mask.reach());
                let open = end == there && there < text.len();
                sent.extend(mask.piece(text[start..end].to_vec(), sent.len() - start, 7, open));
            }
            let mut expected = text.clone();
            mask.hide(&mut expected);
            prop_assert_eq!(sent, expected);
        }
    }
}
