//! The best values of metrics.

use std::collections::BTreeMap;

/// The maximum number of metrics of a point, and of an attempt whose best values are kept.
pub const MAX_METRICS: usize = 256;

/// Which values of a metric are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Smaller ones.
    Lower,
    /// Larger ones.
    Higher,
}

/// Parts of names of metrics, and which of their values are better. The first one that is part of a name decides.
const KNOWN: [(&str, Better); 12] = [
    ("loss", Better::Lower),
    ("error", Better::Lower),
    ("perplexity", Better::Lower),
    ("fid", Better::Lower),
    ("lpips", Better::Lower),
    ("accuracy", Better::Higher),
    ("score", Better::Higher),
    ("psnr", Better::Higher),
    ("ssim", Better::Higher),
    ("reward", Better::Higher),
    ("clip", Better::Higher),
    ("vote", Better::Higher),
];

/// Returns which values of a metric are better, if its name tells.
pub fn better(metric: &str) -> Option<Better> {
    let name = metric.to_lowercase();
    KNOWN.iter().find(|(part, _)| name.contains(part)).map(|(_, better)| *better)
}

impl Better {
    /// Returns whether a value is better than another one.
    pub fn prefers(self, value: f64, other: f64) -> bool {
        match self {
            Self::Lower => value < other,
            Self::Higher => value > other,
        }
    }
}

/// A finite value, and the step at which it was reached first.
pub type BestValue = (f64, u64);

/// The best values of an attempt, by metric: only of metrics whose better values are known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BestMetrics(pub BTreeMap<String, BestValue>);

impl BestMetrics {
    /// Takes a value into account.
    pub fn add(&mut self, metric: &str, value: BestValue) {
        let Some(better) = better(metric).filter(|_| value.0.is_finite()) else { return };
        if let Some(best) = self.0.get_mut(metric) {
            if better.prefers(value.0, best.0) {
                *best = value;
            }
        } else if self.0.len() < MAX_METRICS {
            self.0.insert(metric.to_owned(), value);
        }
    }

    /// Takes later values into account.
    pub fn add_all(&mut self, later: &Self) {
        for (metric, value) in &later.0 {
            self.add(metric, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn better_values_follow_from_the_name() {
        for (name, expected) in [
            ("loss", Some(Better::Lower)),
            ("val/Loss", Some(Better::Lower)),
            ("FID", Some(Better::Lower)),
            ("eval/accuracy", Some(Better::Higher)),
            ("clip_score", Some(Better::Higher)),
            ("clip_loss", Some(Better::Lower)),
            ("learning_rate", None),
            ("epoch", None),
        ] {
            assert_eq!(better(name), expected, "{name}");
        }
    }

    #[test]
    fn number_of_metrics_is_limited() {
        let mut best = BestMetrics::default();
        for number in 0..2 * MAX_METRICS {
            best.add(&format!("loss {number}"), (1.0, 1));
        }
        assert_eq!(best.0.len(), MAX_METRICS);
        best.add("loss 0", (0.5, 2));
        assert_eq!(best.0["loss 0"], (0.5, 2), "known ones still improve");
    }

    proptest! {
        #[test]
        fn best_value_is_the_first_of_the_smallest(values in prop::collection::vec(prop_oneof![3 => -9.0..9.0, 1 => Just(f64::NAN)], 1..50)) {
            let mut best = BestMetrics::default();
            for (step, value) in (0..).zip(&values) {
                best.add("loss", (*value, step));
            }
            let smallest = (0..).zip(&values).filter(|(_, value)| value.is_finite()).min_by(|left, right| left.1.total_cmp(right.1));
            prop_assert_eq!(best.0.get("loss").copied(), smallest.map(|(step, value)| (*value, step)));
        }
    }
}
