//! GPU time by the days of a window, and by the hours of the week, in UTC.

use super::Window;
use crate::domain::time::{Millis, Timestamp};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// The hours of a week.
pub const WEEK: usize = 168;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// Each day that the window touches, by its beginning.
    pub days: Vec<(Timestamp, Millis)>,
    /// Each hour of the week, Monday's first one first.
    pub week: [Millis; WEEK],
}

impl Calendar {
    /// Of a window in which nothing happened.
    pub fn of(window: Window) -> Self {
        let (first, end) = (window.since.0.div_euclid(DAY), (window.until.0 + DAY - 1).div_euclid(DAY));
        let days = (first..end).map(|day| (Timestamp(day * DAY), Millis(0))).collect();
        Self { days, week: [Millis(0); WEEK] }
    }

    /// Adds so many GPUs for a span inside the window.
    pub fn add(&mut self, (from, until): (Timestamp, Timestamp), gpus: u32) {
        let first = self.days.first().map_or(0, |(day, _)| day.0.div_euclid(DAY));
        let mut at = from.0;
        while at < until.0 {
            let hour = at.div_euclid(HOUR);
            let next = ((hour + 1) * HOUR).min(until.0);
            let time = (next - at) * i64::from(gpus);
            if let Some((_, day)) = usize::try_from(hour.div_euclid(24) - first).ok().and_then(|n| self.days.get_mut(n))
            {
                day.0 += time;
            }
            self.week[hour_of_week(hour)].0 += time;
            at = next;
        }
    }
}

/// The place of an hour since 1970 in its week. 1970 began on a Thursday.
fn hour_of_week(hour: i64) -> usize {
    usize::try_from((hour + 3 * 24).rem_euclid(7 * 24)).expect("below 168")
}
