//! Time as a value: milliseconds since the Unix epoch, passed in by the caller.

use std::fmt;
use std::ops::{Add, Sub};

/// A time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

/// A duration in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub i64);

impl Millis {
    /// Creates a duration of whole seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds * 1_000)
    }
}

impl Add<Millis> for Timestamp {
    type Output = Self;
    fn add(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub for Timestamp {
    type Output = Millis;
    fn sub(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

const DAY_MILLIS: i64 = 86_400_000;

impl Timestamp {
    /// Parses an RFC 3339 time in UTC (`2024-01-15T10:30:00Z`, with up to nine fractional digits).
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let text = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?;
        let (date, clock) = text.split_once('T')?;
        let [year, month, day] = parse_numbers(date, '-', [4, 2, 2])?;
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
        let [hour, minute, second] = parse_numbers(clock, ':', [2, 2, 2])?;
        let in_range = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        let digits_only = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|b| b.is_ascii_digit());
        if !in_range || !digits_only {
            return None;
        }
        let millis: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
        Some(Self(
            days_from_civil(year, month, day) * DAY_MILLIS + ((hour * 60 + minute) * 60 + second) * 1_000 + millis,
        ))
    }
}

impl Timestamp {
    /// Returns the date (year, month, day) and the time of day (hour, minute, second) in UTC.
    pub fn to_civil(self) -> ([i64; 3], [i64; 3]) {
        let (year, month, day) = civil_from_days(self.0.div_euclid(DAY_MILLIS));
        let rest = self.0.rem_euclid(DAY_MILLIS);
        ([year, month, day], [rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60])
    }
}

/// RFC 3339 in UTC with milliseconds: `2024-01-15T10:30:00.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([year, month, day], [hour, minute, second]) = self.to_civil();
        let milli = self.0.rem_euclid(1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

fn parse_numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut next = |digits: usize| {
        let part = parts.next().filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()));
        part?.parse::<i64>().ok()
    };
    let found = [next(digits[0])?, next(digits[1])?, next(digits[2])?];
    parts.next().is_none().then_some(found)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since the epoch of a date in the proleptic Gregorian calendar
/// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`], from the same source.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times_round_trip() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_705_314_600_000, "2024-01-15T10:30:00.000Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_714_435_200_000, "2024-04-30T00:00:00.000Z"),
            (1_706_659_200_000, "2024-01-31T00:00:00.000Z"),
        ];
        for (millis, text) in cases {
            assert_eq!(Timestamp(millis).to_string(), text);
            assert_eq!(Timestamp::parse_rfc3339(text), Some(Timestamp(millis)));
        }
        assert_eq!(Timestamp::parse_rfc3339("2024-01-15T10:30:00Z"), Some(Timestamp(1_705_314_600_000)));
        assert_eq!(Timestamp::parse_rfc3339("2024-01-15T10:30:00.5+00:00"), Some(Timestamp(1_705_314_600_500)));
    }

    #[test]
    fn invalid_times_are_rejected() {
        let bad = [
            "",
            "Z",
            "2024-01-15",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-15T24:00:00Z",
            "2024-01-15T10:60:00Z",
            "2024-01-15T10:30:00.Z",
            "2024-01-15T10:30:00+02:00",
            "2024-01-15T10:30:00:00Z",
            "2024-01-15T1é:30:00Z",
            "2024-00-10T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-04-31T00:00:00Z",
            "2024-06-31T00:00:00Z",
            "2024-09-31T00:00:00Z",
            "2024-11-31T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "12024-01-01T00:00:00Z",
            "+024-01-01T00:00:00Z",
            "24-01-15T10:30:00Z",
            "2024-1-5T10:30:00Z",
            "2024-01-15T1:2:3Z",
            "2024-01-15T010:30:00Z",
        ];
        for text in bad {
            assert_eq!(Timestamp::parse_rfc3339(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn printed_times_round_trip(millis in 0_i64..253_402_300_800_000) {
            prop_assert_eq!(Timestamp::parse_rfc3339(&Timestamp(millis).to_string()), Some(Timestamp(millis)));
        }
    }
}
