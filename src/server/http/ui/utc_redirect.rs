//! Converts times that forms send in the user's time zone to UTC, so that an address means the same for every user.

use app::domain::time::Timestamp;
use app::ui::time_zone::{TIME_ZONE_COOKIE, TimeZone};
use axum::extract::{Query, Request};
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use crate::text::percent_escaped;

/// The fields with times.
const TIME_FIELDS: [&str; 2] = ["since", "until"];

/// Redirects to the address with times in UTC, if the request names a time zone.
pub async fn redirect_to_utc(request: Request, next: Next) -> Response {
    match utc_url(request.uri()) {
        Some(address) => Redirect::to(&address).into_response(),
        None => next.run(request).await,
    }
}

/// Returns the address with times in UTC and without the time zone, or `None` if it has no time zone.
fn utc_url(uri: &Uri) -> Option<String> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    let (_, name) = pairs.iter().find(|(name, _)| name == TIME_ZONE_COOKIE)?;
    let zone = TimeZone::from_name(name);
    let to_utc = |text: &str| {
        let local_time = Timestamp::parse_rfc3339(&format!("{text}:00Z"))?;
        zone.as_ref().map_or(Some(local_time), |zone| zone.from_local_time(local_time)).map(|at| at.to_string())
    };
    let params =
        pairs.iter().filter(|(name, value)| name != TIME_ZONE_COOKIE && !value.is_empty()).map(|(name, value)| {
            let at = TIME_FIELDS.contains(&name.as_str()).then(|| to_utc(value)).flatten();
            format!("{}={}", percent_escaped(name), percent_escaped(at.as_ref().unwrap_or(value)))
        });
    let query = params.collect::<Vec<_>>().join("&");
    Some(if query.is_empty() { uri.path().to_owned() } else { format!("{}?{query}", uri.path()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect_target(from: &str) -> Option<String> {
        utc_url(&from.parse().expect("an address"))
    }

    #[test]
    fn local_times_are_converted_to_utc() {
        let typed = "since=2024-01-15T10%3A30&until=2024-07-15T10%3A30&user=a%26b&label=&q=";
        for (zone, [since, until]) in [
            ("Asia/Kolkata", ["05%3A00", "05%3A00"]),
            ("Europe/Berlin", ["09%3A30", "08%3A30"]),
            ("UTC", ["10%3A30", "10%3A30"]),
            ("Middle/Earth", ["10%3A30", "10%3A30"]),
        ] {
            let to = format!("/jobs?since=2024-01-15T{since}%3A00.000Z&until=2024-07-15T{until}%3A00.000Z&user=a%26b");
            assert_eq!(redirect_target(&format!("/jobs?{typed}&time_zone={zone}")), Some(to), "{zone}");
        }
    }

    #[test]
    fn query_without_local_times_is_unchanged() {
        for from in ["/jobs", "/jobs?since=2024-01-15T10:30", "/jobs?user=time_zone"] {
            assert_eq!(redirect_target(from), None, "{from}");
        }
        assert_eq!(redirect_target("/jobs?time_zone=Asia/Tokyo&since="), Some("/jobs".to_owned()));
        let times = "since=soon&until=2024-01-15T10%3A30%3A00Z";
        assert_eq!(redirect_target(&format!("/jobs?{times}&time_zone=Asia/Tokyo")), Some(format!("/jobs?{times}")));
    }
}
