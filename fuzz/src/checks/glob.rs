//! A pattern and a text, a line each: the answer is that of the book, and comes in time (the fuzzer's limit for one
//! input stands at a hundred times what pattern × text takes; a seed asks what once took pattern × pattern × text).

use app::domain::glob::matches;

/// See the module.
pub fn check(data: &[u8]) {
    let Some((pattern, text)) = super::first_line(data) else { return };
    let known = by_the_book(&elements(&pattern.chars().collect::<Vec<_>>()), text);
    assert_eq!(matches(pattern, text), known, "{pattern:?} {text:?}");
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
    // Behind the last `]` nothing is closed: asked once, or this would be slower than what it judges.
    let behind = rest.iter().rev().position(|c| *c == ']').unwrap_or(rest.len());
    let mut found = Vec::new();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match *first {
            '*' => found.push(Element::Star),
            '?' => found.push(Element::Any),
            '[' if rest.len() > behind => match class(rest) {
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

/// Which beginnings of the pattern fit which beginnings of the text, one by one.
fn by_the_book(pattern: &[Element], text: &str) -> bool {
    let is_star = |at: usize| matches!(pattern[at], Element::Star);
    let mut fits = vec![false; pattern.len() + 1];
    fits[0] = true;
    for at in 0..pattern.len() {
        fits[at + 1] = fits[at] && is_star(at);
    }
    let mut before = fits.clone();
    for c in text.chars() {
        std::mem::swap(&mut fits, &mut before);
        fits[0] = false;
        for (at, element) in pattern.iter().enumerate() {
            fits[at + 1] = if is_star(at) { before[at + 1] || fits[at] } else { before[at] && element.fits(c) };
        }
    }
    fits[pattern.len()]
}
