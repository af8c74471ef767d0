//! What keys do to the cursor, as a pure function.

/// How many points a page key passes.
const PAGE: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorMove {
    /// To a point.
    To(usize),
    /// Removes the cursor.
    Clear,
}

/// Returns how a key moves the cursor from point `current` of `count` points; none if it does not.
pub(crate) fn cursor_move(key: &str, current: Option<usize>, count: usize) -> Option<CursorMove> {
    if key == "Escape" {
        return Some(CursorMove::Clear);
    }
    let last = count.checked_sub(1)?;
    let current = current.unwrap_or(last);
    let next = match key {
        "ArrowLeft" => current.saturating_sub(1),
        "ArrowRight" => current + 1,
        "PageUp" => current.saturating_sub(PAGE),
        "PageDown" => current + PAGE,
        "Home" => 0,
        "End" => last,
        _ => return None,
    };
    Some(CursorMove::To(next.min(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_through_the_points() {
        let cases = [
            ("ArrowLeft", Some(5), Some(CursorMove::To(4))),
            ("ArrowLeft", Some(0), Some(CursorMove::To(0))),
            ("ArrowRight", Some(19), Some(CursorMove::To(19))),
            ("ArrowRight", None, Some(CursorMove::To(19))),
            ("PageUp", Some(15), Some(CursorMove::To(5))),
            ("PageDown", Some(15), Some(CursorMove::To(19))),
            ("Home", Some(5), Some(CursorMove::To(0))),
            ("End", Some(5), Some(CursorMove::To(19))),
            ("Escape", Some(5), Some(CursorMove::Clear)),
            ("Tab", Some(5), None),
        ];
        for (key, current, moved) in cases {
            assert_eq!(cursor_move(key, current, 20), moved, "{key}");
        }
        assert_eq!(cursor_move("Home", None, 0), None);
        assert_eq!(cursor_move("Escape", None, 0), Some(CursorMove::Clear), "back from where no points are");
    }
}
