//! Numbers, sizes, moments and spans as the reader's language writes them.

use super::locales::Language;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::percent;

impl Language {
    /// A size: `812 B`, `4.7 GB` (powers of 1,000, as disks and downloads are counted).
    pub(crate) fn bytes(&self, size: u64) -> String {
        const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
        if size < 1_000 {
            return format!("{size} B");
        }
        let mut scaled = to_f64(size) / 1_000.0;
        let mut unit = 0;
        while scaled >= 999.5 && unit + 1 < UNITS.len() {
            scaled /= 1_000.0;
            unit += 1;
        }
        let digits = usize::from(scaled < 9.95);
        format!("{} {}", self.locale.fixed(scaled, digits), UNITS[unit])
    }

    /// A whole number with groups: `12,400`.
    pub(crate) fn whole(&self, number: u64) -> String {
        self.locale.whole(number)
    }

    /// A share of 100: `0%`, `41%`, `99.6%`; never a false `100%`.
    pub(crate) fn percent(&self, percent: f64) -> String {
        let percent = percent.clamp(0.0, 100.0);
        let number = if (99.0..100.0).contains(&percent) {
            self.locale.fixed((percent * 10.0).floor() / 10.0, 1)
        } else {
            self.locale.fixed(percent, 0)
        };
        self.locale.with_percent_sign(&number)
    }

    /// Hours in about three digits: `0.42`, `12.5`, `1,240`.
    #[cfg(feature = "ssr")]
    pub(crate) fn hours(&self, hours: f64) -> String {
        if hours < 99.95 {
            return self.locale.fixed(hours, if hours < 0.995 { 2 } else { 1 });
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive float saturates")]
        self.locale.whole(hours.round() as u64)
    }

    /// A measured number in about four digits: `0.0823`, `1.21`, `1.0e-5`.
    pub(crate) fn number(&self, value: f64) -> String {
        let size = value.abs();
        if !value.is_finite() {
            return "–".to_owned();
        }
        match size {
            _ if size == 0.0 => "0".to_owned(),
            // As the trainer writes it.
            _ if !(0.001..1_000_000.0).contains(&size) => format!("{value:.1e}"),
            _ if size < 1.0 => self.locale.fixed(value, 4),
            _ if size < 100.0 => self.locale.fixed(value, 2),
            _ => self.locale.fixed(value, 0),
        }
    }

    /// A span in its two largest units: `38 s`, `4 min 12 s`, `3 h 20 min`, `2 d 4 h`.
    pub(crate) fn span(&self, span: Millis) -> String {
        let words = &self.time;
        let seconds = span.0.max(0) / 1_000;
        let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
        let two = |(first, unit), (second, small)| match second {
            0 => format!("{first}\u{a0}{unit}"),
            _ => format!("{first}\u{a0}{unit}\u{a0}{second}\u{a0}{small}"),
        };
        match seconds {
            ..60 => format!("{seconds}\u{a0}{}", words.seconds),
            60..3_600 => two((minutes, words.minutes), (seconds % 60, words.seconds)),
            3_600..86_400 => two((hours, words.hours), (minutes % 60, words.minutes)),
            _ => two((days, words.days), (hours % 24, words.hours)),
        }
    }

    /// How long ago, in one unit and in calm steps: `just now`, `20 s ago`, `4 min ago`, `3 d ago`.
    pub(crate) fn ago(&self, at: Timestamp, now: Timestamp) -> String {
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

    /// The moment in full: `15 Jan 2024, 10:30:00 UTC`.
    pub(crate) fn moment(&self, at: Timestamp) -> String {
        self.moment_ahead(at, None)
    }

    /// The same by a clock that is so many minutes ahead of UTC: `15 Jan 2024, 12:30:00 UTC+02:00`.
    pub(crate) fn moment_ahead(&self, at: Timestamp, ahead: Option<i32>) -> String {
        let ahead = ahead.unwrap_or_default();
        let text = (at + Millis::seconds(i64::from(ahead) * 60)).to_string();
        let (sign, minutes) = (if ahead < 0 { '\u{2212}' } else { '+' }, ahead.unsigned_abs());
        let zone = match minutes {
            0 => "UTC".to_owned(),
            _ => format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        };
        let month = text[5..7].parse::<usize>().ok().and_then(|month| self.time.months.get(month.wrapping_sub(1)));
        let day = text[8..10].trim_start_matches('0');
        self.time.date.with(&[&day, &month.copied().unwrap_or_default(), &&text[..4], &&text[11..19], &zone])
    }
}

/// The moment as machines and command lines read it: `2024-01-15 10:30:00 UTC`.
#[cfg(feature = "ssr")]
pub(crate) fn plain_moment(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} {} UTC", &text[..10], &text[11..19])
}

/// An id shortened for a table: its prefix and its last six characters, which are random and so tell ids apart.
pub(crate) fn short_id(id: &str) -> String {
    match (id.find('_'), id.len()) {
        (Some(prefix), length) if length > prefix + 9 && id.is_ascii() => {
            format!("{}…{}", &id[..=prefix], &id[length - 6..])
        }
        _ => id.to_owned(),
    }
}

/// `?a=1&b=2` out of those that are some and not empty; empty if none is.
pub(crate) fn query_string(pairs: &[(&str, Option<String>)]) -> String {
    let mut query = String::new();
    for (key, value) in pairs {
        let Some(value) = value.as_ref().filter(|value| !value.is_empty()) else { continue };
        query.push(if query.is_empty() { '?' } else { '&' });
        query.push_str(key);
        query.push('=');
        percent::encode(value, b"", &mut query);
    }
    query
}

/// As HTML, for the few places where the framework writes a text as it is.
pub(crate) fn html_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Where a configuration's page is.
pub(crate) fn config_address(name: &str) -> String {
    let mut address = "/configs/".to_owned();
    percent::encode(name, b"", &mut address);
    address
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
            (1_000, "1.0 kB"),
            (9_949, "9.9 kB"),
            (9_960, "10 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (4_700_000_000, "4.7 GB"),
            (u64::MAX, "18446744 TB"),
        ];
        for (size, text) in cases {
            assert_eq!(en().bytes(size), text);
        }
    }

