//! Charts: drawn as SVG, with a table of their values. A cursor, moved by pointer or keys, shows the values at one
//! position in all charts of a group.

pub(crate) mod data;
mod data_table;
mod draw;
pub(crate) mod sparkline;
pub(crate) mod switch;

use leptos::prelude::*;

use self::data::{Axis, Chart, ChartSeries, Plot, nearest_index};
use self::data_table::DataTable;
use self::draw::{ChartSize, SERIES_CLASSES, crosshair, describe_x, draw_plot};
use crate::ui::browser;
use crate::ui::clock::{PageClock, use_clock};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// As wide as the page.
pub(crate) const WIDE: &[ChartSize] = &[
    ChartSize { width: 1_060.0, height: 270.0, columns: 8, rows: 4, class: "chart chart-large" },
    ChartSize { width: 640.0, height: 230.0, columns: 5, rows: 4, class: "chart chart-middle" },
    ChartSize { width: 340.0, height: 190.0, columns: 3, rows: 4, class: "chart chart-narrow" },
];
/// One of two side by side.
pub(crate) const HALF: &[ChartSize] = &[
    ChartSize { width: 540.0, height: 160.0, columns: 4, rows: 3, class: "chart chart-wider" },
    ChartSize { width: 340.0, height: 150.0, columns: 3, rows: 3, class: "chart chart-narrow" },
];
/// One of many in a grid.
pub(crate) const SMALL: &[ChartSize] =
    &[ChartSize { width: 300.0, height: 125.0, columns: 3, rows: 3, class: "chart" }];
/// One of four in two rows.
pub(crate) const QUARTER: &[ChartSize] =
    &[ChartSize { width: 360.0, height: 112.0, columns: 3, rows: 2, class: "chart" }];
/// A low chart, as wide as the page.
pub(crate) const STRIP: &[ChartSize] = &[
    ChartSize { width: 1_060.0, height: 120.0, columns: 8, rows: 2, class: "chart chart-large" },
    ChartSize { width: 640.0, height: 120.0, columns: 5, rows: 2, class: "chart chart-middle" },
    ChartSize { width: 340.0, height: 110.0, columns: 3, rows: 2, class: "chart chart-narrow" },
];

/// The state that the charts of a group share. It outlives the charts, which are rendered again if the set of charts
/// changes.
#[derive(Clone, Copy)]
pub(crate) struct ChartGroup {
    /// The position at which values are shown; if none, the last values are shown.
    cursor: RwSignal<Option<f64>>,
    /// The ID of the chart that has the focus.
    focused: RwSignal<String>,
    /// Whether charts react to keys and can have the focus.
    is_hydrated: RwSignal<bool>,
}

impl ChartGroup {
    /// A group without a cursor.
    pub fn new() -> Self {
        let is_hydrated = RwSignal::new(false);
        Effect::new(move |_| is_hydrated.set(true));
        Self { cursor: RwSignal::new(None), focused: RwSignal::default(), is_hydrated }
    }
}

/// The current data of a chart. Its DOM nodes are updated in place: each new reading would otherwise create hundreds of
/// them.
#[derive(Clone, Copy)]
struct ChartSignals {
    chart: Memo<Chart>,
    plot: Memo<Plot>,
    /// The name of each line, and whether it has a background.
    lines: Memo<Vec<(String, bool)>>,
}

impl ChartSignals {
    fn new(chart: Memo<Chart>) -> Self {
        let plot = Memo::new(move |_| chart.with(Chart::plot).unwrap_or(Plot::EMPTY));
        let lines = Memo::new(move |_| {
            chart.with(|chart| {
                chart.series.iter().map(|line| (line.name.clone(), !line.background.is_empty())).collect()
            })
        });
        Self { chart, plot, lines }
    }

    /// Returns the value of a line near a position, or its last value.
    fn value_text_at(self, number: usize, at: Option<f64>) -> String {
        let plot = self.plot.get();
        self.chart
            .with(|chart| chart.series.get(number).map(|line| value_text(chart, plot, line, at)).unwrap_or_default())
    }
}

/// Returns the chart with an index; an empty one if there are fewer.
pub(crate) fn nth_chart(charts: Memo<Vec<Chart>>, index: usize) -> Memo<Chart> {
    Memo::new(move |_| charts.with(|charts| charts.get(index).cloned().unwrap_or_default()))
}

