//! Log lines as displayed, each with the rank that wrote it.

use std::collections::BTreeMap;

use crate::domain::log_text::{plain_text, visible_range};

/// The first line of a Python traceback.
pub const TRACEBACK_HEADER: &str = "Traceback (most recent call last):";

/// A log line.
#[derive(Debug)]
pub struct RankLine {
    /// The rank, if the prefix contains it.
    pub rank: Option<u32>,
    /// Whether the prefix is the one that trainers add only to tracebacks.
    pub is_traceback: bool,
    /// The line as last displayed in a terminal, without colors.
    pub full_text: String,
    text_start: usize,
}

impl RankLine {
    fn parse(raw: &str) -> Self {
        let mut full_text = plain_text(&raw[visible_range(raw.as_bytes())]).trim_end().to_owned();
        if let Some(before) = inline_traceback_start(&full_text) {
            full_text.drain(..before);
        }
        let (rank, from) = parse_prefixes(&full_text);
        let prefix = &full_text[..from];
        let is_traceback = prefix.contains("[rank") && (prefix.ends_with(' ') || from == full_text.len());
        Self { rank, is_traceback, full_text, text_start: from }
    }

    /// Returns the text without the prefix.
    pub fn text(&self) -> &str {
        &self.full_text[self.text_start..]
    }
}

/// Parses all lines of a text.
pub fn parse_lines(text: &str) -> Vec<RankLine> {
    text.split('\n').map(RankLine::parse).collect()
}

/// Returns the line numbers of each rank, and of lines without a prefix.
pub fn group_by_rank(lines: &[RankLine]) -> Vec<Vec<usize>> {
    let mut streams: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        streams.entry(line.rank).or_default().push(number);
    }
    streams.into_values().collect()
}

/// Finds a traceback that starts after a progress bar or a Ctrl-C, which do not end a line.
fn inline_traceback_start(line: &str) -> Option<usize> {
    let before = &line[..line.find(TRACEBACK_HEADER)?];
    if before.starts_with("^C") {
        return Some("^C".len());
    }
    let speed = before.rfind("it/s").or_else(|| before.rfind("s/it"))?;
    before[speed..].find(']').map(|bar| speed + bar + 1)
}

/// Returns the rank, and where the text begins. The prefix of the trainer follows that of the launcher and takes
/// precedence.
fn parse_prefixes(line: &str) -> (Option<u32>, usize) {
    let (mut rank, mut text_start) = (None, 0);
    while let Some((prefix_rank, length)) = parse_prefix(&line[text_start..]) {
        rank = Some(prefix_rank);
        text_start += length;
    }
    (rank, text_start)
}

/// Parses `[rank1]: `, `[default1]:`, `[1,3]<stderr>:` or `3: `, and returns the rank and the length of the prefix.
fn parse_prefix(text: &str) -> Option<(u32, usize)> {
    let Some(inner) = text.strip_prefix('[') else {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let has_colon = text[digits..].starts_with(": ") || text[digits..] == *":";
        return (digits < 5 && has_colon)
            .then_some(())
            .and(text[..digits].parse().ok())
            .map(|rank| (rank, text.len().min(digits + 2)));
    };
    let (name, after_bracket) = inner.split_once(']')?;
    let marker = ["<stdout>:", "<stderr>:", ":"].into_iter().find(|marker| after_bracket.starts_with(marker))?;
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (word, number) = name.split_at(name.len() - digits);
    let is_job_prefix =
        word.strip_suffix(',').is_some_and(|job| !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit()));
    let is_role_prefix = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let length = 1 + name.len() + 1 + marker.len();
    // Only the trainer's own prefix ends with a space.
    let space = usize::from(word == "rank" && text[length..].starts_with(' '));
    (is_job_prefix || is_role_prefix).then_some(()).and(number.parse().ok()).map(|rank| (rank, length + space))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_name_the_rank() {
        for (line, rank, text) in [
            ("step 3", None, "step 3"),
            ("[rank1]: Traceback", Some(1), "Traceback"),
            ("[rank1]:   File \"a\"", Some(1), "  File \"a\""),
            ("[rank12]:[E1124 x.cpp:1] y", Some(12), "[E1124 x.cpp:1] y"),
            ("[default0]:  File", Some(0), "  File"),
            ("[default0]:[rank2]: ValueError", Some(2), "ValueError"),
            ("[1,3]<stderr>:boom", Some(3), "boom"),
            ("3: boom", Some(3), "boom"),
            ("3:", Some(3), ""),
            ("[rank1]:", Some(1), ""),
            ("[2024-11-24 00:47:13,123] [INFO]", None, "[2024-11-24 00:47:13,123] [INFO]"),
            ("[0]:", None, "[0]:"),
            ("12:30: noon", None, "12:30: noon"),
            ("[rank99999999999]: x", None, "[rank99999999999]: x"),
            (
                " 10%\r 20%|##  | 2/9 [00:01<00:02, 1.0it/s][rank1]: Traceback (most recent call last):",
                Some(1),
                TRACEBACK_HEADER,
            ),
            ("\u{1b}[31mred\u{1b}[0m  \r", None, "red"),
            ("[", None, "["),
            ("]:", None, "]:"),
        ] {
            let found = RankLine::parse(line);
            assert_eq!((found.rank, found.text()), (rank, text), "{line:?}");
        }
    }
}