    #[test]
    fn shares() {
        for (share, text) in
            [(-3.0, "0%"), (41.4, "41%"), (99.64, "99.6%"), (99.99, "99.9%"), (100.0, "100%"), (250.0, "100%")]
        {
            assert_eq!(en().percent(share), text);
        }
    }

    #[test]
    fn hours() {
        for (hours, text) in
            [(0.0, "0.00"), (0.04, "0.04"), (0.999, "1.0"), (12.46, "12.5"), (99.96, "100"), (12_400.4, "12,400")]
        {
            assert_eq!(en().hours(hours), text);
        }
        assert_eq!(Language::of(Locale::Es).hours(1.5), "1,5");
    }

    #[test]
    fn measured_numbers() {
        for (value, text) in [
            (0.0, "0"),
            (0.082_34, "0.0823"),
            (1.206, "1.21"),
            (640.4, "640"),
            (1e-5, "1.0e-5"),
            (-2.5, "-2.50"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(en().number(value), text);
        }
    }

    #[test]
    fn spans_and_ages() {
        let plain = |text: String| text.replace('\u{a0}', " ");
        let cases = [
            (-5, "0 s"),
            (38, "38 s"),
            (60, "1 min"),
            (252, "4 min 12 s"),
            (12_000, "3 h 20 min"),
            (187_200, "2 d 4 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(plain(en().span(Millis::seconds(seconds))), text);
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
            assert_eq!(plain(en().ago(Timestamp(0), Timestamp(seconds * 1_000))), text);
        }
        let at = Timestamp(1_704_450_600_999);
        assert_eq!(en().moment(at), "5 Jan 2024, 10:30:00 UTC");
        assert_eq!(plain_moment(at), "2024-01-05 10:30:00 UTC");
        let ahead = |minutes| en().moment_ahead(at, Some(minutes));
        assert_eq!(ahead(0), "5 Jan 2024, 10:30:00 UTC");
        assert_eq!(ahead(840), "6 Jan 2024, 00:30:00 UTC+14:00");
        assert_eq!(ahead(-570), "5 Jan 2024, 01:00:00 UTC\u{2212}09:30");
    }

    #[test]
    fn other_languages_write_otherwise() {
        let at = Timestamp(1_704_450_600_999);
        let texts = Locale::ALL.map(|locale| {
            let language = Language::of(locale);
            format!("{} | {} | {}", language.bytes(4_700_000_000), language.percent(99.64), language.moment(at))
        });
        assert_eq!(
            texts,
            [
                "4.7 GB | 99.6% | 5 Jan 2024, 10:30:00 UTC",
                "4,7 GB | 99,6\u{a0}% | 5 ene 2024, 10:30:00 UTC",
                "4.7 GB | 99.6% | 5 जन॰ 2024, 10:30:00 UTC",
                "4.7 GB | 99.6% | 2024年1月5日 10:30:00 UTC",
                "4,7 GB | 99,6% | 5 de jan. de 2024, 10:30:00 UTC",
                "4.7 GB | 99.6% | 2024年1月5日 10:30:00 UTC",
            ]
        );
    }

    #[test]
    fn ids_are_shortened_to_what_tells_them_apart() {
        assert_eq!(short_id("j_01k9zv3m8e6q2c4r7t5w0x1y2z"), "j_…0x1y2z");
        assert_eq!(short_id("j_abc"), "j_abc");
        assert_eq!(short_id("plain"), "plain");
    }

    #[test]
    fn query_strings_are_encoded() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(query_string(&[("a", None), ("b", some(""))]), "");
        assert_eq!(
            query_string(&[("topics", some("job:j_1,ü &=")), ("n", some("5"))]),
            "?topics=job%3Aj_1%2C%C3%BC%20%26%3D&n=5"
        );
    }
}
