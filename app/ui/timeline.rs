//! The timeline of a job: a lane for waiting, and one for each attempt.

use crate::domain::ids::AttemptNumber;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::jobs::{AttemptView, JobView};
use crate::protocol::status::JobStatus;

/// What happened during a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimelinePhase {
    Queued,
    /// The delay before the next attempt after a lost one.
    BackOff,
    Offered,
    Starting,
    Running,
    Cancelling,
}

/// A span of time in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimelineSegment {
    pub phase: TimelinePhase,
    pub from: Timestamp,
    pub until: Timestamp,
}

/// Consecutive segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimelineLane {
    /// The attempt; `None` for the lane of waiting.
    pub attempt: Option<AttemptNumber>,
    pub segments: Vec<TimelineSegment>,
}

/// All lanes of a job with their common range of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobTimeline {
    pub from: Timestamp,
    pub until: Timestamp,
    pub lanes: Vec<TimelineLane>,
}

/// The maximum number of attempts with a lane; the table below lists all of them.
const MAX_LANES: usize = 12;

impl JobTimeline {
    /// Builds the timeline of a job at the time `now`.
    pub fn new(job: &JobView, now: Timestamp) -> Self {
        let attempts = job.attempts.as_deref().unwrap_or_default();
        let known_times =
            attempts.iter().flat_map(|attempt| [attempt.started_at, attempt.running_at, attempt.ended_at]);
        // The page's clock may be behind the times of the job.
        let newest = known_times.flatten().chain([job.submitted_at, job.status_since]).max().unwrap_or(now);
        let until = job.ended_at.unwrap_or(now).max(newest);
        let first = attempts.len().saturating_sub(MAX_LANES);
        let mut lanes = vec![TimelineLane { attempt: None, segments: waiting_segments(job, attempts, until) }];
        lanes.extend(attempts[first..].iter().map(|attempt| attempt_lane(attempt, until)));
        Self { from: job.submitted_at, until, lanes }
    }

    /// Returns the duration of the whole timeline.
    pub fn span(&self) -> Millis {
        Millis((self.until - self.from).0.max(1))
    }

    /// Returns the position of a time, from 0 to 1.
    pub fn fraction_at(&self, at: Timestamp) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a place on a page")]
        let fraction = (at - self.from).0 as f64 / self.span().0 as f64;
        fraction.clamp(0.0, 1.0)
    }
}

/// Rounds the current time down, so that the timeline is redrawn only for visible changes.
pub(crate) fn coarse_now(now: Timestamp, since: Timestamp) -> Timestamp {
    let step = ((now - since).0 / 300).max(10_000);
    Timestamp(now.0 - now.0.rem_euclid(step))
}

/// Returns the segments from the submit to the first offer, and between attempts.
fn waiting_segments(job: &JobView, attempts: &[AttemptView], end: Timestamp) -> Vec<TimelineSegment> {
    let mut segments = Vec::new();
    let (mut since, mut phase) = (Some(job.submitted_at), TimelinePhase::Queued);
    for attempt in attempts {
        segments.extend(since.and_then(|from| segment(phase, from, attempt.offered_at)));
        since = attempt.ended_at;
        phase = if attempt.outcome.as_deref() == Some("lost") { TimelinePhase::BackOff } else { TimelinePhase::Queued };
    }
    // A job waits after its last attempt only if it is queued again, or was queued until it was cancelled.
    let is_between = !job.status.has_lease() && !job.status.is_terminal();
    let waits = is_between || attempts.is_empty() || job.status == JobStatus::Cancelled;
    segments.extend(since.filter(|_| waits).and_then(|from| segment(phase, from, end.max(just_after(from)))));
    segments
}

fn attempt_lane(attempt: &AttemptView, end: Timestamp) -> TimelineLane {
    let newest = [attempt.cancelling_at, attempt.running_at, attempt.started_at].into_iter().flatten().next();
    let lane_end = attempt.ended_at.unwrap_or_else(|| end.max(just_after(newest.unwrap_or(attempt.offered_at))));
    let phase_starts = [
        (TimelinePhase::Offered, Some(attempt.offered_at)),
        (TimelinePhase::Starting, attempt.started_at),
        (TimelinePhase::Running, attempt.running_at),
        (TimelinePhase::Cancelling, attempt.cancelling_at),
    ];
    let phases: Vec<_> = phase_starts.into_iter().filter_map(|(phase, at)| Some((phase, at?.min(lane_end)))).collect();
    let until = phases.iter().skip(1).map(|(_, at)| *at).chain([lane_end]);
    let segments = phases.iter().zip(until).filter_map(|((phase, from), until)| segment(*phase, *from, until));
    TimelineLane { attempt: Some(attempt.attempt), segments: segments.collect() }
}

/// Makes an ongoing phase visible from its start, even if the times are equal after rounding.
fn just_after(start: Timestamp) -> Timestamp {
    Timestamp(start.0 + 1)
}

fn segment(phase: TimelinePhase, from: Timestamp, until: Timestamp) -> Option<TimelineSegment> {
    (until > from).then_some(TimelineSegment { phase, from, until })
}

