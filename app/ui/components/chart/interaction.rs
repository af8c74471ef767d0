//! A drawing whose values are read with the pointer and with keys.

use leptos::prelude::*;

use super::cursor::{CursorMove, cursor_move};
use super::data::nearest_index;
use super::draw::{ChartSize, crosshair, draw_plot};
use super::zoom::ZoomActions;
use super::{ChartGroup, ChartSignals, describe_chart};
use crate::ui::browser;
use crate::ui::clock::PageClock;
use crate::ui::erase::Erase;

/// One drawing of a chart, with what its events do.
#[derive(Clone, Copy)]
pub(super) struct Surface {
    pub signals: ChartSignals,
    pub group: ChartGroup,
    pub canvas: ChartSize,
}

pub(super) fn draw_chart(signals: ChartSignals, canvas: ChartSize, group: ChartGroup, clock: PageClock) -> AnyView {
    let surface = Surface { signals, group, canvas };
    let chart = signals.chart;
    let cursor_line = move || {
        let (at, plot) = (group.position()?, signals.shown.get());
        Some(chart.with(|chart| crosshair(chart, plot, canvas, at)))
    };
    let selection = move || group.zoom.map(|zoom| (zoom.actions.draw_selection)(&surface));
    view! {
        <svg
            class=canvas.class
            viewBox=format!("0 0 {} {}", canvas.width, canvas.height)
            role="img"
            aria-label=move || chart.with(describe_chart)
            tabindex=move || group.is_hydrated.get().then_some("0")
            on:pointerdown=move |event| surface.zoom(|zoom| (zoom.press)(&surface, &event))
            on:pointermove=move |event| surface.point(&event)
            on:pointerup=move |_| surface.zoom(|zoom| (zoom.release)(&surface))
            on:pointercancel=move |_| group.drag.set(None)
            on:pointerleave=move |_| surface.leave()
            on:dblclick=move |_| surface.zoom(|zoom| (zoom.show)(&surface, None))
            on:keydown=move |event| surface.press_key(&event)
            on:focus=move |_| surface.focus()
            on:blur=move |_| {
                group.focused.set(String::new());
                surface.leave();
            }
        >
            {draw_plot(signals, canvas, clock)}
            {selection}
            {cursor_line}
        </svg>
    }
    .into_erased()
}

impl Surface {
    /// Returns where the pointer is on the visible part of the x axis, from 0 to 1.
    pub fn fraction(self, event: &leptos::ev::PointerEvent) -> f64 {
        let frame = self.canvas.plot_area();
        (browser::pointer_fraction(event) * self.canvas.width - frame.left) / frame.width
    }

    /// Returns the point that is nearest to a position.
    pub fn nearest(self, x: f64) -> Option<f64> {
        self.signals.positions.with_untracked(|positions| nearest_index(positions, x).map(|index| positions[index]))
    }

    /// Returns the positions in the visible part of the x axis.
    pub fn visible_positions(self) -> Vec<f64> {
        let visible = self.signals.plot.get_untracked().x;
        let is_visible = |x: &f64| (visible.low..=visible.high).contains(x);
        self.signals.positions.with_untracked(|all| all.iter().copied().filter(is_visible).collect())
    }

    fn zoom(self, act: impl FnOnce(&ZoomActions)) {
        if let Some(zoom) = self.group.zoom {
            act(zoom.actions);
        }
    }

    fn point(self, event: &leptos::ev::PointerEvent) {
        let fraction = self.fraction(event);
        if self.group.drag.with_untracked(Option::is_some) {
            self.zoom(|zoom| (zoom.drag)(&self, fraction));
        } else {
            let x = self.signals.plot.get_untracked().x_at(fraction);
            self.group.cursor.set(self.nearest(x));
        }
    }

    fn press_key(self, event: &leptos::ev::KeyboardEvent) {
        if event.ctrl_key() || event.alt_key() || event.meta_key() {
            return;
        }
        let is_zoom = self.group.zoom.is_some_and(|zoom| (zoom.actions.press_key)(&self, event));
        if is_zoom || self.move_cursor(event) {
            event.prevent_default();
        }
    }

    /// Moves the cursor if the key does that.
    fn move_cursor(self, event: &leptos::ev::KeyboardEvent) -> bool {
        let grid = self.visible_positions();
        let current = untrack(|| self.group.position()).and_then(|x| nearest_index(&grid, x));
        let to = match cursor_move(&event.key(), current, grid.len()) {
            Some(CursorMove::To(index)) => grid.get(index).copied(),
            Some(CursorMove::Clear) => None,
            None => return false,
        };
        self.group.cursor.set(to);
        true
    }

    fn focus(self) {
        self.group.focused.set(self.signals.chart.with_untracked(|chart| chart.id.clone()));
        if untrack(|| self.group.position()).is_none() {
            let high = self.signals.plot.get_untracked().x.high;
            let last = self.signals.positions.with_untracked(|all| all.iter().copied().rfind(|x| *x <= high));
            self.group.cursor.set(last);
        }
    }

    /// The cursor stays while a chart has the focus.
    fn leave(self) {
        if self.group.focused.with_untracked(String::is_empty) {
            self.group.cursor.set(None);
        }
    }
}
