//! Draws charts as SVG.

use leptos::prelude::*;

use super::ChartSignals;
use super::data::{Axis, Chart, ChartSeries, Gap, Plot, ValueUnit, trim_zeros};
use crate::domain::time::{Millis, Timestamp};
use crate::ui::axis::{AxisRange, PlotArea, log_ticks, ticks, time_ticks};
use crate::ui::clock::PageClock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// A size at which a chart is drawn. Where the available width varies much, a chart is drawn in several sizes and the
/// style sheet shows the one that fits, so that the text is not scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChartSize {
    pub width: f64,
    pub height: f64,
    pub columns: u32,
    pub rows: u32,
    pub class: &'static str,
}

impl ChartSize {
    pub fn plot_area(self) -> PlotArea {
        PlotArea { left: 46.0, top: 8.0, width: self.width - 58.0, height: self.height - 32.0 }
    }
}

/// Each line has its own stroke: from the sixth line on, the five colors repeat with dashes.
const SERIES_CLASSES: [&str; 20] = [
    "curve series-1",
    "curve series-2",
    "curve series-3",
    "curve series-4",
    "curve series-5",
    "curve series-6",
    "curve series-7",
    "curve series-8",
    "curve series-9",
    "curve series-10",
    "curve series-11",
    "curve series-12",
    "curve series-13",
    "curve series-14",
    "curve series-15",
    "curve series-16",
    "curve series-17",
    "curve series-18",
    "curve series-19",
    "curve series-20",
];

/// The class of the stroke of a line.
pub(crate) const fn series_class(number: usize) -> &'static str {
    SERIES_CLASSES[number % SERIES_CLASSES.len()]
}

/// The room for strokes and dots around the plot area, in which lines are not cut.
const BLEED: f64 = 3.0;
/// The minimum width of a mark, so that a single value is visible.
const MIN_MARK: f64 = 3.0;

/// The axes, the lines, and marks where values are not finite.
pub(super) fn draw_plot(signals: ChartSignals, canvas: ChartSize, clock: PageClock) -> AnyView {
    let frame = canvas.plot_area();
    let bottom = frame.top + frame.height;
    let curves = move || {
        let lines = signals.lines.get();
        let paths = lines.into_iter().zip(SERIES_CLASSES.into_iter().cycle()).enumerate().map(
            |(number, ((_, background), class))| {
                let path = move |points: fn(&ChartSeries) -> &Vec<(f64, f64)>| {
                    move || {
                        let plot = signals.plot.get();
                        signals.chart.with(|chart| chart.series.get(number).map(|line| plot.path(frame, points(line))))
                    }
                };
                let background = background.then(|| {
                    view! { <g class="curve-behind"><path class=class d=path(|line| &line.background)></path></g> }
                });
                view! { {background}<path class=class d=path(|line| &line.points)></path> }
            },
        );
        paths.collect_view()
    };
    let gaps = move || {
        let plot = signals.plot.get();
        let axis = signals.chart.with(|chart| chart.axis);
        let mark = |gap: &Gap| {
            let ((from, _), (to, _)) =
                (plot.project(frame, (gap.from, plot.y.low)), plot.project(frame, (gap.to, plot.y.low)));
            let width = (to - from).max(MIN_MARK);
            let title = gap_text(axis, gap, clock);
            view! {
                <rect class="gap-mark" x=format!("{:.1}", f64::midpoint(from, to) - width / 2.0) y=frame.top
                    width=format!("{width:.1}") height=frame.height><title>{title}</title></rect>
            }
        };
        signals.chart.with(|chart| chart.series.iter().flat_map(|line| &line.gaps).map(mark).collect_view())
    };
    // While the reader moves the x axis, the lines are moved, not drawn again.
    let visible = move || {
        let (plot, shown) = (signals.plot.get(), signals.shown.get());
        let (from, to) = (plot.x_fraction(shown.x.low), plot.x_fraction(shown.x.high));
        let (left, width) = (frame.left + from * frame.width, (to - from) * frame.width);
        format!("{:.2} {} {:.2} {}", left - BLEED, frame.top - BLEED, width + 2.0 * BLEED, frame.height + 2.0 * BLEED)
    };
    view! {
        {draw_axes(signals, canvas, clock)}
        <line class="axis-line" x1=frame.left x2=frame.left + frame.width y1=bottom y2=bottom></line>
        <svg
            x=frame.left - BLEED
            y=frame.top - BLEED
            width=frame.width + 2.0 * BLEED
            height=frame.height + 2.0 * BLEED
            viewBox=visible
            preserveAspectRatio="none"
            aria-hidden="true"
        >
            {gaps}
            {curves}
        </svg>
    }
    .into_erased()
}

