//! Reading parallel coordinates: the line of one job is emphasized, by pointer or keys.

use leptos::prelude::*;

use super::plot::ParallelPlot;
use crate::ui::components::chart::cursor::{CursorMove, cursor_move};

/// The plot, and the job whose values are read with the pointer or with keys.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub plot: Memo<ParallelPlot>,
    pub line: RwSignal<Option<usize>>,
    has_focus: RwSignal<bool>,
    /// Whether the plot reacts to keys and can have the focus.
    pub is_hydrated: RwSignal<bool>,
}

impl Reading {
    pub fn new(plot: Memo<ParallelPlot>) -> Self {
        let is_hydrated = RwSignal::new(false);
        Effect::new(move |_| is_hydrated.set(true));
        Self { plot, line: RwSignal::new(None), has_focus: RwSignal::new(false), is_hydrated }
    }

    pub fn press_key(self, event: &leptos::ev::KeyboardEvent) {
        if event.ctrl_key() || event.alt_key() || event.meta_key() {
            return;
        }
        let count = self.plot.with_untracked(|plot| plot.lines.len());
        if let Some(moved) = line_move(&event.key(), self.line.get_untracked(), count) {
            self.line.set(match moved {
                CursorMove::To(line) => Some(line),
                CursorMove::Clear => None,
            });
            event.prevent_default();
        }
    }

    pub fn focus(self) {
        self.has_focus.set(true);
        if self.line.get_untracked().is_none() {
            self.line.set(Some(0));
        }
    }

    pub fn blur(self) {
        self.has_focus.set(false);
        self.line.set(None);
    }

    /// A line stays emphasized while the plot has the focus.
    pub fn leave(self) {
        if !self.has_focus.get_untracked() {
            self.line.set(None);
        }
    }
}

/// Returns how a key leads from job to job, in the order of the legend.
fn line_move(key: &str, current: Option<usize>, count: usize) -> Option<CursorMove> {
    let key = match key {
        "ArrowUp" => "ArrowLeft",
        "ArrowDown" => "ArrowRight",
        key => key,
    };
    cursor_move(key, current, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_lead_from_job_to_job() {
        let line = |key: &str| match line_move(key, Some(1), 3) {
            Some(CursorMove::To(line)) => Some(line),
            Some(CursorMove::Clear) | None => None,
        };
        let keys = ["ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight", "Home", "End", "Escape", "Tab"];
        assert_eq!(keys.map(line), [Some(0), Some(0), Some(2), Some(2), Some(0), Some(2), None, None]);
        assert_eq!(line_move("Escape", Some(1), 3), Some(CursorMove::Clear));
        assert_eq!(line_move("ArrowDown", None, 0), None);
    }
}
