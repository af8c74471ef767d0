//! Times as sets: spans that do not touch, in order.

use crate::domain::time::{Millis, Timestamp};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spans(Vec<(Timestamp, Timestamp)>);

impl FromIterator<(Timestamp, Timestamp)> for Spans {
    fn from_iter<I: IntoIterator<Item = (Timestamp, Timestamp)>>(spans: I) -> Self {
        let mut all: Vec<_> = spans.into_iter().filter(|(from, until)| from < until).collect();
        all.sort_unstable();
        let mut merged: Vec<(Timestamp, Timestamp)> = Vec::with_capacity(all.len());
        for (from, until) in all {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => merged.push((from, until)),
            }
        }
        Self(merged)
    }
}

impl Spans {
    /// When it was both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (mut both, mut mine, mut theirs) = (Vec::new(), self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(a, b)), Some(&&(c, d))) = (mine.peek(), theirs.peek()) {
            if a.max(c) < b.min(d) {
                both.push((a.max(c), b.min(d)));
            }
            if b <= d {
                mine.next()
            } else {
                theirs.next()
            };
        }
        Self(both)
    }

    /// When it was this and not the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let (mut left, mut theirs) = (Vec::new(), other.0.iter().peekable());
        for &(mut from, until) in &self.0 {
            while let Some(&&(c, d)) = theirs.peek() {
                if c >= until {
                    break;
                }
                if from < c {
                    left.push((from, c));
                }
                from = from.max(d);
                if d >= until {
                    break;
                }
                theirs.next();
            }
            if from < until {
                left.push((from, until));
            }
        }
        Self(left)
    }

    /// How long in all.
    pub fn total(&self) -> Millis {
        Millis(self.0.iter().map(|(from, until)| (*until - *from).0).sum())
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        self.0.iter().copied()
    }
}
