//! A pattern and a text, one line each: the result is that of a reference implementation, and fast (the fuzzer's limit
//! per input is a hundred times the time for pattern × text; one seed once took pattern × pattern × text).

use app::domain::glob::matches;

/// See the module.
pub fn check(data: &[u8]) {
    let Some((pattern, text)) = super::first_line(data) else { return };
    let expected = reference_match(&elements(&pattern.chars().collect::<Vec<_>>()), text);
    assert_eq!(matches(pattern, text), expected, "{pattern:?} {text:?}");
}

enum Element {
    Star,
    Any,
    One(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Element {
    fn fits(&self, c: char) -> bool {
        match self {
            Self::Star | Self::Any => true,
            Self::One(literal) => *literal == c,
            Self::Class { negated, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
        }
    }
}

fn elements(mut rest: &[char]) -> Vec<Element> {
    // No class ends after the last `]`. This is computed once, or this would be slower than the tested code.
    let after_last_bracket = rest.iter().rev().position(|c| *c == ']').unwrap_or(rest.len());
    let mut found = Vec::new();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match *first {
            '*' => found.push(Element::Star),
            '?' => found.push(Element::Any),
            '[' if rest.len() > after_last_bracket => match class(rest) {
                Some((element, after)) => {
                    found.push(element);
                    rest = after;
                }
                None => found.push(Element::One('[')),
            },
            literal => found.push(Element::One(literal)),
        }
    }
    found
}

fn class(inside: &[char]) -> Option<(Element, &[char])> {
    let (negated, members) = inside.strip_prefix(&['!']).map_or((false, inside), |members| (true, members));
    let end = 1 + members.get(1..)?.iter().position(|c| *c == ']')?;
    let (mut left, mut ranges) = (&members[..end], Vec::new());
    while let [low, rest @ ..] = left {
        let range = if let ['-', high, ..] = rest { Some(*high) } else { None };
        ranges.push((*low, range.unwrap_or(*low)));
        left = if range.is_some() { &rest[2..] } else { rest };
    }
    Some((Element::Class { negated, ranges }, &members[end + 1..]))
}

/// Computes which prefixes of the pattern match each prefix of the text.
fn reference_match(pattern: &[Element], text: &str) -> bool {
    let is_star = |index: usize| matches!(pattern[index], Element::Star);
    let mut fits = vec![false; pattern.len() + 1];
    fits[0] = true;
    for index in 0..pattern.len() {
        fits[index + 1] = fits[index] && is_star(index);
    }
    let mut previous = fits.clone();
    for c in text.chars() {
        std::mem::swap(&mut fits, &mut previous);
        fits[0] = false;
        for (index, element) in pattern.iter().enumerate() {
            fits[index + 1] =
                if is_star(index) { previous[index + 1] || fits[index] } else { previous[index] && element.fits(c) };
        }
    }
    fits[pattern.len()]
}
