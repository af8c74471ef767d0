//! Sets of time spans: disjoint, and in order.

use crate::domain::time::{Millis, Timestamp};

/// A set of time spans; see the module documentation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeSpans(Vec<(Timestamp, Timestamp)>);

impl FromIterator<(Timestamp, Timestamp)> for TimeSpans {
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

impl TimeSpans {
    /// Returns the time in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut common, mut own_spans, mut other_spans) =
            (Vec::new(), self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(a, b)), Some(&&(c, d))) = (own_spans.peek(), other_spans.peek()) {
            if a.max(c) < b.min(d) {
                common.push((a.max(c), b.min(d)));
            }
            if b <= d {
                own_spans.next()
            } else {
                other_spans.next()
            };
        }
        Self(common)
    }

    /// Returns the total duration.
    pub fn total_duration(&self) -> Millis {
        Millis(self.0.iter().map(|(from, until)| (*until - *from).0).sum())
    }

    /// Iterates over the spans.
    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        self.0.iter().copied()
    }
}
