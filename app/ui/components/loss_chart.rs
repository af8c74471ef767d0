//! The loss over the steps: as reported, and smoothed.

use leptos::prelude::*;

use crate::protocol::queue::ProgressSeries;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::format::to_f64;
use crate::ui::i18n::t;
use crate::ui::ticks::{Frame, Range, line, smooth, ticks};

/// How much of the past a smoothed value keeps.
const SMOOTHING: f64 = 0.92;

/// A size to draw at. Two are drawn and the style sheet shows the one that fits, so that letters keep their size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Canvas {
    width: f64,
    height: f64,
    columns: u32,
    class: &'static str,
}

const WIDE: Canvas = Canvas { width: 760.0, height: 290.0, columns: 6, class: "chart max-sm:hidden" };
const NARROW: Canvas = Canvas { width: 340.0, height: 200.0, columns: 3, class: "chart sm:hidden" };

impl Canvas {
    fn frame(self) -> Frame {
        Frame { left: 44.0, top: 10.0, width: self.width - 56.0, height: self.height - 36.0 }
    }
}

/// What is drawn: steps, losses, smoothed losses, and the ranges around them.
#[derive(Debug, Clone, PartialEq)]
struct Curve {
    steps: Vec<f64>,
    losses: Vec<f64>,
    smoothed: Vec<f64>,
    x: Range,
    y: Range,
}

impl Curve {
    fn of(series: &ProgressSeries) -> Option<Self> {
        let points = series
            .points
            .iter()
            .filter_map(|point| Some((to_f64(point.step), point.loss.filter(|loss| loss.is_finite())?)));
        let (steps, losses): (Vec<_>, Vec<_>) = points.unzip();
        let smoothed = smooth(&losses, SMOOTHING);
        let x = Range::of(steps.iter().copied())?;
        let y = Range::of(losses.iter().copied())?;
        Some(Self { steps, losses, smoothed, x, y })
    }

    fn at(&self, frame: Frame, step: f64, loss: f64) -> (f64, f64) {
        (frame.left + frame.width * self.x.share(step), frame.top + frame.height * (1.0 - self.y.share(loss)))
    }

    fn path(&self, frame: Frame, losses: &[f64]) -> String {
        line(self.steps.iter().zip(losses).map(|(step, loss)| self.at(frame, *step, *loss)))
    }

    /// The point nearest to a share of the frame's width.
    fn nearest(&self, share: f64) -> Option<usize> {
        let wanted = self.x.low + share * (self.x.high - self.x.low);
        let distance = |place: &usize| (self.steps[*place] - wanted).abs();
        (0..self.steps.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn summary(&self) -> String {
        let shown = |loss: Option<&f64>| loss.copied().map(|value| t().number(value)).unwrap_or_default();
        let lowest = self.losses.iter().copied().fold(f64::INFINITY, f64::min);
        let words = &t().job;
        words.chart_summary.with(&[
            &shown(self.losses.first()),
            &shown(self.losses.last()),
            &t().number(lowest),
            &step_text(self.x.high),
        ])
    }
}

fn step_text(step: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a step was a whole number before it was scaled"
    )]
    t().whole(step.max(0.0) as u64)
}

/// The panel with the curve.
#[component]
pub(crate) fn LossChart(#[prop(into)] series: Signal<ProgressSeries>) -> impl IntoView {
    let words = &t().job;
    let curve = Memo::new(move |_| series.with(Curve::of));
    view! {
        <section class="panel" aria-labelledby="loss">
            <h2 id="loss" class="panel-head">
                {words.loss_chart}
                <span class="panel-note legend">
                    <span><i class="key key-smooth"></i>{words.chart_smooth}</span>
                    <span><i class="key key-raw"></i>{words.chart_raw}</span>
                </span>
            </h2>
            {move || match curve.get() {
                None => view! { <p class="panel-empty">{words.no_points}</p> }.erased(),
                Some(curve) => view! {
                    <div class="px-3 pb-3">
                        <Plot canvas=WIDE curve=curve.clone()/>
                        <Plot canvas=NARROW curve=curve/>
                    </div>
                }
                .erased(),
            }}
        </section>
    }
    .erased()
}

#[component]
fn Plot(canvas: Canvas, curve: Curve) -> impl IntoView {
    let frame = canvas.frame();
    let hovered = RwSignal::new(None::<usize>);
    let curve = StoredValue::new(curve);
    let on_move = move |event: leptos::ev::PointerEvent| {
        let x = browser::share_of_width(&event) * canvas.width;
        hovered.set(curve.with_value(|curve| curve.nearest((x - frame.left) / frame.width)));
    };
    view! {
        <svg
            class=canvas.class
            viewBox=format!("0 0 {} {}", canvas.width, canvas.height)
            role="img"
            aria-label=curve.with_value(Curve::summary)
            on:pointermove=on_move
            on:pointerleave=move |_| hovered.set(None)
        >
            {curve.with_value(|curve| axes(canvas, curve))}
            {curve.with_value(|curve| view! {
                <path class="curve-raw" d=curve.path(frame, &curve.losses)></path>
                <path class="curve-smooth" d=curve.path(frame, &curve.smoothed)></path>
            })}
            {move || hovered.get().map(|place| curve.with_value(|curve| read_out(canvas, curve, place)))}
        </svg>
    }
    .erased()
}

