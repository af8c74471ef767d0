//! Charts: drawn as SVG, with a table of their values. A cursor, moved by pointer or keys, shows the values at one
//! position in all charts of a group.

pub(crate) mod cursor;
pub(crate) mod data;
mod data_table;
mod draw;
mod interaction;
pub(crate) mod menu;
pub(crate) mod options;
mod ranges;
pub(crate) mod sparkline;
pub(crate) mod state;
pub(crate) mod switch;
pub(crate) mod tools;
mod zoom;

use leptos::prelude::*;

use self::data::{Axis, Chart, ChartSeries, Plot};
use self::data_table::DataTable;
pub(crate) use self::draw::series_class;
use self::draw::{ChartSize, describe_cursor};
use self::interaction::draw_chart;
use self::menu::ChartMenu;
use self::zoom::Zoom;
use crate::ui::axis::AxisRange;
use crate::ui::clock::use_clock;
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
/// A chart on the full screen.
const FULL: &[ChartSize] = &[
    ChartSize { width: 1_200.0, height: 560.0, columns: 10, rows: 8, class: "chart chart-large" },
    ChartSize { width: 640.0, height: 420.0, columns: 5, rows: 6, class: "chart chart-middle" },
    ChartSize { width: 340.0, height: 340.0, columns: 3, rows: 6, class: "chart chart-narrow" },
];
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
    /// The position of the pointer or of the keys.
    cursor: RwSignal<Option<f64>>,
    /// The ID of the chart that has the focus.
    focused: RwSignal<String>,
    /// What the pointer does while its button is pressed.
    drag: RwSignal<Option<Drag>>,
    /// Whether charts react to keys and can have the focus.
    is_hydrated: RwSignal<bool>,
    zoom: Option<Zoom>,
}

/// What the pointer does to the x axis while its button is pressed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Drag {
    /// Selects a part of it, between two positions.
    Select { from: f64, to: f64 },
    /// Moves it: the plot and the fraction of its width where the pointer was, and what is visible now.
    Move { plot: Plot, from: f64, visible: AxisRange },
}

impl ChartGroup {
    /// A group that always shows the whole x axis.
    pub fn new() -> Self {
        let is_hydrated = RwSignal::new(false);
        Effect::new(move |_| is_hydrated.set(true));
        let (cursor, focused, drag) = (RwSignal::new(None), RwSignal::default(), RwSignal::new(None));
        Self { cursor, focused, drag, is_hydrated, zoom: None }
    }

    fn pinned(self) -> Option<f64> {
        self.zoom.and_then(|zoom| zoom.pinned.get())
    }

    /// Returns the position at which values are shown; if none, the last values are shown.
    fn position(self) -> Option<f64> {
        self.cursor.get().or_else(|| self.pinned())
    }
}

/// The current data of a chart. Its DOM nodes are updated in place: each new reading would otherwise create hundreds of
/// them.
#[derive(Clone, Copy)]
struct ChartSignals {
    chart: Memo<Chart>,
    plot: Memo<Plot>,
    /// The plot as it is visible while the reader moves its x axis.
    shown: Memo<Plot>,
    /// The positions that the cursor can have.
    positions: Memo<Vec<f64>>,
    /// The name of each line, and whether it has a background.
    lines: Memo<Vec<(String, bool)>>,
}

impl ChartSignals {
    fn new(chart: Memo<Chart>, group: ChartGroup) -> Self {
        let plot = Memo::new(move |_| chart.with(Chart::plot).unwrap_or(Plot::EMPTY));
        let moved = Memo::new(move |_| match group.drag.get() {
            Some(Drag::Move { visible, .. }) => Some(visible),
            _ => None,
        });
        let shown = Memo::new(move |_| moved.get().map_or_else(|| plot.get(), |x| Plot { x, ..plot.get() }));
        let positions = Memo::new(move |_| chart.with(Chart::x_positions));
        let lines = Memo::new(move |_| {
            chart.with(|chart| {
                chart.series.iter().map(|line| (line.name.clone(), !line.background.is_empty())).collect()
            })
        });
        Self { chart, plot, shown, positions, lines }
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
pub(crate) fn ChartView(
    chart: Memo<Chart>,
    group: ChartGroup,
    sizes: &'static [ChartSize],
    #[prop(optional)] menu: Option<ChartMenu>,
) -> impl IntoView {
    let is_drawn = Memo::new(move |_| chart.with(|chart| chart.plot().is_some()));
    let figure = move || is_drawn.get().then(|| chart_figure(chart, group, sizes, menu));
    view! { {figure} }.into_erased()
}

fn chart_figure(
    chart: Memo<Chart>,
    group: ChartGroup,
    sizes: &'static [ChartSize],
    menu: Option<ChartMenu>,
) -> AnyView {
    let signals = ChartSignals::new(chart, group);
    let clock = use_clock();
    let axis = Memo::new(move |_| chart.with(|chart| chart.axis));
    let cursor_text = move || match group.position() {
        Some(x) => describe_cursor(axis.get(), x, clock),
        // The UTC offset of the labels on the axis.
        None if axis.get() == Axis::Clock => clock.format_utc_offset(clock.now_untracked()),
        None => String::new(),
    };
    let announcement = move || match group.position() {
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
    let value_notes = move || {
        let notes = chart.with(|chart| value_notes(chart, signals.plot.get()));
        notes.into_iter().map(|note| view! { <p class="chart-note">{note}</p> }).collect_view()
    };
    view! {
        <figure class="chart-box">
            <figcaption class="chart-head">
                <bdi class="chart-title">{title}</bdi>
                <span class="panel-note">{note}</span>
                <span class="chart-at">{cursor_text}</span>
                {single_value}
                {menu.map(|menu| menu.draw(chart))}
            </figcaption>
            {drawings}
            {value_notes}
            {legend}
            <p class="sr-only" aria-live="polite">{announcement}</p>
            <DataTable signals=signals title=title clock=clock/>
        </figure>
    }
    .into_erased()
}

/// A short piece of a line, beside its name.
pub(crate) fn legend_key(number: usize) -> AnyView {
    view! { <svg class="legend-key" viewBox="0 0 20 4" aria-hidden="true"><path class=series_class(number) d="M0 2h20"></path></svg> }
        .into_erased()
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
    view! { <span class="chart-value">{move || signals.value_text_at(number, group.position())}</span> }.into_erased()
}

/// Returns which values are not drawn.
fn value_notes(chart: &Chart, plot: Plot) -> Vec<String> {
    let words = &t().charts;
    let count = |number: u64| Some(number).filter(|number| *number > 0);
    let not_finite = count(chart.not_finite()).map(|number| words.not_numbers_marked.of(words.not_numbers.of(number)));
    let left_out = chart.leaves_out(plot).then(|| words.left_out.to_owned());
    not_finite.into_iter().chain(left_out).collect()
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