/// Returns how many values are not finite, and where.
fn gap_text(axis: Axis, gap: &Gap, clock: PageClock) -> String {
    let count = t().charts.not_numbers.of(gap.values);
    let (from, to) = (describe_cursor(axis, gap.from, clock), describe_x(axis, gap.to, clock));
    let place = if gap.values > 1 { t().charts.span.with(&[&from, &to]) } else { from };
    format!("{count}: {place}")
}

/// A tick of an axis: its label and its position.
type Tick = (String, f64);

/// Returns the ticks of the y axis, which are its grid lines.
fn y_ticks(unit: ValueUnit, plot: Plot, canvas: ChartSize) -> Vec<Tick> {
    let values = if plot.is_log { log_ticks(plot.y) } else { ticks(plot.y, canvas.rows) };
    values
        .into_iter()
        .map(|tick| (unit.format_tick(tick), plot.project(canvas.plot_area(), (plot.x.low, tick)).1))
        .collect()
}

/// Returns the ticks of the x axis. On a clock axis they are at round times in the user's time zone, with its UTC
/// offset at the end of the axis.
fn x_ticks(axis: Axis, plot: Plot, canvas: ChartSize, clock: PageClock) -> Vec<Tick> {
    let ticks = match axis {
        _ if plot.is_log_x => log_ticks(plot.x),
        Axis::Steps | Axis::Epochs => ticks(plot.x, canvas.columns),
        Axis::Elapsed => time_ticks(plot.x, canvas.columns, 1.0, 0.0),
        Axis::Clock => {
            let utc_offset_seconds = f64::from(clock.utc_offset_minutes(timestamp_at(plot.x.high))) * 60.0;
            time_ticks(plot.x, canvas.columns, 60.0, utc_offset_seconds)
        }
    };
    ticks
        .into_iter()
        .map(|tick| (tick_label(axis, tick, clock), plot.project(canvas.plot_area(), (tick, plot.y.low)).0))
        .collect()
}

/// Both axes. All grid lines are a single path, so that one change of the DOM updates them. While the number of ticks
/// stays the same, labels are updated in place.
fn draw_axes(signals: ChartSignals, canvas: ChartSize, clock: PageClock) -> AnyView {
    let frame = canvas.plot_area();
    let bottom = frame.top + frame.height;
    let unit = move || signals.chart.with(|chart| chart.unit);
    let y_axis_ticks = Memo::new(move |_| y_ticks(unit(), signals.plot.get(), canvas));
    let x_axis_ticks =
        Memo::new(move |_| x_ticks(signals.chart.with(|chart| chart.axis), signals.shown.get(), canvas, clock));
    let path = |ticks: Memo<Vec<Tick>>, line: fn(f64, ChartSize) -> String| {
        move || {
            ticks.with(|ticks| ticks.iter().map(|(_, position)| line(*position, canvas)).collect::<Vec<_>>().concat())
        }
    };
    let grid_line =
        |y: f64, canvas: ChartSize| format!("M{} {y:.1}h{}", canvas.plot_area().left, canvas.plot_area().width);
    let tick_mark =
        |x: f64, canvas: ChartSize| format!("M{x:.1} {}v4", canvas.plot_area().top + canvas.plot_area().height);
    view! {
        <path class="grid-line" d=path(y_axis_ticks, grid_line)></path>
        <path class="axis-mark" d=path(x_axis_ticks, tick_mark)></path>
        {tick_labels(y_axis_ticks, "end", move |y| (frame.left - 8.0, y + 3.5))}
        {tick_labels(x_axis_ticks, "middle", move |x| (x, bottom + 17.0))}
    }
    .into_erased()
}

fn tick_labels(
    ticks: Memo<Vec<Tick>>,
    anchor: &'static str,
    locate: impl Fn(f64) -> (f64, f64) + Copy + Send + Sync + 'static,
) -> impl Fn() -> AnyView {
    let count = Memo::new(move |_| ticks.with(Vec::len));
    move || {
        let text = |number: usize| {
            let tick = move || ticks.with(|ticks| ticks.get(number).cloned()).unwrap_or_default();
            let x = move || format!("{:.1}", locate(tick().1).0);
            let y = move || format!("{:.1}", locate(tick().1).1);
            view! { <text class="tick-text" x=x y=y text-anchor=anchor>{move || tick().0}</text> }
        };
        (0..count.get()).map(text).collect_view().into_erased()
    }
}

