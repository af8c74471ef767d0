//! A job's life as lanes: what it waited for, and what each attempt did. The table below says the same in words.

use leptos::prelude::*;

use super::icon::Glyph;
use super::status::outcome_look;
use crate::domain::time::Timestamp;
use crate::protocol::queue::JobView;
use crate::ui::checkpoints::Checkpoint;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::lanes::{Lane, Lanes, Phase, Segment, coarse, marks};

/// A size to draw at; the style sheet shows the one that fits, so that letters keep their size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Canvas {
    width: f64,
    marks: i64,
    class: &'static str,
}

const WIDE: Canvas = Canvas { width: 1000.0, marks: 8, class: "lanes max-sm:hidden" };
const NARROW: Canvas = Canvas { width: 340.0, marks: 3, class: "lanes sm:hidden" };
/// From one lane to the next.
const ROW: f64 = 38.0;
/// From the top of a lane to its bar, and how high that is.
const BAR: (f64, f64) = (17.0, 12.0);
/// Room for what a bar says, above all lanes.
const TOP: f64 = 22.0;
/// Room for the outcome's mark at the end.
const EDGE: f64 = 20.0;

impl Canvas {
    fn x(self, lanes: &Lanes, at: Timestamp) -> f64 {
        2.0 + (self.width - EDGE - 2.0) * lanes.share(at)
    }
}

/// The lanes of a job, which grow while it goes on.
#[component]
pub(crate) fn Timeline(job: Memo<JobView>, checkpoints: Memo<Vec<Checkpoint>>) -> impl IntoView {
    let clock = use_clock();
    let now = Memo::new(move |_| {
        job.with(|job| if job.ended_at.is_some() { Timestamp(0) } else { coarse(clock.now(), job.submitted_at) })
    });
    move || {
        let (job, now) = (job.get(), now.get());
        let lanes = Lanes::of(&job, now);
        checkpoints.with(|checkpoints| {
            let draw = |canvas| view! { <Drawing canvas=canvas job=job.clone() lanes=lanes.clone() checkpoints=checkpoints.clone()/> };
            view! { <div class="lanes-frame">{draw(WIDE)}{draw(NARROW)}</div> }.erased()
        })
    }
}

#[component]
fn Drawing(canvas: Canvas, job: JobView, lanes: Lanes, checkpoints: Vec<Checkpoint>) -> impl IntoView {
    let words = &t().lanes;
    #[expect(clippy::cast_precision_loss, reason = "a few lanes")]
    let bottom = TOP + lanes.each.len() as f64 * ROW + 2.0;
    let axis = marks(lanes.span(), canvas.marks).map(|mark| {
        let x = format!("{:.1}", canvas.x(&lanes, lanes.from + mark));
        view! {
            <line class="grid-line" x1=x.clone() x2=x.clone() y1=TOP y2=bottom></line>
            <text class="tick-text" x=x y=bottom + 14.0 text-anchor="middle">{t().span(mark)}</text>
        }
    });
    let axis = axis.collect_view();
    let rows = (0_u32..).zip(&lanes.each).map(|(row, lane)| {
        let top = TOP + f64::from(row) * ROW;
        row_of(canvas, &job, &lanes, lane, &checkpoints, top)
    });
    let rows = rows.collect_view();
    view! {
        <svg class=canvas.class viewBox=format!("0 0 {} {}", canvas.width, bottom + 20.0) role="group" aria-label=words.label>
            {axis}
            <line class="axis-line" x1="2" x2=canvas.width - EDGE y1=bottom y2=bottom></line>
            {rows}
        </svg>
    }
    .erased()
}

