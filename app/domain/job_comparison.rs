//! Comparing jobs: which values of their configurations differ, and which final values of a metric are best.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::best_metrics::{Better, better};

/// The smallest number of jobs that can be compared.
pub const MIN_COMPARED_JOBS: usize = 2;
/// The largest number of jobs that can be compared.
pub const MAX_COMPARED_JOBS: usize = 20;

/// A key of configurations, with its value in each job; none where a job lacks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedKey<V> {
    /// The key.
    pub key: String,
    /// Whether the values differ.
    pub differs: bool,
    /// The values, in the order of the jobs.
    pub values: Vec<Option<V>>,
}

/// Compares the values of jobs by key: first the keys that differ, then the others, both in alphabetical order.
pub fn compare_keys<V: Clone>(jobs: &[BTreeMap<String, V>], is_same: impl Fn(&V, &V) -> bool) -> Vec<ComparedKey<V>> {
    let keys: BTreeSet<&String> = jobs.iter().flat_map(BTreeMap::keys).collect();
    let compare = |key: &String| {
        let values: Vec<Option<V>> = jobs.iter().map(|values| values.get(key).cloned()).collect();
        let is_first = |value: &Option<V>| match (&values[0], value) {
            (Some(first), Some(value)) => is_same(first, value),
            (first, value) => first.is_none() && value.is_none(),
        };
        ComparedKey { key: key.clone(), differs: !values.iter().all(is_first), values }
    };
    let (mut differing, same): (Vec<_>, Vec<_>) = keys.into_iter().map(compare).partition(|key| key.differs);
    differing.extend(same);
    differing
}

/// Returns which final values of a metric are best, such as the lowest ones of a loss. None is, if all are equal or if it
/// is unknown whether more is better.
pub fn best_values(metric: &str, values: &[Option<f64>]) -> Vec<bool> {
    let finite = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let (lowest, highest) = (finite().reduce(f64::min), finite().reduce(f64::max));
    let best = match better(metric).filter(|_| lowest != highest) {
        None => None,
        Some(Better::Lower) => lowest,
        Some(Better::Higher) => highest,
    };
    values.iter().map(|value| best.is_some() && *value == best).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn job(values: &[(&str, i32)]) -> BTreeMap<String, i32> {
        values.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
    }

    #[test]
    fn keys_that_differ_are_first() {
        let jobs = [job(&[("a", 1), ("b", 1), ("z", 1)]), job(&[("a", 1), ("b", 2), ("z", 1), ("c", 5)])];
        let keys: Vec<_> = compare_keys(&jobs, i32::eq).into_iter().map(|key| (key.key, key.differs)).collect();
        let expected = [("b", true), ("c", true), ("a", false), ("z", false)];
        assert_eq!(keys, expected.map(|(key, differs)| (key.to_owned(), differs)));
        assert_eq!(compare_keys(&jobs, i32::eq)[1].values, [None, Some(5)]);
    }

    #[test]
    fn values_that_mean_the_same_do_not_differ() {
        let jobs = [job(&[("a", 1)]), job(&[("a", -1)])];
        assert!(!compare_keys(&jobs, |a, b| a.abs() == b.abs())[0].differs);
        assert_eq!(compare_keys::<i32>(&[], i32::eq), []);
    }

    #[test]
    fn lowest_loss_and_highest_accuracy_are_best() {
        let best = |metric: &str, values: &[Option<f64>]| best_values(metric, values);
        assert_eq!(best("val/Loss", &[Some(0.5), Some(0.2), None, Some(f64::NAN)]), [false, true, false, false]);
        assert_eq!(best("loss", &[Some(0.2), Some(0.2), Some(0.3)]), [true, true, false]);
        assert_eq!(best("loss", &[Some(0.2), Some(0.2)]), [false, false], "all are equal");
        assert_eq!(best("loss", &[Some(0.2), None]), [false, false], "there is nothing to compare it with");
        assert_eq!(best("accuracy", &[Some(0.5), Some(0.2)]), [true, false]);
        assert_eq!(best("learning_rate", &[Some(0.5), Some(0.2)]), [false, false], "unknown which is better");
        assert_eq!(best("loss", &[None, None]), [false, false]);
    }

    proptest! {
        #[test]
        fn each_key_has_its_value_in_each_job(
            jobs in prop::collection::vec(prop::collection::btree_map("[a-d]", 0..3, 0..4), 2..5),
        ) {
            let compared = compare_keys(&jobs, i32::eq);
            prop_assert!(compared.is_sorted_by_key(|key| (!key.differs, key.key.clone())));
            for (number, job) in jobs.iter().enumerate() {
                let found = compared.iter().filter_map(|key| Some((key.key.clone(), key.values[number]?)));
                prop_assert_eq!(&found.collect::<BTreeMap<_, _>>(), job);
            }
            for key in &compared {
                prop_assert_eq!(key.differs, key.values.iter().any(|value| *value != key.values[0]));
            }
        }
    }
}
