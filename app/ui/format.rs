//! Numbers, sizes, times and durations in the user's language.

use super::locales::Language;
use super::locales::sentence::Text;
use super::locales::words::TimeMonths;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::percent_encoding;

impl Language {
    /// Formats a size in powers of 1,024, as settings write it: `812 B`, `4.4 GiB`, `64 GiB`.
    pub(crate) fn format_bytes(&self, size: u64) -> String {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        if size < 1_024 {
            return format!("{} B", self.format_integer(size));
        }
        let mut scaled = to_f64(size) / 1_024.0;
        let mut unit = 0;
        while scaled >= 1_023.5 && unit + 1 < UNITS.len() {
            scaled /= 1_024.0;
            unit += 1;
        }
        let is_integer = (scaled - scaled.round()).abs() < 0.05;
        let digits = usize::from(scaled < 9.95 && !is_integer);
        let number = if scaled < 999.5 { self.locale.fixed(scaled, digits) } else { self.format_rounded(scaled) };
        format!("{number} {}", UNITS[unit])
    }

    /// Formats an integer with group separators: `12,400`.
    pub(crate) fn format_integer(&self, number: u64) -> String {
        self.locale.integer(number)
    }

    /// Formats a percentage: `0%`, `41%`, `99.6%`. Values below 100 never round to `100%`.
    pub(crate) fn format_percent(&self, percent: f64) -> String {
        let percent = percent.clamp(0.0, 100.0);
        let number = if (99.0..100.0).contains(&percent) {
            self.locale.fixed((percent * 10.0).floor() / 10.0, 1)
        } else {
            self.locale.fixed(percent, 0)
        };
        self.locale.with_percent_sign(&number)
    }

    /// Formats hours with about three digits: `0.42`, `12.5`, `1,240`.
    #[cfg(feature = "ssr")]
    pub(crate) fn format_hours(&self, hours: f64) -> String {
        if hours < 99.95 {
            return self.locale.fixed(hours, if hours < 0.995 { 2 } else { 1 });
        }
        self.format_rounded(hours)
    }

