//! The session's cookie: its name and what else stands in it, by what the browser speaks.
//!
//! Over HTTPS it is never sent without, and its `__Host-` name makes browsers refuse one that another host or a plain
//! connection has planted.

use app::domain::time::Millis;
use axum::http::HeaderMap;

use super::arrival::Scheme;
use super::headers::cookie;

/// Its name.
pub fn name(scheme: Scheme) -> &'static str {
    if scheme.is_secure() { "__Host-sid" } else { "sid" }
}

/// Its value in a request.
pub fn read(headers: &HeaderMap, scheme: Scheme) -> Option<&str> {
    cookie(headers, name(scheme))
}

/// As it is set, for so long; for no time it is taken away.
pub fn set(scheme: Scheme, value: &str, age: Millis) -> String {
    whole(name(scheme), scheme, value, age)
}

/// The name of the cookie of somebody who has given the password, and no code yet.
pub fn pending_name(scheme: Scheme) -> &'static str {
    if scheme.is_secure() { "__Host-pending" } else { "pending" }
}

/// Its value in a request.
pub fn read_pending(headers: &HeaderMap, scheme: Scheme) -> Option<&str> {
    cookie(headers, pending_name(scheme))
}

/// As it is set, for so long; for no time it is taken away.
pub fn set_pending(scheme: Scheme, value: &str, age: Millis) -> String {
    whole(pending_name(scheme), scheme, value, age)
}

/// The name of the cookie by which a browser is known again after its session has ended.
pub fn device_name(scheme: Scheme) -> &'static str {
    if scheme.is_secure() { "__Host-device" } else { "device" }
}

/// Its value in a request.
pub fn read_device(headers: &HeaderMap, scheme: Scheme) -> Option<&str> {
    cookie(headers, device_name(scheme))
}

/// As it is set, for so long.
pub fn set_device(scheme: Scheme, value: &str, age: Millis) -> String {
    whole(device_name(scheme), scheme, value, age)
}

fn whole(name: &str, scheme: Scheme, value: &str, age: Millis) -> String {
    let seconds = age.0 / 1_000;
    let secure = if scheme.is_secure() { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}
