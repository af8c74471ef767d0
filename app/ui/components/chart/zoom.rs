//! The zoom of a group of charts: its x axis is selected, moved and pinned with the pointer and with keys.

use leptos::prelude::*;

use super::draw::selected_part;
use super::interaction::Surface;
use super::ranges::{KeyEffect, key_effect, visible_part};
use super::state::ChartState;
use super::{ChartGroup, Drag, Plot};
use crate::ui::axis::AxisRange;
use crate::ui::browser;
use crate::ui::erase::Erase;

/// A shorter drag is a click, as a fraction of the width.
const MIN_DRAG: f64 = 0.01;

/// The zoom of a group.
#[derive(Clone, Copy)]
pub(super) struct Zoom {
    state: ChartState,
    /// The position that the reader keeps.
    pub pinned: Memo<Option<f64>>,
    pub actions: &'static ZoomActions,
}

/// What the events of a chart do if it can be zoomed. They are functions, so that the browser's first download has no
/// code for it: the charts of the first page cannot be zoomed.
pub(super) struct ZoomActions {
    pub press: fn(&Surface, &leptos::ev::PointerEvent),
    /// The pointer is at a fraction of the width while its button is pressed.
    pub drag: fn(&Surface, f64),
    pub release: fn(&Surface),
    /// Makes a part of the x axis visible, or all of it.
    pub show: fn(&Surface, Option<AxisRange>),
    /// Returns whether the key did something.
    pub press_key: fn(&Surface, &leptos::ev::KeyboardEvent) -> bool,
    pub draw_selection: fn(&Surface) -> AnyView,
}

const ACTIONS: &ZoomActions = &ZoomActions { press, drag, release, show, press_key, draw_selection };

impl ChartGroup {
    /// A group whose x axis can be zoomed.
    pub fn zoomable(state: ChartState) -> Self {
        let pinned = Memo::new(move |_| state.with(|options| options.pinned));
        Self { zoom: Some(Zoom { state, pinned, actions: ACTIONS }), ..Self::new() }
    }
}

/// A finger only reads: its drags scroll the page.
fn press(surface: &Surface, event: &leptos::ev::PointerEvent) {
    if event.button() != 0 || event.pointer_type() == "touch" {
        return;
    }
    browser::capture_pointer(event);
    let (plot, fraction) = (surface.signals.plot.get_untracked(), surface.fraction(event));
    let x = plot.x_at(fraction.clamp(0.0, 1.0));
    surface.group.drag.set(Some(if event.shift_key() {
        Drag::Move { plot, from: fraction, visible: plot.x }
    } else {
        Drag::Select { from: x, to: x }
    }));
}

fn drag(surface: &Surface, fraction: f64) {
    let moved = match surface.group.drag.get_untracked() {
        Some(Drag::Move { plot, from, .. }) => {
            let distance = from - fraction;
            let visible = part(surface, plot, (distance, 1.0 + distance)).unwrap_or(plot.x);
            Drag::Move { plot, from, visible }
        }
        Some(Drag::Select { from, .. }) => {
            let to = surface.signals.plot.get_untracked().x_at(fraction.clamp(0.0, 1.0));
            Drag::Select { from, to }
        }
        None => return,
    };
    surface.group.drag.set(Some(moved));
}

fn release(surface: &Surface) {
    let Some(drag) = surface.group.drag.get_untracked() else { return };
    surface.group.drag.set(None);
    match drag {
        Drag::Move { plot, visible, .. } if visible != plot.x => show(surface, Some(visible)),
        Drag::Move { .. } => {}
        Drag::Select { from, to } => {
            let plot = surface.signals.plot.get_untracked();
            let ends = (plot.x_fraction(from.min(to)), plot.x_fraction(from.max(to)));
            if ends.1 - ends.0 < MIN_DRAG {
                pin(surface, surface.nearest(to));
            } else {
                show(surface, part(surface, plot, ends));
            }
        }
    }
}

fn part(surface: &Surface, plot: Plot, fractions: (f64, f64)) -> Option<AxisRange> {
    surface.signals.chart.with_untracked(|chart| visible_part(plot, chart, fractions))
}

/// Zooms all charts of the page.
fn show(surface: &Surface, zoom: Option<AxisRange>) {
    let Some(Zoom { state, .. }) = surface.group.zoom else { return };
    if state.with_untracked(|options| options.zoom != zoom) {
        state.update(|options| options.zoom = zoom);
    }
}

/// Keeps values at a position, or no longer if they are kept there.
fn pin(surface: &Surface, at: Option<f64>) {
    if let Some(Zoom { state, .. }) = surface.group.zoom {
        state.update(|options| options.pinned = at.filter(|at| options.pinned != Some(*at)));
    }
}

fn press_key(surface: &Surface, event: &leptos::ev::KeyboardEvent) -> bool {
    let plot = surface.signals.plot.get_untracked();
    let position = untrack(|| surface.group.position());
    let key = event.key();
    if key == "Escape" && untrack(|| surface.group.pinned()).is_some() {
        pin(surface, None);
    }
    match key_effect((&key, event.shift_key()), position.map(|x| plot.x_fraction(x))) {
        Some(KeyEffect::Pin) => pin(surface, position),
        Some(KeyEffect::Show(from, to)) => show(surface, part(surface, plot, (from, to))),
        Some(KeyEffect::ShowAll) => show(surface, None),
        None => return false,
    }
    true
}

fn draw_selection(surface: &Surface) -> AnyView {
    let surface = *surface;
    let selection = move || match surface.group.drag.get() {
        Some(Drag::Select { from, to }) => {
            let part = AxisRange { low: from.min(to), high: from.max(to) };
            Some(selected_part(surface.signals.plot.get(), surface.canvas, part))
        }
        _ => None,
    };
    view! { {selection} }.into_erased()
}
