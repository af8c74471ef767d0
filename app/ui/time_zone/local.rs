//! The time zone of the browser. Others are not supported, because their database would be
//! larger than the whole program.

use crate::domain::time::Timestamp;
use crate::ui::browser;

/// The browser's time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeZone(String);

impl TimeZone {
    /// Returns the time zone with this name if it is the browser's own.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::local().filter(|zone| zone.0 == name)
    }

    /// Returns the browser's time zone.
    pub fn local() -> Option<Self> {
        Some(Self(browser::time_zone())).filter(|zone| !zone.0.is_empty())
    }

    /// Returns its name: `Asia/Tokyo`.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Returns its offset from UTC in minutes at a time.
    #[expect(clippy::unused_self, reason = "as on the server")]
    pub fn utc_offset_minutes(&self, at: Timestamp) -> i32 {
        browser::utc_offset_minutes(at)
    }
}
