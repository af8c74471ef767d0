//! Computes which lines of a log are visible at a scroll position. Only those are in the document.
//!
//! The scrolled content is as high as all lines together, up to the height that browsers can draw; a longer log scrolls
//! faster. Lines are placed so that the fraction of the log above the anchor equals the fraction of the view above it:
//! the first line begins at the top and the last one ends at the bottom, however high wrapped lines are.

use crate::ui::format::to_f64;

/// The maximum height of the scrolled content, in pixels: some browsers draw nothing above 17,800,000.
const MAX_CONTENT_HEIGHT: f64 = 16_000_000.0;
/// Number of lines that are rendered before and after the visible ones.
const OVERSCAN: u64 = 4;

/// The visible area of a log, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct LogViewport {
    pub height: f64,
    /// The height of a line that is not wrapped.
    pub row_height: f64,
}

/// The lines to render, and their position in the view. Lines are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VisibleLines {
    /// The first line to render.
    pub first: u64,
    /// The line after the last one to render.
    pub end: u64,
    /// The line whose position is known.
    pub anchor: u64,
    /// The fraction of the anchor line that is above the anchor position.
    pub anchor_fraction: f64,
    /// The anchor position, relative to the upper edge of the view.
    pub anchor_offset: f64,
}

impl LogViewport {
    /// The height of the scrolled content.
    pub fn content_height(self, total: u64) -> f64 {
        (to_f64(total) * self.row_height).clamp(self.height, MAX_CONTENT_HEIGHT.max(self.height))
    }

    /// The maximum scroll position.
    pub fn max_scroll(self, total: u64) -> f64 {
        self.content_height(total) - self.height
    }

    /// How much faster the lines move than the scrolled content.
    pub fn scroll_factor(self, total: u64) -> f64 {
        let max_scroll = self.max_scroll(total);
        if max_scroll > 0.0 { (to_f64(total) * self.row_height - self.height) / max_scroll } else { 1.0 }
    }

    /// The lines to render at a scroll position.
    pub fn visible_lines(self, total: u64, scrolled: f64) -> VisibleLines {
        let max_scroll = self.max_scroll(total);
        let fraction = if max_scroll > 0.0 { (scrolled / max_scroll).clamp(0.0, 1.0) } else { 0.0 };
        let position = fraction * to_f64(total);
        let anchor = floor_to_u64(position).min(total.saturating_sub(1));
        let anchor_offset = fraction * self.height;
        let above = floor_to_u64((anchor_offset / self.row_height).ceil()) + OVERSCAN;
        let below = floor_to_u64(((self.height - anchor_offset) / self.row_height).ceil()) + OVERSCAN + 1;
        VisibleLines {
            first: anchor.saturating_sub(above),
            end: (anchor + below).min(total),
            anchor,
            anchor_fraction: position - to_f64(anchor),
            anchor_offset,
        }
    }

    /// The scroll position at which a line is in the middle of the view.
    pub fn scroll_for_line(self, total: u64, line: u64) -> f64 {
        let middle = (to_f64(line) + 0.5) * self.row_height - self.height / 2.0;
        (middle / self.scroll_factor(total)).clamp(0.0, self.max_scroll(total))
    }

    /// Whether a line that is not wrapped is fully visible.
    pub fn is_line_visible(self, total: u64, scrolled: f64, line: u64) -> bool {
        let upper = to_f64(line) * self.row_height - scrolled * self.scroll_factor(total);
        upper > -1.0 && upper + self.row_height < self.height + 1.0
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "lines on a page, or of a log")]
pub(crate) fn floor_to_u64(number: f64) -> u64 {
    number.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: LogViewport = LogViewport { height: 600.0, row_height: 20.0 };

    #[test]
    fn short_log_is_rendered_in_full() {
        assert_eq!((FRAME.content_height(3), FRAME.max_scroll(3)), (600.0, 0.0));
        let view = FRAME.visible_lines(3, 0.0);
        assert_eq!((view.first, view.end, view.anchor), (0, 3, 0));
        assert_eq!((FRAME.visible_lines(0, 0.0).end, FRAME.scroll_for_line(3, 2)), (0, 0.0));
    }

    #[test]
    fn first_and_last_lines_are_at_the_ends_of_the_scroll_range() {
        for total in [31, 1_000, 1_000_000, 50_000_000] {
            let top = FRAME.visible_lines(total, 0.0);
            assert_eq!((top.first, top.anchor, top.anchor_fraction, top.anchor_offset), (0, 0, 0.0, 0.0));
            let bottom = FRAME.visible_lines(total, FRAME.max_scroll(total));
            assert_eq!(
                (bottom.end, bottom.anchor, bottom.anchor_fraction, bottom.anchor_offset),
                (total, total - 1, 1.0, 600.0)
            );
        }
        assert!(FRAME.content_height(50_000_000) <= MAX_CONTENT_HEIGHT, "no higher than browsers draw");
        assert!((FRAME.scroll_factor(1_000) - 1.0).abs() < 1e-9 && FRAME.scroll_factor(50_000_000) > 60.0);
    }

    proptest! {
        #[test]
        fn view_renders_few_lines_around_the_scroll_position(
            total in 40..20_000_000_u64, part in 0.0..1.0_f64, line in 0..20_000_000_u64,
        ) {
            let scrolled = part * FRAME.max_scroll(total);
            let VisibleLines { first, end, anchor, anchor_fraction, anchor_offset } = FRAME.visible_lines(total, scrolled);
            prop_assert!(end - first <= 30 + 2 * OVERSCAN + 3, "few lines are rendered");
            let upper = anchor_offset - (anchor_fraction + to_f64(anchor - first)) * FRAME.row_height;
            let lower = upper + to_f64(end - first) * FRAME.row_height;
            prop_assert!(first == 0 || upper <= 0.0, "no gap above");
            prop_assert!(end == total || lower >= FRAME.height, "no gap below");
            prop_assert!((upper - (to_f64(first) * FRAME.row_height - scrolled * FRAME.scroll_factor(total))).abs() < 0.1, "lines move with the scrolled content");
            let line = line % total;
            let scroll = FRAME.scroll_for_line(total, line);
            prop_assert!(FRAME.is_line_visible(total, scroll, line));
            let view = FRAME.visible_lines(total, scroll);
            prop_assert!((view.first..view.end).contains(&line));
        }
    }
}
