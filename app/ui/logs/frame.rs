//! Which lines of a log can be seen, out of how far its scroll bar is. Only those are in the document.
//!
//! The sheet that is scrolled is as high as all lines together, as far as browsers draw one so high; a longer log is
//! scrolled faster. The lines are laid so that the share of the log that is above a place is the share of the view that
//! is: the first line begins at the top, the last one ends at the bottom, however high some of them are.

use crate::ui::format::to_f64;

/// No sheet is higher, in pixels: some browsers draw none above 17,800,000.
const HIGHEST: f64 = 16_000_000.0;
/// So many lines are drawn before and after those that can be seen.
const SPARE: u64 = 4;

/// The view of a log, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Frame {
    /// How high it is.
    pub height: f64,
    /// How high a line is that is not wrapped.
    pub row: f64,
}

/// What is drawn, and how it lies in the view. Lines are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct View {
    /// The first line that is drawn.
    pub first: u64,
    /// The first one that is not.
    pub end: u64,
    /// The line that lies at a known place.
    pub anchor: u64,
    /// Which share of it is above that place.
    pub share: f64,
    /// The place, below the view's upper edge.
    pub at: f64,
}

impl Frame {
    /// How high the sheet is.
    pub fn sheet(self, total: u64) -> f64 {
        (to_f64(total) * self.row).clamp(self.height, HIGHEST.max(self.height))
    }

    /// How far the sheet can be scrolled.
    pub fn reach(self, total: u64) -> f64 {
        self.sheet(total) - self.height
    }

    /// How many times faster than the sheet the lines move.
    pub fn speed(self, total: u64) -> f64 {
        let reach = self.reach(total);
        if reach > 0.0 { (to_f64(total) * self.row - self.height) / reach } else { 1.0 }
    }

    /// What is drawn of so many lines when the sheet is scrolled so far.
    pub fn view(self, total: u64, scrolled: f64) -> View {
        let reach = self.reach(total);
        let part = if reach > 0.0 { (scrolled / reach).clamp(0.0, 1.0) } else { 0.0 };
        let place = part * to_f64(total);
        let anchor = whole(place).min(total.saturating_sub(1));
        let at = part * self.height;
        let above = whole((at / self.row).ceil()) + SPARE;
        let below = whole(((self.height - at) / self.row).ceil()) + SPARE + 1;
        View {
            first: anchor.saturating_sub(above),
            end: (anchor + below).min(total),
            anchor,
            share: place - to_f64(anchor),
            at,
        }
    }

    /// How far to scroll so that a line stands in the middle of the view.
    pub fn scrolled_to(self, total: u64, line: u64) -> f64 {
        let middle = (to_f64(line) + 0.5) * self.row - self.height / 2.0;
        (middle / self.speed(total)).clamp(0.0, self.reach(total))
    }

    /// Whether a line that is not wrapped can be seen whole.
    pub fn shows(self, total: u64, scrolled: f64, line: u64) -> bool {
        let upper = to_f64(line) * self.row - scrolled * self.speed(total);
        upper > -1.0 && upper + self.row < self.height + 1.0
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "lines on a page, or of a log")]
pub(crate) fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAME: Frame = Frame { height: 600.0, row: 20.0 };

    #[test]
    fn a_log_that_fits_is_drawn_whole() {
        assert_eq!((FRAME.sheet(3), FRAME.reach(3)), (600.0, 0.0));
        let view = FRAME.view(3, 0.0);
        assert_eq!((view.first, view.end, view.anchor), (0, 3, 0));
        assert_eq!((FRAME.view(0, 0.0).end, FRAME.scrolled_to(3, 2)), (0, 0.0));
    }

    #[test]
    fn the_ends_are_at_the_ends() {
        for total in [31, 1_000, 1_000_000, 50_000_000] {
            let top = FRAME.view(total, 0.0);
            assert_eq!((top.first, top.anchor, top.share, top.at), (0, 0, 0.0, 0.0));
            let bottom = FRAME.view(total, FRAME.reach(total));
            assert_eq!((bottom.end, bottom.anchor, bottom.share, bottom.at), (total, total - 1, 1.0, 600.0));
        }
        assert!(FRAME.sheet(50_000_000) <= HIGHEST, "no higher than browsers draw");
        assert!((FRAME.speed(1_000) - 1.0).abs() < 1e-9 && FRAME.speed(50_000_000) > 60.0);
    }

    proptest! {
        #[test]
        fn the_view_is_filled_with_few_lines_and_shows_what_it_was_scrolled_to(
            total in 40..20_000_000_u64, part in 0.0..1.0_f64, line in 0..20_000_000_u64,
        ) {
            let scrolled = part * FRAME.reach(total);
            let View { first, end, anchor, share, at } = FRAME.view(total, scrolled);
            prop_assert!(end - first <= 30 + 2 * SPARE + 3, "few are drawn");
            let upper = at - (share + to_f64(anchor - first)) * FRAME.row;
            let lower = upper + to_f64(end - first) * FRAME.row;
            prop_assert!(first == 0 || upper <= 0.0, "nothing is bare above");
            prop_assert!(end == total || lower >= FRAME.height, "nor below");
            prop_assert!((upper - (to_f64(first) * FRAME.row - scrolled * FRAME.speed(total))).abs() < 0.1, "as the sheet would lie");
            let line = line % total;
            let there = FRAME.scrolled_to(total, line);
            prop_assert!(FRAME.shows(total, there, line));
            let view = FRAME.view(total, there);
            prop_assert!((view.first..view.end).contains(&line));
        }
    }
}
