//! Names and attributes of the session cookies, by the scheme of the request.
//!
//! Over HTTPS they are `Secure`, and the `__Host-` prefix makes browsers reject cookies that another host or a plain
//! HTTP connection has set.

use app::domain::time::Millis;
use axum::http::HeaderMap;

use crate::http::edge::client_addr::Scheme;
use crate::http::edge::request_headers::cookie;

pub fn session_name(scheme: Scheme) -> &'static str {
    if scheme.is_secure() { "__Host-sid" } else { "sid" }
}

pub fn read_session(headers: &HeaderMap, scheme: Scheme) -> Option<&str> {
    cookie(headers, session_name(scheme))
}

/// Returns the `Set-Cookie` value; an age of zero deletes the cookie.
pub fn set_session(scheme: Scheme, value: &str, age: Millis) -> String {
    format_cookie(session_name(scheme), scheme, value, age)
}

/// Returns the name of the cookie of a user who has entered the password but no second factor yet.
pub fn pending_name(scheme: Scheme) -> &'static str {
    if scheme.is_secure() { "__Host-pending" } else { "pending" }
}

pub fn read_pending(headers: &HeaderMap, scheme: Scheme) -> Option<&str> {
    cookie(headers, pending_name(scheme))
}

/// Returns the `Set-Cookie` value; an age of zero deletes the cookie.
pub fn set_pending(scheme: Scheme, value: &str, age: Millis) -> String {
    format_cookie(pending_name(scheme), scheme, value, age)
}

/// Returns the name of the cookie that identifies a known browser after its session has ended.
pub fn device_name(scheme: Scheme) -> &'static str {
    if scheme.is_secure() { "__Host-device" } else { "device" }
}

pub fn read_device(headers: &HeaderMap, scheme: Scheme) -> Option<&str> {
    cookie(headers, device_name(scheme))
}

/// Returns the `Set-Cookie` value.
pub fn set_device(scheme: Scheme, value: &str, age: Millis) -> String {
    format_cookie(device_name(scheme), scheme, value, age)
}

fn format_cookie(name: &str, scheme: Scheme, value: &str, age: Millis) -> String {
    let seconds = age.0 / 1_000;
    let secure = if scheme.is_secure() { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}
