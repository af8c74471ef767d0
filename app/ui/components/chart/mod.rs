//! Charts: drawn as SVG, read by pointer or keys at the same place in all charts of a group, and as a table.

pub(crate) mod data;
mod draw;
mod numbers;
pub(crate) mod spark;
pub(crate) mod switch;

use std::sync::Arc;

use leptos::prelude::*;

use self::data::{Axis, Chart, Line, Plot, nearest};
use self::draw::{CURVES, Canvas, at, crosshair, drawing, marks};
use self::numbers::Numbers;
use crate::ui::browser;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// As wide as the page.
pub(crate) const WIDE: &[Canvas] = &[
    Canvas { width: 1_060.0, height: 270.0, columns: 8, rows: 4, class: "chart chart-large" },
    Canvas { width: 640.0, height: 230.0, columns: 5, rows: 4, class: "chart chart-middle" },
    Canvas { width: 340.0, height: 190.0, columns: 3, rows: 4, class: "chart chart-narrow" },
];
/// One of two side by side.
pub(crate) const HALF: &[Canvas] = &[
    Canvas { width: 540.0, height: 160.0, columns: 4, rows: 3, class: "chart chart-wider" },
    Canvas { width: 340.0, height: 150.0, columns: 3, rows: 3, class: "chart chart-narrow" },
];
/// One of many.
pub(crate) const SMALL: &[Canvas] = &[Canvas { width: 300.0, height: 125.0, columns: 3, rows: 3, class: "chart" }];
/// A low one, as wide as the page.
pub(crate) const STRIP: &[Canvas] = &[
    Canvas { width: 1_060.0, height: 120.0, columns: 8, rows: 2, class: "chart chart-large" },
    Canvas { width: 640.0, height: 120.0, columns: 5, rows: 2, class: "chart chart-middle" },
    Canvas { width: 340.0, height: 110.0, columns: 3, rows: 2, class: "chart chart-narrow" },
];

/// What the charts of a group share. It outlives them: they are drawn again with every news.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    /// The place that is read.
    at: RwSignal<Option<f64>>,
    /// The chart that has the focus.
    focused: RwSignal<String>,
    /// Whether keys are heard.
    alive: RwSignal<bool>,
}

impl Group {
    /// A group of which nothing is read.
    pub fn new() -> Self {
        let alive = RwSignal::new(false);
        Effect::new(move |_| alive.set(true));
        Self { at: RwSignal::new(None), focused: RwSignal::default(), alive }
    }
}

/// A chart with its title, what is read, and its numbers; nothing if there is nothing to draw.
#[component]
pub(crate) fn ChartView(chart: Chart, group: Group, sizes: &'static [Canvas]) -> impl IntoView {
    let Some(plot) = chart.plot() else { return ().into_any() };
    let chart = Arc::new(chart);
    let ahead = use_clock().seconds_ahead();
    let reads = {
        let chart = Arc::clone(&chart);
        move || match group.at.get() {
            Some(x) => place(chart.axis, x, ahead.get()),
            None => String::new(),
        }
    };
    let said = {
        let chart = Arc::clone(&chart);
        move || match group.at.get() {
            Some(x) if group.focused.with(|focused| *focused == chart.id) => {
                let values: Vec<_> =
                    chart.lines.iter().map(|line| named(line, &value(&chart, plot, line, Some(x)))).collect();
                format!("{}: {}", place(chart.axis, x, ahead.get()), values.join(", "))
            }
            _ => String::new(),
        }
    };
    let only = (chart.lines.len() == 1).then(|| read_out(&chart, plot, 0, group));
    let legend = (chart.lines.len() > 1).then(|| {
        let each = (0..chart.lines.len()).map(|number| {
            let name = chart.lines[number].name.clone();
            view! {
                <li>
                    <svg class="legend-key" viewBox="0 0 16 4" aria-hidden="true"><path class=CURVES[number % CURVES.len()] d="M0 2h16"></path></svg>
                    <bdi>{name}</bdi>
                    {read_out(&chart, plot, number, group)}
                </li>
            }
        });
        view! { <ul class="chart-legend">{each.collect_view()}</ul> }
    });
    let drawn = sizes.iter().map(|canvas| picture(&chart, plot, *canvas, group, ahead)).collect_view();
    view! {
        <figure class="chart-box">
            <figcaption class="chart-head">
                <bdi class="chart-title">{chart.title.clone()}</bdi>
                <span class="chart-at">{reads}</span>
                {only}
            </figcaption>
            {drawn}
            {legend}
            <p class="sr-only" aria-live="polite">{said}</p>
            <Numbers chart=chart plot=plot ahead=ahead/>
        </figure>
    }
    .erased()
}

/// The place that is read, in words.
fn place(axis: Axis, x: f64, ahead: f64) -> String {
    let place = at(axis, x, ahead);
    if axis == Axis::Steps { t().charts.at_step.of(place) } else { place }
}

