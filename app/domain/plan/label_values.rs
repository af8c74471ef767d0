//! The workers' values of required labels, as small numbers.
//!
//! A glob is compared once with each value, and a worker with another value is skipped without access to it, because a
//! large fleet exceeds the processor's caches. Users choose keys and values, so both are limited.

use std::collections::HashMap;

use crate::domain::glob;
use crate::domain::labels::Labels;
use crate::domain::matching::Candidate;

/// Workers' values of further keys are not numbered.
const MAX_KEYS: usize = 32;
/// Further values of a key all have this number.
const OTHER: u8 = u8::MAX;

/// The values of required labels.
#[derive(Default)]
pub(super) struct LabelValues<'w> {
    columns: Vec<Column<'w>>,
    column_by_key: HashMap<&'w str, usize>,
}

/// The values of one label.
struct Column<'w> {
    key: &'w str,
    /// By index of the candidate, as far as known.
    numbers: Vec<Option<u8>>,
    number_by_value: HashMap<Option<&'w str>, u8>,
}

/// A required label.
pub(super) struct RequiredLabel<'w> {
    column: usize,
    glob: &'w str,
    /// By number of the value, as far as known.
    matches: Vec<Option<bool>>,
}

impl<'w> LabelValues<'w> {
    /// Prepares the comparison of these labels.
    pub(super) fn require(&mut self, labels: &'w Labels) -> Vec<RequiredLabel<'w>> {
        let required = labels.0.iter().filter_map(|(key, glob)| {
            let column = self.column(key)?;
            Some(RequiredLabel { column, glob, matches: Vec::new() })
        });
        required.collect()
    }

    fn column(&mut self, key: &'w str) -> Option<usize> {
        if let Some(column) = self.column_by_key.get(key) {
            return Some(*column);
        }
        let column = self.columns.len();
        (column < MAX_KEYS).then(|| {
            self.columns.push(Column { key, numbers: Vec::new(), number_by_value: HashMap::new() });
            self.column_by_key.insert(key, column);
            column
        })
    }

    /// Returns whether the labels of the candidate with this index do not match. If not, they may match.
    pub(super) fn differ(
        &mut self,
        required: &mut [RequiredLabel<'w>],
        index: usize,
        candidate: &Candidate<'w>,
    ) -> bool {
        required.iter_mut().any(|label| !label.may_match(&mut self.columns[label.column], index, candidate))
    }
}

impl<'w> Column<'w> {
    fn number(&mut self, index: usize, candidate: &Candidate<'w>) -> u8 {
        if self.numbers.len() <= index {
            self.numbers.resize(index + 1, None);
        }
        *self.numbers[index].get_or_insert_with(|| {
            let value = candidate.label(self.key);
            let next = u8::try_from(self.number_by_value.len()).unwrap_or(OTHER);
            if next == OTHER {
                self.number_by_value.get(&value).copied().unwrap_or(OTHER)
            } else {
                *self.number_by_value.entry(value).or_insert(next)
            }
        })
    }
}

impl<'w> RequiredLabel<'w> {
    fn may_match(&mut self, column: &mut Column<'w>, index: usize, candidate: &Candidate<'w>) -> bool {
        let number = column.number(index, candidate);
        if number == OTHER {
            return true;
        }
        if self.matches.len() <= usize::from(number) {
            self.matches.resize(usize::from(number) + 1, None);
        }
        *self.matches[usize::from(number)]
            .get_or_insert_with(|| candidate.label(column.key).is_some_and(|value| glob::matches(self.glob, value)))
    }
}
