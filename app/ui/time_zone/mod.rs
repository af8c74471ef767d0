//! The time zone in which times are shown: on the server any zone of the time zone database, in the browser its own.

#[cfg(feature = "hydrate")]
mod local;

#[cfg(feature = "ssr")]
pub use crate::time_zone::TimeZone;
#[cfg(feature = "hydrate")]
pub(crate) use local::TimeZone;

/// The cookie with the browser's time zone; also a form field that gives the zone of the times in the form.
#[cfg(feature = "ssr")]
pub const TIME_ZONE_COOKIE: &str = "time_zone";
