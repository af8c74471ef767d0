//! The session's cookie: its name and what else stands in it, by what the browser speaks.
//!
//! Over HTTPS it is never sent without, and its `__Host-` name makes browsers refuse one that another host or a plain
//! connection has planted.

use axum::http::HeaderMap;

use super::access::cookie;
use super::arrival::Scheme;

/// Its name.
pub fn name(scheme: Scheme) -> &'static str {
    if scheme.is_secure() { "__Host-sid" } else { "sid" }
}

/// Its value in a request.
pub fn read(headers: &HeaderMap, scheme: Scheme) -> Option<&str> {
    cookie(headers, name(scheme))
}

/// As it is set, for so many seconds; with none it is taken away.
pub fn set(scheme: Scheme, value: &str, seconds: u32) -> String {
    let secure = if scheme.is_secure() { "; Secure" } else { "" };
    format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", name(scheme))
}
