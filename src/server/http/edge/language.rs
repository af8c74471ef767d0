//! The language that a client asks for.

use std::convert::Infallible;

use app::domain::time::Timestamp;
use app::ui::prefs::Locale;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use super::prefs::prefs_from_headers;
use crate::http::operation::doc::ACCEPT_LANGUAGE_HEADER;
use crate::http::operation::signature::{DescribeInput, Signature};

/// Returns the language of a user's preferences, or of `Accept-Language`; English by default. Agents send neither: their
/// frequent requests parse nothing.
pub fn client_locale(headers: &HeaderMap) -> Locale {
    if headers.contains_key(header::ACCEPT_LANGUAGE) || headers.contains_key(header::COOKIE) {
        prefs_from_headers(headers, Timestamp::default()).locale
    } else {
        Locale::En
    }
}

/// The language of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLanguage(pub Locale);

impl<S: Sync> FromRequestParts<S> for ClientLanguage {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(client_locale(&parts.headers)))
    }
}

impl DescribeInput for ClientLanguage {
    fn describe(signature: &mut Signature) {
        signature.headers.push(ACCEPT_LANGUAGE_HEADER);
    }
}
