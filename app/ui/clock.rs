//! The server's time in the page, and the time zone in which the page formats times.

use leptos::prelude::*;

use super::browser;
use super::format::{shift_by_offset, utc_offset_name};
use super::i18n::t;
use super::prefs::{Prefs, Zone};
use super::time_zone::TimeZone;
use crate::domain::time::Timestamp;

/// The current time by the server's clock, and the time zone of the page; `None` is UTC. Hydration starts
/// with the time and the zone of the server's rendering. If the server did not know the user's time zone,
/// the page changes after hydration.
#[derive(Clone, Copy)]
pub(crate) struct PageClock {
    now: RwSignal<Timestamp>,
    zone: RwSignal<Option<TimeZone>>,
}

impl PageClock {
    /// Creates the clock of a page, which ticks every second in the browser.
    pub fn new(prefs: &Prefs) -> Self {
        let (now, choice) = (prefs.now, prefs.zone);
        let zone = prefs.time_zone.as_deref().and_then(TimeZone::from_name);
        let clock = Self { now: RwSignal::new(now), zone: RwSignal::new(zone) };
        Effect::new(move |_| {
            let loaded_at = browser::now();
            let tick = move || clock.now.set(now + (browser::now() - loaded_at));
            if let Ok(handle) = set_interval_with_handle(tick, std::time::Duration::from_secs(1)) {
                on_cleanup(move || handle.clear());
            }
            let browser_zone = TimeZone::local().filter(|_| choice == Zone::Local);
            if clock.zone.with_untracked(|zone| *zone != browser_zone) {
                clock.zone.set(browser_zone);
            }
        });
        clock
    }

    /// Returns the current time and tracks it.
    pub fn now(self) -> Timestamp {
        self.now.get()
    }

    /// Returns the current time without tracking it.
    pub fn now_untracked(self) -> Timestamp {
        self.now.get_untracked()
    }

    /// Formats a time with its date in the user's language.
    pub fn format_timestamp(self, at: Timestamp) -> String {
        t().format_timestamp(at, self.utc_offset_minutes(at))
    }

    /// Formats the time of day with its offset: `10:31 UTC`.
    pub fn format_time_with_offset(self, at: Timestamp) -> String {
        format!("{} {}", self.format_time(at), self.format_utc_offset(at))
    }

    /// Formats the time of day without its offset.
    pub fn format_time(self, at: Timestamp) -> String {
        shift_by_offset(at, self.utc_offset_minutes(at)).to_string()[11..16].to_owned()
    }

    /// Formats the time of day with its seconds, without its offset.
    pub fn format_seconds(self, at: Timestamp) -> String {
        shift_by_offset(at, self.utc_offset_minutes(at)).to_string()[11..19].to_owned()
    }

    /// Formats the date: `2024-01-15`.
    pub fn format_day(self, at: Timestamp) -> String {
        shift_by_offset(at, self.utc_offset_minutes(at)).to_string()[..10].to_owned()
    }

    /// Formats a time as the value of a form control: `2024-01-15T10:31`.
    #[cfg(feature = "ssr")]
    pub fn format_for_input(self, at: Timestamp) -> String {
        shift_by_offset(at, self.utc_offset_minutes(at)).to_string()[..16].to_owned()
    }

    /// Formats the offset from UTC at a time: `UTC+02:00`.
    pub fn format_utc_offset(self, at: Timestamp) -> String {
        utc_offset_name(self.utc_offset_minutes(at))
    }

    /// Returns the time zone; `None` is UTC.
    #[cfg(feature = "ssr")]
    pub fn zone(self) -> Option<TimeZone> {
        self.zone.get_untracked()
    }

    /// Returns the name of the time zone: `Asia/Tokyo`, or `UTC`.
    pub fn zone_name(self) -> String {
        self.zone.with(|zone| zone.as_ref().map_or("UTC", TimeZone::name).to_owned())
    }

    /// Returns the offset from UTC in minutes at a time.
    pub fn utc_offset_minutes(self, at: Timestamp) -> i32 {
        self.zone.with(|zone| zone.as_ref().map_or(0, |zone| zone.utc_offset_minutes(at)))
    }

    #[cfg(all(test, feature = "ssr"))]
    pub fn in_tokyo() -> Self {
        Self::new(&Prefs { time_zone: Some("Asia/Tokyo".to_owned()), ..Prefs::default() })
    }
}

/// Returns the clock of the page.
pub(crate) fn use_clock() -> PageClock {
    use_context().unwrap_or_else(|| PageClock::new(&Prefs::default()))
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn moments_carry_their_zone() {
        Owner::new().with(|| {
            let at = Timestamp(1_704_450_600_000);
            assert_eq!(use_clock().format_time_with_offset(at), "10:30 UTC", "while no zone is known");
            let tokyo = PageClock::in_tokyo();
            assert_eq!(tokyo.format_time_with_offset(at), "19:30 UTC+09:00");
            assert_eq!(tokyo.format_timestamp(at), "5 Jan 2024, 19:30:00 UTC+09:00");
            assert_eq!(
                (tokyo.format_for_input(at), tokyo.zone_name()),
                ("2024-01-05T19:30".to_owned(), "Asia/Tokyo".to_owned())
            );
            assert_eq!(tokyo.format_day(Timestamp(at.0 + 5 * 3_600_000)), "2024-01-06");
        });
    }

    #[test]
    fn each_moment_has_the_offset_of_its_own_day() {
        Owner::new().with(|| {
            let clock = PageClock::new(&Prefs { time_zone: Some("Europe/Berlin".to_owned()), ..Prefs::default() });
            let formatted = |text| clock.format_timestamp(Timestamp::parse_rfc3339(text).expect("a time"));
            assert_eq!(formatted("2024-03-31T00:59:59Z"), "31 Mar 2024, 01:59:59 UTC+01:00");
            assert_eq!(formatted("2024-03-31T01:00:00Z"), "31 Mar 2024, 03:00:00 UTC+02:00");
        });
    }
}
