//! The states of a worker in the last 24 hours: as a bar, and as text.

use leptos::prelude::*;

use crate::domain::time::{Millis, Timestamp};
use crate::protocol::status::WorkerStatus;
use crate::protocol::workers::WorkerView;
use crate::protocol::workers::history::StatusSpanView;
use crate::ui::clock::{PageClock, use_clock};
use crate::ui::components::status::worker_status_style;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 1_440 * MINUTE_MS;
/// The order in which states are listed; none stands for the time before the first contact.
const DISPLAY_ORDER: [Option<WorkerStatus>; 6] = [
    Some(WorkerStatus::Busy),
    Some(WorkerStatus::Idle),
    Some(WorkerStatus::Draining),
    Some(WorkerStatus::Connecting),
    Some(WorkerStatus::Offline),
    None,
];

/// A period in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StatusPeriod {
    status: Option<WorkerStatus>,
    from: Timestamp,
    until: Timestamp,
}

impl StatusPeriod {
    fn duration(self) -> Millis {
        self.until - self.from
    }

    fn is_offline(self) -> bool {
        matches!(self.status, Some(WorkerStatus::Offline) | None)
    }

    const fn class(self) -> &'static str {
        match self.status {
            Some(WorkerStatus::Busy) => "day-mark is-busy",
            Some(WorkerStatus::Idle) => "day-mark is-idle",
            Some(WorkerStatus::Draining) => "day-mark is-draining",
            Some(WorkerStatus::Connecting) => "day-mark is-connecting",
            Some(WorkerStatus::Offline) => "day-mark is-offline",
            None => "day-mark is-never",
        }
    }

    fn label(self) -> Text {
        worker_status_style(&t().status, self.status.unwrap_or(WorkerStatus::Offline), self.status.is_some()).label
    }
}

/// The periods in the 24 hours before `now`. As `now` may be rounded down, the newest state lasts at least a second, so
/// that it is shown at once; other periods below a second are left out.
fn status_periods(spans: &[StatusSpanView], now: Timestamp) -> Vec<StatusPeriod> {
    let now = spans.last().map_or(now, |last| now.max(Timestamp(last.since.0 + 1_000)));
    let ends = spans.iter().skip(1).map(|next| next.since).chain([now]);
    let to_period = |(span, until): (&StatusSpanView, Timestamp)| {
        let from = span.since.max(Timestamp(now.0 - DAY_MS));
        (until.0 - from.0 >= 1_000).then_some(StatusPeriod { status: span.status, from, until })
    };
    spans.iter().zip(ends).filter_map(to_period).collect()
}

/// Adds up the periods of each state: one period of their total length, with their number.
fn totals(periods: &[StatusPeriod]) -> Vec<(StatusPeriod, usize)> {
    let total = |status: &Option<WorkerStatus>| {
        let matching = || periods.iter().filter(|period| period.status == *status);
        let span = matching().map(|period| period.duration().0).sum();
        matching().next().map(|first| (StatusPeriod { until: first.from + Millis(span), ..*first }, matching().count()))
    };
    DISPLAY_ORDER.iter().filter_map(total).collect()
}

/// Formats `Offline 1 h 50 min, 3 ×`; only offline periods are counted.
fn describe_total((period, count): &(StatusPeriod, usize)) -> String {
    let count = if period.is_offline() && *count > 1 { format!(", {count}\u{a0}×") } else { String::new() };
    format!("{} {}{count}", period.label(), t().format_duration(period.duration()))
}

