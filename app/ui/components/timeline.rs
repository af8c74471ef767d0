//! The timeline of a job: a lane for its waiting times, and a lane for each attempt. The table below the timeline
//! contains the same as text.

use leptos::prelude::*;

use super::status::outcome_style;
use crate::domain::time::Timestamp;
use crate::protocol::jobs::JobView;
use crate::ui::checkpoints::CheckpointFiles;
use crate::ui::clock::{PageClock, use_clock};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::timeline::{JobTimeline, TimelineLane, TimelinePhase, TimelineSegment, axis_marks, coarse_now};

/// A size of the drawing. The style sheet shows the size that fits, so that text is not scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TimelineSize {
    width: f64,
    marks: i64,
    class: &'static str,
}

const WIDE: TimelineSize = TimelineSize { width: 1000.0, marks: 8, class: "lanes max-sm:hidden" };
const NARROW: TimelineSize = TimelineSize { width: 340.0, marks: 3, class: "lanes sm:hidden" };
/// The distance from one lane to the next.
const LANE_HEIGHT: f64 = 38.0;
/// The distance from the top of a lane to its bar, and the height of the bar.
const BAR_GEOMETRY: (f64, f64) = (17.0, 12.0);
/// The space above all lanes, for the text of a bar.
const TOP_MARGIN: f64 = 22.0;
/// The space at the end, for the icon of the outcome.
const RIGHT_MARGIN: f64 = 20.0;

impl TimelineSize {
    fn x_at(self, timeline: &JobTimeline, at: Timestamp) -> f64 {
        2.0 + (self.width - RIGHT_MARGIN - 2.0) * timeline.fraction_at(at)
    }
}

/// The lanes of a job, which grow until it ends.
#[component]
pub(crate) fn Timeline(job: Memo<JobView>, checkpoints: Memo<Vec<CheckpointFiles>>) -> impl IntoView {
    let clock = use_clock();
    let now = Memo::new(move |_| {
        job.with(|job| if job.ended_at.is_some() { Timestamp(0) } else { coarse_now(clock.now(), job.submitted_at) })
    });
    move || {
        let (job, now) = (job.get(), now.get());
        let timeline = JobTimeline::new(&job, now);
        checkpoints.with(|checkpoints| {
            let draw = |canvas| draw_timeline((canvas, clock), &job, &timeline, checkpoints);
            view! { <div class="lanes-frame">{draw(WIDE)}{draw(NARROW)}</div> }.into_erased()
        })
    }
}

/// A function and not a component, so that the caller tracks what it reads from the clock.
fn draw_timeline(
    (canvas, clock): (TimelineSize, PageClock),
    job: &JobView,
    timeline: &JobTimeline,
    checkpoints: &[CheckpointFiles],
) -> AnyView {
    let words = &t().timeline;
    #[expect(clippy::cast_precision_loss, reason = "a few lanes")]
    let bottom = TOP_MARGIN + timeline.lanes.len() as f64 * LANE_HEIGHT + 2.0;
    let axis = axis_marks(timeline.span(), canvas.marks).map(|mark| {
        let x = format!("{:.1}", canvas.x_at(timeline, timeline.from + mark));
        view! {
            <line class="grid-line" x1=x.clone() x2=x.clone() y1=TOP_MARGIN y2=bottom></line>
            <text class="tick-text" x=x y=bottom + 14.0 text-anchor="middle">{t().format_duration(mark)}</text>
        }
    });
    let axis = axis.collect_view();
    let rows = (0_u32..).zip(&timeline.lanes).map(|(row, lane)| {
        let top = TOP_MARGIN + f64::from(row) * LANE_HEIGHT;
        draw_lane((canvas, clock), job, timeline, lane, checkpoints, top)
    });
    let rows = rows.collect_view();
    view! {
        <svg class=canvas.class viewBox=format!("0 0 {} {}", canvas.width, bottom + 20.0) role="group" aria-label=words.label>
            {axis}
            <line class="axis-line" x1="2" x2=canvas.width - RIGHT_MARGIN y1=bottom y2=bottom></line>
            {rows}
        </svg>
    }
    .into_erased()
}

