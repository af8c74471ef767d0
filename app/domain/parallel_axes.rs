//! Parallel coordinates: where the values of jobs are on vertical axes, and which axes separate the jobs best.

use std::cmp::{Ordering, Reverse};

use crate::domain::text::natural_cmp;

/// The largest number of axes that [`best_separating`] returns.
pub const MAX_AXES: usize = 12;
/// If the largest number is at least this many times the smallest, the axis is logarithmic. Slightly less than 50, because
/// `3.5 / 0.07` is too.
const MIN_LOG_RATIO: f64 = 50.0 - 1e-9;

/// A value on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisValue {
    /// As text.
    pub text: String,
    /// As a finite number, if it is one.
    pub number: Option<f64>,
}

impl AxisValue {
    /// Reads a value. A number and its text are the same.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        Self { text, number }
    }

    /// Numbers as numbers, then texts.
    fn order(&self, other: &Self) -> Ordering {
        match (self.number, other.number) {
            (Some(number), Some(other)) => number.total_cmp(&other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => natural_cmp(&self.text, &other.text),
        }
    }
}

/// How positions follow from values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisScale {
    /// In proportion to the numbers.
    Linear,
    /// In proportion to their logarithms.
    Logarithmic,
    /// At equal distances.
    Categories,
}

impl AxisScale {
    /// The scale for distinct values in order.
    fn of(distinct: &[&AxisValue]) -> Self {
        let numbers: Option<Vec<f64>> = distinct.iter().map(|value| value.number).collect();
        match numbers.as_deref() {
            Some([low, .., high]) if *low > 0.0 && high / low >= MIN_LOG_RATIO => Self::Logarithmic,
            Some([_, ..]) => Self::Linear,
            Some([]) | None => Self::Categories,
        }
    }

    fn coordinate(self, number: f64) -> f64 {
        match self {
            Self::Linear | Self::Categories => number,
            Self::Logarithmic => number.ln(),
        }
    }
}

/// An axis, with the positions of jobs: 0 is its lower end, 1 its upper end.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelAxis {
    /// How positions follow from values.
    pub scale: AxisScale,
    /// The number at the lower end, and the one at the upper end.
    pub ends: (f64, f64),
    /// The distinct values with their positions, upward.
    pub values: Vec<(f64, AxisValue)>,
    /// The position of each job; none without a value.
    pub positions: Vec<Option<f64>>,
}

impl ParallelAxis {
    /// Places the values of jobs on an axis.
    pub fn new(jobs: &[Option<AxisValue>]) -> Self {
        let mut distinct: Vec<&AxisValue> = jobs.iter().flatten().collect();
        distinct.sort_by(|value, other| value.order(other));
        distinct.dedup_by(|value, other| value.order(other).is_eq());
        let scale = AxisScale::of(&distinct);
        let number = |(rank, value): (u32, &&AxisValue)| match (scale, value.number) {
            (AxisScale::Categories, _) | (_, None) => f64::from(rank),
            (_, Some(number)) => number,
        };
        let numbers: Vec<f64> = (0..).zip(&distinct).map(number).collect();
        let ends = numbers.first().copied().zip(numbers.last().copied()).unwrap_or_default();
        let mut axis = Self { scale, ends, values: Vec::new(), positions: Vec::new() };
        let positions = numbers.iter().map(|number| axis.position_of(*number));
        axis.values = positions.zip(distinct.into_iter().cloned()).collect();
        axis.positions = jobs.iter().map(|value| axis.position_of_value(value.as_ref()?)).collect();
        axis
    }

