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
    let seconds = age.0 / 1_000;
    let secure = if scheme.is_secure() { "; Secure" } else { "" };
    format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", name(scheme))
}
