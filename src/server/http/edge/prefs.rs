//! The preferences of the browser that sent a request.

use app::domain::time::Timestamp;
use app::ui::prefs::{Prefs, Zone};
use app::ui::time_zone::{TIME_ZONE_COOKIE, TimeZone};
use axum::http::{HeaderMap, header};

use super::request_headers::cookie;

/// Reads the preferences from the headers of a request.
pub fn prefs_from_headers(headers: &HeaderMap, now: Timestamp) -> Prefs {
    let header_text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mac = header_text(header::USER_AGENT).contains("Macintosh");
    let prefs = Prefs::from_headers(header_text(header::COOKIE), header_text(header::ACCEPT_LANGUAGE), now);
    let time_zone =
        cookie(headers, TIME_ZONE_COOKIE).filter(|_| prefs.zone == Zone::Local).and_then(TimeZone::from_name);
    Prefs { mac, time_zone: time_zone.map(|time_zone| time_zone.name().to_owned()), ..prefs }
}