    /// Returns the position of a number; the middle if the axis has one value only.
    pub fn position_of(&self, number: f64) -> f64 {
        // Halves, because the difference of two large numbers may be infinite.
        let half = |number: f64| self.scale.coordinate(number) / 2.0;
        let (low, high) = (half(self.ends.0), half(self.ends.1));
        if low < high { ((half(number) - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
    }

    fn position_of_value(&self, value: &AxisValue) -> Option<f64> {
        self.values.iter().find(|(_, other)| other.order(value).is_eq()).map(|(position, _)| *position)
    }

    /// The number of pairs of jobs that are at different positions.
    fn separated_pairs(&self) -> usize {
        let others = |index: usize| self.positions[..index].iter();
        let differing = |(index, position)| others(index).filter(|other| *other != position).count();
        self.positions.iter().enumerate().map(differing).sum()
    }

    /// Whether each job has a text of its own, such as a path: it separates all jobs, and explains nothing.
    fn names_each_job(&self) -> bool {
        self.scale == AxisScale::Categories && self.values.len() == self.positions.len()
    }
}

/// Returns the axes that separate the most pairs of jobs, those that only name each job last, and how many others were
/// left out. Axes on which all jobs are at one position do not count.
pub fn best_separating<K>(axes: Vec<(K, ParallelAxis)>) -> (Vec<(K, ParallelAxis)>, usize) {
    let mut axes: Vec<_> = axes.into_iter().filter(|(_, axis)| axis.separated_pairs() > 0).collect();
    axes.sort_by_key(|(_, axis)| (axis.names_each_job(), Reverse(axis.separated_pairs())));
    let left_out = axes.len().saturating_sub(MAX_AXES);
    axes.truncate(MAX_AXES);
    (axes, left_out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An axis for the values of jobs; an empty text is no value.
    fn axis(values: &[&str]) -> ParallelAxis {
        let value = |text: &&str| Some(AxisValue::new(*text)).filter(|value| !value.text.is_empty());
        ParallelAxis::new(&values.iter().map(value).collect::<Vec<_>>())
    }

    fn texts(axis: &ParallelAxis) -> Vec<&str> {
        axis.values.iter().map(|(_, value)| value.text.as_str()).collect()
    }

    #[test]
    fn numbers_are_linear_and_wide_ranges_logarithmic() {
        let linear = axis(&["8", "32", "16"]);
        assert_eq!((linear.scale, linear.ends), (AxisScale::Linear, (8.0, 32.0)));
        assert_eq!(linear.positions, [Some(0.0), Some(1.0), Some(1.0 / 3.0)]);
        let logarithmic = axis(&["1e-4", "0.01", " 0.001"]);
        assert_eq!(logarithmic.scale, AxisScale::Logarithmic);
        assert!((logarithmic.positions[2].unwrap() - 0.5).abs() < 1e-9);
        for (values, scale) in [
            (["0.1", "4.99"], AxisScale::Linear),
            (["0.07", "3.5"], AxisScale::Logarithmic),
            (["0", "1000"], AxisScale::Linear),
            (["-1", "1000"], AxisScale::Linear),
            (["1", "auto"], AxisScale::Categories),
            (["1", "inf"], AxisScale::Categories),
            (["1", "NaN"], AxisScale::Categories),
        ] {
            assert_eq!(axis(&values).scale, scale, "{values:?}");
        }
    }

    #[test]
    fn categories_are_numbers_then_texts() {
        let mixed = axis(&["b10", "true", "10", "b9", "[1]", "9.0", "10.0", "9"]);
        assert_eq!(texts(&mixed), ["9.0", "10", "[1]", "b9", "b10", "true"]);
        assert_eq!(mixed.positions[5], mixed.positions[7], "a number and its text are the same");
        assert_eq!(mixed.positions[0], Some(0.8));
    }

    #[test]
    fn missing_and_single_values_have_a_position() {
        assert_eq!(axis(&["", "3", ""]).positions, [None, Some(0.5), None]);
        assert_eq!(axis(&["x", "x"]).positions, [Some(0.5); 2]);
        assert_eq!((axis(&["", ""]).scale, axis(&["", ""]).positions), (AxisScale::Categories, vec![None, None]));
        assert_eq!(axis(&["-1.7e308", "0", "1.7e308"]).positions, [Some(0.0), Some(0.5), Some(1.0)]);
        assert_eq!(Some(axis(&["1", "2"]).position_of(9.0)), Some(1.0), "within the axis");
    }

    #[test]
    fn axes_that_separate_most_jobs_are_first_and_names_last() {
        let axes = vec![
            ("batch", axis(&["1", "1", "2", "2"])),
            ("one of four", axis(&["a", "", "", ""])),
            ("output", axis(&["/a", "/b", "/c", "/d"])),
            ("same", axis(&["x", "x", "x", "x"])),
            ("none", axis(&["", "", "", ""])),
            ("rate", axis(&["1", "2", "3", "4"])),
            ("size", axis(&["1", "2", "1", "2"])),
        ];
        let (chosen, left_out) = best_separating(axes);
        let names: Vec<_> = chosen.iter().map(|(name, _)| *name).collect();
        assert_eq!((names, left_out), (vec!["rate", "batch", "size", "one of four", "output"], 0));
        let many: Vec<_> = (0..MAX_AXES + 3).map(|number| (number, axis(&["1", "2"]))).collect();
        let (chosen, left_out) = best_separating(many);
        assert!(chosen.iter().map(|(number, _)| *number).eq(0..MAX_AXES), "equal ones stay in their order");
        assert_eq!(left_out, 3);
    }

    fn some_value() -> impl Strategy<Value = Option<AxisValue>> {
        let number = prop_oneof![any::<f64>(), 1e-9..1e9_f64, (-3..3_i32).prop_map(f64::from)];
        let text = prop_oneof![4 => number.prop_map(|number| number.to_string()), 1 => "[a-c]{1,2}|\\PC{0,20}"];
        prop::option::weighted(0.9, text.prop_map(AxisValue::new))
    }

    proptest! {
        #[test]
        fn positions_are_on_the_axis_in_the_order_of_the_values(values in prop::collection::vec(some_value(), 0..20)) {
            let axis = ParallelAxis::new(&values);
            prop_assert_eq!(axis.positions.len(), values.len());
            prop_assert!(axis.values.is_sorted_by(|(one, _), (other, _)| one <= other));
            for (value, position) in values.iter().zip(&axis.positions) {
                prop_assert_eq!(value.is_some(), position.is_some());
                prop_assert!(position.is_none_or(|position| (0.0..=1.0).contains(&position)));
            }
            for (value, position) in values.iter().zip(&axis.positions) {
                for (other, other_position) in values.iter().zip(&axis.positions) {
                    if let (Some(value), Some(other)) = (value, other) && value.order(other).is_lt() {
                        prop_assert!(position <= other_position);
                    }
                }
            }
        }

        #[test]
        fn each_axis_is_chosen_left_out_or_separates_nothing(
            axes in prop::collection::vec(prop::collection::vec(some_value(), 4), 0..20),
        ) {
            let axes: Vec<_> = axes.iter().map(|values| ParallelAxis::new(values)).enumerate().collect();
            let separating = axes.iter().filter(|(_, axis)| axis.separated_pairs() > 0).count();
            let (chosen, left_out) = best_separating(axes);
            prop_assert!(chosen.len() <= MAX_AXES);
            prop_assert_eq!(chosen.len() + left_out, separating);
        }
    }
}
