//! Conditions on numbers, durations and times.

use std::cmp::Ordering;
use std::fmt;

use crate::domain::search_terms::{AllowedTermValues, SearchOperator};
use crate::domain::time::{Millis, Timestamp};

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `:` or `=`.
    Equal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Returns the comparison of an operator.
    pub const fn of(operator: SearchOperator) -> Self {
        match operator {
            SearchOperator::Contains | SearchOperator::Equals => Self::Equal,
            SearchOperator::Less => Self::Less,
            SearchOperator::AtMost => Self::AtMost,
            SearchOperator::Greater => Self::Greater,
            SearchOperator::AtLeast => Self::AtLeast,
        }
    }

    /// Returns whether it holds; nothing holds for a number that is NaN.
    pub fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        left.partial_cmp(right).is_some_and(|ordering| match self {
            Self::Equal => ordering == Ordering::Equal,
            Self::Less => ordering == Ordering::Less,
            Self::AtMost => ordering != Ordering::Greater,
            Self::Greater => ordering == Ordering::Greater,
            Self::AtLeast => ordering != Ordering::Less,
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => ":",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        })
    }
}

/// A condition on a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeCondition {
    /// Compared with a day: `2026-11-01`. Later is after its end, equal is during it.
    Day {
        /// How.
        comparison: Comparison,
        /// Its first moment; in UTC, unless [`TimeCondition::in_zone`] was called.
        start: Timestamp,
        /// The first moment after it.
        end: Timestamp,
    },
    /// Compared with a time.
    Instant(Comparison, Timestamp),
    /// Compared with the time so long ago: `-7d`.
    Ago(Comparison, Millis),
}

const DAY: Millis = Millis::from_secs(86_400);
/// Examples of allowed values, which need no translation.
const TIMES: &str = "2026-11-01, 2026-11-01T10:30:00Z, -7d, -12h, -30m";

impl TimeCondition {
    /// Parses a value.
    ///
    /// # Errors
    ///
    /// Returns examples of valid ones.
    pub fn parse(comparison: Comparison, value: &str) -> Result<Self, AllowedTermValues> {
        let day = Timestamp::parse_rfc3339(&format!("{value}T00:00:00Z"));
        let at = || Timestamp::parse_rfc3339(&value.to_uppercase());
        let condition = match (day, value.strip_prefix('-')) {
            (Some(start), _) => Some(Self::Day { comparison, start, end: start + DAY }),
            (None, Some(ago)) => parse_duration(ago).map(|ago| Self::Ago(comparison, ago)),
            (None, None) => at().map(|at| Self::Instant(comparison, at)),
        };
        condition.ok_or(AllowedTermValues::Like(TIMES))
    }

    /// Moves a day to another time zone, by a function that converts a local time, given as if it were UTC.
    pub fn in_zone(&mut self, to_utc: impl Fn(Timestamp) -> Timestamp) {
        if let Self::Day { start, end, .. } = self {
            (*start, *end) = (to_utc(*start), to_utc(*end));
        }
    }

    /// Returns whether a time satisfies it.
    pub fn holds(self, at: Timestamp, now: Timestamp) -> bool {
        match self {
            Self::Day { comparison, start, end } => {
                // Before the day, during it, or after it.
                let part = i8::from(at >= start) + i8::from(at >= end);
                comparison.holds(&part, &1)
            }
            Self::Instant(comparison, bound) => comparison.holds(&at, &bound),
            Self::Ago(comparison, ago) => comparison.holds(&at, &(now + Millis(-ago.0))),
        }
    }
}

impl fmt::Display for TimeCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day { comparison, start, .. } => write!(f, "{comparison}{}", &start.to_string()[..10]),
            Self::Instant(comparison, at) => write!(f, "{comparison}\"{at}\""),
            Self::Ago(comparison, ago) => write!(f, "{comparison}-{}", format_duration(*ago)),
        }
    }
}

/// Parses a finite number.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Formats a number with or without an exponent, whichever is shorter.
pub(super) fn format_number(number: f64) -> String {
    let (plain, exponential) = (number.to_string(), format!("{number:e}"));
    if exponential.len() < plain.len() { exponential } else { plain }
}

/// The units of durations, longest first, in milliseconds.
const UNITS: [(char, i64); 5] =
    [('w', 7 * 86_400_000), ('d', 86_400_000), ('h', 3_600_000), ('m', 60_000), ('s', 1_000)];