fn row_of(
    canvas: Canvas,
    job: &JobView,
    lanes: &Lanes,
    lane: &Lane,
    checkpoints: &[Checkpoint],
    top: f64,
) -> impl IntoView + use<> {
    let words = t();
    let attempt = job.attempts.iter().flatten().find(|attempt| Some(attempt.attempt) == lane.attempt);
    let name = attempt.map_or_else(
        || words.lanes.waiting.to_owned(),
        |attempt| {
            let mut parts = vec![words.log.attempt.of(attempt.attempt)];
            parts.extend(attempt.worker_name.clone());
            parts.extend(attempt.resumed_from_step.map(|step| words.job.goes_on.of(words.whole(step))));
            parts.join(" · ")
        },
    );
    let start = lane.segments.first().map_or(2.0, |segment| canvas.x(lanes, segment.from));
    // Letters that would run over the edge end where their lane does.
    let ends = start > canvas.width * 0.6;
    let bars = lane.segments.iter().map(|segment| bar(canvas, lanes, *segment, top)).collect_view();
    let made = checkpoints.iter().filter(|checkpoint| Some(checkpoint.attempt) == lane.attempt);
    let made = made.map(|checkpoint| {
        let (x, y) = (canvas.x(lanes, checkpoint.at), top + BAR.0 + BAR.1 / 2.0);
        let text = words.lanes.checkpoint.of(words.whole(checkpoint.step));
        let shape = format!("M{:.1} {y}l5 -5l5 5l-5 5z", x - 5.0);
        told(text, view! { <path class="lane-mark" d=shape></path> }.erased())
    });
    let made = made.collect_view();
    let end = attempt.and_then(|attempt| attempt.ended_at.map(|at| (at, attempt.outcome.clone())));
    let end = end.map(|(at, outcome)| {
        let look = outcome_look(&words.status, outcome.as_deref());
        let place = format!("translate({:.1} {:.1})", canvas.x(lanes, at) + 3.0, top + BAR.0 - 2.0);
        view! { <path class=end_class(look.glyph) transform=place d=look.glyph.path()></path> }
    });
    view! {
        <text
            class="lane-name"
            x=format!("{:.1}", if ends { canvas.width - EDGE } else { start })
            y=top + 12.0
            text-anchor=if ends { "end" } else { "start" }
        >
            {name}
        </text>
        {bars}
        {made}
        {end}
    }
    .erased()
}

fn bar(canvas: Canvas, lanes: &Lanes, segment: Segment, top: f64) -> impl IntoView + use<> {
    let words = t();
    let (from, until) = (canvas.x(lanes, segment.from), canvas.x(lanes, segment.until));
    let (class, name) = match segment.phase {
        Phase::Queued => ("lane is-queued", words.status.queued),
        Phase::BackOff => ("lane is-back-off", words.lanes.back_off),
        Phase::Offered => ("lane is-offered", words.status.offered),
        Phase::Starting => ("lane is-starting", words.status.starting),
        Phase::Running => ("lane is-running", words.status.running),
        Phase::Cancelling => ("lane is-cancelling", words.status.cancelling),
    };
    let span = words.span(segment.until - segment.from);
    let text = format!("{name} · {span} · {}", words.moment(segment.from));
    // However short: it was there.
    let width = (until - from).max(2.0);
    let shape = view! {
        <rect class=class x=format!("{from:.1}") y=top + BAR.0 width=format!("{width:.1}") height=BAR.1 rx="2"></rect>
    };
    told(text, shape.erased())
}

/// A shape that says what it is, above all lanes, to whoever points at it or comes to it by key.
fn told(text: String, shape: AnyView) -> AnyView {
    let label = text.clone();
    view! {
        <g class="lane-part" tabindex="0" role="img" aria-label=label>
            {shape}
            <text class="lane-note" x="2" y="12">{text}</text>
        </g>
    }
    .erased()
}

const fn end_class(glyph: Glyph) -> &'static str {
    match glyph {
        Glyph::CheckCircle => "lane-end status-good",
        Glyph::CrossCircle => "lane-end status-bad",
        Glyph::Warning => "lane-end status-warn",
        _ => "lane-end status-off",
    }
}