#[component]
pub(super) fn LastDay(worker: RwSignal<WorkerView>) -> impl IntoView {
    let (clock, words) = (use_clock(), t());
    let now = Memo::new(move |_| Timestamp(clock.now().0 / MINUTE_MS * MINUTE_MS));
    let periods = Memo::new(move |_| worker.with(|worker| status_periods(&worker.last_day, now.get())));
    let totals_line = move || {
        let totals = periods.with(|periods| totals(periods));
        let each =
            |total: &(StatusPeriod, usize)| view! { <span><i class=total.0.class()></i>{describe_total(total)}</span> };
        totals.iter().map(each).collect_view()
    };
    let rows = move || {
        let row = |period: &StatusPeriod| {
            let (span, from) = (words.format_duration(period.duration()), clock.format_timestamp(period.from));
            view! { <li><i class=period.class()></i>{period.label()}" "{span}<small>{from}</small></li> }
        };
        periods.with(|periods| periods.iter().rev().map(row).collect_view())
    };
    view! {
        <div class="last-day">
            <svg viewBox="0 0 1440 10" preserveAspectRatio="none" aria-hidden="true">
                <rect class="scale-track" width="1440" height="10"></rect>
                {move || periods.with(|periods| draw_bars(periods, clock))}
            </svg>
            <p aria-hidden="true">
                <span>{words.time.ago.of(format_args!("24\u{a0}{}", words.time.hours))}</span>
                <span>{words.time.just_now}</span>
            </p>
            <details class="fold">
                <summary><span class="sr-only">{words.worker.last_day}": "</span>{totals_line}</summary>
                <ol>{rows}</ol>
            </details>
        </div>
    }
    .into_erased()
}

/// One bar per period, with one unit per minute. Offline periods have low bars, which are wide enough to be visible even if
/// short.
fn draw_bars(periods: &[StatusPeriod], clock: PageClock) -> impl IntoView + use<> {
    let begin = periods.last().map_or(0, |last| last.until.0 - DAY_MS);
    let bar = |period: &StatusPeriod| {
        let (y, height, min_width) = if period.is_offline() { ("6", "4", 3) } else { ("0", "10", 1) };
        let (x, width) = ((period.from.0 - begin) / MINUTE_MS, (period.duration().0 / MINUTE_MS).max(min_width));
        let title = format!(
            "{} · {} · {}",
            period.label(),
            t().format_duration(period.duration()),
            clock.format_timestamp(period.from)
        );
        view! { <rect class=period.class() x=x y=y width=width height=height><title>{title}</title></rect> }
    };
    periods.iter().map(bar).collect_view()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_since(since: i64, status: Option<WorkerStatus>) -> StatusSpanView {
        StatusSpanView { since: Timestamp(since), status }
    }

    #[test]
    fn status_changes_of_a_day_are_summed() {
        use WorkerStatus::{Connecting, Idle, Offline};
        let now = Timestamp(3 * DAY_MS);
        let hour = 60 * MINUTE_MS;
        let transitions = [
            status_since(DAY_MS, Some(Idle)),
            status_since(now.0 - 9 * hour, Some(Offline)),
            status_since(now.0 - 7 * hour, Some(Connecting)),
            status_since(now.0 - 7 * hour + 20, Some(Idle)),
            status_since(now.0 - hour, Some(Offline)),
        ];
        let day = status_periods(&transitions, now);
        assert_eq!((day.len(), day[0].from, day[3].until), (4, Timestamp(2 * DAY_MS), now), "20 ms are ignored");
        let sums: Vec<_> =
            totals(&day).iter().map(|(part, times)| (part.status, part.duration().0 / hour, *times)).collect();
        assert_eq!(sums, [(Some(Idle), 20, 2), (Some(Offline), 3, 2)]);
        assert_eq!(status_periods(&[], now), []);
    }

    #[test]
    fn status_change_is_shown_immediately() {
        let now = Timestamp(3 * DAY_MS);
        let transitions = [status_since(DAY_MS, None), status_since(now.0 + 30_000, Some(WorkerStatus::Idle))];
        let day = status_periods(&transitions, now);
        assert_eq!(day.iter().map(|part| part.duration().0).collect::<Vec<_>>(), [DAY_MS - 1_000, 1_000]);
    }
}
