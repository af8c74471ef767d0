//! Time zones from an embedded database, because a container may have none.

use std::sync::LazyLock;

use jiff::tz::{Offset, TimeZone as Rules, TimeZoneDatabase};

use crate::domain::time::{Millis, Timestamp};

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The maximum length of a name in the database.
const MAX_NAME_LENGTH: usize = 64;

/// A zone of the time zone database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeZone(Rules);

impl TimeZone {
    /// Returns the zone with this name, in the spelling of the database.
    pub fn from_name(name: &str) -> Option<Self> {
        let rules = Some(name).filter(|name| name.len() <= MAX_NAME_LENGTH).and_then(|name| DATABASE.get(name).ok())?;
        (rules.iana_name() == Some(name) && !rules.is_unknown()).then_some(Self(rules))
    }

    /// Returns `None`: only browsers have a local zone.
    pub(crate) const fn local() -> Option<Self> {
        None
    }

    /// Returns its name: `Asia/Tokyo`.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or_default()
    }

    /// Returns its offset from UTC in minutes at a time.
    pub fn utc_offset_minutes(&self, at: Timestamp) -> i32 {
        jiff::Timestamp::from_millisecond(at.0).map_or(0, |at| self.0.to_offset(at).seconds() / 60)
    }

    /// Returns its offset from UTC at a time.
    pub fn utc_offset(&self, at: Timestamp) -> Millis {
        Millis::from_secs(i64::from(self.utc_offset_minutes(at)) * 60)
    }

    /// Converts a local time, given as if it were UTC. Of an ambiguous time it returns the first; a skipped time is
    /// converted with the offset before the transition, as browsers do.
    pub fn from_local_time(&self, local: Timestamp) -> Option<Timestamp> {
        let local = Offset::UTC.to_datetime(jiff::Timestamp::from_millisecond(local.0).ok()?);
        let at = self.0.to_ambiguous_timestamp(local).compatible().ok()?;
        Some(Timestamp(at.as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::from_name(name).unwrap_or_else(|| panic!("{name} is known"))
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap_or_else(|| panic!("{text} is a time"))
    }

    #[test]
    fn zones_are_ahead_as_they_were_at_the_moment() {
        for (name, time, minutes) in [
            ("Asia/Tokyo", "2024-01-05T10:30:00Z", 540),
            ("Asia/Kolkata", "2024-01-05T10:30:00Z", 330),
            ("Asia/Calcutta", "2024-01-05T10:30:00Z", 330),
            ("Asia/Kathmandu", "2024-01-05T10:30:00Z", 345),
            ("America/St_Johns", "2024-01-05T10:30:00Z", -210),
            ("America/Argentina/ComodRivadavia", "2024-01-05T10:30:00Z", -180),
            ("Etc/GMT+5", "2024-01-05T10:30:00Z", -300),
            ("UTC", "2024-01-05T10:30:00Z", 0),
            ("Europe/Berlin", "2024-03-31T00:59:59Z", 60),
            ("Europe/Berlin", "2024-03-31T01:00:00Z", 120),
            ("Europe/Berlin", "2024-10-27T00:59:59Z", 120),
            ("Europe/Berlin", "2024-10-27T01:00:00Z", 60),
            ("Australia/Lord_Howe", "2024-04-06T14:59:59Z", 660),
            ("Australia/Lord_Howe", "2024-04-06T15:00:00Z", 630),
            ("Europe/Berlin", "2060-07-01T00:00:00Z", 120),
        ] {
            assert_eq!((zone(name).name(), zone(name).utc_offset_minutes(at(time))), (name, minutes), "{time}");
        }
    }

    #[test]
    fn local_time_becomes_a_timestamp() {
        for (name, local, time) in [
            ("Asia/Kolkata", "2024-01-05T10:30:00Z", "2024-01-05T05:00:00Z"),
            ("Europe/Berlin", "2024-07-01T12:00:00Z", "2024-07-01T10:00:00Z"),
            // Ambiguous and skipped local times.
            ("Europe/Berlin", "2024-10-27T02:30:00Z", "2024-10-27T00:30:00Z"),
            ("Europe/Berlin", "2024-03-31T02:30:00Z", "2024-03-31T01:30:00Z"),
        ] {
            assert_eq!(zone(name).from_local_time(at(local)), Some(at(time)), "{name}: {local}");
        }
    }

    #[test]
    fn invalid_zone_file_is_an_error() {
        let long = "A".repeat(4_096);
        for name in [
            "",
            " ",
            "asia/tokyo",
            "Asia/Tokyo ",
            "Tokyo",
            "Etc/Unknown",
            "../../../etc/passwd",
            "/usr/share/zoneinfo/Asia/Tokyo",
            "+09:00",
            "CET-1CEST",
            "<script>",
            "Asia/Tokyo\0",
            "Ásia/Tokyo",
            &long,
        ] {
            assert_eq!(TimeZone::from_name(name), None, "{name:?}");
        }
    }
}