fn axes(canvas: Canvas, curve: &Curve) -> impl IntoView + use<> {
    let frame = canvas.frame();
    let right = frame.left + frame.width;
    let bottom = frame.top + frame.height;
    let rows = ticks(curve.y, 4).into_iter().map(|tick| {
        let (_, y) = curve.at(frame, curve.x.low, tick);
        view! {
            <line class="grid-line" x1=frame.left x2=right y1=format!("{y:.1}") y2=format!("{y:.1}")></line>
            <text class="tick-text" x=frame.left - 8.0 y=format!("{:.1}", y + 3.5) text-anchor="end">{tick_text(tick)}</text>
        }
    });
    let columns = ticks(curve.x, canvas.columns).into_iter().map(|tick| {
        let (x, _) = curve.at(frame, tick, curve.y.low);
        view! {
            <line class="axis-mark" x1=format!("{x:.1}") x2=format!("{x:.1}") y1=bottom y2=bottom + 5.0></line>
            <text class="tick-text" x=format!("{x:.1}") y=bottom + 18.0 text-anchor="middle">{step_text(tick)}</text>
        }
    });
    let (rows, columns) = (rows.collect_view(), columns.collect_view());
    view! {
        {rows}
        <line class="axis-line" x1=frame.left x2=right y1=bottom y2=bottom></line>
        {columns}
    }
    .erased()
}

/// A tick without the zeros that its neighbours do not need either.
fn tick_text(tick: f64) -> String {
    let text = t().number(tick);
    let point = ['.', ','];
    if text.contains('e') || !text.contains(point) {
        text
    } else {
        text.trim_end_matches('0').trim_end_matches(point).to_owned()
    }
}

fn read_out(canvas: Canvas, curve: &Curve, place: usize) -> impl IntoView + use<> {
    let frame = canvas.frame();
    let (step, loss) = (curve.steps[place], curve.losses[place]);
    let (x, y) = curve.at(frame, step, curve.smoothed[place]);
    let left_half = x < frame.left + frame.width / 2.0;
    let text = t().job.chart_at.with(&[&step_text(step), &t().number(loss)]);
    view! {
        <line class="hover-line" x1=format!("{x:.1}") x2=format!("{x:.1}") y1=frame.top y2=frame.top + frame.height></line>
        <circle class="hover-dot" cx=format!("{x:.1}") cy=format!("{y:.1}") r="3.5"></circle>
        <text
            class="hover-text"
            x=format!("{:.1}", if left_half { x + 10.0 } else { x - 10.0 })
            y=frame.top + 12.0
            text-anchor=if left_half { "start" } else { "end" }
        >
            {text}
        </text>
    }
    .erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::worker::ProgressPoint;

    fn series(losses: &[Option<f64>]) -> ProgressSeries {
        let point = |(step, loss): (usize, &Option<f64>)| ProgressPoint {
            step: step as u64 * 10,
            loss: *loss,
            ..ProgressPoint::default()
        };
        ProgressSeries { points: losses.iter().enumerate().map(point).collect(), ..ProgressSeries::default() }
    }

    #[test]
    fn nothing_to_draw_is_no_curve() {
        assert_eq!(Curve::of(&series(&[])), None);
        assert_eq!(Curve::of(&series(&[None, Some(f64::NAN)])), None);
    }

    #[test]
    fn the_curve_fills_its_frame_and_skips_what_is_no_number() {
        let curve = Curve::of(&series(&[Some(2.0), None, Some(f64::INFINITY), Some(1.0)])).unwrap();
        assert_eq!(curve.steps, [0.0, 30.0]);
        let frame = Frame { left: 10.0, top: 5.0, width: 100.0, height: 50.0 };
        assert_eq!(curve.at(frame, 0.0, 2.0), (10.0, 5.0));
        assert_eq!(curve.at(frame, 30.0, 1.0), (110.0, 55.0));
        assert_eq!(curve.nearest(0.4), Some(0));
        assert_eq!(curve.nearest(9.0), Some(1));
    }

    #[test]
    fn ticks_are_short() {
        for (tick, text) in
            [(0.0, "0"), (0.1, "0.1"), (0.05, "0.05"), (2.5, "2.5"), (10.0, "10"), (100.0, "100"), (0.0001, "1.0e-4")]
        {
            assert_eq!(tick_text(tick), text);
        }
    }
}