/// The longest duration, in its unit; a year in seconds is shorter.
const MAX_UNITS: i64 = 100_000_000;

/// Parses `90s`, `30m`, `2h`, `7d` or `4w`.
pub(super) fn parse_duration(text: &str) -> Option<Millis> {
    let unit = text.chars().next_back()?;
    let millis = UNITS.iter().find(|(name, _)| *name == unit.to_ascii_lowercase())?.1;
    let number = text[..text.len() - unit.len_utf8()].parse::<u32>().ok().map(i64::from)?;
    (number <= MAX_UNITS).then(|| Millis(number * millis))
}

/// Formats a duration of whole seconds in its largest exact unit.
pub(super) fn format_duration(duration: Millis) -> String {
    let exact = UNITS.iter().find(|(_, millis)| duration.0 > 0 && duration.0 % millis == 0);
    let (unit, millis) = exact.copied().unwrap_or(('s', 1_000));
    format!("{}{unit}", duration.0 / millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, at: &str) -> bool {
        let now = Timestamp::parse_rfc3339("2026-11-10T12:00:00Z").expect("a time");
        let split = text.find(|c: char| c.is_ascii_digit() || c == '-').expect("a value");
        let comparison = match &text[..split] {
            "<" => Comparison::Less,
            "<=" => Comparison::AtMost,
            ">" => Comparison::Greater,
            ">=" => Comparison::AtLeast,
            _ => Comparison::Equal,
        };
        let condition = TimeCondition::parse(comparison, &text[split..]).expect("a condition");
        condition.holds(Timestamp::parse_rfc3339(at).expect("a time"), now)
    }

    #[test]
    fn days_are_compared_as_a_whole() {
        let (before, first, last, after) =
            ("2026-10-31T23:59:59.999Z", "2026-11-01T00:00:00Z", "2026-11-01T23:59:59.999Z", "2026-11-02T00:00:00Z");
        let table = [
            (":2026-11-01", [false, true, true, false]),
            ("<2026-11-01", [true, false, false, false]),
            ("<=2026-11-01", [true, true, true, false]),
            (">2026-11-01", [false, false, false, true]),
            (">=2026-11-01", [false, true, true, true]),
        ];
        for (text, expected) in table {
            assert_eq!([before, first, last, after].map(|at| holds(text, at)), expected, "{text}");
        }
    }

    #[test]
    fn days_have_a_time_zone() {
        let at = |text| Timestamp::parse_rfc3339(text).expect("a time");
        let mut condition = TimeCondition::parse(Comparison::Equal, "2026-11-01").expect("a day");
        // Two hours ahead of UTC, and one at the end of the day.
        condition.in_zone(|local| {
            local + Millis::from_secs(if local > at("2026-11-01T02:00:00Z") { -3_600 } else { -7_200 })
        });
        let holds = |time| condition.holds(at(time), Timestamp(0));
        assert!(!holds("2026-10-31T21:59:59Z") && holds("2026-10-31T22:00:00Z"));
        assert!(holds("2026-11-01T22:59:59Z") && !holds("2026-11-01T23:00:00Z"));
    }

    #[test]
    fn times_are_absolute_or_ago() {
        assert!(holds(">-7d", "2026-11-03T12:00:00.001Z") && !holds(">-7d", "2026-11-03T12:00:00Z"));
        assert!(holds("<-30m", "2026-11-10T11:29:59Z") && !holds("<-30m", "2026-11-10T11:30:00Z"));
        assert!(holds(">=2026-11-01T10:30:00Z", "2026-11-01T10:30:00Z"));
        for invalid in ["yesterday", "2026-13-01", "-7", "7d", "-d", "-ä", "2026-11-01T10:30"] {
            assert_eq!(
                TimeCondition::parse(Comparison::Less, invalid),
                Err(AllowedTermValues::Like(TIMES)),
                "{invalid}"
            );
        }
    }

    #[test]
    fn durations_are_formatted_as_they_are_parsed() {
        for text in ["0s", "90s", "30m", "2h", "5d", "4w", "100000000w"] {
            assert_eq!(format_duration(parse_duration(text).expect("a duration")), text);
        }
        assert_eq!(parse_duration("120m").map(format_duration).as_deref(), Some("2h"));
        assert_eq!(["", "m", "-1m", "1.5h", "1y", "9999999999s"].map(parse_duration), [None; 6]);
        assert_eq!(["nan", "inf", "-inf", "1e999", "x", ""].map(parse_number), [None; 6]);
    }
}
