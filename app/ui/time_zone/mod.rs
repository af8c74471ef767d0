//! The time zone by which moments are written: on the server any that the time zone database knows, in a browser its own.

#[cfg(feature = "hydrate")]
mod local;
#[cfg(feature = "ssr")]
mod tzdb;

#[cfg(feature = "hydrate")]
pub(crate) use local::TimeZone;
#[cfg(feature = "ssr")]
pub use tzdb::TimeZone;

/// The cookie in which a browser says its own; also the field of a form in which moments are typed.
#[cfg(feature = "ssr")]
pub const TIME_ZONE_COOKIE: &str = "time_zone";