/// What a line says at a place, or last.
fn value(chart: &Chart, plot: Plot, line: &Line, at: Option<f64>) -> String {
    let read = match at {
        Some(at) => plot.read(line, at),
        None => line.points.iter().rfind(|(_, y)| y.is_finite()).copied(),
    };
    chart.unit.value(read.map_or(f64::NAN, |(_, y)| y))
}

fn named(line: &Line, value: &str) -> String {
    if line.name.is_empty() { value.to_owned() } else { format!("{} {value}", line.name) }
}

fn read_out(chart: &Arc<Chart>, plot: Plot, number: usize, group: Group) -> impl IntoView + use<> {
    let chart = Arc::clone(chart);
    let read = move || value(&chart, plot, &chart.lines[number], group.at.get());
    view! { <span class="chart-value">{read}</span> }.erased()
}

/// All that it shows, in a sentence.
fn summary(chart: &Chart) -> String {
    let of = |line: &Line| {
        let values = || line.points.iter().map(|(_, y)| *y).filter(|y| y.is_finite());
        let told = |value: Option<f64>| chart.unit.value(value.unwrap_or(f64::NAN));
        let (first, last) = (told(values().next()), told(values().next_back()));
        let (low, high) = (told(values().reduce(f64::min)), told(values().reduce(f64::max)));
        named(line, &t().charts.summary.with(&[&first, &last, &low, &high]))
    };
    let lines: Vec<_> = chart.lines.iter().map(of).collect();
    format!("{}: {}", chart.title, lines.join("; "))
}

fn picture(chart: &Arc<Chart>, plot: Plot, canvas: Canvas, group: Group, ahead: Signal<f64>) -> impl IntoView + use<> {
    let frame = canvas.frame();
    let grid = Arc::new(chart.grid());
    let on_move = {
        let grid = Arc::clone(&grid);
        move |event: leptos::ev::PointerEvent| {
            let share = (browser::share_of_width(&event) * canvas.width - frame.left) / frame.width;
            let x = plot.x.low + share * (plot.x.high - plot.x.low);
            group.at.set(nearest(&grid, x).map(|place| grid[place]));
        }
    };
    let on_key = {
        let grid = Arc::clone(&grid);
        move |event: leptos::ev::KeyboardEvent| {
            let now = group.at.get_untracked().and_then(|x| nearest(&grid, x));
            let next = match moved(&event.key(), now, grid.len()) {
                Some(Move::To(place)) => grid.get(place).copied(),
                Some(Move::Away) => None,
                None => return,
            };
            event.prevent_default();
            group.at.set(next);
        }
    };
    let id = chart.id.clone();
    let on_focus = move |_| {
        group.focused.set(id.clone());
        if group.at.with_untracked(Option::is_none) {
            group.at.set(grid.last().copied());
        }
    };
    let leave = move || {
        if group.focused.with_untracked(String::is_empty) {
            group.at.set(None);
        }
    };
    let on_blur = move |_| {
        group.focused.set(String::new());
        leave();
    };
    let (axis, of_cross) = (chart.axis, Arc::clone(chart));
    view! {
        <svg
            class=canvas.class
            viewBox=format!("0 0 {} {}", canvas.width, canvas.height)
            role="img"
            aria-label=summary(chart)
            tabindex=move || group.alive.get().then_some("0")
            on:pointermove=on_move
            on:pointerleave=move |_| leave()
            on:keydown=on_key
            on:focus=on_focus
            on:blur=on_blur
        >
            {drawing(chart, plot, canvas)}
            {move || marks(axis, plot, canvas, ahead.get())}
            {move || group.at.get().map(|at| crosshair(&of_cross, plot, canvas, at))}
        </svg>
    }
    .erased()
}

/// Where a key leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    To(usize),
    Away,
}

/// Where a key leads from one of so many places; none if it means nothing here.
fn moved(key: &str, now: Option<usize>, number: usize) -> Option<Move> {
    let last = number.checked_sub(1)?;
    let now = now.unwrap_or(last);
    Some(match key {
        "ArrowLeft" => Move::To(now.saturating_sub(1)),
        "ArrowRight" => Move::To((now + 1).min(last)),
        "PageUp" => Move::To(now.saturating_sub(10)),
        "PageDown" => Move::To((now + 10).min(last)),
        "Home" => Move::To(0),
        "End" => Move::To(last),
        "Escape" => Move::Away,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_through_the_points() {
        let cases = [
            ("ArrowLeft", Some(5), Some(Move::To(4))),
            ("ArrowLeft", Some(0), Some(Move::To(0))),
            ("ArrowRight", Some(19), Some(Move::To(19))),
            ("ArrowRight", None, Some(Move::To(19))),
            ("PageUp", Some(15), Some(Move::To(5))),
            ("PageDown", Some(15), Some(Move::To(19))),
            ("Home", Some(5), Some(Move::To(0))),
            ("End", Some(5), Some(Move::To(19))),
            ("Escape", Some(5), Some(Move::Away)),
            ("Tab", Some(5), None),
        ];
        for (key, now, next) in cases {
            assert_eq!(moved(key, now, 20), next, "{key}");
        }
        assert_eq!(moved("Home", None, 0), None);
    }
}
