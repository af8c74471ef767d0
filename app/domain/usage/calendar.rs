//! GPU time by day of a period, and by hour of the week, in a time zone.

use super::TimeWindow;
use crate::domain::time::{Millis, Timestamp};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// Clock changes happen at multiples of this step of UTC.
const QUARTER_HOUR: i64 = HOUR / 4;
/// The number of hours in a week.
pub const HOURS_PER_WEEK: usize = 168;

/// Returns the offset of a time zone from UTC at a time.
pub type UtcOffset<'z> = &'z (dyn Fn(Timestamp) -> Millis + Send + Sync);

/// UTC.
pub const UTC: UtcOffset<'static> = &|_| Millis(0);

/// A calendar; see the module documentation.
pub struct UsageCalendar<'z> {
    /// Each day in the window, by its start.
    pub days: Vec<(Timestamp, Millis)>,
    /// Each hour of the week, from Monday 0:00.
    pub week: [Millis; HOURS_PER_WEEK],
    utc_offset: UtcOffset<'z>,
    /// The number of the first day since 1970.
    first_day: i64,
}

impl<'z> UsageCalendar<'z> {
    /// Creates an empty calendar of a window.
    pub fn new(window: TimeWindow, utc_offset: UtcOffset<'z>) -> Self {
        let day = |at: Timestamp| local_millis(at, utc_offset).div_euclid(DAY);
        let (first, last) = (day(window.since), day(Timestamp(window.until.0 - 1)));
        let days = (first..=last).map(|day| (day_start(day, utc_offset), Millis(0))).collect();
        Self { days, week: [Millis(0); HOURS_PER_WEEK], utc_offset, first_day: first }
    }

    /// Adds this number of GPUs for a span within the window.
    pub fn add(&mut self, (from, until): (Timestamp, Timestamp), gpus: u64) {
        let mut at = from;
        while at < until {
            let local_time = local_millis(at, self.utc_offset);
            let hour = local_time.div_euclid(HOUR);
            let step_end = Timestamp(at.0 + (hour + 1) * HOUR - local_time).min(until);
            // In an hour with a clock change, quarter-hours are counted.
            let has_no_change = (self.utc_offset)(step_end) == (self.utc_offset)(at);
            let step_end = if has_no_change {
                step_end
            } else {
                Timestamp((at.0.div_euclid(QUARTER_HOUR) + 1) * QUARTER_HOUR).min(step_end)
            };
            let gpu_time = (step_end - at).0 * i64::try_from(gpus).unwrap_or(i64::MAX);
            let day = usize::try_from(hour.div_euclid(24) - self.first_day).ok().and_then(|n| self.days.get_mut(n));
            if let Some((_, day)) = day {
                day.0 += gpu_time;
            }
            self.week[hour_of_week(hour)].0 += gpu_time;
            at = step_end;
        }
    }
}

/// Local time, in milliseconds since 1970.
fn local_millis(at: Timestamp, utc_offset: UtcOffset<'_>) -> i64 {
    at.0 + utc_offset(at).0
}

/// Returns the start of a day: the first of two midnights, or, if a clock change skips midnight, the time of the
/// change.
fn day_start(day: i64, utc_offset: UtcOffset<'_>) -> Timestamp {
    let midnight = day * DAY;
    let midnight_utc = |at: i64| Timestamp(midnight - utc_offset(Timestamp(at)).0);
    let (before, after) = (midnight_utc(midnight - DAY), midnight_utc(midnight + DAY));
    [before, after].into_iter().find(|at| local_millis(*at, utc_offset) == midnight).unwrap_or(before)
}

/// Returns the index of an hour since 1970 in its week. 1970 began on a Thursday.
fn hour_of_week(hour: i64) -> usize {
    usize::try_from((hour + 3 * 24).rem_euclid(7 * 24)).expect("below 168")
}