/// Returns the IDs of the charts: while they stay the same, charts are updated and not rendered again.
pub(crate) fn chart_ids(charts: Memo<Vec<Chart>>) -> Memo<Vec<String>> {
    Memo::new(move |_| charts.with(|charts| charts.iter().map(|chart| chart.id.clone()).collect()))
}

/// A chart with its title, legend, and table of values; nothing while there is nothing to draw.
#[component]
pub(crate) fn ChartView(chart: Memo<Chart>, group: ChartGroup, sizes: &'static [ChartSize]) -> impl IntoView {
    let is_drawn = Memo::new(move |_| chart.with(|chart| chart.plot().is_some()));
    let figure = move || is_drawn.get().then(|| chart_figure(chart, group, sizes));
    view! { {figure} }.into_erased()
}

fn chart_figure(chart: Memo<Chart>, group: ChartGroup, sizes: &'static [ChartSize]) -> AnyView {
    let signals = ChartSignals::new(chart);
    let clock = use_clock();
    let axis = Memo::new(move |_| chart.with(|chart| chart.axis));
    let cursor_text = move || match group.cursor.get() {
        Some(x) => describe_cursor(axis.get(), x, clock),
        // The UTC offset of the labels on the axis.
        None if axis.get() == Axis::Clock => clock.format_utc_offset(clock.now_untracked()),
        None => String::new(),
    };
    let announcement = move || match group.cursor.get() {
        Some(x) if group.focused.with(|focused| chart.with(|chart| *focused == chart.id)) => {
            let lines = signals.lines.get();
            let values: Vec<_> =
                (0..).zip(&lines).map(|(n, (name, _))| with_name(name, &signals.value_text_at(n, Some(x)))).collect();
            format!("{}: {}", describe_cursor(axis.get(), x, clock), values.join(", "))
        }
        _ => String::new(),
    };
    let single_value = move || (signals.lines.with(Vec::len) == 1).then(|| value_readout(signals, 0, group));
    let legend = move || {
        let lines = signals.lines.get();
        (lines.len() > 1).then(|| {
            let items = lines.into_iter().enumerate().map(|(number, (name, _))| {
                view! {
                    <li>
                        {legend_key(number)}
                        <bdi>{name}</bdi>
                        {value_readout(signals, number, group)}
                    </li>
                }
            });
            view! { <ul class="chart-legend">{items.collect_view()}</ul> }
        })
    };
    let drawings = sizes.iter().map(|canvas| draw_chart(signals, *canvas, group, clock)).collect_view();
    let title = Memo::new(move |_| chart.with(|chart| chart.title.clone()));
    let note = move || chart.with(|chart| chart.note.clone());
    view! {
        <figure class="chart-box">
            <figcaption class="chart-head">
                <bdi class="chart-title">{title}</bdi>
                <span class="panel-note">{note}</span>
                <span class="chart-at">{cursor_text}</span>
                {single_value}
            </figcaption>
            {drawings}
            {legend}
            <p class="sr-only" aria-live="polite">{announcement}</p>
            <DataTable signals=signals title=title clock=clock/>
        </figure>
    }
    .into_erased()
}

/// A short piece of a line, beside its name.
pub(crate) fn legend_key(number: usize) -> AnyView {
    let class = SERIES_CLASSES[number % SERIES_CLASSES.len()];
    view! { <svg class="legend-key" viewBox="0 0 20 4" aria-hidden="true"><path class=class d="M0 2h20"></path></svg> }
        .into_erased()
}

fn describe_cursor(axis: Axis, x: f64, clock: PageClock) -> String {
    let position = describe_x(axis, x, clock);
    if axis == Axis::Steps { t().charts.at_step.of(position) } else { position }
}

/// Returns the value of a line near a position, or its last value.
fn value_text(chart: &Chart, plot: Plot, line: &ChartSeries, at: Option<f64>) -> String {
    let point = match at {
        Some(at) => plot.value_at(line, at),
        None => line.points.iter().rfind(|(_, y)| y.is_finite()).copied(),
    };
    chart.unit.format_value(point.map_or(f64::NAN, |(_, y)| y))
}

fn with_name(name: &str, value: &str) -> String {
    if name.is_empty() { value.to_owned() } else { format!("{name} {value}") }
}

