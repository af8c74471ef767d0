//! Where the parts of parallel coordinates are drawn.

use super::plot::ParallelPlot;
use crate::ui::axis::svg_path;

/// The smallest width of an axis with its labels; a plot of more axes than fit scrolls.
const MIN_COLUMN: f64 = 112.0;
/// The top of the axes, below their titles.
const TOP: f64 = 44.0;
/// The height of the axes.
const HEIGHT: f64 = 240.0;
/// The distance from the axes to the row of missing values, and below the last row.
const ROW: f64 = 26.0;
const BOTTOM: f64 = 10.0;
/// The mean width of a letter of a label.
const LETTER: f64 = 6.2;
/// The distance of a label from its axis.
pub(super) const LABEL_GAP: f64 = 7.0;

/// A plot at a width for which the style sheet chooses it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Geometry {
    axes: u32,
    column: f64,
    has_gaps: bool,
}

impl Geometry {
    pub fn new(plot: &ParallelPlot, width: f64) -> Self {
        let axes = u32::try_from(plot.axes.len()).unwrap_or(u32::MAX).max(1);
        Self { axes, column: (width / f64::from(axes)).max(MIN_COLUMN), has_gaps: plot.has_gaps() }
    }

    /// The width below which the plot scrolls.
    pub fn min_width(self) -> f64 {
        MIN_COLUMN * f64::from(self.axes)
    }

    pub fn view_box(self) -> String {
        let height = TOP + HEIGHT + BOTTOM + if self.has_gaps { ROW } else { 0.0 };
        format!("0 0 {:.0} {height}", self.column * f64::from(self.axes))
    }

    /// Where an axis is.
    pub fn x(self, axis: u32) -> f64 {
        (f64::from(axis) + 0.5) * self.column
    }

    /// Where a position on an axis is; without a value, in the row below the axes.
    pub fn y(position: Option<f64>) -> f64 {
        position.map_or(TOP + HEIGHT + ROW, |position| TOP + HEIGHT * (1.0 - position))
    }

    /// Returns the `d` attribute of the line through these positions.
    pub fn line_path(self, positions: impl Iterator<Item = Option<f64>>) -> String {
        svg_path((0..).zip(positions).map(|(axis, position)| (self.x(axis), Self::y(position))))
    }

    /// Shortens the title of an axis, which is above it.
    pub fn short_title(self, text: &str) -> String {
        shortened(text, letters(self.column - LABEL_GAP))
    }

    /// Shortens a label, which is to the right of its axis.
    pub fn short_label(self, text: &str) -> String {
        shortened(text, letters(self.column - 2.0 * LABEL_GAP))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn letters(width: f64) -> usize {
    (width / LETTER) as usize
}

/// Letters that are not Latin can be twice as wide.
fn width_of(letter: char) -> usize {
    if letter.is_ascii() { 1 } else { 2 }
}

/// Shortens a text to at most `max` letters. It removes the middle, because the ends of keys and paths distinguish them.
fn shortened(text: &str, max: usize) -> String {
    if text.chars().map(width_of).sum::<usize>() <= max {
        return text.to_owned();
    }
    let half = max.saturating_sub(1) / 2;
    let start = fitting(text.chars(), half);
    let end: Vec<char> = fitting(text.chars().rev(), half);
    start.into_iter().chain(['…']).chain(end.into_iter().rev()).collect()
}

/// Returns the first letters, as far as they fit.
fn fitting(letters: impl Iterator<Item = char>, max: usize) -> Vec<char> {
    let widths = letters.scan(0, |width, letter| {
        *width += width_of(letter);
        Some((*width, letter))
    });
    widths.take_while(|(width, _)| *width <= max).map(|(_, letter)| letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::pages::compare::parallel::plot::{PlotAxis, PlotLine};

    fn plot(count: usize, position: Option<f64>) -> ParallelPlot {
        let axis = PlotAxis { title: String::new(), is_logarithmic: false, ticks: Vec::new() };
        let values = vec![(position, String::new()); count];
        let line = PlotLine { name: String::new(), values, is_best: false };
        ParallelPlot { axes: vec![axis; count], lines: vec![line], ..ParallelPlot::default() }
    }

    #[test]
    fn columns_share_the_width_and_have_a_minimum() {
        let wide = Geometry::new(&plot(4, Some(0.0)), 1_000.0);
        assert_eq!([0, 3].map(|axis| wide.x(axis)).to_vec(), [125.0, 875.0]);
        assert_eq!(wide.view_box(), "0 0 1000 294");
        let narrow = Geometry::new(&plot(4, None), 340.0);
        assert_eq!((narrow.view_box().as_str(), Some(narrow.min_width())), ("0 0 448 320", Some(448.0)));
    }

    #[test]
    fn lines_lead_upward_and_missing_values_are_below() {
        let geometry = Geometry::new(&plot(3, None), 300.0);
        let path = geometry.line_path([Some(0.0), Some(1.0), None].into_iter());
        assert_eq!(path, "M56.0 284.0h0L168.0 44.0L280.0 310.0");
    }

    #[test]
    fn long_texts_keep_both_ends() {
        assert_eq!(shortened("learning_rate", 13), "learning_rate");
        assert_eq!(shortened("validation_guidance_rescale", 13), "valida…escale");
        assert_eq!(shortened("学習率の設定", 7), "学…定");
        assert_eq!(["", "a", "ab"].map(|text| shortened(text, 0)), ["", "…", "…"]);
    }
}
