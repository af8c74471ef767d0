//! That of the browser: its clocks are known, and a database of all the others would be larger than the program.

use crate::domain::time::Timestamp;
use crate::ui::browser;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeZone(String);

impl TimeZone {
    /// The zone of this name, if it is the browser's own.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::local().filter(|own| own.0 == name)
    }

    /// The browser's own.
    pub fn local() -> Option<Self> {
        Some(Self(browser::time_zone())).filter(|own| !own.0.is_empty())
    }

    /// Its name: `Asia/Tokyo`.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// How many minutes its clocks are, or were, ahead of UTC at a moment.
    #[expect(clippy::unused_self, reason = "as on the server")]
    pub fn utc_offset_minutes(&self, at: Timestamp) -> i32 {
        browser::utc_offset_minutes(at)
    }
}