fn value_readout(signals: ChartSignals, number: usize, group: ChartGroup) -> AnyView {
    view! { <span class="chart-value">{move || signals.value_text_at(number, group.cursor.get())}</span> }.into_erased()
}

/// Returns a text alternative: the first, last, lowest and highest value of each line.
fn describe_chart(chart: &Chart) -> String {
    let line_summary = |line: &ChartSeries| {
        let values = || line.points.iter().map(|(_, y)| *y).filter(|y| y.is_finite());
        let format_value = |value: Option<f64>| chart.unit.format_value(value.unwrap_or(f64::NAN));
        let (first, last) = (format_value(values().next()), format_value(values().next_back()));
        let (low, high) = (format_value(values().reduce(f64::min)), format_value(values().reduce(f64::max)));
        with_name(&line.name, &t().charts.summary.with(&[&first, &last, &low, &high]))
    };
    let lines: Vec<_> = chart.series.iter().map(line_summary).collect();
    format!("{}: {}", chart.title, lines.join("; "))
}

fn draw_chart(signals: ChartSignals, canvas: ChartSize, group: ChartGroup, clock: PageClock) -> AnyView {
    let frame = canvas.plot_area();
    let chart = signals.chart;
    let on_move = move |event: leptos::ev::PointerEvent| {
        let plot = signals.plot.get_untracked();
        let fraction = (browser::pointer_fraction(&event) * canvas.width - frame.left) / frame.width;
        let x = plot.x.low + fraction * (plot.x.high - plot.x.low);
        let grid = chart.with_untracked(Chart::x_positions);
        group.cursor.set(nearest_index(&grid, x).map(|index| grid[index]));
    };
    let on_key = move |event: leptos::ev::KeyboardEvent| {
        let grid = chart.with_untracked(Chart::x_positions);
        let current = group.cursor.get_untracked().and_then(|x| nearest_index(&grid, x));
        let next = match cursor_move(&event.key(), current, grid.len()) {
            Some(CursorMove::To(index)) => grid.get(index).copied(),
            Some(CursorMove::Clear) => None,
            None => return,
        };
        event.prevent_default();
        group.cursor.set(next);
    };
    let on_focus = move |_| {
        group.focused.set(chart.with_untracked(|chart| chart.id.clone()));
        if group.cursor.with_untracked(Option::is_none) {
            group.cursor.set(chart.with_untracked(|chart| chart.x_positions().last().copied()));
        }
    };
    let clear_cursor = move || {
        if group.focused.with_untracked(String::is_empty) {
            group.cursor.set(None);
        }
    };
    let on_blur = move |_| {
        group.focused.set(String::new());
        clear_cursor();
    };
    let cursor_line = move || {
        let (at, plot) = (group.cursor.get()?, signals.plot.get());
        Some(chart.with(|chart| crosshair(chart, plot, canvas, at)))
    };
    view! {
        <svg
            class=canvas.class
            viewBox=format!("0 0 {} {}", canvas.width, canvas.height)
            role="img"
            aria-label=move || chart.with(describe_chart)
            tabindex=move || group.is_hydrated.get().then_some("0")
            on:pointermove=on_move
            on:pointerleave=move |_| clear_cursor()
            on:keydown=on_key
            on:focus=on_focus
            on:blur=on_blur
        >
            {draw_plot(signals, canvas, clock)}
            {cursor_line}
        </svg>
    }
    .into_erased()
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CursorMove {
    To(usize),
    Clear,
}

/// Returns the effect of a key for a cursor at index `current` of `number` positions; none if the key has no effect.
fn cursor_move(key: &str, current: Option<usize>, number: usize) -> Option<CursorMove> {
    let last = number.checked_sub(1)?;
    let current = current.unwrap_or(last);
    Some(match key {
        "ArrowLeft" => CursorMove::To(current.saturating_sub(1)),
        "ArrowRight" => CursorMove::To((current + 1).min(last)),
        "PageUp" => CursorMove::To(current.saturating_sub(10)),
        "PageDown" => CursorMove::To((current + 10).min(last)),
        "Home" => CursorMove::To(0),
        "End" => CursorMove::To(last),
        "Escape" => CursorMove::Clear,
        _ => return None,
    })
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
        for (key, current, next) in cases {
            assert_eq!(cursor_move(key, current, 20), next, "{key}");
        }
        assert_eq!(cursor_move("Home", None, 0), None);
    }
}