fn draw_lane(
    (canvas, clock): (TimelineSize, PageClock),
    job: &JobView,
    timeline: &JobTimeline,
    lane: &TimelineLane,
    checkpoints: &[CheckpointFiles],
    top: f64,
) -> impl IntoView + use<> {
    let words = t();
    let attempt = job.attempts.iter().flatten().find(|attempt| Some(attempt.attempt) == lane.attempt);
    let name = attempt.map_or_else(
        || words.timeline.waiting.to_owned(),
        |attempt| {
            let mut parts = vec![words.log.attempt.of(attempt.attempt)];
            parts.extend(attempt.worker_name.clone());
            parts.extend(attempt.resumed_from_step.map(|step| words.job.goes_on.of(words.format_integer(step))));
            parts.join(" · ")
        },
    );
    let start = lane.segments.first().map_or(2.0, |segment| canvas.x_at(timeline, segment.from));
    // A name that would run over the edge is aligned with the end of its lane.
    let is_right_aligned = start > canvas.width * 0.6;
    let bars =
        lane.segments.iter().map(|segment| draw_segment((canvas, clock), timeline, *segment, top)).collect_view();
    let checkpoint_marks = checkpoints.iter().filter(|checkpoint| Some(checkpoint.attempt) == lane.attempt);
    let checkpoint_marks = checkpoint_marks.map(|checkpoint| {
        let (x, y) = (canvas.x_at(timeline, checkpoint.at), top + BAR_GEOMETRY.0 + BAR_GEOMETRY.1 / 2.0);
        let text = words.timeline.checkpoint.of(words.format_integer(checkpoint.step));
        let shape = format!("M{:.1} {y}l5 -5l5 5l-5 5z", x - 5.0);
        labeled_shape(text, view! { <path class="lane-mark" d=shape></path> }.into_erased())
    });
    let checkpoint_marks = checkpoint_marks.collect_view();
    let end = attempt.and_then(|attempt| attempt.ended_at.map(|at| (at, attempt.outcome.clone())));
    let end = end.map(|(at, outcome)| {
        let style = outcome_style(&words.status, outcome.as_deref());
        let transform = format!("translate({:.1} {:.1})", canvas.x_at(timeline, at) + 3.0, top + BAR_GEOMETRY.0 - 2.0);
        view! { <path class=outcome_class(style.glyph) transform=transform d=style.glyph.path()></path> }
    });
    view! {
        <text
            class="lane-name"
            x=format!("{:.1}", if is_right_aligned { canvas.width - RIGHT_MARGIN } else { start })
            y=top + 12.0
            text-anchor=if is_right_aligned { "end" } else { "start" }
        >
            {name}
        </text>
        {bars}
        {checkpoint_marks}
        {end}
    }
    .into_erased()
}

fn draw_segment(
    (canvas, clock): (TimelineSize, PageClock),
    timeline: &JobTimeline,
    segment: TimelineSegment,
    top: f64,
) -> impl IntoView + use<> {
    let words = t();
    let (from, until) = (canvas.x_at(timeline, segment.from), canvas.x_at(timeline, segment.until));
    let (class, name) = match segment.phase {
        TimelinePhase::Queued => ("lane is-queued", words.status.queued),
        TimelinePhase::BackOff => ("lane is-back-off", words.timeline.back_off),
        TimelinePhase::Offered => ("lane is-offered", words.status.offered),
        TimelinePhase::Starting => ("lane is-starting", words.status.starting),
        TimelinePhase::Running => ("lane is-running", words.status.running),
        TimelinePhase::Cancelling => ("lane is-cancelling", words.status.cancelling),
    };
    let span = words.format_duration(segment.until - segment.from);
    let text = format!("{name} · {span} · {}", clock.format_timestamp(segment.from));
    // Even the shortest segment is visible.
    let width = (until - from).max(2.0);
    let shape = view! {
        <rect class=class x=format!("{from:.1}") y=top + BAR_GEOMETRY.0 width=format!("{width:.1}") height=BAR_GEOMETRY.1 rx="2"></rect>
    };
    labeled_shape(text, shape.into_erased())
}

/// Renders a shape with a text, which is shown above all lanes while the shape has the pointer or the focus.
fn labeled_shape(text: String, shape: AnyView) -> AnyView {
    let label = text.clone();
    view! {
        <g class="lane-part" tabindex="0" role="img" aria-label=label>
            {shape}
            <text class="lane-note" x="2" y="12">{text}</text>
        </g>
    }
    .into_erased()
}

const fn outcome_class(glyph: Glyph) -> &'static str {
    match glyph {
        Glyph::CheckCircle => "lane-end status-good",
        Glyph::CrossCircle => "lane-end status-bad",
        Glyph::Warning => "lane-end status-warn",
        _ => "lane-end status-off",
    }
}
