//! A drawing that is read and zoomed with the pointer and with keys.

use leptos::prelude::*;

use super::data::nearest_index;
use super::draw::{ChartSize, crosshair, draw_plot, selected_part};
use super::ranges::{KeyEffect, key_effect, visible_part};
use super::{ChartGroup, ChartSignals, Drag, describe_chart};
use crate::ui::axis::AxisRange;
use crate::ui::browser;
use crate::ui::clock::PageClock;
use crate::ui::erase::Erase;

/// A shorter drag is a click, as a fraction of the width.
const MIN_DRAG: f64 = 0.01;

/// One drawing of a chart, with what its events do.
#[derive(Clone, Copy)]
struct Surface {
    signals: ChartSignals,
    group: ChartGroup,
    canvas: ChartSize,
}

pub(super) fn draw_chart(signals: ChartSignals, canvas: ChartSize, group: ChartGroup, clock: PageClock) -> AnyView {
    let surface = Surface { signals, group, canvas };
    let chart = signals.chart;
    let cursor_line = move || {
        let (at, plot) = (group.position()?, signals.shown.get());
        Some(chart.with(|chart| crosshair(chart, plot, canvas, at)))
    };
    let selection = move || match group.drag.get() {
        Some(Drag::Select { from, to }) => {
            let part = AxisRange { low: from.min(to), high: from.max(to) };
            Some(selected_part(signals.plot.get(), canvas, part))
        }
        _ => None,
    };
    view! {
        <svg
            class=canvas.class
            viewBox=format!("0 0 {} {}", canvas.width, canvas.height)
            role="img"
            aria-label=move || chart.with(describe_chart)
            tabindex=move || group.is_hydrated.get().then_some("0")
            on:pointerdown=move |event| surface.press(&event)
            on:pointermove=move |event| surface.point(&event)
            on:pointerup=move |_| surface.release()
            on:pointercancel=move |_| group.drag.set(None)
            on:pointerleave=move |_| surface.leave()
            on:dblclick=move |_| surface.show(None)
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
    fn fraction(self, event: &leptos::ev::PointerEvent) -> f64 {
        let frame = self.canvas.plot_area();
        (browser::pointer_fraction(event) * self.canvas.width - frame.left) / frame.width
    }

    /// Returns the point that is nearest to a position.
    fn nearest(self, x: f64) -> Option<f64> {
        self.signals.positions.with_untracked(|positions| nearest_index(positions, x).map(|index| positions[index]))
    }

    /// A finger only reads: its drags scroll the page.
    fn press(self, event: &leptos::ev::PointerEvent) {
        if self.group.state.is_none() || event.button() != 0 || event.pointer_type() == "touch" {
            return;
        }
        browser::capture_pointer(event);
        let (plot, fraction) = (self.signals.plot.get_untracked(), self.fraction(event));
        let x = plot.x_at(fraction.clamp(0.0, 1.0));
        self.group.drag.set(Some(if event.shift_key() {
            Drag::Move { plot, from: fraction, visible: plot.x }
        } else {
            Drag::Select { from: x, to: x }
        }));
    }

    fn point(self, event: &leptos::ev::PointerEvent) {
        let fraction = self.fraction(event);
        match self.group.drag.get_untracked() {
            Some(Drag::Move { plot, from, .. }) => {
                let distance = from - fraction;
                let part = self.part(plot, (distance, 1.0 + distance));
                let visible = part.unwrap_or(plot.x);
                self.group.drag.set(Some(Drag::Move { plot, from, visible }));
            }
            Some(Drag::Select { from, .. }) => {
                let to = self.signals.plot.get_untracked().x_at(fraction.clamp(0.0, 1.0));
                self.group.drag.set(Some(Drag::Select { from, to }));
            }
            None => {
                let x = self.signals.plot.get_untracked().x_at(fraction);
                self.group.cursor.set(self.nearest(x));
            }
        }
    }

    fn release(self) {
        let Some(drag) = self.group.drag.get_untracked() else { return };
        self.group.drag.set(None);
        match drag {
            Drag::Move { plot, visible, .. } if visible != plot.x => self.show(Some(visible)),
            Drag::Move { .. } => {}
            Drag::Select { from, to } => {
                let plot = self.signals.plot.get_untracked();
                let ends = (plot.x_fraction(from.min(to)), plot.x_fraction(from.max(to)));
                if ends.1 - ends.0 < MIN_DRAG {
                    self.pin(self.nearest(to));
                } else {
                    self.show(self.part(plot, ends));
                }
            }
        }
    }

    fn part(self, plot: super::Plot, fractions: (f64, f64)) -> Option<AxisRange> {
        self.signals.chart.with_untracked(|chart| visible_part(plot, chart, fractions))
    }

    /// Zooms all charts of the page.
    fn show(self, zoom: Option<AxisRange>) {
        if let Some(state) = self.group.state.filter(|state| state.with_untracked(|options| options.zoom != zoom)) {
            state.update(|options| options.zoom = zoom);
        }
    }

    /// Keeps values at a position, or no longer if they are kept there.
    fn pin(self, at: Option<f64>) {
        if let Some(state) = self.group.state {
            state.update(|options| options.pinned = at.filter(|at| options.pinned != Some(*at)));
        }
    }

    fn press_key(self, event: &leptos::ev::KeyboardEvent) {
        if event.ctrl_key() || event.alt_key() || event.meta_key() {
            return;
        }
        let plot = self.signals.plot.get_untracked();
        let position = untrack(|| self.group.position());
        let is_visible = |x: &f64| (plot.x.low..=plot.x.high).contains(x);
        let grid: Vec<f64> =
            self.signals.positions.with_untracked(|all| all.iter().copied().filter(is_visible).collect());
        let current = position.and_then(|x| nearest_index(&grid, x));
        let fraction = position.map(|x| plot.x_fraction(x));
        let effect = key_effect((&event.key(), event.shift_key()), current, grid.len(), fraction);
        // Charts without a state only have a cursor.
        let is_cursor = matches!(effect, Some(KeyEffect::To(_) | KeyEffect::Clear));
        let Some(effect) = effect.filter(|_| is_cursor || self.group.state.is_some()) else { return };
        event.prevent_default();
        match effect {
            KeyEffect::To(index) => self.group.cursor.set(grid.get(index).copied()),
            KeyEffect::Clear => {
                self.group.cursor.set(None);
                if untrack(|| self.group.pinned.get()).is_some() {
                    self.pin(None);
                }
            }
            KeyEffect::Pin => self.pin(position),
            KeyEffect::Show(from, to) => self.show(self.part(plot, (from, to))),
            KeyEffect::ShowAll => self.show(None),
        }
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