    /// Formats a measured number with about four digits: `0.0823`, `1.21`, `1.0e-5`.
    pub(crate) fn format_number(&self, value: f64) -> String {
        let size = value.abs();
        if !value.is_finite() {
            return "–".to_owned();
        }
        match size {
            _ if size == 0.0 => "0".to_owned(),
            // The notation of the trainer.
            _ if !(0.001..1_000_000.0).contains(&size) => format!("{value:.1e}"),
            _ if size < 1.0 => self.locale.fixed(value, 4),
            _ if size < 100.0 => self.locale.fixed(value, 2),
            _ if value < 0.0 => format!("-{}", self.format_rounded(size)),
            _ => self.format_rounded(size),
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive float saturates")]
    fn format_rounded(&self, size: f64) -> String {
        self.locale.integer(size.round() as u64)
    }

    /// Formats a duration in its two largest units: `38 s`, `4 min 12 s`, `3 h 20 min`, `2 d 4 h`.
    pub(crate) fn format_duration(&self, span: Millis) -> String {
        let words = &self.time;
        let seconds = span.0.max(0) / 1_000;
        let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
        let two_units = |(first, unit), (second, second_unit)| match second {
            0 => format!("{first}\u{a0}{unit}"),
            _ => format!("{first}\u{a0}{unit}\u{a0}{second}\u{a0}{second_unit}"),
        };
        match seconds {
            ..60 => format!("{seconds}\u{a0}{}", words.seconds),
            60..3_600 => two_units((minutes, words.minutes), (seconds % 60, words.seconds)),
            3_600..86_400 => two_units((hours, words.hours), (minutes % 60, words.minutes)),
            _ => two_units((days, words.days), (hours % 24, words.hours)),
        }
    }

    /// Formats the age of a time in one unit, with few distinct steps: `just now`, `20 s ago`, `4 min ago`, `3 d ago`.
    pub(crate) fn format_ago(&self, at: Timestamp, now: Timestamp) -> String {
        let words = &self.time;
        let seconds = (now - at).0 / 1_000;
        let (count, unit) = match seconds {
            ..5 => return words.just_now.to_owned(),
            5..60 => (seconds / 5 * 5, words.seconds),
            60..3_600 => (seconds / 60, words.minutes),
            3_600..86_400 => (seconds / 3_600, words.hours),
            _ => (seconds / 86_400, words.days),
        };
        words.ago.of(format_args!("{count}\u{a0}{unit}"))
    }

    /// Formats a time with its date at an offset from UTC in minutes: `15 Jan 2024, 12:30:00 UTC+02:00`.
    pub(crate) fn format_timestamp(&self, at: Timestamp, offset_minutes: i32) -> String {
        let text = shift_by_offset(at, offset_minutes).to_string();
        let month = month_name(&self.time.months, &text[5..7]);
        let day = text[8..10].trim_start_matches('0');
        self.time.date.with(&[&day, &month, &&text[..4], &&text[11..19], &utc_offset_name(offset_minutes)])
    }
}

/// Returns the name of a month by its two digits.
fn month_name(months: &TimeMonths, digits: &str) -> Text {
    match digits {
        "01" => months.january,
        "02" => months.february,
        "03" => months.march,
        "04" => months.april,
        "05" => months.may,
        "06" => months.june,
        "07" => months.july,
        "08" => months.august,
        "09" => months.september,
        "10" => months.october,
        "11" => months.november,
        _ => months.december,
    }
}

/// Shifts a time by an offset from UTC in minutes.
pub(crate) fn shift_by_offset(at: Timestamp, offset_minutes: i32) -> Timestamp {
    at + Millis::from_secs(i64::from(offset_minutes) * 60)
}

/// Formats an offset from UTC in minutes: `UTC+02:00`.
pub(crate) fn utc_offset_name(offset_minutes: i32) -> String {
    let (sign, minutes) = (if offset_minutes < 0 { '\u{2212}' } else { '+' }, offset_minutes.unsigned_abs());
    match minutes {
        0 => "UTC".to_owned(),
        _ => format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
    }
}

/// Formats a time for machines and command lines: `2024-01-15 10:30:00 UTC`.
#[cfg(feature = "ssr")]
pub(crate) fn format_utc(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} {} UTC", &text[..10], &text[11..19])
}

/// Shortens an ID for a table to its prefix and its last six characters, which are random
/// and therefore distinguish IDs.
pub(crate) fn short_id(id: &str) -> String {
    match (id.find('_'), id.len()) {
        (Some(prefix), length) if length > prefix + 9 && id.is_ascii() => {
            format!("{}…{}", &id[..=prefix], &id[length - 6..])
        }
        _ => id.to_owned(),
    }
}

/// Escapes text for the few places where Leptos does not.
pub(crate) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the URL of a configuration's page.
pub(crate) fn config_url(name: &str) -> String {
    let mut url = "/configs/".to_owned();
    percent_encoding::encode(name, b"", &mut url);
    url
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits anyway")]
pub(crate) fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::prefs::Locale;

    fn en() -> &'static Language {
        Language::of(Locale::En)
    }