/// Returns the label of a tick. Times of day have no UTC offset: the chart shows it once, in its header.
fn tick_label(axis: Axis, x: f64, clock: PageClock) -> String {
    match axis {
        Axis::Clock => clock.format_time(timestamp_at(x)),
        _ => describe_x(axis, x, clock),
    }
}

/// Formats a position of the x axis, with what it counts.
pub(super) fn describe_cursor(axis: Axis, x: f64, clock: PageClock) -> String {
    let position = describe_x(axis, x, clock);
    match axis {
        Axis::Steps => t().charts.at_step.of(position),
        Axis::Epochs => t().charts.at_epoch.of(position),
        Axis::Elapsed | Axis::Clock => position,
    }
}

/// Formats a position of the x axis.
pub(super) fn describe_x(axis: Axis, x: f64, clock: PageClock) -> String {
    match axis {
        Axis::Steps => t().format_integer(round_to_i64(x).max(0).unsigned_abs()),
        Axis::Epochs => trim_zeros(x),
        Axis::Elapsed => t().format_duration(Millis::from_secs(round_to_i64(x))),
        Axis::Clock => clock.format_time_with_offset(timestamp_at(x)),
    }
}

fn timestamp_at(x: f64) -> Timestamp {
    Timestamp(round_to_i64(x).saturating_mul(1_000))
}

#[expect(clippy::cast_possible_truncation, reason = "far below 2^53")]
fn round_to_i64(x: f64) -> i64 {
    x.round() as i64
}

/// The part of the x axis that the reader selects.
pub(super) fn selected_part(plot: Plot, canvas: ChartSize, part: AxisRange) -> impl IntoView + use<> {
    let frame = canvas.plot_area();
    let end = |x: f64| plot.project(frame, (x, plot.y.low)).0.clamp(frame.left, frame.left + frame.width);
    let (from, to) = (end(part.low), end(part.high));
    view! {
        <rect class="chart-selection" x=format!("{from:.1}") y=frame.top width=format!("{:.1}", to - from) height=frame.height></rect>
    }
}

/// A vertical line at the cursor, and a dot on each line.
pub(super) fn crosshair(chart: &Chart, plot: Plot, canvas: ChartSize, at: f64) -> impl IntoView + use<> {
    let frame = canvas.plot_area();
    if !(plot.x.low..=plot.x.high).contains(&at) {
        return ().into_any();
    }
    let (x, _) = plot.project(frame, (at, plot.y.low));
    let dots = chart.series.iter().zip(SERIES_CLASSES.iter().cycle()).filter_map(|(line, class)| {
        let (x, y) = plot.project(frame, plot.value_at(line, at)?);
        let is_visible = (frame.top - BLEED..=frame.top + frame.height + BLEED).contains(&y);
        is_visible.then(|| view! { <circle class=*class cx=format!("{x:.1}") cy=format!("{y:.1}") r="3"></circle> })
    });
    view! {
        <line class="hover-line" x1=format!("{x:.1}") x2=format!("{x:.1}") y1=frame.top y2=frame.top + frame.height></line>
        <g class="hover-dots">{dots.collect_view()}</g>
    }
    .into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::super::WIDE;
    use super::*;
    use crate::ui::axis::AxisRange;
    use crate::ui::prefs::Prefs;

    #[test]
    fn x_positions_are_described_in_the_units_of_the_axis() {
        Owner::new().with(|| {
            let clock = PageClock::in_tokyo();
            assert_eq!(describe_x(Axis::Steps, 12_400.0, clock), "12,400");
            assert_eq!(describe_x(Axis::Elapsed, 252.0, clock).replace('\u{a0}', " "), "4 min 12 s");
            let morning = 1_704_450_600.0;
            assert_eq!(describe_x(Axis::Clock, morning, clock), "19:30 UTC+09:00");
            assert_eq!(tick_label(Axis::Clock, morning, clock), "19:30");
        });
    }

    #[test]
    fn hour_ticks_use_the_readers_time_zone() {
        Owner::new().with(|| {
            let clock = PageClock::new(&Prefs { time_zone: Some("Asia/Kolkata".to_owned()), ..Prefs::default() });
            let x = AxisRange { low: 1_704_450_600.0, high: 1_704_450_600.0 + 4.0 * 3_600.0 };
            let plot = Plot { x, ..Plot::EMPTY };
            let labels: Vec<_> = x_ticks(Axis::Clock, plot, WIDE[2], clock).into_iter().map(|(text, _)| text).collect();
            assert_eq!(labels, ["16:00", "17:00", "18:00", "19:00", "20:00"]);
        });
    }
}
