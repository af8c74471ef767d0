//! Globs for label values: `*`, `?`, `[abc]`, `[a-z]`, `[!x]`; case-sensitive, like Python's `fnmatchcase`.
//!
//! Matching is iterative with a single backtracking point, and a missing `]` is searched only once, so the cost is
//! bounded by pattern length × text length.

/// Returns whether the whole `text` matches `pattern`.
pub fn matches(pattern: &str, text: &str) -> bool {
    // Fast path: most globs are literals, or literals followed by a star, and the planner calls this very often.
    let (literal, pattern) = pattern.split_at(pattern.find(['*', '?', '[']).unwrap_or(pattern.len()));
    match (text.strip_prefix(literal), pattern) {
        (None, _) => false,
        (Some(rest), "") => rest.is_empty(),
        (Some(_), "*") => true,
        (Some(rest), pattern) => match_general(pattern, rest),
    }
}

fn match_general(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // No class can be closed after this position.
    let last_end = pattern.iter().rposition(|c| *c == ']').unwrap_or(0);
    let (mut p, mut t) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            last_star = Some((p, t));
            p += 1;
        } else if let Some(width) = match_one(&pattern[p..], p < last_end, text[t]) {
            p += width;
            t += 1;
        } else if let Some((star, from)) = last_star {
            last_star = Some((star, from + 1));
            p = star + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Returns how many pattern characters the first element has if it matches `c`; `end_follows` says whether a `]`
/// follows.
fn match_one(pattern: &[char], end_follows: bool, c: char) -> Option<usize> {
    match *pattern.first()? {
        '?' => Some(1),
        '[' => match end_follows.then(|| parse_class(pattern)).flatten() {
            Some((negated, members, width)) => (class_contains(members, c) != negated).then_some(width),
            None => (c == '[').then_some(1),
        },
        literal => (literal == c).then_some(1),
    }
}

/// Splits a leading `[…]`. Returns none if it is never closed (then `[` is a literal). A `]` right after the opening is
/// a member.
fn parse_class(pattern: &[char]) -> Option<(bool, &[char], usize)> {
    let negated = pattern.get(1) == Some(&'!');
    let start = if negated { 2 } else { 1 };
    let end = (start + 1..pattern.len()).find(|i| pattern[*i] == ']')?;
    Some((negated, &pattern[start..end], end + 1))
}

fn class_contains(members: &[char], c: char) -> bool {
    let mut rest = members;
    loop {
        match rest {
            [] => return false,
            [low, '-', high, tail @ ..] => {
                if (*low..=*high).contains(&c) {
                    return true;
                }
                rest = tail;
            }
            [member, tail @ ..] => {
                if *member == c {
                    return true;
                }
                rest = tail;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn matches_table() {
        let fits = [
            ("a100", "a100"),
            ("a100*", "a100"),
            ("a100*", "a100-sxm4"),
            ("*", ""),
            ("*", "x"),
            ("?100", "a100"),
            ("[ah]100", "h100"),
            ("[a-c]1", "b1"),
            ("[!a]1", "b1"),
            ("a*b*c", "aXbYbZc"),
            ("[]]", "]"),
            ("[", "["),
            ("**", "ab"),
            ("*a*", "bab"),
            ("[a-]x", "-x"),
            ("", ""),
            ("[!]]", "x"),
        ];
        for (pattern, text) in fits {
            assert!(matches(pattern, text), "{pattern} should fit {text}");
        }
        let fails = [
            ("a100", "A100"),
            ("a100", "a1000"),
            ("?", ""),
            ("[!a]1", "a1"),
            ("a*b", "ac"),
            ("", "x"),
            ("[a-c]", "d"),
            ("a?", "a"),
            ("[", "x"),
            ("[!]]", "]"),
            ("*b", "bc"),
            ("[ab", "a"),
        ];
        for (pattern, text) in fails {
            assert!(!matches(pattern, text), "{pattern} should not fit {text}");
        }
    }

    #[test]
    fn many_stars_take_bounded_time() {
        let pattern = "a*".repeat(100) + "b";
        assert!(!matches(&pattern, &"a".repeat(2_000)));
    }

    /// Would take minutes if each `[` searched for its end.
    #[test]
    fn unclosed_classes_take_bounded_time() {
        let pattern = format!("*{}x", "[".repeat(2_000));
        assert!(!matches(&pattern, &"[".repeat(8_000)));
    }

    proptest! {
        #[test]
        fn agrees_with_a_recursive_oracle(pattern in "[ab*?]{0,8}", text in "[ab]{0,8}") {
            prop_assert_eq!(matches(&pattern, &text), oracle(pattern.as_bytes(), text.as_bytes()));
        }
    }

    fn oracle(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => oracle(rest, text) || (!text.is_empty() && oracle(pattern, &text[1..])),
            ([b'?', rest @ ..], [_, tail @ ..]) => oracle(rest, tail),
            ([p, rest @ ..], [t, tail @ ..]) if p == t => oracle(rest, tail),
            _ => false,
        }
    }
}
