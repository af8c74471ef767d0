//! Draws parallel coordinates as SVG.

use leptos::prelude::*;

use super::geometry::{Geometry, LABEL_GAP};
use super::plot::{ParallelPlot, PlotAxis, PlotLine};
use super::reading::Reading;
use crate::ui::components::chart::series_class;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The widths at which the plot is drawn, and their classes: the style sheet shows the one that fits, so that texts are
/// not scaled.
const WIDTHS: [(f64, &str); 3] =
    [(1_060.0, "parallel chart-large"), (640.0, "parallel chart-middle"), (340.0, "parallel chart-narrow")];

/// The plot, in each width.
pub(super) fn draw_plot(reading: Reading) -> AnyView {
    WIDTHS.map(|(width, class)| draw_at(reading, width, class)).into_iter().collect_view().into_erased()
}

/// The element stays while its content changes, so that it keeps the focus.
fn draw_at(reading: Reading, width: f64, class: &'static str) -> AnyView {
    let plot = reading.plot;
    let geometry = Memo::new(move |_| plot.with(|plot| Geometry::new(plot, width)));
    let axes = move || plot.with(|plot| draw_axes(plot, geometry.get()));
    let lines = move || plot.with(|plot| draw_lines(plot, geometry.get(), reading));
    let values = move || {
        let number = reading.line.get()?;
        plot.with(|plot| plot.lines.get(number).map(|line| draw_values(line, geometry.get())))
    };
    view! {
        <svg
            class=class
            width=move || geometry.get().min_width()
            viewBox=move || geometry.get().view_box()
            role="img"
            aria-label=move || plot.with(ParallelPlot::describe)
            tabindex=move || reading.is_hydrated.get().then_some("0")
            on:keydown=move |event| reading.press_key(&event)
            on:focus=move |_| reading.focus()
            on:blur=move |_| reading.blur()
            on:pointerleave=move |_| reading.leave()
        >
            <g class="parallel-lines" class:is-read=move || reading.line.get().is_some()>{lines}</g>
            {axes}
            {values}
        </svg>
    }
    .into_erased()
}

fn draw_lines(plot: &ParallelPlot, geometry: Geometry, reading: Reading) -> AnyView {
    let line = |(number, line): (usize, &PlotLine)| {
        let path = geometry.line_path(line.values.iter().map(|(position, _)| *position));
        view! {
            <g
                class="parallel-line"
                class:is-read=move || reading.line.get() == Some(number)
                on:pointerenter=move |_| reading.line.set(Some(number))
                on:pointerleave=move |_| reading.leave()
            >
                <title>{plot.describe_line(number)}</title>
                <path class="parallel-target" d=path.clone()></path>
                <path class=series_class(number) d=path></path>
            </g>
        }
    };
    plot.lines.iter().enumerate().map(line).collect_view().into_erased()
}

fn draw_axes(plot: &ParallelPlot, geometry: Geometry) -> AnyView {
    let has_gap =
        |axis: usize| plot.lines.iter().any(|line| line.values.get(axis).is_some_and(|value| value.0.is_none()));
    let axes = (0..)
        .zip(&plot.axes)
        .enumerate()
        .map(|(index, (number, axis))| draw_axis(axis, has_gap(index), geometry, geometry.x(number)));
    view! { <g class="parallel-axes">{axes.collect_view()}</g> }.into_erased()
}

fn draw_axis(axis: &PlotAxis, has_gap: bool, geometry: Geometry, x: f64) -> AnyView {
    let label = |(position, text): (Option<f64>, &str)| {
        let y = Geometry::y(position);
        view! {
            <path class="axis-mark" d=format!("M{:.1} {y:.1}h6", x - 3.0)></path>
            <text class="tick-text" x=format!("{:.1}", x + LABEL_GAP) y=format!("{:.1}", y + 3.5)>{geometry.short_label(text)}</text>
        }
    };
    let gap = has_gap.then_some((None, "–"));
    let labels = axis.ticks.iter().map(|(position, text)| (Some(*position), text.as_str())).chain(gap).map(label);
    let scale = axis.is_logarithmic.then(|| {
        view! { <text class="tick-text" x=format!("{x:.1}") y="29" text-anchor="middle">{t().charts.log}</text> }
    });
    let title = geometry.short_title(&axis.title);
    view! {
        <text class="parallel-title" x=format!("{x:.1}") y="14" text-anchor="middle"><title>{axis.title.clone()}</title>{title}</text>
        {scale}
        <path class="axis-line" d=format!("M{x:.1} {:.1}V{:.1}", Geometry::y(Some(0.0)), Geometry::y(Some(1.0)))></path>
        {labels.collect_view()}
    }
    .into_erased()
}

/// The values of the job that is read, at its line.
fn draw_values(line: &PlotLine, geometry: Geometry) -> AnyView {
    let value = |(axis, (position, text)): (u32, &(Option<f64>, String))| {
        let (x, y) = (geometry.x(axis) + LABEL_GAP, Geometry::y(*position) + 3.5);
        view! { <text class="parallel-value" x=format!("{x:.1}") y=format!("{y:.1}")>{geometry.short_label(text)}</text> }
    };
    view! { <g>{(0..).zip(&line.values).map(value).collect_view()}</g> }.into_erased()
}