/// Returns round durations at which the axis is marked, at most `count` of them.
pub(crate) fn axis_marks(span: Millis, count: i64) -> impl Iterator<Item = Millis> {
    const STEPS: [i64; 17] =
        [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400];
    let seconds = span.0 / 1_000;
    let is_coarse_enough = |step: &i64| seconds / step <= count;
    let days = seconds / 86_400 / count.max(1) + 1;
    let step = STEPS.into_iter().find(is_coarse_enough).unwrap_or(days * 86_400);
    (1..=seconds / step).map(move |mark| Millis::from_secs(mark * step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(body: &str) -> JobView {
        let common = r#""job_id": "j_1", "config_name": "c", "config_revision": 1, "target": "auto", "worker_labels": {},
            "gpu_count": null, "min_vram_gb": null, "accelerator_type": null, "max_runtime_seconds": null, "priority": 10,
            "retry_of": null, "attempt": 1, "max_attempts": 4, "worker_id": null, "worker_name": null,
            "submitted_by": "a", "started_at": null, "queue_position": null, "progress": null, "error": null"#;
        serde_json::from_str(&format!("{{{common}, {body}}}")).expect("a job")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp(1_700_000_000_000 + second * 1_000)
    }

    fn attempt(number: u32, times: &str) -> String {
        format!(
            r#"{{"attempt": {number}, "worker_id": "w_1", "worker_name": "w", "error": null, "exit_code": null, "log_bytes": 0, {times}}}"#
        )
    }

    /// Formats each lane: phases with the seconds of their start and end.
    fn describe_lanes(timeline: &JobTimeline) -> Vec<String> {
        let second = |at: Timestamp| (at - timeline.from).0 / 1_000;
        let segment = |s: &TimelineSegment| format!("{:?} {}-{}", s.phase, second(s.from), second(s.until));
        timeline.lanes.iter().map(|lane| lane.segments.iter().map(segment).collect::<Vec<_>>().join(", ")).collect()
    }

    fn attempt_times(offered: i64, started: Option<i64>, running: Option<i64>, ended: Option<(i64, &str)>) -> String {
        let text =
            |second: Option<i64>| second.map_or_else(|| "null".to_owned(), |second| format!("\"{}\"", at(second)));
        format!(
            r#""offered_at": {}, "started_at": {}, "running_at": {}, "ended_at": {}, "outcome": {}"#,
            text(Some(offered)),
            text(started),
            text(running),
            text(ended.map(|ended| ended.0)),
            ended.map_or_else(|| "null".to_owned(), |ended| format!("{:?}", ended.1)),
        )
    }

    fn view(status: &str, ended: Option<i64>, attempts: &[String]) -> JobView {
        let ended = ended.map_or_else(|| "null".to_owned(), |second| format!("\"{}\"", at(second)));
        job(&format!(
            r#""status": "{status}", "status_since": "{0}", "submitted_at": "{0}", "ended_at": {ended}, "attempts": [{1}]"#,
            at(0),
            attempts.join(",")
        ))
    }

    #[test]
    fn pending_job_has_one_lane() {
        let timeline = JobTimeline::new(&view("queued", None, &[]), at(30));
        assert_eq!(describe_lanes(&timeline), ["Queued 0-30"]);
        assert!((timeline.fraction_at(at(15)) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_lost_attempt_is_followed_by_a_back_off() {
        let attempts = [
            attempt(1, &attempt_times(10, Some(12), Some(20), Some((50, "lost")))),
            attempt(2, &attempt_times(60, Some(61), None, None)),
        ];
        let timeline = JobTimeline::new(&view("starting", None, &attempts), at(100));
        assert_eq!(
            describe_lanes(&timeline),
            [
                "Queued 0-10, BackOff 50-60",
                "Offered 10-12, Starting 12-20, Running 20-50",
                "Offered 60-61, Starting 61-100"
            ]
        );
    }

    #[test]
    fn unaccepted_offer_is_requeued_without_a_back_off() {
        let attempts = [attempt(1, &attempt_times(10, None, None, Some((40, "expired"))))];
        let timeline = JobTimeline::new(&view("queued", None, &attempts), at(70));
        assert_eq!(describe_lanes(&timeline), ["Queued 0-10, Queued 40-70", "Offered 10-40"]);
    }

    #[test]
    fn nothing_is_drawn_after_the_end_or_before_the_beginning() {
        let attempts = [attempt(1, &attempt_times(0, Some(5), Some(9), Some((7, "completed"))))];
        let timeline = JobTimeline::new(&view("completed", Some(7), &attempts), at(500));
        assert_eq!(describe_lanes(&timeline), ["", "Offered 0-5, Starting 5-7"]);
        // The page's clock is behind the server's.
        let timeline =
            JobTimeline::new(&view("running", None, &[attempt(1, &attempt_times(3, Some(5), None, None))]), at(-60));
        assert_eq!(describe_lanes(&timeline), ["Queued 0-3", "Offered 3-5, Starting 5-5"]);
    }

    #[test]
    fn current_phase_is_shown_from_its_start() {
        let lost = [attempt(1, &attempt_times(1, Some(2), Some(3), Some((9, "lost"))))];
        let timeline = JobTimeline::new(&view("queued", None, &lost), at(9));
        assert_eq!(describe_lanes(&timeline), ["Queued 0-1, BackOff 9-9", "Offered 1-2, Starting 2-3, Running 3-9"]);
    }

    #[test]
    fn marks_are_round_and_few() {
        let seconds =
            |span, count| axis_marks(Millis::from_secs(span), count).map(|mark| mark.0 / 1_000).collect::<Vec<_>>();
        assert_eq!(seconds(0, 6), Vec::<i64>::new());
        assert_eq!(seconds(25, 6), [5, 10, 15, 20, 25]);
        assert_eq!(seconds(3_700, 6), [600, 1_200, 1_800, 2_400, 3_000, 3_600]);
        assert_eq!(seconds(40 * 86_400, 6).len(), 5);
        assert!((0..2_000_000).step_by(997).all(|span| seconds(span, 4).len() <= 4));
    }

    #[test]
    fn now_is_rounded_to_the_scale_of_the_timeline() {
        assert_eq!(coarse_now(Timestamp(12_345), Timestamp(0)), Timestamp(10_000));
        assert_eq!(coarse_now(Timestamp(900_000_123), Timestamp(0)), Timestamp(900_000_000));
    }
}