    #[test]
    fn sizes() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1_023, "1,023 B"),
            (1_024, "1 KiB"),
            (1_536, "1.5 KiB"),
            (10_188, "9.9 KiB"),
            (10_200, "10 KiB"),
            (1_023 << 10, "1,023 KiB"),
            ((1 << 20) - 1, "1 MiB"),
            (4_700_000_000, "4.4 GiB"),
            (2 << 30, "2 GiB"),
            (64 << 30, "64 GiB"),
            (u64::MAX, "16,777,216 TiB"),
        ];
        for (size, text) in cases {
            assert_eq!(en().format_bytes(size), text);
        }
    }

    #[test]
    fn shares() {
        for (percent, text) in
            [(-3.0, "0%"), (41.4, "41%"), (99.64, "99.6%"), (99.99, "99.9%"), (100.0, "100%"), (250.0, "100%")]
        {
            assert_eq!(en().format_percent(percent), text);
        }
    }

    #[test]
    fn hours() {
        for (hours, text) in
            [(0.0, "0.00"), (0.04, "0.04"), (0.999, "1.0"), (12.46, "12.5"), (99.96, "100"), (12_400.4, "12,400")]
        {
            assert_eq!(en().format_hours(hours), text);
        }
        assert_eq!(Language::of(Locale::Es).format_hours(1.5), "1,5");
    }

    #[test]
    fn measured_numbers() {
        for (value, text) in [
            (0.0, "0"),
            (0.082_34, "0.0823"),
            (1.206, "1.21"),
            (640.4, "640"),
            (12_345.6, "12,346"),
            (-12_345.6, "-12,346"),
            (1e-5, "1.0e-5"),
            (-2.5, "-2.50"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(en().format_number(value), text);
        }
    }

    #[test]
    fn spans_and_ages() {
        let without_nbsp = |text: String| text.replace('\u{a0}', " ");
        let cases = [
            (-5, "0 s"),
            (38, "38 s"),
            (60, "1 min"),
            (252, "4 min 12 s"),
            (12_000, "3 h 20 min"),
            (187_200, "2 d 4 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(without_nbsp(en().format_duration(Millis::from_secs(seconds))), text);
        }
        let cases = [
            (-40, "just now"),
            (4, "just now"),
            (23, "20 s ago"),
            (59, "55 s ago"),
            (60, "1 min ago"),
            (3_599, "59 min ago"),
            (7_200, "2 h ago"),
            (400_000, "4 d ago"),
        ];
        for (seconds, text) in cases {
            assert_eq!(without_nbsp(en().format_ago(Timestamp(0), Timestamp(seconds * 1_000))), text);
        }
        let at = Timestamp(1_704_450_600_999);
        assert_eq!(format_utc(at), "2024-01-05 10:30:00 UTC");
        let with_offset = |minutes| en().format_timestamp(at, minutes);
        assert_eq!(with_offset(0), "5 Jan 2024, 10:30:00 UTC");
        assert_eq!(with_offset(840), "6 Jan 2024, 00:30:00 UTC+14:00");
        assert_eq!(with_offset(-570), "5 Jan 2024, 01:00:00 UTC\u{2212}09:30");
    }

    #[test]
    fn languages_have_their_own_formats() {
        let at = Timestamp(1_704_450_600_999);
        let texts = Locale::ALL.map(|locale| {
            let language = Language::of(locale);
            format!(
                "{} | {} | {}",
                language.format_bytes(4_700_000_000),
                language.format_percent(99.64),
                language.format_timestamp(at, 0)
            )
        });
        assert_eq!(
            texts,
            [
                "4.4 GiB | 99.6% | 5 Jan 2024, 10:30:00 UTC",
                "4,4 GiB | 99,6\u{a0}% | 5 ene 2024, 10:30:00 UTC",
                "4.4 GiB | 99.6% | 5 जन॰ 2024, 10:30:00 UTC",
                "4.4 GiB | 99.6% | 2024年1月5日 10:30:00 UTC",
                "4,4 GiB | 99,6% | 5 de jan. de 2024, 10:30:00 UTC",
                "4.4 GiB | 99.6% | 2024年1月5日 10:30:00 UTC",
            ]
        );
    }

    #[test]
    fn ids_are_shortened_to_their_last_characters() {
        assert_eq!(short_id("j_01k9zv3m8e6q2c4r7t5w0x1y2z"), "j_…0x1y2z");
        assert_eq!(short_id("j_abc"), "j_abc");
        assert_eq!(short_id("plain"), "plain");
    }
}
