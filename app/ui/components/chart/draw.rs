//! A chart as SVG: one drawing for all of them.

use leptos::prelude::*;

use super::data::{Axis, Chart, Plot};
use crate::domain::time::{Millis, Timestamp};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::ticks::{Frame, log_ticks, ticks, time_ticks};

/// A size to draw at. Where the place differs much, two are drawn and the style sheet shows the one that fits, so that
/// letters keep their size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Canvas {
    pub width: f64,
    pub height: f64,
    pub columns: u32,
    pub rows: u32,
    pub class: &'static str,
}

impl Canvas {
    pub fn frame(self) -> Frame {
        Frame { left: 46.0, top: 8.0, width: self.width - 58.0, height: self.height - 32.0 }
    }
}

/// Each line has a colour and, from the fifth on, dashes.
pub(super) const CURVES: [&str; 8] = [
    "curve series-1",
    "curve series-2",
    "curve series-3",
    "curve series-4",
    "curve series-5",
    "curve series-6",
    "curve series-7",
    "curve series-8",
];

/// What stands still: the ruled back and the lines.
pub(super) fn drawing(chart: &Chart, plot: Plot, canvas: Canvas) -> impl IntoView + use<> {
    let frame = canvas.frame();
    let (right, bottom) = (frame.left + frame.width, frame.top + frame.height);
    let unit = chart.unit;
    let values = if plot.is_log { log_ticks(plot.y) } else { ticks(plot.y, canvas.rows) };
    let rows = values.into_iter().map(|tick| {
        let (_, y) = plot.place(frame, (plot.x.low, tick));
        view! {
            <line class="grid-line" x1=frame.left x2=right y1=format!("{y:.1}") y2=format!("{y:.1}")></line>
            <text class="tick-text" x=frame.left - 8.0 y=format!("{:.1}", y + 3.5) text-anchor="end">{unit.tick(tick)}</text>
        }
    });
    let curves = chart.lines.iter().zip(CURVES.iter().cycle()).map(|(line, class)| {
        let behind = (!line.behind.is_empty()).then(|| {
            view! { <g class="curve-behind"><path class=*class d=plot.path(frame, &line.behind)></path></g> }
        });
        view! { {behind}<path class=*class d=plot.path(frame, &line.points)></path> }
    });
    let (rows, curves) = (rows.collect_view(), curves.collect_view());
    view! {
        {rows}
        <line class="axis-line" x1=frame.left x2=right y1=bottom y2=bottom></line>
        {curves}
    }
    .erased()
}

/// The marks below it. Those of a clock are the reader's, which the server does not know.
pub(super) fn marks(axis: Axis, plot: Plot, canvas: Canvas, ahead: f64) -> impl IntoView + use<> {
    let frame = canvas.frame();
    let bottom = frame.top + frame.height;
    let places = match axis {
        Axis::Steps => ticks(plot.x, canvas.columns),
        Axis::Elapsed => time_ticks(plot.x, canvas.columns, 1.0, 0.0),
        Axis::Clock => time_ticks(plot.x, canvas.columns, 60.0, ahead),
    };
    let marks = places.into_iter().map(|tick| {
        let (x, _) = plot.place(frame, (tick, plot.y.low));
        view! {
            <line class="axis-mark" x1=format!("{x:.1}") x2=format!("{x:.1}") y1=bottom y2=bottom + 4.0></line>
            <text class="tick-text" x=format!("{x:.1}") y=bottom + 17.0 text-anchor="middle">{at(axis, tick, ahead)}</text>
        }
    });
    marks.collect_view().erased()
}

/// A place of an axis in words.
pub(super) fn at(axis: Axis, x: f64, ahead: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "far below 2^53")]
    let whole = x.round() as i64;
    match axis {
        Axis::Steps => t().whole(whole.max(0).unsigned_abs()),
        Axis::Elapsed => t().span(Millis::seconds(whole)),
        Axis::Clock => clock(Timestamp(whole.saturating_mul(1_000)), ahead),
    }
}

/// The time of day, `14:32`, on a clock that is so many seconds ahead.
fn clock(at: Timestamp, ahead: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "less than a day")]
    let local = at + Millis::seconds(ahead as i64);
    local.to_string().get(11..16).unwrap_or_default().to_owned()
}

/// The line at the place that is read, and a dot on each curve.
pub(super) fn crosshair(chart: &Chart, plot: Plot, canvas: Canvas, at: f64) -> impl IntoView + use<> {
    let frame = canvas.frame();
    if !(plot.x.low..=plot.x.high).contains(&at) {
        return ().into_any();
    }
    let (x, _) = plot.place(frame, (at, plot.y.low));
    let dots = chart.lines.iter().zip(CURVES.iter().cycle()).filter_map(|(line, class)| {
        let (x, y) = plot.place(frame, plot.read(line, at)?);
        Some(view! { <circle class=*class cx=format!("{x:.1}") cy=format!("{y:.1}") r="3"></circle> })
    });
    view! {
        <line class="hover-line" x1=format!("{x:.1}") x2=format!("{x:.1}") y1=frame.top y2=frame.top + frame.height></line>
        <g class="hover-dots">{dots.collect_view()}</g>
    }
    .erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_as_their_axis_counts() {
        assert_eq!(at(Axis::Steps, 12_400.0, 0.0), "12,400");
        assert_eq!(at(Axis::Elapsed, 252.0, 0.0).replace('\u{a0}', " "), "4 min 12 s");
        let morning = 1_704_450_600.0;
        assert_eq!(at(Axis::Clock, morning, 0.0), "10:30");
        assert_eq!(at(Axis::Clock, morning, 5.5 * 3_600.0), "16:00");
    }
}
