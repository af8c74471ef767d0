//! The rank that wrote a line, as its prefix says. A prefix counts only if it names a rank: otherwise any numbered list
//! would look like one.

use std::collections::BTreeSet;

use super::{plain_text, visible_range};

/// A higher number is no rank.
const MAX_RANK: u32 = 65_535;
/// The maximum number of ranks that are listed.
const MAX_RANKS: usize = 256;
/// Prefixes are in this many bytes at the start of a line.
const MAX_PREFIX_BYTES: usize = 256;

/// Returns the rank in the prefixes of a line without colors: `[rank3]: `, `[rank 3] `, `[default3]:` of torchrun, or
/// `[1,3]<stderr>:` of mpirun. The trainer's prefix follows the launcher's, and takes precedence.
pub fn line_rank(line: &str) -> Option<u32> {
    let (mut rank, mut rest) = (None, &line[..line.floor_char_boundary(MAX_PREFIX_BYTES)]);
    while let Some((number, text)) = strip_prefix(rest) {
        (rank, rest) = (Some(number), text);
    }
    rank
}

/// Returns the ranks that prefix lines of a text, in order.
pub fn ranks_in(text: &str) -> BTreeSet<u32> {
    let mut ranks = BTreeSet::new();
    for line in text.split('\n') {
        let line = &line[visible_range(line.as_bytes())];
        if !line.starts_with(['[', '\u{1b}']) {
            continue;
        }
        ranks.extend(line_rank(&plain_text(&line[..line.floor_char_boundary(MAX_PREFIX_BYTES)])));
        if ranks.len() == MAX_RANKS {
            break;
        }
    }
    ranks
}

fn strip_prefix(text: &str) -> Option<(u32, &str)> {
    let (name, rest) = text.strip_prefix('[')?.split_once(']')?;
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let rank = name[word.len()..].parse().ok().filter(|rank| *rank <= MAX_RANK)?;
    let rest = if word.trim_end().eq_ignore_ascii_case("rank") {
        rest.strip_prefix(':').unwrap_or(rest)
    } else if word == "default" {
        rest.strip_prefix(':')?
    } else {
        let job = word.strip_suffix(',').filter(|job| !job.is_empty())?;
        job.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        ["<stdout>:", "<stderr>:"].into_iter().find_map(|stream| rest.strip_prefix(stream))?
    };
    Some((rank, rest.trim_start_matches(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prefixes_name_the_rank() {
        for (line, rank) in [
            ("[rank3]: Traceback (most recent call last):", Some(3)),
            ("[rank 3] step 7", Some(3)),
            ("[Rank 12]: step 7", Some(12)),
            ("[default3]:step 7", Some(3)),
            ("[default0]:[rank2]: ValueError", Some(2)),
            ("[1,3]<stderr>:boom", Some(3)),
            ("[rank0]:", Some(0)),
            ("[rank65535]: x", Some(65_535)),
            ("step 3", None),
            ("3: boom", None),
            ("[3]: footnote", None),
            ("[epoch3]: loss", None),
            ("[default3] x", None),
            ("[2024-11-24 00:47:13,123] [INFO]", None),
            ("[,3]<stdout>:x", None),
            ("[x,3]<stdout>:x", None),
            ("[rank]: x", None),
            ("[rank-1]: x", None),
            ("[rank1000000000]: x", None),
            ("[rank99999999999999999999]: x", None),
            (" [rank1]: x", None),
            ("[", None),
            ("", None),
        ] {
            assert_eq!(line_rank(line), rank, "{line:?}");
        }
    }

    #[test]
    fn ranks_of_a_text_are_listed_once_and_their_number_is_limited() {
        let text =
            "start\n[rank1]: a\n\u{1b}[32m[rank0]\u{1b}[0m: b\n 3%\r[default7]:c\r\n[rank1]: d\n[rank\u{fffd}2]: e";
        assert_eq!(ranks_in(text), BTreeSet::from([0, 1, 7]));
        let many: Vec<String> = (0..10_000).map(|rank| format!("[rank{rank}]: x")).collect();
        assert_eq!(ranks_in(&many.join("\n")).len(), MAX_RANKS);
        let long = format!("[rank{}\n[{}rank5]: x", "é".repeat(500_000), "[".repeat(500_000));
        assert!(ranks_in(&long).is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\[|\\]|:|rank|default|[0-9]{1,11}|,|<stdout>| |\\r|\\n|\\x1b\\[3m|é|\u{202e}){0,40}") {
            for rank in ranks_in(&text) {
                prop_assert!(rank <= MAX_RANK);
            }
        }
    }
}
